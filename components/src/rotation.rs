//! The one place where engine quaternions (`wxyz`) become [`glam`] ones, and the rotations that the tasks are written in.

use glam::{DQuat, DVec3};

/// A quaternion from engine order.
///
/// # Panics
/// If `wxyz` has fewer than 4 values.
#[must_use]
pub fn from_wxyz(wxyz: &[f64]) -> DQuat {
    DQuat::from_xyzw(wxyz[1], wxyz[2], wxyz[3], wxyz[0])
}

/// A quaternion in engine order.
#[must_use]
pub fn to_wxyz(rotation: DQuat) -> [f64; 4] {
    [rotation.w, rotation.x, rotation.y, rotation.z]
}

/// A quaternion of single precision from engine order.
#[must_use]
pub fn from_wxyz_f32([w, x, y, z]: [f32; 4]) -> DQuat {
    DQuat::from_xyzw(f64::from(x), f64::from(y), f64::from(z), f64::from(w))
}

/// A vector from three consecutive values.
///
/// # Panics
/// If `values` has fewer than 3 values.
#[must_use]
pub fn vec3(values: &[f64]) -> DVec3 {
    DVec3::new(values[0], values[1], values[2])
}

/// The rotation by roll about x, then pitch about y, then yaw about z, all about fixed axes: Rz·Ry·Rx.
#[must_use]
pub fn from_roll_pitch_yaw(roll: f64, pitch: f64, yaw: f64) -> DQuat {
    DQuat::from_rotation_z(yaw) * DQuat::from_rotation_y(pitch) * DQuat::from_rotation_x(roll)
}

/// The heading of a rotation: the yaw of its roll-pitch-yaw decomposition, rad in `(-π, π]`.
#[must_use]
pub fn yaw(rotation: DQuat) -> f64 {
    let DQuat { x, y, z, w } = rotation;
    (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z))
}

/// The turn about z with the [`yaw`] of a rotation.
#[must_use]
pub fn heading(rotation: DQuat) -> DQuat {
    DQuat::from_rotation_z(yaw(rotation))
}

/// The angle of the rotation that takes `from` to `to`, rad in `[0, π]`; exact for small angles too, where the arc cosine of
/// the quaternions' product is not.
#[must_use]
pub fn angle_between(from: DQuat, to: DQuat) -> f64 {
    let difference = to * from.conjugate();
    2.0 * difference.xyz().length().atan2(difference.w.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    #[test]
    fn wxyz_round_trip_and_meaning() {
        let s = 0.5f64.sqrt();
        let quarter_turn = from_wxyz(&[s, 0.0, 0.0, s]);
        assert!((quarter_turn * DVec3::X - DVec3::Y).length() < 1e-15);
        assert_eq!(to_wxyz(quarter_turn), [s, 0.0, 0.0, s]);
    }

    #[test]
    fn roll_pitch_yaw_matches_the_closed_formula() {
        let (r, p, y) = (0.3f64, -0.7f64, 1.9f64);
        let (sr, cr) = (r / 2.0).sin_cos();
        let (sp, cp) = (p / 2.0).sin_cos();
        let (sy, cy) = (y / 2.0).sin_cos();
        let expected = [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ];
        for (a, b) in to_wxyz(from_roll_pitch_yaw(r, p, y)).iter().zip(expected) {
            assert!((a - b).abs() < 1e-15);
        }
        assert!((yaw(from_roll_pitch_yaw(r, p, y)) - y).abs() < 1e-14);
        assert!((yaw(DQuat::from_rotation_z(-FRAC_PI_2)) + FRAC_PI_2).abs() < 1e-15);
    }

    #[test]
    fn headings_and_angles_are_those_of_the_turns_they_were_made_from() {
        let tilt = from_roll_pitch_yaw(0.2, -0.4, 2.5);
        assert!(heading(tilt).abs_diff_eq(DQuat::from_rotation_z(2.5), 1e-14));
        for angle in [0.0, 1e-9, 0.3, 3.0] {
            let axis = DVec3::new(1.0, -2.0, 0.5).normalize();
            let turned = DQuat::from_axis_angle(axis, angle) * tilt;
            assert!((angle_between(tilt, turned) - angle).abs() < 1e-15 + 1e-14 * angle);
            assert!((angle_between(tilt, -turned) - angle).abs() < 1e-15 + 1e-14 * angle, "both signs are one turn");
        }
    }
}
