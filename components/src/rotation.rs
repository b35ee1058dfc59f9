//! The one place where engine quaternions (`wxyz`) become [`glam`] ones, and the rotations that the tasks are written in.

use std::f64::consts::{PI, TAU};

use glam::{DQuat, DVec3};

/// A quaternion from engine order.
///
/// # Panics
/// If `wxyz` has fewer than 4 values.
#[must_use]
#[inline]
pub fn from_wxyz(wxyz: &[f64]) -> DQuat {
    DQuat::from_xyzw(wxyz[1], wxyz[2], wxyz[3], wxyz[0])
}

/// A quaternion in engine order.
#[must_use]
#[inline]
pub fn to_wxyz(rotation: DQuat) -> [f64; 4] {
    [rotation.w, rotation.x, rotation.y, rotation.z]
}

/// A quaternion of single precision from engine order.
#[must_use]
#[inline]
pub fn from_wxyz_f32([w, x, y, z]: [f32; 4]) -> DQuat {
    DQuat::from_xyzw(f64::from(x), f64::from(y), f64::from(z), f64::from(w))
}

/// A vector from three consecutive values.
///
/// # Panics
/// If `values` has fewer than 3 values.
#[must_use]
#[inline]
pub fn vec3(values: &[f64]) -> DVec3 {
    DVec3::new(values[0], values[1], values[2])
}

/// The rotation by roll about x, then pitch about y, then yaw about z, all about fixed axes: Rz·Ry·Rx.
#[must_use]
#[inline]
pub fn from_roll_pitch_yaw(roll: f64, pitch: f64, yaw: f64) -> DQuat {
    DQuat::from_rotation_z(yaw) * DQuat::from_rotation_y(pitch) * DQuat::from_rotation_x(roll)
}

/// The heading of a rotation: the yaw of its roll-pitch-yaw decomposition, rad in `(-π, π]`.
#[must_use]
#[inline]
pub fn yaw(rotation: DQuat) -> f64 {
    let DQuat { x, y, z, w } = rotation;
    (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z))
}

/// The turn about z with the [`yaw`] of a rotation.
#[must_use]
#[inline]
pub fn heading(rotation: DQuat) -> DQuat {
    DQuat::from_rotation_z(yaw(rotation))
}

/// The same angle in `(-π, π]`, rad.
#[must_use]
#[inline]
pub fn wrap_angle(angle: f64) -> f64 {
    PI - (PI - angle).rem_euclid(TAU)
}

/// The angle of the rotation that leads from one orientation to the other, rad in `[0, π]`. The quaternions' lengths do
/// not matter.
#[must_use]
#[inline]
pub fn angle_between(a: DQuat, b: DQuat) -> f64 {
    let difference = a.conjugate() * b;
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
    fn headings_are_the_turns_about_the_vertical() {
        let tilt = from_roll_pitch_yaw(0.2, -0.4, 2.5);
        assert!(heading(tilt).abs_diff_eq(DQuat::from_rotation_z(2.5), 1e-14));
    }

    #[test]
    fn angles_wrap_at_pi() {
        for (angle, wrapped) in
            [(0.0, 0.0), (PI, PI), (-PI, PI), (3.5, 3.5 - TAU), (-3.5, TAU - 3.5), (13.0, 13.0 - 2.0 * TAU)]
        {
            assert!((wrap_angle(angle) - wrapped).abs() < 1e-14, "{angle}: {}", wrap_angle(angle));
        }
    }

    #[test]
    fn the_angle_between_orientations_takes_the_short_way() {
        let axis = DVec3::new(0.6, 0.0, -0.8);
        let base = from_roll_pitch_yaw(0.3, -0.7, 1.9);
        for angle in [0.0, 1e-9, 1.0, 3.0, PI] {
            for turn in [angle, -angle, TAU - angle] {
                let turned = base * DQuat::from_axis_angle(axis, turn);
                assert!((angle_between(base, turned) - angle).abs() < 1e-14, "{turn}");
                assert!((angle_between(base * 3.0, -turned) - angle).abs() < 1e-14, "{turn}");
            }
        }
    }
}
