//! `manege motion check`

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use manege::motion::{self, Fit, Kinematics, Motion, MotionError, RangeViolation, SYNTHETIC_RATE, Worst};
use serde_json::{Value, json};

use crate::cli::{Failure, print, running};

/// Say what motion files hold, and whether they fit the robot.
#[derive(Args)]
#[command(after_help = "Example:
  manege motion check clips/*.npz --json

Exit status: 1 if a file cannot be read or does not fit the robot or the frame rate.")]
pub(crate) struct Arguments {
    /// Motion files
    #[arg(value_name = "FILE.npz", required = true)]
    files: Vec<PathBuf>,

    /// Frames per second that are needed: one for each control step
    #[arg(long, value_name = "HZ", default_value_t = SYNTHETIC_RATE)]
    rate: f64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What there is to say about a file.
struct Finding {
    motion: Motion,
    fit: Fit,
    objection: Option<MotionError>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut robot = Kinematics::g1().map_err(running)?;
    let mut objections = 0;
    let (mut text, mut entries) = (String::new(), Vec::new());
    for path in &arguments.files {
        let finding = examine(path, arguments.rate, &mut robot);
        if !matches!(finding, Ok(Finding { objection: None, .. })) {
            objections += 1;
        }
        if arguments.json {
            entries.push(entry(path, &finding));
        } else {
            text.push_str(&paragraph(path, &finding));
        }
    }
    if arguments.json {
        text = serde_json::to_string(&json!({ "motions": entries })).map_err(running)?;
    }
    print(&text)?;
    match objections {
        0 => Ok(()),
        _ => Err(running(anyhow!("{objections} of {} motions cannot be used", arguments.files.len()))),
    }
}

fn examine(path: &Path, rate: f64, robot: &mut Kinematics) -> Result<Finding, MotionError> {
    let motion = Motion::read(path, robot)?;
    let fit = motion::measure(&motion, robot, None)?;
    let objection = motion::judge(&motion, robot, &fit).and_then(|()| motion.check_rate(rate)).err();
    Ok(Finding { motion, fit, objection })
}

fn entry(path: &Path, finding: &Result<Finding, MotionError>) -> Value {
    let file = path.display().to_string();
    match finding {
        Ok(Finding { motion, fit, objection }) => json!({
            "file": file,
            "usable": objection.is_none(),
            "error": objection.as_ref().map(ToString::to_string),
            "frames": motion.frames(),
            "rate": motion.rate(),
            "duration": motion.duration(),
            "fit": fit,
        }),
        Err(error) => json!({ "file": file, "usable": false, "error": error.to_string() }),
    }
}

fn paragraph(path: &Path, finding: &Result<Finding, MotionError>) -> String {
    let (motion, fit, objection) = match finding {
        Ok(Finding { motion, fit, objection }) => (motion, fit, objection),
        Err(error) => return format!("{}: not usable\n  {error}\n", path.display()),
    };
    let verdict = if objection.is_none() { "usable" } else { "not usable" };
    let mut text = format!("{}: {verdict}\n", path.display());
    if let Some(objection) = objection {
        text.push_str(&format!("  {objection}\n"));
    }
    text.push_str(&format!("  {} frames at {} Hz, {:.2} s\n", motion.frames(), motion.rate(), motion.duration()));
    let errors = [
        ("positions", "m", &fit.position),
        ("orientations", "rad", &fit.orientation),
        ("linear velocities", "m/s", &fit.linear_velocity),
        ("angular velocities", "rad/s", &fit.angular_velocity),
    ];
    for (what, unit, Worst { error, body, frame }) in errors {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {what} within {error:.1e} {unit} of the kinematics (worst: {body}, frame {frame})");
    }
    let Worst { error, frame, .. } = &fit.root_velocity;
    let _ = writeln!(text, "  the root's velocity within {error:.1e} m/s of its positions (worst: frame {frame})");
    let ratio = fit.velocity_ratio.map_or("nothing to compare with".to_owned(), |ratio| format!("{ratio:.4}"));
    text.push_str(&format!("  joint velocities over differences of joint positions: {ratio}\n"));
    match fit.range_violations.as_slice() {
        [] => text.push_str("  all joints within their ranges\n"),
        violations => {
            for violation in violations {
                text.push_str(&format!("  {}\n", describe(violation, motion.frames())));
            }
        }
    }
    text
}

/// A joint that leaves its range, in words.
pub(crate) fn describe(violation: &RangeViolation, frames: usize) -> String {
    let RangeViolation { joint, frames: out, worst } = violation;
    format!("{joint} is out of its range in {out} of {frames} frames, by up to {worst:.3} rad")
}
