//! Forces and torques that events hold on bodies, against the laws of motion: in free space, `Δv = F T / m` and
//! `Δω = τ T / I`.

use bevy_ecs::prelude::World;
use manege::components::RobotState;
use manege::systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
use manege::systems::config::{Entry, EnvironmentConfig, PhysicsConfig};
use manege::systems::managers::event::{EventMode, EventOptions, EventTerm};
use manege::systems::physics::StateLayout;
use manege::systems::runtime::{self, RuntimeOptions};
use manege::systems::snapshot;
use manege::systems::step::{AutoReset, RowEntities};
use manege::systems::tunable::Tunables;
use manege::tasks::terms::events::{ApplyExternalWrench, AxisRanges};

/// Two bodies in free space: one moves freely, about its centre of mass; the other, `off`, freely in a plane, with its joints
/// 1 cm beside its centre of mass.
const SPACE: &str = r#"<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="ball">
      <freejoint/>
      <inertial pos="0 0 0" mass="2" diaginertia="0.4 0.5 0.6"/>
    </body>
    <body name="off" pos="5 0 0">
      <joint type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 1 0"/>
      <joint type="hinge" axis="0 0 1"/>
      <inertial pos="0.01 0 0" mass="4" diaginertia="1 1 1"/>
    </body>
  </worldbody>
</mujoco>"#;

const MASS: f64 = 2.0;
const INERTIA: [f64; 3] = [0.4, 0.5, 0.6];
const CONTROL_PERIOD: f64 = 0.02;

type Event = Entry<EventOptions, dyn EventTerm>;

struct Env(World);

fn options(rows: usize) -> RuntimeOptions {
    RuntimeOptions { seed: 3, auto_reset: AutoReset::Disabled, ..RuntimeOptions::new(rows) }
}

impl Env {
    fn try_new(events: &[Event], options: RuntimeOptions) -> Result<Self, manege::systems::build::BuildError> {
        let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.005, CONTROL_PERIOD), 1000.0);
        config.events = events.iter().enumerate().map(|(i, event)| (format!("kick_{i}"), event.clone())).collect();
        let model = MujocoBuilder::from_xml(SPACE, &PhysicsOptions::new(0.005)).expect("a valid model");
        let mut world = World::new();
        runtime::install(&mut world, &config, Box::new(model), options, |_, _, _| {})?;
        runtime::reset_all(&mut world).expect("a reset");
        Ok(Self(world))
    }

    fn new(events: &[Event], rows: usize) -> Self {
        Self::try_new(events, options(rows)).expect("valid events")
    }

    fn step(&mut self) {
        runtime::step(&mut self.0).expect("a step");
    }

    fn qvel(&self, row: usize) -> &[f64] {
        let entity = self.0.resource::<RowEntities>().0[row];
        &self.0.get::<RobotState>(entity).expect("a row").values[self.0.resource::<StateLayout>().qvel.range()]
    }

    /// Velocity along x.
    fn speed(&self, row: usize) -> f64 {
        self.qvel(row)[0]
    }
}

fn only(x: f64, y: f64, z: f64) -> AxisRanges {
    AxisRanges { x: [x, x], y: [y, y], z: [z, z] }
}

/// A force along x for so many seconds.
fn force(body: &str, newtons: f64, seconds: f64) -> ApplyExternalWrench {
    ApplyExternalWrench {
        body: body.to_owned(),
        force: only(newtons, 0.0, 0.0),
        torque: AxisRanges::ZERO,
        duration: [seconds, seconds],
    }
}

fn every(seconds: f32, term: ApplyExternalWrench) -> Event {
    Entry::new(EventOptions::interval(seconds, seconds), term)
}

#[track_caller]
fn assert_close(what: &str, actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-12 * expected.abs().max(1.0), "{what}: {actual} should be {expected}");
}

#[test]
fn a_force_moves_a_body_by_its_impulse_and_is_taken_away() {
    // Every 0.4 s, for 0.1 s: the event of step 20 acts in the steps 21 to 25.
    let mut env = Env::new(&[every(0.4, force("ball", 8.0, 0.1))], 2);
    let mut control_steps = 0;
    for step in 1..=90 {
        env.step();
        control_steps += i32::from(step > 20 && matches!(step % 20, 1..=5));
        for row in 0..2 {
            let expected = 8.0 * f64::from(control_steps) * CONTROL_PERIOD / MASS;
            assert_close(&format!("step {step}"), env.speed(row), expected);
            assert!(env.qvel(row)[1..].iter().all(|v| *v == 0.0), "{:?}", env.qvel(row));
        }
    }
    assert_eq!(control_steps, 4 * 5, "four triggers were seen whole");
}

#[test]
fn a_torque_turns_a_body() {
    for (axis, inertia) in INERTIA.into_iter().enumerate() {
        let mut torque = [0.0; 3];
        torque[axis] = 3.0;
        let term = ApplyExternalWrench {
            torque: only(torque[0], torque[1], torque[2]),
            force: AxisRanges::ZERO,
            ..force("ball", 0.0, 0.2)
        };
        let mut env = Env::new(&[Entry::new(EventOptions::reset(), term)], 1);
        for step in 1..=30 {
            env.step();
            let expected = 3.0 * f64::from(step.min(10)) * CONTROL_PERIOD / inertia;
            assert_close(&format!("axis {axis}, step {step}"), env.qvel(0)[3 + axis], expected);
        }
    }
}

#[test]
fn a_force_acts_at_the_centre_of_mass_in_the_world_frame() {
    // At the joints, 1 cm beside the centre of mass, the force would turn the body.
    let term = ApplyExternalWrench { force: only(0.0, 6.0, 0.0), torque: AxisRanges::ZERO, ..force("off", 0.0, 0.1) };
    let mut env = Env::new(&[Entry::new(EventOptions::reset(), term)], 1);
    for _ in 0..8 {
        env.step();
    }
    let qvel = env.qvel(0);
    assert_close("velocity", qvel[7], 6.0 * 0.1 / 4.0);
    assert!(qvel[8].abs() < 1e-12 && qvel[6].abs() < 1e-12, "it does not turn: {qvel:?}");
    assert!(qvel[..6].iter().all(|v| *v == 0.0), "the other body is left alone: {qvel:?}");

    // Turned by a torque about z meanwhile, the ball is still pushed along the world's x axis.
    let term = ApplyExternalWrench { torque: only(0.0, 0.0, 30.0), ..force("ball", 8.0, 0.5) };
    let mut env = Env::new(&[Entry::new(EventOptions::reset(), term)], 1);
    for _ in 0..25 {
        env.step();
    }
    assert_close("along x", env.qvel(0)[0], 8.0 * 0.5 / MASS);
    assert!(env.qvel(0)[1].abs() < 1e-12 && env.qvel(0)[5] > 20.0, "{:?}", env.qvel(0));
}

#[test]
fn a_reset_ends_a_force_on_its_row_only() {
    let mut env = Env::new(&[every(0.4, force("ball", 8.0, 0.2))], 2);
    for _ in 0..23 {
        env.step();
    }
    assert_close("before", env.speed(0), 8.0 * 3.0 * CONTROL_PERIOD / MASS);
    runtime::reset_rows(&mut env.0, &[0]).expect("a row");
    assert_eq!(env.speed(0), 0.0);
    for _ in 0..10 {
        env.step();
    }
    assert_eq!(env.speed(0), 0.0, "nothing acts any more, and the timer began anew");
    assert_close("the other row", env.speed(1), 8.0 * 0.2 / MASS);
    // The timer of the new episode fires 20 steps after the reset.
    for _ in 10..21 {
        env.step();
    }
    assert_close("the next trigger", env.speed(0), 8.0 * CONTROL_PERIOD / MASS);
}

#[test]
fn forces_of_several_terms_add_up_and_end_on_their_own() {
    let reset = EventOptions::reset;
    let mut env = Env::new(
        &[
            Entry::new(reset(), force("ball", 8.0, 0.1)),
            Entry::new(reset(), force("off", 2.0, 0.06)),
            Entry::new(reset(), force("ball", -3.0, 0.2)),
        ],
        1,
    );
    for step in 1..=20 {
        env.step();
        let impulse = |newtons: f64, steps: i32| newtons * f64::from(step.min(steps)) * CONTROL_PERIOD;
        assert_close("ball", env.qvel(0)[0], (impulse(8.0, 5) + impulse(-3.0, 10)) / MASS);
        assert_close("off", env.qvel(0)[6], impulse(2.0, 3) / 4.0);
    }
}

#[test]
fn two_terms_keep_their_own_timers() {
    // Report: IsaacLab PR 1750 (the timer of another term).
    let mut env = Env::new(&[every(0.1, force("ball", 8.0, 0.02)), every(0.14, force("off", 4.0, 0.02))], 1);
    let (mut fast, mut slow) = (0, 0);
    for step in 1..=80 {
        env.step();
        // An event is felt in the step after it.
        fast += i32::from(step > 1 && (step - 1) % 5 == 0);
        slow += i32::from(step > 1 && (step - 1) % 7 == 0);
        assert_close("fast", env.qvel(0)[0], 8.0 * f64::from(fast) * CONTROL_PERIOD / MASS);
        assert_close("slow", env.qvel(0)[6], 4.0 * f64::from(slow) * CONTROL_PERIOD / 4.0);
    }
    assert_eq!((fast, slow), (15, 11));
}

#[test]
fn a_new_trigger_takes_the_place_of_the_one_before() {
    // Every step, for ten steps: it is one force all the time, not ten at once.
    let mut env = Env::new(&[Entry::new(EventOptions::step(), force("ball", 8.0, 0.2))], 1);
    for step in 1..=30 {
        env.step();
        assert_close("velocity", env.speed(0), 8.0 * f64::from(step - 1) * CONTROL_PERIOD / MASS);
    }
}

#[test]
fn forces_and_times_are_drawn_for_every_row() {
    let term = ApplyExternalWrench {
        body: "ball".to_owned(),
        force: AxisRanges { x: [5.0, 10.0], y: [-2.0, 2.0], z: [1.0, 1.0] },
        torque: AxisRanges::ZERO,
        duration: [0.04, 0.12],
    };
    let rows = 400;
    let mut env = Env::new(&[Entry::new(EventOptions::reset(), term)], rows);
    let mut lasted = vec![0; rows];
    let mut drawn = vec![[0.0; 2]; rows];
    let mut before = vec![0.0; rows];
    for step in 0..8 {
        env.step();
        for row in 0..rows {
            let qvel = env.qvel(row);
            if step == 0 {
                drawn[row] = [qvel[0], qvel[1]].map(|v| v * MASS / CONTROL_PERIOD);
            }
            if qvel[2] - before[row] > 1e-9 {
                assert_close("the z force", (qvel[2] - before[row]) * MASS / CONTROL_PERIOD, 1.0);
                lasted[row] += 1;
            }
            before[row] = qvel[2];
        }
    }
    // Times in [0.04, 0.12) s round to 2 to 6 steps; the first and the last have half as much to round from.
    for (steps, share) in [(2, 0.125), (3, 0.25), (4, 0.25), (5, 0.25), (6, 0.125)] {
        let actual = lasted.iter().filter(|lasted| **lasted == steps).count() as f64 / rows as f64;
        assert!((actual - share).abs() < 0.09, "{steps} steps: {actual} of the rows, not {share}");
    }
    assert!(lasted.iter().all(|lasted| (2..=6).contains(lasted)));
    assert!(drawn.iter().all(|[x, y]| (4.999..10.001).contains(x) && (-2.001..2.001).contains(y)));
    let mean = drawn.iter().map(|drawn| drawn[0]).sum::<f64>() / rows as f64;
    assert!((mean - 7.5).abs() < 0.36, "the mean force, five standard errors around 7.5 N: {mean}");
    assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "rows draw on their own");
}

#[test]
fn a_snapshot_carries_the_time_left() {
    let events = [every(0.4, force("ball", 8.0, 0.2)), every(0.3, force("off", -4.0, 0.08))];
    let mut env = Env::new(&events, 2);
    let mut seen = 0;
    for step in 0..60 {
        let mut restored = Env::new(&events, 2);
        snapshot::load(&mut restored.0, &snapshot::save(&env.0)).expect("the same environment");
        for _ in 0..15 {
            restored.step();
        }
        if step == 22 {
            // Two of its ten steps have passed.
            assert_close("eight more", restored.speed(0) - env.speed(0), 8.0 * 8.0 * CONTROL_PERIOD / MASS);
            seen += 1;
        }
        let mut ahead = Env::new(&events, 2);
        for _ in 0..step + 15 {
            ahead.step();
        }
        assert_eq!(restored.qvel(1), ahead.qvel(1), "from step {step}");
        env.step();
    }
    assert_eq!(seen, 1);
}

#[test]
fn placed_rows_are_free_of_forces() {
    let mut env = Env::new(&[every(0.4, force("ball", 8.0, 0.2))], 1);
    for _ in 0..23 {
        env.step();
    }
    manege_systems::place::place_rows(&mut env.0, None, Some(&[0.0; 9])).expect("rows");
    for _ in 0..5 {
        env.step();
    }
    assert_eq!(env.speed(0), 0.0);
}

#[test]
fn a_run_without_randomisation_has_no_forces() {
    let events = [Entry::new(EventOptions::reset(), force("ball", 8.0, 0.2))];
    let options = RuntimeOptions { randomization: false, ..options(1) };
    let mut env = Env::try_new(&events, options).expect("valid events");
    env.step();
    assert_eq!(env.speed(0), 0.0);
}

#[test]
fn curricula_may_change_the_ranges() {
    let mut env = Env::new(&[every(0.1, force("ball", 8.0, 0.02))], 1);
    for (name, range) in [("force.x", [16.0; 2]), ("duration", [0.04; 2])] {
        let range_of = env.0.resource::<Tunables>().get(&format!("events.kick_0.{name}")).expect("a tunable range");
        range_of.set(range);
    }
    for _ in 0..8 {
        env.step();
    }
    assert_close("twice the force for twice the time", env.speed(0), 16.0 * 2.0 * CONTROL_PERIOD / MASS);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |term: ApplyExternalWrench, parts: [&str; 2]| {
        let mode = EventMode::Step;
        let event = Entry::new(EventOptions { enabled: true, mode }, term);
        let error = Env::try_new(&[event], options(1)).err().expect("it cannot be built").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} are not in: {error}");
    };
    refused(force("bal", 1.0, 0.1), ["unknown body `bal`", "`ball`"]);
    refused(force("world", 1.0, 0.1), ["`body`", "the world"]);
    refused(force("ball", f64::NAN, 0.1), ["`force.x`", "empty range"]);
    refused(force("ball", 1.0, -0.1), ["`duration`", "no range of times"]);
    let backwards = ApplyExternalWrench { duration: [0.2, 0.1], ..force("ball", 1.0, 0.1) };
    refused(backwards, ["`duration`", "[0.2, 0.1] is an empty range"]);
}
