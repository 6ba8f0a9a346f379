//! One pass over a capture: the durations of the lows of every line. Memory does not grow with the capture.

use ssdlab_base::Nanos;

use crate::histogram::Durations;
use crate::{Edge, Low, LowTracker, Window};

/// What the classifiers look at.
#[derive(Clone, Debug)]
pub struct Survey {
    lines: Vec<Durations>,
    /// For each line, lows in the window, exactly.
    inside: Vec<u64>,
    window: Option<Window>,
    tracker: LowTracker,
}

impl Survey {
    /// For so many lines; lows in `window` are counted exactly.
    pub fn new(lines: usize, window: Option<Window>) -> Survey {
        Survey {
            lines: vec![Durations::default(); lines],
            inside: vec![0; lines],
            window,
            tracker: LowTracker::new(lines),
        }
    }

    /// Takes an edge; the low that it ends, for others to look at.
    #[inline]
    pub fn edge(&mut self, edge: Edge) -> Option<Low> {
        let low = self.tracker.edge(edge)?;
        let duration = low.duration();
        let line = low.die as usize;
        self.lines[line].add(duration);
        self.inside[line] += u64::from(self.window.is_some_and(|window| window.contains(duration)));
        Some(low)
    }

    /// The durations of each line.
    pub fn lines(&self) -> &[Durations] {
        &self.lines
    }

    /// The durations of all lines together.
    pub fn all(&self) -> Durations {
        let mut all = Durations::default();
        self.lines.iter().for_each(|line| all.merge(line));
        all
    }

    /// For each line, the lows in a window: exactly for the one it was made with, else as
    /// [`Durations::inside`] says.
    pub fn inside(&self, window: Window) -> Vec<f64> {
        if self.window == Some(window) {
            return self.inside.iter().map(|&count| count as f64).collect();
        }
        self.lines.iter().map(|line| line.inside(window)).collect()
    }

    /// Lows cut off by the beginning and by the end of the capture: their lengths are not known, and they are left out.
    pub fn cut(&self) -> (u64, u64) {
        (self.tracker.cut_at_start(), self.tracker.cut_at_end())
    }

    /// The time for which the busiest line was low.
    pub fn busiest(&self) -> Nanos {
        self.lines.iter().map(Durations::busy).max().unwrap_or_default()
    }
}
