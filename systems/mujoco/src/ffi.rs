//! Declarations of the parts of MuJoCo's C interface that `mujoco-rs` does not bind as they are needed here.
//!
//! Everything that may run while a batch call is stepping a row is declared `C-unwind`. MuJoCo leaves a failed row
//! by a `longjmp` out of whatever function raised the error, through the row callback, to the batch's own frame; for
//! the callback that is a forced unwind, which the plain `C` ABI does not allow.

use std::ffi::{c_char, c_int, c_void};

use mujoco_rs::mujoco_c::{mjData, mjModel, mjWarningStat, mjtBool, mjtNum};

/// Many simulations of one model on a thread pool.
#[repr(C)]
pub struct mjBatch {
    _opaque: [u8; 0],
}

/// Function run on one simulation by [`mjb_apply`].
pub type mjfBatchFunc = unsafe extern "C-unwind" fn(m: *const mjModel, d: *mut mjData, sim: c_int, arg: *mut c_void);

/// Parameters of [`mjb_makeBatch`].
#[repr(C)]
pub struct mjBatchConfig {
    /// Threads including the caller's; not positive: one for each logical CPU.
    pub nthread: c_int,
    /// One `mjData` for each simulation instead of one for each thread.
    pub persistent: mjtBool,
}

unsafe extern "C-unwind" {
    pub fn mjb_makeBatch(
        m: *const mjModel,
        nsim: c_int,
        config: *const mjBatchConfig,
        error: *mut c_char,
        error_sz: c_int,
    ) -> *mut mjBatch;
    pub fn mjb_deleteBatch(b: *mut mjBatch);

    pub fn mjb_nthread(b: *const mjBatch) -> c_int;
    pub fn mjb_nstate(b: *const mjBatch) -> c_int;
    pub fn mjb_state(b: *mut mjBatch) -> *mut mjtNum;
    pub fn mjb_stateComponent(b: *mut mjBatch, component: c_int, size: *mut c_int) -> *mut mjtNum;
    pub fn mjb_warning(b: *mut mjBatch) -> *mut mjWarningStat;
    pub fn mjb_status(b: *const mjBatch) -> *const c_int;
    pub fn mjb_error(b: *const mjBatch, sim: c_int) -> *const c_char;

    pub fn mjb_step(b: *mut mjBatch, ids: *const c_int, nid: c_int, nstep: c_int, stage: c_int) -> c_int;
    pub fn mjb_forward(b: *mut mjBatch, ids: *const c_int, nid: c_int, stage: c_int) -> c_int;
    pub fn mjb_apply(
        b: *mut mjBatch,
        ids: *const c_int,
        nid: c_int,
        func: mjfBatchFunc,
        arg: *mut c_void,
        save: c_int,
    ) -> c_int;

    pub fn mjb_output(b: *mut mjBatch, name: *const c_char, size: *mut c_int, elemsize: *mut c_int) -> *mut c_void;
    pub fn mjb_expand(b: *mut mjBatch, name: *const c_char, size: *mut c_int, elemsize: *mut c_int) -> *mut c_void;
    pub fn mjb_expanded(b: *mut mjBatch, name: *const c_char, size: *mut c_int, elemsize: *mut c_int) -> *const c_void;
    pub fn mjb_setConst(b: *mut mjBatch, ids: *const c_int, nid: c_int) -> c_int;
}

// What a row callback calls.
unsafe extern "C-unwind" {
    pub fn mj_setState(m: *const mjModel, d: *mut mjData, state: *const mjtNum, sig: c_int);
    pub fn mj_step(m: *const mjModel, d: *mut mjData);
    pub fn mj_forwardSkip(m: *const mjModel, d: *mut mjData, skipstage: c_int, skipsensor: c_int);
    pub fn mj_Euler(m: *const mjModel, d: *mut mjData);
    pub fn mj_implicit(m: *const mjModel, d: *mut mjData);
    pub fn mj_forward(m: *const mjModel, d: *mut mjData);
    pub fn mj_checkPos(m: *const mjModel, d: *mut mjData);
    pub fn mj_checkVel(m: *const mjModel, d: *mut mjData);
    pub fn mj_checkAcc(m: *const mjModel, d: *mut mjData);
    pub fn mj_fwdPosition(m: *const mjModel, d: *mut mjData);
    pub fn mj_fwdVelocity(m: *const mjModel, d: *mut mjData);
    pub fn mj_kinematics(m: *const mjModel, d: *mut mjData);
    pub fn mj_comPos(m: *const mjModel, d: *mut mjData);
    pub fn mj_comVel(m: *const mjModel, d: *mut mjData);
    pub fn mj_collision(m: *const mjModel, d: *mut mjData);
    pub fn mj_sensorPos(m: *const mjModel, d: *mut mjData);
    pub fn mj_sensorVel(m: *const mjModel, d: *mut mjData);
    pub fn mj_objectVelocity(
        m: *const mjModel,
        d: *const mjData,
        objtype: c_int,
        objid: c_int,
        res: *mut mjtNum,
        flg_local: c_int,
    );
}

/// A log message, laid out as MuJoCo's `mjLogMessage`.
#[repr(C)]
pub struct mjLogMessage {
    pub level: c_int,
    pub topic: c_int,
    pub subject: [c_char; 1024],
    pub body: *const c_char,
    pub func: *const c_char,
    pub file: *const c_char,
    pub line: c_int,
    pub timestamp: mjtBool,
}

/// Receives log messages, from any thread.
pub type mjfLogHandler = unsafe extern "C" fn(message: *const mjLogMessage);

unsafe extern "C" {
    pub fn mju_setLogHandler(handler: Option<mjfLogHandler>) -> Option<mjfLogHandler>;
    /// Exchanges the calling thread's own handler, through which a batch traps its rows' errors.
    pub fn _mjPRIVATE_setTlsLogHandler(handler: Option<mjfLogHandler>) -> Option<mjfLogHandler>;
}
