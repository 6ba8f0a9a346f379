//! One die on a channel of its own: what its operations take, asked of the chips themselves.

use ssdlab_base::Nanos;
use ssdlab_flash::{
    BlockId, Cause, Class, Contents, Faults, Flash, FlashConfig, Latency, OpKind, Ppn, SchedulerKind, Submit, Timing,
};

/// Most pages of a block that are asked for: a multiple of any usual number of pages in a wordline.
const PAGES_MAX: u32 = 3 << 10;

/// Which of the times that an operation can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Shortest,
    Longest,
}

/// What each page takes of the die and of the channel where the die always has work, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) die: f64,
    pub(super) channel: f64,
}

/// The timing with every latency at its mean, position by position.
fn mean(timing: &Timing) -> Timing {
    each(timing, |latency| Nanos(latency.min.0.midpoint(latency.max.0)), |list| list)
}

/// The timing with one latency for each operation: the shortest or the longest that any page can have.
pub(super) fn at(timing: &Timing, end: End) -> Timing {
    let of = |latency: Latency| if end == End::Shortest { latency.min } else { latency.max };
    each(timing, of, |list| {
        let all = list.iter().copied();
        let one = if end == End::Shortest { all.min_by_key(|one| one.min) } else { all.max_by_key(|one| one.min) };
        one.into_iter().collect()
    })
}

fn each(timing: &Timing, of: impl Fn(Latency) -> Nanos, list: impl Fn(Vec<Latency>) -> Vec<Latency>) -> Timing {
    let fixed = |latency: &Latency| {
        let time = of(*latency);
        Latency { min: time, max: time }
    };
    let all = |latencies: &[Latency]| list(latencies.iter().map(fixed).collect());
    Timing { read: all(&timing.read), program: all(&timing.program), erase: fixed(&timing.erase), ..timing.clone() }
}

struct Die {
    flash: Flash,
    pages: u32,
}

impl Die {
    fn new(config: &FlashConfig, timing: Timing) -> Die {
        let mut config =
            FlashConfig { timing, faults: Faults::default(), scheduler: SchedulerKind::Fifo, ..config.clone() };
        let geometry = &mut config.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip) = (1, 1, 1);
        (geometry.blocks_per_plane, geometry.pages_per_block) = (2, geometry.pages_per_block.min(PAGES_MAX));
        let pages = geometry.pages_per_block;
        Die { flash: Flash::new(&config, 1, Contents::Nothing, 1, true), pages }
    }

    /// One of the two blocks of a plane.
    fn block(plane: u32, number: u32) -> BlockId {
        BlockId(plane * 2 + number)
    }

    fn submit(&mut self, kind: OpKind, block: BlockId, page: u32, bytes: u32, token: u32) {
        let class = match kind {
            OpKind::Read => Class::HostRead,
            OpKind::Program | OpKind::Copyback => Class::HostWrite,
            OpKind::Erase => Class::Erase,
        };
        if kind == OpKind::Read {
            for page in self.flash.blocks.get(block).programmed..=page {
                self.flash.execute(OpKind::Program, Cause::Host, block, page);
            }
        }
        let (source, pin, waits_for) = (Ppn::NONE, BlockId::NONE, 0);
        let submit = Submit { kind, cause: Cause::Host, class, block, page, source, bytes, token, pin, waits_for };
        self.flash.submit(Nanos::ZERO, submit);
    }

    /// Runs until all is done; when the last operation with each token was.
    fn run(&mut self, tokens: usize) -> Vec<Nanos> {
        let (mut ends, mut done) = (vec![Nanos::ZERO; tokens], Vec::new());
        while let Some(at) = self.flash.next_event() {
            self.flash.step(&mut done);
            for done in done.drain(..) {
                ends[done.token as usize] = at;
            }
        }
        ends
    }
}

/// The cycle of pages on the first `planes` planes of a die, of which `bytes` bytes cross the channel each.
pub(super) fn cycle(config: &FlashConfig, kind: OpKind, planes: u32, bytes: u32) -> Cycle {
    let mut die = Die::new(config, mean(&config.timing));
    // The chips take operations only when what is there was programmed without time.
    if kind == OpKind::Read {
        for block in (0..2).flat_map(|number| (0..planes).map(move |plane| Die::block(plane, number))) {
            for page in 0..die.pages {
                die.flash.execute(OpKind::Program, Cause::Host, block, page);
            }
        }
    }
    for number in 0..2 {
        for page in 0..die.pages {
            for plane in 0..planes {
                die.submit(kind, Die::block(plane, number), page, bytes, number);
            }
        }
    }
    let ends = die.run(2);
    let pages = f64::from(die.pages * planes);
    let (channels, _) = die.flash.busy();
    // The second block: in the first one the die gets going.
    Cycle { die: (ends[1] - ends[0]).0 as f64 / pages, channel: channels[0].0 as f64 / (2.0 * pages) }
}

/// What one operation on an idle die takes, from its command to its end.
pub(super) fn alone(config: &FlashConfig, kind: OpKind, end: End) -> Nanos {
    let mut die = Die::new(config, at(&config.timing, end));
    let bytes = if kind == OpKind::Erase { 0 } else { config.geometry.page_bytes };
    die.submit(kind, Die::block(0, 0), 0, bytes, 0);
    die.run(1)[0]
}
