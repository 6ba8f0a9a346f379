//! The interface: depth, arbitration, draining and the link, with exact times.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Drive, InterfaceKind, Options, Status};
use ssdlab_flash::Contents;

use crate::timing_support::*;

/// Commands that need neither flash nor link: unmapped reads over an infinite link take the overhead alone.
fn overhead_only(kind: InterfaceKind, queues: u32, depth: u32) -> Host {
    let mut config = behind_a_link(kind);
    config.interface.bandwidth = 0;
    config.interface.queues = queues;
    config.interface.queue_depth = depth;
    Host::new(&config)
}

#[test]
fn only_so_many_commands_are_in_the_drive_at_one_time() {
    for depth in [1, 2, 5, 32] {
        let mut host = overhead_only(InterfaceKind::Nvme, 1, depth);
        let reads: Vec<u32> = (0..3 * u64::from(depth) + 1).map(|page| host.read_page(page)).collect();
        for (index, read) in reads.into_iter().enumerate() {
            host.assert_completes_at(read, (index as u64 / u64::from(depth) + 1) * OVERHEAD);
        }
    }
}

/// The fixed cost is paid side by side, the processor's time one after the other: the n-th of many commands is done n
/// turns behind the cost, whatever queue it came on; and then the link takes its time.
#[test]
fn the_processor_takes_commands_one_after_the_other() {
    const TURN: u64 = 700;
    for (bandwidth, link) in [(0, 0), (BANDWIDTH, (4096 * 1_000_000_000_u64).div_ceil(BANDWIDTH))] {
        let mut config = behind_a_link(InterfaceKind::Nvme);
        config.interface.bandwidth = bandwidth;
        config.interface.queues = 2;
        config.interface.processing = Nanos(TURN);
        let mut host = Host::new(&config);
        let sent: Vec<u32> = (0..20)
            .map(|index| host.send_request(Request { queue: index % 2, ..Request::new(Op::Read, 0, 8) }))
            .collect();
        // Unmapped reads: behind the processor only the link is left, which is slower than a turn.
        for (index, read) in sent.into_iter().enumerate() {
            let index = index as u64;
            let end = if link > TURN { OVERHEAD + TURN + (index + 1) * link } else { OVERHEAD + (index + 1) * TURN };
            host.assert_completes_at(read, end);
        }
        // It rests between commands that come far apart.
        host.run_until(1_000_000);
        let late = host.send_request(Request::new(Op::Read, 0, 8));
        host.assert_completes_at(late, 1_000_000 + OVERHEAD + TURN + link);
    }
}

/// A read costs what all commands cost and its own, so does a write, and nothing else costs either.
#[test]
fn reads_and_writes_have_fixed_costs_of_their_own() {
    let mut config = behind_a_link(InterfaceKind::Nvme);
    (config.interface.bandwidth, config.interface.queue_depth) = (0, 8);
    (config.interface.read_overhead, config.interface.write_overhead) = (Nanos(300), Nanos(2_000));
    let mut host = Host::new(&config);
    let (read, trim) = (host.read_page(0), host.send(Op::Trim, 80, 8));
    host.assert_completes_at(read, OVERHEAD + 300);
    host.assert_completes_at(trim, OVERHEAD);
    let [without, with] = [0, 2_000].map(|overhead| {
        let mut config = config.clone();
        config.interface.write_overhead = Nanos(overhead);
        let mut host = Host::new(&config);
        let write = host.write_page(0);
        host.run();
        host.end(write).expect("it is written")
    });
    assert_eq!(with, without + 2_000);
}

#[test]
fn each_queue_has_its_own_depth() {
    let mut host = overhead_only(InterfaceKind::Nvme, 3, 2);
    let mut reads = Vec::new();
    for index in 0..4 {
        for queue in 0..3 {
            let read = host.send_request(Request { queue, ..Request::new(Op::Read, 0, 8) });
            reads.push((read, (index / 2 + 1) * OVERHEAD));
        }
    }
    for (read, end) in reads {
        host.assert_completes_at(read, end);
    }
}

#[test]
fn queue_numbers_beyond_the_last_wrap_around() {
    let mut host = overhead_only(InterfaceKind::Nvme, 2, 1);
    let first = host.send_request(Request { queue: 0, ..Request::new(Op::Read, 0, 8) });
    let same = host.send_request(Request { queue: 2, ..Request::new(Op::Read, 0, 8) });
    host.assert_completes_at(first, OVERHEAD);
    host.assert_completes_at(same, 2 * OVERHEAD);
}

#[test]
fn a_command_on_a_queue_with_room_does_not_wait_for_another_queues_backlog() {
    let mut host = overhead_only(InterfaceKind::Nvme, 2, 1);
    for page in 0..3 {
        host.read_page(page);
    }
    host.run_until(100);
    let other = host.send_request(Request { queue: 1, ..Request::new(Op::Read, 0, 8) });
    host.assert_completes_at(other, 100 + OVERHEAD);
}

#[test]
fn queues_take_turns_when_several_have_room_again() {
    // A flush on SATA aside, several queues become free in one instant when their commands end together.
    let mut host = overhead_only(InterfaceKind::Nvme, 4, 1);
    let mut first = Vec::new();
    for round in 0..3 {
        for queue in 0..4 {
            let read = host.send_request(Request { queue, ..Request::new(Op::Read, 0, 8) });
            first.push((read, round));
        }
    }
    host.run();
    for (read, round) in first {
        assert_eq!(host.completed[&read].order / 4, round, "a round of all queues before the next");
        assert_eq!(host.end(read), Some((round + 1) * OVERHEAD));
    }
}

/// The slot of an earlier trim says nothing of what a later one finds.
#[test]
fn a_trim_of_a_part_of_an_unmapped_unit_programs_nothing() {
    let mut host = overhead_only(InterfaceKind::Nvme, 1, 1);
    host.write_page(0);
    host.write_page(1);
    host.run();
    host.send(Op::Trim, 4, 8);
    let start = host.run();
    let of_nothing = host.send(Op::Trim, 9 * 8 + 2, 2);
    host.assert_completes_at(of_nothing, start + OVERHEAD);
}

#[test]
fn sata_drains_for_commands_that_are_not_queued() {
    for op in [Op::Trim, Op::WriteZeroes, Op::Flush] {
        let mut host = overhead_only(InterfaceKind::Sata, 1, 32);
        host.write_page(0);
        let start = host.run();
        let before = host.read_page(0);
        let also = host.read_page(1);
        let sectors = if op == Op::Flush { 0 } else { 8 };
        let alone = host.send(op, sectors * 2, sectors);
        let after = host.read_page(5);
        let end = start + OVERHEAD + READ_PAGE;
        host.assert_completes_at(also, start + OVERHEAD);
        host.assert_completes_at(before, end);
        host.assert_completes_at(alone, end + OVERHEAD);
        host.assert_completes_at(after, end + 2 * OVERHEAD);

        // On NVMe no command waits for another one.
        let mut host = overhead_only(InterfaceKind::Nvme, 1, 32);
        host.write_page(0);
        let start = host.run();
        host.read_page(0);
        let alone = host.send(op, sectors * 2, sectors);
        let after = host.read_page(5);
        host.assert_completes_at(alone, start + OVERHEAD);
        host.assert_completes_at(after, start + OVERHEAD);
    }
}

#[test]
fn sata_serves_nothing_beside_a_command_that_is_not_queued() {
    let mut host = overhead_only(InterfaceKind::Sata, 1, 32);
    let tags = [
        (host.send(Op::Trim, 0, 8), 1),
        (host.read_page(0), 2),
        (host.read_page(1), 2),
        (host.send(Op::Flush, 0, 0), 3),
        (host.send(Op::Trim, 0, 8), 4),
        (host.read_page(2), 5),
    ];
    for (tag, turn) in tags {
        host.assert_completes_at(tag, turn * OVERHEAD);
    }
}

#[test]
fn the_link_carries_one_transfer_a_direction_and_sata_one_in_all() {
    let two_reads = |kind| {
        let mut host = Host::new(&behind_a_link(kind));
        let first = host.read_page(0);
        let second = host.send(Op::Read, 8, 3);
        host.assert_completes_at(first, OVERHEAD + link(8));
        host.assert_completes_at(second, OVERHEAD + link(8) + link(3));
    };
    two_reads(InterfaceKind::Nvme);
    two_reads(InterfaceKind::Sata);

    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    let write = host.write_page(0);
    let read = host.read_page(9);
    host.assert_completes_at(read, OVERHEAD + link(8));
    host.assert_completes_at(write, OVERHEAD + link(8) + PROGRAM_PAGE);

    let mut host = Host::new(&behind_a_link(InterfaceKind::Sata));
    let write = host.write_page(0);
    let read = host.read_page(9);
    host.assert_completes_at(read, OVERHEAD + 2 * link(8));
    host.assert_completes_at(write, OVERHEAD + link(8) + PROGRAM_PAGE);
}

#[test]
fn writes_come_in_one_after_the_other() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    let writes: Vec<u32> = (0..4).map(|page| host.write_page(page)).collect();
    for (index, write) in writes.into_iter().enumerate() {
        // The die is the slower of the two from the first on.
        host.assert_completes_at(write, OVERHEAD + link(8) + (index as u64 + 1) * PROGRAM_PAGE);
    }
}

#[test]
fn a_request_behind_the_last_sector_fails_at_once() {
    let mut host = Host::new(&behind_a_link(InterfaceKind::Nvme));
    let last = host.drive.user_sectors();
    for (sector, sectors) in [(last - 4, 8), (last, 1), (u64::MAX - 7, 4)] {
        for op in [Op::Read, Op::Write, Op::Trim] {
            let tag = host.send(op, sector, sectors);
            assert_eq!(host.completed[&tag].status, Status::OutOfRange);
            assert_eq!(host.end(tag), Some(0));
        }
    }
    assert_eq!(host.drive.outstanding(), 0);
}

#[test]
fn a_long_backlog_of_commands_that_take_no_time_is_worked_off() {
    let mut config = drive(1, 1, 1);
    config.interface.queue_depth = 1;
    let mut host = Host::new(&config);
    host.write_page(0);
    let reads: Vec<u32> = (0..300_000).map(|_| host.read_page(1)).collect();
    host.run();
    assert!(reads.iter().all(|read| host.end(*read) == Some(PROGRAM_PAGE)));
}

#[test]
fn sata_with_several_queues_or_too_deep_a_one_is_refused() {
    for (queues, depth) in [(2, 32), (1, 33)] {
        let mut config = behind_a_link(InterfaceKind::Sata);
        config.interface.queues = queues;
        config.interface.queue_depth = depth;
        let error = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).err().expect("refused");
        assert_eq!(error.key, "interface.queue_depth");
    }
}
