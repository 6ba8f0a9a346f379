//! MV-FTL (WAFLASH, sections 3.2 and 3.3): the paper's examples operation by operation, and the design beside the page
//! design on the same commands, with and without compaction, at pages of 4, 8 and 16 KB.

use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options, Status};
use ssdlab_flash::{Cause, Contents, OpKind};
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs;
use ssdlab_torture::crash_harness::CrashHarness;
use ssdlab_torture::driver::{alone, assert_checks, read_all, run, settle, submit};
use ssdlab_torture::seeds::{campaign, tell};

use crate::timing_support::{COMMAND, DATA_IN, Host, PROGRAM, PROGRAM_PAGE, READ, Spans, TRANSFER, drive, part};

const STAMPS: Options = Options { seed: 1, contents: Contents::Stamps };

/// One plane, so that pages are given out in order; nothing goes on by itself.
fn one_plane() -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.ftl.design = "mvftl".to_string();
    config.ftl.own.set("idle_merge", false);
    config
}

/// Kinds and physical pages of what was done since the last call.
fn operations(spans: &Spans) -> Vec<(OpKind, u32)> {
    let mut all: Vec<(OpKind, u32)> = Vec::new();
    for span in spans.0.lock().expect("one thread").drain(..) {
        // Each operation is seen on its channel and on its die.
        if matches!(span.resource, ssdlab_flash::Resource::Die(_)) {
            all.push((span.kind, span.ppn.0));
        }
    }
    all
}

fn figure(drive: &Drive, name: &str) -> f64 {
    let figures: BTreeMap<String, f64> = drive.design().into_iter().collect();
    *figures.get(name).unwrap_or_else(|| panic!("there is a figure {name}"))
}

use OpKind::{Program, Read as ReadOp};

fn read(lpn: u64, first: u64, count: u64) -> Request {
    Request::new(Op::Read, lpn * 8 + first, count)
}

fn write(lpn: u64, first: u64, count: u64) -> Request {
    Request::new(Op::Write, lpn * 8 + first, count)
}

/// Figure 5 with Pattern 3, as section 3.2 reads it: LPN(3) is in PPN(2), and its sectors [1-6] in PPN(8).
fn figure_5(index: &'static str) -> (Host, Spans) {
    let mut config = one_plane();
    config.ftl.own.set("version_index", index);
    config.ftl.own.set("version_chain", 2_u32);
    let mut host = Host::new(&config);
    let spans = Spans::watch(&mut host.drive);
    for lpn in [0, 1, 3, 4, 5, 6, 7, 8] {
        host.send_request(write(lpn, 0, 8));
        host.run();
    }
    operations(&spans);
    host.assert_takes(write(3, 1, 6), &[PROGRAM_PAGE]);
    assert_eq!(operations(&spans), [(Program, 8)], "no additional read of PPN(2) is needed");
    (host, spans)
}

#[test]
fn figure_5_a_read_within_the_pattern_takes_the_new_page_and_another_both() {
    for index in ["direct", "indirect"] {
        let (mut host, spans) = figure_5(index);
        host.assert_takes(read(3, 1, 3), &[COMMAND, READ, part(3)]);
        assert_eq!(operations(&spans), [(ReadOp, 8)]);
        // The second read is begun when the first has brought the pattern.
        host.assert_takes(read(3, 0, 4), &[COMMAND, READ, part(3), COMMAND, READ, part(1)]);
        assert_eq!(operations(&spans), [(ReadOp, 8), (ReadOp, 2)]);
        host.assert_takes(read(3, 7, 1), &[COMMAND, READ, COMMAND, READ, part(1)]);
        assert_eq!(operations(&spans), [(ReadOp, 8), (ReadOp, 2)], "the pattern is in PPN(8) and nowhere else");
        assert_eq!(figure(&host.drive, "additional_reads_at_read"), 2.0);
        assert_eq!(figure(&host.drive, "version_writes_pattern_3"), 1.0);
        assert_eq!(figure(&host.drive, "versions_live"), 1.0);
        host.assert_checks_hold();
    }
}

#[test]
fn a_full_page_write_drops_all_versions() {
    let (mut host, spans) = figure_5("indirect");
    host.assert_takes(write(3, 0, 8), &[PROGRAM_PAGE]);
    host.assert_takes(read(3, 0, 8), &[COMMAND, READ, TRANSFER]);
    assert_eq!(operations(&spans), [(Program, 9), (ReadOp, 9)]);
    assert_eq!(figure(&host.drive, "versions_live"), 0.0);
    host.assert_checks_hold();
}

#[test]
fn a_write_beyond_the_bound_merges_all_versions_at_once() {
    let (mut host, spans) = figure_5("indirect");
    host.send_request(write(3, 0, 7));
    host.run();
    let mut done = operations(&spans);
    done.sort_unstable_by_key(|(_, ppn)| *ppn);
    // Sector 7 is only in PPN(2), but that is known when PPN(8) is there, and both are asked for at once.
    assert_eq!(done, [(ReadOp, 2), (ReadOp, 8), (Program, 9)]);
    host.assert_takes(read(3, 0, 8), &[COMMAND, READ, TRANSFER]);
    assert_eq!(figure(&host.drive, "completed_chain_bound"), 1.0);
    assert_eq!(figure(&host.drive, "additional_reads_at_write"), 2.0);
    assert_eq!(figure(&host.drive, "versions_live"), 0.0);
    host.assert_checks_hold();
}

#[test]
fn a_mask_that_is_no_pattern_is_completed_by_a_read_unless_masks_are_kept() {
    for masks in ["patterns", "any"] {
        let mut config = one_plane();
        config.ftl.own.set("version_masks", masks);
        let mut host = Host::new(&config);
        let spans = Spans::watch(&mut host.drive);
        host.send_request(write(0, 0, 8));
        host.run();
        operations(&spans);
        if masks == "patterns" {
            host.assert_takes(write(0, 2, 4), &[COMMAND, READ, part(4), DATA_IN, PROGRAM]);
            assert_eq!(operations(&spans), [(ReadOp, 0), (Program, 1)]);
            assert_eq!(figure(&host.drive, "completed_no_pattern"), 1.0);
        } else {
            host.assert_takes(write(0, 2, 4), &[PROGRAM_PAGE]);
            assert_eq!(operations(&spans), [(Program, 1)]);
            assert_eq!(figure(&host.drive, "version_writes_no_pattern"), 1.0);
        }
        assert_eq!(figure(&host.drive, "partial_page_writes"), 1.0);
        host.assert_checks_hold();
    }
}

/// Figure 7: LPN(6), LPN(7) and LPN(8) are in pages of their own, and small parts of them are written.
#[test]
fn figure_7_three_small_partial_pages_are_one_write_and_no_read() {
    let mut config = one_plane();
    config.ftl.own.set("compaction", true);
    config.buffer.policy = "lru".to_string();
    config.buffer.bytes = 64 << 10;
    let mut host = Host::new(&config);
    let spans = Spans::watch(&mut host.drive);
    let flush = Request::new(Op::Flush, 0, 0);
    for lpn in [6, 7, 8] {
        host.send_request(write(lpn, 0, 8));
        host.run();
    }
    host.send_request(flush);
    host.run();
    assert_eq!(operations(&spans), [(Program, 0), (Program, 1), (Program, 2)]);
    for lpn in [6, 7, 8] {
        host.send_request(write(lpn, 2, 2));
        host.run();
    }
    host.send_request(flush);
    host.run();
    assert_eq!(operations(&spans), [(Program, 3)], "3 pages writes plus 3 page reads become 1 page write");
    assert_eq!(figure(&host.drive, "compacted_pages"), 1.0);
    assert_eq!(figure(&host.drive, "compacted_versions"), 3.0);
    assert_eq!(figure(&host.drive, "compacted_layout_bytes"), 2.0 + 3.0 * 6.0);
    assert_eq!(figure(&host.drive, "additional_reads"), 0.0);
    // The layout is a sector at the head of the page, read with the data.
    host.assert_takes(read(7, 2, 2), &[COMMAND, READ, part(3)]);
    assert_eq!(operations(&spans), [(ReadOp, 3)]);
    host.assert_takes(read(7, 0, 3), &[COMMAND, READ, part(2), COMMAND, READ, part(2)]);
    assert_eq!(operations(&spans), [(ReadOp, 3), (ReadOp, 1)]);
    host.assert_checks_hold();
    // Overwriting compacted data: PPN(3) is read, and the merged version goes to another page; PPN(3) keeps the others.
    host.send_request(write(8, 3, 3));
    host.run();
    host.send_request(flush);
    host.run();
    assert_eq!(operations(&spans), [(ReadOp, 3), (Program, 4)]);
    assert_eq!(figure(&host.drive, "compacted_overwrites"), 1.0);
    host.send_request(read(8, 2, 4));
    host.run();
    assert_eq!(operations(&spans), [(ReadOp, 4)]);
    assert_eq!(figure(&host.drive, "versions_live"), 2.0);
    host.assert_checks_hold();
}

/// Section 5.6: with the index in the out-of-band area the halves of two pages are one write; with a sector of it in the
/// page they do not fit, and each is completed by a read.
#[test]
fn two_halves_share_a_page_where_the_index_is_out_of_band() {
    for (index, expected, page) in
        [("oob", vec![(Program, 2)], 2), ("page", vec![(ReadOp, 0), (Program, 2), (ReadOp, 1), (Program, 3)], 3)]
    {
        let mut config = one_plane();
        config.ftl.own.set("compaction", true);
        config.ftl.own.set("compaction_index", index);
        config.buffer.policy = "lru".to_string();
        config.buffer.bytes = 64 << 10;
        let mut host = Host::new(&config);
        let spans = Spans::watch(&mut host.drive);
        let flush = Request::new(Op::Flush, 0, 0);
        for (first, count) in [(0, 8), (4, 4)] {
            for lpn in [6, 7] {
                host.send_request(write(lpn, first, count));
                host.run();
            }
            host.send_request(flush);
            host.run();
            if count == 8 {
                assert_eq!(operations(&spans), [(Program, 0), (Program, 1)]);
            }
        }
        let mut found = operations(&spans);
        found.sort_unstable_by_key(|(kind, page)| (*page, *kind == Program));
        let mut sorted = expected;
        sorted.sort_unstable_by_key(|(kind, page)| (*page, *kind == Program));
        assert_eq!(found, sorted);
        // No sector of layout is read with the data.
        host.assert_takes(read(7, 4, 4), &[COMMAND, READ, part(4)]);
        assert_eq!(operations(&spans), [(ReadOp, page)]);
        host.assert_checks_hold();
    }
}

#[test]
fn an_idle_drive_merges_until_nothing_is_left() {
    let mut config = one_plane();
    config.ftl.own.set("idle_merge", true);
    config.ftl.own.set("version_spare", 100_u32);
    let mut host = Host::new(&config);
    for lpn in 0..20 {
        host.send_request(write(lpn, 0, 8));
        host.send_request(write(lpn, 0, 5));
        host.send_request(write(lpn, 2, 6));
    }
    while host.completed.len() < 60 {
        let next = host.drive.next_event().expect("commands complete");
        host.run_until(next.0);
    }
    assert_eq!(figure(&host.drive, "chains_live"), 20.0);
    let programs = host.drive.counters().flash.total(Program);
    host.run();
    assert_eq!(figure(&host.drive, "chains_live"), 0.0);
    assert_eq!(figure(&host.drive, "merges_idle"), 20.0);
    let counts = host.drive.counters().flash;
    assert_eq!(counts.get(Program, Cause::Merge), 20);
    assert_eq!(counts.total(Program), programs + 20);
    assert_eq!(counts.get(ReadOp, Cause::Merge), 60, "each merge reads all three versions");
    host.assert_checks_hold();
}

/// One read at a time, for ever: not idle, but a light load.
#[test]
fn a_drive_under_light_load_merges_if_it_is_told_to() {
    for (merge_load, left) in [(0_u32, 10.0), (1, 0.0)] {
        let mut config = one_plane();
        config.ftl.own.set("idle_merge", true);
        config.ftl.own.set("merge_load", merge_load);
        config.gc.idle_after = ssdlab_base::Nanos(1_000_000);
        let mut host = Host::new(&config);
        for lpn in 0..10 {
            host.send_request(write(lpn, 0, 8));
            host.send_request(write(lpn, 0, 5));
        }
        while host.completed.len() < 20 {
            let next = host.drive.next_event().expect("commands complete");
            host.run_until(next.0);
        }
        for lpn in 0..300 {
            let tag = host.send_request(read(lpn % 10, 6, 1));
            while host.end(tag).is_none() {
                let next = host.drive.next_event().expect("commands complete");
                host.run_until(next.0);
            }
        }
        assert_eq!(figure(&host.drive, "chains_live"), left, "with a light load of {merge_load}");
    }
}

/// A small drive of the page design, of `mvftl`, or of `mvftl` with compaction.
fn small(design: usize, page_bytes: u32, rng: &mut Rng) -> DriveConfig {
    let mut config = drive(1, rng.random_range(1..3), rng.random_range(1..3));
    config.flash.geometry.page_bytes = page_bytes;
    config.flash.geometry.pages_per_block = 8;
    config.ftl.mapping_unit = page_bytes;
    config.user_bytes = u64::from(page_bytes) * configs::one_of(rng, &[16, 32, 48]);
    config.ftl.allocation = configs::allocation(rng);
    config.flash.geometry.blocks_per_plane += rng.random_range(0..3);
    configs::set_superblock(&mut config);
    config.buffer.policy = configs::one_of(rng, &configs::names("buffer.policy")).to_string();
    config.buffer.bytes = u64::from(page_bytes) * configs::one_of(rng, &[1, 3, 10]);
    if design > 0 {
        config.ftl.design = "mvftl".to_string();
        config.ftl.own.set("compaction", design == 2);
        config.ftl.own.set("compaction_index", configs::one_of(rng, &["page", "oob"]));
        config.ftl.own.set("region", u64::from(page_bytes) * configs::one_of(rng, &[1, 8, 64]));
        if let Some(bits) = configs::one_of(rng, &[None, Some(5_u32)]) {
            config.ftl.own.set("version_bits", bits);
        }
        config.ftl.own.set("version_group", configs::one_of(rng, &[2_u32, 8]));
        config.ftl.own.set("version_chain", rng.random_range(2..5_u32));
        config.gc.idle_after = ssdlab_base::Nanos(200_000);
    }
    config
}

const PAGES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];

#[test]
fn the_same_commands_leave_the_same_data_as_on_the_page_design() {
    campaign("versions", "the_same_commands_leave_the_same_data_as_on_the_page_design", 20, |seed| {
        for page_bytes in PAGES {
            let contents = [0, 1, 2].map(|design| {
                let config = small(design, page_bytes, &mut rng(seed, "drive"));
                tell(&config);
                let mut rng = rng(seed, "commands");
                let mut drive = Drive::new(&config, STAMPS).expect("an accepted drive");
                let mut mix = Mix::draw(&mut rng, &config).in_range();
                // One at a time, so that all take effect in one order whatever the timing.
                let journal = run(&mut drive, &mut mix, &mut rng, 1, 600);
                let sector_data = journal.replay(drive.user_sectors());
                settle(&mut drive);
                assert_checks(&drive);
                let found: Vec<u64> = read_all(&mut drive).into_iter().map(|data| data.expect("no faults")).collect();
                assert_eq!(found, sector_data);
                found
            });
            assert_eq!(contents[0], contents[1]);
            assert_eq!(contents[0], contents[2]);
        }
    });
}

#[test]
fn reads_see_what_was_written_and_power_cuts_lose_nothing_durable() {
    campaign("versions", "reads_see_what_was_written_and_power_cuts_lose_nothing_durable", 20, |seed| {
        for (design, page_bytes) in [0, 1, 2].into_iter().flat_map(|design| PAGES.map(|page| (design, page))) {
            let mut rng = rng(seed, "crash");
            let config = small(design, page_bytes, &mut rng);
            tell(&config);
            let mut lives = CrashHarness::new(&config, STAMPS);
            let mut mix = Mix::draw(&mut rng, &config);
            for _ in 0..4 {
                let depth = configs::one_of(&mut rng, &[1, 4, 32]);
                lives.work(&mut mix, &mut rng, depth, 150);
                let again = rng.random_range(0..3);
                lives.cut(&mut rng, again);
            }
            lives.work(&mut mix, &mut rng, 8, 100);
            lives.drain();
            lives.compare();
        }
    });
}

/// As full as it may be, and every write is the worst there is: a part of a page that has several versions already. No
/// command waits for ever, and none is refused.
#[test]
fn a_full_drive_takes_partial_overwrites_for_ever() {
    campaign("versions", "a_full_drive_takes_partial_overwrites_for_ever", 40, |seed| {
        let mut rng = rng(seed, "full");
        let mut config = configs::random(&mut rng);
        ssdlab_device::draw_design(&mut config, "mvftl", &mut rng);
        config.ftl.own.set("version_spare", 100_u32);
        let Some(most) = configs::most_user_units(&config) else { return };
        config.user_bytes = (most - rng.random_range(0..=most / 4)).max(1) * u64::from(config.ftl.mapping_unit);
        tell(&config);
        let mut drive = Drive::new(&config, Options { seed, contents: Contents::Nothing }).expect("an accepted drive");
        let per_page = u64::from(config.ftl.mapping_unit) / 512;
        let pages = drive.user_sectors() / per_page;
        for page in 0..pages {
            assert_eq!(
                alone(&mut drive, &Request::new(Op::Write, page * per_page, per_page), 1).status,
                Status::Success
            );
        }
        for round in 0..(pages * 6).min(3000) {
            let page = rng.random_range(0..pages);
            let count = if per_page == 1 { 1 } else { rng.random_range(1..per_page) };
            let first = page * per_page + rng.random_range(0..=per_page - count);
            submit(&mut drive, &Request { tag: round as u32, ..Request::new(Op::Write, first, count) }, round);
            while drive.outstanding() > 16 {
                assert!(drive.run_to_completion(ssdlab_base::Nanos::MAX), "commands complete");
                assert!(drive.completions().drain(..).all(|completion| completion.status == Status::Success));
            }
        }
        while drive.outstanding() > 0 {
            assert!(drive.run_to_completion(ssdlab_base::Nanos::MAX), "commands complete");
            assert!(drive.completions().drain(..).all(|completion| completion.status == Status::Success));
        }
        assert_checks(&drive);
        settle(&mut drive);
        assert_checks(&drive);
    });
}

#[test]
fn partial_overwrites_read_less_than_on_the_page_design() {
    let reads = [0, 1, 2].map(|design| {
        let mut config = small(design, 8 << 10, &mut rng(3, "drive"));
        config.user_bytes = u64::from(config.ftl.mapping_unit) * 48;
        config.buffer.policy = "lru".to_string();
        config.buffer.bytes = 64 << 10;
        config.ftl.own.set("idle_merge", false);
        let mut drive = Drive::new(&config, STAMPS).expect("an accepted drive");
        let mut rng = rng(3, "overwrites");
        for page in 0..48 {
            alone(&mut drive, &Request::new(Op::Write, page * 16, 16), 1);
        }
        settle(&mut drive);
        drive.reset_statistics();
        for _ in 0..1000 {
            let count = rng.random_range(1..16);
            alone(
                &mut drive,
                &Request::new(Op::Write, rng.random_range(0..48) * 16 + rng.random_range(0..=16 - count), count),
                1,
            );
        }
        assert_checks(&drive);
        (figure(&drive, "additional_reads"), figure(&drive, "partial_page_writes"))
    });
    let [page, without, with] = reads;
    assert!(page.0 > 0.0 && without.0 < page.0 * 0.9 && with.0 < without.0, "{reads:?}");
    assert!((page.1 - without.1).abs() < page.1 * 0.1, "the buffer sends about as many partial pages: {reads:?}");
}

const DESCRIPTION: &str = r#"
    [flash]
    channels = 4
    chips_per_channel = 4
    dies_per_chip = 2
    planes_per_die = 2
    blocks_per_plane = 4096
    pages_per_block = 256
    page_size = "4k"
    cell = "slc"
    [capacity]
    over_provisioning = "7%"
    [ftl]
    design = "mvftl"
"#;

#[test]
fn what_cannot_work_is_an_error_that_explains() {
    let small = ["flash.blocks_per_plane=16", "flash.pages_per_block=16", "capacity.over_provisioning=60%"];
    let large = ["flash.blocks_per_plane=16384", "flash.pages_per_block=2048"];
    let cases: [(&[&str], &[&str], &str); 13] = [
        (&small, &["ftl.region=2k"], "ftl.region"),
        (&small, &["ftl.region=6k"], "a whole number of pages (4096 bytes)"),
        (&small, &["ftl.mapping_unit=2k"], "the design 'mvftl' maps pages, here of 4096 bytes"),
        (&small, &["ftl.version_chain=1"], "from 2 to 64"),
        (&small, &["ftl.version_index=direct", "ftl.version_chain=3"], "a direct index finds 2"),
        (&small, &["ftl.version_group=0"], "at least 1"),
        (
            &small,
            &["ftl.version_bits=30"],
            "take 14 of the 32 bits of a map entry, which leaves 18 for PT/F, and 30 are asked",
        ),
        (&small, &["ftl.version_bits=2", "ftl.version_group=4096"], "make groups smaller, or PT wider"),
        (&small, &["ftl.version_spare=half"], "whole percent"),
        (&small, &["ftl.compaction=true", "flash.page_size=1k"], "have no room for two parts"),
        (
            &small,
            &["ftl.compaction=true", "ftl.compaction_index=oob", "flash.oob_size=32"],
            "32 bytes holds 1 entries of an index",
        ),
        (&small, &["ftl.compaction=true", "ftl.version_index=direct", "ftl.version_bits=6"], "use indirect"),
        (&large, &[], "take 31 of the 32 bits of a map entry, which leaves 1 for PT/F"),
    ];
    for (size, keys, expected) in cases {
        let mut description = Description::parse(DESCRIPTION, "mv.toml").expect("a description");
        for key in size.iter().chain(keys) {
            description.set(key).expect("a key");
        }
        let found = match description.resolve() {
            Err(error) => error.to_string(),
            Ok(config) => {
                let options = Options { seed: 1, contents: Contents::Nothing };
                Drive::new(&config, options).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
            }
        };
        assert!(found.contains(expected), "{keys:?}: '{found}' does not say '{expected}'");
    }
}
