//! The solid-state cache: its commands, what clean and dirty data cost, and what is refused.

use rand::RngExt;
use ssdlab_base::command_sets::cache::{
    BlockBits, CACHE, CLEAN, EVICT, EXISTS, NO_ROOM, PART_OF_A_BLOCK, READ, STANDBY, WRITE_CLEAN, WRITE_DIRTY,
};
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, Drive, DriveConfig, Options, Payload, Status};
use ssdlab_flash::{Cause, Contents, OpKind};

use crate::cache_set::{metrics, of_set};

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

/// One plane of so many blocks of 128 pages, without time; `sets` are keys of sections.
fn described(blocks: u32, user_pages: u64, sets: &[&str]) -> Description {
    described_with("timing = \"none\"", blocks, user_pages, sets)
}

/// One plane of so many blocks of 128 pages, with a line of its chips; `sets` are keys of sections.
fn described_with(chips: &str, blocks: u32, user_pages: u64, sets: &[&str]) -> Description {
    let text = format!(
        "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = {blocks}\n\
         pages_per_block = 128\npage_size = \"4k\"\noob = \"ecc\"\n{chips}\n[ftl]\ndesign = \"ssc\"\nowners = \"summary\"\n\
         [gc]\nfree_blocks = 3\n[capacity]\nuser = {}\n",
        user_pages * 4096
    );
    let mut description = Description::parse(&text, "one-plane").expect("a description");
    sets.iter().for_each(|set| description.set(set).expect("a key"));
    description
}

fn cache(blocks: u32, user_pages: u64, sets: &[&str]) -> DriveConfig {
    described(blocks, user_pages, sets).resolve().expect("a drive")
}

fn write_clean(drive: &mut Drive, block: u64) {
    assert_eq!(of_set(drive, WRITE_CLEAN, block, 1).0, Status::Success, "block {block}");
}

#[test]
fn clean_data_alone_takes_128_127_programs_a_page_and_no_copy() {
    let user = 30 * 127;
    let mut drive = Drive::new(&cache(64, user, &[]), OPTIONS).expect("a drive");
    let write_all = |drive: &mut Drive, times: u64| (0..times * user).for_each(|at| write_clean(drive, at % user));
    write_all(&mut drive, 4);
    let before = drive.counters().flash;
    write_all(&mut drive, 127);
    let after = drive.counters().flash;
    let programs = (after.total(OpKind::Program) - before.total(OpKind::Program)) as f64;
    let pages = (127 * user) as f64;
    assert!((programs / pages - 128.0 / 127.0).abs() < 1e-6, "{programs} programs for {pages} pages");
    assert_eq!(after.get(OpKind::Program, Cause::Gc), 0, "nothing is copied");
    assert_eq!(metrics(&drive)["units_moved"], 0.0);
}

/// Clean blocks written at random leave valid ones in every victim. They go, and only units of the log move.
#[test]
fn silent_eviction_drops_clean_blocks_that_plain_collection_moves() {
    let user = 56 * 127;
    let moved = |sets: &[&str]| {
        let mut drive = Drive::new(&cache(64, user, sets), OPTIONS).expect("a drive");
        let mut rng = rng(5, "clean");
        (0..12 * user).for_each(|_| write_clean(&mut drive, rng.random_range(0..user)));
        let metrics = metrics(&drive);
        assert_eq!(metrics["blocks_written_clean"], (12 * user) as f64);
        (metrics["blocks_dropped"], metrics["units_moved"])
    };
    let (dropped, moved_silently) = moved(&[]);
    let (kept, moved_plainly) = moved(&["ftl.silent_eviction=false"]);
    assert!(dropped > user as f64, "{dropped} blocks were dropped");
    assert!(moved_silently < 0.02 * dropped, "{moved_silently} units were moved, {dropped} blocks dropped");
    assert_eq!(kept, 0.0, "plain collection drops nothing");
    assert!(moved_plainly > user as f64, "{moved_plainly} units were moved");
}

#[test]
fn dirty_data_alone_costs_what_it_costs_design_page_on_the_same_board() {
    let user = 512 * 127 * 4 / 5;
    let amplification = |design: &str| {
        let set = format!("ftl.design={design}");
        let mut drive = Drive::new(&cache(512, user, &[&set, "gc.free_blocks=8"]), OPTIONS).expect("a drive");
        let mut rng = rng(7, "dirty");
        let write = |drive: &mut Drive, block: u64| {
            drive.submit(&Request::new(Op::Write, block * 8, 8));
            drive.completions().clear();
        };
        (0..user).for_each(|block| write(&mut drive, block));
        (0..6 * user).for_each(|_| write(&mut drive, rng.random_range(0..user)));
        let before = drive.counters().flash.total(OpKind::Program);
        (0..6 * user).for_each(|_| write(&mut drive, rng.random_range(0..user)));
        (drive.counters().flash.total(OpKind::Program) - before) as f64 / (6 * user) as f64
    };
    let (ssc, page) = (amplification("ssc"), amplification("page"));
    assert!((ssc / page - 1.0).abs() < 0.01, "{ssc}, and {page} with design page");
}

#[test]
fn commands_do_what_the_set_says() {
    let mut drive = Drive::new(&cache(16, 512, &[]), OPTIONS).expect("a drive");
    let absent = |bits: &[bool]| (Status::Absent, BlockBits(bits.to_vec()).words());
    let read = |drive: &mut Drive, first, blocks| {
        let (status, answer) = of_set(drive, READ, first, blocks);
        (status, answer.words)
    };
    let dirty = |drive: &mut Drive, first: u64, blocks: u64| {
        let (status, answer) = of_set(drive, EXISTS, first, blocks);
        assert_eq!(status, Status::Success);
        BlockBits::from_bytes(&answer.bytes, blocks as usize).expect("a bit for each block").0
    };
    assert_eq!(read(&mut drive, 0, 2), absent(&[true, true]));
    assert_eq!(of_set(&mut drive, WRITE_DIRTY, 0, 2).0, Status::Success);
    assert_eq!(of_set(&mut drive, WRITE_CLEAN, 3, 1).0, Status::Success);
    assert_eq!(read(&mut drive, 0, 4), absent(&[false, false, true, false]));
    assert_eq!(read(&mut drive, 0, 2), (Status::Success, Vec::new()));
    assert_eq!(dirty(&mut drive, 0, 4), [true, true, false, false]);
    assert_eq!(of_set(&mut drive, CLEAN, 1, 3).0, Status::Success);
    assert_eq!(dirty(&mut drive, 0, 4), [true, false, false, false]);
    assert_eq!(of_set(&mut drive, EVICT, 0, 1).0, Status::Success);
    assert_eq!(read(&mut drive, 0, 2), absent(&[true, false]));
    // Block I/O writes dirty blocks, and a trim evicts.
    drive.submit(&Request::new(Op::Write, 0, 8));
    drive.submit(&Request::new(Op::Trim, 8, 8));
    drive.completions().clear();
    assert_eq!((dirty(&mut drive, 0, 2), read(&mut drive, 0, 2)), (vec![true, false], absent(&[false, true])));
    for opcode in [WRITE_DIRTY, WRITE_CLEAN, EVICT, CLEAN] {
        let request = Request::of_set(CACHE.command(opcode).expect("of the set"), 3, 8);
        drive.submit_command(&request, Payload { data: Data::Nothing, words: &[] });
        let status = drive.completions().pop().expect("it ends").status;
        assert_eq!(status, Status::Refused(PART_OF_A_BLOCK), "{opcode:?}");
    }
    let (status, answer) = of_set(&mut drive, STANDBY, 0, 0);
    assert_eq!((status, answer.words), (Status::Success, vec![1]), "notes on four blocks take a page");
    metrics(&drive);
}

/// Blocks of a disk of 1.5 TB.
const DISK_BLOCKS: u64 = 366_210_937;

/// A cache of so many pages in front of that disk.
fn before_disk(blocks: u32, user_pages: u64, sets: &[&str]) -> DriveConfig {
    let addresses = format!("ftl.addresses={}", DISK_BLOCKS * 4096);
    cache(blocks, user_pages, &[&[&addresses[..]], sets].concat())
}

/// The addresses are those of the disk, and neither memory nor inspection follow them.
#[test]
fn addresses_are_those_of_the_disk() {
    let (small, config) = (cache(16, 512, &[]), before_disk(16, 512, &[]));
    let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
    assert_eq!((drive.user_sectors(), config.address_bytes()), (DISK_BLOCKS * 8, DISK_BLOCKS * 4096));
    let beside = Drive::new(&small, OPTIONS).expect("a drive");
    assert_eq!(drive.memory(), beside.memory(), "a real drive takes memory for its flash");
    let bytes = |config| Drive::simulator_bytes(config, Contents::Nothing).expect("a design that is known");
    assert_eq!(bytes(&config), bytes(&small), "and so does the simulator");

    let last = DISK_BLOCKS - 1;
    for block in [last, 7, 200_000_000] {
        assert_eq!(of_set(&mut drive, WRITE_DIRTY, block, 1).0, Status::Success);
        write_clean(&mut drive, block - 1);
    }
    assert_eq!(of_set(&mut drive, READ, last - 2, 3).1.words, BlockBits(vec![true, false, false]).words());
    assert_eq!(of_set(&mut drive, WRITE_DIRTY, last, 2).0, Status::OutOfRange);
    assert_eq!(drive.mapped_bytes(), 6 * 4096);
    let runs =
        [(false, 6 * 8), (true, 8 * 8), (false, 199_999_999 * 8), (true, 200_000_001 * 8), (false, (last - 1) * 8)];
    let mut at = 0;
    for (mapped, to) in runs {
        assert_eq!(drive.mapped_run(at, u64::MAX), (mapped, to), "from sector {at} on");
        at = to;
    }
    drive.submit(&Request::new(Op::Trim, 0, DISK_BLOCKS * 8));
    assert_eq!((drive.completions().pop().expect("it ends").status, drive.mapped_bytes()), (Status::Success, 0));
    assert_eq!(metrics(&drive)["blocks_evicted"], 6.0);
}

/// Dirty blocks fill the room to the last one. Blocks that were cleaned or evicted make room for as many, and clean ones take none.
#[test]
fn a_write_is_refused_that_would_need_more_room_than_there_is() {
    for silent in [true, false] {
        let room = 512;
        let silently = format!("ftl.silent_eviction={silent}");
        let mut drive = Drive::new(&before_disk(16, room, &[&silently]), OPTIONS).expect("a drive");
        let mut rng = rng(9, "no room");
        let mut dirty: Vec<u64> = Vec::new();
        let mut blocks = std::iter::repeat_with(|| rng.random_range(0..DISK_BLOCKS));
        let mut fill = |drive: &mut Drive, dirty: &mut Vec<u64>| loop {
            let block = blocks.next().expect("there is always another");
            let (status, _) = of_set(drive, WRITE_DIRTY, block, 1);
            if status != Status::Success {
                assert_eq!(status, Status::Refused(NO_ROOM));
                return;
            }
            dirty.push(block);
        };
        fill(&mut drive, &mut dirty);
        assert_eq!(dirty.len() as u64, room);
        // What is there may be written again, by block I/O too; what is not may not.
        for block in [dirty[0], dirty[100]] {
            assert_eq!(of_set(&mut drive, WRITE_DIRTY, block, 1).0, Status::Success);
            drive.submit(&Request::new(Op::Write, block * 8 + 3, 2));
            assert_eq!(drive.completions().pop().expect("it ends").status, Status::Success);
        }
        drive.submit(&Request::new(Op::Write, 8, 1));
        assert_eq!(drive.completions().pop().expect("it ends").status, Status::Refused(NO_ROOM));
        let clean = if silent { Status::Success } else { Status::Refused(NO_ROOM) };
        assert_eq!(of_set(&mut drive, WRITE_CLEAN, 5, 1).0, clean);
        // Twelve times as many as there is room for: each eighth is cleaned or evicted.
        for round in 0..96 {
            let opcode = if round % 2 == 0 && silent { CLEAN } else { EVICT };
            for block in dirty.drain(..room as usize / 8) {
                assert_eq!(of_set(&mut drive, opcode, block, 1).0, Status::Success);
            }
            fill(&mut drive, &mut dirty);
            assert_eq!(dirty.len() as u64, room, "round {round}");
        }
        for block in &dirty {
            assert_eq!(of_set(&mut drive, READ, *block, 1).0, Status::Success, "block {block} is dirty, and is there");
        }
        metrics(&drive);
    }
}

/// Writes that wait for their pages at once take room in the order in which they came, in the write buffer and without one.
#[test]
fn writes_in_flight_take_the_room_that_they_will_need() {
    for buffer in ["none", "lru"] {
        let (room, addresses) = (512, format!("ftl.addresses={}", DISK_BLOCKS * 4096));
        let sets = [&addresses[..], &format!("buffer.policy={buffer}"), "buffer.size=128k"];
        let config = described_with("cell = \"slc\"", 16, room, &sets).resolve().expect("a drive");
        let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
        let mut rng = rng(11, "in flight");
        let writes: Vec<(u64, u64)> =
            (0..700).map(|index| (index * 1000 + rng.random_range(0..900), rng.random_range(1..5))).collect();
        for (tag, (first, blocks)) in (0..).zip(&writes) {
            let spec = CACHE.command(WRITE_DIRTY).expect("of the set");
            let of_set = Request::of_set(spec, first * 8, blocks * 8);
            let plain = Request::new(Op::Write, first * 8, blocks * 8);
            let request = Request { tag, ..if tag % 2 == 0 { of_set } else { plain } };
            drive.submit_command(&request, Payload { data: Data::Nothing, words: &[] });
        }
        let mut ended = Vec::new();
        while drive.outstanding() > 0 {
            assert!(drive.run_to_completion(Nanos::MAX), "{buffer}: {} commands wait for ever", drive.outstanding());
            ended.append(drive.completions());
        }
        ended.sort_by_key(|completion| completion.tag);
        let (mut taken, mut refused) = (0, 0);
        for completion in &ended {
            let blocks = writes[completion.tag as usize].1;
            let fits = taken + blocks <= room;
            let expected = if fits { Status::Success } else { Status::Refused(NO_ROOM) };
            assert_eq!(completion.status, expected, "{buffer}: write {} of {blocks}, {taken} taken", completion.tag);
            (taken, refused) = if fits { (taken + blocks, refused) } else { (taken, refused + 1) };
        }
        assert_eq!((ended.len(), taken), (writes.len(), room), "{buffer}: it is full to the last block");
        assert!(refused > 100, "{buffer}: {refused} writes were refused");
        assert_eq!(drive.mapped_bytes(), room * 4096, "{buffer}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_key_what_was_found_and_what_is_expected() {
    let refused = |sets: &[&str]| match described(16, 512, sets).resolve() {
        Ok(config) => Drive::new(&config, OPTIONS).err().expect("a refused drive").to_string(),
        Err(why) => why.to_string(),
    };
    for (set, parts) in [
        ("ftl.map_checkpoint=some", ["ftl.map_checkpoint", "some"]),
        ("gc.free_blocks=2", ["gc.free_blocks", "found 2, expected at least 3"]),
        ("capacity.user=7800k", ["capacity", "too little over-provisioning"]),
        ("ftl.addresses=2000k", ["ftl.addresses", "found 2048000 bytes, expected at least capacity.user = 2097152"]),
        ("ftl.addresses=4097k", ["ftl.addresses", "found 4195328 bytes, expected a whole number of units of 4096"]),
        ("ftl.addresses=8t", ["ftl.addresses", "2147483648 units, beside 20 units of the log"]),
    ] {
        let why = refused(&[set]);
        parts.iter().for_each(|part| assert!(why.contains(part), "{set}: {why}"));
    }
    for (key, set) in [("ftl.allocation", "ftl.allocation=cwdp"), ("placement.policy", "placement.policy=recency")] {
        let why = refused(&["ftl.addresses=1t", "ftl.streams=2", set]);
        assert!(why.contains(key) && why.contains("ftl.addresses = 1099511627776"), "{set}: {why}");
    }
}
