//! How often controls are computed, as the trace tells it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use manege_systems::config::Entry;
use manege_systems::managers::action::{ActionOptions, ExplicitPdAction, JointEffortAction};
use manege_systems::runtime::RuntimeOptions;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{Env, SUBSTEPS, action, chain, config};

/// Events and spans, by term.
static SEEN: LazyLock<Mutex<HashMap<String, [usize; 2]>>> = LazyLock::new(Mutex::default);

struct Count;

struct Term(String);

impl Visit for Term {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "term" {
            self.0 = value.to_owned();
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

fn count(kind: usize, record: impl FnOnce(&mut Term)) {
    let mut term = Term(String::new());
    record(&mut term);
    SEEN.lock().unwrap().entry(term.0).or_default()[kind] += 1;
}

impl Subscriber for Count {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "manege::action"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        count(1, |term| span.record(term));
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        count(0, |term| event.record(term));
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

#[test]
fn controls_that_need_no_feedback_are_written_once_per_control_step() {
    const ROWS: usize = 3;
    const STEPS: usize = 5;
    tracing::subscriber::set_global_default(Count).expect("no other test sets one");
    let on = |joint: &str| vec![joint.to_owned()];
    let pd = ExplicitPdAction::around_default_pose(0.5, 20.0, 1.0, 50.0);
    let effort = JointEffortAction::scaled(1.0);
    let mut config = config(ActionOptions::default(), JointEffortAction { joints: on("wrist"), ..effort.clone() });
    config
        .actions
        .insert("law".to_owned(), Entry::new(ActionOptions::default(), ExplicitPdAction { joints: on("elbow"), ..pd }));
    config.actions.insert(
        "late".to_owned(),
        Entry::new(
            ActionOptions::delayed_by_substeps(1, 1),
            JointEffortAction { joints: on("shoulder"), ..effort.clone() },
        ),
    );
    // Under names that no other test of this program uses.
    let named = |name: &str| format!("traced_{name}");
    config.actions = config.actions.into_iter().map(|(name, entry)| (named(&name), entry)).collect();
    let mut env = Env::new(&chain("motor"), &config, RuntimeOptions { threads: 2, ..RuntimeOptions::new(ROWS) });
    (0..STEPS).for_each(|step| env.step(&action(step, 3 * ROWS)));
    let seen = SEEN.lock().unwrap();
    let all_substeps = ROWS * STEPS * SUBSTEPS as usize;
    assert_eq!(seen.get("traced_arm"), Some(&[STEPS, 0]), "one event per control step, nothing within");
    assert_eq!(seen.get("traced_law"), Some(&[0, all_substeps]));
    assert_eq!(seen.get("traced_late"), Some(&[0, all_substeps]));
}
