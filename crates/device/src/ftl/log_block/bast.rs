//! BAST: block-associative sector translation (Kim, Kim, Noh, Min, Cho; IEEE Transactions on Consumer Electronics 48(2), 2002).
//!
//! A log block takes the overwrites of one logical block. When a logical block needs a log block and there are as many as there
//! may be, the one that was written least recently is merged.

use ssdlab_flash::Lpn;

use super::header::Header;
use super::logs::LogNumber;
use super::{LogBlockFtl, Scheme, design};
use crate::ftl::{Design, NoSpace, block_mapping_limits};
use crate::media::Media;

/// The design as a description names it.
pub(crate) const BAST: Design = design(
    "bast",
    "BAST: a map of blocks, and log blocks that take the overwrites of one logical block each",
    |config| block_mapping_limits::check(config, "bast", Header::bytes),
    |config| Box::new(LogBlockFtl::new(config, Scheme::Bast)),
);

impl LogBlockFtl {
    /// The log block that the next write of an LPN goes to.
    pub(super) fn bast_log(&self, media: &Media, lpn: Lpn) -> Option<LogNumber> {
        self.logs.of_logical(self.split(lpn).0).filter(|number| self.has_page(media, *number))
    }

    /// A step towards a log block for a write of an LPN.
    pub(super) fn bast_step(&mut self, media: &mut Media, lpn: Lpn) -> Result<(), NoSpace> {
        let logical = self.split(lpn).0;
        if let Some(number) = self.logs.of_logical(logical) {
            return self.merge_log(media, number);
        }
        if (self.logs.len() as u32) < self.most_logs {
            return self.open_log(media, logical);
        }
        self.merge_log(media, self.logs.least_recently_used().expect("there are log blocks"))
    }
}
