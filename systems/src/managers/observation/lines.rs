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
            // The first frame is all there is: the first lag is drawn when there is something to choose, and only a later
            // one can be kept instead.
            let first = appended == 1;
            let due = appended > 0 && (appended - 1 + memory.phase[self.index]).is_multiple_of(delay.update_period);
            if first || due {
                let draws = &mut lags.0.draws(self.stream, lags.1);
                if first || !draws.chance(delay.hold_probability) {
                    memory.lag[self.index] = draws.integer(delay.min_lag, delay.max_lag);
                }
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
}
