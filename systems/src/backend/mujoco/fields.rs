//! Where per-row model parameters are in MuJoCo's model.

use manege_mujoco::{Batch, BatchError, ModelField as Storage};

use crate::backend::ModelField;

/// A parameter that rows have values of their own for.
pub(super) struct Field {
    pub(super) field: ModelField,
    /// Values for each row.
    pub(super) width: usize,
    storage: Storage<f64>,
    place: Place,
}

/// How a parameter's values lie in its storage.
enum Place {
    /// One after the other.
    Dense,
    /// The proportional gain of each actuator, which is also, negated, the second bias parameter.
    Gain { bias: Storage<f64> },
    /// The damping of each actuator: negated, the third bias parameter.
    Damping,
}

impl Field {
    /// Gives rows values of their own for a parameter, starting from the model's.
    pub(super) fn expand(batch: &mut Batch, field: ModelField, width: usize) -> Result<Self, BatchError> {
        let (name, place) = match field {
            ModelField::BodyMass => ("body_mass", Place::Dense),
            ModelField::BodyCom => ("body_ipos", Place::Dense),
            ModelField::BodyInertia => ("body_inertia", Place::Dense),
            ModelField::DofArmature => ("dof_armature", Place::Dense),
            ModelField::DofDamping => ("dof_damping", Place::Dense),
            ModelField::DofFrictionLoss => ("dof_frictionloss", Place::Dense),
            ModelField::GeomFriction => ("geom_friction", Place::Dense),
            ModelField::Gravity => ("opt.gravity", Place::Dense),
            ModelField::ActuatorKp => ("actuator_gainprm", Place::Gain { bias: batch.expand("actuator_biasprm")? }),
            ModelField::ActuatorKd => ("actuator_biasprm", Place::Damping),
        };
        Ok(Self { field, width, storage: batch.expand(name)?, place })
    }

    /// Whether MuJoCo derives constants from the parameter, which have to follow it.
    fn has_derived_constants(&self) -> bool {
        matches!(
            self.field,
            ModelField::BodyMass | ModelField::BodyCom | ModelField::BodyInertia | ModelField::DofArmature
        )
    }

    /// Writes one row's values. Gives whether constants that are derived from them have to be computed anew.
    pub(super) fn write(&self, batch: &mut Batch, row: usize, values: &[f64]) -> Result<bool, BatchError> {
        match &self.place {
            Place::Dense => {
                let stored = batch.model_field_row_mut(self.storage, row)?;
                let changed = self.has_derived_constants() && stored != values;
                stored.copy_from_slice(values);
                Ok(changed)
            }
            Place::Gain { bias } => {
                write_each(batch.model_field_row_mut(self.storage, row)?, 0, values, |kp| kp);
                write_each(batch.model_field_row_mut(*bias, row)?, 1, values, |kp| -kp);
                Ok(false)
            }
            Place::Damping => {
                write_each(batch.model_field_row_mut(self.storage, row)?, 2, values, |kd| -kd);
                Ok(false)
            }
        }
    }
}

/// Writes the `parameter`-th of each actuator's parameters.
fn write_each(stored: &mut [f64], parameter: usize, values: &[f64], value: impl Fn(f64) -> f64) {
    let parameters = stored.len() / values.len().max(1);
    for (stored, given) in stored.chunks_exact_mut(parameters.max(1)).zip(values) {
        stored[parameter] = value(*given);
    }
}
