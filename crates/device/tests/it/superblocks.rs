//! Superblocks: they are counted as large blocks are, their planes program together, and they outlive bad members.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::{BlockId, Cause, Contents, FaultKind, OpKind};

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

fn drive(text: &str, settings: &[&str]) -> DriveConfig {
    let mut description = Description::parse(text, "drive.toml").expect("a description");
    settings.iter().for_each(|setting| description.set(setting).expect("a key"));
    description.resolve().expect("a drive")
}

/// 1024 superblocks of 64 pages, of however many planes and pages a block.
fn thousand(geometry: [u32; 5], victim: &str, superblock: &str) -> DriveConfig {
    let [channels, dies, planes, pages, blocks] = geometry;
    let text = format!(
        "[flash]\nchannels = {channels}\nchips_per_channel = 1\ndies_per_chip = {dies}\nplanes_per_die = {planes}\n\
         blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = \"4k\"\ntiming = \"none\"\n\
         [capacity]\nuser = {}\n[ftl]\nsuperblock = \"{superblock}\"\n[gc]\nvictim = \"{victim}\"\nfree_blocks = 3\n",
        56_987_u64 * 4096
    );
    drive(&text, &[])
}

fn programs(config: &DriveConfig) -> u64 {
    let mut drive = Drive::new(config, OPTIONS).expect("an accepted drive");
    let pages = config.user_bytes / 4096;
    let mut rng = rng(7, "superblocks");
    for write in 0..8 * pages {
        let lpn = if write < pages { write } else { rng.random_range(0..pages) };
        drive.submit(&Request::new(Op::Write, lpn * 8, 8));
        drive.completions().clear();
    }
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    drive.counters().flash.total(OpKind::Program)
}

/// A drive of superblocks of 64 pages decides as a drive of one plane with blocks of 64 pages: the programs are the same to
/// the last one, so what `theory.rs` holds against independent references holds for superblocks too.
#[test]
fn superblocks_are_counted_as_blocks_of_their_size() {
    for victim in ["greedy", "cost-benefit", "fifo"] {
        let one = programs(&thousand([1, 1, 1, 64, 1024], victim, "none"));
        assert_eq!(programs(&thousand([1, 1, 4, 16, 1024], victim, "die")), one, "{victim}, die");
        assert_eq!(programs(&thousand([2, 2, 2, 8, 1024], victim, "drive")), one, "{victim}, drive");
    }
}

const TIMED: &str = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 2\nplanes_per_die = 2\n\
    blocks_per_plane = 40\npages_per_block = 32\npage_size = \"16k\"\ncell = \"tlc\"\n[capacity]\n\
    over_provisioning = \"25%\"\n[ftl]\nmapping_unit = \"4k\"\n";

/// Random overwrites, `depth` pages of 16 KiB at a time, once the drive has been written full.
fn overwrite(drive: &mut Drive, seed: u64, pages_written: u64) {
    let pages = drive.user_sectors() / 32;
    let mut rng = rng(seed, "overwrites");
    drive.set_timed(false);
    let at = drive.now();
    for page in 0..pages {
        drive.submit(&Request { at, ..Request::new(Op::Write, page * 32, 32) });
        drive.completions().clear();
    }
    for _ in 0..2 * pages {
        drive.submit(&Request { at, ..Request::new(Op::Write, rng.random_range(0..pages * 4) * 8, 8) });
        drive.completions().clear();
    }
    drive.set_timed(true);
    drive.reset_statistics();
    for _ in 0..pages_written {
        let at = drive.now();
        // Four small writes a page: what is valid lies scattered.
        for _ in 0..4 {
            drive.submit(&Request { at, ..Request::new(Op::Write, rng.random_range(0..pages * 4) * 8, 8) });
        }
        while drive.outstanding() > 64 {
            assert!(drive.run_to_completion(Nanos::MAX), "commands complete");
            drive.completions().clear();
        }
    }
    while drive.outstanding() > 0 {
        assert!(drive.run_to_completion(Nanos::MAX), "commands complete");
        drive.completions().clear();
    }
}

fn pairing(drive: &Drive, cause: Cause) -> f64 {
    let counters = drive.counters();
    let programs = counters.flash.get(OpKind::Program, cause);
    assert!(programs > 1000, "{programs} programs");
    counters.multi_plane.get(OpKind::Program, cause) as f64 / programs as f64
}

#[test]
fn planes_of_a_superblock_relocate_in_step() {
    let mut shares = Vec::new();
    for superblock in ["none", "die", "drive"] {
        let setting = format!("ftl.superblock={superblock}");
        let config = drive(TIMED, &[&setting, "interface.queue_depth=256"]);
        let mut drive = Drive::new(&config, OPTIONS).expect("an accepted drive");
        overwrite(&mut drive, 3, 5000);
        shares.push(pairing(&drive, Cause::Gc));
        let counters = drive.counters();
        let erases = counters.flash.total(OpKind::Erase);
        if superblock != "none" {
            assert_eq!(counters.multi_plane.total(OpKind::Erase), erases, "all planes of a die are erased at once");
        }
    }
    println!("programs of relocation on several planes: {shares:?}");
    assert!(shares[0] < 0.2, "{shares:?}");
    assert!(shares[1] > 0.98 && shares[2] > 0.98, "{shares:?}");
}

/// Pages leave a buffer one by one as room is wanted, and still the planes of a die get theirs at the same time.
#[test]
fn planes_of_a_superblock_program_in_step_whatever_the_cause() {
    for superblock in ["die", "drive"] {
        let setting = format!("ftl.superblock={superblock}");
        let buffer = ["interface.queue_depth=32", "buffer.policy=lru", "buffer.size=1m", &setting];
        let mut drive = Drive::new(&drive(TIMED, &buffer), OPTIONS).expect("an accepted drive");
        overwrite(&mut drive, 3, 5000);
        let counters = drive.counters();
        let (all, paired) = (counters.flash.total(OpKind::Program), counters.multi_plane.total(OpKind::Program));
        println!("{superblock}: {paired} of {all} programs on several planes");
        assert!(paired as f64 > 0.97 * all as f64, "{superblock}: {paired} of {all}");
    }
}

/// An erase fails, and then a program: a spare stands in while the plane has one; then a superblock less is there, and its
/// other blocks are the spares of their planes. A power cut changes none of that.
#[test]
fn a_bad_member_costs_a_spare_before_it_costs_a_superblock() {
    // Plane 0 has a bad block from the factory, so the other seven planes have a spare each.
    let factory =
        ["ftl.superblock=drive", "flash.faults.script=[{kind=\"factory\", block=5, nth=1}]", "capacity.user=120m"];
    let config = drive(TIMED, &factory);
    let mut drive = Drive::new(&config, OPTIONS).expect("an accepted drive");
    assert_eq!(drive.free_blocks(), 39);
    let whole = drive.over_provisioning().effective;
    let check = |drive: &mut Drive, kind: FaultKind, block: u32, lost: bool| {
        let before = drive.over_provisioning().effective;
        let bad = drive.counters().grown_bad_blocks;
        drive.fail_next(kind, Some(BlockId(block)));
        let mut seed = u64::from(block);
        while drive.counters().grown_bad_blocks == bad {
            overwrite(drive, seed, 500);
            seed += 1;
            assert!(seed < u64::from(block) + 50, "the fault strikes");
        }
        let after = drive.over_provisioning().effective;
        assert_eq!(after < before, lost, "{kind:?} of block {block}: {before} to {after}");
        for check in drive.check() {
            assert!(check.passed, "{}: {}", check.name, check.detail);
        }
    };
    drive.expect_faults();
    check(&mut drive, FaultKind::Erase, 40 + 7, false);
    check(&mut drive, FaultKind::Program, 7 * 40 + 11, false);
    let recovered = |drive: Drive| {
        let (mut drive, _) = Drive::recover(&config, OPTIONS, drive.power_cut()).expect("it comes back");
        while let Some(at) = drive.next_event() {
            drive.run_until(at);
        }
        drive
    };
    let mut drive = recovered(drive);
    assert_eq!(drive.over_provisioning().effective, whole, "both bad blocks have substitutes after a power cut");
    drive.expect_faults();
    check(&mut drive, FaultKind::Erase, 20, true);
    let less = drive.over_provisioning().effective;
    // What that superblock left over stands in where no spare was before.
    check(&mut drive, FaultKind::Program, 40 + 13, false);
    let drive = recovered(drive);
    assert_eq!(drive.over_provisioning().effective, less);
}

#[test]
fn what_cannot_work_is_refused_with_its_numbers() {
    let refusal = |settings: &[&str]| {
        let mut description = Description::parse(TIMED, "drive.toml").expect("a description");
        settings.iter().for_each(|setting| description.set(setting).expect("a key"));
        match description.resolve() {
            Err(error) => error.to_string(),
            Ok(config) => match Drive::new(&config, OPTIONS) {
                Err(error) => error.to_string(),
                Ok(_) => panic!("{settings:?} is accepted"),
            },
        }
    };
    let few = refusal(&["ftl.superblock=drive", "flash.blocks_per_plane=6", "capacity.over_provisioning=30%"]);
    assert!(few.contains("5 of its 6 superblocks in all are kept"), "{few}");
    let few = refusal(&["ftl.superblock=die", "flash.blocks_per_plane=6", "capacity.over_provisioning=30%"]);
    assert!(few.contains("5 of its 6 superblocks a die are kept"), "{few}");
    let fixed = refusal(&["ftl.superblock=die", "ftl.allocation=cwdp"]);
    assert!(fixed.contains("ftl.allocation") && fixed.contains("cannot go with superblocks"), "{fixed}");
    let copies = refusal(&["ftl.superblock=die", "flash.copyback=true", "gc.copyback=true"]);
    assert!(copies.contains("gc.copyback") && copies.contains("a copyback stays in its plane"), "{copies}");
    let unknown = refusal(&["ftl.superblock=plane"]);
    assert!(unknown.contains("found \"plane\", expected none, die or drive"), "{unknown}");
}
