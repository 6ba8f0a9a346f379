//! FAST: fully associative sector translation (Lee, Park, Chung, Lee, Park, Song; ACM Transactions on Embedded Computing Systems
//! 6(3), 2007).
//!
//! One log block, the *SW log block*, takes writes of one logical block that begin with its first page and go on in order. All
//! other overwrites go to *RW log blocks*, whatever their logical block. When a log block is needed and there are as many as
//! there may be, the oldest RW log block is merged: each logical block that has a page there.
//!
//! A page of the SW log block's logical block that is not the next one goes to an RW log block, and the SW log block stays. In
//! the paper's algorithm (section 3.2) it is merged at once, and a new SW log block takes the page: then each such write costs
//! a merge, which the paper sets out to put off (`docs/model/log-blocks.md`).

use ssdlab_flash::{Lpn, NONE};

use super::header::Header;
use super::logs::LogNumber;
use super::{LogBlockFtl, Scheme, design};
use crate::ftl::{Design, NoSpace, block_mapping_limits};
use crate::media::Media;

/// The design as a description names it.
pub(crate) const FAST: Design = design(
    "fast",
    "FAST: a map of blocks, a log block for sequential overwrites, and log blocks for any others",
    |config| block_mapping_limits::check(config, "fast", Header::bytes),
    |config| Box::new(LogBlockFtl::new(config, Scheme::Fast)),
);

impl LogBlockFtl {
    /// The log block that the next write of an LPN goes to.
    pub(super) fn fast_log(&self, media: &Media, lpn: Lpn) -> Option<LogNumber> {
        let (logical, offset) = self.split(lpn);
        let goes_on =
            |number: &LogNumber| self.logs[*number].lpns.len() as u32 == offset && self.has_page(media, *number);
        let sequential = self.logs.of_logical(logical).filter(goes_on);
        if sequential.is_some() || offset == 0 {
            return sequential;
        }
        self.logs.of_any().next_back().filter(|newest| self.has_page(media, *newest))
    }

    /// A step towards a log block for a write of an LPN.
    pub(super) fn fast_step(&mut self, media: &mut Media, lpn: Lpn) -> Result<(), NoSpace> {
        let (logical, offset) = self.split(lpn);
        // There is one at most.
        let sequential = self.logs.least_recently_used();
        if offset == 0
            && let Some(sequential) = sequential
        {
            return self.merge_log(media, sequential);
        }
        if (self.logs.len() as u32) < self.most_logs {
            return self.open_log(media, if offset == 0 { logical } else { NONE });
        }
        // The oldest, unless the only one is for sequential writes.
        let oldest = self.logs.of_any().next().or(sequential);
        self.merge_log(media, oldest.expect("there are log blocks"))
    }
}
