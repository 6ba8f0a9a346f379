//! Units that are in several versions on flash: reading them one after another, and merging them while the drive is idle.

use ssdlab_base::Nanos;
use ssdlab_flash::{Cause, Lpn};

use super::Drive;
use crate::Status;
use crate::ftl::VersionPart;
use crate::seeded::{Bug, seeded};
use crate::token::Owner;

/// What the FTL has in flight at one time while the drive is idle.
const IDLE_IN_FLIGHT: u32 = 8;

/// When the drive counts as idle, and what the FTL does then.
#[derive(Clone, Debug)]
pub(super) struct IdlePace {
    /// Commands in flight at most for the FTL to do it.
    light_load: u64,
    /// When background collection may run, and when the FTL may begin.
    background_at: Option<Nanos>,
    due: Option<Nanos>,
    /// It may go on.
    on: bool,
    in_flight: u32,
}

impl IdlePace {
    pub(super) fn new(light_load: u64) -> IdlePace {
        IdlePace { light_load, background_at: None, due: None, on: false, in_flight: 0 }
    }

    pub(super) const fn light_load(&self) -> u64 {
        self.light_load
    }

    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    fn next(&self) -> Option<Nanos> {
        self.background_at.into_iter().chain(self.due).min()
    }
}

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
        let place = self.media.place_of_page(part.ppn);
        let mut from = place;
        if !self.media.flash.blocks.readable(part.ppn) {
            // Its program failed: it was still in RAM.
            return false;
        }
        if !self.media.flash.is_written(place.block, place.page) {
            let Some(program) = self.media.flash.find_program(place.block, place.page) else { return false };
            let Some(source) = self.media.flash.copyback_source(program) else {
                if self.media.flash.waits(program) {
                    // In RAM when it has been built; what is older need not wait for that.
                    self.commands[command].remaining += 1;
                    let units = u64::from(part.sectors != 0);
                    self.waiting.for_programs.entry(program).or_default().push((command, units));
                }
                return false;
            };
            from = self.media.place_of_page(source);
        }
        if !self.media.flash.timed() {
            if self.media.read_now(from, Cause::Host) {
                self.commands[command].status = Status::UncorrectableRead;
            }
            return false;
        }
        self.media.read(from, part.bytes, Cause::Host, Owner::Versions(slot));
        true
    }

    /// A version could not be read.
    pub(super) fn version_lost(&mut self, slot: u32) {
        let command = self.reads.versions[slot].command;
        self.commands[command].status = Status::UncorrectableRead;
    }

    /// A command came: what waits for fewer of them waits on.
    pub(super) fn load_has_grown(&mut self) {
        self.idle.work.background_at = None;
        if self.commands.outstanding > self.idle.work.light_load {
            self.idle.work.on = false;
            self.idle.work.due = None;
        }
        self.idle.at = self.idle.work.due;
    }

    /// A command has completed, and few are left or none.
    pub(super) fn load_has_fallen(&mut self) {
        if self.commands.outstanding == 0 {
            self.idle.work.background_at = self.gc.idle_after().map(|after| self.media.now + after);
        }
        if !self.idle.work.on && self.idle.work.due.is_none() && self.has_idle_work() {
            self.idle.work.due = Some(self.media.now + self.config.gc.idle_after);
        }
        self.idle.at = self.idle.work.next();
    }

    fn has_idle_work(&mut self) -> bool {
        self.ftl.idle_work().is_some_and(|work| work.has_work())
    }

    /// The drive counts as idle, for background collection or for what the FTL does then.
    pub(super) fn idle_time_has_come(&mut self, at: Nanos) {
        if self.idle.work.background_at == Some(at) {
            self.idle.work.background_at = None;
            self.gc.set_background(true);
            self.pump_all();
        }
        if self.idle.work.due == Some(at) {
            self.idle.work.due = None;
            self.idle.work.on = true;
            self.work_idle();
        }
        self.idle.at = self.idle.work.next();
    }

    /// The drive does not become idle by itself.
    pub(super) fn forget_idle_times(&mut self) {
        self.idle.at = None;
        (self.idle.work.background_at, self.idle.work.due, self.idle.work.on) = (None, None, false);
    }

    /// Lets the FTL do what it does while the drive is idle, a few programs at a time.
    fn work_idle(&mut self) {
        if self.idle.work.on && !self.failures.read_only && self.idle.work.in_flight < IDLE_IN_FLIGHT {
            assert!(self.media.flash.timed(), "a drive without time is never idle");
            let limit = IDLE_IN_FLIGHT - self.idle.work.in_flight;
            if let Some(work) = self.ftl.idle_work() {
                let started = work.work(&mut self.media, limit, Owner::Idle);
                assert!(started <= limit, "{started} programs of idle work were started, of {limit}");
                self.idle.work.in_flight += started;
            }
            // With nothing in flight it begins anew when the next command has completed.
            self.idle.work.on = self.idle.work.in_flight > 0;
        }
    }

    /// A program of it is on flash.
    pub(super) fn idle_work_done(&mut self) {
        assert!(self.idle.work.in_flight > 0, "idle work ended, and none was in flight");
        self.idle.work.in_flight -= 1;
        self.work_idle();
    }
}
