//! Mounting (AMF, sections 3.2 and 3.3): the newest check-point is found, and with it TIMB and the usage table.
//!
//! It reads the superblock, the written parts of segments 1 and 2, TIMB blocks, usage blocks, and what fsyncs wrote behind the
//! check-point. What it takes for free and the drive does not is trimmed again: a crash may have come before the TRIM, or undone it.

use ssdlab_base::command_sets::segments::{Segment, SegmentShape, SegmentState};
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::Device;

use super::chain::{self, Chain};
use super::tables::Appended;
use crate::config::Options;
use crate::core::Core;
use crate::core::log::{Kind, log_of};
use crate::core::space::State;
use crate::error::MountError;
use crate::format::summary;
use crate::format::superblock::Superblock;
use crate::format::usage::{MAP_LOG, SegmentUse};
use crate::format::{BLOCK_SECTORS, Bad, Bytes, NOWHERE, map, usage};
use crate::jobs::checkpoint::Checkpoints;
use crate::reader::Reader;
use crate::restore::find::{self, Rolled};
use crate::restore::owners_by_segment;
use crate::seeded::{FsBug, seeded};

/// The superblock and the two chains of check-points of a device.
pub(crate) fn find(reader: &mut Reader) -> Result<(Superblock, Vec<Segment>, [Chain; 2]), MountError> {
    let (shape, segments) = reader.report()?;
    // Before anything is written there is nothing to read.
    if segments.first().is_none_or(|segment| segment.written < BLOCK_SECTORS) {
        return Err(MountError::Superblock(Bad::Short));
    }
    let block = reader.block(0)?;
    let superblock = Superblock::decode(&block).map_err(MountError::Superblock)?;
    check_device(&superblock, &shape)?;
    let written = |segment: usize| (segments[segment].written / BLOCK_SECTORS) as u32;
    let first = chain::read(reader, &superblock, 1, written(1))?;
    let second = chain::read(reader, &superblock, 2, written(2))?;
    Ok((superblock, segments, [first, second]))
}

fn check_device(superblock: &Superblock, shape: &SegmentShape) -> Result<(), MountError> {
    let unit = shape.write_unit.div_ceil(BLOCK_SECTORS).max(1);
    let pairs = [
        ("number of segments", shape.count, u64::from(superblock.segments)),
        ("sectors of a segment", shape.sectors, u64::from(superblock.segment_blocks) * BLOCK_SECTORS),
        ("blocks of a write unit", unit, u64::from(superblock.unit_blocks)),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        Some((what, found, expected)) => Err(MountError::Device { what, found, expected }),
        None => Ok(()),
    }
}

/// Which of two chains has the newest check-point.
fn newest(chains: &[Chain; 2]) -> Option<usize> {
    let version = |chain: &Chain| chain.newest.as_ref().map(|checkpoint| checkpoint.version);
    match (version(&chains[0]), version(&chains[1])) {
        (None, None) => None,
        (first, second) => Some(usize::from(second > first)),
    }
}

/// Whether such a file system can be on a device: one with segments. Nothing else of the registry takes one that it refuses.
pub(crate) fn fits(device: &dyn Device) -> bool {
    device.segment_sectors().is_some()
}

/// Everything in memory, from what the drive has.
pub(crate) fn load(reader: &mut Reader, options: &Options) -> Result<(Core, Checkpoints, Rolled), MountError> {
    let (superblock, segments, mut chains) = find(reader)?;
    let version = chains[0].seen.max(chains[1].seen);
    let unreadable = chains.iter().map(|chain| chain.unreadable).sum();
    let in_use = newest(&chains).ok_or(MountError::NoCheckpoint { unreadable })?;
    let Chain { newest: Some(checkpoint), end, mut owners, .. } = std::mem::take(&mut chains[in_use]) else {
        unreachable!("`newest` found it a moment ago")
    };
    let segment = in_use as u32 + 1;
    let mut core = Core::new(&Appended, superblock, *options, reader.cell);
    load_tables(reader, &mut core, &checkpoint.table, &checkpoint.usage, (segment * superblock.segment_blocks) + end)?;
    core.take_counters(&checkpoint);
    core.metrics.unreadable_checkpoint_blocks = unreadable;
    let chain = checkpoint.logs[usize::from(core.logs.chained())];
    let rolled =
        find::find(reader, &superblock, chain, checkpoint.version, |segment| segments[segment as usize].written)?;
    let mut rolled_owners = owners_by_segment(&core, rolled.owners())?;

    // A write that a crash cut off may have left a part of a block.
    let is_written_to =
        |segment: u32, block: u32| segments[segment as usize].written == u64::from(block) * BLOCK_SECTORS;
    for segment in 3..superblock.segments {
        let state = core.space.get(segment).state;
        let told = segments[segment as usize].state;
        let rolled_here = rolled_owners.remove(&segment);
        match state {
            State::Leaving if rolled_here.is_some() || rolled.segments.contains(&segment) => {
                if seeded(FsBug::RolledSegmentTrimmed) {
                    trim(reader, &superblock, segment)?;
                }
                // Its blocks are those of files.
                let log = log_of(Kind::Data, superblock.logs);
                if has_summary(reader, &superblock, segment, segments[segment as usize].written)? {
                    core.space.seal(segment, log, true);
                } else {
                    core.logs.leave_loose(&mut core.space, log, segment, rolled_here.unwrap_or_default());
                }
            }
            State::Leaving => {
                let is_to_trim = told != SegmentState::Free && !seeded(FsBug::TrimNotRepeated);
                if is_to_trim && (core.read_only.is_some() || !trim(reader, &superblock, segment)?) {
                    core.set_read_only(format!("the drive refuses to trim segment {segment}: it takes no changes"));
                    continue;
                }
                core.space.set_free(segment);
            }
            State::Open(log) => {
                let position = checkpoint.logs[usize::from(log).min(6)];
                let is_at = position.segment == segment && is_written_to(segment, position.next);
                let is_untouched = told == SegmentState::Open || position.next == 0;
                let goes_on = checkpoint.is_clean && is_at && is_untouched;
                let goes_on = goes_on || (seeded(FsBug::OpenSegmentContinued) && position.segment == segment);
                let mut owners = owners.remove(&segment).unwrap_or_default();
                if log == MAP_LOG {
                    match goes_on && position.next < superblock.segment_blocks {
                        true => core.logs.go_on(usize::from(log), position),
                        false => core.space.seal(segment, log, true),
                    }
                    continue;
                }
                owners.truncate(position.next as usize);
                if rolled_here.is_some()
                    && has_summary(reader, &superblock, segment, segments[segment as usize].written)?
                {
                    core.space.seal(segment, log, true);
                    continue;
                }
                // What fsyncs name lies behind what the check-point knows.
                if let Some(rolled) = rolled_here {
                    let known = owners.len();
                    owners.extend(rolled.into_iter().skip(known));
                }
                if goes_on && owners.len() == position.next as usize && position.next < superblock.data_blocks() {
                    core.logs.go_on_with(usize::from(log), position, owners);
                } else {
                    core.logs.leave_loose(&mut core.space, log, segment, owners);
                }
            }
            State::Loose(log) => {
                let owners = owners.remove(&segment).unwrap_or_default();
                core.logs.leave_loose(&mut core.space, log, segment, owners);
            }
            State::Sealed(_) | State::Free | State::Fixed => {}
        }
    }
    let mut checkpoints = Checkpoints::new(segment, end, version);
    core.logs.version = checkpoint.version;
    if rolled.is_empty() && chain.segment != 0 && core.logs.positions()[usize::from(core.logs.chained())] == chain {
        core.rolling.goes_on();
    }
    // What a crash left behind the newest check-point cannot be written over.
    let is_open = segments[segment as usize].state == SegmentState::Open;
    let is_untouched = checkpoint.is_clean && version == checkpoint.version && is_written_to(segment, end) && is_open;
    checkpoints.must_switch = !is_untouched && !seeded(FsBug::CheckpointSegmentKept);
    Ok((core, checkpoints, rolled))
}

/// TIMB and the usage table of a check-point, whose block is `place`.
fn load_tables(
    reader: &mut Reader,
    core: &mut Core,
    table: &[u32],
    usages: &[u32],
    place: u32,
) -> Result<(), MountError> {
    let superblock = core.superblock;
    let (blocks, volume) = (superblock.blocks(), superblock.volume);
    let lists = "list of the check-point";
    if table.len() != superblock.table_blocks() as usize || usages.len() != superblock.usage_blocks() as usize {
        return Err(MountError::of_block(place, lists)(Bad::Field("length")));
    }
    if table.iter().chain(usages).any(|address| *address >= blocks) {
        return Err(MountError::of_block(place, lists)(Bad::Field("address")));
    }
    for (part, (address, block)) in (0_u32..).zip(usages.iter().zip(reader.each(usages)?)) {
        let entries = usage::decode(&block, volume, part, superblock.segment_blocks)
            .map_err(MountError::of_block(*address, "block of the usage table"))?;
        let first = part * usage::ENTRIES as u32;
        for (segment, usage) in (first..superblock.segments).zip(&entries) {
            let is_fixed = usage.segment_use == SegmentUse::Fixed;
            if is_fixed != (segment < 3) {
                return Err(MountError::of_block(*address, "block of the usage table")(Bad::Field("fixed segments")));
            }
            core.space.load(segment, usage);
        }
    }
    core.map.table_list = table.to_vec();
    core.map.usage_list = usages.to_vec();
    let written: Vec<(usize, u32)> = table.iter().copied().enumerate().filter(|(_, at)| *at != NOWHERE).collect();
    let addresses: Vec<u32> = written.iter().map(|(_, address)| *address).collect();
    for ((index, address), block) in written.into_iter().zip(reader.each(&addresses)?) {
        let places = map::decode_table(&block, blocks).map_err(MountError::of_block(address, "TIMB block"))?;
        core.map.load_table(index, &places);
    }
    let named: Vec<u32> =
        core.map.table().iter().chain(table).chain(usages).copied().filter(|at| *at != NOWHERE).collect();
    for address in named {
        let segment = core.space.segment_of(address);
        if !matches!(core.space.get(segment).state, State::Open(MAP_LOG) | State::Sealed(MAP_LOG)) {
            return Err(MountError::of_block(address, "block of the inode map")(Bad::Field("segment")));
        }
        core.space.add(address);
    }
    Ok(())
}

/// Whether a segment has its summary at its end.
fn has_summary(reader: &mut Reader, superblock: &Superblock, segment: u32, written: u64) -> Result<bool, MountError> {
    if written < u64::from(superblock.segment_blocks) * BLOCK_SECTORS {
        return Ok(false);
    }
    let first = segment * superblock.segment_blocks + superblock.data_blocks();
    let parts = reader.blocks(first, superblock.summary_blocks())?;
    let is_whole = |(part, block): (u32, &Result<Box<Bytes>, Status>)| {
        block.as_ref().is_ok_and(|block| summary::decode(block, superblock.volume, segment, part).is_ok())
    };
    Ok((0..).zip(&parts).all(is_whole))
}

/// Trims a segment; false if the drive takes no changes any more.
fn trim(reader: &mut Reader, superblock: &Superblock, segment: u32) -> Result<bool, MountError> {
    let sectors = u64::from(superblock.segment_blocks) * BLOCK_SECTORS;
    let request = Request::new(Op::Trim, u64::from(segment) * sectors, sectors);
    let done = reader.below.alone(request, &[], &[]).map_err(|_| MountError::Silent)?;
    match done.status {
        Status::Success => Ok(true),
        Status::ReadOnly => Ok(false),
        status => Err(MountError::DeviceFailed(status)),
    }
}
