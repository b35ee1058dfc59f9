//! `go2_joystick_flat` against its specification, and against MuJoCo's own Python package.

use std::path::Path;
use std::process::Command;

use manege::environment::EnvironmentBuilder;
use manege::npz::NpzWriter;
use manege::{Environment, environment::InitialState};
use manege_components::{Row, StreamId, Streams};
use manege_systems::backend::ModelField;
use manege_systems::config::parse_assignment;
use manege_systems::staging::Staging;

const HOME: [f64; 12] = [0.0, 0.8, -1.5, 0.0, 0.8, -1.5, 0.0, 1.0, -1.5, 0.0, 1.0, -1.5];

fn builder(preset: &str, rows: usize) -> EnvironmentBuilder {
    Environment::builder(&format!("go2_joystick_flat:{preset}")).rows(rows).threads(1).seed(4)
}

fn started(builder: EnvironmentBuilder) -> Environment {
    let mut env = builder.build().expect("the task builds");
    env.reset().expect("the task resets");
    env
}

fn set(builder: EnvironmentBuilder, assignment: &str) -> EnvironmentBuilder {
    builder.config(parse_assignment(assignment).expect("an assignment"))
}

/// Columns of a term of the policy's observation, for one row.
fn observed<'a>(env: &'a Environment, group: usize, term: &str, row: usize) -> &'a [f32] {
    let group_spec = &env.spec().groups[group];
    let columns = group_spec.terms.iter().find(|known| known.name == term).expect(term).columns.clone();
    &env.observation(group)[row * group_spec.width..][columns]
}

fn reward_of(env: &Environment, term: &str, row: usize) -> f32 {
    let terms = &env.spec().reward_terms;
    let place = terms.iter().position(|known| known == term).expect(term);
    env.reward_terms()[row * terms.len() + place]
}

fn write(path: &Path, arrays: &[(&str, &[usize], Vec<f64>)]) {
    let mut file = NpzWriter::new(std::fs::File::create(path).expect("a file"));
    for (name, shape, values) in arrays {
        file.write(name, shape, values).expect("written");
    }
    file.finish().expect("written");
}

/// Every observation and reward term, the terminations and the trajectory itself, recomputed in Python from states that
/// stand, tilt, fall, touch the ground and do not.
fn terms_agree_with_python(preset: &str) {
    let Some(python) = std::env::var_os("MANEGE_ORACLE_PYTHON") else {
        println!("skipped: no Python with mujoco (MANEGE_ORACLE_PYTHON is not set)");
        return;
    };
    let (rows, steps) = (24, 12);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let mut draws = Streams::for_row(11, Row(0), 0).draws(StreamId::new("states"), 0);
    let mut qpos = Vec::new();
    for row in 0..rows {
        // Tilted in six steps about a horizontal axis; the last row lies on its side.
        let angle: f64 = if row == rows - 1 { 1.6 } else { (row % 6) as f64 * 0.12 };
        let (sin, cos) = (angle / 2.0).sin_cos();
        let height = if row < rows / 2 { 0.3 } else { 0.6 };
        qpos.extend([draws.uniform(-1.0, 1.0), draws.uniform(-1.0, 1.0), height, cos, 0.8 * sin, 0.6 * sin, 0.0]);
        qpos.extend(HOME.map(|home| home + draws.normal(0.0, 0.1)));
    }
    let mut many = |count: usize, deviation: f64| (0..count).map(|_| draws.normal(0.0, deviation)).collect::<Vec<_>>();
    let single = |values: Vec<f64>| values.into_iter().map(|value| f64::from(value as f32)).collect::<Vec<_>>();
    let initial = [
        ("qpos", &[rows, 19][..], qpos),
        ("qvel", &[rows, 18], many(rows * 18, 0.5)),
        ("twist", &[rows, 3], single(many(rows * 3, 0.6))),
        ("gait_phase", &[rows, 1], single((0..rows).map(|row| row as f64 / rows as f64).collect())),
    ];
    write(&file("initial.npz"), &initial);
    write(&file("actions.npz"), &[("actions", &[steps, rows, 12], single(many(steps * rows * 12, 1.0)))]);
    let manege = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_manege")).args(arguments).current_dir(folder.path()).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let task = format!("go2_joystick_flat:{preset}");
    manege(&["describe", &task, "--save-model", "model.mjb"]);
    let clean = ["--no-randomization", "--no-corruption"];
    let files = ["--actions", "actions.npz", "--initial", "initial.npz", "--dump", "dump.npz"];
    manege(&[&["replay", &task][..], &files, &clean].concat());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/go2_joystick_flat.py");
    let arguments = ["model.mjb", "dump.npz", "initial.npz", "actions.npz", preset];
    let output = Command::new(python).arg(script).args(arguments).current_dir(folder.path()).output().expect("Python");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
}

#[test]
fn every_term_of_base_agrees_with_python() {
    terms_agree_with_python("base");
}

#[test]
fn every_term_of_flashsac_agrees_with_python() {
    terms_agree_with_python("flashsac");
}

#[test]
fn rewards_of_a_known_state_are_those_worked_out_by_hand() {
    // One physics step of almost no time from rest in the air: the state after it is the state before it.
    let builder = set(builder("base", 1).randomization(false), "physics.timestep=1e-9");
    let mut env = started(set(builder, "physics.control_period=1e-9"));
    let mut qpos = vec![0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0];
    qpos.extend(HOME);
    qpos[8] += 0.25;
    env.set_initial(&InitialState {
        qpos: Some(qpos),
        qvel: Some(vec![0.0; 18]),
        commands: vec![("twist".to_owned(), vec![0.3, -0.4, 0.5])],
        task_state: vec![("gait_phase".to_owned(), vec![0.1])],
    })
    .expect("a state");
    let mut action = [0.0; 12];
    action[3] = 2.0;
    env.step(&action).expect("a step");
    let expected = [
        ("tracking_lin_vel", (-0.25f64 / 0.25).exp()),
        ("tracking_ang_vel", 0.2 * (-0.25f64 / 0.25).exp()),
        ("lin_vel_z", 0.0),
        ("ang_vel_xy", 0.0),
        ("base_height", -100.0 * 0.2 * 0.2),
        ("action_rate", -0.005 * 4.0),
        ("similar_to_default", -0.1 * 0.25),
        // In the air with phases 0.1, 0.6, 0.6, 0.1: the two feet in swing are as they should be.
        ("contact", 0.24 * 0.5),
    ];
    for (term, value) in expected {
        let actual = f64::from(reward_of(&env, term, 0));
        assert!((actual - value).abs() < 1e-5, "{term} is {actual}, not {value}");
    }
}

#[test]
fn each_action_drives_the_actuator_of_its_joint() {
    // Reports: mujoco_menagerie 148, mjlab PR 352 (joints and actuators in different orders).
    const CONTROL: [usize; 12] = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8];
    for (preset, scale) in [("base", 0.25), ("flashsac", 0.4)] {
        let mut env = started(builder(preset, 1));
        for joint in 0..12 {
            let mut action = [0.0; 12];
            action[joint] = 1.0;
            env.step(&action).expect("a step");
            for other in 0..12 {
                let target = HOME[other] + if other == joint { scale } else { 0.0 };
                let control = env.controls()[CONTROL[other]];
                assert!((control - target).abs() < 1e-6, "{preset}: joint {other} gets {control}, not {target}");
            }
            let (name, actuator) = (&env.spec().joints[joint], &env.spec().actuators[CONTROL[joint]]);
            assert_eq!(name, &format!("{actuator}_joint"));
        }
    }
}

#[test]
fn resets_draw_from_the_specified_ranges() {
    let rows = 400;
    let mut env = started(builder("base", rows));
    let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
    let mut yaws = Vec::new();
    for row in 0..rows {
        let (q, v) = (&qpos[row * 19..][..19], &qvel[row * 18..][..18]);
        assert!(q[0].abs() <= 0.5 && q[1].abs() <= 0.5 && q[2] == 0.3, "{q:?}");
        assert!(q[4] == 0.0 && q[5] == 0.0, "only the heading is drawn");
        assert!(v[..6].iter().all(|v| v.abs() <= 0.5 * 2f64.sqrt()) && v[2].abs() <= 0.5 && v[6..] == [0.0; 12]);
        assert_eq!(q[7..], HOME);
        yaws.push(2.0 * q[6].atan2(q[3]));
        let command = &env.commands()[row * 3..][..3];
        assert!((-0.6..1.0).contains(&command[0]) && command[1].abs() <= 0.4 && command[2].abs() <= 0.8);
    }
    let spread = yaws.iter().map(|yaw| yaw.sin().powi(2)).sum::<f64>() / rows as f64;
    assert!((spread - 0.5).abs() < 0.1, "headings are all around: {spread}");
    let mean_speed = qvel.iter().step_by(18).map(|v| v.abs()).sum::<f64>() / rows as f64;
    assert!((mean_speed - 0.25).abs() < 0.03, "{mean_speed}");
}

fn field(env: &Environment, field: ModelField, row: u32) -> Vec<f64> {
    env.world().resource::<Staging>().committed(field, Row(row)).expect("the task varies it").to_vec()
}

#[test]
fn models_vary_from_their_compiled_values_however_often_rows_are_reset() {
    let mut env = started(builder("flashsac", 3));
    let mut masses = Vec::new();
    for _ in 0..300 {
        env.reset().expect("a reset");
        for row in 0..3 {
            assert!(field(&env, ModelField::ActuatorKp, row).iter().all(|kp| (31.5..38.5).contains(kp)));
            assert!(field(&env, ModelField::ActuatorKd, row).iter().all(|kd| (0.45..0.55).contains(kd)));
            let mass = field(&env, ModelField::BodyMass, row)[1];
            assert!((5.421..8.421).contains(&mass), "{mass}");
            masses.push(mass);
            let com = field(&env, ModelField::BodyCom, row);
            assert!((com[3] - 0.021112).abs() <= 0.05 && com[4] == 0.0 && com[5] == -0.005366, "{com:?}");
            assert_eq!(field(&env, ModelField::Gravity, row), [0.0, 0.0, -9.81]);
        }
    }
    let mean = masses.iter().sum::<f64>() / masses.len() as f64;
    assert!((mean - 6.921).abs() < 0.12, "nothing adds up over resets: {mean}");
    assert!(masses.windows(2).all(|pair| pair[0] != pair[1]), "every row and reset has its own");
}

#[test]
fn without_randomization_resets_are_at_the_centre_and_models_as_compiled() {
    let mut env = started(builder("flashsac", 2).randomization(false));
    let home = [&[0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0][..], &HOME].concat();
    assert_eq!(env.qpos(), [home.clone(), home].concat());
    assert_eq!(env.qvel(), [0.0; 36]);
    assert!(env.model_info().actuators.iter().all(|actuator| actuator.kp == 35.0 && actuator.kd == 0.0));
    let names: Vec<_> =
        env.world().resource::<manege_systems::managers::event::EventManager>().names().map(str::to_owned).collect();
    assert_eq!(names, ["reset_scene_to_default", "reset_root_state_uniform"]);
}

#[test]
fn pushes_come_for_all_rows_at_once_and_are_seen_in_the_same_step() {
    let config = builder("flashsac", 1).resolved_config().expect("a configuration").to_table().expect("a table");
    assert_eq!(config["events"]["push"]["mode"]["seconds"].to_string(), "[15.0, 15.0]");
    // A push every 5 control steps; episodes of 3 do not restart the timer.
    let build = |push: bool| {
        let builder = set(builder("flashsac", 4), "events.push.mode.seconds=[0.1, 0.1]");
        let builder = set(set(builder, "episode_length=0.06"), &format!("events.push.enabled={push}"));
        started(builder.corruption(false))
    };
    let (mut pushed, mut twin) = (build(true), build(false));
    for step in 1..=10 {
        pushed.step(&[0.0; 48]).expect("a step");
        twin.step(&[0.0; 48]).expect("a step");
        let differs = (0..4).map(|row| {
            let (a, b) = (observed(&pushed, 1, "base_lin_vel", row), observed(&twin, 1, "base_lin_vel", row));
            a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-3)
        });
        let differing = differs.filter(|differs| *differs).count();
        // The push of step 5 lasts until the reset of step 6; step 10 brings the next.
        let expected = if step == 5 || step == 10 { 4 } else { 0 };
        assert_eq!(differing, expected, "step {step}");
        if step == 5 {
            for (after, before) in pushed.qvel().chunks(18).zip(twin.qvel().chunks(18)) {
                assert!((0..2).all(|i| (after[i] - before[i]).abs() <= 1.0) && (after[2] - before[2]).abs() <= 0.5);
                assert!((3..18).all(|i| (after[i] - before[i]).abs() < 1e-9), "no turn, no joint");
            }
        }
    }
}

#[test]
fn an_episode_ends_after_twenty_seconds_as_a_truncation() {
    let config = builder("base", 1).resolved_config().expect("a configuration");
    assert_eq!((config.episode_length / config.physics.control_period).round(), 1000.0);
    let mut env = started(set(builder("base", 3), "episode_length=0.2"));
    for step in 1..=30 {
        env.step(&[0.0; 36]).expect("a step");
        assert_eq!(env.truncated(), [step % 10 == 0; 3], "step {step}");
        assert_eq!(env.terminated(), [false; 3]);
    }
}

#[test]
fn the_gait_is_shared_by_all_rows_and_not_reset() {
    let mut env = started(set(builder("base", 2), "episode_length=0.14"));
    for step in 0..60 {
        let phase = (f64::from(step) * 0.04) % 1.0;
        for row in 0..2 {
            for (seen, offset) in observed(&env, 0, "gait_phase", row).iter().zip([0.0, 0.5, 0.5, 0.0]) {
                let error = (f64::from(*seen) - phase - offset + 0.5).rem_euclid(1.0) - 0.5;
                assert!(error.abs() < 1e-5, "step {step}: {seen}");
            }
        }
        env.step(&[0.0; 24]).expect("a step");
    }
}

#[test]
fn noise_is_where_it_should_be_and_as_large() {
    let run = |preset: &str, corruption: bool| {
        let mut env = started(builder(preset, 64).corruption(corruption));
        env.step(&[0.2; 768]).expect("a step");
        env
    };
    let (noisy, clean) = (run("flashsac", true), run("flashsac", false));
    for group in 0..2 {
        for term in &noisy.spec().groups[group].terms {
            let limit = match term.name.as_str() {
                "joint_pos" => 0.01,
                "joint_vel" => 0.1,
                _ => 0.0,
            };
            let mut largest = 0f32;
            for row in 0..64 {
                let pair =
                    observed(&noisy, group, &term.name, row).iter().zip(observed(&clean, group, &term.name, row));
                largest = pair.map(|(a, b)| (a - b).abs()).fold(largest, f32::max);
            }
            assert!(largest <= limit * 1.0001 && largest >= limit * 0.95, "{}: {largest}", term.name);
        }
    }
    assert_ne!(observed(&noisy, 0, "joint_pos", 0), observed(&noisy, 1, "joint_pos", 0), "each group has its own");
    let (base, clean) = (run("base", true), run("base", false));
    assert_eq!(base.observation(0), clean.observation(0));
}

#[test]
fn an_action_that_no_physics_survives_costs_its_row_the_episode_and_not_the_run() {
    for size in [1e12, 1e20, 3e38] {
        let mut env = Environment::builder("go2_joystick_flat").rows(3).threads(1).build().unwrap();
        env.reset().unwrap();
        let mut actions = [0.0; 36];
        actions[12 + 5] = size;
        // Squared, the change of the action is beyond single precision.
        env.step(&actions).unwrap();
        assert_eq!(env.diverged(), [false, true, false], "{size:e}");
        assert_eq!(env.terminated(), [false, true, false]);
        assert!(env.rewards().iter().all(|reward| reward.is_finite()), "{size:e}: {:?}", env.rewards());
        env.step(&[0.0; 36]).unwrap();
        assert_eq!(env.diverged(), [false; 3]);
    }
}
