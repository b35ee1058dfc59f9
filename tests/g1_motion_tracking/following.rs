//! A robot that follows the motion exactly.

use bevy_ecs::prelude::*;
use manege::Environment;
use manege_systems::place::write_states;
use manege_systems::schedule::StepSystems;

use super::{FRAMES, JOINTS, builder, frames, motion, state};

/// The motion, and how many frames behind the frame to match the robot is put.
#[derive(Resource)]
struct Puppet(Vec<(Vec<f64>, Vec<f64>)>);

fn put(world: &mut World, ahead: usize) {
    let mut query = world.query::<(&manege_components::Row, &manege_components::TaskState)>();
    let mut rows: Vec<_> = query.iter(world).map(|(row, state)| (row.0, state.values[0] as usize)).collect();
    rows.sort_unstable();
    let (mut qpos, mut qvel) = (Vec::new(), Vec::new());
    for (_, frame) in rows {
        let (positions, velocities) = &world.resource::<Puppet>().0[(frame + ahead).min(FRAMES - 1)];
        qpos.extend_from_slice(positions);
        qvel.extend_from_slice(velocities);
    }
    write_states(world, Some(&qpos), Some(&qvel)).unwrap();
}

/// An environment whose robots are moved by hand: what the physics did is undone before rewards are computed, and before the
/// motion is laid over the robot they are where it will be.
fn puppets(rows: usize, changes: &str) -> Environment {
    builder(rows)
        .corruption(false)
        .config(changes.parse().unwrap())
        .extend(|world, step, _| {
            let motion = motion();
            let frame = |frame| {
                let (qpos, qvel) = state(&motion, frame);
                (qpos.to_vec(), qvel.to_vec())
            };
            world.insert_resource(Puppet((0..FRAMES).map(frame).collect()));
            step.add_systems((
                (|world: &mut World| put(world, 0)).after(StepSystems::State).before(StepSystems::Task),
                (|world: &mut World| put(world, 1)).after(StepSystems::Event).before(StepSystems::Command),
            ));
        })
        .build()
        .unwrap()
}

const FROM_THE_START: &str = "commands.motion.sampling = { kind = \"start\" }\n\
                              commands.motion.pose = { x = [0, 0], y = [0, 0], z = [0, 0], roll = [0, 0], pitch = [0, 0], yaw = [0, 0] }\n\
                              commands.motion.joint_position = [0.0, 0.0]\n\
                              commands.motion.velocity = { x = [0, 0], y = [0, 0], z = [0, 0], roll = [0, 0], pitch = [0, 0], yaw = [0, 0] }";

#[test]
fn following_exactly_earns_everything_until_the_clip_ends_as_a_truncation() {
    let mut env = puppets(2, FROM_THE_START);
    env.reset().unwrap();
    for step in 1..FRAMES {
        assert_eq!(frames(&mut env), [step - 1; 2]);
        env.step(&[0.0; 2 * JOINTS]).unwrap();
        assert_eq!(env.truncated(), [false; 2], "step {step}");
        assert_eq!(env.terminated(), [false; 2], "step {step}");
        let weights = [1.0, 0.5, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        for terms in env.reward_terms().chunks(weights.len()) {
            for (i, (value, weight)) in terms.iter().zip(weights).enumerate() {
                // The motion's velocities are differences over two frames, those of the robot's bodies follow from its own.
                let tolerance = if (4..6).contains(&i) { 2e-3 } else { 1e-6 };
                let name = &env.spec().reward_terms[i];
                assert!((value - weight).abs() <= tolerance, "step {step}, {name}: {value} of {weight}");
            }
        }
    }
    // The frame to match is the last one.
    assert_eq!(frames(&mut env), [FRAMES - 1; 2]);
    env.step(&[0.0; 2 * JOINTS]).unwrap();
    assert_eq!((env.truncated(), env.terminated()), (&[true; 2][..], &[false; 2][..]));
    assert_eq!(env.termination_terms(), [0b10; 2], "the clip's end, and nothing else");
    let log = env.log();
    assert_eq!(log.get("Episode_Termination/motion_clip_end"), Some(2.0));
    for (name, limit) in [
        ("anchor_pos", 1e-5),
        ("anchor_rot", 1e-5),
        ("body_pos", 1e-5),
        ("body_rot", 1e-5),
        ("joint_pos", 1e-5),
        ("joint_vel", 1e-5),
        ("anchor_lin_vel", 1e-2),
        ("body_ang_vel", 1e-2),
    ] {
        let error = log.get(&format!("Metrics/motion/error_{name}")).unwrap();
        assert!(error < limit, "{name}: {error}");
    }
    assert_eq!(frames(&mut env), [0; 2], "the next episode begins at the start");
}

#[test]
fn nothing_ends_on_the_first_step_after_a_reset() {
    // Adapted from a report about mjlab (#761): commands that are not computed at resets end tracking episodes at once.
    let mut env = builder(64).build().unwrap();
    env.reset().unwrap();
    let placed = frames(&mut env);
    env.step(&[0.0; 64 * JOINTS]).unwrap();
    assert_eq!(env.terminated().iter().filter(|&&ended| ended).count(), 0);
    for (truncated, frame) in env.truncated().iter().zip(&placed) {
        assert_eq!(*truncated, *frame == FRAMES - 1);
    }
}

#[test]
fn without_truncation_a_clips_end_puts_the_robot_on_another_frame() {
    let changes = "commands.motion.truncate_on_clip_end = false\nterminations.motion_clip_end.enabled = false\n\
                   episode_length = 1000\ncommands.motion.sampling = { kind = \"uniform\" }";
    let mut env = puppets(3, changes);
    env.reset().unwrap();
    let motion = motion();
    let mut jumps = 0;
    let mut before = frames(&mut env);
    for _ in 0..1000 {
        env.step(&[0.0; 3 * JOINTS]).unwrap();
        let now = frames(&mut env);
        let qpos = env.qpos().to_vec();
        for (row, (before, now)) in before.iter().zip(&now).enumerate() {
            if *before < FRAMES - 1 {
                assert_eq!(*now, before + 1);
            } else {
                jumps += 1;
                // The robot is where the frame has it, within the noise of an episode's beginning.
                let (placed, height) = (&qpos[row * 36..][..3], state(&motion, *now).0[2]);
                assert!((placed[2] - height).abs() <= 0.01 + 1e-6, "{} m, not {height} m", placed[2]);
            }
        }
        assert_eq!((env.terminated(), env.truncated()), (&[false; 3][..], &[false; 3][..]));
        before = now;
    }
    assert!(jumps >= 3, "{jumps} clip ends");
}
