//! A cached map under a generator's load, against Che's approximation, and what results say of it.

use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Drive, DriveConfig, Options, Settings};
use ssdlab_flash::Contents;
use ssdlab_lab::result::RunResult;
use ssdlab_lab::{Breakdown, Experiment, Preconditioning};
use ssdlab_workload::replay::Fit;
use ssdlab_workload::{Next, OpenOptions, Workload, open};

use crate::common::{Random, UNIT, assert_checks_hold, drive, duts, experiment, run};

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
        let misses = drive.counters().map_cache.expect("a drive that caches its map").total().misses as f64;
        let (found, expected) = (misses / requests as f64, che(&shares(units, theta, SEED), cached as f64));
        println!(
            "zipf:{theta}, {cached} of {} map pages: {found:.4} misses a read, Che {expected:.4}",
            units.div_ceil(ENTRIES)
        );
        assert!((found / expected - 1.0).abs() < 0.02, "zipf:{theta}, {cached} cached: {found}, expected {expected}");
        assert!(drive.check().iter().all(|check| check.passed));
    }
}

/// A drive in whose RAM a part of its map fits, one of the same chips with all of it, and what a run makes of them.
fn beside_page() -> RunResult {
    let timed = |config: DriveConfig, name: &str| DriveConfig { name: name.to_string(), timed: true, ..config };
    let mut page = timed(config(0), "page");
    (page.ftl.design, page.ftl.own) = ("page".to_string(), Settings::default());
    let drives = duts(&[timed(config(40), "cached"), page]);
    // One at a time: places of the cache that a page is on its way to hold nothing.
    let workload = Random { depth: 1, ..Random::mixed(20_000) };
    let breakdown = Some(Breakdown { slowest: 0 });
    let result = run(&Experiment { breakdown, ..experiment(&drives, &workload, Preconditioning::Fill) });
    assert_checks_hold(&result);
    result
}

#[test]
fn results_say_what_the_cache_of_a_map_did_and_what_it_cost() {
    let result = beside_page();
    let [cached, page] = result.devices.as_slice() else { panic!("two drives") };
    let map = cached.map_cache.as_ref().expect("a cached map");
    let (misses, loads): (u64, u64) =
        map.by_asker.values().fold((0, 0), |(misses, loads), of| (misses + of.misses, loads + of.loads));
    assert_eq!((map.misses, map.loads), (misses, loads));
    // 40 of 313 map pages are cached, and all were written.
    let host = &map.by_asker["host"];
    let hit_ratio = host.hit_ratio.expect("the host asked");
    assert!((hit_ratio - 40.0 / 313.0).abs() < 0.01, "{host:?}");
    assert!(host.loads > 0 && host.flushes > 0 && host.loads <= host.misses, "{host:?}");
    assert!(map.waited_commands > 10_000 && map.waited_commands <= 20_000, "{map:?}");
    let mean = map.wait_ns as f64 / map.waited_commands as f64;
    assert_eq!(map.wait_mean_ns, Some(mean));
    assert!(!cached.design.keys().any(|name| name.starts_with("map_")), "{:?}", cached.design);

    // The parts of latencies that are for the map are the same time.
    let ops = &cached.latency_breakdown.as_ref().expect("it was asked for").ops;
    let of_map = |op: &str| {
        let split = &ops[op].mean;
        let parts = split.parts_ns.iter().filter(|(part, _)| part.starts_with("map/"));
        parts.map(|(_, ns)| ns).sum::<f64>() * split.requests as f64
    };
    let parts = of_map("read") + of_map("write") + of_map("trim");
    assert!((parts / map.wait_ns as f64 - 1.0).abs() < 1e-9, "{parts} ns of parts, {} ns waited", map.wait_ns);

    // Over time, as far as all is weighed alike.
    let ratios = &cached.timeline.map_hit_ratio;
    assert_eq!(ratios.len(), cached.timeline.time_ns.len());
    let known: Vec<f64> = ratios.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let all = map.hit_ratio.expect("somebody asked");
    assert!((mean - all).abs() < 0.05, "{mean} on average over intervals, {all} over the run");

    // A drive that has all of its map in RAM has none of this.
    assert!(page.map_cache.is_none() && page.timeline.map_hit_ratio.is_empty());
    let json = serde_json::to_value(&result).expect("JSON");
    let keys = |device: usize| json["devices"][device].as_object().expect("a drive").contains_key("map_cache");
    assert!(keys(0) && !keys(1));
}

#[test]
fn the_table_and_the_report_show_the_cache_of_a_map() {
    let result = beside_page();
    let map = result.devices[0].map_cache.as_ref().expect("a cached map");
    let text = ssdlab_lab::table::render(&result);
    let row = |label: &str| text.lines().find(|line| line.contains(label)).unwrap_or_else(|| panic!("{label}: {text}"));
    assert!(row("map cache hits").contains('%'), "{text}");
    assert!(row("waited for the map").contains(&map.waited_commands.to_string()[..2]), "{text}");
    let page = ssdlab_lab::report::render(&result);
    for words in ["Map cache, hit ratio", "Map cache, misses of host", "Waited for the map, mean", "id=\"map-hits\""] {
        assert!(page.contains(words), "the report lacks '{words}'");
    }
    let alone = ssdlab_lab::report::render(&RunResult { devices: vec![result.devices[1].clone()], ..result });
    assert!(!alone.contains("Map cache, hit ratio") && !alone.contains("id=\"map-hits\""));
}
