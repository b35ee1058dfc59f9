//! Rows that follow a velocity command in another way than as it was drawn.

use glam::DVec2;
use manege_components::{Draws, rotation};

use super::UniformVelocityCommand;
use crate::build::BuildError;
use crate::config::ConfigError;
use crate::managers::command::{CommandRow, checked_range};

/// Least forward velocity of a row that walks straight on, m/s.
const LEAST_FORWARD_VELOCITY: f32 = 0.3;

/// The modes of a command of which at least one is possible. See [`UniformVelocityCommand`] for what they mean.
#[derive(Debug)]
pub(super) struct Modes {
    heading: [f64; 2],
    stiffness: f64,
    rel_heading: f64,
    rel_standing: f64,
    rel_world: f64,
    rel_forward: f64,
}

/// Places of what a row remembers from draw to draw. Flags are 1 or 0.
mod place {
    pub(super) const STANDS: usize = 0;
    pub(super) const IN_WORLD: usize = 1;
    pub(super) const FACES_HEADING: usize = 2;
    /// Heading to face, rad.
    pub(super) const HEADING: usize = 3;
    /// Linear velocity in the world, x and y, m/s.
    pub(super) const WORLD_VELOCITY: std::ops::Range<usize> = 4..6;
    pub(super) const COUNT: usize = 6;
}

impl Modes {
    /// Values that a row remembers.
    pub(super) const SCRATCH_WIDTH: usize = place::COUNT;

    /// `None` if no mode can fall to any row.
    pub(super) fn build(params: &UniformVelocityCommand) -> Result<Option<Self>, BuildError> {
        let impossible = |path: &str, message: String| ConfigError::Impossible { path: path.to_owned(), message };
        let UniformVelocityCommand { rel_heading, rel_standing, rel_world, rel_forward, .. } = *params;
        let probabilities = [
            ("rel_heading", rel_heading),
            ("rel_standing", rel_standing),
            ("rel_world", rel_world),
            ("rel_forward", rel_forward),
        ];
        for (key, probability) in probabilities {
            if !(0.0..=1.0).contains(&probability) {
                return Err(impossible(key, format!("{probability} is no probability, which is in 0..=1")).into());
            }
        }
        let heading = checked_range("heading", params.heading)?;
        let stiffness = params.heading_stiffness;
        if !(stiffness >= 0.0 && stiffness.is_finite()) {
            let message = format!("{stiffness} 1/s is negative or not finite; it turns rows towards their heading");
            return Err(impossible("heading_stiffness", message).into());
        }
        let possible = probabilities.iter().any(|(_, probability)| *probability > 0.0);
        Ok(possible.then_some(Self { heading, stiffness, rel_heading, rel_standing, rel_world, rel_forward }))
    }

    /// Draws the row's modes for the velocity that it has just been given.
    pub(super) fn resample(&self, row: &mut CommandRow<'_>, draws: &mut Draws) {
        // All are drawn whatever comes of them, so that no probability changes which rows another mode falls to.
        let heading = draws.uniform(self.heading[0], self.heading[1]);
        let [faces_heading, stands, in_world, forward] =
            [self.rel_heading, self.rel_standing, self.rel_world, self.rel_forward]
                .map(|probability| draws.chance(probability));
        if forward {
            row.values[0] = row.values[0].abs().max(LEAST_FORWARD_VELOCITY);
            row.values[1..].fill(0.0);
        }
        let flag = |set: bool| if set { 1.0 } else { 0.0 };
        row.scratch[place::STANDS] = flag(stands);
        row.scratch[place::IN_WORLD] = flag(in_world && !forward);
        row.scratch[place::FACES_HEADING] = flag(faces_heading && !forward);
        row.scratch[place::HEADING] = heading as f32;
        row.scratch[place::WORLD_VELOCITY].copy_from_slice(&row.values[..2]);
    }

    /// Has the row's command follow where the root faces: `yaw`, rad, asked for only if it matters.
    pub(super) fn update(&self, row: &mut CommandRow<'_>, yaw: impl FnOnce() -> f64, yaw_rates: [f64; 2]) {
        let is_set = |place: usize| row.scratch[place] != 0.0;
        if is_set(place::STANDS) {
            row.values.fill(0.0);
            return;
        }
        let (in_world, faces_heading) = (is_set(place::IN_WORLD), is_set(place::FACES_HEADING));
        if !in_world && !faces_heading {
            return;
        }
        let yaw = yaw();
        if in_world {
            let [x, y] = [0, 1].map(|i| f64::from(row.scratch[place::WORLD_VELOCITY][i]));
            let velocity = DVec2::from_angle(-yaw).rotate(DVec2::new(x, y));
            row.values[..2].copy_from_slice(&velocity.as_vec2().to_array());
        }
        if faces_heading {
            let error = rotation::wrap_angle(f64::from(row.scratch[place::HEADING]) - yaw);
            // Not `clamp`, which panics on a range that is empty.
            row.values[2] = (self.stiffness * error).max(yaw_rates[0]).min(yaw_rates[1]) as f32;
        }
    }
}
