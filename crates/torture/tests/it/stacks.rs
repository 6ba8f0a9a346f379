//! Stacks under crashes of the host, power cuts of one drive, and cuts of everything.

use ssdlab_base::command_sets::cache::CACHE;
use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_base::command_sets::shrd::SHRD;
use ssdlab_base::command_sets::zoned::ZONED;
use ssdlab_base::{Op, Request};
use ssdlab_device::{DriveConfig, Settings};
use ssdlab_torture::configs::handful;
use ssdlab_torture::stacks::{Stack, StackScope, walk};
use ssdlab_torture::{Totals, draw, run};

use crate::failing;

#[test]
fn drawn_stacks_keep_what_they_promise() {
    keep_what_they_promise(false);
}

#[test]
fn drawn_drivers_keep_what_they_promise() {
    keep_what_they_promise(true);
}

/// Every tenth seed draws FlashCache; this runs those alone. `SSDLAB_TORTURE` multiplies their number.
#[test]
fn drawn_caches_of_disks_keep_what_they_promise() {
    let times: u64 = std::env::var("SSDLAB_TORTURE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let first: u64 = std::env::var("SSDLAB_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let scope = StackScope { host: None, drive: None, commands: 200, drivers: false, faults: true };
    let mut totals = Totals::default();
    for number in first / 10..first / 10 + 60 * times {
        let case = draw(number * 10 + 5, &scope).expect("a case is drawn");
        assert!(case.subject.text.contains("flashcache"), "{}", case.subject.text);
        if let Err(finding) = run(&case, &mut totals) {
            failing::none("caches of disks", Some((case, finding)));
        }
    }
    assert!(totals.stack_cuts.iter().all(|count| *count > 50), "{:?}", totals.stack_cuts);
    println!("{} cases, cuts {:?}", totals.cases, totals.stack_cuts);
}

/// The first of so many seeds that finds something in a stack without faults, and what it finds.
fn first_finding(text: String, seeds: u64) -> Option<(u64, String)> {
    let scope = StackScope { host: Some(Stack::new(text)), drive: None, commands: 120, drivers: false, faults: false };
    (1..=seeds).find_map(|seed| {
        let case = draw(seed, &scope).expect("a case is drawn");
        run(&case, &mut Totals::default()).err().map(|finding| (seed, finding.message))
    })
}

/// Cuts at every event of every sequence of up to three of these commands, or as many as `SSDLAB_SEQUENCES` says, through layers above
/// this drive; how many cuts there were. `name` tells the walk from others where one fails.
fn walk_all(name: &str, text: String, drive: &DriveConfig, alphabet: &[Request]) -> u64 {
    let length = std::env::var("SSDLAB_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let found = walk(&Stack::new(text.clone()), drive, alphabet, length, jobs);
    failing::none(name, found.failed);
    let totals = found.totals;
    println!("{name}, {text:?}: {} cases, cuts {:?}", totals.cases, totals.stack_cuts);
    totals.stack_cuts.iter().sum()
}

/// FlashCache as it was refused barriers: what was flushed is lost. The same seeds find nothing where flushes are passed on.
#[test]
fn a_cache_that_refuses_flushes_loses_what_was_flushed() {
    let found = |flushes: &str| {
        let text = format!(
            "[[layer]]\nkind = \"flashcache\"\nset = 4\nsize = \"64k\"\nmetadata_block = 512\nflushes = \"{flushes}\"\n\
             [[layer.below]]\n[[layer.below]]\n"
        );
        first_finding(text, 40)
    };
    assert!(found("refused").is_some_and(|(_, message)| message.contains("should hold")), "{:?}", found("refused"));
    assert_eq!(found("passed"), None);
}

/// Programs failed where no block of their lane was free. Each try to write such a page elsewhere counted as space that
/// was freed, so that the next try came at the same instant, for ever. Nothing but the end of the run shows that it is
/// over.
#[test]
fn a_failed_page_without_a_free_block_does_not_hold_the_clock() {
    let scope = StackScope { host: None, drive: None, commands: 120, drivers: true, faults: true };
    let case = draw(7473, &scope).expect("a case is drawn");
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(run(&case, &mut Totals::default()).map_err(|finding| finding.message)));
    let found = ended.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(found.expect("the run ends within a minute; it takes milliseconds"), Ok(()));
}

/// Restoring in the host as it is published keeps its table in RAM: what was flushed is lost with it. The same seeds
/// find nothing where the table is on the drive.
#[test]
fn a_table_in_ram_loses_what_was_flushed() {
    let found = |table: &str| {
        let text = format!("[[layer]]\nkind = \"restoring\"\nlog = \"16k\"\nrange = \"8k\"\ntable = \"{table}\"\n");
        first_finding(text, 40)
    };
    assert!(found("ram").is_some_and(|(_, message)| message.contains("should hold")), "{:?}", found("ram"));
    assert_eq!(found("drive"), None);
}

/// A cache that keeps clean blocks after a crash, as published, returns an older state of a block after a newer one, or forgets what was
/// read: the disk has another. The same seeds find nothing where they are dropped.
#[test]
fn clean_blocks_that_are_kept_after_a_crash_go_back() {
    let found = |drop_clean: &str| {
        let text = format!("[[layer]]\nkind = \"cache\"\nsequential = \"1k\"\ndrop_clean = \"{drop_clean}\"\n");
        first_finding(text, 80)
    };
    // A read tells what a sector "holds", the check after a crash what it "should hold".
    assert!(found("none").is_some_and(|(_, message)| message.contains(" hold")), "{:?}", found("none"));
    assert_eq!(found("regions"), None);
    assert_eq!(found("all"), None);
}

/// A cache manager that takes each block that holds the pattern of a miss for absent, as published, returns older data from the disk. The
/// same seeds find nothing where dirty blocks are known.
#[test]
fn a_dirty_block_that_holds_the_pattern_of_a_miss_is_lost_without_a_check() {
    let found = |check: &str| first_finding(format!("[[layer]]\nkind = \"cache\"\nmiss_check = \"{check}\"\n"), 40);
    assert!(found("none").is_some_and(|(_, message)| message.contains("which holds")), "{:?}", found("none"));
    assert_eq!(found("dirty-table"), None);
}

fn keep_what_they_promise(drivers: bool) {
    let scope = StackScope { host: None, drive: None, commands: 120, drivers, faults: true };
    let totals = failing::campaign("stacks", 150, scope);
    if totals.cases >= 150 {
        assert!(totals.stack_cuts.iter().all(|count| *count > 100), "{:?}", totals.stack_cuts);
    }
}

/// Through the driver above a drive of eight units with a log of four pages: a pack of two units, one of one, a write
/// that is too large for the log, one of a part of a unit, trims, a flush.
#[test]
fn every_cut_of_every_sequence_of_up_to_three_commands_through_a_driver_is_survived() {
    let alphabet = [
        Request::new(Op::Write, 0, 4),
        Request { fua: true, ..Request::new(Op::Write, 2, 2) },
        Request::new(Op::Write, 0, 6),
        Request::new(Op::Write, 3, 1),
        Request::new(Op::Trim, 0, 4),
        Request { fua: true, ..Request::new(Op::WriteZeroes, 2, 5) },
        Request::new(Op::Flush, 0, 0),
    ];
    let mut cuts = 0;
    let layer = "[[layer]]\nkind = \"shrd\"\nthreshold = \"2k\"\npack = \"4k\"\nremap_entries = 2\n";
    for (buffer, keys) in [("none", ""), ("lru", ""), ("lru", "ordering = \"drive\"\nwhen_full = \"direct\"\n")] {
        let text = format!("{layer}{keys}");
        let mut drive = handful();
        drive.user_bytes = 8192;
        drive.flash.geometry.blocks_per_plane += 2;
        drive.ftl.design = ssdlab_device::design_with(&SHRD).expect("a design").to_string();
        drive.buffer.policy = buffer.to_string();
        drive.buffer.bytes = 2048;
        ssdlab_device::handful_for_design(&mut drive, false);
        cuts += walk_all(buffer, text, &drive, &alphabet);
    }
    assert!(cuts > 80_000, "{cuts} cuts");
}

/// Through the path of a host's I/O above a drive of some units: whole blocks and parts of them, FUA, trims, reads that fill the
/// cache, a flush.
#[test]
fn every_cut_of_every_sequence_of_up_to_three_commands_through_the_path_of_a_host_is_survived() {
    let alphabet = [
        Request::new(Op::Write, 0, 8),
        Request { fua: true, ..Request::new(Op::Write, 4, 8) },
        Request::new(Op::Write, 3, 2),
        Request::new(Op::Trim, 2, 8),
        Request::new(Op::Read, 0, 16),
        Request::new(Op::Flush, 0, 0),
    ];
    let cache = "[[layer]]\nkind = \"page-cache\"\nram = \"64k\"\n";
    let scheduler = |policy: &str| format!("[[layer]]\nkind = \"scheduler\"\npolicy = \"{policy}\"\ndepth = 1\n");
    let ata = "[[layer]]\nkind = \"ata\"\ntags = 2\n";
    let mut cuts = 0;
    for (buffer, text) in [
        ("none", format!("{cache}background = \"0%\"\n")),
        ("lru", format!("{cache}{}{ata}", scheduler("deadline"))),
        ("lru", format!("{}{ata}", scheduler("noop"))),
    ] {
        let mut drive = handful();
        drive.user_bytes = 8192;
        drive.flash.geometry.blocks_per_plane += 4;
        drive.buffer.policy = buffer.to_string();
        drive.buffer.bytes = 2048;
        cuts += walk_all(buffer, text, &drive, &alphabet);
    }
    assert!(cuts > 20_000, "{cuts} cuts");
}

/// Through a cache of one or two blocks above a disk of three: whole blocks and parts of them, reads that fill the cache, a trim, a flush.
#[test]
fn every_cut_of_every_sequence_of_up_to_three_commands_through_a_cache_of_a_disk_is_survived() {
    let alphabet = [
        Request::new(Op::Write, 0, 8),
        Request { fua: true, ..Request::new(Op::Write, 8, 16) },
        Request::new(Op::Write, 3, 8),
        Request::new(Op::Trim, 2, 8),
        Request::new(Op::Read, 0, 24),
        Request::new(Op::Flush, 0, 0),
    ];
    let mut cuts = 0;
    for (buffer, keys) in [
        ("lru", "size = 8192\ndirty_threshold = \"0%\"\n"),
        ("none", "size = 4096\nreplacement = \"lru\"\ntrim = true\n"),
    ] {
        let text = format!(
            "[[layer]]\nkind = \"flashcache\"\nset = 1\nmetadata_block = 512\nskip_sequential = 0\n{keys}\
             [[layer.below]]\n[[layer.below]]\n"
        );
        let mut drive = handful();
        drive.user_bytes = 16384;
        drive.flash.geometry.blocks_per_plane += 6;
        drive.buffer.policy = buffer.to_string();
        drive.buffer.bytes = 2048;
        cuts += walk_all(buffer, text, &drive, &alphabet);
    }
    assert!(cuts > 20_000, "{cuts} cuts");
}

/// Through the cache manager above a cache and a disk of eight blocks: a write that is cached, one that is too long for it, a part of a
/// block, a trim, a read that fills the cache, a flush; with copies to the disk at once, and without.
#[test]
fn every_cut_of_every_sequence_of_up_to_three_commands_through_a_cache_is_survived() {
    let alphabet = [
        Request::new(Op::Write, 0, 2),
        Request { fua: true, ..Request::new(Op::Write, 0, 6) },
        Request::new(Op::Write, 1, 2),
        Request::new(Op::Trim, 0, 4),
        Request::new(Op::Read, 0, 8),
        Request::new(Op::Flush, 0, 0),
    ];
    let layer = "[[layer]]\nkind = \"cache\"\nsequential = \"2k\"\nregion = \"2k\"\n";
    let mut cuts = 0;
    for (buffer, keys) in [
        ("none", "dirty_limit = \"100%\"\n"),
        ("lru", "dirty_limit = \"0%\"\n"),
        ("lru", "mode = \"write-through\"\ndrop_clean = \"all\"\n"),
    ] {
        let mut drive = handful();
        drive.user_bytes = 8192;
        drive.flash.geometry.blocks_per_plane += 2;
        drive.ftl.design = ssdlab_device::design_with(&CACHE).expect("a design").to_string();
        drive.buffer.policy = buffer.to_string();
        drive.buffer.bytes = 2048;
        ssdlab_device::handful_for_design(&mut drive, false);
        cuts += walk_all(buffer, format!("{layer}{keys}"), &drive, &alphabet);
    }
    assert!(cuts > 20_000, "{cuts} cuts");
}

/// Through the layer `append` above a drive of nine segments or zones of eight units, five of them for data: the log, a
/// segment that fills up, cleaning, a write of a part of a unit, trims, a flush.
#[test]
fn every_cut_of_every_sequence_of_up_to_three_commands_through_a_host_that_appends_is_survived() {
    let alphabet = [
        Request::new(Op::Write, 0, 16),
        Request { fua: true, ..Request::new(Op::Write, 2, 8) },
        Request::new(Op::Write, 3, 6),
        Request::new(Op::Trim, 0, 12),
        Request { fua: true, ..Request::new(Op::WriteZeroes, 2, 5) },
        Request::new(Op::Flush, 0, 0),
    ];
    let mut cuts = 0;
    // As few active zones as the layer needs, and sizes beyond capacity.
    let limited = Settings::default()
        .with("zone_size", 64_u64 << 10)
        .with("max_open_zones", 1_u32)
        .with("max_active_zones", 4_u32);
    for (keys, set, own) in [
        ("", &SEGMENTS, Settings::default()),
        ("", &ZONED, limited.clone()),
        (
            "cleaning = \"cost-benefit\"\ncopies = 1\ncopy_size = 1024\nfree_segments = 3\n",
            &SEGMENTS,
            Settings::default(),
        ),
        ("pacing = \"proportional\"\ncopies = 2\ncopy_size = 4096\n", &SEGMENTS, Settings::default()),
        ("pacing = \"proportional\"\ncopies = 1\ncopy_size = 1024\n", &ZONED, limited),
    ] {
        let text = format!("[[layer]]\nkind = \"append\"\n{keys}");
        let mut drive = handful();
        drive.ftl.design = ssdlab_device::design_with(set).expect("a design").to_string();
        drive.flash.geometry.blocks_per_plane = 12;
        drive.buffer.policy = "none".to_string();
        ssdlab_device::handful_for_design(&mut drive, false);
        drive.flash.geometry.pages_per_block = 8;
        drive.user_bytes = 9 * 8 * u64::from(drive.flash.geometry.page_bytes);
        assert_eq!(drive.segment_units(), Some(8));
        drive.ftl.own = own;
        cuts += walk_all(set.name, text, &drive, &alphabet);
    }
    assert!(cuts > 50_000, "{cuts} cuts");
}
