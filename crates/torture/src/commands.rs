//! Random commands: each seed switches operations off and gives the rest wild weights.

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng};
use ssdlab_device::DriveConfig;

/// What a run's commands look like.
#[derive(Clone, Debug)]
pub struct Mix {
    weights: [u32; 7],
    fua: f64,
    sectors: u64,
    per_unit: u64,
    longest: u64,
    /// Most commands go to sectors `hot.0 .. hot.0 + hot.1`.
    hot: (u64, u64),
    hot_share: f64,
    aligned: f64,
    queues: u16,
    streams: u16,
    out_of_range: bool,
    next_stamp: u64,
}

impl Mix {
    /// A mix for a drive, drawn from `rng`.
    pub fn draw(rng: &mut Rng, config: &DriveConfig) -> Mix {
        let sectors = config.user_bytes / 512;
        let per_unit = u64::from(config.ftl.mapping_unit) / 512;
        let mut weights = [0; 7];
        for weight in &mut weights {
            *weight = [0, 1, 5, 40][rng.random_range(0..4)];
        }
        // Writes are never off: without them nothing happens.
        weights[1] = weights[1].max(5);
        // Whole-drive trims are rare, or nothing ever fills up.
        weights[6] = weights[6].min(1) * u32::from(rng.random_bool(0.3));
        let hot = rng.random_range(1..=sectors);
        let longest = [1, per_unit, per_unit * 3, per_unit * 20][rng.random_range(0..4)].clamp(1, sectors);
        Mix {
            weights,
            fua: [0.0, 0.0, 0.2, 1.0][rng.random_range(0..4)],
            sectors,
            per_unit,
            longest,
            hot: (rng.random_range(0..=sectors - hot), hot),
            hot_share: [0.0, 0.5, 0.95][rng.random_range(0..3)],
            aligned: [0.0, 0.5, 1.0][rng.random_range(0..3)],
            queues: config.interface.queues as u16 + 1,
            streams: config.ftl.streams as u16 + 1,
            out_of_range: true,
            next_stamp: 1,
        }
    }

    /// Never asks for sectors behind the end.
    #[must_use]
    pub fn in_range(mut self) -> Mix {
        self.out_of_range = false;
        self
    }

    /// Writes that cover all sectors once.
    pub fn fill(&self) -> impl Iterator<Item = Request> + use<> {
        let (sectors, step) = (self.sectors, self.longest.max(self.per_unit * 4));
        (0..sectors.div_ceil(step)).map(move |index| {
            let first = index * step;
            Request::new(Op::Write, first, step.min(sectors - first))
        })
    }

    fn place(&self, rng: &mut Rng) -> (u64, u64) {
        let (first, count) = if rng.random_bool(self.hot_share) { self.hot } else { (0, self.sectors) };
        let mut sector = first + rng.random_range(0..count);
        let mut length = rng.random_range(1..=self.longest);
        if rng.random_bool(self.aligned) {
            sector -= sector % self.per_unit;
            length = length.next_multiple_of(self.per_unit);
        }
        (sector, length.min(self.sectors - sector))
    }

    /// The next command and its stamp.
    pub fn next(&mut self, rng: &mut Rng) -> (Request, u64) {
        let mut pick = rng.random_range(0..self.weights.iter().sum::<u32>());
        let mut kind = 0;
        while pick >= self.weights[kind] {
            pick -= self.weights[kind];
            kind += 1;
        }
        let (mut sector, mut sectors) = self.place(rng);
        let op = match kind {
            0 => Op::Read,
            1 | 5 => Op::Write,
            2 => Op::Trim,
            3 => Op::Flush,
            4 => Op::WriteZeroes,
            _ => Op::Trim,
        };
        if kind == 6 {
            (sector, sectors) = (0, self.sectors);
        }
        if op == Op::Flush {
            (sector, sectors) = (0, 0);
        } else if rng.random_bool(0.01) {
            sectors = 0;
        } else if self.out_of_range && rng.random_bool(0.01) {
            sector = self.sectors - rng.random_range(0..2).min(self.sectors);
            sectors = 3 + self.sectors;
        }
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let request = Request {
            fua: op != Op::Read && rng.random_bool(self.fua),
            queue: rng.random_range(0..self.queues),
            stream: rng.random_range(0..self.streams),
            tag: stamp as u32,
            ..Request::new(op, sector, sectors)
        };
        (request, stamp)
    }
}
