//! Reading and writing the rows' states.

use std::ffi::c_int;
use std::ptr::NonNull;

use mujoco_rs::mujoco_c::{mjtState, mjtWarning};

use super::Batch;
use crate::model::{array, array_mut};
use crate::{BatchError, ffi};

/// A part of a row's state.
///
/// Engine plugins' states and the history of delayed sensors and actuators belong to the state too, but cannot be
/// written one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateField {
    /// Simulated time, 1 value, s.
    Time,
    /// Generalised positions, `nq` values.
    Qpos,
    /// Generalised velocities, `nv` values.
    Qvel,
    /// Actuator activations, `na` values.
    Act,
    /// The acceleration that the constraint solver starts from, `nv` values.
    QaccWarmstart,
    /// Controls, `nu` values.
    Ctrl,
    /// Applied generalised forces, `nv` values.
    QfrcApplied,
    /// Applied force (N) and torque (N·m) on each body in the world frame, `bodies × 6` values.
    XfrcApplied,
    /// Whether each equality constraint is active (not 0).
    EqActive,
    /// Positions of the mocap bodies, m.
    MocapPos,
    /// Orientations of the mocap bodies, `wxyz`.
    MocapQuat,
    /// Whatever the model's author keeps in `userdata`.
    Userdata,
}

impl StateField {
    const ALL: [(Self, mjtState); 12] = [
        (Self::Time, mjtState::mjSTATE_TIME),
        (Self::Qpos, mjtState::mjSTATE_QPOS),
        (Self::Qvel, mjtState::mjSTATE_QVEL),
        (Self::Act, mjtState::mjSTATE_ACT),
        (Self::QaccWarmstart, mjtState::mjSTATE_WARMSTART),
        (Self::Ctrl, mjtState::mjSTATE_CTRL),
        (Self::QfrcApplied, mjtState::mjSTATE_QFRC_APPLIED),
        (Self::XfrcApplied, mjtState::mjSTATE_XFRC_APPLIED),
        (Self::EqActive, mjtState::mjSTATE_EQ_ACTIVE),
        (Self::MocapPos, mjtState::mjSTATE_MOCAP_POS),
        (Self::MocapQuat, mjtState::mjSTATE_MOCAP_QUAT),
        (Self::Userdata, mjtState::mjSTATE_USERDATA),
    ];
}

// The table is indexed by the fields.
const _: () = {
    let mut index = 0;
    while index < StateField::ALL.len() {
        assert!(StateField::ALL[index].0 as usize == index);
        index += 1;
    }
};

/// Where each part of the state is within a row.
pub(super) struct Layout([std::ops::Range<usize>; StateField::ALL.len()]);

impl Layout {
    /// # Safety
    /// `raw` is a batch.
    pub(super) unsafe fn new(raw: NonNull<ffi::mjBatch>) -> Self {
        Self(StateField::ALL.map(|(_, component)| {
            let mut size: c_int = 0;
            // SAFETY: a batch, and a single component; the address is within the first row.
            let offset = unsafe {
                let address = ffi::mjb_stateComponent(raw.as_ptr(), component as c_int, &mut size);
                if address.is_null() || size <= 0 {
                    return 0..0;
                }
                address.offset_from_unsigned(ffi::mjb_state(raw.as_ptr()))
            };
            offset..offset + size.unsigned_abs() as usize
        }))
    }

    fn range(&self, field: StateField) -> std::ops::Range<usize> {
        self.0[field as usize].clone()
    }
}

/// The batch's state rows.
pub(super) struct Rows {
    first: *mut f64,
    rows: usize,
    width: usize,
}

impl Rows {
    /// # Safety
    /// `raw` is a batch of `rows` rows that outlives the result.
    pub(super) unsafe fn new(raw: NonNull<ffi::mjBatch>, rows: usize) -> Self {
        // SAFETY: a batch.
        let (first, width) = unsafe { (ffi::mjb_state(raw.as_ptr()), ffi::mjb_nstate(raw.as_ptr())) };
        Self { first, rows, width: usize::try_from(width).unwrap_or(0) }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The first row's first value; rows follow each other without gaps.
    pub(super) fn as_ptr(&self) -> *const f64 {
        self.first
    }

    pub(super) fn row(&self, row: usize) -> &[f64] {
        assert!(row < self.rows, "callers check rows");
        // SAFETY: the row exists, and nothing writes to it while `self` is borrowed.
        unsafe { array(self.first.add(row * self.width), self.width) }
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f64] {
        assert!(row < self.rows, "callers check rows");
        // SAFETY: the row exists, and nothing else reads or writes it while `self` is borrowed mutably.
        unsafe { array_mut(self.first.add(row * self.width), self.width) }
    }
}

/// What MuJoCo warns of without giving up on a row.
///
/// Values that are not finite or too large are [faults](Batch::faults) instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Warning {
    /// The inertia matrix is almost singular.
    Inertia = mjtWarning::mjWARN_INERTIA as i32,
    /// There was no memory for all contacts: some were dropped.
    ContactsFull = mjtWarning::mjWARN_CONTACTFULL as i32,
    /// There was no memory for all constraints: some were dropped.
    ConstraintsFull = mjtWarning::mjWARN_CNSTRFULL as i32,
}

impl Batch {
    /// How often MuJoCo has warned of something while stepping a row. MuJoCo starts anew when it resets an unstable row.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn warnings(&self, warning: Warning, row: usize) -> Result<u32, BatchError> {
        self.check_row(row)?;
        let index = row * mjtWarning::mjNWARNING as usize + warning as usize;
        // SAFETY: there is a counter for each row and kind of warning, and nothing writes to them between calls.
        let counter = unsafe { &*ffi::mjb_warning(self.raw.as_ptr()).add(index) };
        Ok(u32::try_from(counter.number).unwrap_or(0))
    }

    /// A part of a row's state; empty if the model has no such part.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn state(&self, field: StateField, row: usize) -> Result<&[f64], BatchError> {
        self.check_row(row)?;
        Ok(&self.state.row(row)[self.layout.range(field)])
    }

    /// A part of a row's state, to be written. It takes effect at the row's next call; [`refresh`](Self::refresh) brings
    /// the row's outputs up to date before that.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn state_mut(&mut self, field: StateField, row: usize) -> Result<&mut [f64], BatchError> {
        self.check_row(row)?;
        self.evaluated[row] = false;
        Ok(&mut self.state.row_mut(row)[self.layout.range(field)])
    }

    /// A row's generalised positions.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn qpos(&self, row: usize) -> Result<&[f64], BatchError> {
        self.state(StateField::Qpos, row)
    }

    /// A row's generalised positions, to be written as by [`state_mut`](Self::state_mut).
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn qpos_mut(&mut self, row: usize) -> Result<&mut [f64], BatchError> {
        self.state_mut(StateField::Qpos, row)
    }

    /// A row's generalised velocities.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn qvel(&self, row: usize) -> Result<&[f64], BatchError> {
        self.state(StateField::Qvel, row)
    }

    /// A row's generalised velocities, to be written as by [`state_mut`](Self::state_mut).
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn qvel_mut(&mut self, row: usize) -> Result<&mut [f64], BatchError> {
        self.state_mut(StateField::Qvel, row)
    }

    /// Gives rows the whole state that they had when the batch was made. Per-row model fields stay as they are, and
    /// outputs stay as they were until [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// [`BatchError::Row`] for rows that do not exist, or are not ascending and unique.
    pub fn reset_rows(&mut self, rows: Option<&[u32]>) -> Result<(), BatchError> {
        for row in self.select(rows)?.rows(self.rows) {
            self.evaluated[row as usize] = false;
            self.state.row_mut(row as usize).copy_from_slice(&self.initial);
        }
        Ok(())
    }
}
