//! Edges of Ready/Busy lines, and the lows between them.

use ssdlab_base::Nanos;

/// A change of one Ready/Busy line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When.
    pub at: Nanos,
    /// Whose line: a die's number, or the place among the lines of a capture.
    pub die: u32,
    /// Low (busy) from now on, or high (ready).
    pub busy: bool,
}

/// A die was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Low {
    /// Whose line.
    pub die: u32,
    /// When it went low.
    pub start: Nanos,
    /// When it was high again.
    pub end: Nanos,
}

impl Low {
    /// How long it was low.
    pub fn duration(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// Puts edges together to lows. A low whose beginning was not seen is counted, and is none.
#[derive(Clone, Debug, Default)]
pub struct LowTracker {
    /// For each line, when it went low.
    since: Vec<Option<Nanos>>,
    /// Lows whose start was not seen.
    headless: u64,
}

impl LowTracker {
    /// For so many lines.
    pub fn new(lines: usize) -> LowTracker {
        LowTracker { since: vec![None; lines], headless: 0 }
    }

    /// Takes an edge; the low that ends with it, if one does.
    ///
    /// # Panics
    /// When the line is none of those it was made for.
    #[inline]
    pub fn edge(&mut self, edge: Edge) -> Option<Low> {
        let since = &mut self.since[edge.die as usize];
        if edge.busy {
            if since.is_none() {
                *since = Some(edge.at);
            }
            return None;
        }
        match since.take() {
            Some(start) => Some(Low { die: edge.die, start, end: edge.at }),
            None => {
                self.headless += 1;
                None
            }
        }
    }

    /// Lows that had begun before the first edge, and whose length is not known.
    pub fn cut_at_start(&self) -> u64 {
        self.headless
    }

    /// Lines that are low still.
    pub fn cut_at_end(&self) -> u64 {
        self.since.iter().flatten().count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_needs_both_its_edges() {
        let edge = |at, die, busy| Edge { at: Nanos(at), die, busy };
        let mut tracker = LowTracker::new(2);
        assert_eq!(tracker.edge(edge(5, 0, false)), None);
        assert_eq!(tracker.edge(edge(6, 0, true)), None);
        assert_eq!(tracker.edge(edge(7, 1, true)), None);
        let low = tracker.edge(edge(9, 0, false)).expect("both edges were seen");
        assert_eq!((low.die, low.duration()), (0, Nanos(3)));
        assert_eq!((tracker.cut_at_start(), tracker.cut_at_end()), (1, 1));
    }
}
