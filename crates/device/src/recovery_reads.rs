//! What recovery reads, and how long that takes: dies side by side, and pages of one channel one after another on it.

use ssdlab_base::{Divider, Nanos};
use ssdlab_flash::{BlockId, DieId, Flash, Timing};

use crate::media::Place;

/// Reads so far. A design tells of every page that it looks at, and is charged for exactly those.
pub(crate) struct RecoveryReads {
    timing: Timing,
    by_blocks_per_die: Divider,
    by_dies_per_channel: Divider,
    /// Time of a page's OOB area, and of all of a page, on the channel.
    oob_time: Nanos,
    page_time: Nanos,
    pages: u64,
    programs: u64,
    erases: u64,
    /// Operations until the power goes again.
    limit: u64,
    die_time: Vec<Nanos>,
    channel_time: Vec<Nanos>,
}

impl RecoveryReads {
    pub(crate) fn new(flash: &Flash, timing: &Timing) -> RecoveryReads {
        let geometry = *flash.geometry();
        RecoveryReads {
            timing: timing.clone(),
            oob_time: timing.command + flash.transfer_time(geometry.oob_bytes.min(geometry.page_bytes)),
            page_time: timing.command + flash.transfer_time(geometry.page_bytes),
            pages: 0,
            programs: 0,
            erases: 0,
            limit: u64::MAX,
            die_time: vec![Nanos::ZERO; geometry.dies() as usize],
            channel_time: vec![Nanos::ZERO; geometry.channels as usize],
            by_blocks_per_die: Divider::new(geometry.planes_per_die * geometry.blocks_per_plane),
            by_dies_per_channel: Divider::new(geometry.chips_per_channel * geometry.dies_per_chip),
        }
    }

    /// The OOB area of a page was read.
    pub(crate) fn oob(&mut self, place: Place) {
        self.add(place, self.oob_time);
    }

    /// All of a page was read.
    pub(crate) fn page(&mut self, place: Place) {
        self.add(place, self.page_time);
    }

    fn add(&mut self, place: Place, on_channel: Nanos) {
        let (die, channel) = self.where_is(place.block);
        self.pages += 1;
        self.die_time[die.index()] += self.timing.read[place.page as usize % self.timing.read.len()].max;
        self.channel_time[channel] += on_channel;
    }

    /// The power goes again after so many operations.
    pub(crate) fn set_limit(&mut self, operations: u64) {
        self.limit = operations;
    }

    /// Whether another operation comes before the power goes.
    pub(crate) fn may_go_on(&self) -> bool {
        self.pages + self.programs + self.erases < self.limit
    }

    /// A page was programmed.
    pub(crate) fn programmed(&mut self, place: Place) {
        let (die, channel) = self.where_is(place.block);
        self.programs += 1;
        self.die_time[die.index()] += self.timing.program[place.page as usize % self.timing.program.len()].max;
        self.channel_time[channel] += self.page_time;
    }

    /// Pages programmed.
    pub(crate) fn programs(&self) -> u64 {
        self.programs
    }

    /// A block was erased.
    pub(crate) fn erased(&mut self, block: BlockId) {
        let (die, channel) = self.where_is(block);
        self.erases += 1;
        self.die_time[die.index()] += self.timing.erase.max;
        self.channel_time[channel] += self.timing.command;
    }

    /// The die of a block, and its channel.
    fn where_is(&self, block: BlockId) -> (DieId, usize) {
        let die = DieId(self.by_blocks_per_die.div(block.0));
        (die, self.by_dies_per_channel.div(die.0) as usize)
    }

    /// Pages read.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// How long it all takes at most.
    pub(crate) fn time(&self) -> Nanos {
        self.die_time.iter().chain(&self.channel_time).copied().max().unwrap_or(Nanos::ZERO)
    }
}
