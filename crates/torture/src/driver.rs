//! Driving a drive as a host does.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng};
use ssdlab_device::{Completion, Data, Drive, DriveConfig, Status};
use ssdlab_flash::Latency;
use ssdlab_host::BlockDevice;

use crate::commands::Mix;
use crate::journal::{Journal, stamps};

/// Virtual time in which some command completes, or a drive hangs: an hour, or what a description's own times add up
/// to. Each command can wait for those before it, and for collection that moves and erases every block.
pub(crate) fn hangs_after(config: &DriveConfig) -> Nanos {
    const AN_HOUR: u64 = 3_600_000_000_000;
    const OPERATIONS: u64 = 10_000;
    let timing = &config.flash.timing;
    let slowest = |latencies: &[Latency]| latencies.iter().map(|latency| latency.max.0).max().unwrap_or(0);
    let interface = &config.interface;
    let overheads = [interface.command_overhead, interface.read_overhead, interface.write_overhead];
    let waits = [interface.processing, config.buffer.latency];
    let cycles = [timing.command, timing.transfer, timing.suspend, timing.resume];
    let arrays = [slowest(&timing.read), slowest(&timing.program), timing.erase.max.0];
    let controller = &config.controller;
    let cycles_of = |cycles: u32| controller.time_of(cycles, 1).0;
    let worked = [
        controller.command_cycles,
        controller.map_entry_cycles,
        controller.operation_cycles,
        controller.completion_cycles,
    ];
    let processor = worked.into_iter().map(cycles_of).sum();
    let copied = controller.copy_time(config.flash.geometry.page_bytes.into()).0;
    let of_firmware = [processor, copied];
    let all = overheads.iter().chain(&waits).chain(&cycles).map(|time| time.0).chain(arrays).chain(of_firmware);
    Nanos(AN_HOUR.max(OPERATIONS.saturating_mul(all.sum())))
}

/// Submits one command now.
pub fn submit(drive: &mut Drive, request: &Request, stamp: u64) {
    let request = Request { at: drive.now(), ..*request };
    drive.submit_with(&request, Data::Stamp(stamp));
}

/// Runs until nothing is outstanding.
pub fn drain(drive: &mut Drive, journal: &mut Journal) {
    while drive.outstanding() > 0 {
        let progress = drive.wait_for_completion(Nanos::MAX);
        collect(drive, journal);
        assert!(progress || drive.outstanding() == 0, "{} commands never complete", drive.outstanding());
    }
    collect(drive, journal);
}

/// Runs until nothing is outstanding, and drops what has completed.
///
/// # Panics
/// A command never completes.
pub fn run_out(drive: &mut Drive) {
    while drive.outstanding() > 0 {
        assert!(drive.run_to_completion(Nanos::MAX), "{} commands never complete", drive.outstanding());
        drive.completions().clear();
    }
    drive.completions().clear();
}

/// Takes completions and data out of the drive.
pub fn collect(drive: &mut Drive, journal: &mut Journal) {
    let mut completions = std::mem::take(drive.completions());
    let mut read = std::mem::take(drive.read_data());
    journal.take(&mut completions, &mut read);
}

/// Runs `count` commands of `mix`, at most `depth` outstanding, with pauses now and then.
pub fn run(drive: &mut Drive, mix: &mut Mix, rng: &mut Rng, depth: u64, count: u64) -> Journal {
    let mut journal = Journal::default();
    for _ in 0..count {
        while drive.outstanding() >= depth {
            let progress = drive.wait_for_completion(Nanos::MAX);
            assert!(progress, "{} commands never complete", drive.outstanding());
            collect(drive, &mut journal);
        }
        if drive.outstanding() == 0 && rng.random_bool(0.02) || rng.random_bool(0.05) {
            let until = drive.now() + Nanos(rng.random_range(0..3_000_000));
            drive.run_until(until);
            collect(drive, &mut journal);
        }
        let (request, stamp) = mix.next(rng);
        journal.asked.insert(request.tag, (request, stamp));
        submit(drive, &request, stamp);
        collect(drive, &mut journal);
    }
    drain(drive, &mut journal);
    journal
}

/// What all sectors of an idle drive hold.
pub fn read_all(drive: &mut Drive) -> Vec<Result<u64, Status>> {
    contents(drive, 1).0
}

/// What all sectors of an idle device hold, and the step of the next command; each step has `stride` numbers of effect.
pub(crate) fn contents<D: BlockDevice + ?Sized>(device: &mut D, stride: u64) -> (Vec<Result<u64, Status>>, u64) {
    let sectors = device.sectors();
    let mut cells = Vec::with_capacity(sectors as usize);
    let mut next = 0;
    // As few commands as errors allow: what cannot be read whole is read by halves.
    let mut parts = vec![(0, sectors)];
    while let Some((first, count)) = parts.pop() {
        let completion = alone(device, &Request::new(Op::Read, first, count), 0);
        next = completion.order / stride + 1;
        let data = std::mem::take(device.read_data());
        match completion.status {
            Status::Success => cells.extend(stamps(&data[0].1).into_iter().map(Ok)),
            status if count == 1 => cells.push(Err(status)),
            _ => parts.extend([(first + count / 2, count - count / 2), (first, count / 2)]),
        }
    }
    (cells, next)
}

/// One sector of an idle drive.
pub fn read_sector(drive: &mut Drive, sector: u64) -> Result<u64, Status> {
    assert_eq!(drive.outstanding(), 0);
    let completion = alone(drive, &Request::new(Op::Read, sector, 1), 0);
    let data = std::mem::take(drive.read_data());
    match completion.status {
        Status::Success => Ok(stamps(&data[0].1)[0]),
        status => Err(status),
    }
}

/// Runs one command on an idle device to its end.
pub fn alone<D: BlockDevice + ?Sized>(device: &mut D, request: &Request, stamp: u64) -> Completion {
    let at = device.now();
    device.submit(&Request { at, ..*request }, Data::Stamp(stamp));
    assert!(device.wait_for_completion(Nanos::MAX), "{request:?} never completes");
    assert_eq!(device.outstanding(), 0, "only one command was outstanding");
    device.completions().pop().expect("the command has completed")
}

/// What a device has completed, in the order in which it took effect, each with the stamps that a read brought.
pub(crate) fn take_completed<D: BlockDevice + ?Sized>(device: &mut D) -> Vec<(Completion, Option<Vec<u64>>)> {
    let mut completions = std::mem::take(device.completions());
    let data = std::mem::take(device.read_data());
    completions.sort_by_key(|completion| completion.order);
    let read = |tag| data.iter().find(|(of, _)| *of == tag).map(|(_, cells)| stamps(cells));
    completions.into_iter().map(|completion| (completion, read(completion.tag))).collect()
}

/// Everything the drive checks about itself holds.
pub fn assert_checks(drive: &Drive) {
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
}

/// Lets background work come to its end.
pub fn settle(drive: &mut Drive) {
    assert_eq!(drive.outstanding(), 0);
    let mut events = 0_u64;
    while let Some(at) = drive.next_event() {
        drive.run_until(at);
        events += 1;
        assert!(events < 1_000_000, "an idle drive comes to rest");
    }
}
