//! Reads of units that are in several versions on flash, one version after another.

use ssdlab_flash::{Cause, Lpn};

use super::Drive;
use crate::Status;
use crate::ftl::VersionPart;
use crate::media::Location;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// A read of one unit that goes on from version to version.
#[derive(Clone, Debug, Default)]
pub(super) struct VersionRead {
    command: u32,
    /// Versions still to be read, the oldest first; their blocks are pinned.
    left: Vec<VersionPart>,
}

impl Drive {
    /// Reads the sectors `wanted` of a unit: its newest version first, the older ones as far as they are needed, each when
    /// the one before has told that it is.
    #[inline(never)]
    pub(super) fn read_versions(&mut self, command: u32, lpn: Lpn, wanted: u64) {
        let slot = self.reads.versions.take();
        let mut parts = std::mem::take(&mut self.reads.versions[slot].left);
        let reads = self.ftl.stepped_reads().expect("the design found versions");
        reads.versions(&self.media, lpn, wanted, &mut parts);
        for part in &parts {
            let lost = part.sectors != 0 && self.media.flash.oob.is_poisoned(part.ppn.sole_unit());
            if lost && !seeded(Bug::LostDataReadsGood) {
                self.commands[command].status = Status::UncorrectableRead;
            }
            self.media.pool.pin(self.media.block_of_page(part.ppn));
        }
        assert!(!parts.is_empty(), "unit {lpn} has versions, and none is to be read");
        parts.reverse();
        self.reads.versions[slot] = VersionRead { command, left: parts };
        // The read of the last version lets the command go.
        self.commands[command].remaining += 1;
        self.read_next_version(slot);
    }

    /// Goes on to the next version that has to be read from flash.
    pub(super) fn read_next_version(&mut self, slot: u32) {
        while let Some(part) = self.reads.versions[slot].left.pop() {
            let begun = self.read_version(slot, part);
            let block = self.media.block_of_page(part.ppn);
            self.media.unpin(block);
            if begun {
                return;
            }
        }
        self.reads.versions.release(slot);
        self.release_command(self.reads.versions[slot].command);
    }

    /// Begins to read a version; false if that takes no time.
    fn read_version(&mut self, slot: u32, part: VersionPart) -> bool {
        let VersionRead { command, .. } = self.reads.versions[slot];
        let from = match self.media.locate(part.ppn) {
            Location::InRam => return false,
            Location::Building(program) => {
                // What is older need not wait for that.
                self.commands[command].remaining += 1;
                let units = u64::from(part.sectors != 0);
                self.waiting.for_programs.entry(program).or_default().push((command, units));
                return false;
            }
            Location::OnFlash(page) => self.media.place_of_page(page),
        };
        if !self.media.flash.timed() {
            if self.media.read_now(from, Cause::Host) {
                self.commands[command].status = Status::UncorrectableRead;
            }
            return false;
        }
        self.media.read(from, part.bytes, Cause::Host, Waiter::Versions(slot));
        true
    }

    /// A version could not be read.
    pub(super) fn version_lost(&mut self, slot: u32) {
        let command = self.reads.versions[slot].command;
        self.commands[command].status = Status::UncorrectableRead;
    }
}
