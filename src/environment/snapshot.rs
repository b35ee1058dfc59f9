//! The state of an environment, in memory and in a file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use manege_systems::config::ConfigError;
use manege_systems::runtime::RuntimeOptions;
use manege_systems::snapshot;
use manege_systems::step::AutoReset;
use serde::{Deserialize, Serialize};

use super::Environment;
use crate::files::{Existing, write_whole};

/// What a file begins with.
const MAGIC: [u8; 8] = *b"MANEGESN";

/// The version of the format that this version writes and reads.
const VERSION: u32 = 1;

/// Everything that an environment is in the middle of: the rows, the physics engine's state, timers, counters, weights.
///
/// Restored into an environment that was built the same way, it continues bit for bit, on any number of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    built: Built,
    state: Vec<u8>,
}

/// How the environment was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Built {
    task: String,
    preset: String,
    engine: String,
    rows: usize,
    seed: u64,
    auto_reset: String,
    corruption: bool,
    randomization: bool,
    /// The configuration, as TOML.
    config: String,
}

/// Why a snapshot cannot be made, read, written or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file cannot be read or written.
    #[error("cannot {action} the snapshot {path:?}: {source}")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is something else, cut off or damaged.
    #[error("{path:?} is no whole snapshot: {message}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The environment was built in another way.
    #[error("the snapshot does not fit: its {what} is {snapshot}, but the environment's is {environment}")]
    Mismatch {
        /// What differs: the task, the number of rows, a key of the configuration.
        what: String,
        /// The snapshot's.
        snapshot: String,
        /// The environment's.
        environment: String,
    },
    /// The configuration has no TOML form.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The state does not fit the environment's systems.
    #[error(transparent)]
    State(#[from] snapshot::SnapshotError),
}

impl Snapshot {
    /// Writes the snapshot to a file. The file is whole from the moment it appears; an older one is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
        let path = path.as_ref();
        let failed = |source| SnapshotError::File { action: "write", path: path.to_owned(), source };
        let head = serde_json::to_vec(&self.built).map_err(|error| failed(error.into()))?;
        let mut bytes = Vec::with_capacity(MAGIC.len() + 32 + head.len() + self.state.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        for part in [&head, &self.state] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        write_whole(path, Existing::Replace, |file| file.write_all(&bytes)).map_err(failed)
    }

    /// Reads a snapshot that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// The file cannot be read, is no snapshot, or is damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| SnapshotError::File {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        parse(&bytes).map_err(|message| SnapshotError::Format { path: path.to_owned(), message })
    }
}

fn parse(bytes: &[u8]) -> Result<Snapshot, String> {
    let mut rest = bytes;
    let mut take = |count: usize| {
        let (taken, after) = rest.split_at_checked(count).ok_or("it is cut off")?;
        rest = after;
        Ok::<_, String>(taken)
    };
    if take(MAGIC.len())? != MAGIC {
        return Err("it does not begin like one".to_owned());
    }
    let version = number(take(4)?);
    if version != u64::from(VERSION) {
        return Err(format!("it has version {version} of the format, and version {VERSION} is needed"));
    }
    let mut part = || {
        let length = number(take(8)?);
        take(usize::try_from(length).unwrap_or(usize::MAX))
    };
    let (head, state) = (part()?, part()?);
    let whole = bytes.len() - rest.len();
    if rest.len() != 8 || number(rest) != checksum(&bytes[..whole]) {
        return Err("its checksum is wrong".to_owned());
    }
    let built = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    Ok(Snapshot { built, state: state.to_vec() })
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// 64-bit FNV-1a over words of 8 bytes, which is enough to notice damage.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ number(word)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Built {
    fn of(environment: &Environment) -> Result<Self, SnapshotError> {
        let RuntimeOptions { rows, seed, auto_reset, corruption, randomization, .. } = environment.options;
        Ok(Self {
            task: environment.task.clone(),
            preset: environment.preset.clone(),
            engine: environment.engine.to_owned(),
            rows,
            seed,
            auto_reset: match auto_reset {
                AutoReset::SameStep => "in the same step",
                AutoReset::NextStep => "in the next step",
                AutoReset::Disabled => "by hand",
            }
            .to_owned(),
            corruption,
            randomization,
            config: environment.config.to_table()?.to_string(),
        })
    }

    /// Finds the first difference.
    fn require(&self, environment: &Self) -> Result<(), SnapshotError> {
        let mismatch = |what: &str, snapshot: &dyn ToString, environment: &dyn ToString| SnapshotError::Mismatch {
            what: what.to_owned(),
            snapshot: snapshot.to_string(),
            environment: environment.to_string(),
        };
        let facts: [(&str, &dyn ToString, &dyn ToString); 8] = [
            ("task", &self.task, &environment.task),
            ("preset", &self.preset, &environment.preset),
            ("physics engine", &self.engine, &environment.engine),
            ("number of rows", &self.rows, &environment.rows),
            ("seed", &self.seed, &environment.seed),
            ("automatic reset", &self.auto_reset, &environment.auto_reset),
            ("observation noise", &self.corruption, &environment.corruption),
            ("randomization", &self.randomization, &environment.randomization),
        ];
        if let Some((what, ours, theirs)) =
            facts.iter().find(|(_, ours, theirs)| ours.to_string() != theirs.to_string())
        {
            return Err(mismatch(what, *ours, *theirs));
        }
        if self.config == environment.config {
            return Ok(());
        }
        let parse = |text: &str| text.parse::<toml::Table>().map(toml::Value::Table).ok();
        let difference = parse(&self.config)
            .zip(parse(&environment.config))
            .and_then(|(ours, theirs)| difference("", &ours, &theirs));
        let (key, ours, theirs) = difference.unwrap_or_default();
        Err(mismatch(&format!("configuration `{key}`"), &ours, &theirs))
    }
}

/// The first key for which two configurations differ, and its values.
fn difference(path: &str, ours: &toml::Value, theirs: &toml::Value) -> Option<(String, String, String)> {
    let (toml::Value::Table(a), toml::Value::Table(b)) = (ours, theirs) else {
        return (ours != theirs).then(|| (path.to_owned(), ours.to_string(), theirs.to_string()));
    };
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).find_map(|key| match (a.get(key), b.get(key)) {
        (Some(ours), Some(theirs)) => difference(&below(key), ours, theirs),
        (ours, theirs) => {
            let text = |value: Option<&toml::Value>| value.map_or("missing".to_owned(), |_| "present".to_owned());
            Some((below(key), text(ours), text(theirs)))
        }
    })
}

impl Environment {
    /// Takes a picture of the whole environment, from which it can be continued.
    ///
    /// Recorders are not part of it.
    ///
    /// # Errors
    /// The configuration has no TOML form.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Ok(Snapshot { built: Built::of(self)?, state: snapshot::save(&self.world) })
    }

    /// Goes back, or forward, to a snapshot of this environment or of one that was built the same way: the same task,
    /// configuration, number of rows, seed and options. The number of threads may differ.
    ///
    /// Afterwards every buffer holds what it held then, and the same actions give the same bits.
    ///
    /// # Errors
    /// The snapshot does not fit; nothing is changed then.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        snapshot.built.require(&Built::of(self)?)?;
        Ok(snapshot::load(&mut self.world, &snapshot.state)?)
    }
}
