//! Commands set from outside.

use manege_components::Command;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::command::{
    CommandHandle, CommandManager, CommandOptions, CommandOverrideError, Rows, UniformPoseCommand,
    UniformVelocityCommand, override_command, release_command,
};
use manege_systems::runtime::RuntimeOptions;
use manege_systems::snapshot;

use crate::env::{Env, options};
use crate::terms::config_without_accidents;

const STICK: [f32; 3] = [7.0, -8.0, 9.0];

/// Two commands; the velocity has modes that change it in every control step, and is drawn again every 3 to 10.
fn config() -> EnvironmentConfig {
    let mut config = config_without_accidents();
    let twist = UniformVelocityCommand {
        lin_vel_x: [-1.0, 1.0],
        lin_vel_y: [-1.0, 1.0],
        ang_vel_z: [-1.0, 1.0],
        rel_heading: 0.8,
        rel_world: 0.8,
        rel_standing: 0.2,
        ..UniformVelocityCommand::default()
    };
    let pose = UniformPoseCommand {
        body: "left".to_owned(),
        pos_x: [0.1, 0.2],
        pos_y: [0.1, 0.2],
        pos_z: [0.1, 0.2],
        roll: [0.0, 0.5],
        pitch: [0.0, 0.5],
        yaw: [0.0, 0.5],
    };
    let twist = Entry::new(CommandOptions { enabled: true, resampling_time: [0.06, 0.2] }, twist);
    let pose = Entry::new(CommandOptions { enabled: true, resampling_time: [0.1, 0.3] }, pose);
    config.commands = [("twist".into(), twist), ("pose".into(), pose)].into();
    config
}

fn handle(env: &Env, name: &str) -> CommandHandle {
    env.world.resource::<CommandManager>().handle(name).expect("a command")
}

fn set(env: &mut Env, name: &str, rows: Rows<'_>, values: &[f32]) {
    let handle = handle(env, name);
    override_command(&mut env.world, handle, rows, values).expect("a command that can be set");
}

fn release(env: &mut Env, name: &str, rows: Rows<'_>) {
    let handle = handle(env, name);
    release_command(&mut env.world, handle, rows).expect("rows");
}

fn command(env: &Env, row: usize) -> &Command {
    env.get(row)
}

fn twist(env: &Env, row: usize) -> [f32; 3] {
    [0, 1, 2].map(|i| command(env, row).values[i])
}

#[test]
fn an_override_is_seen_in_the_next_step_and_stays_over_draws_and_episodes() {
    let (mut env, mut free) = (Env::started(&config(), options(4)), Env::started(&config(), options(4)));
    for _ in 0..5 {
        env.step();
        free.step();
    }
    set(&mut env, "twist", Rows::These(&[2, 0]), &STICK);
    for step in 0..60 {
        let ending: &[usize] = if step % 20 == 13 { &[0, 1] } else { &[] };
        env.step_ending(ending);
        free.step_ending(ending);
        if step == 30 {
            env.reset_rows(&[2, 3]);
            free.reset_rows(&[2, 3]);
        }
        for row in [0, 2] {
            assert_eq!(twist(&env, row), STICK, "row {row}, step {step}");
            for group in 0..2 {
                assert_eq!(env.term(group, row, "command"), STICK, "row {row}, step {step}");
            }
            if ending.contains(&row) {
                // The last observation of the episode ends with the command.
                let seen = env.final_observation(1, row);
                assert_eq!(seen[seen.len() - 3..], STICK);
            }
        }
        for row in 0..4 {
            let (ours, theirs) = (command(&env, row), command(&free, row));
            assert_eq!(ours.values[3..], theirs.values[3..], "the other command of row {row}, step {step}");
            assert_eq!((&ours.time_left, &ours.resamplings), (&theirs.time_left, &theirs.resamplings));
        }
        assert_eq!((command(&env, 1), command(&env, 3)), (command(&free, 1), command(&free, 3)), "step {step}");
    }
    // No policy looks at the command here, so the robots are where the others are, and what was hidden shows again.
    release(&mut env, "twist", Rows::These(&[0]));
    assert_eq!((twist(&env, 0), twist(&env, 2)), (twist(&free, 0), STICK));
    release(&mut env, "twist", Rows::All);
    for step in 0..30 {
        for row in 0..4 {
            assert_eq!(command(&env, row).values, command(&free, row).values, "row {row}, step {step}");
        }
        env.step();
        free.step();
    }
}

#[test]
fn every_row_may_get_values_of_its_own_and_new_ones_replace_them() {
    let mut env = Env::started(&config(), options(3));
    let drawn: Vec<[f32; 3]> = (0..3).map(|row| twist(&env, row)).collect();
    set(&mut env, "twist", Rows::All, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert_eq!([0, 1, 2].map(|row| twist(&env, row)), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]);
    set(&mut env, "twist", Rows::These(&[2, 0]), &[-1.0, -1.0, -1.0, -2.0, -2.0, -2.0]);
    assert_eq!([0, 1, 2].map(|row| twist(&env, row)), [[-2.0; 3], [4.0, 5.0, 6.0], [-1.0; 3]]);
    // Both commands may be set, and one be given back without the other.
    set(&mut env, "pose", Rows::These(&[1]), &[0.5; 7]);
    release(&mut env, "twist", Rows::All);
    assert_eq!([0, 1, 2].map(|row| twist(&env, row)).to_vec(), drawn);
    env.step();
    assert_eq!(command(&env, 1).values[3..], [0.5; 7]);
    release(&mut env, "pose", Rows::These(&[]));
    assert_eq!(command(&env, 1).values[3..], [0.5; 7]);
    release(&mut env, "pose", Rows::All);
    let free = {
        let mut free = Env::started(&config(), options(3));
        free.step();
        free
    };
    // All but the errors, which are those against what was asked for.
    let all = |env: &Env| -> Vec<_> {
        let rows = (0..3).map(|row| command(env, row).clone());
        rows.map(|row| (row.values, row.scratch, row.time_left, row.resamplings, row.overridden)).collect()
    };
    assert_eq!(all(&env), all(&free));
}

#[test]
fn errors_count_against_what_is_set() {
    let mut env = Env::started(&config(), options(1));
    // The root is nowhere near as fast, so the error is 1000 m/s times one of 50,000 control steps, to 1 %.
    set(&mut env, "twist", Rows::All, &[1000.0, 0.0, 0.0]);
    env.step();
    let error = command(&env, 0).metrics[0];
    assert!((error - 0.02).abs() < 2e-4, "{error}");
}

#[test]
fn an_override_is_part_of_a_snapshot() {
    let mut env = Env::started(&config(), options(3));
    let free = snapshot::save(&env.world);
    set(&mut env, "twist", Rows::These(&[1]), &STICK);
    (0..7).for_each(|_| env.step());
    let held = snapshot::save(&env.world);
    let mut other = Env::new(&config(), options(3));
    snapshot::load(&mut other.world, &held).expect("a state that fits");
    other.steps = env.steps;
    for step in 0..30 {
        assert_eq!(env.snapshots(), other.snapshots(), "step {step}");
        assert_eq!(twist(&other, 1), STICK);
        env.step();
        other.step();
        if step == 15 {
            release(&mut env, "twist", Rows::All);
            release(&mut other, "twist", Rows::All);
            assert_ne!(twist(&other, 1), STICK);
            set(&mut env, "twist", Rows::These(&[1]), &STICK);
            set(&mut other, "twist", Rows::These(&[1]), &STICK);
        }
    }
    // A state without one ends it.
    snapshot::load(&mut env.world, &free).expect("its own state");
    assert_eq!(twist(&env, 1), twist(&Env::started(&config(), options(3)), 1));
    assert!((0..3).all(|row| command(&env, row).overridden.is_none()));
}

#[test]
fn overrides_do_not_depend_on_the_number_of_threads() {
    // Enough rows for the managers' loops to be split.
    const MANY: usize = 2100;
    let run = |threads| {
        let mut env = Env::started(&config(), RuntimeOptions { threads, ..options(MANY) });
        let odd: Vec<u32> = (0..MANY as u32).filter(|row| row % 2 == 1).collect();
        set(&mut env, "twist", Rows::These(&odd), &STICK);
        (0..6).for_each(|_| env.step());
        release(&mut env, "twist", Rows::These(&odd[..odd.len() / 2]));
        (0..2).for_each(|_| env.step());
        (0..MANY).map(|row| command(&env, row).clone()).collect::<Vec<_>>()
    };
    let expected = run(1);
    assert!(expected.iter().filter(|row| row.values[..3] == STICK).count() == MANY / 4);
    assert!(run(2) == expected);
}

#[test]
fn a_command_that_cannot_be_set_changes_nothing() {
    let mut env = Env::started(&config(), options(3));
    let twist = handle(&env, "twist");
    set(&mut env, "twist", Rows::These(&[1]), &STICK);
    let before = env.snapshots();
    let mut refused = |rows, values: &[f32]| {
        let error = override_command(&mut env.world, twist, rows, values).unwrap_err();
        assert_eq!(env.snapshots(), before, "{error}");
        error
    };
    let error = refused(Rows::All, &[1.0; 4]);
    assert!(matches!(error, CommandOverrideError::Width { width: 3, rows: 3, actual: 4, .. }), "{error:?}");
    assert!(error.to_string().contains("`twist`") && error.to_string().contains('9'), "{error}");
    refused(Rows::All, &[]);
    refused(Rows::These(&[0, 1]), &[1.0; 9]);
    assert_eq!(refused(Rows::These(&[0, 3]), &STICK), CommandOverrideError::Row { row: 3, rows: 3 });
    assert_eq!(refused(Rows::These(&[0, 0]), &STICK), CommandOverrideError::Row { row: 0, rows: 3 });
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = refused(Rows::All, &[1.0, 2.0, bad]);
        assert!(matches!(error, CommandOverrideError::NotFinite { index: 2, .. }), "{error:?}");
    }
    let error = release_command(&mut env.world, twist, Rows::These(&[1, 9])).unwrap_err();
    assert_eq!(error, CommandOverrideError::Row { row: 9, rows: 3 });
    assert_eq!(env.snapshots(), before);

    let error = env.world.resource::<CommandManager>().handle("twits").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("did you mean `twist`") && text.contains("available: twist, pose"), "{text}");

    // A handle of an environment with other commands.
    let pose = handle(&env, "pose");
    let mut other = config();
    other.commands.shift_remove("pose");
    let mut other = Env::started(&other, options(3));
    let error = override_command(&mut other.world, pose, Rows::All, &[0.0; 7]).unwrap_err();
    assert_eq!(error, CommandOverrideError::Handle { term: 1, width: 7 });
    assert!(release_command(&mut other.world, pose, Rows::All).is_err());
}
