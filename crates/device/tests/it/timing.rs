//! Closed forms: what one command takes on an idle drive is the sum of its parts, to the nanosecond.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::InterfaceKind;
use ssdlab_flash::{Cause, OpKind};

use crate::timing_support::*;

#[test]
fn a_write_is_overhead_link_command_data_and_program() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    let write = Request::new(Op::Write, 0, 8);
    host.assert_takes(write, &[OVERHEAD, link(8), COMMAND, TRANSFER, PROGRAM]);
    // An overwrite takes no longer, nor does FUA where there is no buffer.
    host.assert_takes(Request { fua: true, ..write }, &[OVERHEAD, link(8), COMMAND, TRANSFER, PROGRAM]);
}

#[test]
fn a_read_is_overhead_command_array_data_and_link() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    host.write_page(3);
    host.run();
    host.assert_takes(Request::new(Op::Read, 24, 8), &[OVERHEAD, COMMAND, READ, TRANSFER, link(8)]);
    for sectors in 1..8 {
        let parts = [OVERHEAD, COMMAND, READ, part(sectors), link(sectors)];
        host.assert_takes(Request::new(Op::Read, 24 + 8 - sectors, sectors), &parts);
    }
}

#[test]
fn a_read_of_what_was_never_written_needs_no_flash() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    host.assert_takes(Request::new(Op::Read, 80, 8), &[OVERHEAD, link(8)]);
    assert_eq!(host.drive.counters().flash.total(OpKind::Read), 0);
    assert_eq!(host.drive.counters().unmapped_sectors_read, 8);
    // Half mapped, half not: the mapped half decides.
    host.write_page(11);
    host.run();
    host.assert_takes(Request::new(Op::Read, 80, 16), &[OVERHEAD, READ_PAGE, link(16)]);
}

#[test]
fn a_partial_write_reads_what_is_missing_first() {
    for sectors in 1..8 {
        let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
        // Nothing there yet: nothing to read.
        let write = Request::new(Op::Write, 40, sectors);
        host.assert_takes(write, &[OVERHEAD, link(sectors), PROGRAM_PAGE]);
        let merge = [COMMAND, READ, part(8 - sectors), PROGRAM_PAGE];
        host.assert_takes(write, &[OVERHEAD, link(sectors), merge.iter().sum()]);
        let flash = host.drive.counters().flash;
        assert_eq!(flash.get(OpKind::Read, Cause::ReadModifyWrite), 1);
        assert_eq!(flash.get(OpKind::Program, Cause::ReadModifyWrite), 1);
    }
}

#[test]
fn an_unaligned_write_over_two_pages_merges_both_on_their_own_dies() {
    let mut host = Host::new(&drive(2, 1, 1));
    host.send(Op::Write, 0, 16);
    host.run();
    // The last 3 sectors of one page and the first 5 of the next, on two channels.
    let merge = |missing: u64| COMMAND + READ + part(missing) + PROGRAM_PAGE;
    host.assert_takes(Request::new(Op::Write, 5, 8), &[merge(5).max(merge(3))]);
}

#[test]
fn trims_and_flushes_without_work_cost_their_overhead() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    for op in [Op::Trim, Op::WriteZeroes] {
        host.assert_takes(Request::new(op, 0, 1024), &[OVERHEAD]);
    }
    host.assert_takes(Request::new(Op::Flush, 0, 0), &[OVERHEAD]);
    for op in [Op::Read, Op::Write, Op::Trim] {
        host.assert_takes(Request::new(op, 0, 0), &[OVERHEAD]);
    }
}

#[test]
fn a_flush_after_a_trim_writes_one_record_and_waits_for_it() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    for page in 0..4 {
        host.write_page(page);
    }
    host.run();
    host.assert_takes(Request::new(Op::Trim, 0, 16), &[OVERHEAD]);
    host.assert_takes(Request::new(Op::Flush, 0, 0), &[OVERHEAD, PROGRAM_PAGE]);
    assert_eq!(host.drive.counters().flash.get(OpKind::Program, Cause::Metadata), 1);
    host.assert_takes(Request::new(Op::Flush, 0, 0), &[OVERHEAD]);
}

#[test]
fn a_buffered_write_is_overhead_link_and_ram() {
    let mut config = behind_a_link(InterfaceKind::Nvme);
    config.buffer.policy = "lru".to_string();
    config.buffer.bytes = 4 * 4096;
    config.buffer.latency = Nanos(RAM);
    let mut host = Host::new(&config);
    for page in 0..4 {
        host.assert_takes(Request::new(Op::Write, page * 8, 8), &[OVERHEAD, link(8), RAM]);
    }
    // A read that the buffer serves.
    host.assert_takes(Request::new(Op::Read, 8, 8), &[OVERHEAD, RAM, link(8)]);
    assert_eq!(host.drive.counters().flash.total(OpKind::Program), 0);
    // The buffer is full: the next write waits until the oldest page is on flash.
    host.assert_takes(Request::new(Op::Write, 32, 8), &[OVERHEAD, link(8), PROGRAM_PAGE, RAM]);
    // An overwrite of what is there needs no room.
    host.assert_takes(Request::new(Op::Write, 32, 8), &[OVERHEAD, link(8), RAM]);
    // Page 0 is on flash now.
    host.assert_takes(Request::new(Op::Read, 0, 8), &[OVERHEAD, READ_PAGE, link(8)]);
    // FUA goes through, and only the page itself.
    let fua = Request { fua: true, ..Request::new(Op::Write, 8, 8) };
    host.assert_takes(fua, &[OVERHEAD, link(8), PROGRAM_PAGE]);
    // A flush waits for the three pages that are left, one after the other on one die.
    host.assert_takes(Request::new(Op::Flush, 0, 0), &[OVERHEAD, 3 * PROGRAM_PAGE]);
    host.assert_checks_hold();
}

#[test]
fn a_read_partly_in_the_buffer_takes_the_longer_of_both() {
    let mut config = behind_a_link(InterfaceKind::Nvme);
    config.buffer.policy = "lru".to_string();
    config.buffer.bytes = 8 * 4096;
    config.buffer.latency = Nanos(RAM);
    let mut host = Host::new(&config);
    host.write_page(0);
    host.run();
    host.send(Op::Flush, 0, 0);
    host.run();
    host.send(Op::Write, 0, 2);
    host.run();
    host.assert_takes(Request::new(Op::Read, 0, 8), &[OVERHEAD, COMMAND, READ, part(6), link(8)]);
}

#[test]
fn a_page_on_its_way_to_flash_is_read_from_ram() {
    let mut host = Host::new(&drive(1, 1, 1));
    let write = host.write_page(0);
    host.run_until(DATA_IN + 10);
    let read = host.read_page(0);
    assert_eq!(host.end(read), Some(DATA_IN + 10), "the controller still holds it");
    host.assert_completes_at(write, PROGRAM_PAGE);
    host.assert_takes(Request::new(Op::Read, 0, 8), &[READ_PAGE]);
}

#[test]
fn a_read_of_a_page_that_is_being_completed_waits_for_the_merge() {
    let mut host = Host::new(&drive(1, 1, 1));
    host.write_page(0);
    let start = host.run();
    let write = host.send(Op::Write, 0, 3);
    host.run_until(start + 1);
    let read = host.send(Op::Read, 0, 8);
    let end = start + COMMAND + READ + part(5) + PROGRAM_PAGE;
    host.assert_completes_at(write, end);
    host.assert_completes_at(read, end);
}

#[test]
fn the_position_in_the_wordline_shows_in_the_latency() {
    let lists: [&[u64]; 4] =
        [&[25_001], &[48_003, 64_007], &[50_001, 70_003, 90_007], &[47_901, 76_203, 134_607, 228_109]];
    for list in lists {
        let mut config = drive(1, 1, 1);
        config.flash.timing.read = list.iter().map(|ns| fixed(*ns)).collect();
        config.flash.timing.program = list.iter().map(|ns| fixed(ns * 10)).collect();
        let mut host = Host::new(&config);
        for page in 0..40 {
            let latency = list[page as usize % 16 % list.len()];
            host.assert_takes(Request::new(Op::Write, page * 8, 8), &[DATA_IN, latency * 10]);
            host.assert_takes(Request::new(Op::Read, page * 8, 8), &[COMMAND, latency, TRANSFER]);
        }
    }
}

#[test]
fn a_request_over_two_planes_is_one_multi_plane_operation() {
    let mut host = Host::new(&drive(1, 1, 2));
    host.assert_takes(Request::new(Op::Write, 0, 16), &[2 * DATA_IN, PROGRAM]);
    host.assert_takes(Request::new(Op::Read, 0, 16), &[2 * COMMAND, READ, 2 * TRANSFER]);
    assert_eq!(host.drive.counters().flash.total(OpKind::Program), 2);
    assert_eq!(host.drive.counters().flash.total(OpKind::Read), 2);
}

#[test]
fn a_request_over_dies_and_channels_works_on_all_at_once() {
    let mut host = Host::new(&drive(2, 2, 1));
    host.assert_takes(Request::new(Op::Write, 0, 32), &[2 * DATA_IN, PROGRAM]);
    // Each channel: two commands, and the data of both dies one after the other.
    host.assert_takes(Request::new(Op::Read, 0, 32), &[COMMAND, READ, 2 * TRANSFER]);
}

#[test]
fn units_that_share_a_page_share_its_read_and_its_program() {
    let mut config = drive(1, 1, 1);
    config.ftl.mapping_unit = 1024;
    let mut host = Host::new(&config);
    host.assert_takes(Request::new(Op::Write, 0, 8), &[PROGRAM_PAGE]);
    host.assert_takes(Request::new(Op::Read, 0, 8), &[READ_PAGE]);
    host.assert_takes(Request::new(Op::Read, 2, 4), &[COMMAND, READ, part(4)]);
    // One unit alone is a whole program all the same; the rest of its page is padding.
    host.assert_takes(Request::new(Op::Write, 6, 2), &[PROGRAM_PAGE]);
    assert_eq!(host.drive.counters().padding_bytes, 3072);
    // Now the four units are on two pages.
    host.assert_takes(Request::new(Op::Read, 0, 8), &[2 * (COMMAND + READ), part(6), part(2)]);
}

#[test]
fn a_copyback_moves_a_page_in_collection_without_the_channel() {
    let mut config = drive(1, 1, 1);
    config.flash.copyback = true;
    config.gc.copyback = true;
    let mut host = Host::new(&config);
    let spans = Spans::watch(&mut host.drive);
    let mut moved = 0;
    for round in 0..12 {
        for page in 0..128 {
            host.write_page((page * 37 + round) % 128 / 2 * 2 + u64::from(round % 5 == 0));
            host.run();
        }
    }
    for span in spans.taken() {
        if span.kind == OpKind::Copyback {
            let took = span.end.0 - span.start.0;
            match span.resource {
                ssdlab_flash::Resource::Channel(_) => assert_eq!(took, 2 * COMMAND),
                ssdlab_flash::Resource::Die(_) => {
                    assert_eq!(took, READ + PROGRAM);
                    moved += 1;
                }
            }
        }
    }
    assert!(moved > 0, "collection moved pages");
    assert_eq!(host.drive.counters().flash.get(OpKind::Copyback, Cause::Gc), moved);
    assert_eq!(host.drive.counters().flash.get(OpKind::Read, Cause::Gc), 0);
    host.assert_checks_hold();
}
