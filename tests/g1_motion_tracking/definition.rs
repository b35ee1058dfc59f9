//! The task as it is described.

use super::builder;

#[test]
fn sizes_and_periods_are_those_of_the_task() {
    let env = builder(1).build().unwrap();
    assert_eq!((env.control_period(), env.substeps(), env.config().episode_length), (0.02, 3, 10.0));
    assert_eq!(env.action_width(), 29);
    let groups: Vec<_> = env.spec().groups.iter().map(|group| (group.name.as_str(), group.width)).collect();
    assert_eq!(groups, [("policy", 160), ("critic", 289)]);
    let widths =
        |group: usize| -> Vec<usize> { env.spec().groups[group].terms.iter().map(|term| term.columns.len()).collect() };
    assert_eq!(widths(0), [58, 3, 6, 3, 3, 29, 29, 29]);
    assert_eq!(widths(1), [58, 3, 6, 3, 3, 29, 29, 29, 42, 84, 3]);
}

#[test]
#[expect(clippy::approx_constant, reason = "3.14 rad/s is what the task is defined with")]
fn rewards_and_terminations_are_those_of_the_task() {
    let env = builder(1).build().unwrap();
    let table = env.config().to_table().unwrap();
    let number = |path: &str| {
        let mut value = toml::Value::Table(table.clone());
        for key in path.split('.') {
            value = value.get(key).unwrap_or_else(|| panic!("no key {path}")).clone();
        }
        value.as_float().unwrap_or_else(|| value.as_integer().unwrap() as f64)
    };
    let rewards = [
        ("motion_global_root_pos", 1.0, Some(0.3)),
        ("motion_global_root_ori", 0.5, Some(0.4)),
        ("motion_body_pos", 2.0, Some(0.3)),
        ("motion_body_ori", 1.0, Some(0.4)),
        ("motion_body_lin_vel", 1.0, Some(1.0)),
        ("motion_body_ang_vel", 1.0, Some(3.14)),
        ("motion_joint_pos", 0.0, Some(0.2)),
        ("motion_joint_vel", 0.0, Some(1.0)),
        ("action_rate_l2", -0.1, None),
        ("joint_limit", -2.0, None),
        ("undesired_contacts", -0.1, None),
    ];
    let names: Vec<_> = rewards.iter().map(|(name, ..)| *name).collect();
    assert_eq!(env.spec().reward_terms, names);
    for (name, weight, std) in rewards {
        assert!((number(&format!("rewards.{name}.weight")) - weight).abs() < 1e-7, "{name}");
        if let Some(std) = std {
            assert_eq!(number(&format!("rewards.{name}.std")), std, "{name}");
        }
    }
    assert_eq!(number("rewards.undesired_contacts.height"), 0.05);
    let terminations = [
        ("time_out", true, None),
        ("motion_clip_end", true, None),
        ("anchor_pos", false, Some(0.5)),
        ("anchor_ori", false, Some(0.8)),
        ("ee_body_pos", false, Some(0.5)),
    ];
    for (name, _, limit) in terminations {
        if let Some(limit) = limit {
            assert_eq!(number(&format!("terminations.{name}.limit")), limit, "{name}");
        }
    }
    let kinds: Vec<_> =
        env.spec().termination_terms.iter().map(|(name, time_out)| (name.as_str(), *time_out)).collect();
    assert_eq!(kinds, terminations.map(|(name, time_out, _)| (name, time_out)));
    assert_eq!(number("actions.joint_pos.scale"), 2.0);
    assert!(env.config().events.is_empty() && env.config().curriculum.is_empty());
}

#[test]
fn only_the_tracked_bodies_leave_the_physics() {
    let mut env = builder(1).build().unwrap();
    env.reset().unwrap();
    // Generalised state, 14 bodies with 13 values each, and two sensors with 3.
    let world = env.world_mut();
    let state = world.query::<&manege_components::RobotState>().single(world).unwrap();
    assert_eq!(state.values.len(), 36 + 35 + 14 * 13 + 6);
}
