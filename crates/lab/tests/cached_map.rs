//! A cached map under a generator's load, against Che's approximation.

mod common;

use common::{UNIT, drive};
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Drive, DriveConfig, Options, Settings};
use ssdlab_flash::Contents;
use ssdlab_workload::replay::Fit;
use ssdlab_workload::{Next, OpenOptions, Workload, open};

/// Mapping units of a map page of 512 bytes.
const ENTRIES: u64 = 128;

fn config(cached: u64) -> DriveConfig {
    let mut config = drive("cached");
    config.timed = false;
    config.flash.geometry.blocks_per_plane = 256;
    config.user_bytes = 40_000 * UNIT;
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default().with("map_page", 512_u32).with("map_cache", 512 * cached);
    config
}

/// Where the generator puts a rank: written a second time, so that shares of blocks are known without a draw. Three
/// rounds of add, shift and multiply within the next power of two, again until the value is a block.
struct Scatter {
    blocks: u64,
    mask: u64,
    rounds: [(u64, u64); 3],
}

impl Scatter {
    fn new(blocks: u64, seed: u64) -> Scatter {
        use rand::Rng as _;
        let mut key = rng(seed, "fio scatter");
        let mask = blocks.next_power_of_two() - 1;
        Scatter { blocks, mask, rounds: [(); 3].map(|()| (key.next_u64() & mask, (key.next_u64() | 1) & mask)) }
    }

    fn block(&self, rank: u64) -> u64 {
        let shift = self.mask.count_ones() / 2;
        let mut value = rank;
        loop {
            for (add, multiply) in self.rounds {
                value = value.wrapping_add(add) & self.mask;
                value ^= value >> shift;
                value = value.wrapping_mul(multiply) & self.mask;
            }
            value ^= value >> shift;
            if value < self.blocks {
                return value;
            }
        }
    }
}

/// The share of each map page in reads of blocks, whose shares fall as `rank^-theta`.
fn shares(blocks: u64, theta: f64, seed: u64) -> Vec<f64> {
    let scatter = Scatter::new(blocks, seed);
    let mut shares = vec![0.0; blocks.div_ceil(ENTRIES) as usize];
    for rank in 0..blocks {
        shares[(scatter.block(rank) / ENTRIES) as usize] += ((rank + 1) as f64).powf(-theta);
    }
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

/// Misses a read by Che, Tung and Wang (2002): what is cached was asked for within the last `t` requests, where `t` is such
/// that as many pages were as fit.
fn che(shares: &[f64], cached: f64) -> f64 {
    let held = |t: f64| shares.iter().map(|share| 1.0 - (-share * t).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < cached {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if held(middle) < cached { low = middle } else { high = middle }
    }
    shares.iter().map(|share| share * (-share * low).exp()).sum()
}

fn read(drive: &mut Drive, workload: &mut dyn Workload, requests: u64) {
    for _ in 0..requests {
        let Next::Request(request) = workload.next(Nanos::ZERO).expect("a good workload") else {
            panic!("the workload ends before {requests} requests")
        };
        assert_eq!((request.op, request.sectors), (Op::Read, UNIT / 512));
        drive.submit(&request);
        drive.completions().clear();
        workload.completed(Nanos::ZERO, request.tag);
    }
}

#[test]
fn reads_by_zipf_miss_as_often_as_che_says() {
    const SEED: u64 = 5;
    for (theta, cached) in [(0.8, 32), (0.99, 4), (0.99, 32), (0.99, 150), (1.2, 32), (1.2, 150)] {
        let config = config(cached);
        let mut drive =
            Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
        let units = config.user_bytes / UNIT;
        for unit in 0..units {
            drive.submit(&Request::new(Op::Write, unit * 8, 8));
            drive.completions().clear();
        }
        let options = OpenOptions { capacity_bytes: config.user_bytes, seed: SEED, replay: None, fit: Fit::Exact };
        let text = format!("rw=randread,bs=4k,size=100%,io_size=100g,norandommap,random_distribution=zipf:{theta}");
        let mut workload = open(&text, &options).expect("a good specification");
        read(&mut drive, &mut *workload, 50_000);
        drive.reset_statistics();
        let requests = 400_000;
        read(&mut drive, &mut *workload, requests);
        let misses =
            drive.design().into_iter().find(|(name, _)| name == "map_misses_host").map_or(0.0, |(_, value)| value);
        let (found, expected) = (misses / requests as f64, che(&shares(units, theta, SEED), cached as f64));
        println!(
            "zipf:{theta}, {cached} of {} map pages: {found:.4} misses a read, Che {expected:.4}",
            units.div_ceil(ENTRIES)
        );
        assert!((found / expected - 1.0).abs() < 0.02, "zipf:{theta}, {cached} cached: {found}, expected {expected}");
        assert!(drive.check().iter().all(|check| check.held));
    }
}
