//! The solver options that a model carries.

use std::sync::Arc;

use mujoco_rs::mujoco_c::{mjtCone, mjtDisableBit, mjtIntegrator, mjtJacobian, mjtSolver};

use super::Model;
use crate::ModelError;

/// How MuJoCo stores the constraint Jacobian. Both ways solve the same problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jacobian {
    /// All elements.
    Dense,
    /// Non-zero elements only: faster for legged robots.
    Sparse,
    /// Dense below 60 degrees of freedom, sparse above.
    Auto,
}

/// Options to set on a model. `None` leaves an option as the model has it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelOptions {
    /// Physics step, s.
    pub timestep: Option<f64>,
    /// Storage of the constraint Jacobian.
    pub jacobian: Option<Jacobian>,
    /// Whether constraints are solved island by island. For a single robot that is extra work.
    pub islands: Option<bool>,
    /// Whether geom pairs are culled by bounding volume hierarchies. For few geoms that is extra work.
    pub midphase: Option<bool>,
}

/// The value of a model option.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// A whole number, or a set of flags as MuJoCo's bits.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Several numbers.
    Numbers(Vec<f64>),
    /// A choice by its MJCF keyword.
    Text(&'static str),
}

impl Model {
    /// The model with some options changed. A model that nothing else refers to is changed in place.
    ///
    /// # Errors
    /// [`ModelError::Option`] for a timestep that is not positive and finite.
    pub fn with_options(mut self, options: &ModelOptions) -> Result<Self, ModelError> {
        let &ModelOptions { timestep, jacobian, islands, midphase } = options;
        if *options == ModelOptions::default() {
            return Ok(self);
        }
        let opt = Arc::make_mut(&mut self.inner).opt_mut();
        if let Some(timestep) = timestep {
            if !(timestep.is_finite() && timestep > 0.0) {
                return Err(ModelError::Option {
                    option: "timestep",
                    requirement: "positive and finite",
                    value: timestep,
                });
            }
            opt.timestep = timestep;
        }
        if let Some(jacobian) = jacobian {
            opt.jacobian = match jacobian {
                Jacobian::Dense => mjtJacobian::mjJAC_DENSE,
                Jacobian::Sparse => mjtJacobian::mjJAC_SPARSE,
                Jacobian::Auto => mjtJacobian::mjJAC_AUTO,
            } as i32;
        }
        let mut enable = |bit: mjtDisableBit, enabled: Option<bool>| match enabled {
            Some(true) => opt.disableflags &= !(bit as i32),
            Some(false) => opt.disableflags |= bit as i32,
            None => {}
        };
        enable(mjtDisableBit::mjDSBL_ISLAND, islands);
        enable(mjtDisableBit::mjDSBL_MIDPHASE, midphase);
        Ok(self)
    }

    /// Physics step, s.
    #[must_use]
    pub fn timestep(&self) -> f64 {
        self.raw().opt.timestep
    }

    /// Gravity in the world frame, m/s².
    #[must_use]
    pub fn gravity(&self) -> [f64; 3] {
        self.raw().opt.gravity
    }

    /// Every option in effect, by MuJoCo's name and in MuJoCo's order.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, OptionValue)> {
        use OptionValue::{Integer, Number, Numbers, Text};
        let opt = &self.raw().opt;
        let choice = |value: i32, names: &[(i32, &'static str)]| {
            names
                .iter()
                .find(|(candidate, _)| *candidate == value)
                .map_or(Integer(value.into()), |(_, name)| Text(name))
        };
        vec![
            ("timestep", Number(opt.timestep)),
            ("impratio", Number(opt.impratio)),
            ("tolerance", Number(opt.tolerance)),
            ("ls_tolerance", Number(opt.ls_tolerance)),
            ("noslip_tolerance", Number(opt.noslip_tolerance)),
            ("ccd_tolerance", Number(opt.ccd_tolerance)),
            ("sleep_tolerance", Number(opt.sleep_tolerance)),
            ("gravity", Numbers(opt.gravity.to_vec())),
            ("wind", Numbers(opt.wind.to_vec())),
            ("magnetic", Numbers(opt.magnetic.to_vec())),
            ("density", Number(opt.density)),
            ("viscosity", Number(opt.viscosity)),
            ("o_margin", Number(opt.o_margin)),
            ("o_solref", Numbers(opt.o_solref.to_vec())),
            ("o_solimp", Numbers(opt.o_solimp.to_vec())),
            ("o_friction", Numbers(opt.o_friction.to_vec())),
            (
                "integrator",
                choice(
                    opt.integrator,
                    &[
                        (mjtIntegrator::mjINT_EULER as i32, "Euler"),
                        (mjtIntegrator::mjINT_RK4 as i32, "RK4"),
                        (mjtIntegrator::mjINT_IMPLICIT as i32, "implicit"),
                        (mjtIntegrator::mjINT_IMPLICITFAST as i32, "implicitfast"),
                        (mjtIntegrator::mjINT_DISCRETE as i32, "discrete"),
                    ],
                ),
            ),
            (
                "cone",
                choice(
                    opt.cone,
                    &[(mjtCone::mjCONE_PYRAMIDAL as i32, "pyramidal"), (mjtCone::mjCONE_ELLIPTIC as i32, "elliptic")],
                ),
            ),
            (
                "jacobian",
                choice(
                    opt.jacobian,
                    &[
                        (mjtJacobian::mjJAC_DENSE as i32, "dense"),
                        (mjtJacobian::mjJAC_SPARSE as i32, "sparse"),
                        (mjtJacobian::mjJAC_AUTO as i32, "auto"),
                    ],
                ),
            ),
            (
                "solver",
                choice(
                    opt.solver,
                    &[
                        (mjtSolver::mjSOL_PGS as i32, "PGS"),
                        (mjtSolver::mjSOL_CG as i32, "CG"),
                        (mjtSolver::mjSOL_NEWTON as i32, "Newton"),
                    ],
                ),
            ),
            ("iterations", Integer(opt.iterations.into())),
            ("ls_iterations", Integer(opt.ls_iterations.into())),
            ("noslip_iterations", Integer(opt.noslip_iterations.into())),
            ("ccd_iterations", Integer(opt.ccd_iterations.into())),
            ("disableflags", Integer(opt.disableflags.into())),
            ("enableflags", Integer(opt.enableflags.into())),
            ("disableactuator", Integer(opt.disableactuator.into())),
            ("sdf_initpoints", Integer(opt.sdf_initpoints.into())),
            ("sdf_iterations", Integer(opt.sdf_iterations.into())),
        ]
    }
}
