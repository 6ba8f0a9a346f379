//! A loop of operations, as Filebench runs one.

use std::sync::atomic::Ordering;

use super::call::Call;
use super::flowop::{Flowop, OpKind};
use super::thread::{After, Begun, Bench, Part, Stretch, Way};
use crate::draw::below;

/// Where a thread is in its loop.
#[derive(Debug)]
pub(super) struct Looped {
    flowops: Vec<Flowop>,
    at: usize,
    /// Something was done in this turn.
    busy: bool,
    /// Held files that are still to be opened, by their first operation.
    to_hold: usize,
}

impl Looped {
    pub(super) fn new(flowops: &[Flowop]) -> Looped {
        Looped { flowops: flowops.to_vec(), at: 0, busy: true, to_hold: 0 }
    }

    /// Opens the next file that stays open.
    pub(super) fn open_held(&mut self, bench: &mut Bench) -> Begun {
        while let Some(flowop) = self.flowops.get(self.to_hold).copied() {
            self.to_hold += 1;
            if flowop.held && bench.open[usize::from(flowop.descriptor)].is_none() {
                return match open(bench, &flowop) {
                    Begun::Skipped => Begun::Starved,
                    begun => begun,
                };
            }
        }
        Begun::Finished
    }

    /// Begins the operation whose turn it is.
    pub(super) fn begin(&mut self, bench: &mut Bench) -> Begun {
        if self.at == self.flowops.len() {
            bench.shared.turns.fetch_add(1, Ordering::Relaxed);
            self.at = 0;
            if !std::mem::take(&mut self.busy) {
                return Begun::Starved;
            }
        }
        let flowop = self.flowops[self.at];
        self.at += 1;
        let begun = start(bench, &flowop);
        self.busy |= matches!(begun, Begun::Yes);
        begun
    }
}

fn start(bench: &mut Bench, flowop: &Flowop) -> Begun {
    match flowop.kind {
        OpKind::Create => create(bench, flowop),
        OpKind::Open => open(bench, flowop),
        OpKind::Delete => {
            let taken = {
                let mut files = bench.shared.files();
                files.take_to_delete(flowop.set).map(|id| (id, files.path(id)))
            };
            match taken {
                Some((id, path)) => bench.begin(OpKind::Delete, After::Deleted(id), [Part::One(Call::Unlink { path })]),
                None => Begun::Skipped,
            }
        }
        OpKind::Stat => {
            let taken = {
                let mut files = bench.shared.files();
                files.take_existing(flowop.set).map(|id| (id, files.path(id)))
            };
            match taken {
                Some((id, path)) => bench.begin(OpKind::Stat, After::Released(id), [Part::One(Call::Stat { path })]),
                None => Begun::Skipped,
            }
        }
        OpKind::Close => bench.close(flowop.descriptor).unwrap_or(Begun::Skipped),
        _ => transfer(bench, flowop),
    }
}

fn create(bench: &mut Bench, flowop: &Flowop) -> Begun {
    let taken = {
        let mut files = bench.shared.files();
        files.take_absent(flowop.set).map(|id| (id, files.path(id)))
    };
    let Some((id, path)) = taken else { return Begun::Skipped };
    let (descriptor, append) = (flowop.descriptor, flowop.appends);
    let after = After::Created(id, descriptor);
    bench.begin(OpKind::Create, after, [Part::One(Call::Create { descriptor, path, append })])
}

fn open(bench: &mut Bench, flowop: &Flowop) -> Begun {
    let taken = {
        let mut files = bench.shared.files();
        files.take_existing(flowop.set).map(|id| (id, files.path(id)))
    };
    let Some((id, path)) = taken else { return Begun::Skipped };
    let (descriptor, append) = (flowop.descriptor, flowop.appends);
    bench.begin(OpKind::Open, After::Opened(id, descriptor), [Part::One(Call::Open { descriptor, path, append })])
}

/// What works on an open file. Nothing is open if the file could not be had.
fn transfer(bench: &mut Bench, flowop: &Flowop) -> Begun {
    let descriptor = flowop.descriptor;
    let Some(id) = bench.open[usize::from(descriptor)] else { return Begun::Skipped };
    let parameters = bench.parameters.clone();
    let kind = flowop.kind;
    match kind {
        OpKind::ReadWhole => {
            let read = Call::Read { descriptor, offset: 0, bytes: parameters.iosize };
            let begun = bench.begin(kind, After::Nothing, [Part::One(read)]);
            bench.read_to_end();
            begun
        }
        OpKind::WriteWhole => {
            let size = {
                let mut files = bench.shared.files();
                let size = files.size_planned(id);
                files.cover(id, size);
                size
            };
            bench.begin(kind, After::Nothing, [written(descriptor, size, parameters.iosize)])
        }
        OpKind::Append | OpKind::AppendRandom => {
            let drawn = match kind {
                OpKind::Append => parameters.append_size,
                _ => 1 + below(&mut bench.rng, parameters.append_size),
            };
            let bytes = parameters.aligned(drawn);
            bench.shared.files().grow(id, bytes);
            bench.begin(kind, After::Nothing, [Part::One(Call::Append { descriptor, bytes })])
        }
        OpKind::ReadRandom | OpKind::WriteRandom => {
            let size = {
                let mut files = bench.shared.files();
                let size = files.size_planned(id);
                files.cover(id, size);
                size
            };
            let room = if parameters.working_set > 0 { parameters.working_set.min(size) } else { size };
            let places = room / parameters.iosize;
            if places == 0 {
                return Begun::Skipped;
            }
            let (offset, bytes) = (below(&mut bench.rng, places) * parameters.iosize, parameters.iosize);
            let call = match kind {
                OpKind::ReadRandom => Call::Read { descriptor, offset, bytes },
                _ => Call::Write { descriptor, offset, bytes },
            };
            bench.begin(kind, After::Nothing, [Part::One(call)])
        }
        _ => bench.begin(OpKind::Fsync, After::Nothing, [Part::One(Call::Fsync { descriptor })]),
    }
}

/// A file of `size` bytes in writes of at most `chunk`; an empty file is one write of nothing.
pub(super) fn written(descriptor: u8, size: u64, chunk: u64) -> Part {
    match size {
        0 => Part::One(Call::Write { descriptor, offset: 0, bytes: 0 }),
        end => Part::Many(Stretch { way: Way::Write, descriptor, offset: 0, end, chunk }),
    }
}
