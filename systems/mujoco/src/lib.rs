//! A safe wrapper over MuJoCo's batch API: many simulations ("rows") of one model, stepped together on a few threads.
//!
//! - [`Model`] loads, adjusts, describes and saves compiled models.
//! - [`Batch`] holds the rows. [`Batch::step`] advances them by several physics steps in one dispatch, recomputing
//!   controls from each row's state in between where asked to, and copies the [outputs](Source) that were declared into
//!   one dense buffer while the row's data is in cache.
//! - A row that fails, by an engine error, a value that is not finite or a panic in a control callback, is listed in
//!   [`Batch::faults`]; the other rows are not affected.
//!
//! ```
//! use manege_mujoco::{Batch, BatchOptions, Model, Source, Step};
//!
//! let model = Model::from_xml_str(
//!     "<mujoco>
//!        <worldbody>
//!          <body name='pole'>
//!            <joint name='hinge' axis='0 1 0'/>
//!            <geom type='capsule' fromto='0 0 0 0 0 -1' size='.05'/>
//!          </body>
//!        </worldbody>
//!      </mujoco>",
//! )?;
//! let options = BatchOptions { rows: 4, outputs: vec![Source::Qpos], ..BatchOptions::default() };
//! let mut batch = Batch::new(&model, &options)?;
//!
//! for row in 0..batch.rows() {
//!     batch.qpos_mut(row)?[0] = 0.1 * row as f64;
//! }
//! batch.step(&Step { substeps: 5, ..Step::default() })?;
//! assert!(batch.faults().is_empty());
//! assert_eq!(batch.outputs()[0], 0.0);
//! assert!(batch.outputs()[3] < 0.3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This is the only crate of the workspace with `unsafe` code; what keeps it sound is stated where it is used.

// The point of the crate.
#![allow(unsafe_code)]

mod batch;
mod error;
#[allow(non_camel_case_types, non_snake_case)]
mod ffi;
mod log;
mod model;

pub use batch::{
    Batch, BatchOptions, Control, DataField, Element, Freshness, ModelField, SensorSchedule, Source, StateField, Step,
    Warning,
};
pub use error::{BatchError, FaultReason, ModelError, RowFault, Unstable};
pub use log::install_log_handler;
pub use model::{
    Actuator, Body, ForceLaw, Jacobian, Joint, JointKind, Keyframe, Model, ModelOptions, ObjectKind, OptionValue,
    Sensor, Stage,
};
