//! The drive of SHRD: twrites, remaps, trims of the log and `restore`, without a driver.

use std::collections::BTreeMap;

use ssdlab_base::command_sets::shrd::{
    ANOTHER_OLPN, BAD_BLOCK, BEHIND_CAPACITY, BEHIND_LOG, HOLDS_NOTHING, NAMED_TWICE, NO_HEADER, PART_OF_A_UNIT, Pairs,
    READ_LOG, REMAP, RESTORE, SHRD, TRIM_LOG, TWRITE_DATA, TWRITE_HEADER, TwriteHeader,
};
use ssdlab_base::{Op, Opcode, Refusal, Request, rng};
use ssdlab_device::{DriveConfig, Status, draw_design};
use ssdlab_torture::configs::{handful, names};
use ssdlab_torture::shrd::LogHost;

fn config(seed: u64) -> DriveConfig {
    let mut config = handful();
    config.flash.geometry.blocks_per_plane = 24;
    config.gc.free_blocks = 3;
    config.user_bytes = 16 * 1024;
    draw_design(&mut config, "shrd", &mut rng(seed, "shrd"));
    config
}

#[test]
fn data_goes_to_the_log_and_gets_its_own_name_without_moving() {
    for timed in [true, false] {
        for policy in names("buffer.policy") {
            for vendor in [false, true] {
                let mut config = DriveConfig { timed, ..config(1) };
                config.buffer.policy = policy.to_string();
                config.buffer.bytes = 16 << 10;
                let mut host = LogHost::new(&config, 1);
                host.vendor = vendor;
                host.block(Op::Write, 0, 8, false).expect("the power stays");
                host.flush().expect("the power stays");
                host.twrite(&[5, 2, 7]).expect("the power stays");
                host.compare().expect("the power stays");
                let before = host.drive().counters().flash;
                let live = [0, 1, 2];
                host.remap(&live).expect("the power stays");
                let after = host.drive().counters().flash;
                let host_programs = |counts: &ssdlab_flash::OpCounts| {
                    counts.get(ssdlab_flash::OpKind::Program, ssdlab_flash::Cause::Host)
                };
                assert_eq!(host_programs(&before), host_programs(&after), "a remap programs no data");
                host.compare().expect("the power stays");
                let design: BTreeMap<String, f64> = host.drive().design().into_iter().collect();
                assert_eq!((design["twrites"], design["twrite_units"], design["remapped_units"]), (1.0, 3.0, 3.0));
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut host = LogHost::new(&config(1), 1);
    let (user, log) = (host.user_units, host.log_units);
    host.twrite(&[3, 4]).expect("the power stays");
    let header = |first: u32, units: &[u32]| TwriteHeader { first, units: units.to_vec() }.encode();
    let pairs = |pairs: &[(u32, u32)]| Pairs(pairs.to_vec()).encode();
    let zero = vec![0; 512];
    let refused = |host: &mut LogHost, opcode: Opcode, first: u32, units: u32, words: &[u64], why: Refusal| {
        let status = host.of_set(opcode, first, units, words, 9).expect("the power stays");
        assert_eq!(status, Status::Refused(why), "{} at {first}", SHRD.command(opcode).expect("of the set").name);
    };
    refused(&mut host, TWRITE_HEADER, 0, 0, &zero, BAD_BLOCK);
    refused(&mut host, TWRITE_HEADER, 0, 0, &header(log - 1, &[1, 2]), BEHIND_LOG);
    refused(&mut host, TWRITE_HEADER, 0, 0, &header(u32::MAX, &[1, 2]), BEHIND_LOG);
    refused(&mut host, TWRITE_HEADER, 0, 0, &header(2, &[1, user]), BEHIND_CAPACITY);
    refused(&mut host, TWRITE_HEADER, 0, 0, &header(1, &[1, 2, 1]), NAMED_TWICE);
    refused(&mut host, TWRITE_DATA, 2, 2, &[], NO_HEADER);
    host.of_set(TWRITE_HEADER, 0, 0, &header(2, &[1, 2]), 0).expect("the power stays");
    refused(&mut host, TWRITE_DATA, 2, 1, &[], NO_HEADER);
    refused(&mut host, TWRITE_DATA, 1, 2, &[], NO_HEADER);
    let data = Request::of_set(SHRD.command(TWRITE_DATA).expect("of the set"), u64::from(user) * host.per_unit + 1, 2);
    if host.per_unit > 1 {
        assert_eq!(host.run(data, &[], 1).expect("the power stays").0, Status::Refused(PART_OF_A_UNIT));
    }
    refused(&mut host, REMAP, 0, 0, &zero, BAD_BLOCK);
    refused(&mut host, REMAP, 0, 0, &pairs(&[(0, 3), (2, 1)]), HOLDS_NOTHING);
    refused(&mut host, REMAP, 0, 0, &pairs(&[(0, 4)]), ANOTHER_OLPN);
    refused(&mut host, REMAP, 0, 0, &pairs(&[(log, 4)]), BEHIND_LOG);
    refused(&mut host, REMAP, 0, 0, &pairs(&[(0, user)]), BEHIND_CAPACITY);
    refused(&mut host, REMAP, 0, 0, &pairs(&[(0, 3), (0, 4)]), NAMED_TWICE);
    refused(&mut host, TRIM_LOG, 0, 0, &pairs(&[(0, 0)]), BAD_BLOCK);
    refused(&mut host, TRIM_LOG, 0, 0, &pairs(&[(log, 1)]), BEHIND_LOG);
    refused(&mut host, TRIM_LOG, 0, 0, &pairs(&[(0, 2), (1, 1)]), NAMED_TWICE);
    for (opcode, first, units) in [(TWRITE_DATA, log - 1, 2), (READ_LOG, log, 1), (READ_LOG, 0, log + 1)] {
        let status = host.of_set(opcode, first, units, &[], 1).expect("the power stays");
        assert_eq!(status, Status::OutOfRange, "{opcode:?}");
    }
    let behind = Request::new(Op::Read, u64::from(user) * host.per_unit, 1);
    assert_eq!(
        host.run(behind, &[], 0).expect("the power stays").0,
        Status::OutOfRange,
        "block I/O ends at the capacity"
    );
    host.compare().expect("the power stays");
    assert_eq!(
        host.of_set(TWRITE_DATA, 2, 2, &[], 77).expect("the power stays"),
        Status::Success,
        "the header still stands"
    );
}

#[test]
fn a_host_that_lost_its_table_finds_all_data_after_restore() {
    let mut host = LogHost::new(&config(2), 2);
    host.twrite(&[1, 2]).expect("the power stays");
    host.twrite(&[2]).expect("the power stays");
    host.block(Op::Write, 1, 1, false).expect("the power stays");
    host.twrite(&[9]).expect("the power stays");
    host.block(Op::Trim, 9, 1, false).expect("the power stays");
    assert_eq!(host.of_set(RESTORE, 0, 0, &[], 0).expect("the power stays"), Status::Success);
    host.table.clear();
    host.log.clear();
    host.compare().expect("the power stays");
}

/// Of `entries` oLPNs spread evenly over `pages` map pages, sorted, each next one is in another page with the probability of
/// (pages that hold any) to entries: so a remap of 128 changes 1 + 127 (M/N) (1 - e^(-N/M)) map pages of oLPNs.
#[test]
fn a_remap_changes_as_many_map_pages_as_its_entries_are_spread_over() {
    for (log_units, user_units) in [(1024_u32, 32_768_u32), (2048, 16_384), (512, 32_768)] {
        let mut config = config(1);
        config.timed = false;
        let geometry = &mut config.flash.geometry;
        (geometry.page_bytes, geometry.pages_per_block, geometry.blocks_per_plane) = (4096, 64, 200);
        config.ftl.mapping_unit = 512;
        config.user_bytes = u64::from(user_units) * 512;
        let own = [("map_cache", 512 * 64), ("map_page", 512), ("map_log", 0), ("rwlb", u64::from(log_units) * 512)];
        own.into_iter().for_each(|(key, value)| config.ftl.own.set(key, value));
        config.ftl.own.set("map_cache_by", "page");
        let mut host = LogHost::new(&config, 1);
        let mut rng = rng(7, "units");
        for _ in 0..6 {
            let units = rand::seq::index::sample(&mut rng, user_units as usize, log_units as usize).into_vec();
            let units: Vec<u32> = units.into_iter().map(|unit| unit as u32).collect();
            units.chunks(128).for_each(|units| host.twrite(units).expect("the power stays"));
            let live: Vec<u32> = host.table.values().copied().collect();
            assert_eq!(live.len(), log_units as usize, "each unit is in the log");
            host.remap(&live).expect("the power stays");
        }
        let design: BTreeMap<String, f64> = host.drive().design().into_iter().collect();
        let (entries, pages) = (f64::from(log_units), f64::from(user_units) / 128.0);
        let expected = 1.0 + 127.0 * pages / entries * (1.0 - (-entries / pages).exp());
        let found = design["remap_map_pages"] / design["remaps"];
        assert!((found / expected - 1.0).abs() < 0.03, "{found} map pages a remap, expected {expected}");
    }
}
