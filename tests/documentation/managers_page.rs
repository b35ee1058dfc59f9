//! `docs/managers.md` has every term of the built-in tasks, and every option and parameter.

use indexmap::IndexMap;
use manege_systems::config::Entry;
use manege_tasks::tasks;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The part of the page about a manager, which begins with the given heading.
fn part<'a>(page: &'a str, heading: &str) -> &'a str {
    let parts = page.split("\n## ").filter(|part| part.starts_with(heading)).collect::<Vec<_>>();
    assert_eq!(parts.len(), 1, "docs/managers.md has one part `## {heading}`");
    parts[0]
}

/// Fails unless the part of the page has the terms, their options and their parameters. Returns the number of terms.
fn check<O: Serialize + DeserializeOwned, T: ?Sized + 'static>(
    page: &str,
    heading: &str,
    terms: &IndexMap<String, Entry<O, T>>,
) -> usize {
    let part = part(page, heading);
    for entry in terms.values() {
        let table = entry.to_table().expect("every term has a table");
        let keys = table.keys().map(String::as_str).filter(|key| *key != "enabled");
        for word in keys.chain([entry.term.kind()]) {
            let kind = entry.term.kind();
            assert!(part.contains(&format!("`{word}`")), "docs/managers.md, {heading}: nothing of `{word}` ({kind})");
        }
    }
    terms.len()
}

#[test]
fn the_managers_page_has_every_term_and_key_of_the_tasks() {
    let page = std::fs::read_to_string(super::page("managers.md")).unwrap();
    for task in tasks() {
        for preset in task.presets {
            let config = (task.config)(preset.name);
            let mut terms = check(&page, "Task state", &config.task)
                + check(&page, "Actions", &config.actions)
                + check(&page, "Commands", &config.commands)
                + check(&page, "Rewards", &config.rewards)
                + check(&page, "Terminations", &config.terminations)
                + check(&page, "Events", &config.events)
                + check(&page, "Curriculum", &config.curriculum)
                + check(&page, "Metrics", &config.metrics);
            for group in config.observations.values() {
                terms += check(&page, "Observations", &group.terms);
            }
            assert!(terms > 20, "{}: {terms} terms", task.name);
            let environment = part(&page, "The environment");
            let table = config.to_table().expect("a configuration has a table");
            let physics = table["physics"].as_table().expect("a table").keys().map(|key| format!("`physics.{key}`"));
            let plain = table.iter().filter(|(_, value)| !value.is_table()).map(|(key, _)| format!("`{key}`"));
            for key in physics.chain(plain) {
                assert!(environment.contains(&key), "docs/managers.md, The environment: nothing of {key}");
            }
        }
    }
}

/// The names of the parameters' types in sources: `impl TermParams<dyn RewardTerm> for Alive {`. Types that macros name are
/// not found.
fn kinds(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            kinds(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let heads = text.lines().filter(|line| line.starts_with("impl TermParams<dyn "));
            let kinds = heads.filter_map(|line| line.split(" for ").nth(1)?.split([' ', '<']).next());
            found.extend(kinds.map(str::to_owned));
        }
    }
}

#[test]
fn the_managers_page_has_terms_that_no_task_uses() {
    let page = std::fs::read_to_string(super::page("managers.md")).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    kinds(&root.join("systems/src/managers"), &mut found);
    kinds(&root.join("tasks/src/terms"), &mut found);
    assert!(found.len() > 50 && found.iter().any(|kind| kind == "ExplicitPdAction"), "{found:?}");
    for kind in found {
        assert!(page.contains(&format!("`{kind}`")), "docs/managers.md says nothing of `{kind}`");
    }
}
