//! A MuJoCo model in engine-neutral terms.

use manege_mujoco::{ForceLaw, Joint, JointKind, Model, ObjectKind, OptionValue as EngineValue};

use super::ENGINE;
use crate::backend::{
    ActuatorInfo, ActuatorKind, BackendError, BodyInfo, JointInfo, Keyframe, ModelInfo, OptionValue, SensorInfo,
};

/// Describes a model, or names what it has that cannot be described.
pub(super) fn describe(model: &Model) -> Result<ModelInfo, BackendError> {
    let root = model.joints().next().filter(|joint| joint.kind == JointKind::Free);
    let first = usize::from(root.is_some());
    let single: Vec<(usize, Joint<'_>)> = model.joints().enumerate().skip(first).collect();
    for (_, joint) in &single {
        if !matches!(joint.kind, JointKind::Hinge | JointKind::Slide) {
            let feature = format!(
                "place for joint `{}`: besides one free joint, which comes first, only hinges and slides",
                joint.name
            );
            return Err(BackendError::Unsupported { engine: ENGINE, feature });
        }
    }
    for actuator in model.actuators() {
        if actuator.controls.len() != 1 {
            let feature = format!("actuator with {} controls, as `{}` has", actuator.controls.len(), actuator.name);
            return Err(BackendError::Unsupported { engine: ENGINE, feature });
        }
    }

    let actuators: Vec<ActuatorInfo> = model
        .actuators()
        .map(|actuator| {
            let [kp, kd] = actuator.position_gains.unwrap_or_default();
            ActuatorInfo {
                name: actuator.name.to_owned(),
                joint: actuator.joint.and_then(|id| id.checked_sub(first)),
                kind: match actuator.force_law {
                    ForceLaw::Position => ActuatorKind::Position,
                    ForceLaw::Velocity => ActuatorKind::Velocity,
                    ForceLaw::Proportional => ActuatorKind::Motor,
                    ForceLaw::Other => ActuatorKind::Other,
                },
                kp,
                kd,
                force_range: actuator.force_range,
            }
        })
        .collect();
    let driver = |joint: usize| {
        let mut drivers = actuators.iter().enumerate().filter(|(_, actuator)| actuator.joint == Some(joint));
        match (drivers.next(), drivers.next()) {
            (Some((index, _)), None) => Some(index),
            _ => None,
        }
    };
    let joints = single
        .iter()
        .enumerate()
        .map(|(index, (_, joint))| JointInfo {
            name: joint.name.to_owned(),
            qpos: joint.qpos,
            dof: joint.dof,
            range: joint.range,
            actuator: driver(index),
        })
        .collect();
    let names = |kind| model.names(kind).map(str::to_owned).collect();

    Ok(ModelInfo {
        nq: model.nq(),
        nv: model.nv(),
        nu: model.nu(),
        timestep: model.timestep(),
        floating_root: root.map(|joint| joint.body),
        joints,
        bodies: model
            .bodies()
            .map(|body| BodyInfo { name: body.name.to_owned(), mass: body.mass, com: body.com, inertia: body.inertia })
            .collect(),
        geoms: names(ObjectKind::Geom),
        geom_friction: model.geom_friction().as_flattened().to_vec(),
        dof_armature: model.dof_armature().to_vec(),
        dof_damping: model.dof_damping().to_vec(),
        dof_friction_loss: model.dof_friction_loss().to_vec(),
        gravity: model.gravity(),
        sites: names(ObjectKind::Site),
        sensors: model
            .sensors()
            .map(|sensor| SensorInfo { name: sensor.name.to_owned(), dim: sensor.data.len() })
            .collect(),
        default_qpos: model.qpos0().to_vec(),
        keyframes: model
            .keyframes()
            .map(|key| Keyframe { name: key.name.to_owned(), qpos: key.qpos.to_vec(), qvel: key.qvel.to_vec() })
            .collect(),
        options: model.options().into_iter().map(|(name, value)| (name.to_owned(), option(value))).collect(),
        actuators,
    })
}

fn option(value: EngineValue) -> OptionValue {
    match value {
        EngineValue::Integer(value) => OptionValue::Integer(value),
        EngineValue::Number(value) => OptionValue::Number(value),
        EngineValue::Numbers(values) => OptionValue::Numbers(values),
        EngineValue::Text(text) => OptionValue::Text(text.to_owned()),
    }
}
