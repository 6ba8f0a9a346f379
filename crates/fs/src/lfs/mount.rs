//! Mounting: the newer of two whole check-points, with it SIT and the journals, and what fsyncs wrote behind it (F2FS, section 2.6).
//!
//! Nothing is written. Segments that logs wrote when the host crashed are left as they are: the next check-point writes their summaries.

use ssdlab_host::Device;

use super::tables::Overwritten;
use crate::config::Options;
use crate::core::Core;
use crate::core::log::{Kind, log_of};
use crate::core::space::State;
use crate::error::MountError;
use crate::format::checkpoint::{Checkpoint, unpack_places};
use crate::format::summary::{self, Owner};
use crate::format::superblock::Superblock;
use crate::format::usage::{self, SegmentUse, WithBits};
use crate::format::{BLOCK_SECTORS, Bad, Bytes, NOWHERE};
use crate::jobs::checkpoint::Checkpoints;
use crate::reader::Reader;
use crate::restore::find::{self, Rolled};
use crate::restore::owners_by_segment;

/// What is in the place of a check-point.
#[derive(Debug, Default)]
struct Place {
    whole: Option<Checkpoint>,
    /// The version that its first block says.
    seen: u64,
    unreadable: u64,
}

/// The superblock, from its first block or from the copy.
fn superblock(reader: &mut Reader) -> Result<Superblock, MountError> {
    let decoded = |block: Box<Bytes>| Superblock::decode_with_areas(&block).map_err(MountError::Superblock);
    let first = reader.block(0).and_then(decoded);
    let superblock = match first {
        Err(MountError::Unreadable { .. } | MountError::Superblock(_)) => reader.block(1).and_then(decoded).or(first),
        other => other,
    }?;
    let expected = u64::from(superblock.blocks()) * BLOCK_SECTORS;
    let found = reader.below.device().sectors();
    if found < expected {
        return Err(MountError::Device { what: "number of sectors at least", found, expected });
    }
    Ok(superblock)
}

/// What segment 1 or 2 has of a check-point.
fn read_place(reader: &mut Reader, superblock: &Superblock, segment: u32) -> Result<Place, MountError> {
    let (first, volume) = (segment * superblock.segment_blocks, superblock.volume);
    let mut place = Place::default();
    let Some(Ok(begin)) = reader.blocks(first, 1)?.pop() else {
        place.unreadable = 1;
        return Ok(place);
    };
    place.seen = Checkpoint::version_of(&begin, volume).unwrap_or(0);
    let Ok((_, count)) = Checkpoint::begins(&begin, volume) else { return Ok(place) };
    let blocks = reader.blocks(first, count.min(superblock.segment_blocks))?;
    place.unreadable = blocks.iter().filter(|block| block.is_err()).count() as u64;
    let whole: Result<Vec<&Bytes>, _> = blocks.iter().map(|block| block.as_ref().map(|block| &**block)).collect();
    place.whole = whole.ok().and_then(|blocks| Checkpoint::decode(&blocks, volume).ok());
    Ok(place)
}

/// Whether a file system whose metadata has fixed places can be on a device: one that takes writes anywhere.
pub(crate) fn fits(device: &dyn Device) -> bool {
    device.segment_sectors().is_none() && device.zones().is_none()
}

/// Everything in memory, from what the device has.
pub(crate) fn load(reader: &mut Reader, options: &Options) -> Result<(Core, Checkpoints, Rolled), MountError> {
    let superblock = superblock(reader)?;
    let places = [read_place(reader, &superblock, 1)?, read_place(reader, &superblock, 2)?];
    let unreadable = places.iter().map(|place| place.unreadable).sum();
    let version = places.iter().map(|place| place.seen).max().unwrap_or(0);
    let whole = (1..).zip(places).filter_map(|(segment, place)| place.whole.map(|whole| (segment, whole)));
    let newest = whole.max_by_key(|(_, checkpoint)| checkpoint.version);
    let (segment, checkpoint) = newest.ok_or(MountError::NoCheckpoint { unreadable })?;
    let mut core = Core::new(&Overwritten, superblock, *options, reader.cell);
    load_tables(reader, &mut core, &checkpoint, segment * superblock.segment_blocks)?;
    core.take_counters(&checkpoint);
    core.metrics.unreadable_checkpoint_blocks = unreadable;
    let chain = checkpoint.logs[usize::from(core.logs.chained())];
    let sectors = u64::from(superblock.segment_blocks) * BLOCK_SECTORS;
    let rolled = find::find(reader, &superblock, chain, checkpoint.version, |_| sectors)?;
    let mut rolled_owners = owners_by_segment(&core, rolled.owners())?;

    // Blocks of files that fsyncs name and the check-point does not know lie in a segment of another log, or of none.
    let data = log_of(Kind::Data, superblock.logs);
    for segment in superblock.first_segment()..superblock.segments {
        let rolled_here = rolled_owners.remove(&segment);
        match core.space.get(segment).state {
            State::Leaving if rolled_here.is_some() || rolled.segments.contains(&segment) => {
                core.logs.leave_loose(&mut core.space, data, segment, rolled_here.unwrap_or_default());
            }
            State::Leaving => core.space.set_free(segment),
            State::Open(log) => {
                let position = checkpoint.logs[usize::from(log)];
                let mut parts = checkpoint.parts.iter().filter(|part| part.segment == segment);
                let mut owners = parts.next().map_or(Vec::new(), |part| part.owners.clone());
                overlay(&mut owners, rolled_here);
                let is_whole = owners.len() == position.next as usize && position.next < superblock.segment_blocks;
                // Without an fsync behind the check-point nothing there is needed.
                if rolled.is_empty() && is_whole && position.segment == segment {
                    core.logs.go_on_with(usize::from(log), position, owners);
                } else {
                    core.logs.leave_loose(&mut core.space, log, segment, owners);
                }
            }
            State::Sealed(log) if rolled_here.is_some() => {
                // A log may have written it again, and the crash came before its summary.
                let told = summary_of(reader, &superblock, segment)?;
                let mut owners = told.clone();
                overlay(&mut owners, rolled_here);
                if owners != told {
                    core.logs.leave_loose(&mut core.space, log, segment, owners);
                }
            }
            State::Loose(_) | State::Sealed(_) | State::Free | State::Fixed => {}
        }
    }
    let checkpoints = Checkpoints::new(segment, 0, version);
    // Fsyncs that the crash tore may have left nodes of this version: the next fsync is a check-point, so that no other follows them.
    core.logs.version = checkpoint.version;
    Ok((core, checkpoints, rolled))
}

/// What fsyncs say of blocks comes before what a summary says.
fn overlay(owners: &mut Vec<Owner>, rolled: Option<Vec<Owner>>) {
    for (block, owner) in rolled.into_iter().flatten().enumerate() {
        if owner != Owner::Nothing {
            owners.resize(owners.len().max(block + 1), Owner::Nothing);
            owners[block] = owner;
        }
    }
}

/// The summary of a segment. What of it cannot be read is of no block.
fn summary_of(reader: &mut Reader, superblock: &Superblock, segment: u32) -> Result<Vec<Owner>, MountError> {
    let parts = reader.blocks(superblock.summary_address(segment, 0), superblock.summary_parts())?;
    let nothing = || vec![Owner::Nothing; summary::PLAIN_ENTRIES];
    let each = parts.into_iter().flat_map(|part| part.map_or_else(|_| nothing(), |part| summary::decode_plain(&part)));
    Ok(each.take(superblock.segment_blocks as usize).collect())
}

/// SIT, the places of NAT, and both journals, as a check-point at a block says.
fn load_tables(reader: &mut Reader, core: &mut Core, checkpoint: &Checkpoint, at: u32) -> Result<(), MountError> {
    let superblock = core.superblock;
    let lists = "list of the check-point";
    let places = |words: &[u32], count: u32, place: &dyn Fn(u32, u32) -> u32| -> Result<Vec<u32>, MountError> {
        let places = unpack_places(words, count).map_err(MountError::of_block(at, lists))?;
        let address = |(part, which): (u32, u8)| if which == 0 { NOWHERE } else { place(part, which.into()) };
        Ok((0..).zip(places).map(address).collect())
    };
    let usages =
        places(&checkpoint.usage, superblock.usage_blocks(), &|part, place| superblock.usage_place(part, place))?;
    let maps = places(&checkpoint.table, superblock.map_blocks(), &|part, place| superblock.map_place(part, place))?;
    maps.into_iter().zip(0..).for_each(|(address, part)| core.map.set_address(part, address));
    let journal =
        checkpoint.journal.as_ref().ok_or_else(|| MountError::of_block(at, "check-point")(Bad::Field("journal")))?;
    let is_node = |(number, address): &(u32, u32)| *number < superblock.nodes && *address < superblock.blocks();
    if !journal.nodes.iter().all(is_node) {
        return Err(MountError::of_block(at, "journal of the node map")(Bad::Field("entry")));
    }
    if let Some(own) = &mut core.map.journal {
        own.entries = journal.nodes.iter().copied().collect();
    }
    let written: Vec<(u32, u32)> = (0..).zip(usages.iter().copied()).filter(|(_, at)| *at != NOWHERE).collect();
    let addresses: Vec<u32> = written.iter().map(|(_, address)| *address).collect();
    let first = superblock.first_segment();
    let mut entries: Vec<Option<WithBits>> = vec![None; superblock.segments as usize];
    for ((part, address), block) in written.into_iter().zip(reader.each(&addresses)?) {
        let of_block = usage::decode_with_bits(&block, superblock.volume, part, superblock.segment_blocks)
            .map_err(MountError::of_block(address, "block of the usage table"))?;
        let begin = part * superblock.usage_entries();
        for (segment, entry) in (begin..superblock.segments).zip(of_block) {
            let is_fixed = entry.0.segment_use == SegmentUse::Fixed;
            if is_fixed != (segment < first) {
                return Err(MountError::of_block(address, "block of the usage table")(Bad::Field("fixed segments")));
            }
            entries[segment as usize] = Some(entry);
        }
    }
    for (segment, entry) in &journal.usage {
        let words = usage::words_of(superblock.segment_blocks);
        let is_main = (first..superblock.segments).contains(segment);
        if !is_main || entry.1.len() != words || entry.0.valid > superblock.segment_blocks {
            return Err(MountError::of_block(at, "journal of the usage table")(Bad::Field("entry")));
        }
        entries[*segment as usize] = Some(entry.clone());
        core.space.journal.insert(*segment);
    }
    core.map.usage_list = usages;
    for (segment, (usage, bits)) in (first..).zip(entries.drain(first as usize..).map(Option::unwrap_or_default)) {
        let is_known = !matches!(usage.segment_use, SegmentUse::Open(log) | SegmentUse::Sealed(log) | SegmentUse::Loose(log) if log >= 6);
        if !is_known || usage.segment_use == SegmentUse::Fixed {
            return Err(MountError::of_block(at, "entry of the usage table")(Bad::Field("log of a segment")));
        }
        core.space.load(segment, &usage);
        if let Some(own) = core.space.bits.as_mut().filter(|_| !bits.is_empty()) {
            own.load(segment, &bits);
        }
    }
    Ok(())
}
