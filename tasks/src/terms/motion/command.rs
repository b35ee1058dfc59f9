//! The command to follow a motion.

use std::path::PathBuf;
use std::sync::Arc;

use manege_components::{Draws, rotation};
use manege_systems::backend::Output;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::handles::TaskSlice;
use manege_systems::managers::command::{CommandRow, CommandTerm};
use manege_systems::row_view::RowView;
use manege_systems::snapshot::{Reader, SnapshotError, Writer};
use manege_systems::staging::RootState;
use serde::{Deserialize, Serialize};

use super::super::events::{SixRanges, SixTunable};
use super::super::resolve;
use super::sampling::Sampler;
use super::{ALIGNMENT, BodyOutputs, FRAME, MotionReference, Pursuit, Sampling, vec3};
use crate::motion::{ClipOptions, Kinematics, MotionClips, MotionError, synthesize_g1};

/// Frames up to which single precision, in which task state is kept, counts without gaps.
const MAX_FRAMES: usize = 1 << 24;

/// Follows motions frame by frame: one frame in every control step.
///
/// The command is the frame's joint positions (rad) and joint velocities (rad/s), absolute, in joint order. When it is drawn,
/// which is at resets, the robot is put on the drawn frame: root and joints as in the motion, plus noise, which is in the
/// world frame.
///
/// The metrics are the errors at the end of the episode, of the anchor in the world and of the bodies against their
/// [relative targets](super) (m, rad, m/s and rad/s, means over bodies), of the joints (norms, rad and rad/s), and three
/// numbers about the sampling: entropy (as a part of the greatest), probability and place of the likeliest bin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotionCommand {
    /// Motion files of the G1; without any, the motion that this project makes.
    pub files: Vec<PathBuf>,
    /// Whether files with another frame rate than the control rate are resampled rather than refused.
    pub resample: bool,
    /// The body that the robot and the motion are laid over each other by, one of `bodies`.
    pub anchor: String,
    /// The bodies that are tracked; the first is the root.
    pub bodies: Vec<String>,
    /// Where episodes begin.
    pub sampling: Sampling,
    /// Noise on the root's pose when an episode begins, m and rad.
    pub pose: SixRanges,
    /// Noise on the root's velocity when an episode begins, m/s and rad/s.
    pub velocity: SixRanges,
    /// Noise on the joints when an episode begins, rad. The joints stay within their ranges.
    pub joint_position: [f64; 2],
    /// Whether a clip's last frame is the end, which the episode does not outlive (see
    /// [`ClipEnd`](super::terminations::ClipEnd)). If not, the robot is put on another frame and goes on.
    pub truncate_on_clip_end: bool,
}

struct FollowMotion {
    reference: Arc<MotionReference>,
    sampler: Sampler,
    frame: TaskSlice,
    alignment: TaskSlice,
    pose: SixTunable,
    velocity: SixTunable,
    joint_position: [f64; 2],
    joints: Vec<JointPlace>,
    randomization: bool,
    truncate_on_clip_end: bool,
}

/// Where a joint is in the generalised state, and how far it goes.
#[derive(Debug, Clone, Copy)]
struct JointPlace {
    qpos: usize,
    dof: usize,
    range: [f64; 2],
}

fn data(error: MotionError) -> BuildError {
    BuildError::Data(Box::new(error))
}

impl MotionCommand {
    fn clips(&self, context: &BuildContext<'_>) -> Result<MotionClips, BuildError> {
        let mut robot = Kinematics::g1().map_err(data)?;
        let info = context.info();
        // Body 0 of the model is the world.
        let same = info.joints.iter().map(|joint| &joint.name).eq(robot.joints().iter().map(|joint| &joint.name))
            && info.bodies.iter().skip(1).map(|body| &body.name).eq(robot.bodies());
        if !same {
            let message = "the model is not the G1, whose motions these are".to_owned();
            return Err(resolve::impossible("files", message));
        }
        let rate = 1.0 / context.control_period();
        let options = ClipOptions { rate, resample: self.resample, bodies: self.bodies.clone() };
        let clips = if self.files.is_empty() {
            let motion = synthesize_g1(&mut robot).map_err(data)?;
            MotionClips::new([&motion], &mut robot, &options)
        } else {
            MotionClips::load(&self.files, &mut robot, &options)
        };
        let clips = clips.map_err(data)?;
        if clips.frames() > MAX_FRAMES {
            let message = format!("{} frames are more than {MAX_FRAMES}", clips.frames());
            return Err(resolve::impossible("files", message));
        }
        Ok(clips)
    }

    fn reference(&self, context: &mut BuildContext<'_>) -> Result<MotionReference, BuildError> {
        let bodies = self.bodies.iter().map(|name| context.body(name)).collect::<Result<Vec<_>, _>>()?;
        let anchor = self.bodies.iter().position(|name| *name == self.anchor).ok_or_else(|| {
            resolve::impossible("anchor", format!("`{}` is none of `bodies`: {}", self.anchor, self.bodies.join(", ")))
        })?;
        if bodies.first() != Some(&context.root_body()?) {
            let root = &context.info().bodies[context.root_body()?].name;
            return Err(resolve::impossible("bodies", format!("the first must be the root, `{root}`")));
        }
        let clips = self.clips(context)?;
        // Quantity by quantity, so that what is read together lies together.
        let mut outputs = |kind: fn(usize) -> Output| {
            bodies.iter().map(|&body| context.output(kind(body))).collect::<Result<Vec<_>, _>>()
        };
        let positions = outputs(Output::BodyPosition)?;
        let orientations = outputs(Output::BodyOrientation)?;
        let linear = outputs(Output::BodyLinearVelocity)?;
        let angular = outputs(Output::BodyAngularVelocity)?;
        let bodies = (0..bodies.len())
            .map(|i| BodyOutputs {
                position: positions[i],
                orientation: orientations[i],
                linear_velocity: linear[i],
                angular_velocity: angular[i],
            })
            .collect();
        context.limit_task_state(FRAME, [0.0, (clips.frames() - 1) as f32]);
        Ok(MotionReference {
            clips,
            frame: context.register_task_state(FRAME, 1)?,
            alignment: context.register_task_state(ALIGNMENT, 4)?,
            anchor,
            bodies,
            joint_positions: context.joint_positions()?,
            joint_velocities: context.joint_velocities()?,
        })
    }
}

impl TermParams<dyn CommandTerm> for MotionCommand {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CommandTerm>, BuildError> {
        let [low, high] = self.joint_position;
        if !(low <= high && low.is_finite() && high.is_finite()) {
            return Err(resolve::impossible("joint_position", format!("[{low}, {high}] rad is an empty range")));
        }
        let reference = Arc::new(self.reference(context)?);
        context.share(Arc::clone(&reference));
        let joints = context.info().joints.iter();
        Ok(Box::new(FollowMotion {
            sampler: Sampler::new(&self.sampling, &reference.clips)?,
            frame: reference.frame,
            alignment: reference.alignment,
            pose: self.pose.tunable("pose", context)?,
            velocity: self.velocity.tunable("velocity", context)?,
            joint_position: self.joint_position,
            joints: joints
                .map(|joint| JointPlace {
                    qpos: joint.qpos,
                    dof: joint.dof,
                    range: joint.range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]),
                })
                .collect(),
            randomization: context.randomization(),
            truncate_on_clip_end: self.truncate_on_clip_end,
            reference,
        }))
    }
}

impl FollowMotion {
    fn frame(&self, row: &CommandRow<'_>) -> usize {
        self.reference.frame_index(row.task[self.frame.range().start])
    }

    fn set_frame(&self, row: &mut CommandRow<'_>, frame: usize) {
        // Exact: there are no more frames than single precision counts.
        row.task[self.frame.range().start] = frame as f32;
    }

    fn pursuit<'a>(&'a self, row: &CommandRow<'a>) -> Pursuit<'a> {
        let frame = row.task[self.frame.range().start];
        self.reference.pursuit_of(row.view, frame, &row.task[self.alignment.range()])
    }
}

/// The scratch value that says that the row would have gone beyond its clip.
const OVER: usize = 0;

impl CommandTerm for FollowMotion {
    fn width(&self) -> usize {
        2 * self.reference.clips.joints()
    }

    fn scratch_width(&self) -> usize {
        1
    }

    fn metrics(&self) -> &[&'static str] {
        &[
            "error_anchor_pos",
            "error_anchor_rot",
            "error_anchor_lin_vel",
            "error_anchor_ang_vel",
            "error_body_pos",
            "error_body_rot",
            "error_body_lin_vel",
            "error_body_ang_vel",
            "error_joint_pos",
            "error_joint_vel",
            "sampling_entropy",
            "sampling_top1_prob",
            "sampling_top1_bin",
        ]
    }

    fn resample(&self, row: &mut CommandRow<'_>, draws: &mut Draws) {
        let frame = self.sampler.draw(draws) as usize;
        self.set_frame(row, frame);
        row.scratch[OVER] = 0.0;
        let Some(staged) = &mut row.staged else { return };

        let mut noise = draws.clone();
        if !self.randomization {
            noise = noise.centred();
        }
        let (shift, turn) = self.pose.draw(&mut noise);
        let (linear, angular) = self.velocity.draw(&mut noise);
        let clips = &self.reference.clips;
        staged.set_root(RootState {
            position: vec3(clips.body_pos(frame)[0]) + shift,
            orientation: rotation::from_roll_pitch_yaw(turn.x, turn.y, turn.z)
                * rotation::from_wxyz_f32(clips.body_quat(frame)[0]),
            linear_velocity: vec3(clips.body_lin_vel(frame)[0]) + linear,
            angular_velocity: vec3(clips.body_ang_vel(frame)[0]) + angular,
        });
        let [low, high] = self.joint_position;
        let positions = staged.qpos_mut();
        for (joint, &position) in self.joints.iter().zip(clips.joint_pos(frame)) {
            let position = f64::from(position) + noise.uniform(low, high);
            positions[joint.qpos] = position.clamp(joint.range[0], joint.range[1]);
        }
        let velocities = staged.qvel_mut();
        for (joint, &velocity) in self.joints.iter().zip(clips.joint_vel(frame)) {
            velocities[joint.dof] = f64::from(velocity);
        }
    }

    fn update(&self, row: &mut CommandRow<'_>) {
        let clips = &self.reference.clips;
        let mut frame = self.frame(row);
        if row.elapsed > 0.0 {
            if frame < clips.last_frames()[frame] as usize {
                frame += 1;
            } else {
                row.scratch[OVER] = 1.0;
            }
            self.set_frame(row, frame);
        }
        let joints = clips.joints();
        row.values[..joints].copy_from_slice(clips.joint_pos(frame));
        row.values[joints..].copy_from_slice(clips.joint_vel(frame));
        let alignment = self.pursuit(row).new_alignment();
        row.task[self.alignment.range()].copy_from_slice(&alignment);
    }

    fn final_metrics(&self, row: &mut CommandRow<'_>) {
        let mut errors = [0.0; 10];
        measure(&self.pursuit(row), &mut errors);
        for (metric, error) in row.metrics.iter_mut().zip(errors) {
            *metric = error as f32;
        }
        row.metrics[errors.len()..].copy_from_slice(&self.sampler.statistics());
    }

    fn places_rows(&self) -> bool {
        true
    }

    fn is_over(&self, row: &CommandRow<'_>) -> bool {
        !self.truncate_on_clip_end && row.scratch[OVER] != 0.0
    }

    fn watches_failures(&self) -> bool {
        self.sampler.learns()
    }

    fn observe_failures(&mut self, rows: &mut dyn Iterator<Item = RowView<'_>>) {
        let Self { reference, sampler, frame, .. } = self;
        sampler.learn(rows.map(|row| reference.frame_index(row.task(*frame)[0])));
    }

    fn save(&self, to: &mut Writer) {
        self.sampler.save(to);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.sampler.load(from)
    }
}

/// The errors that the metrics report, in their order.
fn measure(pursuit: &Pursuit<'_>, errors: &mut [f64; 10]) {
    let anchor = pursuit.anchor();
    let mean =
        |error: &dyn Fn(usize) -> f64| pursuit.bodies().map(error).sum::<f64>() / pursuit.reference.bodies() as f64;
    *errors = [
        (pursuit.motion_position(anchor) - pursuit.position(anchor)).length(),
        rotation::angle_between(pursuit.motion_orientation(anchor), pursuit.orientation(anchor)),
        (pursuit.motion_linear_velocity(anchor) - pursuit.linear_velocity(anchor)).length(),
        (pursuit.motion_angular_velocity(anchor) - pursuit.angular_velocity(anchor)).length(),
        mean(&|body| (pursuit.relative_position(body) - pursuit.position(body)).length()),
        mean(&|body| rotation::angle_between(pursuit.relative_orientation(body), pursuit.orientation(body))),
        mean(&|body| (pursuit.motion_linear_velocity(body) - pursuit.linear_velocity(body)).length()),
        mean(&|body| (pursuit.motion_angular_velocity(body) - pursuit.angular_velocity(body)).length()),
        pursuit.joint_positions().map(|(robot, motion)| (robot - motion).powi(2)).sum::<f64>().sqrt(),
        pursuit.joint_velocities().map(|(robot, motion)| (robot - motion).powi(2)).sum::<f64>().sqrt(),
    ];
}
