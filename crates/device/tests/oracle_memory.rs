//! No growth of memory, however many requests come.
//!
//! A program of its own: the pages of the whole process are counted.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Drive, Options};
use ssdlab_flash::{Contents, Geometry, MultiPlane};
use ssdlab_torture::configs;
use ssdlab_torture::driver::submit;

/// Resident pages of this process; `None` where the system does not tell.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn memory_does_not_grow_over_ten_million_requests() {
    if cfg!(debug_assertions) && std::env::var("SSDLAB_TORTURE").is_err() {
        println!("skipped: memory over ten million requests is measured in release builds or with SSDLAB_TORTURE set");
        return;
    }
    for (timed, requests) in [(false, 10_000_000_u64), (true, 1_000_000)] {
        let mut config = configs::handful();
        config.flash.geometry = Geometry {
            channels: 2,
            chips_per_channel: 2,
            dies_per_chip: 1,
            planes_per_die: 2,
            blocks_per_plane: 32,
            pages_per_block: 32,
            page_bytes: 4096,
            oob_bytes: 128,
        };
        config.flash.multi_plane = MultiPlane::SameOffset;
        config.ftl.mapping_unit = 2048;
        config.ftl.streams = 2;
        config.gc.free_blocks = 3;
        config.buffer.policy = "lru".to_string();
        config.buffer.bytes = 64 << 10;
        config.timed = timed;
        let most = configs::most_user_units(&config).expect("some capacity is accepted");
        config.user_bytes = most * 2048;
        let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("accepted");
        let mut rng = rng(1, "memory");
        let sectors = drive.user_sectors();
        let mut before = None;
        for number in 0..requests {
            let op = match rng.random_range(0..20) {
                0 => Op::Trim,
                1 if number % 10 == 0 => Op::Flush,
                2..6 => Op::Read,
                _ => Op::Write,
            };
            let sector = rng.random_range(0..sectors);
            let length = rng.random_range(1..=(sectors - sector).min(16));
            let request = if op == Op::Flush { Request::new(op, 0, 0) } else { Request::new(op, sector, length) };
            submit(&mut drive, &Request { fua: number % 50 == 0, stream: (number % 2) as u16, ..request }, 0);
            while drive.outstanding() >= 32 {
                assert!(drive.run_to_completion(Nanos::MAX));
                drive.completions().clear();
            }
            drive.completions().clear();
            if number == requests / 10 {
                before = resident_bytes();
            }
        }
        let (Some(before), Some(after)) = (before, resident_bytes()) else {
            println!("skipped: this system does not tell how much memory a process has");
            return;
        };
        let grown = after.saturating_sub(before);
        println!("timed {timed}: {before} bytes after a tenth of the requests, {after} after all");
        assert!(grown < 2 << 20, "memory grew by {grown} bytes over {requests} requests");
    }
}
