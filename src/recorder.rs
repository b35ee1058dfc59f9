//! Recording whole episodes to files.
//!
//! An [`EpisodeRecorder`] is added to an environment with
//! [`Environment::add_recorder`](crate::Environment::add_recorder). Recorders of other kinds implement
//! [`RecorderTerm`].

use std::io;
use std::path::{Path, PathBuf};

use manege_components::Action;
use manege_systems::managers::recorder::{RecorderError, RecorderTerm, RecorderView};

use crate::files::{Existing, write_whole};
use crate::npz::NpzWriter;

/// Why an episode could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the episode {path:?}: {source}")]
pub struct EpisodeError {
    /// The file.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

/// Writes every episode that comes to its end into a file of its own, `row<row>_episode<episode>.npz`.
///
/// For an episode of T control steps, a file has
///
/// | array | shape | holds |
/// |---|---|---|
/// | `observation_<group>` | T + 1 × columns | the first observation, and the one after each step, the last included |
/// | `actions` | T × columns | what the policy did |
/// | `rewards` | T | rewards |
/// | `terminated`, `truncated` | T | whether the step ended the episode, and how |
///
/// A file appears when its episode ends, and is whole from the first moment. An episode whose beginning the recorder has
/// not seen, and one that is reset by hand before its end, is left out; so are those that are still running at the end,
/// unless [`unfinished`](Self::unfinished) asks for them.
pub struct EpisodeRecorder {
    folder: PathBuf,
    rows: Option<Vec<u32>>,
    existing: Existing,
    unfinished: bool,
    /// Observation groups with their number of columns.
    groups: Vec<(String, usize)>,
    /// By position among the recorded rows.
    running: Vec<Running>,
}

/// A row's episode as far as it has come.
#[derive(Default)]
struct Running {
    row: u32,
    episode: u32,
    /// The clock at the last observation; `None` while the row is not being recorded.
    clock: Option<u32>,
    observations: Vec<Vec<f32>>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl EpisodeRecorder {
    /// Records all rows into a folder, which is created if need be.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            folder,
            rows: None,
            existing: Existing::Keep,
            unfinished: false,
            groups: Vec::new(),
            running: Vec::new(),
        })
    }

    /// Records these rows only. Rows that do not exist are ignored.
    #[must_use]
    pub fn rows(mut self, rows: impl IntoIterator<Item = u32>) -> Self {
        let mut rows: Vec<u32> = rows.into_iter().collect();
        rows.sort_unstable();
        rows.dedup();
        self.rows = Some(rows);
        self
    }

    /// Replaces files that are already there. Without this, an episode whose file exists is an error.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        self.existing = Existing::Replace;
        self
    }

    /// Also writes the episodes that are still running when the recorder is closed. Their last step has no flag set.
    #[must_use]
    pub fn unfinished(mut self) -> Self {
        self.unfinished = true;
        self
    }

    /// Learns the environment's sizes, the first time.
    fn prepare(&mut self, view: &RecorderView<'_>) {
        if !self.running.is_empty() {
            return;
        }
        self.groups = view.groups().map(|(name, width)| (name.to_owned(), width)).collect();
        let all = 0..view.rows() as u32;
        let rows: Vec<u32> = match &self.rows {
            None => all.collect(),
            Some(rows) => rows.iter().copied().filter(|row| all.contains(row)).collect(),
        };
        let observations = vec![Vec::new(); self.groups.len()];
        self.running = rows
            .into_iter()
            .map(|row| Running { row, observations: observations.clone(), ..Running::default() })
            .collect();
    }

    fn find(&mut self, row: u32) -> Option<&mut Running> {
        let place = self.running.binary_search_by_key(&row, |running| running.row).ok()?;
        self.running.get_mut(place)
    }

    fn write(
        folder: &Path,
        existing: Existing,
        groups: &[(String, usize)],
        running: &Running,
    ) -> Result<(), EpisodeError> {
        let path = folder.join(format!("row{:05}_episode{:06}.npz", running.row, running.episode));
        let steps = running.rewards.len();
        let written = write_whole(&path, existing, |file| {
            let mut archive = NpzWriter::new(file);
            for ((name, width), values) in groups.iter().zip(&running.observations) {
                archive.write(&format!("observation_{name}"), &[steps + 1, *width], values)?;
            }
            archive.write("actions", &[steps, running.actions.len() / steps.max(1)], &running.actions)?;
            archive.write("rewards", &[steps], &running.rewards)?;
            archive.write("terminated", &[steps], &running.terminated)?;
            archive.write("truncated", &[steps], &running.truncated)?;
            archive.finish()?;
            Ok(())
        });
        written.map_err(|source| EpisodeError { path, source })
    }
}

impl Running {
    /// Begins an episode with the row's present observation.
    fn begin(&mut self, view: &RecorderView<'_>) {
        let clock = view.clock(self.row);
        self.episode = clock.episode;
        self.clock = Some(clock.step);
        self.observations.iter_mut().for_each(Vec::clear);
        self.actions.clear();
        self.rewards.clear();
        self.terminated.clear();
        self.truncated.clear();
        self.observe(view);
    }

    fn observe(&mut self, view: &RecorderView<'_>) {
        for (group, values) in self.observations.iter_mut().enumerate() {
            values.extend_from_slice(view.observation(group, self.row));
        }
    }

    /// Adds the last control step, if the row took part in it and it has not been added yet.
    fn append(&mut self, view: &RecorderView<'_>) {
        let now = view.clock(self.row).step;
        let Some(clock) = &mut self.clock else { return };
        if now <= *clock {
            return;
        }
        *clock = now;
        let (buffers, row) = (view.buffers(), self.row as usize);
        self.actions.extend_from_slice(view.get::<Action>(self.row).map_or(&[], Action::current));
        self.rewards.push(buffers.rewards[row]);
        self.terminated.push(buffers.terminated[row]);
        self.truncated.push(buffers.truncated[row]);
        self.observe(view);
    }
}

impl RecorderTerm for EpisodeRecorder {
    fn pre_reset(&mut self, view: &RecorderView<'_>, rows: &[u32]) -> Result<(), RecorderError> {
        self.prepare(view);
        let mut result = Ok(());
        for &row in rows {
            let Ok(place) = self.running.binary_search_by_key(&row, |running| running.row) else { continue };
            let running = &mut self.running[place];
            running.append(view);
            if running.clock.take().is_some() {
                // The others are to be written even if this one cannot be.
                let written = Self::write(&self.folder, self.existing, &self.groups, running);
                result = result.and(written);
            }
        }
        result.map_err(Into::into)
    }

    fn post_reset(&mut self, view: &RecorderView<'_>, rows: &[u32]) -> Result<(), RecorderError> {
        self.prepare(view);
        for &row in rows {
            if let Some(running) = self.find(row) {
                running.begin(view);
            }
        }
        Ok(())
    }

    fn post_step(&mut self, view: &RecorderView<'_>) -> Result<(), RecorderError> {
        self.prepare(view);
        self.running.iter_mut().for_each(|running| running.append(view));
        Ok(())
    }

    fn close(&mut self) -> Result<(), RecorderError> {
        let mut result = Ok(());
        for running in &mut self.running {
            let begun = running.clock.take().is_some() && !running.rewards.is_empty();
            let ended = running.terminated.last() == Some(&true) || running.truncated.last() == Some(&true);
            if begun && (ended || self.unfinished) {
                result = result.and(Self::write(&self.folder, self.existing, &self.groups, running));
            }
        }
        result.map_err(Into::into)
    }
}
