//! `[controller]`: single commands to the nanosecond with a processor, copies and each way to read; what is refused.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{
    Answers, ControllerConfig, ControllerCounters, Description, Drive, DriveConfig, InterfaceKind, Options, Reads,
};
use ssdlab_flash::{Contents, OpKind};

use crate::timing_support::*;

/// Nanoseconds, and cycles at 1 GHz, for a command.
const TAKE: u64 = 1_009;
/// For a map entry.
const ENTRY: u64 = 101;
/// For a flash operation.
const ISSUE: u64 = 307;
/// For a completion.
const END: u64 = 503;

/// One die behind a link, with a processor of 1 GHz.
fn processor() -> DriveConfig {
    let mut config = behind_a_link(InterfaceKind::Nvme);
    config.controller = ControllerConfig {
        clock: 1_000_000_000,
        command_cycles: TAKE as u32,
        map_entry_cycles: ENTRY as u32,
        operation_cycles: ISSUE as u32,
        completion_cycles: END as u32,
        ..ControllerConfig::default()
    };
    config
}

/// DRAM that copies a byte a nanosecond, and no processor that takes time.
fn copying(mut config: DriveConfig) -> DriveConfig {
    config.controller.copy_bandwidth = 1_000_000_000;
    config
}

#[test]
fn a_command_pays_for_itself_its_map_entries_its_operations_and_its_end() {
    let mut host = Host::new(&processor());
    let write = [OVERHEAD, TAKE, link(8), ENTRY, ISSUE, PROGRAM_PAGE, END];
    host.assert_takes(Request::new(Op::Write, 0, 8), &write);
    host.assert_takes(Request::new(Op::Read, 0, 8), &[OVERHEAD, TAKE, ENTRY, ISSUE, READ_PAGE, END, link(8)]);
    let part_read = COMMAND + READ + part(1);
    host.assert_takes(Request::new(Op::Read, 3, 1), &[OVERHEAD, TAKE, ENTRY, ISSUE, part_read, END, link(1)]);
    // Nothing is on flash: the entry says so.
    host.assert_takes(Request::new(Op::Read, 80, 8), &[OVERHEAD, TAKE, ENTRY, END, link(8)]);
    // A part of a page is completed from the rest of it: a read is issued, then the program, which is longer in coming.
    let completed = [OVERHEAD, TAKE, link(1), ISSUE, COMMAND + READ + part(7), PROGRAM_PAGE, END];
    host.assert_takes(Request::new(Op::Write, 3, 1), &completed);
    // Of five commands four read or program. The last one looks up one entry, as the others do, and issues two operations.
    let work = Nanos(5 * (TAKE + ENTRY + ISSUE + END));
    let counters = ControllerCounters { work, copying: Nanos::ZERO, misaligned_writes: 1 };
    assert_eq!(host.drive.counters().controller, Some(counters));
    host.assert_checks_hold();
}

#[test]
fn one_processor_serves_commands_in_order() {
    let mut config = processor();
    config.flash.geometry.channels = 2;
    config.user_bytes *= 2;
    let mut host = Host::new(&config);
    for page in 0..2 {
        host.write_page(page);
        host.run();
    }
    let start = host.now();
    let tags = [host.read_page(0), host.read_page(1)];
    host.run();
    // Both commands are taken up before the first is dispatched, and each issues its read in its turn.
    let read = OVERHEAD + 2 * TAKE + ENTRY + ISSUE + READ_PAGE;
    let first = start + read + END + link(8);
    // The second's read ends while the processor ends the first, and the link is busy with the first's data then.
    assert!(ENTRY + ISSUE < END && END < link(8));
    assert_eq!(tags.map(|tag| host.end(tag)), [Some(first), Some(first + link(8))]);
}

#[test]
fn the_path_of_a_command_shows_processor_and_copies() {
    let parts = |host: &mut Host| -> Vec<(String, u64)> {
        let mut paths = Vec::new();
        host.drive.take_paths(&mut paths);
        paths[0].segments.iter().map(|segment| (segment.key(), segment.length().0)).collect()
    };
    let named = |parts: &[(&str, u64)]| -> Vec<(String, u64)> {
        parts.iter().map(|(name, length)| ((*name).to_string(), *length)).collect()
    };
    let mut host = Host::new(&processor());
    host.write_page(0);
    host.run();
    host.drive.record_paths(true);
    host.read_page(0);
    host.run();
    let read = [
        ("controller", OVERHEAD + TAKE),
        ("issue", ENTRY + ISSUE),
        ("transfer", COMMAND),
        ("array_read", READ),
        ("transfer", TRANSFER),
        ("controller", END),
        ("link", link(8)),
    ];
    assert_eq!(parts(&mut host), named(&read));
    let mut buffered = copying(processor());
    buffered.buffer.policy = "lru".to_string();
    buffered.buffer.bytes = 64 * 4096;
    buffered.buffer.latency = Nanos(RAM);
    let mut host = Host::new(&buffered);
    host.drive.record_paths(true);
    host.write_page(0);
    host.run();
    let write = [
        ("controller", OVERHEAD + TAKE),
        ("link", link(8)),
        ("copy", 4096),
        ("buffer_latency", RAM),
        ("controller", END),
    ];
    assert_eq!(parts(&mut host), named(&write));
    host.read_page(0);
    host.run();
    let read = [("controller", OVERHEAD + TAKE), ("copy", 4096), ("controller", END), ("link", link(8))];
    assert_eq!(parts(&mut host), named(&read));
}

#[test]
fn copies_go_one_at_a_time() {
    let mut config = copying(behind_a_link(InterfaceKind::Nvme));
    config.interface.bandwidth = 0;
    config.buffer.policy = "lru".to_string();
    config.buffer.bytes = 64 * 4096;
    let mut host = Host::new(&config);
    let tags = [0, 1, 2].map(|page| host.write_page(page));
    host.run();
    let latency = config.buffer.latency.0;
    assert_eq!(tags.map(|tag| host.end(tag)), [1, 2, 3].map(|turn| Some(OVERHEAD + turn * 4096 + latency)));
}

#[test]
fn a_read_of_the_whole_page_waits_for_all_of_it() {
    let mut config = behind_a_link(InterfaceKind::Nvme);
    config.controller.reads = Reads::Page;
    let mut host = Host::new(&config);
    host.assert_takes(Request::new(Op::Write, 0, 8), &[OVERHEAD, link(8), PROGRAM_PAGE]);
    host.assert_takes(Request::new(Op::Read, 3, 1), &[OVERHEAD, READ_PAGE, link(1)]);
    // What completes a part of a page is the controller's own: it reads what it wants.
    host.assert_takes(Request::new(Op::Write, 3, 1), &[OVERHEAD, link(1), COMMAND + READ + part(7), PROGRAM_PAGE]);
}

#[test]
fn a_gathered_read_waits_for_its_units_and_their_copy() {
    let mut config = copying(behind_a_link(InterfaceKind::Nvme));
    config.ftl.mapping_unit = 1024;
    config.controller.reads = Reads::Gather;
    let read = |units: u64| COMMAND + READ + part(2 * units);
    // One unit of a page of four is stale: with a share of 75 % one read gathers the others, with 76 % each has a read of its own,
    // whose copies but the last overlap with the next read.
    for (percent, wanted) in [(75, read(3) + 3 * 1024), (76, 3 * read(1) + 1024)] {
        config.controller.gather_percent = percent;
        let mut host = Host::new(&config);
        host.assert_takes(Request::new(Op::Write, 0, 8), &[OVERHEAD, link(8), PROGRAM_PAGE]);
        host.assert_takes(Request::new(Op::Read, 2, 2), &[OVERHEAD, read(1), 1024, link(2)]);
        host.send(Op::Write, 0, 2);
        host.run();
        host.assert_takes(Request::new(Op::Read, 2, 6), &[OVERHEAD, wanted, link(6)]);
    }
}

#[test]
fn a_gathered_read_takes_all_units_of_a_page_whatever_their_order() {
    let mut config = copying(behind_a_link(InterfaceKind::Nvme));
    config.ftl.mapping_unit = 1024;
    config.controller.reads = Reads::Gather;
    config.buffer.policy = "fifo".to_string();
    config.buffer.bytes = 64 * 1024;
    config.buffer.latency = Nanos::ZERO;
    let mut host = Host::new(&config);
    // Two pages leave the buffer: units 0 4 2 5 and 1 6 3 7.
    for unit in [0, 4, 2, 5, 1, 6, 3, 7] {
        host.send(Op::Write, unit * 2, 2);
        host.run();
    }
    host.send(Op::Flush, 0, 0);
    host.run();
    let reads = flash_reads(&host);
    host.send(Op::Read, 0, 8);
    host.run();
    assert_eq!(flash_reads(&host) - reads, 2, "units 0 and 2 are on one page, 1 and 3 on another");
}

/// Pages read so far.
fn flash_reads(host: &Host) -> u64 {
    host.drive.counters().flash.total(OpKind::Read)
}

/// A description of a drive of 64 GiB with pages of 32 KiB.
const BOARD: &str = r#"
[flash]
channels = 2
chips_per_channel = 4
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 2048
pages_per_block = 128
page_size = "32k"
timing = { read = "250us", program = "1.3ms", erase = "1.5ms", transfer = "491.52us" }
[capacity]
over_provisioning = "7%"
"#;

fn refusal(text: &str, sets: &[&str]) -> String {
    let mut description = Description::parse(text, "board.toml").expect("TOML");
    let set = sets.iter().try_for_each(|set| description.set(set));
    match set.and_then(|()| description.resolve()) {
        Err(error) => error.to_string(),
        Ok(config) => match Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }) {
            Err(error) => description.place(&error).to_string(),
            Ok(_) => "accepted".to_string(),
        },
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let mapped_4k = ["flash.channels=4", "flash.chips_per_channel=8", "ftl.mapping_unit=4k", "controller.dram=64m"];
    let message = refusal(BOARD, &mapped_4k);
    assert!(
        message.starts_with("--set 'controller.dram=64m': controller.dram: found 64 MiB (67108864 bytes)"),
        "{message}"
    );
    assert!(message.contains("expected at least") && message.contains("mapping_bytes 239."), "{message}");
    assert_eq!(refusal(BOARD, &["controller.dram=64m"]), "accepted");
    let buffered = ["controller.dram=64m", "buffer.policy=fifo", "buffer.size=64m"];
    assert!(refusal(BOARD, &buffered).contains("buffer_bytes 64 MiB"), "{}", refusal(BOARD, &buffered));
    let message = refusal(BOARD, &["controller.sram=63"]);
    assert!(message.contains("controller.sram: found 63 B") && message.contains("owner_list_bytes 64 B"), "{message}");
}

/// Bytes that a refusal expects.
fn expected_bytes(message: &str) -> u64 {
    let (_, expected) = message.split_once("expected at least").unwrap_or_else(|| panic!("{message}"));
    let number = expected.split_once('(').and_then(|(_, number)| number.split_once(" bytes)"));
    number.and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{message}"))
}

#[test]
fn lists_of_owners_are_in_sram_where_it_has_a_size_and_else_in_dram() {
    let lists = ["ftl.owners=summary", "controller.dram=100k"];
    let sram = |size: &'static str| [&lists[..], &[size]].concat();
    let small = refusal(BOARD, &[&lists[..1], &["controller.sram=1k"]].concat());
    let (in_dram, without) = (refusal(BOARD, &lists), refusal(BOARD, &sram("controller.sram=1m")));
    assert!(small.contains("controller.sram: found 1 KiB (1024 bytes)"), "{small}");
    assert!(in_dram.contains("owner_list_bytes") && !without.contains("owner_list_bytes"), "{in_dram}; {without}");
    assert!(in_dram.contains("controller.dram: found 100 KiB (102400 bytes)"), "{in_dram}");
    assert_eq!(expected_bytes(&in_dram), expected_bytes(&without) + expected_bytes(&small));
    // What is left for DRAM fits exactly.
    let fitting = format!("controller.dram={}", expected_bytes(&without));
    let one_less = format!("controller.dram={}", expected_bytes(&without) - 1);
    assert_eq!(refusal(BOARD, &[lists[0], "controller.sram=1m", &fitting]), "accepted");
    assert_eq!(expected_bytes(&refusal(BOARD, &[lists[0], "controller.sram=1m", &one_less])), expected_bytes(&without));
    assert_eq!(expected_bytes(&refusal(BOARD, &[lists[0], &fitting])), expected_bytes(&in_dram));
}

#[test]
fn a_processor_is_given_once_and_has_a_clock() {
    let text = format!("{BOARD}[interface]\nprocessing = \"5us\"\n[controller]\nclock = \"87.5MHz\"\n");
    let message = refusal(&text, &[]);
    assert!(
        message.starts_with("board.toml:15:1: controller: found beside interface.processing (board.toml:14:14)"),
        "{message}"
    );
    for (set, expected) in [
        (
            "controller.clock=0",
            "controller.clock: found 0, expected cycles a second such as \"87.5MHz\", from 1kHz to 100GHz",
        ),
        ("controller.clock=fast", "controller.clock: found \"fast\", expected cycles a second"),
        ("controller.command_cycles=5", "controller.command_cycles: found 5 cycles, expected controller.clock with it"),
        ("controller.reads=all", "controller.reads: found \"all\", expected sectors, page or gather"),
        ("flash.copyback=often", "flash.copyback: found \"often\", expected true, false or checked"),
        ("interface.answers=events", "interface.answers: found \"events\", expected words or data"),
    ] {
        let message = refusal(BOARD, &[set]);
        assert!(message.starts_with(&format!("--set '{set}': {expected}")), "{message}");
    }
    let gather = ["controller.reads=gather", "ftl.design=dftl"];
    let message = refusal(BOARD, &gather);
    assert!(message.contains("controller.reads: found \"gather\" under ftl.design = \"dftl\""), "{message}");
}

#[test]
fn a_command_set_that_the_interface_cannot_carry_is_refused_with_the_command() {
    let tagged = |set: &str| refusal(BOARD, &["ftl.design=tagged", "ftl.mapping_unit=4k", set]);
    assert_eq!(tagged("interface.command_codes=0"), "accepted");
    assert_eq!(tagged("interface.command_codes=4"), "accepted");
    let message = tagged("interface.command_codes=2");
    assert!(
        message.contains("interface.command_codes: found 2 codes for the queue of reads, expected at least"),
        "{message}"
    );
    let message = tagged("interface.answers=data");
    assert!(
        message.contains("interface.answers: found \"data\", expected \"words\" under the set 'tags'"),
        "{message}"
    );
    // Block I/O has a code of its own, and nothing to answer.
    for set in ["interface.command_codes=1", "interface.answers=data"] {
        assert_eq!(refusal(BOARD, &[set]), "accepted");
    }
    assert_eq!(Answers::default(), Answers::Words);
}
