//! The text files of LAFAN1 retargeted to the G1, and the likes of them that are not.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use glam::{DQuat, DVec3};

use super::trajectory::MAX_FRAMES;
use super::{Kinematics, MotionError, Trajectory};

/// Frames per second of retargeted LAFAN1; the files do not say.
pub const LAFAN_RATE: f64 = 30.0;

/// Longest line that is read, in bytes; a line of 36 numbers has a tenth of it.
const MAX_LINE: u64 = 8192;

/// Text files of G1 motions that are not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The BONES-SEED data set.
    BonesSeed,
    /// The G1 Moves data set.
    G1Moves,
    /// A file with a header of another kind.
    Header,
    /// Quaternions with the scalar first.
    ScalarFirst,
    /// Joint positions in degrees.
    Degrees,
    /// Lengths in centimetres or millimetres.
    Centimetres,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BonesSeed => {
                "it is a BONES-SEED file, with a header, centimetres, Euler angles in degrees and 120 frames per second"
            }
            Self::G1Moves => {
                "it looks like G1 Moves, with a `.pkl` of the same name and 60 frames per second; \
                 state the frame rate to read it all the same"
            }
            Self::Header => "it begins with a header",
            Self::ScalarFirst => "its quaternions look like `wxyz`, not `xyzw`",
            Self::Degrees => "its joint positions look like degrees, not radians",
            Self::Centimetres => "its root is so high up that lengths look like centimetres, not metres",
        })
    }
}

/// Reads a text file of retargeted LAFAN1.
///
/// It has no header, and a line for each frame: root position (m), root orientation `xyzw`, and joint positions (rad) in
/// the robot's order, separated by commas. The files do not say how many frames a second has; without `rate`, it is
/// [`LAFAN_RATE`].
///
/// # Errors
/// The file cannot be read, a line is not as described, or the file is of another [`Dialect`].
pub fn read_lafan_csv(
    path: impl AsRef<Path>,
    rate: Option<f64>,
    robot: &Kinematics,
) -> Result<Trajectory, MotionError> {
    let path = path.as_ref();
    let failed = |source| MotionError::File { path: path.to_owned(), source };
    let dialect = |dialect| MotionError::Dialect { path: path.to_owned(), dialect };
    if rate.is_none() && path.with_extension("pkl").exists() {
        return Err(dialect(Dialect::G1Moves));
    }

    let joints = robot.joints().len();
    let mut trajectory = Trajectory::new(path.display().to_string(), rate.unwrap_or(LAFAN_RATE), joints);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut text = Vec::new();
    let mut values = Vec::with_capacity(7 + joints);
    for line in 1.. {
        let wrong = |message: String| MotionError::Line { path: path.to_owned(), line, message };
        text.clear();
        let length = (&mut file).take(MAX_LINE).read_until(b'\n', &mut text).map_err(failed)?;
        if length == 0 {
            break;
        }
        if length as u64 == MAX_LINE {
            return Err(wrong(format!("it has more than {MAX_LINE} bytes")));
        }
        let Ok(content) = str::from_utf8(&text) else { return Err(wrong("it is no text".to_owned())) };
        let content = content.trim();
        if content.is_empty() {
            continue;
        }
        if line == 1 && content.split(',').any(|word| word.trim().parse::<f64>().is_err()) {
            let seed = content.contains("root_translate") || content.contains("root_rotate");
            return Err(dialect(if seed { Dialect::BonesSeed } else { Dialect::Header }));
        }
        values.clear();
        for word in content.split(',').map(str::trim) {
            match word.parse::<f64>() {
                Ok(value) if value.is_finite() => values.push(value),
                Ok(_) => return Err(wrong(format!("`{word}` is not finite"))),
                Err(_) => return Err(wrong(format!("`{}` is no number", shortened(word)))),
            }
        }
        if values.len() != 7 + joints {
            return Err(wrong(format!(
                "it has {} values, not {}: root position, root orientation and {joints} joints",
                values.len(),
                7 + joints
            )));
        }
        if trajectory.frames() == MAX_FRAMES {
            return Err(wrong(format!("a motion has at most {MAX_FRAMES} frames")));
        }
        let orientation = DQuat::from_xyzw(values[3], values[4], values[5], values[6]);
        trajectory
            .push(DVec3::new(values[0], values[1], values[2]), orientation, &values[7..])
            .map_err(|error| wrong(error.to_string()))?;
    }
    match suspect(&trajectory) {
        Some(found) => Err(dialect(found)),
        None => Ok(trajectory),
    }
}

/// What the numbers look like, if not like what they should be.
fn suspect(trajectory: &Trajectory) -> Option<Dialect> {
    let frames = 0..trajectory.frames();
    let mean = |value: &dyn Fn(usize) -> f64| frames.clone().map(value).sum::<f64>() / trajectory.frames() as f64;
    let greatest = |frame: usize| trajectory.joints(frame).iter().fold(0.0, |most: f64, joint| most.max(joint.abs()));
    // No joint of a humanoid turns further than this.
    if frames.clone().any(|frame| greatest(frame) > std::f64::consts::TAU) {
        return Some(Dialect::Degrees);
    }
    if mean(&|frame| trajectory.root_position(frame).z) > 10.0 {
        return Some(Dialect::Centimetres);
    }
    // Humanoids are upright most of the time, and read in the wrong order they are on their heads.
    let upright = |rotation: DQuat| (rotation * DVec3::Z).z;
    let as_read = mean(&|frame| upright(trajectory.root_orientation(frame)));
    let reordered = mean(&|frame| {
        let DQuat { x: w, y: x, z: y, w: z } = trajectory.root_orientation(frame);
        upright(DQuat::from_xyzw(x, y, z, w))
    });
    let lowest = frames.clone().map(|frame| upright(trajectory.root_orientation(frame))).fold(1.0, f64::min);
    let better = reordered > 0.8 && as_read < reordered - 0.1 && lowest < 0.0;
    (better || (as_read < 0.0 && reordered > 0.5)).then_some(Dialect::ScalarFirst)
}

/// The start of a word that may be long.
fn shortened(word: &str) -> String {
    word.chars().take(40).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said about a file with this content, if anything.
    fn complaint(content: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("motion.csv");
        std::fs::write(&path, content).unwrap();
        let robot = Kinematics::g1().unwrap();
        read_lafan_csv(&path, None, &robot).err().map(|error| error.to_string())
    }

    fn line(root: &str, joints: &str) -> String {
        format!("{root},{}\n", vec![joints; 29].join(","))
    }

    const UPRIGHT: &str = "0.5,-0.5,0.8,0,0,0.6,0.8";

    #[test]
    fn columns_are_position_quaternion_and_joints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("motion.csv");
        let joints: Vec<_> = (1..=29).map(|joint| format!("{}", f64::from(joint) / 32.0)).collect();
        std::fs::write(&path, format!("{UPRIGHT}, {}\r\n{}\n", joints.join(", "), line(UPRIGHT, "0.25"))).unwrap();
        let robot = Kinematics::g1().unwrap();
        let trajectory = read_lafan_csv(&path, None, &robot).unwrap();
        assert_eq!((trajectory.frames(), trajectory.rate()), (2, 30.0));
        assert_eq!(trajectory.root_position(0), DVec3::new(0.5, -0.5, 0.8));
        // A turn about the vertical whose half angle has cosine 0.8 and sine 0.6.
        let turned = trajectory.root_orientation(0) * DVec3::X;
        assert!((turned - DVec3::new(0.28, 0.96, 0.0)).length() < 1e-12);
        assert_eq!(trajectory.joints(0)[28], 29.0 / 32.0);
        assert_eq!(trajectory.joints(1), [0.25; 29]);
    }

    #[test]
    fn other_data_sets_are_refused_by_name() {
        let header = "Frame,root_translateX,root_translateY,root_translateZ,root_rotateX,root_rotateY,root_rotateZ,left_hip_pitch_joint_dof\n";
        assert!(complaint(header.as_bytes()).unwrap().contains("BONES-SEED"));
        assert!(complaint(b"x,y,z\n1,2,3\n").unwrap().contains("begins with a header"));
        assert!(complaint(line(UPRIGHT, "20").as_bytes()).unwrap().contains("degrees"));
        assert!(complaint(line("0,0,80,0,0,0,1", "0").as_bytes()).unwrap().contains("centimetres"));
        assert!(complaint(line("0,0,0.8,1,0,0,0", "0").as_bytes()).unwrap().contains("`wxyz`"));
        // With a turn in the motion, the wrong reading is not upside down all the time.
        let turning: String = (0..8)
            .map(|step| {
                let (sin, cos) = (f64::from(step) * 0.4).sin_cos();
                line(&format!("0,0,0.8,{cos},0,0,{sin}"), "0")
            })
            .collect();
        assert!(complaint(turning.as_bytes()).unwrap().contains("`wxyz`"));
        let turned: String = (0..8)
            .map(|step| {
                let (sin, cos) = (f64::from(step) * 0.4).sin_cos();
                line(&format!("0,0,0.8,0,0,{sin},{cos}"), "0")
            })
            .collect();
        assert_eq!(complaint(turned.as_bytes()), None);
        // Lying on the back is no reason to object.
        assert_eq!(complaint(line("0,0,0.1,0,-0.7071068,0,0.7071068", "0").as_bytes()), None);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("B_Dance.csv");
        std::fs::write(&path, line(UPRIGHT, "0")).unwrap();
        std::fs::write(path.with_extension("pkl"), "").unwrap();
        let robot = Kinematics::g1().unwrap();
        let error = read_lafan_csv(&path, None, &robot).unwrap_err().to_string();
        assert!(error.contains("G1 Moves") && error.contains("60 frames"), "{error}");
        assert_eq!(read_lafan_csv(&path, Some(60.0), &robot).unwrap().rate(), 60.0);
    }

    #[test]
    fn damaged_lines_are_located() {
        let two = |second: &str| [line(UPRIGHT, "0").as_bytes(), second.as_bytes()].concat();
        let expect = |content: &[u8], expected: &str| {
            let text = complaint(content).unwrap();
            assert!(text.contains(expected), "{text}");
        };
        expect(&two("1,2,3\n"), "line 2: it has 3 values, not 36");
        expect(&two(&line(UPRIGHT, "0.1x")), "line 2: `0.1x` is no number");
        expect(&two(&line(UPRIGHT, "nan")), "line 2: `nan` is not finite");
        expect(&two(&line(UPRIGHT, "1e999")), "line 2: `1e999` is not finite");
        expect(&two(&line("0,0,0,0,0,0,0.5", "0")), "line 2");
        expect(&vec![b'1'; 100_000], "more than 8192 bytes");
        expect(b"\xff\xfe\n", "no text");
    }
}
