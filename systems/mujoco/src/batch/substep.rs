//! One physics step.

use std::ffi::c_int;

use mujoco_rs::mujoco_c::{mjData, mjModel, mjtEnableBit, mjtIntegrator};

use super::refresh::{Refresh, forget_evaluated};
use crate::{Stage, ffi};

/// Takes one physics step: `mj_step`, without the evaluation of sensors where nobody will read them.
///
/// Sensors do not act on the dynamics, and a row with many of them spends up to a tenth of its time on them. The state that
/// is reached has the same bits either way.
///
/// # Safety
/// `model` and `data` are valid and belong together. The call is made in a batch's row callback, by frames that have
/// nothing to destroy.
pub(super) unsafe fn step(model: *const mjModel, data: *mut mjData, sensors: bool) {
    // SAFETY: valid by this function's contract. MuJoCo leaves by `longjmp` when it raises an error; neither this frame
    // nor, by contract, those above it hold anything that would have to be destroyed.
    unsafe {
        if sensors || !is_plain(model) {
            ffi::mj_step(model, data);
            return;
        }
        ffi::mj_checkPos(model, data);
        ffi::mj_checkVel(model, data);
        ffi::mj_forwardSkip(model, data, 0, 1);
        ffi::mj_checkAcc(model, data);
        integrate(model, data);
    }
}

/// Takes one physics step from a state whose position and velocity stages are in `data` already, and evaluates those
/// stages at the state that it reaches: `mj_step2`, then `mj_step1`.
///
/// `sensors` says whether acceleration sensors are evaluated, and `reached` what is at the new state. `mj_step` does the same
/// in the other order, so that a sequence of either reaches states of the same bits.
///
/// # Safety
/// As for [`step`]; besides, [`is_plain`] holds for the model.
pub(super) unsafe fn rotate(model: *const mjModel, data: *mut mjData, sensors: bool, reached: &Refresh) {
    // SAFETY: as in `step`.
    unsafe {
        forget_evaluated(data);
        ffi::mj_forwardSkip(model, data, Stage::Velocity as c_int, c_int::from(!sensors));
        ffi::mj_checkAcc(model, data);
        integrate(model, data);
        evaluate(model, data, reached);
    }
}

/// Checks a state as `mj_step` does first, and evaluates stages at it.
///
/// # Safety
/// As for [`step`].
pub(super) unsafe fn evaluate(model: *const mjModel, data: *mut mjData, refresh: &Refresh) {
    // SAFETY: as in `step`.
    unsafe {
        ffi::mj_checkPos(model, data);
        ffi::mj_checkVel(model, data);
        refresh.run(model, data);
    }
}

/// Advances the state by the accelerations in `data`.
///
/// # Safety
/// As for [`step`]; besides, [`is_plain`] holds for the model.
unsafe fn integrate(model: *const mjModel, data: *mut mjData) {
    // SAFETY: as in `step`.
    unsafe {
        if (*model).opt.integrator == mjtIntegrator::mjINT_EULER as i32 {
            ffi::mj_Euler(model, data);
        } else {
            ffi::mj_implicit(model, data);
        }
    }
}

/// Whether `mj_step` does to the model what [`step`] and [`rotate`] do instead, sensors apart: none of the rarer integrators
/// and features, and no history or plugin that sensors have a part in. The options may differ from row to row.
///
/// # Safety
/// `model` is valid.
pub(super) unsafe fn is_plain(model: *const mjModel) -> bool {
    const INTEGRATORS: [i32; 3] = [
        mjtIntegrator::mjINT_EULER as i32,
        mjtIntegrator::mjINT_IMPLICIT as i32,
        mjtIntegrator::mjINT_IMPLICITFAST as i32,
    ];
    /// The others add steps of their own.
    const FEATURES: i32 = mjtEnableBit::mjENBL_OVERRIDE as i32 | mjtEnableBit::mjENBL_ENERGY as i32;
    // SAFETY: valid by this function's contract.
    let model = unsafe { &*model };
    INTEGRATORS.contains(&model.opt.integrator)
        && model.opt.enableflags & !FEATURES == 0
        && model.nhistory == 0
        && model.nplugin == 0
}
