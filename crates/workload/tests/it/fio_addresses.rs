//! Where requests go and how long they are: coverage, distributions, shares, sequences.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_workload::{Next, Workload};

use crate::fio_support::{count, jobs, run, spec};

const MIB: u64 = 1 << 20;
const LATENCY: Nanos = Nanos(50_000);

/// Requests for each block of `block` bytes.
fn per_block(requests: &[Request], block: u64) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(request.sector * 512 / block).or_insert(0) += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_random_map_covers_every_block_once_in_each_pass(blocks in 1_u64..600, passes in 1_u64..4, seed in any::<u64>()) {
        let capacity = blocks * 4096;
        let mut workload = spec(&format!("rw=randwrite,bs=4k,iodepth=7,loops={passes}"), capacity, seed);
        let sent = run(&mut workload, capacity, LATENCY, usize::MAX);
        prop_assert_eq!(sent.len() as u64, blocks * passes);
        for pass in sent.chunks(blocks as usize) {
            let counts = per_block(pass, 4096);
            prop_assert_eq!(counts.len() as u64, blocks);
        }
    }

    #[test]
    fn a_random_map_of_varying_sizes_never_covers_a_sector_twice_in_a_pass(
        blocks in 16_u64..400, depth in 1_u32..9, seed in any::<u64>(),
    ) {
        let capacity = blocks * 4096;
        let mut workload = spec(&format!("rw=randrw,bssplit=4k/50:8k/30:64k/20,iodepth={depth}"), capacity, seed);
        let sent = run(&mut workload, capacity, LATENCY, usize::MAX);
        let mut covered = vec![false; blocks as usize];
        for request in &sent {
            for block in request.sector / 8..request.end() / 8 {
                prop_assert!(!covered[block as usize], "block {} twice", block);
                covered[block as usize] = true;
            }
        }
        prop_assert!(covered.iter().all(|covered| *covered));
    }

    #[test]
    fn what_is_foreseen_comes_and_asking_changes_nothing(depth in 1_u32..9, seed in any::<u64>()) {
        let text = format!("rw=randrw,bsrange=4k-64k,iodepth={depth},norandommap,io_size=8m");
        let expected = run(&mut spec(&text, 64 * MIB, seed), 64 * MIB, LATENCY, usize::MAX);
        let mut workload = spec(&text, 64 * MIB, seed);
        let place = |request: &Request| (request.op, request.sector, request.sectors);
        let (mut sent, mut completed, mut announced) = (Vec::<Request>::new(), 0, 0);
        loop {
            match workload.next(Nanos::ZERO).expect("a valid job") {
                Next::Request(request) => sent.push(request),
                Next::WaitForCompletion => {
                    workload.completed(Nanos::ZERO, sent[completed].tag);
                    completed += 1;
                }
                Next::WaitUntil(_) => unreachable!("a job without pacing waits for no time"),
                Next::Done => break,
            }
            for (request, comes) in workload.lookahead().iter().zip(&expected[sent.len()..]) {
                prop_assert_eq!(place(request), place(comes));
                announced += 1;
            }
        }
        let places = |requests: &[Request]| requests.iter().map(place).collect::<Vec<_>>();
        prop_assert_eq!(places(&sent), places(&expected));
        prop_assert!(announced > sent.len() / 2);
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_another_gives_others(seed in any::<u64>()) {
        let text = "rw=randrw,bsrange=4k-64k,iodepth=8,numjobs=2,norandommap,random_distribution=zipf:1.1,fsync=5,io_size=8m";
        let first = run(&mut spec(text, 64 * MIB, seed), 64 * MIB, LATENCY, usize::MAX);
        let mut again = spec(text, 64 * MIB, seed);
        prop_assert_eq!(&run(&mut again, 64 * MIB, LATENCY, usize::MAX), &first);
        ssdlab_workload::Workload::rewind(&mut again).expect("a generator rewinds");
        prop_assert_eq!(&run(&mut again, 64 * MIB, LATENCY, usize::MAX), &first);
        let other = run(&mut spec(text, 64 * MIB, seed ^ 1), 64 * MIB, LATENCY, usize::MAX);
        prop_assert_ne!(&other, &first);
    }

    #[test]
    fn any_mode_stays_in_its_region(
        mode in prop::sample::select(vec![
            "read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "randrw", "trimwrite", "randtrimwrite",
            "write:4k", "read:-8k", "randwrite:5", "randrw:3",
        ]),
        sizes in prop::sample::select(vec![
            "bs=4k", "bs=4k,8k,16k", "bsrange=4k-48k", "bsrange=512-10k,bs_unaligned=1", "bssplit=1k/10:3k/20:64k/70",
            "bs=4k,16k,bs_is_seq_rand=1",
        ]),
        more in prop::sample::select(vec![
            "ba=512", "ba=64k", "norandommap", "percentage_random=30", "rw_sequencer=identical", "random_distribution=normal:20",
            "random_distribution=pareto:0.3:0.5", "random_distribution=zoned:50/10:50/90", "random_distribution=zipf:0.5:1",
        ]),
        offset in 0_u64..2000, length in 200_u64..4000, seed in any::<u64>(),
    ) {
        let capacity = 4 * MIB;
        let text = format!("rw={mode},{sizes},{more},offset={},size={},io_size=6m,iodepth=3", offset * 512, length * 512);
        let mut workload = spec(&text, capacity, seed);
        // As with fio, a transfer of one size that begins in the region may end beyond it.
        let beyond = if sizes.starts_with("bs=") { 31 } else { 0 };
        for request in run(&mut workload, capacity, LATENCY, 5000) {
            let is_within = request.sector < offset + length && request.end() <= offset + length + beyond;
            prop_assert!(request.sector >= offset && is_within, "{:?} leaves the region", request);
        }
    }
}

#[test]
fn every_pass_of_a_random_map_has_an_order_of_its_own() {
    let mut workload = spec("rw=randwrite,bs=4k,io_size=800%", MIB, 1);
    let sent = run(&mut workload, MIB, LATENCY, usize::MAX);
    let passes: Vec<Vec<u64>> = sent.chunks(256).map(|pass| pass.iter().map(|r| r.sector).collect()).collect();
    assert_eq!(passes.len(), 8);
    assert!(passes.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn without_a_random_map_offsets_are_uniform_and_repeat() {
    let sent = run(&mut spec("rw=randread,bs=4k,norandommap,io_size=400m", MIB, 1), MIB, LATENCY, usize::MAX);
    let counts = per_block(&sent, 4096);
    assert_eq!(counts.len(), 256);
    // 400 on average; five standard deviations.
    assert!(counts.values().all(|n| n.abs_diff(400) < 100), "{counts:?}");
}

#[test]
fn zipf_shares_follow_theta_and_reach_every_block() {
    for theta in [0.6, 0.99, 1.2] {
        let text = format!("rw=randwrite,bs=4k,random_distribution=zipf:{theta},io_size=1600m");
        let sent = run(&mut spec(&text, MIB, 1), MIB, LATENCY, usize::MAX);
        let mut counts: Vec<u64> = per_block(&sent, 4096).into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(counts.len(), 256, "every block is reached");
        let total: f64 = (1..=256).map(|rank| f64::from(rank).powf(-theta)).sum();
        for rank in [1_usize, 2, 4, 10] {
            let expected = (rank as f64).powf(-theta) / total;
            let found = counts[rank - 1] as f64 / sent.len() as f64;
            assert!((found / expected - 1.0).abs() < 0.03, "theta {theta}, rank {rank}: {found} instead of {expected}");
        }
    }
}

#[test]
fn pareto_0_2_sends_four_fifths_of_the_requests_to_a_fifth_of_the_blocks() {
    let text = "rw=randwrite,bs=4k,random_distribution=pareto:0.2,io_size=800m";
    let sent = run(&mut spec(text, 4 * MIB, 1), 4 * MIB, LATENCY, usize::MAX);
    let mut counts: Vec<u64> = per_block(&sent, 4096).into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hot: u64 = counts.iter().take(1024 / 5).sum();
    let share = hot as f64 / sent.len() as f64;
    assert!((share - 0.8).abs() < 0.01, "{share}");
}

#[test]
fn zones_get_their_shares_within_one_percent() {
    let text = "rw=randwrite,bs=4k,random_distribution=zoned:60/10:30/20:8/30:2/40,io_size=800m";
    let sent = run(&mut spec(text, 4 * MIB, 1), 4 * MIB, LATENCY, usize::MAX);
    let ends = [4.0 * 0.1, 4.0 * 0.3, 4.0 * 0.6, 4.0].map(|mib| (mib * MIB as f64 / 512.0) as u64);
    let mut shares = [0.0; 4];
    for request in &sent {
        let zone = ends.iter().position(|end| request.sector < *end).expect("the last zone ends with the region");
        shares[zone] += 1.0 / sent.len() as f64;
    }
    for (share, expected) in shares.into_iter().zip([0.6, 0.3, 0.08, 0.02]) {
        assert!((share - expected).abs() < 0.01, "{shares:?}");
    }
}

#[test]
fn a_zone_smaller_than_a_block_has_the_block_that_it_begins_in() {
    let text = "rw=randread,bs=128k,norandommap,io_size=64m,random_distribution=zoned:60/10:30/20:10/70";
    let sent = run(&mut spec(text, MIB, 1), MIB, LATENCY, usize::MAX);
    let share = sent.iter().filter(|request| request.sector == 0).count() as f64 / sent.len() as f64;
    assert!((share - 0.75).abs() < 0.1, "60 % for a tenth of eight blocks, and half of 30 % for two of them: {share}");
}

#[test]
fn absolute_zones_and_zones_by_direction_hold() {
    let text = "rw=randrw,bs=4k,random_distribution=zoned_abs:90/1m:10/3m,50/2m:50/2m,io_size=400m";
    let sent = run(&mut spec(text, 4 * MIB, 1), 4 * MIB, LATENCY, usize::MAX);
    let share = |op: Op, end: u64| {
        let of_op = sent.iter().filter(|r| r.op == op);
        of_op.clone().filter(|r| r.sector * 512 < end).count() as f64 / of_op.count() as f64
    };
    assert!((share(Op::Read, MIB) - 0.9).abs() < 0.01);
    assert!((share(Op::Write, 2 * MIB) - 0.5).abs() < 0.01);
}

#[test]
fn a_mix_and_split_sizes_have_their_shares() {
    let text = "rw=randrw,rwmixread=70,bssplit=4k/60:16k/30:64k/10,4k/100,norandommap,io_size=400m";
    let sent = run(&mut spec(text, 64 * MIB, 1), 64 * MIB, LATENCY, usize::MAX);
    let reads = count(&sent, Op::Read) as f64;
    assert!((reads / sent.len() as f64 - 0.7).abs() < 0.01);
    for (size, share) in [(8, 0.6), (32, 0.3), (128, 0.1)] {
        let found = sent.iter().filter(|r| r.op == Op::Read && r.sectors == size).count() as f64 / reads;
        assert!((found - share).abs() < 0.01, "{size} sectors: {found}");
    }
    assert!(sent.iter().all(|r| r.op == Op::Read || r.sectors == 8));
}

/// fio draws the size of a random block anew until it fits behind its offset: 1 KB is all that fits into the last 16 KB.
#[test]
fn sizes_of_random_blocks_are_drawn_until_they_fit() {
    let region = 372 * 1024;
    let sent =
        run(&mut spec("rw=randwrite,bssplit=16k/93:1k/7,size=372k,io_limit=20m", MIB, 1), MIB, LATENCY, usize::MAX);
    let tail = || sent.iter().filter(|r| r.sector * 512 > region - 16 * 1024);
    assert!(tail().count() > 30 && tail().all(|r| r.sectors == 2), "{:?}", tail().find(|r| r.sectors != 2));
}

#[test]
fn sequential_modes_walk_as_fio_walks() {
    let offsets = |text: &str| -> Vec<u64> {
        let sent = run(&mut spec(text, MIB, 1), MIB, LATENCY, usize::MAX);
        sent.iter().map(|r| r.sector * 512 / 4096).collect()
    };
    // Each of these was compared with the log that fio 3.33 writes.
    assert_eq!(offsets("rw=write,bs=4k,size=16k"), [0, 1, 2, 3]);
    assert_eq!(offsets("rw=write,bs=4k,size=10k"), [0, 1, 2], "the last one begins in the region");
    assert_eq!(offsets("rw=write,bs=48k,size=1m").len(), 21, "the drive ends there");
    assert_eq!(offsets("rw=write,bs=48k,size=768k,offset=4k").len(), 16);
    assert_eq!(offsets("rw=write,bs=48k,size=700k,loops=2").len(), 30);
    assert_eq!(offsets("rw=randwrite,bs=48k,size=700k").len(), 14);
    assert_eq!(offsets("rw=write,bs=256k,size=1000000,offset=4096").len(), 3, "the fourth would end behind the drive");
    assert_eq!(offsets("rw=write:4k,bs=4k,size=24k"), [0, 2, 4], "a step beyond the region ends the job");
    assert_eq!(offsets("rw=write:4k,bs=4k,size=24k,io_size=20k"), [0, 2, 4, 0, 2]);
    assert_eq!(offsets("rw=write:4k,bs=4k,size=24k,loops=2"), [0, 2, 4, 0, 2, 4]);
    assert_eq!(
        offsets("rw=write:4k,bs=4k,size=24k,io_size=100%"),
        [0, 2, 4],
        "a share is not filled by further passes"
    );
    assert_eq!(offsets("rw=write:4k,bs=4k,size=24k,io_size=200%").len(), 12, "one above 100% is");
    assert_eq!(offsets("rw=write,bssplit=4k/40:4k/60,size=10k"), [0, 1, 2], "alike, they are one size");
    assert_eq!(offsets("rw=write,bssplit=4k/40:6k/60,size=10k"), [0, 1], "cut, they are two that end in the region");
    assert_eq!(
        offsets("rw=write:252k,bs=4k,size=1m,io_size=24k"),
        [0, 64, 128, 192, 0, 64],
        "one beyond the drive goes on"
    );
    assert_eq!(offsets("rw=read:-8k,bs=4k,size=24k"), [0, 4, 3, 2, 1, 0]);
    assert_eq!(offsets("rw=write,bs=4k,size=16k,offset=512k,io_size=24k"), [128, 129, 130, 131, 128, 129]);
    assert_eq!(offsets("rw=write,bs=4k,size=64k,number_ios=2,loops=2"), [0, 1, 2, 3]);
    assert_eq!(offsets("rw=write,bs=4k,size=16k,io_size=8k,loops=2"), [0, 1, 2, 3]);
    assert_eq!(offsets("rw=write,bs=4k,size=16k,io_size=32k,loops=2").len(), 8);
}

#[test]
fn a_random_sequence_takes_a_new_offset_every_n_requests() {
    let sent =
        run(&mut spec("rw=randread:8,bs=4k,norandommap,io_size=64m", 64 * MIB, 1), 64 * MIB, LATENCY, usize::MAX);
    let runs = sent.windows(2).filter(|pair| pair[1].sector == pair[0].end()).count();
    let share = runs as f64 / sent.len() as f64;
    assert!((share - 7.0 / 8.0).abs() < 0.01, "{share}");
    // As with fio, the first requests follow from the start of the region.
    assert_eq!(sent[..7].iter().map(|r| r.sector).collect::<Vec<_>>(), [0, 8, 16, 24, 32, 40, 48]);
    let text = "rw=randwrite:4,bs=4k,rw_sequencer=identical,io_size=1m";
    let sent = run(&mut spec(text, 64 * MIB, 1), 64 * MIB, LATENCY, usize::MAX);
    assert!(sent[..3].iter().all(|r| r.sector == 0));
    assert!(sent[3..].chunks(4).all(|four| four.iter().all(|r| r.sector == four[0].sector)));
}

#[test]
fn a_trimwrite_writes_what_it_trimmed() {
    for mode in ["trimwrite", "randtrimwrite"] {
        let sent = run(&mut spec(&format!("rw={mode},bsrange=4k-16k,size=1m"), MIB, 1), MIB, LATENCY, usize::MAX);
        assert!(sent.len() >= 128);
        for pair in sent.chunks(2) {
            assert_eq!((pair[0].op, pair[1].op), (Op::Trim, Op::Write));
            assert_eq!((pair[0].sector, pair[0].sectors), (pair[1].sector, pair[1].sectors));
        }
    }
}

#[test]
fn clones_are_moved_by_offset_increment_and_differ_in_their_numbers() {
    let mut workload = spec("rw=randwrite,bs=4k,size=1m,offset_increment=1m,numjobs=4", 4 * MIB, 1);
    assert_eq!(workload.write_footprint_bytes(), 4 * MIB);
    let sent = run(&mut workload, 4 * MIB, LATENCY, usize::MAX);
    assert_eq!(sent.len(), 1024);
    let of_job = |job: u16| -> Vec<u64> {
        let base = u64::from(job) * MIB / 512;
        sent.iter().filter(|r| r.queue == job).map(|r| r.sector - base).collect()
    };
    assert!(of_job(0).iter().all(|sector| *sector < 2048));
    assert_ne!(of_job(0), of_job(1));
}

#[test]
fn percentages_are_of_the_drive_and_of_the_region() {
    let workload = spec("rw=randwrite,bs=4k,offset=25%,size=50%,io_size=300%", 4 * MIB, 1);
    assert_eq!(workload.write_footprint_bytes(), 2 * MIB);
    assert_eq!(ssdlab_workload::Workload::progress(&workload), (0, Some(6 * MIB / 4096)));
    assert_eq!(
        workload.describe(),
        "job: 4 KiB randwrite, every block once a pass, depth 1, 2 MiB from 1 MiB, 6 MiB in all"
    );
}

#[test]
fn progress_knows_the_total_where_sizes_are_fixed() {
    for text in [
        "rw=randwrite,bs=4k,size=1m",
        "rw=write,bs=4k,size=1m,fsync=3,end_fsync=1",
        "rw=trimwrite,bs=4k,size=1m,fsync=4,numjobs=2",
        "rw=randrw,bs=4k,size=1m,loops=3",
        "rw=read,bs=4k,size=1m,number_ios=10",
    ] {
        let mut workload = spec(text, 4 * MIB, 1);
        let (_, total) = ssdlab_workload::Workload::progress(&workload);
        let sent = run(&mut workload, 4 * MIB, LATENCY, usize::MAX);
        assert_eq!(total, Some(sent.len() as u64), "{text}");
    }
}

#[test]
fn force_unit_access_and_streams_are_for_writes() {
    let text = "[a]\nrw=randrw\nsync=dsync\nwrite_hint=long\nsize=1m\n[b]\nrw=write\nsize=1m\nwrite_hint=short\n";
    let sent = run(&mut jobs(text, 4 * MIB, 1), 4 * MIB, LATENCY, usize::MAX);
    for request in &sent {
        let (fua, stream) = match (request.queue, request.op) {
            (0, Op::Write) => (true, 3),
            (1, Op::Write) => (false, 1),
            _ => (false, 0),
        };
        assert_eq!((request.fua, request.stream), (fua, stream), "{request:?}");
    }
}
