//! Making sides equal to one that is in sync: regions of the write-intent bitmap are copied a window at a time, as commands
//! that wait for others on the same sectors and let others wait. At the end the sides are flushed, and the record names
//! them as in sync.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::{Mirror, Purpose};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

/// Sectors that are copied at a time.
const WINDOW: u64 = (1 << 20) / 512;

/// How far it is.
pub(super) struct Resync {
    /// What lies before is equal.
    position: u64,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing is on its way.
    Rest,
    /// A copy is.
    Copy,
    /// The flush at the end is, to so many sides; the last is `false` where one of them failed.
    Flush(u32, bool),
    /// A region cannot be read: the sides stay as they are.
    Stuck,
}

impl Resync {
    pub(super) fn new() -> Resync {
        Resync { position: 0, step: Step::Rest }
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.step == Step::Stuck
    }
}

impl Mirror {
    /// What was copied up to now counts for nothing.
    pub(super) fn resync_anew(&mut self) {
        self.epoch += 1;
        let step = match self.resync.take().map(|resync| resync.step) {
            Some(step @ (Step::Copy | Step::Flush(..))) => step,
            _ => Step::Rest,
        };
        self.resync = Some(Resync { position: 0, step });
    }

    fn everyone(&self) -> u64 {
        ((1 << self.io.array.len()) - 1) & !self.failed()
    }

    /// Sends the next copy, or the flush at the end.
    pub(super) fn go_on_resyncing(&mut self) -> bool {
        let everyone = self.everyone();
        let Some(Resync { position, step: Step::Rest }) = self.resync else { return false };
        if self.in_sync & everyone == everyone {
            self.resync = None;
            return false;
        }
        if let Some(window) = self.intent.next(position, self.layout.sectors, WINDOW) {
            self.resync = Some(Resync { position, step: Step::Copy });
            self.copy(Request::new(Op::Write, window.start, window.end - window.start));
            return true;
        }
        if seeded(LayerBug::ResyncUnflushed) {
            (self.resync, self.in_sync) = (None, everyone);
            return false;
        }
        let behind: Vec<usize> = self.writable().filter(|side| self.in_sync >> side & 1 == 0).collect();
        self.resync = Some(Resync { position, step: Step::Flush(behind.len() as u32, true) });
        for side in behind {
            self.io.array.send(side, Request::new(Op::Flush, 0, 0), &[], Purpose::LastFlush(self.epoch));
        }
        true
    }

    /// A copy has read, or written everywhere.
    pub(super) fn copy_went_on(&mut self, slot: u32) {
        let command = self.io.command(slot);
        let unreadable = !command.state.writes && command.status != Status::Success;
        if !command.state.writes && !unreadable {
            command.state.writes = true;
            // The copy goes on only when the sides know that they may differ there.
            if self.is_durable(slot) {
                self.send_change(slot);
            } else {
                self.for_bits.push_back(slot);
            }
            return;
        }
        let command = self.retire(slot);
        let Some(resync) = &mut self.resync else { return };
        resync.step = if unreadable { Step::Stuck } else { Step::Rest };
        if command.state.epoch == self.epoch && !unreadable {
            resync.position = command.request.end();
            self.counts.resynced_sectors += command.request.sectors;
        }
    }

    /// A side that was left behind has everything on flash.
    pub(super) fn last_flush_ended(&mut self, part: &Ended<Purpose>, begun_in: u64) {
        if !matches!(part.status, Status::Success | Status::Aborted) {
            // To ask again would not help.
            self.give_up(part.device, part.status);
        }
        let (everyone, epoch) = (self.everyone(), self.epoch);
        let Some(Resync { step: Step::Flush(left, good), .. }) = &mut self.resync else {
            unreachable!("a flush ends the resynchronisation")
        };
        *left -= 1;
        *good &= part.status == Status::Success && begun_in == epoch;
        let (left, good) = (*left, *good);
        if left > 0 {
            return;
        }
        if !good {
            if let Some(resync) = &mut self.resync {
                resync.step = Step::Rest;
            }
            return;
        }
        self.resync = None;
        self.in_sync = everyone;
        if self.record.in_sync != everyone {
            self.record.generation = self.record.generation.wrapping_add(1);
            self.record.in_sync = everyone;
            self.record_stale = true;
        }
    }
}
