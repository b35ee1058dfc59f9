//! Rewards for following a velocity command, whichever velocity it is that follows.

use glam::DVec3;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::managers::reward::{RewardTerm, reward};
use manege_systems::row_view::RowView;

use super::resolve;

/// `exp(-|c_xy - v_xy|² / std²)` for a velocity `v`, m/s.
pub(super) fn linear(
    context: &BuildContext<'_>,
    command: &str,
    std: f64,
    velocity: impl Fn(&RowView<'_>) -> DVec3 + Send + Sync + 'static,
) -> Result<Box<dyn RewardTerm>, BuildError> {
    let command = resolve::velocity_command(context, command)?;
    let variance = resolve::positive("std", std)?.powi(2);
    Ok(reward(move |row| {
        let (wanted, velocity) = (row.command(command), velocity(row));
        let error = (f64::from(wanted[0]) - velocity.x).powi(2) + (f64::from(wanted[1]) - velocity.y).powi(2);
        (-error / variance).exp() as f32
    }))
}

/// `exp(-(c_z - ω_z)² / std²)` for an angular velocity `ω`, rad/s.
pub(super) fn angular(
    context: &BuildContext<'_>,
    command: &str,
    std: f64,
    velocity: impl Fn(&RowView<'_>) -> DVec3 + Send + Sync + 'static,
) -> Result<Box<dyn RewardTerm>, BuildError> {
    let command = resolve::velocity_command(context, command)?;
    let variance = resolve::positive("std", std)?.powi(2);
    Ok(reward(move |row| {
        let error = f64::from(row.command(command)[2]) - velocity(row).z;
        (-error * error / variance).exp() as f32
    }))
}
