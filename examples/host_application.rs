//! An application with a world of its own: `cargo run --release --example host_application`
//!
//! It puts the rows into its world, gives them a component of its own, and has systems of its own between the runtime's:
//! one that follows how far every robot has walked, and one that restarts robots that went far enough.

use manege::prelude::*;
use manege::systems::handles::StateSlice;
use manege::systems::managers::action::ActionInput;
use manege::systems::physics::StateLayout;
use manege::systems::runtime::{self, RuntimeOptions};

/// How far a robot has walked in its episode, m.
#[derive(Component, Default)]
struct Walked {
    distance: f64,
    last: Option<[f64; 2]>,
}

/// What the application is about: laps, by robot.
#[derive(Resource, Default)]
struct Laps(u32);

/// Length of a lap, m.
const LAP: f64 = 0.05;

fn follow(layout: Res<StateLayout>, mut rows: Query<(&RobotState, &mut Walked)>) {
    let position: StateSlice = layout.qpos.part(0, 2);
    for (state, mut walked) in &mut rows {
        let here = &state.values[position.range()];
        if let Some(last) = walked.last {
            walked.distance += (here[0] - last[0]).hypot(here[1] - last[1]);
        }
        walked.last = Some([here[0], here[1]]);
    }
}

/// Asks for a reset; it happens within the same control step, and only for these rows.
fn finish_laps(mut commands: Commands, mut laps: ResMut<Laps>, rows: Query<(Entity, &Walked)>) {
    for (entity, _) in rows.iter().filter(|(_, walked)| walked.distance > LAP) {
        commands.entity(entity).insert(ResetRequested);
        laps.0 += 1;
    }
}

fn start_anew(mut rows: Query<&mut Walked, With<ResetRequested>>) {
    rows.iter_mut().for_each(|mut walked| *walked = Walked::default());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (task, preset) = manege::tasks::find("go2_joystick_flat")?;
    let config = (task.config)(preset.name);
    let model = task.load(&config.physics)?;

    let mut world = World::new();
    world.init_resource::<Laps>();
    runtime::install(&mut world, &config, model, RuntimeOptions::new(16), |_, step, reset| {
        step.add_systems((follow, finish_laps).chain().after(StepSystems::State).before(StepSystems::Task));
        reset.add_systems(start_anew.in_set(ResetSystems::Task));
    })?;
    let rows: Vec<Entity> = world.query_filtered::<Entity, With<Row>>().iter(&world).collect();
    for row in rows {
        world.entity_mut(row).insert(Walked::default());
    }

    runtime::reset_all(&mut world)?;
    for _ in 0..100 {
        world.resource_mut::<ActionInput>().values.fill(0.0);
        runtime::step(&mut world)?;
    }
    let laps = world.resource::<Laps>().0;
    println!("{laps} laps of {LAP} m in 2 s");
    assert!(laps > 16, "robots that start with a push get somewhere");
    Ok(())
}
