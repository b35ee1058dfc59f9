//! Terms that look back: delay lines and histories.

use std::ops::Range;

use manege_components::{ObservationHistory, StreamId, Streams};

use super::options::Delay;

/// Where one term's lines lie in [`ObservationHistory`].
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// Place in the per-term counters.
    pub(super) index: usize,
    /// The delay and its ring of `max_lag + 1` frames.
    pub(super) delay: Option<(Delay, Range<usize>)>,
    /// The history, oldest frame first. Empty if the term has none.
    pub(super) history: Range<usize>,
    /// Stream of the lags.
    pub(super) stream: StreamId,
}

impl Lines {
    /// Draws the offset of the row's update period, for the episode that begins.
    pub(super) fn restart(&self, streams: &Streams, memory: &mut ObservationHistory) {
        if let Some((delay, _)) = &self.delay
            && delay.per_row_phase
        {
            let draws = &mut streams.draws(self.stream.join("/phase"), 0);
            memory.phase[self.index] = draws.integer(0, delay.update_period - 1);
        }
    }

    /// Appends the frame at the start of `out`, and fills `out` with what is seen: delayed, then with its history.
    ///
    /// `lags` are the streams of the lag, with the counter of this control step.
    pub(super) fn advance(
        &self,
        width: usize,
        out: &mut [f32],
        memory: &mut ObservationHistory,
        lags: (&Streams, u64),
    ) {
        let appended = memory.frames[self.index];
        memory.frames[self.index] = appended.saturating_add(1);
        if let Some((delay, ring)) = &self.delay {
            let capacity = delay.max_lag as usize + 1;
            let ring = &mut memory.delay[ring.clone()];
            ring[appended as usize % capacity * width..][..width].copy_from_slice(&out[..width]);
            // The first frame is all there is: the first lag is drawn when there is something to choose.
            if appended > 0 {
                let lag = if delay.per_row {
                    self.own_lag(delay, appended, memory.phase[self.index], lags)
                } else {
                    self.shared_lag(delay, appended == 1, lags)
                };
                memory.lag[self.index] = lag.unwrap_or(memory.lag[self.index]);
            }
            let seen = appended - memory.lag[self.index].min(appended);
            out[..width].copy_from_slice(&ring[seen as usize % capacity * width..][..width]);
        }
        if !self.history.is_empty() {
            let history = &mut memory.history[self.history.clone()];
            if appended == 0 {
                for frame in history.chunks_exact_mut(width) {
                    frame.copy_from_slice(&out[..width]);
                }
            } else {
                history.copy_within(width.., 0);
                let newest = history.len() - width;
                history[newest..].copy_from_slice(&out[..width]);
            }
            out.copy_from_slice(history);
        }
    }

    /// A row's new lag, unless it keeps the one that it has. A row without one always draws.
    fn own_lag(&self, delay: &Delay, appended: u32, phase: u32, (streams, step): (&Streams, u64)) -> Option<u32> {
        let first = appended == 1;
        if !first && !(appended - 1 + phase).is_multiple_of(delay.update_period) {
            return None;
        }
        let mut draws = streams.draws(self.stream, step);
        (first || !draws.chance(delay.hold_probability)).then(|| draws.integer(delay.min_lag, delay.max_lag))
    }

    /// The lag that all rows have from this control step on, unless it is the one that they have.
    ///
    /// Rows begin at different times, so periods count control steps of the environment; and a row without a lag looks
    /// back for the period in which the others drew theirs. In period 0 it cannot be kept.
    fn shared_lag(&self, delay: &Delay, first: bool, (streams, step): (&Streams, u64)) -> Option<u32> {
        let update_period = u64::from(delay.update_period);
        if !first && !step.is_multiple_of(update_period) {
            return None;
        }
        let period = step / update_period;
        let oldest = if first { 0 } else { period };
        // A lag that is always kept is that of period 0, however long ago that was.
        let newest = if first && delay.hold_probability >= 1.0 { 0 } else { period };
        (oldest..=newest).rev().find_map(|period| {
            let mut draws = streams.draws(self.stream, period);
            let kept = draws.chance(delay.hold_probability);
            (period == 0 || !kept).then(|| draws.integer(delay.min_lag, delay.max_lag))
        })
    }
}
