//! Names and numbers of a model's objects.

use std::ffi::{CStr, CString};
use std::fmt;

use mujoco_rs::mujoco_c::{_mjtObjBase as Obj, mj_id2name, mj_name2id};

use super::Model;
use crate::ModelError;
use crate::error::nearest;

/// The kinds of objects that models name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectKind {
    /// Rigid bodies; number 0 is the world.
    Body,
    /// Joints, free joints included.
    Joint,
    /// Collision and visual shapes.
    Geom,
    /// Sites.
    Site,
    /// Cameras.
    Camera,
    /// Tendons.
    Tendon,
    /// Actuators.
    Actuator,
    /// Sensors.
    Sensor,
    /// Keyframes.
    Keyframe,
}

impl ObjectKind {
    fn object(self) -> Obj {
        match self {
            Self::Body => Obj::mjOBJ_BODY,
            Self::Joint => Obj::mjOBJ_JOINT,
            Self::Geom => Obj::mjOBJ_GEOM,
            Self::Site => Obj::mjOBJ_SITE,
            Self::Camera => Obj::mjOBJ_CAMERA,
            Self::Tendon => Obj::mjOBJ_TENDON,
            Self::Actuator => Obj::mjOBJ_ACTUATOR,
            Self::Sensor => Obj::mjOBJ_SENSOR,
            Self::Keyframe => Obj::mjOBJ_KEY,
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Body => "body",
            Self::Joint => "joint",
            Self::Geom => "geom",
            Self::Site => "site",
            Self::Camera => "camera",
            Self::Tendon => "tendon",
            Self::Actuator => "actuator",
            Self::Sensor => "sensor",
            Self::Keyframe => "keyframe",
        })
    }
}

/// A size of the model. MuJoCo never makes one negative.
fn size(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

impl Model {
    /// Length of `qpos`.
    #[must_use]
    pub fn nq(&self) -> usize {
        size(self.raw().nq)
    }

    /// Length of `qvel`: the number of degrees of freedom.
    #[must_use]
    pub fn nv(&self) -> usize {
        size(self.raw().nv)
    }

    /// Length of `ctrl`. An actuator may have several controls.
    #[must_use]
    pub fn nu(&self) -> usize {
        size(self.raw().nu)
    }

    /// Number of actuator activations.
    #[must_use]
    pub fn na(&self) -> usize {
        size(self.raw().na)
    }

    /// Length of `sensordata`.
    #[must_use]
    pub fn nsensordata(&self) -> usize {
        size(self.raw().nsensordata)
    }

    /// Number of objects of a kind.
    #[must_use]
    pub fn count(&self, kind: ObjectKind) -> usize {
        let model = self.raw();
        size(match kind {
            ObjectKind::Body => model.nbody,
            ObjectKind::Joint => model.njnt,
            ObjectKind::Geom => model.ngeom,
            ObjectKind::Site => model.nsite,
            ObjectKind::Camera => model.ncam,
            ObjectKind::Tendon => model.ntendon,
            ObjectKind::Actuator => model.nactuator,
            ObjectKind::Sensor => model.nsensor,
            ObjectKind::Keyframe => model.nkey,
        })
    }

    /// The name of an object; empty if it has none, or if there is no such object.
    #[must_use]
    pub fn name(&self, kind: ObjectKind, id: usize) -> &str {
        let Ok(id) = i32::try_from(id) else { return "" };
        // SAFETY: the model is valid; MuJoCo checks the number.
        let name = unsafe { mj_id2name(self.raw(), kind.object() as i32, id) };
        if name.is_null() {
            return "";
        }
        // SAFETY: not null, so a NUL-terminated string in the model's own memory, which `self` keeps alive.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
    }

    /// The names of all objects of a kind in model order, empty for those without.
    pub fn names(&self, kind: ObjectKind) -> impl ExactSizeIterator<Item = &str> {
        (0..self.count(kind)).map(move |id| self.name(kind, id))
    }

    /// The number of a named object.
    ///
    /// # Errors
    /// [`ModelError::UnknownName`] lists the nearest names of that kind.
    pub fn id(&self, kind: ObjectKind, name: &str) -> Result<usize, ModelError> {
        let id = CString::new(name).ok().and_then(|name| {
            // SAFETY: the model is valid and the name NUL-terminated.
            let id = unsafe { mj_name2id(self.raw(), kind.object() as i32, name.as_ptr()) };
            usize::try_from(id).ok()
        });
        id.ok_or_else(|| ModelError::UnknownName {
            kind,
            name: name.to_owned(),
            nearest: nearest(name, self.names(kind)),
        })
    }
}
