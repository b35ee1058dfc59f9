//! What a reset draws, and what it leaves alone.

use glam::{DQuat, DVec3};
use manege_components::rotation;

use super::{FRAMES, JOINTS, NQ, NV, builder, frames, motion, state, task_state};

/// Asserts that many uniform draws lie within `±limit`, reach almost to both ends and have a mean of about 0.
#[track_caller]
fn assert_symmetric(what: &str, values: &[f64], limit: f64) {
    let count = values.len() as f64;
    let (least, greatest) = values.iter().fold((0.0f64, 0.0f64), |(a, b), &value| (a.min(value), b.max(value)));
    assert!(least >= -limit - 1e-5 && greatest <= limit + 1e-5, "{what}: {least} to {greatest}");
    let gap = 40.0 * limit / count;
    assert!(least < gap - limit && greatest > limit - gap, "{what}: only {least} to {greatest}");
    let mean = values.iter().sum::<f64>() / count;
    assert!(mean.abs() < 5.0 * limit / (3.0 * count).sqrt(), "{what}: mean {mean}");
}

#[test]
fn episodes_begin_on_the_motion_with_the_noise_of_the_task() {
    const ROWS: usize = 2000;
    let mut env = builder(ROWS).seed(3).build().unwrap();
    env.reset().unwrap();
    let frames = frames(&mut env);
    assert!(frames.iter().all(|&frame| frame < FRAMES));
    let motion = motion();
    let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
    let mut noise = vec![Vec::new(); 12];
    let mut joints = Vec::new();
    let info = env.model_info();
    let ranges: Vec<[f64; 2]> = info.joints.iter().map(|joint| joint.range.unwrap()).collect();
    for (row, &frame) in frames.iter().enumerate() {
        let (wanted, speeds) = state(&motion, frame);
        let (found, moving) = (&qpos[row * NQ..][..NQ], &qvel[row * NV..][..NV]);
        let [orientation, reference] = [found, &wanted[..]].map(|q| rotation::from_wxyz(&q[3..7]));
        // The noise turns the motion's root in the world: q = Rz(yaw) Ry(pitch) Rx(roll) q_motion.
        let turn: DQuat = orientation * reference.inverse();
        let m = glam::DMat3::from_quat(turn);
        let turns = [m.y_axis.z.atan2(m.z_axis.z), -m.x_axis.z.asin(), m.x_axis.y.atan2(m.x_axis.x)];
        let world = |speeds: &[f64], orientation: DQuat| orientation * DVec3::from_slice(&speeds[3..6]);
        let spin = world(moving, orientation) - world(&speeds, reference);
        for i in 0..3 {
            noise[i].push(found[i] - wanted[i]);
            noise[3 + i].push(turns[i]);
            noise[6 + i].push(moving[i] - speeds[i]);
            noise[9 + i].push(spin[i]);
        }
        for joint in 0..JOINTS {
            let (found, wanted, [low, high]) = (found[7 + joint], wanted[7 + joint], ranges[joint]);
            assert!((low..=high).contains(&found), "joint {joint} is beyond its range");
            if wanted - 0.1 > low && wanted + 0.1 < high {
                joints.push(found - wanted);
            }
            assert_eq!(moving[6 + joint], speeds[6 + joint], "joint velocities have no noise");
        }
    }
    let limits = [0.05, 0.05, 0.01, 0.1, 0.1, 0.2, 0.5, 0.5, 0.2, 0.52, 0.52, 0.78];
    for (i, (values, limit)) in noise.iter().zip(limits).enumerate() {
        assert_symmetric(&format!("noise {i}"), values, limit);
    }
    assert_symmetric("joints", &joints, 0.1);
}

#[test]
fn without_randomization_robots_begin_exactly_on_the_motion() {
    let mut env = builder(50).randomization(false).build().unwrap();
    env.reset().unwrap();
    let frames = frames(&mut env);
    assert!(frames.iter().any(|&frame| frame != frames[0]), "frames are drawn as ever");
    let motion = motion();
    let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
    for (row, &frame) in frames.iter().enumerate() {
        let (wanted, speeds) = state(&motion, frame);
        let found = qpos[row * NQ..].iter().zip(wanted).chain(qvel[row * NV..].iter().zip(speeds));
        for (found, wanted) in found {
            assert!((found - wanted).abs() < 1e-6, "row {row}: {found} should be {wanted}");
        }
    }
}

#[test]
fn a_partial_reset_leaves_the_motion_of_other_rows_alone() {
    // Adapted from a report about mjlab (#1138): partial resets advanced the motion of every row.
    let mut env = builder(4).seed(9).build().unwrap();
    let mut twin = builder(4).seed(9).build().unwrap();
    env.reset().unwrap();
    twin.reset().unwrap();
    for step in 0..30 {
        env.reset_rows(&[0]).unwrap();
        let actions: Vec<f32> = (0..4 * JOINTS).map(|i| (0.1 * super::scatter(997 * step + i)) as f32).collect();
        env.step(&actions).unwrap();
        twin.step(&actions).unwrap();
        if twin.terminated()[1..].iter().chain(&twin.truncated()[1..]).any(|&ended| ended) {
            break;
        }
        assert_eq!(frames(&mut env)[1..], frames(&mut twin)[1..], "step {step}");
        for group in 0..2 {
            let width = env.spec().groups[group].width;
            assert_eq!(env.observation(group)[width..], twin.observation(group)[width..], "step {step}");
        }
        assert_eq!(env.rewards()[1..], twin.rewards()[1..]);
        let alignment = |env: &mut manege::Environment| task_state(env, "motion_alignment")[1..].to_vec();
        assert_eq!(alignment(&mut env), alignment(&mut twin));
    }
}

#[test]
fn failures_draw_episodes_to_where_they_happen() {
    let learn = "commands.motion.sampling = { kind = \"adaptive\", uniform_ratio = 0.1, alpha = 0.5, kernel_size = 1, kernel_lambda = 0.8 }";
    let mut env = builder(64).config(learn.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    let mut failed = [0.0; 9];
    for step in 0..60 {
        let before = frames(&mut env);
        let actions: Vec<f32> = (0..64 * JOINTS).map(|i| super::scatter(7919 * step + i) as f32).collect();
        env.step(&actions).unwrap();
        let mut counts = [0.0; 9];
        for (terminated, frame) in env.terminated().iter().zip(&before) {
            if *terminated {
                counts[(frame * 9 / FRAMES).min(8)] += 1.0;
            }
        }
        if counts.iter().any(|&count| count > 0.0) {
            for (mean, count) in failed.iter_mut().zip(counts) {
                *mean = 0.5 * count + 0.5 * *mean;
            }
            let weights: Vec<f64> = failed.iter().map(|mean| mean + 0.1 / 9.0).collect();
            let sum: f64 = weights.iter().sum();
            let likeliest = weights.iter().fold(0.0f64, |best, &weight| best.max(weight)) / sum;
            let logged = env.log().get("Metrics/motion/sampling_top1_prob").unwrap();
            assert!((logged - likeliest).abs() < 1e-5, "step {step}: {logged} should be {likeliest}");
        }
    }
    assert!(failed.iter().any(|&mean| mean > 0.5), "robots fail");
}
