//! Transitions on disk.
//!
//! A folder holds `transitions-00000.npz`, `transitions-00001.npz`, ... and [`META_FILE`]. A shard has one array per
//! quantity, the control steps of the shard first, then the rows:
//!
//! | key | shape | type |
//! |---|---|---|
//! | `obs/<group>` | (T, N, width) | float32 |
//! | `next_obs/<group>` | (T, N, width) | float32 |
//! | `actions` | (T, N, width) | float32 |
//! | `rewards` | (T, N) | float32 |
//! | `terminated`, `truncated` | (T, N) | bool |
//!
//! Where an episode ended, `next_obs` is its last observation; `obs` of the next step is the next episode's first.
//!
//! Files get their name when they are whole, so a crash leaves whole shards, and at worst a hidden temporary file.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::replay_ring::{ReplayRing, RingError};
use super::{TransitionLayout, Transitions};
use crate::Environment;
use crate::files::{Existing, write_whole};
use crate::npz::NpzWriter;

/// Name of the file that describes the shards of a folder.
pub const META_FILE: &str = "meta.json";

/// Size that a shard has at most, unless a single control step is larger.
const SHARD_BYTES: usize = 64 << 20;

/// Why transitions cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The folder holds an earlier collection.
    #[error("{} already holds `{found}`; give a new or an empty folder", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// One of the files in it.
        found: String,
    },
    /// A file or the folder cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is not enough memory for a shard.
    #[error(transparent)]
    Memory(#[from] RingError),
}

/// What [`META_FILE`] says about where the transitions come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardDescription {
    /// The task.
    pub task: String,
    /// Its preset.
    pub preset: String,
    /// The physics engine.
    pub backend: String,
    /// Key of every random stream.
    pub seed: u64,
    /// The policy.
    pub policy: String,
    /// Duration of a control step, s.
    pub control_period: f64,
}

impl ShardDescription {
    /// The description of an environment under the named policy.
    #[must_use]
    pub fn of(environment: &Environment, policy: &str) -> Self {
        Self {
            task: environment.task().to_owned(),
            preset: environment.preset().to_owned(),
            backend: environment.engine().to_owned(),
            seed: environment.seed(),
            policy: policy.to_owned(),
            control_period: environment.control_period(),
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardSummary {
    /// Number of shards.
    pub shards: usize,
    /// Control steps in them.
    pub steps: u64,
}

/// Writes transitions into a folder, shard by shard.
#[derive(Debug)]
pub struct ShardWriter {
    folder: PathBuf,
    description: ShardDescription,
    buffer: ReplayRing,
    /// Control steps of each shard that is on the disk.
    shards: Vec<usize>,
}

impl ShardWriter {
    /// Makes the folder, if need be, and describes in it what will come.
    ///
    /// # Errors
    /// The folder holds an earlier collection or cannot be written, or there is not enough memory for a shard.
    pub fn create(
        folder: impl AsRef<Path>,
        description: ShardDescription,
        layout: TransitionLayout,
    ) -> Result<Self, ShardError> {
        let steps = (SHARD_BYTES / layout.bytes_per_step().max(1)).max(1);
        Self::with_shard_steps(folder.as_ref(), description, layout, steps)
    }

    fn with_shard_steps(
        folder: &Path,
        description: ShardDescription,
        layout: TransitionLayout,
        steps: usize,
    ) -> Result<Self, ShardError> {
        let folder = folder.to_owned();
        let failed = |source| ShardError::Write { path: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if name == META_FILE || name.starts_with("transitions-") {
                found.push(name);
            }
        }
        if let Some(found) = found.into_iter().min() {
            return Err(ShardError::Occupied { folder, found });
        }
        let buffer = ReplayRing::new(layout, steps)?;
        let writer = Self { folder, description, buffer, shards: Vec::new() };
        // Kept if it has appeared meanwhile: of two writers in one folder, the second fails.
        writer.write_meta(false, Existing::Keep)?;
        Ok(writer)
    }

    /// Takes the transitions of a control step. When a shard is complete, it is written.
    ///
    /// # Errors
    /// The shard cannot be written. It is kept, and tried again with the next call.
    ///
    /// # Panics
    /// If the transitions are not of the writer's layout.
    pub fn write(&mut self, transitions: &Transitions<'_>) -> Result<(), ShardError> {
        if self.buffer.steps() == self.buffer.capacity() {
            self.write_shard()?;
        }
        self.buffer.push(transitions);
        if self.buffer.steps() == self.buffer.capacity() { self.write_shard() } else { Ok(()) }
    }

    /// Writes what is left, and completes the description.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<ShardSummary, ShardError> {
        if self.buffer.steps() > 0 {
            self.write_shard()?;
        }
        self.write_meta(true, Existing::Replace)?;
        Ok(ShardSummary { shards: self.shards.len(), steps: self.steps() })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn steps(&self) -> u64 {
        self.shards.iter().map(|&steps| steps as u64).sum()
    }

    fn write_shard(&mut self) -> Result<(), ShardError> {
        let path = self.folder.join(shard_name(self.shards.len()));
        write_whole(&path, Existing::Keep, |file| write_arrays(&self.buffer, NpzWriter::new(file)))
            .map_err(|source| ShardError::Write { path, source })?;
        self.shards.push(self.buffer.steps());
        self.buffer.clear();
        self.write_meta(false, Existing::Replace)
    }

    fn write_meta(&self, complete: bool, existing: Existing) -> Result<(), ShardError> {
        let path = self.folder.join(META_FILE);
        let written = serde_json::to_vec_pretty(&self.meta(complete)).map_err(io::Error::other).and_then(|mut text| {
            text.push(b'\n');
            write_whole(&path, existing, |file| io::Write::write_all(file, &text))
        });
        written.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => {
                ShardError::Occupied { folder: self.folder.clone(), found: META_FILE.to_owned() }
            }
            _ => ShardError::Write { path, source },
        })
    }

    fn meta(&self, complete: bool) -> Value {
        let layout = self.buffer.layout();
        let array = |width: Option<usize>, dtype: &str| {
            let mut shape = vec![json!("T"), json!("N")];
            shape.extend(width.map(|width| json!(width)));
            json!({ "shape": shape, "dtype": dtype })
        };
        let mut keys = Map::new();
        for prefix in ["obs", "next_obs"] {
            for (name, width) in &layout.groups {
                keys.insert(format!("{prefix}/{name}"), array(Some(*width), "float32"));
            }
        }
        keys.insert("actions".to_owned(), array(Some(layout.action_width), "float32"));
        keys.insert("rewards".to_owned(), array(None, "float32"));
        keys.insert("terminated".to_owned(), array(None, "bool"));
        keys.insert("truncated".to_owned(), array(None, "bool"));

        let dims: Map<_, _> = layout.groups.iter().map(|(name, width)| (name.clone(), json!(width))).collect();
        let mut first_step = 0;
        let shards = self.shards.iter().enumerate().map(|(shard, steps)| {
            let entry = json!({ "file": shard_name(shard), "first_step": first_step, "steps": steps });
            first_step += steps;
            entry
        });
        json!({
            "manege_version": env!("CARGO_PKG_VERSION"),
            "task": self.description.task,
            "preset": self.description.preset,
            "backend": self.description.backend,
            "seed": self.description.seed,
            "policy": self.description.policy,
            "control_period": self.description.control_period,
            "rows": layout.rows,
            "observation_dims": dims,
            "action_dim": layout.action_width,
            "keys": keys,
            "steps": self.steps(),
            "complete": complete,
            "shards": shards.collect::<Vec<_>>(),
        })
    }
}

fn shard_name(shard: usize) -> String {
    format!("transitions-{shard:05}.npz")
}

fn write_arrays<W: io::Write + io::Seek>(buffer: &ReplayRing, mut file: NpzWriter<W>) -> io::Result<()> {
    let layout = buffer.layout();
    let (steps, rows) = (buffer.steps(), layout.rows);
    let filled = buffer.filled().ok_or_else(|| io::Error::other("the shard has overflowed"))?;
    for (prefix, groups) in [("obs", &filled.observations), ("next_obs", &filled.next_observations)] {
        for ((name, width), values) in layout.groups.iter().zip(groups) {
            file.write(&format!("{prefix}/{name}"), &[steps, rows, *width], values)?;
        }
    }
    file.write("actions", &[steps, rows, layout.action_width], filled.actions)?;
    file.write("rewards", &[steps, rows], filled.rewards)?;
    file.write("terminated", &[steps, rows], filled.terminated)?;
    file.write("truncated", &[steps, rows], filled.truncated)?;
    file.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npz::{Extent, NpzReader};

    fn layout() -> TransitionLayout {
        TransitionLayout { rows: 2, groups: vec![("policy".to_owned(), 1)], action_width: 1 }
    }

    fn description() -> ShardDescription {
        ShardDescription {
            task: "walk".to_owned(),
            preset: "base".to_owned(),
            backend: "mujoco".to_owned(),
            seed: 3,
            policy: "zeros".to_owned(),
            control_period: 0.02,
        }
    }

    fn write(writer: &mut ShardWriter, step: usize) {
        let values = vec![step as f32, step as f32 + 0.5];
        let shifted = values.iter().map(|value| value + 1.0).collect();
        writer
            .write(&Transitions {
                observations: std::slice::from_ref(&values),
                actions: &values,
                rewards: &values,
                next_observations: &[shifted],
                terminated: &[step == 1, false],
                truncated: &[false, false],
            })
            .unwrap();
    }

    fn meta(folder: &Path) -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(META_FILE)).unwrap()).unwrap()
    }

    fn observations(folder: &Path, shard: usize) -> Vec<f32> {
        let mut reader = NpzReader::open(folder.join(shard_name(shard))).unwrap();
        reader.read("obs/policy", &[Extent::Any("T"), Extent::Exactly(2), Extent::Exactly(1)]).unwrap().values
    }

    #[test]
    fn every_step_is_in_exactly_one_shard() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ShardWriter::with_shard_steps(folder.path(), description(), layout(), 2).unwrap();
        (0..5).for_each(|step| write(&mut writer, step));
        assert_eq!(writer.finish().unwrap(), ShardSummary { shards: 3, steps: 5 });
        let all: Vec<f32> = (0..3).flat_map(|shard| observations(folder.path(), shard)).collect();
        assert_eq!(all, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5]);
        let meta = meta(folder.path());
        assert_eq!((&meta["steps"], &meta["complete"], &meta["rows"]), (&json!(5), &json!(true), &json!(2)));
        assert_eq!(
            meta["shards"][2],
            json!({ "file": "transitions-00002.npz", "first_step": 4, "steps": 1 }),
            "{meta}"
        );
        assert_eq!(meta["keys"]["next_obs/policy"], json!({ "shape": ["T", "N", 1], "dtype": "float32" }));
    }

    #[test]
    fn a_crash_leaves_whole_shards_that_the_description_lists() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ShardWriter::with_shard_steps(folder.path(), description(), layout(), 2).unwrap();
        (0..3).for_each(|step| write(&mut writer, step));
        // The process ends here: nothing of the writer runs any more.
        std::mem::forget(writer);
        assert_eq!(observations(folder.path(), 0), [0.0, 0.5, 1.0, 1.5]);
        assert!(!folder.path().join(shard_name(1)).exists());
        let meta = meta(folder.path());
        assert_eq!((&meta["steps"], &meta["complete"]), (&json!(2), &json!(false)));
        assert_eq!(meta["shards"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_folder_with_shards_is_refused_and_untouched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("transitions-00007.npz"), "precious").unwrap();
        let error = ShardWriter::create(folder.path(), description(), layout()).unwrap_err().to_string();
        assert!(error.contains("already holds `transitions-00007.npz`"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn of_two_writers_in_one_folder_the_second_fails() {
        let folder = tempfile::tempdir().unwrap();
        let _first = ShardWriter::create(folder.path(), description(), layout()).unwrap();
        let second = ShardWriter::create(folder.path(), description(), layout()).unwrap_err();
        assert!(matches!(second, ShardError::Occupied { .. }), "{second}");
    }

    #[test]
    fn what_a_crash_left_half_written_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".manege-x3k9a.tmp"), "half a shard").unwrap();
        let mut writer = ShardWriter::create(folder.path().join("new/er"), description(), layout()).unwrap();
        write(&mut writer, 0);
        assert_eq!(writer.finish().unwrap(), ShardSummary { shards: 1, steps: 1 });
        let mut writer = ShardWriter::create(folder.path(), description(), layout()).unwrap();
        write(&mut writer, 0);
        assert_eq!(writer.finish().unwrap(), ShardSummary { shards: 1, steps: 1 });
        assert_eq!(observations(folder.path(), 0), [0.0, 0.5]);
    }
}
