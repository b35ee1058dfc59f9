//! How row loops are split over threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::Resource;
use rayon::prelude::*;

/// Rows that are handed to one worker at a time: few enough to balance, many enough that handing over costs little.
const CHUNK: usize = 64;

/// Work from which a loop pays for handing a part of it to a thread of the same pool, which may be asleep.
const WORTH_SPLITTING: Duration = Duration::from_micros(30);

/// Work from which a loop pays for going into the pool and back. On its own it wakes three threads one after the other.
const WORTH_ENTERING: Duration = Duration::from_millis(1);

/// What a control step has to gain for going into the pool and back, which takes some 60 µs.
const WORTH_MOVING: Duration = Duration::from_micros(100);

/// Threads that row loops may use.
///
/// At most one dispatch runs at a time, so the physics threads are idle while these work and the number of threads that
/// run at once never exceeds the number asked for. Which loops are split depends on how long they took so far; what they
/// compute does not.
#[derive(Resource, Clone)]
pub struct Workers {
    pool: Option<Arc<Pool>>,
}

struct Pool {
    threads: rayon::ThreadPool,
    /// Work of all loops that were worth splitting since the last [`Workers::enter`], ns.
    divisible: AtomicU64,
}

/// How long a loop takes for a row, as far as is known: the least that decides whether it is worth splitting. Each loop has
/// its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// ns; 0 before the first time.
    per_row: f64,
}

impl Pace {
    fn expect(self, rows: usize) -> Duration {
        Duration::from_nanos((self.per_row * rows as f64) as u64)
    }

    /// Follows what was measured slowly, and a loop that was interrupted hardly at all.
    fn learn(&mut self, rows: usize, work: Duration) {
        if rows == 0 {
            return;
        }
        let measured = work.as_nanos() as f64 / rows as f64;
        self.per_row =
            if self.per_row == 0.0 { measured } else { 0.75 * self.per_row + 0.25 * measured.min(2.0 * self.per_row) };
    }
}

impl Workers {
    /// Loops over `rows` rows on at most `threads` threads. With one, or with few rows, everything runs on the caller's.
    ///
    /// # Errors
    /// The operating system refuses to start a thread.
    pub fn new(threads: usize, rows: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        if threads == 1 || rows <= CHUNK {
            return Ok(Self { pool: None });
        }
        let threads =
            rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("manege-rows-{i}")).build()?;
        Ok(Self { pool: Some(Arc::new(Pool { threads, divisible: AtomicU64::new(0) })) })
    }

    /// Runs something with many row loops on one of the threads, from where the others are reached soonest; on the caller's,
    /// if that did not pay the last time.
    pub fn enter<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        let Some(pool) = &self.pool else { return run() };
        let divisible = Duration::from_nanos(pool.divisible.swap(0, Ordering::Relaxed));
        // The part of it that other threads do in the meantime.
        let gain = divisible - divisible / pool.threads.current_num_threads() as u32;
        if gain > WORTH_MOVING { pool.threads.install(run) } else { run() }
    }

    /// Calls `work` on consecutive pieces of a column, with the index of each piece's first element.
    ///
    /// The pieces, and so every result, are the same for any number of threads.
    pub(crate) fn split<A: Send>(
        &self,
        pace: &mut Pace,
        column: &mut [A],
        work: impl Fn(usize, &mut [A]) + Sync + Send,
    ) {
        self.split_wide(pace, column, 1, work);
    }

    /// As [`split`](Self::split), for a column with `width` elements a row. Indices are rows'.
    pub(crate) fn split_wide<A: Send>(
        &self,
        pace: &mut Pace,
        column: &mut [A],
        width: usize,
        work: impl Fn(usize, &mut [A]) + Sync + Send,
    ) {
        if width == 0 {
            return;
        }
        self.run(
            pace,
            column.len() / width,
            column,
            |column, timed| {
                let pieces = column.par_chunks_mut(CHUNK * width).enumerate();
                pieces.for_each(|(i, piece)| timed.measure(|| work(i * CHUNK, piece)));
            },
            |column| {
                for (i, piece) in column.chunks_mut(CHUNK * width).enumerate() {
                    work(i * CHUNK, piece);
                }
            },
        );
    }

    /// As [`split`](Self::split), for two columns of equal length.
    pub(crate) fn split2<A: Send, B: Send>(
        &self,
        pace: &mut Pace,
        first: &mut [A],
        second: &mut [B],
        work: impl Fn(usize, &mut [A], &mut [B]) + Sync + Send,
    ) {
        self.run(
            pace,
            first.len(),
            (first, second),
            |(first, second), timed| {
                let pieces = first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK)).enumerate();
                pieces.for_each(|(i, (a, b))| timed.measure(|| work(i * CHUNK, a, b)));
            },
            |(first, second)| {
                for (i, (a, b)) in first.chunks_mut(CHUNK).zip(second.chunks_mut(CHUNK)).enumerate() {
                    work(i * CHUNK, a, b);
                }
            },
        );
    }

    /// Loops over rows in parallel if that pays, else in order; either way, learns how long it takes.
    fn run<C: Send>(
        &self,
        pace: &mut Pace,
        rows: usize,
        columns: C,
        parallel: impl FnOnce(C, &Timed) + Send,
        serial: impl FnOnce(C),
    ) {
        let Some(pool) = &self.pool else { return serial(columns) };
        let expected = pace.expect(rows);
        let inside = pool.threads.current_thread_index().is_some();
        if rows > CHUNK && expected >= WORTH_SPLITTING {
            pool.divisible.fetch_add(expected.as_nanos() as u64, Ordering::Relaxed);
        }
        if rows > CHUNK && expected >= if inside { WORTH_SPLITTING } else { WORTH_ENTERING } {
            let timed = Timed::default();
            pool.threads.install(|| parallel(columns, &timed));
            pace.learn(rows, Duration::from_nanos(timed.0.into_inner()));
        } else {
            let begun = Instant::now();
            serial(columns);
            pace.learn(rows, begun.elapsed());
        }
    }
}

/// Time that threads spent on pieces, ns.
#[derive(Default)]
struct Timed(AtomicU64);

impl Timed {
    fn measure(&self, piece: impl FnOnce()) {
        let begun = Instant::now();
        piece();
        self.0.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = self.pool.as_ref().map_or(1, |pool| pool.threads.current_num_threads());
        f.debug_struct("Workers").field("threads", &threads).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;

    /// A loop that is known to be worth splitting from anywhere.
    const LONG: Pace = Pace { per_row: 1e9 };

    #[test]
    fn every_element_is_met_once_with_the_index_of_its_row() {
        for threads in 1..4 {
            for rows in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 10 * CHUNK + 7] {
                let workers = Workers::new(threads, rows).expect("threads");
                for pace in [Pace::default(), LONG] {
                    let (mut first, mut second, mut wide) = (vec![0; rows], vec![0; rows], vec![0; 3 * rows]);
                    workers.split(&mut pace.clone(), &mut first, |start, piece| {
                        piece.iter_mut().enumerate().for_each(|(i, value)| *value += start + i);
                    });
                    workers.split2(&mut pace.clone(), &mut first, &mut second, |start, first, second| {
                        for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
                            *first += 1;
                            *second += start + i;
                        }
                    });
                    workers.split_wide(&mut pace.clone(), &mut wide, 3, |start, piece| {
                        piece.iter_mut().enumerate().for_each(|(i, value)| *value += 3 * start + i);
                    });
                    assert!(
                        first.iter().enumerate().all(|(i, value)| *value == i + 1),
                        "{threads} threads, {rows} rows"
                    );
                    assert!(second.iter().enumerate().all(|(i, value)| *value == i), "{threads} threads, {rows} rows");
                    assert!(wide.iter().enumerate().all(|(i, value)| *value == i), "{threads} threads, {rows} rows");
                }
            }
        }
    }

    #[test]
    fn long_loops_run_on_the_threads_asked_for_and_short_ones_on_the_callers() {
        let workers = Workers::new(2, 4096).expect("threads");
        let names = |pace: Pace| {
            let names = Mutex::new(BTreeSet::new());
            workers.split(&mut pace.clone(), &mut [(); 4096], |_, _| {
                let name = std::thread::current().name().map(str::to_owned);
                names.lock().expect("no panic").insert(name);
            });
            names.into_inner().expect("no panic")
        };
        let threads = ["manege-rows-0", "manege-rows-1"].map(|name| Some(name.to_owned()));
        assert!(names(LONG).is_subset(&threads.into()));
        let own = std::thread::current().name().map(str::to_owned);
        assert_eq!(names(Pace { per_row: 1e-3 }), [own].into());
    }

    #[test]
    fn work_moves_into_the_pool_when_the_loops_before_were_worth_splitting() {
        let workers = Workers::new(2, 4096).expect("threads");
        let inside = || workers.enter(|| rayon::current_thread_index().is_some());
        assert!(!inside(), "nothing is known yet");
        workers.split(&mut LONG.clone(), &mut [0; 4096], |_, _| ());
        assert!(inside());
        assert!(!inside(), "nothing was looped over in between");
        let alone = Workers::new(1, 4096).expect("no threads");
        alone.split(&mut LONG.clone(), &mut [0; 4096], |_, _| assert!(rayon::current_thread_index().is_none()));
    }

    #[test]
    fn a_pace_follows_what_is_measured_and_hardly_a_loop_that_was_interrupted() {
        let mut pace = Pace::default();
        pace.learn(1000, Duration::from_micros(100));
        assert_eq!(pace.expect(2000), Duration::from_micros(200));
        pace.learn(1000, Duration::from_secs(1));
        assert!(pace.expect(1000) <= Duration::from_micros(125));
        (0..40).for_each(|_| pace.learn(1000, Duration::from_micros(50)));
        assert!(pace.expect(1000).abs_diff(Duration::from_micros(50)) < Duration::from_micros(1));
        pace.learn(0, Duration::from_secs(1));
        assert!(pace.expect(1000) < Duration::from_micros(51));
    }
}
