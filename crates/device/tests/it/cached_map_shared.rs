//! Map pages smaller than a mapping unit share one on flash, as many as fit by their bytes.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Drive, DriveConfig, Options, Settings};
use ssdlab_flash::{Cause, Contents, OpKind};

use crate::timing_support::drive;

const PAGE: u32 = 16 << 10;

/// A drive of one die whose map has `map_pages` pages of `map_page` bytes; the cache holds half of them.
fn config(unit: u32, map_page: u32, map_pages: u32) -> DriveConfig {
    let mut config = drive(1, 1, 2);
    config.flash.geometry.page_bytes = PAGE;
    config.flash.geometry.pages_per_block = 32;
    config.user_bytes = u64::from(map_pages) * u64::from(map_page / 4) * u64::from(unit);
    let blocks = config.user_bytes / u64::from(PAGE * config.flash.geometry.pages_per_block);
    config.flash.geometry.blocks_per_plane = (blocks * 5 / 8) as u32 + 16;
    config.ftl.mapping_unit = unit;
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default().with("map_page", map_page).with("map_cache", map_page * (map_pages / 2));
    config
}

/// Uniform writes of single units, of several commands at once where the drive takes time.
fn write(drive: &mut Drive, unit: u32, count: u64) {
    let (sectors, mut rng) = (u64::from(unit / 512), rng(3, "shared"));
    let units = drive.user_sectors() / sectors;
    for number in 0..count {
        let first = rng.random_range(0..units) * sectors;
        drive.submit(&Request { at: drive.now(), ..Request::new(Op::Write, first, sectors) });
        while drive.outstanding() > if number + 1 == count { 0 } else { 2 } {
            drive.run_to_completion(Nanos::MAX);
            drive.completions().clear();
        }
        drive.completions().clear();
    }
}

/// Map pages that were programmed for a change in them, by programs of map pages: those of collection count, those of records do
/// not.
fn pages_a_program(drive: &Drive) -> f64 {
    let stats = drive.counters().map_cache.expect("a drive that caches its map");
    let programs = drive.counters().flash.get(OpKind::Program, Cause::Mapping) - stats.block_changes;
    let pages = stats.flushes() as f64 / programs as f64;
    println!("{pages:.2} map pages a program, of {programs}; {} were moved", stats.moved_pages);
    assert!(programs > 300, "{programs} programs, {stats:?}");
    pages
}

/// Packing went by mapping units: a program of a page of 16 KB took one map page of 4 KB where the mapping unit was 16 KB.
#[test]
fn a_program_takes_as_many_map_pages_as_a_page_of_flash_has_bytes_for() {
    // The mapping unit, the map page, and how many share a page of flash.
    for (unit, map_page, fit) in [(16 << 10, 4096, 4.0), (8 << 10, 4096, 4.0), (16 << 10, 2048, 8.0), (4096, 4096, 4.0)]
    {
        for (timed, by) in [(false, "page"), (false, "entry"), (true, "page")] {
            let mut config = config(unit, map_page, 48);
            config.timed = timed;
            config.ftl.own.set("map_cache_by", by);
            let mut measured = Vec::new();
            for packing in [true, false] {
                config.ftl.own.set("map_packing", packing);
                let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("a drive");
                let count = drive.user_sectors() / u64::from(unit / 512) * 3 / 2;
                write(&mut drive, unit, count);
                measured.push(pages_a_program(&drive));
                let broken: Vec<_> = drive.check().into_iter().filter(|check| !check.passed).collect();
                assert!(broken.is_empty(), "{broken:?}");
            }
            println!("unit {unit}, map page {map_page}, timed {timed}, by {by}: {measured:.2?} map pages a program");
            // Pages that wait for data in flight are no companions.
            let least = if timed { 0.75 * fit } else { 0.9 * fit };
            assert!((least..=fit).contains(&measured[0]), "{measured:?} of {fit}");
            assert!((0.5..=1.0).contains(&measured[1]), "{measured:?} without packing");
        }
    }
}
