//! Commands to the device below: what is ready is sent, and what has ended is taken.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::standing::Done;

use super::{Journaling, Purpose, Writing};
use crate::format::{BLOCK_SECTORS, Bytes};

impl Journaling {
    /// Sends data that was placed.
    pub(super) fn send_outbox(&mut self) {
        for outgoing in std::mem::take(&mut self.core.outbox) {
            let write = self.writing.put(Writing { number: outgoing.number, pages: outgoing.pages });
            self.below.send(outgoing.request, &outgoing.cells, Purpose::Write(write));
        }
    }

    /// Sends blocks of metadata that follow each other on the drive.
    pub(crate) fn send_metadata(&mut self, blocks: &[(u32, Box<Bytes>)], fua: bool, purpose: Purpose) {
        let Some((first, _)) = blocks.first() else { return };
        let cell = self.core.cell;
        let mut cells = Vec::new();
        for (_, bytes) in blocks {
            match cell {
                512 => cells.extend_from_slice(&bytes[..]),
                cell => cells.resize(cells.len() + BLOCK_SECTORS as usize * cell, 0),
            }
        }
        let request = Request::new(Op::Write, u64::from(*first) * BLOCK_SECTORS, blocks.len() as u64 * BLOCK_SECTORS);
        self.below.send(Request { fua, ..request }, &cells, purpose);
        if cell != 512 {
            for (address, bytes) in blocks {
                self.below.device_mut().keep_record(u64::from(*address) * BLOCK_SECTORS, &bytes[..]);
            }
        }
    }

    pub(crate) fn send_trim(&mut self, first: u32, count: u32) {
        let request = Request::new(Op::Trim, u64::from(first) * BLOCK_SECTORS, u64::from(count) * BLOCK_SECTORS);
        self.trims += 1;
        self.core.metrics.trimmed_blocks += u64::from(count);
        self.below.send(request, &[], Purpose::Trim(first, count));
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

    fn ended(&mut self, done: &Done<Purpose>) {
        let is_well = done.status == Status::Success && !self.core.is_shut;
        if !is_well && !matches!(done.purpose, Purpose::Load(_)) {
            let (sector, status) = (done.request.sector, done.status);
            self.core.set_read_only(format!("{:?} of sector {sector} ended with {status:?}", done.request.op));
        }
        match done.purpose {
            Purpose::Load(number) => self.load_ended(done, number),
            Purpose::Write(write) => self.write_ended(write, is_well),
            Purpose::Home(write) => self.home_written(write, is_well),
            Purpose::Flush(task) => self.runnable.push_back(task),
            Purpose::Trim(first, count) => {
                self.trims -= 1;
                if is_well {
                    self.core.release_blocks(first, count);
                    self.room_came();
                }
            }
            Purpose::Log if is_well => self.log_written(),
            Purpose::FlushLog(flush) if is_well => self.log_flushed(flush),
            Purpose::Commit if is_well => self.committed(),
            Purpose::FlushHome(flush) if is_well => self.home_flushed(flush),
            Purpose::Tail if is_well => self.tail_written(),
            Purpose::Log | Purpose::FlushLog(_) | Purpose::Commit | Purpose::FlushHome(_) | Purpose::Tail => {}
        }
        if self.core.read_only.is_some() {
            self.abandon_commit();
            self.home = super::home::Step::Idle;
            self.runnable.append(&mut self.for_commit);
            self.runnable.append(&mut self.for_space);
        }
    }

    /// Pages that the device did not take stay as they are: they are nowhere else.
    fn write_ended(&mut self, write: u32, is_well: bool) {
        let Writing { number, pages } = self.writing.take(write);
        self.core.open_writes.remove(&number);
        self.core.writing_pages -= pages.len();
        for key in pages.into_iter().filter(|_| is_well) {
            self.core.page_is_written(key, number);
        }
        self.writes_ended();
    }

    /// Writes have ended: who waited for them goes on.
    pub(crate) fn writes_ended(&mut self) {
        let open = self.core.open_writes.first().copied().unwrap_or(u64::MAX);
        let (ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.for_writes).into_iter().partition(|(last, _)| *last < open);
        self.for_writes = waiting;
        self.runnable.extend(ready.into_iter().map(|(_, task)| task));
    }
}
