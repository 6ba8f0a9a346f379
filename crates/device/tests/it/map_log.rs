//! The log of what relocation changes in map pages that are not cached (SHRD, section 4.5): what it saves, that nothing else
//! changes, and that it survives.

use rand::RngExt;
use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{Data, Drive, DriveConfig, MapCacheStats, MapUser, Options, Settings};
use ssdlab_flash::{Cause, Contents, OpKind};

use crate::timing_support::*;

/// Entries of a map page of 512 bytes.
const ENTRIES: u64 = 128;

const OPTIONS: Options = Options { seed: 1, contents: Contents::Stamps };

/// One die whose user has `map_pages` map pages of data, half of it, with so many cached and a log of so many entries.
fn config(map_pages: u64, cached: u64, log: u64) -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.flash.geometry.blocks_per_plane = (map_pages * ENTRIES * 2 / 16) as u32;
    config.user_bytes = config.flash.geometry.bytes() / 2;
    config.ftl.design = "dftl".to_string();
    let own = Settings::default().with("map_page", 512_u32).with("map_cache", 512 * cached);
    config.ftl.own = own.with("map_log", 8 * log);
    config.timed = false;
    config
}

fn made(config: &DriveConfig) -> Drive {
    Drive::new(config, OPTIONS).expect("an accepted drive")
}

fn stats(drive: &Drive) -> MapCacheStats {
    drive.counters().map_cache.expect("a drive that caches its map")
}

/// Writes random units, each with the number of the write in all its sectors; tells `written` of it.
fn overwrite(drive: &mut Drive, requests: u64, seed: u64, written: &mut [u64]) {
    let units = drive.user_sectors() / 8;
    let mut rng = rng(seed, "overwrites");
    for number in 1..=requests {
        let lpn = rng.random_range(0..units);
        written[lpn as usize] = seed << 32 | number;
        let stamps = written[lpn as usize].to_le_bytes().repeat(8);
        drive.submit_with(
            &Request::new(Op::Write, lpn * 8, 8),
            if drive.sector_data_bytes() > 0 { Data::Bytes(&stamps) } else { Data::Nothing },
        );
        drive.completions().clear();
    }
}

/// Every unit reads as it was written.
fn assert_holds(drive: &mut Drive, written: &[u64]) {
    for (lpn, number) in written.iter().enumerate() {
        drive.submit(&Request::new(Op::Read, lpn as u64 * 8, 8));
        drive.completions().clear();
        let (_, data) = drive.read_data().pop().expect("data of a read");
        assert_eq!(data, number.to_le_bytes().repeat(8), "unit {lpn}");
    }
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
}

#[test]
fn relocation_loads_each_map_page_once_for_all_entries_of_a_full_log() {
    let (map_pages, cached) = (64, 4);
    let run = |log: u64| {
        let mut drive = made(&config(map_pages, cached, log));
        let mut written = vec![0; (drive.user_sectors() / 8) as usize];
        overwrite(&mut drive, 40_000, 7, &mut written);
        drive.reset_statistics();
        overwrite(&mut drive, 60_000, 8, &mut written);
        assert_holds(&mut drive, &written);
        drive
    };
    let without = run(0);
    let copies = |drive: &Drive| drive.counters().flash.get(OpKind::Program, Cause::Gc);
    assert!(copies(&without) > 10_000, "{} copies", copies(&without));
    assert_eq!(stats(&without).log_entries, 0);
    let mut loads = vec![stats(&without).by[MapUser::Gc as usize].misses as f64];
    for log in [4, 8, 16, 64] {
        let with = run(log);
        // Map blocks fill in another order, and make the pool's free blocks fewer at other times.
        let more = copies(&with) as f64 / copies(&without) as f64;
        assert!((more - 1.0).abs() < 0.02, "{} copies, {} without a log", copies(&with), copies(&without));
        assert_eq!(with.counters().flash.get(OpKind::Program, Cause::Host), 60_000);
        assert_eq!(stats(&with).by[MapUser::Gc as usize].misses, 0, "relocation loads no map page itself");
        assert!(stats(&with).log_entries > 11_000);
        let (flushes, missed) = (stats(&with).log_flushes as f64, stats(&with).by[MapUser::Log as usize].misses as f64);
        assert!(missed < loads[loads.len() - 1], "{missed} loads with a log of {log}, before: {loads:?}");
        loads.push(missed);
        if flushes > 0.0 {
            // `log` entries are of so many different ones of the map pages that are not cached.
            let pages = (map_pages - cached) as f64;
            let expected = pages * (1.0 - (1.0 - 1.0 / pages).powi(log as i32));
            let found = missed / flushes;
            println!("log of {log}: {flushes} flushes of {found:.2} map pages, {expected:.2} expected");
            assert!((found / expected - 1.0).abs() < 0.15, "{found} map pages a flush, {expected} expected");
        }
    }
    println!("map pages loaded for relocation: {loads:?}");
    // The host misses 15 of 16 map pages. Each write brings 0.2 entries, and loads one of 60 pages: so about 12 wait at a time,
    // and a log of 64 is never full.
    assert_eq!(loads[4], 0.0);
}

#[test]
fn a_log_beside_the_whole_map_is_never_used() {
    let run = |log: u64| {
        let mut drive = made(&config(16, 16, log));
        let mut written = vec![0; (drive.user_sectors() / 8) as usize];
        overwrite(&mut drive, 50_000, 3, &mut written);
        drive
    };
    let (without, with) = (run(0), run(64));
    assert_eq!(stats(&with).log_entries, 0);
    assert_eq!(with.counters().flash, without.counters().flash);
}

#[test]
fn copies_whose_entries_are_only_in_the_log_are_found_after_a_power_cut() {
    let mut with_entries = 0;
    for seed in 1..=20 {
        let config = config(16, 2, 16 << (seed % 6));
        let mut drive = made(&config);
        let mut written = vec![0; (drive.user_sectors() / 8) as usize];
        for life in 0..4 {
            overwrite(&mut drive, 4_000 + 37 * seed, 100 * seed + life, &mut written);
            let left = stats(&drive).log_entries - stats(&drive).log_entries_applied;
            with_entries += u32::from(left > 0);
            let flash = drive.power_cut();
            drive = Drive::recover(&config, OPTIONS, flash).expect("it is recovered").0;
        }
        assert_holds(&mut drive, &written);
    }
    assert!(with_entries > 60, "the log had entries at {with_entries} of 80 power cuts");
}

#[test]
fn a_snapshot_has_the_log() {
    let config = config(16, 2, 256);
    let options = Options { contents: Contents::Nothing, ..OPTIONS };
    let mut drive = Drive::new(&config, options).expect("an accepted drive");
    let mut written = vec![0; (drive.user_sectors() / 8) as usize];
    overwrite(&mut drive, 20_000, 5, &mut written);
    assert!(stats(&drive).log_entries > stats(&drive).log_entries_applied, "the log is empty");
    let mut saved = Vec::new();
    drive.save(&mut saved).expect("it is saved");
    let mut again = Drive::restore(&config, options, &mut saved.as_slice()).expect("it is restored");
    let mut flash = Vec::new();
    for drive in [&mut drive, &mut again] {
        drive.reset_statistics();
        overwrite(drive, 10_000, 6, &mut written);
        flash.push(drive.counters().flash);
        assert!(drive.check().iter().all(|check| check.passed));
    }
    assert_eq!(flash[0], flash[1]);
}

#[test]
fn a_log_that_cannot_work_is_refused() {
    let mut config = config(16, 4, 1);
    config.ftl.mapping_unit = 2048;
    config.ftl.own = Settings::default().with("map_page", 512_u32).with("map_cache", 4096_u32).with("map_log", 8_u32);
    let error = Drive::new(&config, OPTIONS).err().expect("it is refused");
    assert_eq!(error.key, "ftl.map_log");
    assert_eq!(
        error.reason,
        "8 B holds 1 entries of 8 bytes: relocation moves a page of up to 2 units at once, 16 B; 0 is no log"
    );
}
