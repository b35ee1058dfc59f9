//! Where the rows lie, and what a host may do to the world without disturbing them.

use bevy_ecs::prelude::*;
use manege_components::{
    Action, EpisodeClock, Observation, ResetRequested, Reward, RobotState, Row, StreamId, Streams, Termination,
};
use manege_systems::managers::observation::{FinalObservations, ObservationBuffers};
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;

use crate::env::{Env, options};
use crate::terms::{config, config_without_accidents};

#[derive(Component)]
struct Note(#[expect(dead_code, reason = "it only has to take space in a table")] u64);

#[test]
fn a_hosts_components_and_entities_do_not_change_the_rows() {
    // 300 rows, so that the managers' loops are split over threads.
    let threads = |rows| RuntimeOptions { threads: 2, ..options(rows) };
    let (mut env, mut twin) = (Env::started(&config(), threads(300)), Env::started(&config(), threads(300)));
    for step in 0..40 {
        // Components in tables: these rows move to another table, and change places there.
        match step {
            5 => (0..300).step_by(7).for_each(|row| {
                let entity = env.entity(row);
                env.world.entity_mut(entity).insert(Note(row as u64));
            }),
            11 => (0..300).step_by(21).for_each(|row| {
                let entity = env.entity(row);
                env.world.entity_mut(entity).remove::<Note>();
            }),
            _ => {}
        }
        let stranger = env.world.spawn((Note(step), ResetRequested)).id();
        env.world.spawn((Reward::zeros(3), Observation::zeros(1, 1), Termination::default()));
        env.step();
        twin.step();
        assert!(!env.world.entity(stranger).contains::<ResetRequested>());
        if step % 4 == 0 || step == 11 {
            let (rows, twins) = (env.snapshots(), twin.snapshots());
            for row in 0..300 {
                assert_eq!(rows[row], twins[row], "row {row}, step {step}");
            }
        }
    }
}

/// Spawns entities that have some of a row's components and are none, of four kinds in an order that `seed` gives, and
/// despawns a part of them, so that entities that are spawned later take their places.
fn strangers(world: &mut World, seed: u64) {
    let mut draws = Streams::for_row(seed, Row(0), 0).draws(StreamId::new("test/strangers"), 0);
    let spawned: Vec<Entity> = (0..60)
        .map(|i| match draws.integer(0, 3) {
            0 => world.spawn(Note(i)).id(),
            1 => world.spawn((Reward::zeros(3), Termination { terminated: true, ..Termination::default() })).id(),
            2 => world.spawn((Observation::zeros(7, 7), EpisodeClock::default(), ResetRequested)).id(),
            _ => world.spawn_empty().id(),
        })
        .collect();
    for entity in spawned {
        if draws.integer(0, 2) == 0 {
            world.despawn(entity);
        }
    }
}

#[test]
fn the_order_in_which_foreign_entities_were_spawned_does_not_matter() {
    let config = config();
    let mut twin = Env::started(&config, options(40));
    let mut others: Vec<Env> = (0..4)
        .map(|seed| {
            let mut world = World::new();
            strangers(&mut world, seed);
            let extend = |world: &mut World, _: &mut Schedule, _: &mut Schedule| strangers(world, seed + 10);
            let mut env = Env::in_world(world, &config, options(40), extend).unwrap();
            env.reset();
            env
        })
        .collect();
    for step in 0..30 {
        twin.step();
        for (seed, env) in others.iter_mut().enumerate() {
            if step % 7 == 3 {
                strangers(&mut env.world, step + 100 * seed as u64);
            }
            env.step();
            assert_eq!(env.snapshots(), twin.snapshots(), "strangers {seed}, step {step}");
        }
    }
}

/// Where everything lies that belongs to a row or is read by a caller.
fn places(env: &Env) -> Vec<usize> {
    let mut places = Vec::new();
    for row in 0..env.rows {
        let (observation, reward, action) =
            (env.get::<Observation>(row), env.get::<Reward>(row), env.get::<Action>(row));
        // The components in their table, and what they hold.
        places.extend([std::ptr::from_ref(observation).addr(), std::ptr::from_ref(reward).addr()]);
        places.extend([std::ptr::from_ref(action).addr(), std::ptr::from_ref(env.get::<Row>(row)).addr()]);
        places.extend([observation.values.as_ptr().addr(), reward.terms.as_ptr().addr()]);
        places.push(env.get::<RobotState>(row).values.as_ptr().addr());
    }
    let buffers = env.buffers();
    places.extend([buffers.rewards.as_ptr().addr(), buffers.reward_terms.as_ptr().addr()]);
    places.extend([buffers.terminated.as_ptr().addr(), buffers.truncated.as_ptr().addr()]);
    for group in 0..2 {
        places.push(env.world.resource::<ObservationBuffers>().group(group).as_ptr().addr());
        places.push(env.world.resource::<FinalObservations>().group(group).as_ptr().addr());
    }
    places
}

#[test]
fn resets_of_no_few_and_all_rows_leave_everything_in_its_place() {
    // Tags that lie in tables would move their entities, and with them the order of rows.
    let rows = 100;
    for auto_reset in [AutoReset::SameStep, AutoReset::NextStep] {
        let options = RuntimeOptions { auto_reset, ..options(rows) };
        let mut env = Env::started(&config_without_accidents(), options);
        let first = places(&env);
        let patterns: [Vec<usize>; 4] =
            [vec![], vec![37], (0..rows).filter(|row| row * 7 % 10 == 3).collect(), (0..rows).collect()];
        assert_eq!(patterns.each_ref().map(Vec::len), [0, 1, 10, 100]);
        let mut episodes = vec![1; rows];
        for round in 0..12 {
            let ending = &patterns[(round * 3 + round / 4) % 4];
            env.step_ending(ending);
            assert!((0..rows).all(|row| env.done(row) == ending.contains(&row)), "round {round}");
            if auto_reset == AutoReset::NextStep {
                env.step();
            }
            assert_eq!(places(&env), first, "round {round}");
            env.reset_rows(&ending.iter().rev().map(|&row| row as u32).collect::<Vec<_>>());
            assert_eq!(places(&env), first, "round {round}, by hand");
            for (row, episode) in episodes.iter_mut().enumerate() {
                *episode += 2 * u32::from(ending.contains(&row));
                assert_eq!(env.get::<EpisodeClock>(row).episode, *episode, "row {row}, round {round}");
                assert_eq!(env.get::<Row>(row).index(), row);
            }
        }
    }
}
