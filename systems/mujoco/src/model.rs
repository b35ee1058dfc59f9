//! Compiled models.

mod names;
mod objects;
mod options;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mujoco_rs::mujoco_c::{mj_version, mjModel, mjVERSION_HEADER};
use mujoco_rs::wrappers::{MjModel, MjVfs};

pub use names::ObjectKind;
pub use objects::{Actuator, Body, ForceLaw, Joint, JointKind, Keyframe, Sensor, Stage};
pub(crate) use objects::{array, array_mut};
pub use options::{Jacobian, ModelOptions, OptionValue};

use crate::{ModelError, install_log_handler};

/// A compiled MuJoCo model. Cheap to clone; never changes.
#[derive(Clone)]
pub struct Model {
    inner: Arc<MjModel>,
}

impl Model {
    /// Loads a model from a file: MuJoCo's binary format if its extension is `mjb`, MJCF or URDF otherwise.
    ///
    /// # Errors
    /// As [`from_xml_path`](Self::from_xml_path) and [`from_mjb_path`](Self::from_mjb_path).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mjb")) {
            Self::from_mjb_path(path)
        } else {
            Self::from_xml_path(path)
        }
    }

    /// Compiles an MJCF or URDF file.
    ///
    /// # Errors
    /// [`ModelError::Load`] carries MuJoCo's message; [`ModelError::Path`] if MuJoCo cannot be given the path.
    pub fn from_xml_path(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        prepare()?;
        let path = path.as_ref();
        if path.to_str().is_none_or(|text| text.contains('\0')) {
            return Err(ModelError::Path { path: path.to_owned() });
        }
        Self::wrap(MjModel::from_xml(path), || path.display().to_string())
    }

    /// Compiles an MJCF or URDF document. Assets that it names are looked for in the working directory.
    ///
    /// # Errors
    /// [`ModelError::Load`] carries MuJoCo's message.
    pub fn from_xml_str(xml: &str) -> Result<Self, ModelError> {
        prepare()?;
        Self::wrap(MjModel::from_xml_string(xml), || "the XML text".to_owned())
    }

    /// Compiles the document called `main` among `files` (name, text), which may include the others by name.
    ///
    /// # Errors
    /// [`ModelError::Load`] carries MuJoCo's message.
    pub fn from_xml_files(main: &str, files: &[(&str, &str)]) -> Result<Self, ModelError> {
        prepare()?;
        let mut vfs = MjVfs::new();
        for (name, text) in files {
            vfs.add_from_buffer(name, text.as_bytes())
                .map_err(|error| ModelError::Load { origin: (*name).to_owned(), message: error.to_string() })?;
        }
        Self::wrap(MjModel::from_xml_vfs(main, &vfs), || main.to_owned())
    }

    /// Reads a model in MuJoCo's binary format, as [`save_mjb`](Self::save_mjb) writes it.
    ///
    /// # Errors
    /// [`ModelError::File`] if the file cannot be read; [`ModelError::Load`] if it is not a model of this MuJoCo version.
    pub fn from_mjb_path(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        prepare()?;
        let path = path.as_ref();
        let bytes =
            std::fs::read(path).map_err(|source| ModelError::File { action: "read", path: path.to_owned(), source })?;
        Self::wrap(MjModel::from_buffer(&bytes), || path.display().to_string())
    }

    fn wrap(
        loaded: Result<MjModel, mujoco_rs::error::MjModelError>,
        origin: impl FnOnce() -> String,
    ) -> Result<Self, ModelError> {
        use mujoco_rs::error::MjModelError;
        match loaded {
            Ok(model) => Ok(Self { inner: Arc::new(model) }),
            Err(error) => {
                let message = match error {
                    MjModelError::LoadFailed(message) if message.is_empty() => {
                        "it is not a binary model of this MuJoCo version".to_owned()
                    }
                    MjModelError::LoadFailed(message) => message.trim_end().to_owned(),
                    other => other.to_string(),
                };
                Err(ModelError::Load { origin: origin(), message })
            }
        }
    }

    /// Writes the model in MuJoCo's binary format.
    ///
    /// # Errors
    /// [`ModelError::File`] if the file cannot be written.
    pub fn save_mjb(&self, path: impl AsRef<Path>) -> Result<(), ModelError> {
        let path = path.as_ref();
        let failed = |source| ModelError::File { action: "write", path: path.to_owned(), source };
        let mut bytes = vec![0; self.inner.size()];
        self.inner.save_to_buffer(&mut bytes).map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        std::fs::write(path, bytes).map_err(failed)
    }

    /// The model as `mujoco-rs` wraps it, for what this crate does not offer, such as rendering.
    #[must_use]
    pub fn as_mujoco_rs(&self) -> &MjModel {
        &self.inner
    }

    pub(crate) fn raw(&self) -> &mjModel {
        self.inner.ffi()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("nq", &self.nq())
            .field("nv", &self.nv())
            .field("nu", &self.nu())
            .finish_non_exhaustive()
    }
}

/// What must hold before this crate calls MuJoCo.
fn prepare() -> Result<(), ModelError> {
    install_log_handler();
    // SAFETY: a query of a constant.
    let found = unsafe { mj_version() }.unsigned_abs();
    if found == mjVERSION_HEADER { Ok(()) } else { Err(ModelError::Version { expected: mjVERSION_HEADER, found }) }
}
