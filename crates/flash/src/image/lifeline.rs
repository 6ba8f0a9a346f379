//! Where a process can end: in the middle of any write to an image's files, or between two of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel notices that a process was killed between two pages of a write, so a write ends at such a boundary of its
/// file, or did not begin.
pub(super) const CUT_BYTES: u64 = 4096;

/// Nothing ends the process.
const UNLIMITED: u64 = u64::MAX;

/// How many more writes an image's files get before the process ends, as `kill -9` ends it: for tests that kill a drive
/// at every write in turn. Clones count together.
#[derive(Clone, Debug)]
pub struct Lifeline(Arc<AtomicU64>);

/// What becomes of a write.
enum Fate {
    Whole,
    /// The process ends in it.
    Cut,
    Never,
}

impl Default for Lifeline {
    fn default() -> Lifeline {
        Lifeline(Arc::new(AtomicU64::new(UNLIMITED)))
    }
}

impl Lifeline {
    /// After so many more whole writes the process ends in the next one.
    pub fn end_after(&self, writes: u64) {
        self.0.store(writes.saturating_add(1), Ordering::SeqCst);
    }

    /// The process ends now.
    pub fn end(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// Whether the process still runs: what is done after its end reaches no host.
    pub fn is_alive(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn spend(&self) -> Fate {
        let spent = |left| if left == UNLIMITED || left == 0 { None } else { Some(left - 1) };
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spent) {
            Ok(1) => Fate::Cut,
            Err(0) => Fate::Never,
            Ok(_) | Err(_) => Fate::Whole,
        }
    }

    /// Writes all bytes at an offset, or as many as the end of the process leaves.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.spend() {
            Fate::Whole => file.write_all_at(bytes, offset),
            Fate::Cut => file.write_all_at(&bytes[..cut(offset, bytes.len())], offset),
            Fate::Never => Ok(()),
        }
    }

    /// Whether a change that is made as a whole or not at all is made.
    pub(super) fn passes(&self) -> bool {
        matches!(self.spend(), Fate::Whole)
    }
}

/// How many bytes of a write get into the file: up to the boundary in its middle.
fn cut(offset: u64, bytes: usize) -> usize {
    let end = offset + bytes as u64;
    let middle = (offset + end) / 2;
    let boundary = [middle / CUT_BYTES * CUT_BYTES, middle.next_multiple_of(CUT_BYTES)];
    boundary.into_iter().find(|at| (offset..end).contains(at)).map_or(0, |at| (at - offset) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_cut_at_a_page_boundary_of_its_file_and_nothing_is_written_after_it() {
        assert_eq!((cut(0, 4096), cut(100, 200), cut(4000, 200), cut(4096, 8192)), (0, 0, 96, 4096));
        let file = tempfile::tempfile().expect("a file");
        let lifeline = Lifeline::default();
        lifeline.write_at(&file, &[1; 16], 4090).expect("written");
        lifeline.end_after(1);
        lifeline.write_at(&file, &[2; 16], 4090).expect("written");
        assert!(lifeline.is_alive());
        lifeline.write_at(&file, &[3; 16], 4090).expect("cut");
        assert!(!lifeline.is_alive() && !lifeline.passes());
        lifeline.write_at(&file, &[4; 16], 4090).expect("never");
        let mut found = [0; 16];
        file.read_exact_at(&mut found, 4090).expect("the bytes are there");
        assert_eq!(found, [3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }
}
