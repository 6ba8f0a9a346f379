//! Lists of owners in place of OOB areas: what they cost, what a flush and a FUA write wait for, and what is refused.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options, Status};
use ssdlab_flash::{Cause, Contents, OpKind};

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

/// One plane; `sets` are keys of sections.
fn one_plane(blocks: u32, pages: u32, user_pages: u64, timed: bool, sets: &[&str]) -> DriveConfig {
    let timing = if timed {
        "timing = { read = \"50us\", program = \"500us\", erase = \"3ms\", transfer = \"10us\", command = \"0\" }"
    } else {
        "timing = \"none\""
    };
    let text = format!(
        "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = {blocks}\n\
         pages_per_block = {pages}\npage_size = \"4k\"\n{timing}\n[capacity]\nuser = {}\n",
        user_pages * 4096
    );
    let mut description = Description::parse(&text, "one-plane").expect("a description");
    sets.iter().for_each(|set| description.set(set).expect("a key"));
    description.resolve().expect("a drive")
}

const LISTS: [&str; 2] = ["flash.oob=ecc", "ftl.owners=summary"];

/// Programs for each page that the host writes, uniformly and at random, once the drive is in its steady state.
fn write_amplification(config: &DriveConfig, user_pages: u64) -> (f64, u64) {
    let mut drive = Drive::new(config, OPTIONS).expect("an accepted drive");
    let mut rng = rng(7, "summaries");
    let write = |drive: &mut Drive, lpn: u64| {
        drive.submit(&Request::new(Op::Write, lpn * 8, 8));
        drive.completions().clear();
    };
    (0..user_pages).for_each(|lpn| write(&mut drive, lpn));
    let programs = |drive: &Drive| drive.counters().flash.total(OpKind::Program);
    for _ in 0..6 * user_pages {
        write(&mut drive, rng.random_range(0..user_pages));
    }
    let (before, early) = (programs(&drive), early_lists(&drive));
    for _ in 0..6 * user_pages {
        write(&mut drive, rng.random_range(0..user_pages));
    }
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    ((programs(&drive) - before) as f64 / (6 * user_pages) as f64, early_lists(&drive) - early)
}

fn early_lists(drive: &Drive) -> u64 {
    drive.design().iter().find(|(name, _)| name == "early_lists").map_or(0, |(_, count)| *count as u64)
}

#[test]
fn write_amplification_is_that_of_oob_areas_times_128_127() {
    let user = 512 * 127 * 4 / 5;
    let free = "gc.free_blocks=8";
    // Blocks of 127 pages hold as much data as those of 128 with a list.
    let oob = one_plane(512, 127, user, false, &[free]);
    let lists = one_plane(512, 128, user, false, &[LISTS[0], LISTS[1], free]);
    let op = |config: &DriveConfig| Drive::new(config, OPTIONS).expect("a drive").over_provisioning().effective;
    assert!((op(&oob) - op(&lists)).abs() < 1e-9, "effective over-provisioning {} and {}", op(&oob), op(&lists));
    let ((oob, _), (lists, early)) = (write_amplification(&oob, user), write_amplification(&lists, user));
    let expected = oob * 128.0 / 127.0;
    assert!(
        (lists / expected - 1.0).abs() < 0.01,
        "{lists} with lists ({early} early), {oob} without: expected {expected}"
    );
}

#[test]
fn a_flush_and_a_fua_write_take_a_list_to_the_nanosecond() {
    let config = one_plane(16, 8, 32, true, &LISTS);
    let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
    let mut end = |request: Request| {
        drive.submit(&Request { at: drive.now(), ..request });
        assert!(drive.run_to_completion(Nanos::MAX), "{request:?} completes");
        let completion = drive.completions().pop().expect("a completion");
        assert_eq!(completion.status, Status::Success);
        completion.at.since(completion.submitted)
    };
    let program = Nanos(510_000);
    assert_eq!(end(Request::new(Op::Write, 0, 8)), program);
    assert_eq!(end(Request::new(Op::Flush, 0, 0)), program, "a list of the open block");
    assert_eq!(end(Request::new(Op::Flush, 0, 0)), Nanos::ZERO, "all is listed");
    assert_eq!(end(Request { fua: true, ..Request::new(Op::Write, 8, 8) }), program + program);
    let lists = drive.counters().flash.get(OpKind::Program, Cause::Mapping);
    assert_eq!((lists, early_lists(&drive)), (2, 2));
}

#[test]
fn recovery_pays_for_the_pages_that_it_reads() {
    let config = one_plane(16, 8, 32, true, &LISTS);
    let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
    // A full block, and one with two pages; an early list covers the first.
    for lpn in 0..9 {
        let fua = lpn == 7;
        drive.submit(&Request { at: drive.now(), fua, ..Request::new(Op::Write, lpn * 8, 8) });
        drive.run_to_completion(Nanos::MAX);
        drive.completions().clear();
    }
    let flash = drive.power_cut();
    let (drive, recovery) = Drive::recover(&config, OPTIONS, flash).expect("it comes back");
    // 14 free blocks: the last page and the first. The full block: its last. The open one, with three written pages: the last, the
    // first, 4, 2 and 3 by bisection, then 2 and 1, which is the list.
    assert_eq!(recovery.pages_read, 14 * 2 + 1 + 5 + 2);
    let held = drive.mapped_bytes();
    assert_eq!(held, 8 * 4096, "what no list names is lost");
}

#[test]
fn what_cannot_be_listed_is_refused_with_the_key_that_helps() {
    let text = |sets: &[&str]| {
        let mut description = Description::parse(
            "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\nblocks_per_plane = 32\n\
             pages_per_block = 64\npage_size = \"4k\"\ncell = \"slc\"\noob = \"ecc\"\n[capacity]\nover_provisioning = \"40%\"\n",
            "board.toml",
        )
        .expect("a description");
        sets.iter().for_each(|set| description.set(set).expect("a key"));
        let config = description.resolve().expect("a drive");
        let error = Drive::new(&config, OPTIONS).map(|_| ()).expect_err("it is refused");
        description.place(&error).to_string()
    };
    let oob = text(&[]);
    assert!(oob.starts_with("board.toml:10:") && oob.contains("flash.oob"), "{oob}");
    assert!(oob.contains("\"ecc\", but the design \"page\"") && oob.contains("ftl.owners = \"summary\""), "{oob}");
    let design = text(&["ftl.owners=summary", "ftl.design=mvftl"]);
    assert!(design.contains("ftl.owners") && design.contains("\"mvftl\" writes no lists of owners"), "{design}");
    let superblock = text(&["ftl.owners=summary", "ftl.superblock=die"]);
    assert!(superblock.contains("expected \"oob\", or ftl.superblock = \"none\""), "{superblock}");
    let paced = text(&["ftl.owners=summary", "gc.pacing=proportional"]);
    assert!(paced.contains("expected gc.pacing = \"off\""), "{paced}");
    let large = text(&["ftl.owners=summary", "ftl.mapping_unit=512", "flash.pages_per_block=128"]);
    assert!(large.contains("the list of 127 pages of 8 units takes") && large.contains("at most a page"), "{large}");
    let short = text(&["ftl.owners=summary", "flash.pages_per_block=2"]);
    assert!(short.contains("blocks of 2 pages: expected at least 3"), "{short}");
}
