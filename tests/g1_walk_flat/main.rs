//! The task `g1_walk_flat`: every term against values of other origin.

mod curriculum;
mod oracle;
mod resets;
mod rollout;
mod terms;

use manege::Environment;
use manege::environment::EnvironmentBuilder;

const PRESETS: [&str; 2] = ["sac", "flashsac"];

/// Actuated joints.
const JOINTS: usize = 29;
/// Generalised positions and velocities: those of the root, then of the joints.
const NQ: usize = 7 + JOINTS;
const NV: usize = 6 + JOINTS;

/// The pose of every episode's beginning: root height, then the joints of both legs, the waist and both arms.
const STAND: [f64; 1 + JOINTS] = [
    0.754, //
    -0.312, 0.0, 0.0, 0.669, -0.363, 0.0, //
    -0.312, 0.0, 0.0, 0.669, -0.363, 0.0, //
    0.0, 0.0, 0.0, //
    0.2, 0.2, 0.0, 0.6, 0.0, 0.0, 0.0, //
    0.2, -0.2, 0.0, 0.6, 0.0, 0.0, 0.0,
];

fn builder(preset: &str, rows: usize) -> EnvironmentBuilder {
    Environment::builder(&format!("g1_walk_flat:{preset}")).rows(rows).threads(1)
}

/// A number in `[-1, 1)` that looks random and depends on `i` alone.
fn scatter(i: usize) -> f64 {
    ((i as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(2.0) - 1.0
}

/// Rows at rest in the standing pose, with the root at `height` (m) and turned by `roll` about the world's x axis (rad).
fn standing(rows: &[(f64, f64)]) -> Vec<f64> {
    let row = |&(height, roll): &(f64, f64)| {
        let root = [0.0, 0.0, height, (0.5 * roll).cos(), (0.5 * roll).sin(), 0.0, 0.0];
        root.into_iter().chain(STAND[1..].iter().copied())
    };
    rows.iter().flat_map(row).collect()
}

/// The columns of a term in a row of a group's buffer.
fn columns(env: &Environment, group: &str, term: &str) -> std::ops::Range<usize> {
    let group = &env.spec().groups[env.spec().group(group).unwrap()];
    group.terms.iter().find(|columns| columns.name == term).unwrap().columns.clone()
}

/// A term's values in a row.
fn observed<'a>(env: &'a Environment, group: &str, term: &str, row: usize) -> &'a [f32] {
    let index = env.spec().group(group).unwrap();
    let width = env.spec().groups[index].width;
    &env.observation(index)[row * width..][columns(env, group, term)]
}

#[test]
fn sizes_are_those_of_the_task() {
    for preset in PRESETS {
        let env = builder(preset, 1).build().unwrap();
        let spec = env.spec();
        let widths: Vec<_> = spec.groups.iter().map(|group| (group.name.as_str(), group.width)).collect();
        assert_eq!(widths, [("policy", 98), ("critic", 101)]);
        assert_eq!((env.action_width(), spec.nq, spec.nv, spec.nu), (JOINTS, NQ, NV, JOINTS));
        assert_eq!((env.substeps(), env.control_period()), (3, 0.02));
        // Controls are in the order of joints.
        assert_eq!(spec.joint_actuators, (0..JOINTS).map(Some).collect::<Vec<_>>());
        let critic: Vec<_> = spec.groups[1].terms.iter().map(|term| (term.name.as_str(), term.columns.len())).collect();
        let expected = [
            ("base_ang_vel", 3),
            ("projected_gravity", 3),
            ("joint_pos", JOINTS),
            ("joint_vel", JOINTS),
            ("actions", JOINTS),
            ("command", 3),
            ("gait_phase", 2),
            ("base_lin_vel", 3),
        ];
        assert_eq!(critic, expected);
        assert_eq!(spec.groups[0].terms, spec.groups[1].terms[..7]);
    }
    assert_eq!(Environment::builder("g1_walk_flat").build().unwrap().preset(), "sac");
}
