//! Recorders: when each hook is called, and what it sees.

use std::sync::{Arc, Mutex};

use manege_systems::config::Entry;
use manege_systems::error::StepError;
use manege_systems::managers::curriculum::{CurriculumOptions, CurriculumTerm, Progress};
use manege_systems::managers::recorder::{RecorderError, RecorderManager, RecorderTerm, RecorderView};
use manege_systems::managers::reward::RewardManager;
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;

use crate::env::{Env, options};
use crate::terms::{Made, config_without_accidents, made};

const ROWS: usize = 3;

type Notes = Arc<Mutex<Vec<String>>>;

fn take(notes: &Notes) -> Vec<String> {
    notes.lock().unwrap().drain(..).collect()
}

/// Notes every call, with the rows' clocks.
struct Witness(Notes);

impl Witness {
    fn note(&self, hook: &str, view: &RecorderView<'_>, rows: &[u32]) {
        let clocks: Vec<u32> = rows.iter().map(|&row| view.clock(row).step).collect();
        self.0.lock().unwrap().push(format!("{hook} {rows:?} at {clocks:?}"));
    }
}

impl RecorderTerm for Witness {
    fn pre_reset(&mut self, view: &RecorderView<'_>, rows: &[u32]) -> Result<(), RecorderError> {
        for &row in rows {
            // The observation that is still shown is the last of the episode.
            assert_eq!(view.observation(0, row), view.final_observation(0, row));
            assert!(view.buffers().terminated[row as usize] || view.steps() > 2);
        }
        self.note("before", view, rows);
        Ok(())
    }

    fn post_reset(&mut self, view: &RecorderView<'_>, rows: &[u32]) -> Result<(), RecorderError> {
        self.note("after", view, rows);
        Ok(())
    }

    fn post_step(&mut self, view: &RecorderView<'_>) -> Result<(), RecorderError> {
        assert_eq!(view.rows(), ROWS);
        self.note("step", view, &[0, 1, 2]);
        Ok(())
    }

    fn close(&mut self) -> Result<(), RecorderError> {
        self.0.lock().unwrap().push("closed".to_owned());
        Ok(())
    }
}

/// An environment with a recorder, and a curriculum that takes note of when it runs.
fn witnessed(auto_reset: AutoReset) -> (Env, Notes) {
    struct Runs(Notes);
    impl CurriculumTerm for Runs {
        fn keys(&self) -> &[&'static str] {
            &[]
        }

        fn start(&self, _: &mut [f64], _: &mut RewardManager) {}

        fn update(&self, _: &mut [f64], _: &Progress<'_>, _: &mut RewardManager) {
            self.0.lock().unwrap().push("curriculum".to_owned());
        }
    }
    let notes = Notes::default();
    let mut config = config_without_accidents();
    let runs: Made<dyn CurriculumTerm> = {
        let notes = notes.clone();
        made(move |_| Ok(Box::new(Runs(notes.clone())) as Box<dyn CurriculumTerm>))
    };
    config.curriculum = [("runs".into(), Entry::new(CurriculumOptions::at_resets(), runs))].into();
    let mut env = Env::new(&config, RuntimeOptions { auto_reset, ..options(ROWS) });
    env.world.resource_mut::<RecorderManager>().add(Box::new(Witness(notes.clone())));
    env.reset();
    (env, notes)
}

#[test]
fn hooks_are_called_before_the_curriculum_after_the_reset_and_after_the_step() {
    let (mut env, notes) = witnessed(AutoReset::SameStep);
    assert_eq!(take(&notes), ["curriculum", "after [0, 1, 2] at [0, 0, 0]"], "no episode has ended");
    env.step();
    assert_eq!(take(&notes), ["step [0, 1, 2] at [1, 1, 1]"]);
    env.step_ending(&[2, 1]);
    assert_eq!(
        take(&notes),
        ["before [1, 2] at [2, 2]", "curriculum", "after [1, 2] at [0, 0]", "step [0, 1, 2] at [2, 0, 0]"]
    );
    env.reset_rows(&[0]);
    assert_eq!(take(&notes), ["curriculum", "after [0] at [0]"], "the episode was cut short, it did not end");
}

#[test]
fn the_end_of_an_episode_is_seen_once_in_every_mode() {
    let (mut env, notes) = witnessed(AutoReset::NextStep);
    env.step();
    env.step_ending(&[1]);
    take(&notes);
    env.step();
    assert_eq!(take(&notes), ["before [1] at [2]", "curriculum", "after [1] at [0]", "step [0, 1, 2] at [3, 0, 3]"]);
    let (mut env, notes) = witnessed(AutoReset::Disabled);
    env.step();
    env.step_ending(&[1]);
    take(&notes);
    env.reset_rows(&[0, 1]);
    assert_eq!(take(&notes), ["before [1] at [2]", "curriculum", "after [0, 1] at [0, 0]"]);
}

#[test]
fn recorders_are_closed_once() {
    let (mut env, notes) = witnessed(AutoReset::SameStep);
    env.world.resource_mut::<RecorderManager>().close().unwrap();
    assert_eq!(take(&notes).last().unwrap(), "closed");
    env.step();
    drop(env);
    assert!(take(&notes).is_empty());
    let (env, notes) = witnessed(AutoReset::SameStep);
    drop(env);
    assert_eq!(take(&notes).last().unwrap(), "closed", "at the latest when the environment goes");
}

#[test]
fn a_recorder_that_fails_fails_the_step_which_is_complete_all_the_same() {
    struct Full;
    impl RecorderTerm for Full {
        fn post_step(&mut self, _: &RecorderView<'_>) -> Result<(), RecorderError> {
            Err("the disk is full".into())
        }

        fn close(&mut self) -> Result<(), RecorderError> {
            Err("the disk is still full".into())
        }
    }
    let mut env = Env::started(&config_without_accidents(), options(2));
    let mut twin = Env::started(&config_without_accidents(), options(2));
    env.world.resource_mut::<RecorderManager>().add(Box::new(Full));
    for _ in 0..2 {
        let error = env.try_step(&[0.1; 4]).unwrap_err();
        assert!(matches!(error, StepError::Recorder(_)));
        assert!(error.to_string().contains("recorder"), "{error}");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the disk is full");
        twin.try_step(&[0.1; 4]).unwrap();
    }
    assert_eq!(env.snapshots(), twin.snapshots());
    let error = env.world.resource_mut::<RecorderManager>().close().unwrap_err();
    assert!(matches!(error, StepError::Recorder(source) if source.to_string().contains("still full")));
}
