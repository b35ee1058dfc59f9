//! What the sensors that outputs were declared for look at.

use std::ffi::c_int;
use std::ptr;

use mujoco_rs::mujoco_c::{mjModel, mjtObj, mjtSensor};

use super::output::Source;
use crate::model::array;
use crate::{Model, ObjectKind, Stage};

/// Narrows a model to what some of its sensors look at, so that evaluating those costs no more than they do.
///
/// The other sensors keep the values that they have. If every contact sensor among the declared ones names two geoms, as
/// those of feet on a floor do, only the contacts of such geoms are looked for. Their order stays, so that what the sensors
/// read has the same bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Watched {
    /// `sensor_needstage`, in which the sensors that nobody asked for need none.
    stages: Box<[c_int]>,
    masks: Option<Masks>,
}

/// Collision masks that only let those geoms collide which contact sensors name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Masks {
    geom_contype: Box<[c_int]>,
    geom_conaffinity: Box<[c_int]>,
    body_contype: Box<[c_int]>,
    body_conaffinity: Box<[c_int]>,
}

impl Watched {
    /// What the declared sensors look at; `None` if that cannot be told from what others do.
    pub(super) fn new(model: &Model, sources: &[Source]) -> Option<Self> {
        let raw = model.raw();
        // Plugins and histories have a part in sensors; flexes collide by masks of their own.
        if raw.nplugin > 0 || raw.nhistory > 0 || raw.nflex > 0 {
            return None;
        }
        let sensors = model.count(ObjectKind::Sensor);
        // SAFETY: arrays of the model with one `int` for each sensor.
        let (stages, kinds, objects, references) = unsafe {
            (
                array(raw.sensor_needstage, sensors),
                array(raw.sensor_type, sensors),
                [array(raw.sensor_objtype, sensors), array(raw.sensor_objid, sensors)],
                [array(raw.sensor_reftype, sensors), array(raw.sensor_refid, sensors)],
            )
        };
        let declared = |sensor: usize| sources.contains(&Source::Sensor(sensor));
        let contacts = || (0..sensors).filter(|&i| declared(i) && kinds[i] == mjtSensor::mjSENS_CONTACT as c_int);
        // Both sides of each contact sensor.
        let sides = || contacts().flat_map(|i| [objects, references].map(|[kind, index]| (kind[i], index[i])));
        let watched = sides()
            .map(|(kind, index)| (kind == mjtObj::mjOBJ_GEOM as c_int).then(|| usize::try_from(index).ok()).flatten())
            .collect::<Option<Vec<usize>>>();
        Some(Self {
            stages: (0..sensors).map(|i| if declared(i) { stages[i] } else { Stage::None as c_int }).collect(),
            masks: watched.map(|geoms| Masks::new(model, &geoms)),
        })
    }

    /// The model, narrowed. It borrows from both, and is valid no longer than they are.
    ///
    /// # Safety
    /// `model` is the model that this was made from, but for values that rows have of their own.
    pub(super) unsafe fn narrow(&self, model: *const mjModel) -> mjModel {
        // SAFETY: valid by this function's contract. The copy is a view: it owns nothing, and MuJoCo does not write to a
        // model that it is given to evaluate.
        let mut narrowed = unsafe { ptr::read(model) };
        narrowed.sensor_needstage = self.stages.as_ptr().cast_mut();
        if let Some(masks) = &self.masks {
            narrowed.geom_contype = masks.geom_contype.as_ptr().cast_mut();
            narrowed.geom_conaffinity = masks.geom_conaffinity.as_ptr().cast_mut();
            narrowed.body_contype = masks.body_contype.as_ptr().cast_mut();
            narrowed.body_conaffinity = masks.body_conaffinity.as_ptr().cast_mut();
        }
        narrowed
    }
}

impl Masks {
    fn new(model: &Model, watched: &[usize]) -> Self {
        let raw = model.raw();
        let (geoms, bodies) = (model.count(ObjectKind::Geom), model.count(ObjectKind::Body));
        // SAFETY: arrays of the model with one `int` for each geom.
        let (contype, conaffinity, body_of) = unsafe {
            (array(raw.geom_contype, geoms), array(raw.geom_conaffinity, geoms), array(raw.geom_bodyid, geoms))
        };
        let of_geoms = |mask: &[c_int]| -> Box<[c_int]> {
            mask.iter().enumerate().map(|(geom, &bits)| if watched.contains(&geom) { bits } else { 0 }).collect()
        };
        // A body's mask has the bits of all its geoms.
        let of_bodies = |mask: &[c_int]| -> Box<[c_int]> {
            let mut bodies = vec![0; bodies];
            for (bits, &body) in mask.iter().zip(body_of) {
                // The model's own index of an existing body.
                bodies[body as usize] |= bits;
            }
            bodies.into()
        };
        let (geom_contype, geom_conaffinity) = (of_geoms(contype), of_geoms(conaffinity));
        Self {
            body_contype: of_bodies(&geom_contype),
            body_conaffinity: of_bodies(&geom_conaffinity),
            geom_contype,
            geom_conaffinity,
        }
    }
}
