//! Commits: what the table has gained and lost goes to the device, when that is on flash.
//!
//! ```text
//!   flush below -> places of the pass are freed in RAM -> slots (FUA) -> header (FUA), if places were freed -> answers
//! ```
//!
//! One commit is below at a time; flushes and FUA writes that arrive meanwhile share the next one. A commit for FUA writes alone
//! needs no flush: they are on flash, and only their slots are written.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::critical_path::Path;

use super::config::TableIn;
use super::layout::HEADER_SECTORS;
use super::records::{Slot, header};
use super::recovery::sectors_of;
use super::writeback::Phase;
use super::{Purpose, Restoring};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

/// What a slot is to say of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) position: u64,
    pub(super) is_home: bool,
    /// What it says is on flash without a flush.
    pub(super) durable: bool,
}

/// What of a commit is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Flush,
    Slots,
    Header,
}

/// A commit.
pub(super) struct Commit {
    number: u64,
    stage: Stage,
    /// Commands that are answered at its end.
    waiters: Vec<u32>,
    /// Places that it frees.
    frees: u32,
    /// Commands below that have not ended.
    left: u32,
    status: Status,
    path: Option<Box<Path>>,
}

impl Restoring {
    /// A command waits for a commit.
    pub(super) fn join(&mut self, slot: u32, needs_flush: bool) {
        self.joining.push(slot);
        self.needs_flush |= needs_flush;
    }

    /// Begins the next commit where one is due.
    pub(super) fn commit_if_due(&mut self) {
        while self.commit.is_none() {
            let copied = self.pass.as_mut().filter(|pass| pass.phase == Phase::Copied);
            let frees = copied.map_or(0, |pass| {
                pass.phase = Phase::Flushing;
                pass.count
            });
            if self.joining.is_empty() && frees == 0 {
                return;
            }
            self.begin_commit(frees);
        }
    }

    fn begin_commit(&mut self, frees: u32) {
        self.counts.commits += 1;
        let (number, waiters) = (self.io.next_number(), std::mem::take(&mut self.joining));
        let ops: Vec<_> = waiters.iter().map(|slot| self.io.command(*slot).request).collect();
        let flush = ops.into_iter().find(|request| request.op == Op::Flush);
        let needs_flush = std::mem::take(&mut self.needs_flush) || frees > 0 && !seeded(LayerBug::FreedUnflushed);
        assert!(flush.is_none() || needs_flush, "a flush reaches the device");
        self.commit =
            Some(Commit { number, stage: Stage::Flush, waiters, frees, left: 1, status: Status::Success, path: None });
        if needs_flush {
            assert!(self.flushing.is_empty(), "a flush ends before the next");
            self.flushing = std::mem::take(&mut self.pending);
            self.counts.flushes += u64::from(flush.is_none());
            let request = Request { queue: flush.map_or(0, |request| request.queue), ..Request::new(Op::Flush, 0, 0) };
            self.io.array.send(0, request, &[], Purpose::Flush(number));
            return;
        }
        let is_durable = |pending: &Pending| pending.durable || seeded(LayerBug::TableUnflushed);
        let (now, later) = std::mem::take(&mut self.pending).into_iter().partition(|(_, pending)| is_durable(pending));
        (self.flushing, self.pending) = (now, later);
        self.records_on_flash();
    }

    fn commit(&mut self) -> &mut Commit {
        self.commit.as_mut().expect("a commit is below")
    }

    pub(super) fn flush_ended(&mut self, part: Ended<Purpose>, number: u64) {
        // A power cut below has ended it before, if it is another one.
        let Some(commit) = self.commit.as_mut().filter(|commit| commit.number == number) else { return };
        assert_eq!(commit.stage, Stage::Flush, "a flush ends once");
        commit.path = part.path;
        if part.status == Status::Success {
            return self.records_on_flash();
        }
        commit.status = part.status;
        for (unit, pending) in std::mem::take(&mut self.flushing) {
            self.pending.entry(unit).or_insert(pending);
        }
        self.end_commit();
    }

    /// What the commit is about to say is true after any cut.
    fn records_on_flash(&mut self) {
        let frees = self.commit().frees;
        if frees > 0 {
            let left: Vec<_> = self.live_in(frees).collect();
            for (unit, place) in left {
                let is_copied = self.copied().is_some_and(|copied| copied.contains(&place));
                assert!(is_copied, "unit {unit} is in place {place}, which is freed, and was not copied");
                self.table.remove(unit);
            }
            self.records.free(self.tail + u64::from(frees));
            self.header_is_stale = self.config.table == TableIn::Drive;
            if let Some(pass) = &mut self.pass {
                pass.phase = Phase::Freed;
            }
            let freed = self.records.freed();
            self.pending.retain(|_, pending| pending.position >= freed);
        }
        for (unit, Pending { position, is_home, .. }) in std::mem::take(&mut self.flushing) {
            self.records.set(position, Slot { unit, is_home });
        }
        self.has_ended = true;
        self.send_slots();
    }

    fn send_slots(&mut self) {
        let most = (u64::from(self.pack_units) * self.layout.per_unit).min(u64::from(u32::MAX)) as u32;
        let runs = self.records.take_stale(most);
        let commit = self.commit();
        (commit.stage, commit.left) = (Stage::Slots, 0);
        if self.config.table == TableIn::Drive {
            self.commit().left = runs.len() as u32;
            for run in runs {
                self.send_run(run);
            }
        }
        if self.commit().left == 0 {
            self.slots_are_written();
        }
    }

    fn send_run(&mut self, run: std::ops::Range<u32>) {
        let cells = sectors_of(self.records.words(run.clone()), self.layout.per_unit, self.io.cell);
        let sectors = (run.len() as u64).next_multiple_of(self.layout.per_unit);
        let sector = self.layout.slots + u64::from(run.start);
        assert!(sector + sectors <= self.layout.header, "slots end before the header");
        self.counts.table_writes += 1;
        self.counts.table_sectors += sectors;
        let request = Request { fua: true, ..Request::new(Op::Write, sector, sectors) };
        self.io.array.send(0, request, &cells, Purpose::Slots(run.end));
    }

    pub(super) fn slots_ended(&mut self, part: &Ended<Purpose>, end: u32) {
        let run = (part.request.sector - self.layout.slots) as u32..end;
        match part.status {
            Status::Success => {}
            // What it says is still true.
            Status::Aborted => return self.send_run(run),
            status => {
                self.records.are_stale(run);
                self.commit().status = status;
            }
        }
        let commit = self.commit();
        assert!(commit.left > 0 && commit.stage == Stage::Slots, "slots are written once");
        commit.left -= 1;
        if commit.left == 0 {
            self.slots_are_written();
        }
    }

    /// The header follows the slots: what freed places held must be found elsewhere before.
    fn slots_are_written(&mut self) {
        if !self.header_is_stale || self.commit().status != Status::Success {
            return self.end_commit();
        }
        self.commit().stage = Stage::Header;
        self.send_header();
    }

    fn send_header(&mut self) {
        let words = header(self.records.freed(), self.layout.places);
        let cells = sectors_of(&words, self.layout.per_unit, self.io.cell);
        let sectors = HEADER_SECTORS.next_multiple_of(self.layout.per_unit);
        self.counts.table_writes += 1;
        self.counts.table_sectors += sectors;
        let request = Request { fua: true, ..Request::new(Op::Write, self.layout.header, sectors) };
        self.io.array.send(0, request, &cells, Purpose::Header);
    }

    pub(super) fn header_ended(&mut self, status: Status) {
        assert_eq!(self.commit().stage, Stage::Header, "a header is written once");
        match status {
            Status::Aborted => self.send_header(),
            status => {
                // A header that the device refused is due again: slots of the places that it frees were not written.
                self.header_is_stale = status.is_error();
                self.commit().status = status;
                self.end_commit();
            }
        }
    }

    /// A commit has ended, well or not, and its commands are answered.
    fn end_commit(&mut self) {
        let Commit { waiters, frees, status, path, .. } = self.commit.take().expect("a commit ends once");
        if status.is_error() && status != Status::Aborted {
            self.give_up(status);
        }
        if frees > 0
            && let Some(pass) = &mut self.pass
        {
            pass.phase = Phase::Written;
        }
        self.has_ended = true;
        for slot in waiters {
            self.waited_for(slot, path.as_deref());
            self.answer(slot, status);
        }
    }

    /// A device below lost its power: a flush that had not ended has covered nothing, and what waited for one neither. A commit
    /// that is further goes on: what it says was on flash before.
    pub(super) fn commit_is_lost(&mut self) {
        let mut lost = std::mem::take(&mut self.joining);
        self.needs_flush = false;
        if self.commit.as_ref().is_some_and(|commit| commit.stage == Stage::Flush) {
            self.flushing.clear();
            lost.extend(self.commit.take().into_iter().flat_map(|commit| commit.waiters));
        }
        for slot in lost {
            self.answer(slot, Status::Aborted);
        }
    }
}
