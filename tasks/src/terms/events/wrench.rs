//! Forces and torques that act for a time.

use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::event::{EventRow, EventTerm};
use manege_systems::tunable::TunableRange;
use manege_systems::wrench::{Wrench, WrenchHandle};
use serde::{Deserialize, Serialize};

use super::ranges::{AxisRanges, AxisTunable, Range, tunable};
use crate::terms::resolve::impossible;

/// Lets a drawn force and torque, constant in the world frame, act on a body for a drawn time.
///
/// The force acts at the body's centre of mass. The time is rounded to whole control steps, of which there is at least one;
/// all physics steps of these feel the force. A new trigger takes the place of one whose time is not up, and a reset ends it;
/// so a trigger at startup, before the first reset, has no effect. Forces of several terms on the same body add up.
/// Curricula may change the ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyExternalWrench {
    /// Name of the body.
    pub body: String,
    /// Force, N.
    pub force: AxisRanges,
    /// Torque, N·m.
    pub torque: AxisRanges,
    /// How long it acts, s.
    pub duration: Range,
}

struct ExternalWrench {
    source: WrenchHandle,
    force: AxisTunable,
    torque: AxisTunable,
    duration: TunableRange,
    control_period: f64,
}

impl TermParams<dyn EventTerm> for ApplyExternalWrench {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let body = context.body(&self.body)?;
        if body == 0 {
            return Err(impossible("body", format!("`{}` is the world, which no force moves", self.body)));
        }
        if self.duration[0] < 0.0 {
            return Err(impossible("duration", format!("{:?} s is no range of times", self.duration)));
        }
        Ok(Box::new(ExternalWrench {
            source: context.wrench(body)?,
            force: self.force.tunable("force", context)?,
            torque: self.torque.tunable("torque", context)?,
            duration: tunable("duration", self.duration, context)?,
            control_period: context.control_period(),
        }))
    }
}

impl EventTerm for ExternalWrench {
    fn apply(&self, row: &mut EventRow<'_>) {
        let force = self.force.draw(&mut row.draws);
        let torque = self.torque.draw(&mut row.draws);
        let [low, high] = self.duration.get();
        let steps = (row.draws.uniform(low, high) / self.control_period).round().max(1.0) as u32;
        row.wrenches.hold(self.source, Wrench { force, torque }, steps);
    }

    fn randomizes(&self) -> bool {
        true
    }
}
