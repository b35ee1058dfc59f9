//! Names and patterns to indices of bodies, geoms and actuators.

use super::{BuildContext, BuildError, matching};

impl BuildContext<'_> {
    /// Indices of the bodies that any of the patterns matches, in model order. The world is not among them.
    ///
    /// A pattern is as in [`joints`](Self::joints).
    ///
    /// # Errors
    /// A pattern is no regular expression, or matches nothing.
    pub fn bodies(&self, patterns: &[String]) -> Result<Vec<usize>, BuildError> {
        let names: Vec<&str> = self.info().bodies.iter().skip(1).map(|body| body.name.as_str()).collect();
        Ok(matching("body", patterns, &names)?.into_iter().map(|body| body + 1).collect())
    }

    /// Indices of the geoms that any of the patterns matches, in model order. Geoms without a name have an empty one.
    ///
    /// A pattern is as in [`joints`](Self::joints).
    ///
    /// # Errors
    /// A pattern is no regular expression, or matches nothing.
    pub fn geoms(&self, patterns: &[String]) -> Result<Vec<usize>, BuildError> {
        let names: Vec<&str> = self.info().geoms.iter().map(String::as_str).collect();
        matching("geom", patterns, &names)
    }

    /// Indices of the actuators that any of the patterns matches, in control order.
    ///
    /// A pattern is as in [`joints`](Self::joints).
    ///
    /// # Errors
    /// A pattern is no regular expression, or matches nothing.
    pub fn actuators(&self, patterns: &[String]) -> Result<Vec<usize>, BuildError> {
        let names: Vec<&str> = self.info().actuators.iter().map(|actuator| actuator.name.as_str()).collect();
        matching("actuator", patterns, &names)
    }
}
