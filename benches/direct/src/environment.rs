//! The loop that a task is fused into.

mod piece;
mod staged;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use manege_components::{Row, Streams};
use manege_systems::backend::{Backend, BackendBuilder, BackendRequest, Freshness, StateWrite, StepRequest, WriteKind};
use manege_systems::config::EnvironmentConfig;

use crate::task::{Clock, Ended, FusedTask, Slot};
use crate::{DirectError, Environment};
use piece::Piece;
use staged::Staged;

/// What is chosen about a baseline, apart from its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Most threads that run at once, at least 1.
    pub threads: usize,
    /// Key of every random stream.
    pub seed: u64,
}

/// Where the time of a control step went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The whole step.
    pub total: Duration,
    /// The physics dispatch.
    pub physics: Duration,
    /// The reset of the rows whose episode ended, its physics included.
    pub reset: Duration,
}

/// Rows from which a loop pays for waking other threads: on two cores, where the lightest task breaks even.
const PARALLEL_ROWS: usize = 1024;

/// A row, as the loop keeps it.
pub(crate) struct RowState<R> {
    clock: Clock,
    /// Whether the engine failed on the row in this step.
    failed: bool,
    task: R,
}

/// The loop over a task's rows.
pub struct Direct<T: FusedTask> {
    task: T,
    backend: Box<dyn Backend>,
    pool: Option<Arc<rayon::ThreadPool>>,
    seed: u64,
    steps: u64,
    substeps: u32,
    control_period: f64,
    rows: Vec<RowState<T::Row>>,
    controls: Vec<f64>,
    /// Per group, rows × width.
    observations: [Vec<f32>; 2],
    finals: [Vec<f32>; 2],
    reward_terms: Vec<f32>,
    /// Each term's value × weight × control period, summed over the episode, rows × terms.
    episode_sums: Vec<f32>,
    rewards: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    /// Which terminations fired, one bit each.
    fired: Vec<u64>,
    /// The rows reset in the last step.
    ended: Vec<u32>,
    resets: Staged,
    /// Every row's state at a push. Empty until one comes.
    push: Option<Staged>,
    report: Report,
    times: Times,
}

/// What is reported about the episodes that ended in a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// How many there were. All else means something only if there were any.
    pub episodes: usize,
    /// Each reward term's value × weight × control period, summed over the episode: mean over episodes.
    pub rewards: Vec<f64>,
    /// The errors that the command reports: means over episodes.
    pub errors: Vec<f64>,
    /// How many episodes each termination ended, by its bit.
    pub terminations: [u32; MAX_TERMINATIONS],
}

/// Errors that a command may report.
const MAX_ERRORS: usize = 16;

/// Terminations that are counted.
const MAX_TERMINATIONS: usize = 8;

/// Which halves of a row's work a pass does. They are apart only in a step that pushes the rows in between.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    BeforePush,
    AfterPush,
}

impl<T: FusedTask> Direct<T> {
    /// Rows of a task's preset, in the default state.
    ///
    /// # Errors
    /// The model cannot be loaded, or lacks something that the task is about.
    pub fn new(task: manege_tasks::Task, preset: &str, options: Options) -> Result<Self, DirectError> {
        let EnvironmentConfig { physics, .. } = (task.config)(preset);
        let model: Box<dyn BackendBuilder> = task.load(&physics)?;
        let info = model.info().clone();
        let Options { rows, threads, seed } = options;
        let (task, plan) = T::new(preset, &info, rows)?;
        let request = BackendRequest {
            rows,
            threads,
            outputs: plan.outputs,
            fields: plan.fields.iter().map(|(field, _)| *field).collect(),
            substep_feedback: false,
            freshness: if physics.fresh { Freshness::Fresh } else { Freshness::LastSubstep },
        };
        let pool = if threads > 1 && rows >= PARALLEL_ROWS {
            Some(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?))
        } else {
            None
        };
        let row = |row: u32| RowState {
            clock: Clock { row: Row(row), step: 0, episode: 0, streams: Streams::for_row(seed, Row(row), 0) },
            failed: false,
            task: task.row(),
        };
        let numbers = |width: usize| vec![0.0; rows * width];
        Ok(Self {
            pool,
            seed,
            steps: 0,
            substeps: physics.substeps()?,
            control_period: physics.control_period,
            rows: (0..rows as u32).map(row).collect(),
            controls: vec![0.0; rows * info.nu],
            observations: T::GROUP_WIDTHS.map(numbers),
            finals: T::GROUP_WIDTHS.map(numbers),
            reward_terms: numbers(T::REWARDS),
            episode_sums: numbers(T::REWARDS),
            rewards: numbers(1),
            terminated: vec![false; rows],
            truncated: vec![false; rows],
            fired: vec![0; rows],
            ended: Vec::with_capacity(rows),
            resets: Staged::new(WriteKind::Reset, rows, &info, &plan.qpos, &plan.fields),
            push: None,
            report: Report { rewards: vec![0.0; T::REWARDS], errors: vec![0.0; T::ERRORS.len()], ..Report::default() },
            times: Times::default(),
            backend: model.build(&request)?,
            task,
        })
    }

    fn check(&self, actions: &[f32]) -> Result<(), DirectError> {
        let (rows, width) = (self.rows.len(), T::ACTION_WIDTH);
        if actions.len() != rows * width {
            return Err(DirectError::ActionShape { rows, width, actual: actions.len() });
        }
        match actions.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(bad) => {
                Err(DirectError::ActionNotFinite { row: bad / width, column: bad % width, value: actions[bad] })
            }
        }
    }

    /// One control step.
    fn advance(&mut self, actions: &[f32]) -> Result<(), DirectError> {
        self.check(actions)?;
        let begun = Instant::now();
        self.times = Times::default();
        self.steps += 1;
        let controls_width = self.controls.len() / self.rows.len();
        let controls = self.controls.chunks_exact_mut(controls_width);
        for ((row, action), ctrl) in self.rows.iter_mut().zip(actions.chunks_exact(T::ACTION_WIDTH)).zip(controls) {
            self.task.act(&mut row.task, action, ctrl);
        }
        let physics = Instant::now();
        self.backend.step(StepRequest {
            rows: None,
            substeps: self.substeps,
            controls: &self.controls,
            feedback: None,
        })?;
        self.times.physics = physics.elapsed();
        for fault in self.backend.faults() {
            self.rows[fault.row as usize].failed = true;
        }
        self.task.advance();
        if self.task.push_is_due() {
            self.pass(Part::BeforePush)?;
            self.push()?;
            self.pass(Part::AfterPush)?;
        } else {
            self.push = None;
            self.pass(Part::Whole)?;
        }
        self.ended.clear();
        let flags = self.terminated.iter().zip(&self.truncated).enumerate();
        self.ended.extend(flags.filter(|(_, (a, b))| **a || **b).map(|(row, _)| row as u32));
        if self.ended.is_empty() {
            self.report.episodes = 0;
        } else {
            let reset = Instant::now();
            self.restart()?;
            self.times.reset = reset.elapsed();
        }
        self.times.total = begun.elapsed();
        Ok(())
    }

    /// Everything between physics and resets, for all rows.
    fn pass(&mut self, part: Part) -> Result<(), DirectError> {
        let finite = AtomicBool::new(true);
        let width = self.backend.output_width();
        let (task, outputs, period) = (&self.task, self.backend.outputs(), self.control_period);
        let piece = Piece {
            first: 0,
            rows: &mut self.rows,
            observations: self.observations.each_mut().map(Vec::as_mut_slice),
            finals: self.finals.each_mut().map(Vec::as_mut_slice),
            reward_terms: &mut self.reward_terms,
            episode_sums: &mut self.episode_sums,
            rewards: &mut self.rewards,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            fired: &mut self.fired,
        };
        let work = |piece: Piece<'_, T>| {
            if !work_on(task, piece, outputs, width, period, part) {
                finite.store(false, Ordering::Relaxed);
            }
        };
        match &self.pool {
            Some(pool) => pool.install(|| piece.halve(&work)),
            None => work(piece),
        }
        if finite.into_inner() { Ok(()) } else { Err(DirectError::NotFinite { step: self.steps }) }
    }

    /// Pushes all rows: one write.
    fn push(&mut self) -> Result<(), DirectError> {
        let (nq, nv) = self.resets.widths();
        let staged = self.push.get_or_insert_with(|| self.resets.for_all_rows(WriteKind::Patch));
        let width = self.backend.output_width();
        for (slot, (row, state)) in self.rows.iter().zip(self.backend.outputs().chunks_exact(width)).enumerate() {
            // A row that failed is about to be reset, and takes part with any state that the engine can take.
            if row.failed || !all_finite(&state[..nq + nv]) {
                continue;
            }
            let Slot { qpos, qvel, .. } = staged.slot(slot);
            qpos.copy_from_slice(&state[..nq]);
            qvel.copy_from_slice(&state[nq..nq + nv]);
            self.task.push(&row.clock, qpos, qvel);
        }
        staged.commit(&mut *self.backend)
    }

    /// Begins the next episode of the rows in `ended`, and makes its first observation.
    fn restart(&mut self) -> Result<(), DirectError> {
        let Self { task, rows, resets, report, .. } = self;
        let width = self.backend.output_width();
        // Rows that have had no step yet have no episode that could have ended.
        let finished = self.ended.iter().filter(|&&row| rows[row as usize].clock.step > 0).map(|&row| {
            let RowState { clock, task: kept, .. } = &rows[row as usize];
            let state = &self.backend.outputs()[row as usize * width..][..width];
            let (fired, terminated) = (self.fired[row as usize], self.terminated[row as usize]);
            Ended { clock, row: kept, state, fired, terminated }
        });
        task.episodes_ended(finished.clone());
        report.rewards.fill(0.0);
        report.errors.fill(0.0);
        report.terminations.fill(0);
        report.episodes = finished.clone().count();
        let share = 1.0 / report.episodes.max(1) as f64;
        let mut errors = [0.0; MAX_ERRORS];
        let errors = &mut errors[..T::ERRORS.len()];
        for ended in finished {
            let sums = &self.episode_sums[ended.clock.row.index() * T::REWARDS..][..T::REWARDS];
            add(&mut report.rewards, sums, share);
            task.errors(&ended, errors);
            add(&mut report.errors, errors, share);
            for (bit, terminations) in report.terminations.iter_mut().enumerate() {
                *terminations += (ended.fired >> bit & 1) as u32;
            }
        }
        resets.open(&self.ended);
        for (slot, &row) in self.ended.iter().enumerate() {
            let RowState { clock, task: state, .. } = &mut rows[row as usize];
            clock.episode = clock.episode.wrapping_add(1);
            clock.step = 0;
            clock.streams = Streams::for_row(self.seed, clock.row, clock.episode);
            task.begin(clock, state, resets.slot(slot));
        }
        resets.commit(&mut *self.backend)?;

        let mut finite = true;
        for &row in &self.ended {
            let row = row as usize;
            let state = &self.backend.outputs()[row * width..][..width];
            let RowState { clock, task: kept, .. } = &mut rows[row];
            let [policy, critic] = row_of(&mut self.observations, row, T::GROUP_WIDTHS);
            task.follow(kept, state);
            task.observe(clock, kept, state, policy, critic);
            finite &= all_finite(policy) && all_finite(critic);
            self.episode_sums[row * T::REWARDS..][..T::REWARDS].fill(0.0);
        }
        if finite { Ok(()) } else { Err(DirectError::NotFinite { step: self.steps }) }
    }
}

/// Adds each value's share to its mean.
fn add(means: &mut [f64], values: &[f32], share: f64) {
    for (mean, value) in means.iter_mut().zip(values) {
        *mean += f64::from(*value) * share;
    }
}

/// One pass over consecutive rows. Returns whether every reward and observation is finite.
fn work_on<T: FusedTask>(
    task: &T,
    piece: Piece<'_, T>,
    outputs: &[f64],
    width: usize,
    period: f64,
    part: Part,
) -> bool {
    let Piece { first, rows, mut observations, mut finals, .. } = piece;
    let step_factor = period as f32;
    let mut finite = true;
    for (i, row) in rows.iter_mut().enumerate() {
        let state = &outputs[(first + i) * width..][..width];
        if part != Part::AfterPush {
            row.clock.step += 1;
            let terms = &mut piece.reward_terms[i * T::REWARDS..][..T::REWARDS];
            row.failed |= !all_finite(state);
            let mut total = 0.0;
            let mut fired = 0;
            if row.failed {
                terms.fill(0.0);
            } else {
                fired = task.evaluate(&row.clock, &mut row.task, state, terms);
                let sums = &mut piece.episode_sums[i * T::REWARDS..][..T::REWARDS];
                for (weighted, sum) in terms.iter().zip(sums) {
                    let scaled = weighted * step_factor;
                    total += scaled;
                    *sum += scaled;
                }
                finite &= total.is_finite();
            }
            piece.rewards[i] = total;
            piece.fired[i] = fired;
            piece.truncated[i] = fired & T::TIME_OUTS != 0;
            piece.terminated[i] = fired & !T::TIME_OUTS != 0 || row.failed;
        }
        if part != Part::BeforePush {
            let done = piece.terminated[i] || piece.truncated[i];
            let [policy, critic] = row_of(&mut observations, i, T::GROUP_WIDTHS);
            if !row.failed {
                task.command(&row.clock, &mut row.task, state, if done { 0.0 } else { period });
                task.observe(&row.clock, &row.task, state, policy, critic);
                finite &= all_finite(policy) && all_finite(critic);
            }
            if done {
                let [final_policy, final_critic] = row_of(&mut finals, i, T::GROUP_WIDTHS);
                final_policy.copy_from_slice(policy);
                final_critic.copy_from_slice(critic);
            }
            row.failed = false;
        }
    }
    finite
}

/// One row of two buffers.
fn row_of<B: AsMut<[f32]>>(groups: &mut [B; 2], row: usize, widths: [usize; 2]) -> [&mut [f32]; 2] {
    let [policy, critic] = groups.each_mut();
    [&mut policy.as_mut()[row * widths[0]..][..widths[0]], &mut critic.as_mut()[row * widths[1]..][..widths[1]]]
}

/// Whether every value is finite, as vector code: 0 × x is 0 unless x is not finite.
fn all_finite<V: Copy + std::ops::Mul<Output = V> + std::ops::Add<Output = V> + Default + PartialEq>(
    values: &[V],
) -> bool {
    let zero = V::default();
    let mut lanes = [zero; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = *lane + zero * *value;
        }
    }
    lanes.iter().chain(rest).fold(zero, |sum, value| sum + zero * *value) == zero
}

impl<T: FusedTask> Environment for Direct<T> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn action_width(&self) -> usize {
        T::ACTION_WIDTH
    }

    fn group_widths(&self) -> [usize; 2] {
        T::GROUP_WIDTHS
    }

    fn reward_count(&self) -> usize {
        T::REWARDS
    }

    fn error_names(&self) -> &'static [&'static str] {
        T::ERRORS
    }

    fn reset(&mut self) -> Result<(), DirectError> {
        self.ended.clear();
        self.ended.extend(0..self.rows.len() as u32);
        self.restart()
    }

    fn step(&mut self, actions: &[f32]) -> Result<(), DirectError> {
        match self.pool.clone() {
            // The whole step, so that the loop over rows finds a thread of the pool awake.
            Some(pool) => pool.install(|| self.advance(actions)),
            None => self.advance(actions),
        }
    }

    fn observation(&self, group: usize) -> &[f32] {
        &self.observations[group]
    }

    fn final_observation(&self, group: usize) -> &[f32] {
        &self.finals[group]
    }

    fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    fn reward_terms(&self) -> &[f32] {
        &self.reward_terms
    }

    fn terminated(&self) -> &[bool] {
        &self.terminated
    }

    fn truncated(&self) -> &[bool] {
        &self.truncated
    }

    fn reset_rows(&self) -> &[u32] {
        &self.ended
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn times(&self) -> Times {
        self.times
    }

    fn controls(&self) -> &[f64] {
        &self.controls
    }

    fn writes(&self, visit: &mut dyn FnMut(StateWrite<'_>)) {
        if let Some(push) = &self.push {
            push.write(&mut *visit);
        }
        if !self.ended.is_empty() {
            self.resets.write(visit);
        }
    }
}
