//! Checkpoints of the solid-state cache: what they write, what recovery reads beside them, and what is damaged.

use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::command_sets::cache::{EVICT, EXISTS, READ, STANDBY, WRITE_CLEAN, WRITE_DIRTY};
use ssdlab_base::{Op, Opcode, Request, Rng, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options, Recovery, Status};
use ssdlab_flash::{Cause, Contents, Flash, OpKind, UnitId};

use crate::cache_set::{metrics, of_set};

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

/// Blocks of a plane of these tests.
const BLOCKS: u32 = 96;

/// Pages of a block.
const PAGES: u32 = 32;

/// Pages of data of the host.
const USER: u64 = 1600;

/// Two planes, without time; `sets` are keys of sections.
fn config(sets: &[&str]) -> DriveConfig {
    let text = format!(
        "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = {BLOCKS}\n\
         pages_per_block = {PAGES}\npage_size = \"4k\"\noob = \"ecc\"\ntiming = \"none\"\n[ftl]\ndesign = \"ssc\"\nowners = \"summary\"\n\
         [gc]\nfree_blocks = 3\n[capacity]\nuser = {}\n",
        USER * 4096
    );
    let mut description = Description::parse(&text, "two-planes").expect("a description");
    sets.iter().for_each(|set| description.set(set).expect("a key"));
    description.resolve().expect("a drive")
}

fn with(checkpoint: &str) -> DriveConfig {
    config(&[&format!("ftl.map_checkpoint={checkpoint}")])
}

fn done(drive: &mut Drive, opcode: Opcode, first: u64) {
    assert_eq!(of_set(drive, opcode, first, 1).0, Status::Success, "block {first}");
}

fn flush(drive: &mut Drive) {
    drive.submit(&Request::new(Op::Flush, 0, 0));
    assert_eq!(drive.completions().pop().expect("it ends").status, Status::Success);
}

/// What a block is: absent, clean or dirty.
fn state(drive: &mut Drive, block: u64) -> (Status, Vec<u8>) {
    (of_set(drive, READ, block, 1).0, of_set(drive, EXISTS, block, 1).1.bytes)
}

fn states(drive: &mut Drive) -> Vec<(Status, Vec<u8>)> {
    (0..USER).map(|block| state(drive, block)).collect()
}

/// Writes at random, clean and dirty, and evicts a few.
fn wear(drive: &mut Drive, rng: &mut Rng, writes: u64) {
    for _ in 0..writes {
        let opcode = [WRITE_DIRTY, WRITE_CLEAN, WRITE_CLEAN, EVICT][rng.random_range(0..4)];
        done(drive, opcode, rng.random_range(0..USER));
    }
}

fn recovered(config: &DriveConfig, flash: Flash) -> (Drive, Recovery) {
    Drive::recover(config, OPTIONS, flash).expect("a drive")
}

/// Slots of the map in a page: 8 bytes each, and 4 for copies, behind the page's header.
fn map_pages() -> u64 {
    let units = u64::from(2 * BLOCKS * PAGES);
    (units + units / 4 + 1).div_ceil((4096 - 64) / 12)
}

#[test]
fn a_full_checkpoint_is_the_map_in_pages() {
    let mut drive = Drive::new(&with("full"), OPTIONS).expect("a drive");
    for checkpoints in 1..=5_u64 {
        done(&mut drive, WRITE_DIRTY, checkpoints);
        if checkpoints.is_multiple_of(2) {
            flush(&mut drive)
        } else {
            done(&mut drive, STANDBY, 0)
        }
        let metrics = metrics(&drive);
        assert_eq!(metrics["checkpoints"], checkpoints as f64);
        assert_eq!(metrics["checkpoint_map_pages"], (checkpoints * map_pages()) as f64);
        assert_eq!(metrics["checkpoint_state_pages"], checkpoints as f64, "one page has all that is beside the map");
    }
    let programs = drive.counters().flash.get(OpKind::Program, Cause::Metadata);
    assert_eq!(programs, 5 * (map_pages() + 1), "they are charged as metadata");
    // A flush that has nothing to say writes nothing.
    flush(&mut drive);
    assert_eq!(drive.counters().flash.get(OpKind::Program, Cause::Metadata), programs);
}

/// The hash of an address, and how many slots a page has, say which pages of the map writes change.
#[test]
fn a_checkpoint_of_what_changed_is_the_pages_that_did() {
    let mut drive = Drive::new(&with("changed"), OPTIONS).expect("a drive");
    let (slots, per_page) = (u64::from(2 * BLOCKS * PAGES) * 5 / 4 + 1, (4096 - 64) / 12_u64);
    let home = |lpn: u32| u64::from(lpn ^ lpn.rotate_left(11) ^ lpn.rotate_left(21)) % slots;
    flush(&mut drive);
    done(&mut drive, WRITE_DIRTY, 0);
    flush(&mut drive);
    let mut rng = rng(3, "changed");
    // No block becomes full: then slots of all that it holds would change.
    for round in 0..6 {
        let before = metrics(&drive);
        let blocks: Vec<u32> = (0..round).map(|_| rng.random_range(0..40)).collect();
        blocks.iter().for_each(|block| done(&mut drive, WRITE_DIRTY, u64::from(*block)));
        flush(&mut drive);
        let mut pages: Vec<u64> = blocks.iter().map(|block| home(*block) / per_page).collect();
        pages.sort_unstable();
        pages.dedup();
        let after = metrics(&drive);
        let grown = |name: &str| after[name] - before[name];
        assert_eq!(grown("checkpoint_map_pages"), pages.len() as f64, "round {round}: blocks {blocks:?}");
        assert_eq!(grown("checkpoint_state_pages"), f64::from(u8::from(round > 0)), "round {round}");
    }
}

/// With a checkpoint recovery finds what it finds without, and reads the map, blocks that were written since, and little else.
#[test]
fn recovery_reads_less_and_finds_the_same() {
    for owners in ["summary", "oob"] {
        let mut read = BTreeMap::new();
        for checkpoint in ["full", "changed", "log"] {
            let sets = [
                format!("ftl.map_checkpoint={checkpoint}"),
                format!("ftl.owners={owners}"),
                "flash.oob=free".to_string(),
            ];
            let config = config(&sets.each_ref().map(String::as_str));
            let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
            let mut rng = rng(5, "recovery");
            for _ in 0..30 {
                wear(&mut drive, &mut rng, 400);
                flush(&mut drive);
            }
            let before = states(&mut drive);
            metrics(&drive);
            let (mut drive, recovery) = recovered(&config, drive.power_cut());
            assert_eq!(states(&mut drive), before, "{checkpoint}, {owners}");
            metrics(&drive);
            wear(&mut drive, &mut rng, 3000);
            flush(&mut drive);
            let before = states(&mut drive);
            let (mut drive, _) = recovered(&config, drive.power_cut());
            assert_eq!(states(&mut drive), before, "{checkpoint}, {owners}: after another cut");
            metrics(&drive);
            read.insert(checkpoint, recovery.pages_read);
        }
        println!("{owners}: {read:?}");
        let share = if owners == "oob" { 2 } else { 1 };
        assert!(read["full"] * share < read["log"], "{owners}: {read:?}");
        assert!(read["changed"] * share < read["log"], "{owners}: {read:?}");
    }
}

/// Pages of checkpoints on flash, the newest last: number of the set, place in it, and where it is.
fn area_pages(flash: &Flash) -> Vec<(u64, u64, UnitId)> {
    let is_page = |words: &[u64]| words[0] >> 32 == 0x5343_4b31;
    let pages = flash.oob.records().filter(|(_, words)| is_page(words));
    let mut pages: Vec<_> = pages.map(|(unit, words)| (words[1], words[4] >> 28 & 0xFFF_FFFF, unit)).collect();
    pages.sort_unstable();
    pages
}

/// Damages one page of the newest checkpoint: the one before it is taken, with all that happened since. Where both are damaged all lists
/// are read, and where no map is left at all, too. The drive finds the same each time.
#[test]
fn a_damaged_checkpoint_gives_way_to_an_older_one_and_that_to_all_lists() {
    for checkpoint in ["full", "changed"] {
        let config = with(checkpoint);
        let run = || {
            let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
            let mut rng = rng(7, "damaged");
            for _ in 0..31 {
                wear(&mut drive, &mut rng, 300);
                flush(&mut drive);
            }
            wear(&mut drive, &mut rng, 200);
            drive.submit(&Request { fua: true, ..Request::new(Op::Trim, 0, 8) });
            drive.completions().clear();
            drive
        };
        let mut drive = run();
        let without = states(&mut drive);
        let mut read = Vec::new();
        for damaged in [0, 1, 2, usize::MAX] {
            let mut flash = run().power_cut();
            let pages = area_pages(&flash);
            let mut checkpoints: Vec<u64> =
                pages.iter().filter(|(_, place, _)| *place == 2).map(|(number, ..)| *number).collect();
            checkpoints.reverse();
            for (number, place, unit) in pages {
                let of_newest = checkpoints.iter().take(damaged).any(|other| *other == number);
                if of_newest && place == 1 || damaged == usize::MAX {
                    flash.oob.put_record(unit, vec![7; 100].into());
                }
            }
            let (mut drive, recovery) = recovered(&config, flash);
            assert_eq!(states(&mut drive), without, "{checkpoint}: {damaged} damaged");
            metrics(&drive);
            read.push(recovery.pages_read);
            // It goes on, and another cut finds what it wrote.
            let mut rng = rng(9, "goes on");
            wear(&mut drive, &mut rng, 2500);
            flush(&mut drive);
            let before = states(&mut drive);
            let (mut drive, _) = recovered(&config, drive.power_cut());
            assert_eq!(states(&mut drive), before, "{checkpoint}: {damaged} damaged, and another cut");
        }
        println!("{checkpoint}: {read:?}");
        assert!(read[0] < read[1] && read[1] < read[2], "{checkpoint}: {read:?} pages were read");
    }
}

/// Pages that say they are of another drive are nothing: all lists are read.
#[test]
fn the_checkpoint_of_another_drive_is_ignored() {
    let config = with("full");
    let run = || {
        let mut drive = Drive::new(&config, OPTIONS).expect("a drive");
        wear(&mut drive, &mut rng(11, "another"), 3000);
        flush(&mut drive);
        drive
    };
    let before = states(&mut run());
    let other = DriveConfig { user_bytes: (USER - 1) * 4096, ..config.clone() };
    let mut drive = Drive::new(&other, OPTIONS).expect("a drive");
    (0..400).for_each(|block| done(&mut drive, WRITE_DIRTY, block));
    flush(&mut drive);
    let others: Vec<Box<[u64]>> = drive
        .power_cut()
        .oob
        .records()
        .filter(|(_, words)| words[0] >> 32 == 0x5343_4b31)
        .map(|(_, words)| words.into())
        .collect();
    let mut flash = run().power_cut();
    let all = area_pages(&flash);
    for ((_, _, unit), words) in all.into_iter().zip(others.iter().cycle()) {
        flash.oob.put_record(unit, words.clone());
    }
    let (mut drive, _) = recovered(&config, flash);
    assert_eq!(states(&mut drive), before);
    wear(&mut drive, &mut rng(13, "goes on"), 2000);
    flush(&mut drive);
    let before = states(&mut drive);
    let (mut drive, _) = recovered(&config, drive.power_cut());
    assert_eq!(states(&mut drive), before, "its own checkpoint is there again");
    metrics(&drive);
}

/// The blocks of the area are erased far more often than others, and results say so.
#[test]
fn the_area_wears_first_and_its_erases_are_told() {
    let mut drive = Drive::new(&with("full"), OPTIONS).expect("a drive");
    let mut rng = rng(15, "wear");
    for _ in 0..200 {
        wear(&mut drive, &mut rng, 10);
        flush(&mut drive);
    }
    let metrics = metrics(&drive);
    let erases = drive.counters().flash.get(OpKind::Erase, Cause::Metadata) as f64;
    assert_eq!(metrics["checkpoint_erases"], erases);
    assert!(metrics["checkpoint_erases_max"] > 20.0, "{metrics:?}");
    assert!(metrics["checkpoint_erases"] >= metrics["checkpoint_erases_max"], "{metrics:?}");
}

#[test]
fn an_area_that_does_not_fit_is_refused_with_its_blocks() {
    assert_eq!(config(&[]).user_bytes, USER * 4096);
    let why = |sets: &[&str]| {
        let description = |sets: &[&str]| {
            let text = "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = 16\n\
                 pages_per_block = 8\npage_size = \"512\"\ntiming = \"none\"\n[ftl]\ndesign = \"ssc\"\nmapping_unit = 512\n\
                 [gc]\nfree_blocks = 3\n[capacity]\nuser = \"1k\"\n";
            let mut description = Description::parse(text, "tiny").expect("a description");
            sets.iter().for_each(|set| description.set(set).expect("a key"));
            description
        };
        match description(sets).resolve() {
            Ok(config) => Drive::new(&config, OPTIONS).err().expect("a refused drive").to_string(),
            Err(why) => why.to_string(),
        }
    };
    let refused = why(&["gc.free_blocks=12", "ftl.map_checkpoint=full"]);
    for part in ["ftl.map_checkpoint", "found \"full\"", "of the 16 blocks of each plane"] {
        assert!(refused.contains(part), "{refused}");
    }
    let refused = why(&["flash.blocks_per_plane=40", "ftl.map_checkpoint=full", "capacity.user=130k"]);
    for part in ["too little over-provisioning", "blocks of each plane hold checkpoints of a map of"] {
        assert!(refused.contains(part), "{refused}");
    }
}
