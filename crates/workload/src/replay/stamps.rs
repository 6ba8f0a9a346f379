//! How fine a trace's stamps are: a clock of whole seconds makes bursts that no program ever sent.

use ssdlab_base::Nanos;

/// Fewer requests may lie on whole seconds by chance, or because the trace was written so.
const REQUESTS_TO_JUDGE: u64 = 8;

/// What the stamps of a trace have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamps {
    requests: u64,
    last: Nanos,
    /// Requests at `last`, and the most at any time.
    together: u64,
    together_max: u64,
    /// Some stamp is no whole second.
    fine: bool,
}

impl Stamps {
    /// The stamp of the next request; they never decrease.
    #[inline]
    pub(super) fn learn(&mut self, at: Nanos) {
        if self.requests == 0 || at != self.last {
            self.last = at;
            self.together = 0;
            self.fine |= !at.0.is_multiple_of(1_000_000_000);
        }
        self.requests += 1;
        self.together += 1;
        self.together_max = self.together_max.max(self.together);
    }

    /// What a user who replays the trace by its clock should know.
    pub(super) fn note(&self, name: &str) -> Option<String> {
        if self.fine || self.together_max < REQUESTS_TO_JUDGE {
            return None;
        }
        let requests = self.requests;
        let how = if self.last == Nanos::ZERO {
            format!("all {requests} requests carry the same time, so by the trace's clock they come as one burst")
        } else {
            format!(
                "the times of all {requests} requests are whole seconds, so by the trace's clock they come in bursts of \
                 up to {}",
                self.together_max
            )
        };
        Some(format!(
            "{name}: {how}, and latencies are those of waiting in it; `--replay closed:QD` keeps QD requests outstanding \
             instead"
        ))
    }
}
