//! Commands: their places in the queue, when they take effect, and how they end.

use std::ops::Range;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Completion, Data, Status};

use super::{Disk, Event};
use crate::mechanism::Target;
use crate::seeded::{DiskBug, seeded};

/// A command in the disk, or waiting for a place in it.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) tag: u32,
    pub(super) op: Op,
    pub(super) fua: bool,
    pub(super) status: Status,
    pub(super) submitted: Nanos,
    /// When it took effect: from then on it may wait for the heads.
    pub(super) since: Nanos,
    /// Its place in the order in which commands took effect.
    pub(super) order: Option<u64>,
    pub(super) range: Range<u64>,
    /// What a write brings, and what a read returns.
    pub(super) data: Vec<u8>,
    /// Sectors of a write that are not on the medium, in order, of a write that waits for that.
    pub(super) left: Vec<Range<u64>>,
    /// The number of a write.
    pub(super) number: u64,
    /// What the heads have to reach for it, while it waits for them.
    pub(super) target: Target,
}

impl Disk {
    /// A command arrives, or is refused.
    pub(super) fn arrives(&mut self, request: &Request, data: Data<'_>, refused: Option<Status>) {
        let per_sector = self.sector_data_bytes();
        let brings_data = request.op == Op::Write && per_sector > 0 && refused.is_none();
        let has_range = matches!(request.op, Op::Read | Op::Write) && refused.is_none();
        let command = Command {
            tag: request.tag,
            op: request.op,
            fua: request.fua,
            status: refused.unwrap_or(Status::Success),
            submitted: request.at,
            since: request.at,
            order: None,
            range: if has_range { request.sector..request.sector + request.sectors } else { 0..0 },
            data: if brings_data { data.sector_data(request, per_sector) } else { Vec::new() },
            left: Vec::new(),
            number: 0,
            target: Target::default(),
        };
        if refused.is_some() {
            self.counters.unsupported += u64::from(refused == Some(Status::Unsupported));
            let order = self.next_order();
            self.report(Command { order: Some(order), ..command }, request.bytes());
            return;
        }
        if !self.is_timed {
            return self.ends_at_once(command);
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.commands[slot as usize] = command;
                slot
            }
            None => {
                self.commands.push(command);
                self.commands.len() as u32 - 1
            }
        };
        self.waiting.push_back(slot);
        self.let_in();
    }

    /// A command takes no time: what it writes is on the medium.
    fn ends_at_once(&mut self, command: Command) {
        debug_assert!(self.unwritten() == 0, "all is on the medium while commands take no time");
        let order = self.next_order();
        let bytes = (command.range.end - command.range.start) * SECTOR_BYTES;
        self.counters.took_effect(command.op, bytes);
        match command.op {
            Op::Write if !command.range.is_empty() => self.medium.write(&command.range, &command.data),
            Op::Read => {
                self.counters.read_hits += 1;
                if self.sector_data_bytes() > 0 {
                    self.read_data.push((command.tag, self.on_medium(&command.range)));
                }
            }
            _ => {}
        }
        self.report(Command { order: Some(order), ..command }, bytes);
    }

    fn next_order(&mut self) -> u64 {
        self.orders += 1;
        self.orders - 1
    }

    /// Commands enter the disk, in their order. A flush is not queued: it is alone in the disk.
    fn let_in(&mut self) {
        while let Some(slot) = self.waiting.front().copied() {
            let command = &self.commands[slot as usize];
            let is_queued = command.op != Op::Flush;
            let fits = !self.is_exclusive && self.in_disk < self.config.queue.depth && (is_queued || self.in_disk == 0);
            if !fits {
                return;
            }
            let bytes =
                if command.op == Op::Write { (command.range.end - command.range.start) * SECTOR_BYTES } else { 0 };
            self.waiting.pop_front();
            self.in_disk += 1;
            self.is_exclusive = !is_queued;
            let dealt_with = self.link.command(self.now);
            let at = self.link.transfer(dealt_with, bytes);
            self.schedule(at, Event::Dispatch(slot));
        }
    }

    /// The command has reached the disk with its data.
    pub(super) fn dispatch(&mut self, slot: u32) {
        match self.commands[slot as usize].op {
            Op::Read => self.read(slot),
            Op::Write => {
                self.no_space.push_back(slot);
                let waits = self.take_writes() > 0;
                self.counters.write_cache_full += u64::from(waits);
            }
            Op::Flush => {
                self.takes_effect(slot);
                self.flush = Some(slot);
                self.counters.write_cache_flushes += u64::from(self.unwritten() > 0);
                self.end_flush();
            }
            Op::Trim | Op::WriteZeroes => unreachable!("a disk refuses {:?}", self.commands[slot as usize].op),
        }
        self.use_heads();
    }

    fn takes_effect(&mut self, slot: u32) {
        let order = self.next_order();
        let now = self.now;
        let command = &mut self.commands[slot as usize];
        (command.order, command.since) = (Some(order), now);
        self.counters.took_effect(command.op, (command.range.end - command.range.start) * SECTOR_BYTES);
    }

    fn read(&mut self, slot: u32) {
        self.takes_effect(slot);
        let range = self.commands[slot as usize].range.clone();
        if self.sector_data_bytes() > 0 {
            self.commands[slot as usize].data = self.newest(&range);
            if self.medium.take_failed() {
                self.commands[slot as usize].status = Status::UncorrectableRead;
            }
        }
        self.last_read = self.now.0;
        let is_cached = self.cache.has_all(&range);
        if is_cached {
            self.counters.write_cache_hits += 1;
        } else if self.segments.hits(&self.mechanism, &range, self.now) {
            self.counters.read_hits += 1;
        } else {
            self.aim(slot);
            self.for_heads.push_back(slot);
            return;
        }
        let at = self.link.transfer(self.now, (range.end - range.start) * SECTOR_BYTES);
        self.schedule(at, Event::Complete(slot));
    }

    /// Writes enter the cache, in their order, as far as there is space; how many are left.
    pub(super) fn take_writes(&mut self) -> usize {
        let most = self.config.write_cache.bytes / SECTOR_BYTES;
        while let Some(slot) = self.no_space.front().copied() {
            let range = self.commands[slot as usize].range.clone();
            let unwritten = self.unwritten();
            if unwritten > 0 && unwritten + (range.end - range.start) > most {
                return self.no_space.len();
            }
            self.no_space.pop_front();
            self.takes_effect(slot);
            self.writes += 1;
            let number = self.writes;
            let data = std::mem::take(&mut self.commands[slot as usize].data);
            if !range.is_empty() {
                self.cache.insert(&range, &data, number, self.now);
            }
            let command = &mut self.commands[slot as usize];
            command.number = number;
            let waits = command.fua || !self.config.write_cache.enabled;
            if waits && !range.is_empty() && !seeded(DiskBug::FuaStaysInCache) {
                command.left = vec![range];
                self.aim(slot);
                self.for_heads.push_back(slot);
            } else {
                self.schedule(self.now, Event::Complete(slot));
            }
        }
        0
    }

    /// The flush ends when nothing is left to be written.
    pub(super) fn end_flush(&mut self) {
        if (self.unwritten() == 0 || seeded(DiskBug::FlushEndsEarly))
            && let Some(slot) = self.flush.take()
        {
            self.schedule(self.now, Event::Complete(slot));
        }
    }

    pub(super) fn complete(&mut self, slot: u32) {
        let command = &mut self.commands[slot as usize];
        let returns = command.op == Op::Read && command.status == Status::Success && !command.data.is_empty();
        if returns {
            self.read_data.push((command.tag, std::mem::take(&mut command.data)));
        }
        self.in_disk -= 1;
        self.is_exclusive = false;
        let command = command.clone();
        let bytes = (command.range.end - command.range.start) * SECTOR_BYTES;
        self.free.push(slot);
        self.report(command, bytes);
        self.let_in();
    }

    /// The command has ended.
    pub(super) fn report(&mut self, command: Command, bytes: u64) {
        let order = command.order.unwrap_or_else(|| self.next_order());
        self.outstanding -= 1;
        self.counters.ended[command.op.class()] += 1;
        self.counters.ended_bytes[command.op.class()] += bytes;
        self.completions.push(Completion {
            tag: command.tag,
            op: command.op,
            has_answer: false,
            status: command.status,
            submitted: command.submitted,
            at: self.now,
            order,
            bytes,
        });
    }
}
