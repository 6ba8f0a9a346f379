//! Commands to the device below: what logs have ready is sent, and what has ended is taken.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::standing::Done;

use super::{LogStructured, Purpose, Writing};
use crate::core::cache::Of;
use crate::core::log::{Outgoing, Placed};
use crate::seeded::{FsBug, seeded};

impl LogStructured {
    /// Sends what the logs have ready.
    pub(crate) fn send_outbox(&mut self) {
        for outgoing in std::mem::take(&mut self.core.logs.outbox) {
            let number = self.number_write();
            if outgoing.in_place && seeded(FsBug::InPlaceNotAwaited) {
                self.open_writes.remove(&number);
            }
            self.send_write(number, outgoing);
        }
    }

    /// Sends what the logs have ready, which has nodes of an fsync. A device with a write cache first flushes the data that they name: a mount
    /// that finds the nodes and not the data would give a file what was at its place before.
    pub(crate) fn send_nodes(&mut self) {
        if !self.checkpoints.has_write_cache || seeded(FsBug::NodesBeforeFlush) {
            return self.send_outbox();
        }
        for outgoing in std::mem::take(&mut self.core.logs.outbox) {
            let number = self.number_write();
            let request = Request { fua: true, ..outgoing.request };
            self.held.commands.push_back((number, Outgoing { request, ..outgoing }));
        }
        self.flush_for_nodes();
    }

    fn flush_for_nodes(&mut self) {
        if self.held.flushed == 0 && !self.held.commands.is_empty() {
            self.held.flushed = self.held.commands.len();
            self.below.send(Request::new(Op::Flush, 0, 0), &[], Purpose::FlushData(self.in_place.ended()));
        }
    }

    /// A flush for nodes has ended: those that waited for it go. Without a device that flushes, none ever will.
    fn data_is_flushed(&mut self, is_well: bool) {
        let ready = if is_well { self.held.flushed } else { self.held.commands.len() };
        self.held.flushed = 0;
        for (number, outgoing) in self.held.commands.drain(..ready).collect::<Vec<_>>() {
            if is_well {
                self.send_write(number, outgoing);
            } else {
                let Outgoing { segment, placed, in_place, .. } = outgoing;
                self.end_write(Writing { number, segment, placed, in_place }, false);
            }
        }
        self.flush_for_nodes();
    }

    fn number_write(&mut self) -> u64 {
        self.last_write += 1;
        self.open_writes.insert(self.last_write);
        self.last_write
    }

    fn send_write(&mut self, number: u64, outgoing: Outgoing) {
        let Outgoing { request, cells, records, placed, segment, in_place } = outgoing;
        let number = self.writing.put(Writing { number, segment, placed, in_place });
        self.below.send(request, &cells, Purpose::Write(number));
        for (address, bytes) in records {
            let sector = u64::from(address) * crate::format::BLOCK_SECTORS;
            self.below.device_mut().keep_record(sector, &bytes[..]);
        }
    }

    /// Whether a write up to this number has not ended.
    pub(crate) fn writes_are_open(&self, last: u64) -> bool {
        self.open_writes.first().is_some_and(|first| *first <= last)
    }

    pub(super) fn take_ended(&mut self) -> bool {
        let mut done = std::mem::take(&mut self.done);
        self.below.take(&mut done);
        let any = !done.is_empty();
        for one in done.drain(..) {
            self.ended(&one);
        }
        self.done = done;
        any
    }

    pub(super) fn ended(&mut self, done: &Done<Purpose>) {
        // A layer that keeps data in the host's memory may do a flush after it, and what was flushed to it before is lost all the same.
        let is_well = done.status == Status::Success && !self.core.is_shut;
        if !is_well && !matches!(done.purpose, Purpose::Load(_)) {
            let (sector, status) = (done.request.sector, done.status);
            self.core.set_read_only(format!("{:?} of sector {sector} ended with {status:?}", done.request.op));
        }
        if let Purpose::Flush(writes) | Purpose::FlushData(writes) | Purpose::FlushInPlace(writes) = done.purpose
            && is_well
        {
            self.in_place.are_flushed(writes);
        }
        match done.purpose {
            Purpose::Load(number) => self.load_ended(done, number),
            Purpose::Write(number) => self.write_ended(number, is_well),
            Purpose::FlushData(_) => self.data_is_flushed(is_well),
            Purpose::FlushInPlace(_) => self.in_place_flush_ended(),
            Purpose::Flush(_) if is_well => self.commit(),
            Purpose::Checkpoint if is_well => self.commit_ended(),
            Purpose::Flush(_) | Purpose::Checkpoint => self.abandon_checkpoint(),
            Purpose::Trim(first, count) if is_well => self.trim_ended(first, count),
            Purpose::Trim(..) | Purpose::TrimCheckpoints => {}
        }
        if self.core.read_only.is_some() {
            self.runnable.append(&mut self.for_room);
        }
    }

    pub(super) fn write_ended(&mut self, number: u32, is_well: bool) {
        let writing = self.writing.take(number);
        self.end_write(writing, is_well);
    }

    fn end_write(&mut self, writing: Writing, is_well: bool) {
        let Writing { number, segment, placed, in_place } = writing;
        self.open_writes.remove(&number);
        self.core.space.write_ends(segment);
        self.core.writing_pages -= placed.len();
        self.has_written = true;
        if is_well {
            if in_place && self.checkpoints.has_write_cache {
                self.in_place.end(&placed);
            }
            for Placed { page, address, write, size } in placed {
                if let Of::Page { inode, index } = page.of() {
                    self.core.page_is_written(inode, index, write, address, size);
                }
            }
        }
        let open = self.open_writes.first().copied().unwrap_or(u64::MAX);
        let (ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.for_writes).into_iter().partition(|(last, _)| *last < open);
        self.for_writes = waiting;
        self.runnable.extend(ready.into_iter().map(|(_, task)| task));
    }
}
