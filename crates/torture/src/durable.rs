//! The oracle of a run with power cuts: for every sector, what it may hold after one.
//!
//! A sector may hold the newest value that is known to be on flash, any value written after that one took effect, and
//! any value of a command that had not completed. Nothing older, and nothing else.

use std::collections::HashMap;

use ssdlab_base::{Op, Request};
use ssdlab_device::{Completion, Status, stamp_cell};

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

/// What a host may rely on.
pub struct Durable {
    /// Oldest first; the first is known to be on flash, or is what was there in the beginning.
    sectors: Vec<Vec<Value>>,
    /// Sectors whose last command failed in the middle: they hold the old or the new.
    doubtful: Vec<Vec<u64>>,
    pending: HashMap<u32, Pending>,
    /// Completed commands that are not known to be on flash: first sector, end, order.
    log: Vec<(u64, u64, u64)>,
    /// Orders of earlier lives come first.
    base: u64,
    last: u64,
    /// A completed write is on flash, since there is no buffer.
    writes_through: bool,
    /// Reads may fail.
    pub faulty: bool,
    /// The drive may run out of spares.
    pub may_end_read_only: bool,
    /// Commands refused because spares were gone.
    pub refused: u64,
    /// Reads that failed.
    pub unreadable: u64,
}

impl Durable {
    /// A drive that holds nothing.
    pub fn new(sectors: u64, writes_through: bool) -> Durable {
        Durable {
            sectors: vec![vec![Value { order: 0, cell: 0 }]; sectors as usize],
            doubtful: vec![Vec::new(); sectors as usize],
            pending: HashMap::new(),
            log: Vec::new(),
            base: 1,
            last: 0,
            writes_through,
            faulty: false,
            may_end_read_only: false,
            refused: 0,
            unreadable: 0,
        }
    }

    /// A command was submitted.
    pub fn submitted(&mut self, request: &Request, stamp: u64) {
        let pending = Pending { request: *request, stamp, covers: self.log.len() };
        assert!(self.pending.insert(request.tag, pending).is_none());
    }

    /// Commands whose completions came together, with what reads brought. Between two calls they may have taken effect
    /// in any order, so they are brought into theirs first.
    pub fn completed(&mut self, completion: &Completion, read: Option<&[u64]>) {
        let pending = self.pending.remove(&completion.tag).expect("a command completes once, and was asked for");
        let request = pending.request;
        let order = self.base + completion.order;
        self.last = self.last.max(order);
        match completion.status {
            Status::OutOfRange => {
                let end = request.sector.checked_add(request.sectors);
                assert!(end.is_none_or(|end| end > self.sectors.len() as u64), "{request:?}");
                return;
            }
            Status::UncorrectableRead => {
                assert!(self.faulty && request.op == Op::Read, "{request:?}: {completion:?}");
                self.unreadable += 1;
                return;
            }
            Status::ReadOnly | Status::StorageFull => {
                assert!(self.may_end_read_only && request.op != Op::Read, "{request:?}: {completion:?}");
                self.refused += 1;
                for sector in request.sector..request.end() {
                    if let Some(cell) = written(&request, pending.stamp, sector) {
                        self.doubtful[sector as usize].push(cell);
                    }
                }
                return;
            }
            Status::Success => {}
        }
        match request.op {
            Op::Read => {
                if let Some(read) = read {
                    for (sector, cell) in (request.sector..request.end()).zip(read) {
                        assert!(
                            self.may_have_been_read(sector, *cell, order),
                            "{request:?} read {cell:#x} from sector {sector}, which may hold {}",
                            self.describe(sector)
                        );
                    }
                }
            }
            Op::Flush => self.flushed(pending.covers),
            Op::Write | Op::Trim | Op::WriteZeroes => {
                for sector in request.sector..request.end() {
                    let cell = written(&request, pending.stamp, sector).expect("it changes sectors");
                    let values = &mut self.sectors[sector as usize];
                    let at = values.partition_point(|value| value.order < order);
                    // What is on flash is the first; something that took effect before it no longer matters.
                    if at > 0 {
                        values.insert(at, Value { order, cell });
                    }
                }
                let through = self.writes_through && request.op == Op::Write;
                if through || request.fua {
                    self.on_flash(request.sector, request.end(), order);
                } else {
                    self.log.push((request.sector, request.end(), order));
                }
            }
        }
    }

    fn flushed(&mut self, covers: usize) {
        for index in 0..covers {
            let (first, end, order) = self.log[index];
            self.on_flash(first, end, order);
        }
        // Other flushes under way count from the beginning of the log, so it is cut only between them.
        if self.pending.values().all(|pending| pending.request.op != Op::Flush) {
            self.log.drain(..covers);
            for pending in self.pending.values_mut() {
                pending.covers = pending.covers.saturating_sub(covers);
            }
        }
    }

    fn on_flash(&mut self, first: u64, end: u64, order: u64) {
        for sector in first..end {
            let values = &mut self.sectors[sector as usize];
            let before = values.partition_point(|value| value.order < order);
            values.drain(..before.min(values.len() - 1));
        }
    }

    fn pending_cells(&self, sector: u64) -> impl Iterator<Item = u64> + '_ {
        self.pending.values().filter_map(move |pending| {
            let range = pending.request.sector..pending.request.end();
            if range.contains(&sector) { written(&pending.request, pending.stamp, sector) } else { None }
        })
    }

    /// Whether a sector may hold this after a power cut.
    pub fn may_hold(&self, sector: u64, cell: u64) -> bool {
        let values = &self.sectors[sector as usize];
        values.iter().any(|value| value.cell == cell)
            || self.doubtful[sector as usize].contains(&cell)
            || self.pending_cells(sector).any(|pending| pending == cell)
    }

    /// A read in the middle of other commands: a coarse check, since the oracle of orders has the fine one.
    fn may_have_been_read(&self, sector: u64, cell: u64, order: u64) -> bool {
        let overtaken = self.sectors[sector as usize].first().is_none_or(|value| value.order > order);
        overtaken || self.may_hold(sector, cell)
    }

    /// What a sector may hold, for messages.
    pub fn describe(&self, sector: u64) -> String {
        let pending: Vec<u64> = self.pending_cells(sector).collect();
        format!(
            "{:x?}, doubtful {:x?}, pending {pending:x?}",
            self.sectors[sector as usize], self.doubtful[sector as usize]
        )
    }

    /// The drive lost power and came back: `found` is what it holds now, and from now on that is on flash.
    pub fn power_returned(&mut self, found: &[Result<u64, Status>], context: &str) {
        for (sector, found) in found.iter().enumerate() {
            let sector = sector as u64;
            let Ok(cell) = found else {
                assert!(self.faulty, "sector {sector} cannot be read after a power cut: {found:?} ({context})");
                self.unreadable += 1;
                continue;
            };
            assert!(
                self.may_hold(sector, *cell),
                "after a power cut sector {sector} holds {cell:#x}, but may hold {} ({context})",
                self.describe(sector)
            );
        }
        self.base = self.last + 1;
        let order = self.base - 1;
        let old: Vec<Vec<Value>> = self.sectors.clone();
        for (sector, found) in found.iter().enumerate() {
            self.sectors[sector] = match found {
                Ok(cell) => vec![Value { order, cell: *cell }],
                // Still anything that it might have been before: an error may go away.
                Err(_) => {
                    let mut cells: Vec<u64> = self.pending_cells(sector as u64).collect();
                    cells.extend(old[sector].iter().map(|value| value.cell));
                    cells.extend(&self.doubtful[sector]);
                    cells.into_iter().map(|cell| Value { order, cell }).collect()
                }
            };
            self.doubtful[sector].clear();
        }
        self.pending.clear();
        self.log.clear();
    }
}

/// What a command leaves in a sector.
fn written(request: &Request, stamp: u64, sector: u64) -> Option<u64> {
    match request.op {
        Op::Write => Some(stamp_cell(stamp, sector)),
        Op::Trim | Op::WriteZeroes => Some(0),
        Op::Read | Op::Flush => None,
    }
}
