//! Postmark's transactions (Katcher, NetApp TR3022, 1997).
//!
//! A transaction reads a whole file or appends to one, and then makes a file or removes one; each choice is a draw
//! against its bias. An operation opens and closes the file, so that a read is an open, its reads and a close. An
//! append that finds its file at the full size, and a creation that finds no place in the table, are left out, as
//! Postmark does; they are counted as skipped.

use std::sync::atomic::Ordering;

use super::call::Call;
use super::flowop::{OpKind, SetName};
use super::looped::written;
use super::parameters::Parameters;
use super::thread::{After, Begun, Bench, Part, Stretch, Way};
use crate::draw::below;

/// The set and the descriptor of everything.
const SET: SetName = SetName::Files;
const DESCRIPTOR: u8 = 0;
const CLOSE: Part = Part::One(Call::Close { descriptor: DESCRIPTOR });

/// So many operations in a row that found nothing to do say that none ever will.
const IDLE_MAX: u32 = 10_000;

/// Where a thread is in its transaction.
#[derive(Debug)]
pub(super) struct Transactions {
    /// The second half, create or delete, is next.
    second: bool,
    /// Halves in a row that did nothing.
    idle: u32,
}

impl Transactions {
    pub(super) fn new() -> Transactions {
        Transactions { second: false, idle: 0 }
    }

    /// Begins the next operation.
    pub(super) fn begin(&mut self, bench: &mut Bench) -> Begun {
        let parameters = bench.parameters.clone();
        let (read_bias, create_bias) = (parameters.read_bias, parameters.create_bias);
        loop {
            if !self.second {
                if (read_bias < 0 && create_bias < 0) || !bench.shared.take_transaction() {
                    return Begun::Finished;
                }
                bench.shared.turns.fetch_add(1, Ordering::Relaxed);
            }
            let second = self.second;
            self.second = !second;
            let bias = if second { create_bias } else { read_bias };
            if bias < 0 {
                continue;
            }
            let first_choice = (below(&mut bench.rng, 10) as i64) < bias;
            let begun = match (second, first_choice) {
                (false, true) => read(bench, &parameters),
                (false, false) => append(bench, &parameters),
                (true, true) => create(bench, &parameters),
                (true, false) => delete(bench),
            };
            self.idle = if matches!(begun, Begun::Skipped) { self.idle + 1 } else { 0 };
            return if self.idle > IDLE_MAX { Begun::Starved } else { begun };
        }
    }
}

/// What one call moves: a block, or where a stream lies between, its buffer if that is larger.
fn chunk(block: u64, parameters: &Parameters) -> u64 {
    if parameters.buffered { block.max(parameters.stream_buffer) } else { block }
}

fn read(bench: &mut Bench, parameters: &Parameters) -> Begun {
    let taken = {
        let mut files = bench.shared.files();
        files.take_any(SET, &mut bench.rng).map(|id| (id, files.path(id), files.length(id)))
    };
    let Some((id, path, length)) = taken else { return Begun::Starved };
    // Reading past the page cache takes whole blocks, at the end too.
    let way = if parameters.direct { Way::ReadWholeChunks } else { Way::Read };
    let chunk = chunk(parameters.read_block, parameters);
    let reads = Stretch { way, descriptor: DESCRIPTOR, offset: 0, end: length, chunk };
    let open = Call::Open { descriptor: DESCRIPTOR, path, append: false };
    bench.begin(OpKind::ReadWhole, After::Released(id), [Part::One(open), Part::Many(reads), CLOSE])
}

fn append(bench: &mut Bench, parameters: &Parameters) -> Begun {
    let taken = {
        let mut files = bench.shared.files();
        let Some(id) = files.take_any(SET, &mut bench.rng) else { return Begun::Starved };
        let room = parameters.size_high.saturating_sub(files.length(id));
        if room == 0 {
            files.unpin(id);
            None
        } else {
            let bytes = parameters.aligned(1 + below(&mut bench.rng, room));
            files.grow(id, bytes);
            Some((id, files.path(id), bytes))
        }
    };
    let Some((id, path, bytes)) = taken else { return Begun::Skipped };
    let chunk = chunk(parameters.write_block, parameters);
    let appends = Stretch { way: Way::Append, descriptor: DESCRIPTOR, offset: 0, end: bytes, chunk };
    let open = Call::Open { descriptor: DESCRIPTOR, path, append: true };
    bench.begin(OpKind::Append, After::Released(id), [Part::One(open), Part::Many(appends), CLOSE])
}

fn create(bench: &mut Bench, parameters: &Parameters) -> Begun {
    let taken = {
        let mut files = bench.shared.files();
        files.take_absent(SET).map(|id| {
            files.renew(id, parameters, &mut bench.rng);
            (id, files.path(id), files.size_planned(id))
        })
    };
    let Some((id, path, size)) = taken else { return Begun::Skipped };
    let writes = written(DESCRIPTOR, size, chunk(parameters.write_block, parameters));
    let create = Call::Create { descriptor: DESCRIPTOR, path, append: false };
    bench.begin(OpKind::Create, After::Written(id), [Part::One(create), writes, CLOSE])
}

fn delete(bench: &mut Bench) -> Begun {
    let taken = {
        let mut files = bench.shared.files();
        files.take_any_to_delete(SET, &mut bench.rng).map(|id| (id, files.path(id)))
    };
    match taken {
        Some((id, path)) => bench.begin(OpKind::Delete, After::Deleted(id), [Part::One(Call::Unlink { path })]),
        None => Begun::Skipped,
    }
}
