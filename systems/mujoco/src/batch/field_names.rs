//! The fields of MuJoCo's structures that a batch handles by name, with their element types.
//!
//! MuJoCo's own tables know more fields, but not their types. Here the compiler checks the types against the bindings.
//!
//! Model fields that MuJoCo uses to find its way in memory (addresses, counts, numbers of other objects, and the few
//! floating-point fields that hold such) are left out: with a wrong value in one of them MuJoCo would read or write out
//! of bounds. So are those of deformable bodies, and of visuals.

use mujoco_rs::mujoco_c::{mjData, mjModel, mjOption};

/// The element type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementKind {
    /// `f64`
    Number,
    /// `i32`
    Integer,
    /// `bool`
    Flag,
}

/// A field that stores values of type `T`.
trait Holds<T> {}
impl<T> Holds<T> for T {}
impl<T> Holds<T> for *mut T {}
impl<T, const N: usize> Holds<T> for [T; N] {}

fn holds<T, Field: Holds<T>>(_: &Field) {}

macro_rules! fields {
    ($(#[$doc:meta])* $table:ident: $structure:ty, $prefix:literal,
     f64 [$($number:ident,)*] i32 [$($integer:ident,)*] bool [$($flag:ident,)*]) => {
        $(#[$doc])*
        pub const $table: &[(&str, ElementKind)] = &[
            $((concat!($prefix, stringify!($number)), ElementKind::Number),)*
            $((concat!($prefix, stringify!($integer)), ElementKind::Integer),)*
            $((concat!($prefix, stringify!($flag)), ElementKind::Flag),)*
        ];
        const _: fn(&$structure) = |_structure| {
            $(holds::<f64, _>(&_structure.$number);)*
            $(holds::<i32, _>(&_structure.$integer);)*
            $(holds::<bool, _>(&_structure.$flag);)*
        };
    };
}

fields! {
    /// Fields of `mjData` that are not part of the state.
    DATA: mjData, "",
    f64 [
        M, act_dot, actuator_force, actuator_length, actuator_moment, actuator_velocity, cacc, cam_xmat, cam_xpos,
        cdof, cdof_dot, cfrc_ext, cfrc_int, cinert, crb, cvel, energy, flexedge_J, flexedge_length,
        flexedge_velocity, flexvert_J, flexvert_length, flexvert_xpos, geom_xmat, geom_xpos, light_xdir, light_xpos,
        qDeriv, qH, qHDiagInv, qLD, qLDiagInv, qLU, qacc, qacc_smooth, qfrc_actuator, qfrc_adhesion, qfrc_bias,
        qfrc_constraint, qfrc_damper, qfrc_fluid, qfrc_gravcomp, qfrc_inverse, qfrc_passive, qfrc_smooth,
        qfrc_spring, sensordata, site_xmat, site_xpos, solver_fwdinv, subtree_angmom, subtree_com, subtree_linvel,
        ten_J, ten_length, ten_velocity, wrap_xpos, xanchor, xaxis, ximat, xipos, xmat, xpos, xquat,
    ]
    i32 [
        body_awake, moment_colind, moment_rowadr, moment_rownnz, nJ, ncon, ne, nefc, nf, nidof, nisland, nl,
        solver_niter, solver_nnz, ten_wrapadr, ten_wrapnum, tree_asleep, tree_awake, wrap_obj,
    ]
    bool []
}

fields! {
    /// Array fields of `mjModel` that rows may have values of their own for.
    MODEL: mjModel, "",
    f64 [
        actuator_acc0, actuator_actrange, actuator_armature, actuator_biasprm, actuator_cranklength,
        actuator_ctrlrange, actuator_damping, actuator_dampingpoly, actuator_forcerange, actuator_gainprm,
        actuator_gear, actuator_length0, actuator_lengthrange, body_gravcomp, body_inertia, body_invweight0,
        body_ipos, body_iquat, body_margin, body_mass, body_pos, body_quat, body_subtreemass, cam_fovy, cam_pos,
        cam_quat, dof_M0, dof_armature, dof_damping, dof_dampingpoly, dof_frictionloss, dof_invweight0, dof_solimp,
        dof_solref, eq_solimp, eq_solref, geom_adhesion, geom_fluid, geom_friction, geom_gap, geom_margin, geom_pos,
        geom_quat, geom_rbound, geom_size, geom_solimp, geom_solmix, geom_solref, geom_surfacevel, jnt_actfrcrange,
        jnt_axis, jnt_margin, jnt_pos, jnt_range, jnt_solimp, jnt_solref, jnt_stiffness, jnt_stiffnesspoly,
        pair_adhesion, pair_friction, pair_gap, pair_margin, pair_solimp, pair_solref, pair_solreffriction, qpos0,
        qpos_spring, sensor_cutoff, sensor_noise, site_pos, site_quat, site_size, tendon_actfrcrange,
        tendon_armature, tendon_damping, tendon_dampingpoly, tendon_frictionloss, tendon_invweight0,
        tendon_length0, tendon_lengthspring, tendon_margin, tendon_range, tendon_solimp_fri, tendon_solimp_lim,
        tendon_solref_fri, tendon_solref_lim, tendon_stiffness, tendon_stiffnesspoly, tendon_width,
    ]
    i32 []
    bool [
        actuator_actearly, actuator_actlimited, actuator_ctrllimited, actuator_forcelimited, eq_active0,
        jnt_actfrclimited, jnt_actgravcomp, jnt_limited, tendon_actfrclimited, tendon_limited,
    ]
}

fields! {
    /// Fields of the model's options that rows may have values of their own for.
    OPTIONS: mjOption, "opt.",
    f64 [
        timestep, impratio, tolerance, ls_tolerance, noslip_tolerance, ccd_tolerance, gravity, wind, magnetic,
        density, viscosity, o_margin, o_solref, o_solimp, o_friction,
    ]
    i32 [
        integrator, cone, jacobian, solver, iterations, ls_iterations, noslip_iterations, ccd_iterations,
        disableflags, enableflags, disableactuator,
    ]
    bool []
}
