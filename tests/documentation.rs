//! The pages keep up with the code.

use std::path::Path;

use manege_tasks::tasks;

#[test]
fn every_term_of_the_tasks_is_in_the_managers_page() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/managers.md")).unwrap();
    for task in tasks() {
        for preset in task.presets {
            let config = (task.config)(preset.name);
            let mut kinds: Vec<&str> = Vec::new();
            kinds.extend(config.task.values().map(|entry| entry.term.kind()));
            kinds.extend(config.actions.values().map(|entry| entry.term.kind()));
            kinds.extend(config.commands.values().map(|entry| entry.term.kind()));
            let groups = config.observations.values();
            kinds.extend(groups.flat_map(|group| group.terms.values()).map(|entry| entry.term.kind()));
            kinds.extend(config.rewards.values().map(|entry| entry.term.kind()));
            kinds.extend(config.terminations.values().map(|entry| entry.term.kind()));
            kinds.extend(config.events.values().map(|entry| entry.term.kind()));
            kinds.extend(config.curriculum.values().map(|entry| entry.term.kind()));
            assert!(kinds.len() > 20, "{}: {kinds:?}", task.name);
            for kind in kinds {
                assert!(page.contains(&format!("`{kind}`")), "docs/managers.md says nothing of `{kind}`");
            }
        }
    }
}
