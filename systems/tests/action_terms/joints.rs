//! Targets, velocities and efforts against the formulas, and what is refused.

use manege_components::{Action, ResetRequested};
use manege_systems::config::{PerName, TermParams};
use manege_systems::managers::action::{
    ActionOptions, ActionTerm, ExplicitPdAction, JointEffortAction, JointPositionAction, JointVelocityAction,
    RelativeJointPositionAction,
};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::step::RowEntities;

use super::{Env, action, chain, config, per_joint};

const SCALE: [f32; 3] = [0.5, -2.0, 3.0];
const OFFSET: [f32; 3] = [0.1, 0.0, -0.25];
const CLIP: [f32; 2] = [-0.8, 1.1];

/// `clip(action × scale + offset)`.
fn formula(actions: &[f32], joint: usize) -> f64 {
    f64::from((actions[joint] * SCALE[joint] + OFFSET[joint]).clamp(CLIP[0], CLIP[1]))
}

#[test]
fn velocities_and_efforts_go_to_the_joints_actuators_as_they_are() {
    let (scale, offset) = (per_joint(SCALE), per_joint(OFFSET));
    let (joints, clip) = (vec![".*".to_owned()], Some(PerName::All(CLIP)));
    let velocity = JointVelocityAction {
        joints: joints.clone(),
        scale: scale.clone(),
        offset: offset.clone(),
        clip: clip.clone(),
    };
    let effort = JointEffortAction { joints, scale, offset, clip };
    let velocities =
        Env::new(&chain("velocity kv=\"2\""), &config(ActionOptions::default(), velocity), RuntimeOptions::new(2));
    let efforts = Env::new(&chain("motor"), &config(ActionOptions::default(), effort), RuntimeOptions::new(2));
    for mut env in [velocities, efforts] {
        for step in 0..10 {
            let actions = action(step, 6);
            env.step(&actions);
            for row in 0..2 {
                let expected = [0, 1, 2].map(|joint| formula(&actions[3 * row..], joint));
                assert_eq!(env.controls(row), expected);
            }
        }
    }
}

#[test]
fn relative_targets_begin_where_the_joint_was_at_the_control_step() {
    let term = RelativeJointPositionAction {
        scale: per_joint(SCALE),
        clip: Some(PerName::All([-0.4, 0.3])),
        ..RelativeJointPositionAction::scaled(1.0)
    };
    let mut env = Env::new(
        &chain("position kp=\"20\" kv=\"0.5\""),
        &config(ActionOptions::default(), term),
        RuntimeOptions::new(2),
    );
    for step in 0..20 {
        let actions = action(step, 6);
        let before = [env.state(0), env.state(1)];
        env.step(&actions);
        for (row, before) in before.iter().enumerate() {
            for (joint, control) in env.controls(row).into_iter().enumerate() {
                let change = (actions[3 * row + joint] * SCALE[joint]).clamp(-0.4, 0.3);
                assert_eq!(control, f64::from(change + before[joint] as f32), "step {step}, joint {joint}");
            }
        }
    }
    // The targets moved the joints.
    assert!(env.state(0)[..3].iter().zip([0.4, -0.7, 0.2]).any(|(now, start)| (now - start).abs() > 0.05));
}

#[test]
fn patterns_choose_joints_in_model_order_whatever_the_order_of_patterns() {
    let term =
        JointEffortAction { joints: vec!["wrist".to_owned(), "sh.*".to_owned()], ..JointEffortAction::scaled(1.0) };
    let mut env = Env::new(&chain("motor"), &config(ActionOptions::default(), term), RuntimeOptions::new(1));
    env.step(&[0.25, -0.5]);
    assert_eq!(env.controls(0), [0.25, 0.0, -0.5], "shoulder before wrist, and nothing for the elbow");
}

#[test]
fn the_last_action_and_its_history_are_zero_after_a_reset() {
    // Adapted from reports about Isaac Lab (#1547, #2926): actions of the last episode leaked into the next one.
    let mut env = Env::new(
        &chain("motor"),
        &config(ActionOptions::default(), JointEffortAction::scaled(1.0)),
        RuntimeOptions::new(2),
    );
    (0..3).for_each(|step| env.step(&action(step, 6)));
    runtime::reset_rows(&mut env.world, &[1]).expect("a row");
    let history = |env: &Env, row: usize| {
        let entity = env.world.resource::<RowEntities>().0[row];
        assert!(!env.world.entity(entity).contains::<ResetRequested>());
        env.world.get::<Action>(entity).expect("every row has one").values().to_vec()
    };
    assert_eq!(history(&env, 1), [0.0; 9]);
    assert!(history(&env, 0).iter().all(|&value| value != 0.0));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    fn refused(actuator: &str, options: ActionOptions, term: impl TermParams<dyn ActionTerm>) -> String {
        let config = config(options, term);
        Env::try_new(&chain(actuator), &config, RuntimeOptions::new(1)).err().expect("an error").to_string()
    }
    let plain = ActionOptions::default;
    let pd = || ExplicitPdAction::around_default_pose(1.0, 10.0, 1.0, 5.0);
    let joints = |name: &str| vec![name.to_owned()];
    let cases = [
        (
            refused("motor", plain(), JointEffortAction { joints: joints("elbo"), ..JointEffortAction::scaled(1.0) }),
            "action term `arm`: the pattern `elbo` matches no joint; did you mean `elbow`?; available: shoulder, elbow, wrist",
        ),
        (
            refused("motor", plain(), JointPositionAction::around_default_pose(1.0)),
            "joint `shoulder` is driven by `shoulder`, which is a motor, but the term needs a position servo",
        ),
        (
            refused("position kp=\"2\"", plain(), JointVelocityAction::scaled(1.0)),
            "which is a position servo, but the term needs a velocity servo",
        ),
        (refused("velocity kv=\"2\"", plain(), pd()), "which is a velocity servo, but the term needs a motor"),
        (
            refused(
                "position kp=\"2\"",
                plain(),
                RelativeJointPositionAction { offset: PerName::All(0.1), ..RelativeJointPositionAction::scaled(1.0) },
            ),
            "`offset`",
        ),
        (refused("motor", plain(), ExplicitPdAction { damping: PerName::All(-1.0), ..pd() }), "damping"),
        (
            refused(
                "motor",
                plain(),
                ExplicitPdAction { stiffness: PerName::Patterns([("elbow".to_owned(), 1.0)].into()), ..pd() },
            ),
            "no pattern gives a value for joint `shoulder`",
        ),
        (refused("motor", ActionOptions::delayed_by_control_steps(3, 2), pd()), "delay_control_steps"),
        (refused("motor", ActionOptions::delayed_by_substeps(0, 4_000_000), pd()), "delay_substeps"),
    ];
    for (error, expected) in cases {
        assert!(error.contains(expected.trim_matches('`')), "{error}\nshould contain\n{expected}");
    }
}
