//! The oracle of a run with power cuts: for every sector, what a read must see, and what may be there after a cut.
//!
//! After a cut a sector may hold the newest value that is known to be on flash, any value written after that one took
//! effect, and any value of a command that had not completed. Nothing older, and nothing else. While the power is on a
//! read sees exactly what the commands before it, in the order in which they took effect, left.

use std::collections::{BTreeMap, HashMap};

use ssdlab_base::{Op, Request};
use ssdlab_device::{Completion, Status, sector_stamp};

/// A value a sector may hold, and when its command took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    order: u64,
    cell: u64,
}

/// A command that has not completed.
#[derive(Clone, Debug)]
struct Pending {
    request: Request,
    stamp: u64,
    /// A flush: how much of `log` it covers.
    covers: usize,
}

/// A command that has completed while one that took effect before it has not.
#[derive(Clone, Debug)]
struct Effect {
    request: Request,
    stamp: u64,
    status: Status,
    read: Option<Vec<u64>>,
}

/// Bytes that is known of a sector while commands on it are outstanding, about.
pub(crate) const SECTOR_BYTES_KNOWN: u64 = 2 * size_of::<Sector>() as u64;

/// A sector: what it holds now, and what it may hold after a power cut.
#[derive(Clone, Debug, Default)]
struct Sector {
    /// What a read sees.
    live: u64,
    /// What it may see as well: values of commands that failed half way.
    maybe: Vec<u64>,
    /// Known to be on flash, or what was there in the beginning.
    floor: u64,
    floor_order: u64,
    /// What took effect after that, oldest first.
    later: Vec<Value>,
    /// Values of commands that failed half way: they may have got there.
    doubtful: Vec<Value>,
}

impl Sector {
    /// What took effect at `order` is on flash.
    fn on_flash(&mut self, order: u64) {
        if self.floor_order >= order {
            return;
        }
        let before = self.later.partition_point(|value| value.order < order);
        if let Some(newest) = self.later.get(before).or(self.later.last()).copied() {
            (self.floor, self.floor_order) = (newest.cell, newest.order);
            self.later.retain(|value| value.order > newest.order);
        }
        self.doubtful.retain(|value| value.order > order);
    }

    fn may_be_seen(&self, cell: u64) -> bool {
        self.live == cell || self.maybe.contains(&cell)
    }

    /// The power is back, and this is what was found.
    fn found(&mut self, cell: u64) {
        (self.live, self.floor) = (cell, cell);
        self.maybe.clear();
        self.later.clear();
        self.doubtful.clear();
    }
}

/// What a host may rely on.
pub struct Durable {
    sectors: Vec<Sector>,
    pending: HashMap<u32, Pending>,
    /// Completed commands that are not known to be on flash: first sector, end, order.
    log: Vec<(u64, u64, u64)>,
    /// Commands that have completed out of order, by order.
    ahead: BTreeMap<u64, Effect>,
    /// The step of the next commands to take effect in `live`.
    next: u64,
    /// Numbers of effect to a step, whose commands complete together.
    stride: u64,
    /// Orders of earlier lives come first.
    base: u64,
    last: u64,
    /// A completed write is on flash, since there is no buffer.
    writes_through: bool,
    /// Reads may fail.
    pub faulty: bool,
    /// The drive may run out of spares.
    pub may_end_read_only: bool,
    /// Trims and writes of zeroes are refused, since a disk is below.
    pub trims_nothing: bool,
    /// Flushes and forced commands that have completed.
    pub durable: u64,
    /// Commands refused because spares were gone.
    pub refused: u64,
    /// Reads that failed.
    pub unreadable: u64,
    /// A device alone may lose its power, and commands may end as aborted.
    pub may_abort: bool,
    /// Commands that did.
    pub aborted: u64,
}

impl Durable {
    /// A drive that holds nothing.
    pub fn new(sectors: u64, writes_through: bool) -> Durable {
        Durable {
            sectors: vec![Sector::default(); sectors as usize],
            pending: HashMap::new(),
            log: Vec::new(),
            ahead: BTreeMap::new(),
            next: 0,
            stride: 1,
            base: 1,
            last: 0,
            writes_through,
            faulty: false,
            may_end_read_only: false,
            trims_nothing: false,
            durable: 0,
            refused: 0,
            unreadable: 0,
            may_abort: false,
            aborted: 0,
        }
    }

    /// A device that numbers the commands of a step within so many numbers.
    #[must_use]
    pub fn in_steps_of(self, stride: u64) -> Durable {
        Durable { stride, ..self }
    }

    /// A command was submitted.
    pub fn submitted(&mut self, request: &Request, stamp: u64) {
        let pending = Pending { request: *request, stamp, covers: self.log.len() };
        assert!(self.pending.insert(request.tag, pending).is_none(), "tag {} is in flight already", request.tag);
    }

    /// A command has completed, with what a read brought. Of completions that came together the one that took effect
    /// first is told first.
    pub fn completed(&mut self, completion: &Completion, read: Option<Vec<u64>>) {
        let pending = self.pending.remove(&completion.tag).expect("a command completes once, and was asked for");
        let Pending { request, stamp, covers } = pending;
        let order = self.base + completion.order;
        self.last = self.last.max(order);
        match completion.status {
            Status::OutOfRange => {
                let end = request.sector.checked_add(request.sectors);
                assert!(end.is_none_or(|end| end > self.sectors.len() as u64), "{request:?} was out of range");
            }
            Status::Unsupported if self.trims_nothing && matches!(request.op, Op::Trim | Op::WriteZeroes) => {}
            Status::Absent | Status::Refused(_) | Status::Unsupported | Status::Invalid => {
                assert!(!request.opcode.is_block(), "{request:?} is block I/O, but {completion:?}");
            }
            Status::UncorrectableRead => {
                assert!(self.faulty && request.op == Op::Read, "nothing failed, but {request:?}: {completion:?}");
                self.unreadable += 1;
            }
            Status::ReadOnly | Status::StorageFull => {
                assert!(
                    self.may_end_read_only && request.op != Op::Read,
                    "there are spare blocks, but {request:?}: {completion:?}"
                );
                self.refused += 1;
                self.doubt(&request, stamp, order);
            }
            Status::Aborted => {
                assert!(self.may_abort, "no device alone lost its power, but {request:?}: {completion:?}");
                self.aborted += 1;
                self.doubt(&request, stamp, order);
            }
            Status::Success => self.took_effect(&request, stamp, order, covers),
        }
        let effect = Effect { request, stamp, status: completion.status, read };
        let replaced = self.ahead.insert(completion.order, effect);
        let in_turn = completion.order / self.stride >= self.next;
        assert!(replaced.is_none() && in_turn, "two commands took effect as number {order}");
        if self.stride == 1 {
            self.show_turns();
        }
    }

    /// Shows what has had its turn. Where steps have several commands, after all that completed together were told.
    pub fn show_turns(&mut self) {
        while self.ahead.first_key_value().is_some_and(|(order, _)| order / self.stride == self.next) {
            while let Some(first) = self.ahead.first_entry()
                && *first.key() / self.stride == self.next
            {
                let effect = first.remove();
                self.show(effect);
            }
            self.next += 1;
        }
    }

    /// What a command that failed half way may have left.
    fn doubt(&mut self, request: &Request, stamp: u64, order: u64) {
        for sector in request.sector..request.end() {
            if let Some(cell) = written(request, stamp, sector) {
                self.sectors[sector as usize].doubtful.push(Value { order, cell });
            }
        }
    }

    fn took_effect(&mut self, request: &Request, stamp: u64, order: u64, covers: usize) {
        self.durable += u64::from(request.fua || request.op == Op::Flush);
        match request.op {
            Op::Read => {}
            Op::Flush => self.flushed(covers),
            Op::Write | Op::Trim | Op::WriteZeroes => {
                let durable = request.fua || self.writes_through && request.op == Op::Write;
                for number in request.sector..request.end() {
                    let cell = written(request, stamp, number).expect("it changes sectors");
                    let sector = &mut self.sectors[number as usize];
                    // Something that took effect before what is on flash no longer matters.
                    if sector.floor_order < order {
                        let at = sector.later.partition_point(|value| value.order < order);
                        sector.later.insert(at, Value { order, cell });
                    }
                    if durable {
                        sector.on_flash(order);
                    }
                }
                if !durable {
                    self.log.push((request.sector, request.end(), order));
                }
            }
        }
    }

    fn flushed(&mut self, covers: usize) {
        for (first, end, order) in &self.log[..covers] {
            for sector in &mut self.sectors[*first as usize..*end as usize] {
                sector.on_flash(*order);
            }
        }
        // Other flushes in flight count from the beginning of the log, so it is cut only between them.
        if self.pending.values().all(|pending| pending.request.op != Op::Flush) {
            self.log.drain(..covers);
            for pending in self.pending.values_mut() {
                pending.covers = pending.covers.saturating_sub(covers);
            }
        }
    }

    /// All commands before this one have taken effect: what it reads is known, and what it writes is seen from now on.
    fn show(&mut self, effect: Effect) {
        let Effect { request, stamp, status, read } = effect;
        match status {
            Status::OutOfRange
            | Status::UncorrectableRead
            | Status::Absent
            | Status::Refused(_)
            | Status::Unsupported
            | Status::Invalid => {}
            Status::ReadOnly | Status::StorageFull | Status::Aborted => {
                for sector in request.sector..request.end() {
                    if let Some(cell) = written(&request, stamp, sector) {
                        self.sectors[sector as usize].maybe.push(cell);
                    }
                }
            }
            Status::Success if request.op == Op::Read => {
                for (sector, cell) in (request.sector..request.end()).zip(read.unwrap_or_default()) {
                    assert!(
                        self.sectors[sector as usize].may_be_seen(cell)
                            || self.pending_cells(sector).any(|p| p == cell),
                        "{request:?} read {cell:#x} from sector {sector}, which holds {:#x} {}",
                        self.sectors[sector as usize].live,
                        self.describe(sector)
                    );
                }
            }
            Status::Success => {
                for sector in request.sector..request.end() {
                    if let Some(cell) = written(&request, stamp, sector) {
                        let sector = &mut self.sectors[sector as usize];
                        sector.live = cell;
                        sector.maybe.clear();
                    }
                }
            }
        }
    }

    fn pending_cells(&self, sector: u64) -> impl Iterator<Item = u64> + '_ {
        self.pending.values().filter_map(move |pending| {
            let first = pending.request.sector;
            let within = sector >= first && sector - first < pending.request.sectors;
            if within { written(&pending.request, pending.stamp, sector) } else { None }
        })
    }

    /// What a sector may hold, for messages.
    pub fn describe(&self, sector: u64) -> String {
        let pending: Vec<u64> = self.pending_cells(sector).collect();
        let Sector { floor, floor_order, later, doubtful, .. } = &self.sectors[sector as usize];
        format!(
            "(on flash {floor:#x} since {floor_order}, later {later:x?}, of failed commands {doubtful:x?}, of commands in flight \
             {pending:x?})"
        )
    }

    /// The power goes: what is not known to be on flash may be there or not. The commands of the next life take effect
    /// as numbers from 0 on.
    pub fn power_lost(&mut self) {
        // What comes before these never completed; it may or may not have taken effect.
        for effect in std::mem::take(&mut self.ahead).into_values() {
            self.show(effect);
        }
        for Pending { request, stamp, .. } in std::mem::take(&mut self.pending).into_values() {
            let end = request.sector.saturating_add(request.sectors);
            if end <= self.sectors.len() as u64 {
                self.doubt(&request, stamp, self.last);
            }
        }
        for sector in &mut self.sectors {
            if !sector.later.is_empty() || !sector.doubtful.is_empty() {
                sector.live = sector.floor;
                sector.maybe = sector.later.iter().chain(&sector.doubtful).map(|value| value.cell).collect();
            }
        }
        self.log.clear();
        self.begin_life(0);
    }

    /// A device lost its power under a host that goes on: what had completed and is not known to be on flash may be
    /// there or not, and a flush from before proves nothing. Commands that were in flight still complete.
    pub fn device_lost(&mut self) {
        for effect in self.ahead.values_mut() {
            if effect.status == Status::Success && effect.request.op != Op::Read {
                effect.status = Status::Aborted;
            }
            // What it saw was there before; what is there now is compared with later reads.
            effect.read = None;
        }
        for sector in &mut self.sectors {
            if !sector.later.is_empty() || !sector.doubtful.is_empty() {
                sector.live = sector.floor;
                sector.maybe = sector.later.iter().chain(&sector.doubtful).map(|value| value.cell).collect();
            }
        }
        self.log.clear();
        self.pending.values_mut().for_each(|pending| pending.covers = 0);
    }

    /// The host crashed above devices that kept their power: what had completed is there, and what had not may be. The
    /// commands of the next life take effect as numbers from 0 on.
    pub fn host_lost(&mut self) {
        for effect in std::mem::take(&mut self.ahead).into_values() {
            self.show(effect);
        }
        self.last += 1;
        for Pending { request, stamp, .. } in std::mem::take(&mut self.pending).into_values() {
            let end = request.sector.saturating_add(request.sectors);
            if end <= self.sectors.len() as u64 {
                self.doubt(&request, stamp, self.last);
                for sector in request.sector..request.end() {
                    self.sectors[sector as usize].maybe.extend(written(&request, stamp, sector));
                }
            }
        }
        self.begin_life(0);
    }

    fn begin_life(&mut self, next: u64) {
        self.base = self.last + 1;
        self.next = next;
    }

    /// All sectors were read: `found` is what they hold, and from now on that is on flash. The next command will take
    /// effect as number `next` of this life.
    pub fn found(&mut self, found: &[Result<u64, Status>], next: u64, context: &str) {
        for (number, found) in found.iter().enumerate() {
            let number = number as u64;
            match found {
                Ok(cell) => {
                    self.assert_may_be_seen(number, *cell, context);
                    self.sectors[number as usize].found(*cell);
                }
                Err(status) => self.unreadable(number, *status, context),
            }
        }
        self.log.clear();
        self.begin_life(next);
    }

    /// All sectors of a device that refused to flush before were read: `found` is what they hold, and it need not be on
    /// flash. The next command will take effect as number `next` of this life.
    pub fn seen(&mut self, found: &[Result<u64, Status>], next: u64, context: &str) {
        for (number, found) in (0..).zip(found) {
            match found {
                Ok(cell) => self.assert_may_be_seen(number, *cell, context),
                Err(status) => self.unreadable(number, *status, context),
            }
        }
        self.begin_life(next);
    }

    fn assert_may_be_seen(&self, number: u64, cell: u64, context: &str) {
        assert!(
            self.sectors[number as usize].may_be_seen(cell),
            "sector {number} holds {cell:#x}, but should hold {:#x} {} ({context})",
            self.sectors[number as usize].live,
            self.describe(number)
        );
    }

    /// A sector may still hold anything that it might have held before: an error may go away.
    fn unreadable(&mut self, number: u64, status: Status, context: &str) {
        assert!(self.faulty, "sector {number} cannot be read after a power cut: {status:?} ({context})");
        self.unreadable += 1;
    }
}

/// What a command leaves in a sector.
fn written(request: &Request, stamp: u64, sector: u64) -> Option<u64> {
    match request.op {
        Op::Write => Some(sector_stamp(stamp, sector)),
        Op::Trim | Op::WriteZeroes => Some(0),
        Op::Read | Op::Flush => None,
    }
}
