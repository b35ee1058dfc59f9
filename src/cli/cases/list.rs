//! The seven cases.

use anyhow::anyhow;
use manege_systems::config::nearest;

use crate::cli::{Failure, usage};

/// A case: `algorithm/task/backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The training algorithm whose preset is run.
    pub(super) preset: &'static str,
    pub(super) task: &'static str,
    pub(super) backend: &'static str,
}

/// In the order in which they are run and reported.
pub(super) const CASES: [Case; 7] = [
    case("flashsac/go2_joystick_flat/mujoco", "flashsac", "go2_joystick_flat", "mujoco"),
    case("sac/g1_walk_flat/mujoco", "sac", "g1_walk_flat", "mujoco"),
    case("sac/g1_walk_flat/motrix", "sac", "g1_walk_flat", "motrix"),
    case("flashsac/g1_walk_flat/mujoco", "flashsac", "g1_walk_flat", "mujoco"),
    case("flashsac/g1_walk_flat/motrix", "flashsac", "g1_walk_flat", "motrix"),
    case("sac/g1_motion_tracking/mujoco", "sac", "g1_motion_tracking", "mujoco"),
    case("sac/g1_motion_tracking/motrix", "sac", "g1_motion_tracking", "motrix"),
];

const fn case(name: &'static str, preset: &'static str, task: &'static str, backend: &'static str) -> Case {
    Case { name, preset, task, backend }
}

impl Case {
    /// The case's task as commands take it.
    pub(super) fn environment(&self) -> String {
        format!("{}:{}", self.task, self.preset)
    }

    /// What this program lacks to run the case at all.
    pub(super) fn lacks(&self) -> Option<&'static str> {
        if self.backend != "mujoco" {
            return Some("backend not built");
        }
        let exists = manege_tasks::find(&self.environment()).is_ok();
        (!exists).then_some("task not built")
    }
}

/// The cases of these names in the list's order; all if there are no names.
pub(super) fn select(names: &[String]) -> Result<Vec<Case>, Failure> {
    let known = || CASES.iter().map(|case| case.name);
    for name in names {
        if !known().any(|known| known == name) {
            let hint = nearest(name, known()).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            let list = known().collect::<Vec<_>>().join(", ");
            return Err(usage(anyhow!("unknown case `{name}`{hint}; cases: {list}")));
        }
    }
    Ok(CASES.into_iter().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_their_parts() {
        for case in CASES {
            assert_eq!(case.name, format!("{}/{}/{}", case.preset, case.task, case.backend));
        }
    }
}
