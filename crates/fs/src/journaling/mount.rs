//! Mounting: the superblock, the journal, the descriptors of all groups, and the list of orphans. Nothing but the journal takes longer on
//! a larger drive than its descriptors do.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::Device;

use super::core::Core;
use super::format::inode::{self, Inode};
use super::format::superblock::{DESCRIPTORS, Superblock};
use super::format::{group, log::Tail};
use super::log::{Log, address};
use super::replay;
use super::space::Space;
use super::system::Journaling;
use crate::call::BLOCK_BYTES;
use crate::config::Options;
use crate::error::MountError;
use crate::file_system::Engine;
use crate::format::{BLOCK_SECTORS, Bad, Bytes};
use crate::kinds::Mounted;
use crate::reader::Reader;

/// Blocks of a group, by which a mount looks for a copy of the superblock: all sizes that a group can have.
const GROUPS: [u32; 10] = [32768, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/// Whether a journaling file system can be on a device: one that takes writes anywhere.
pub(crate) fn fits(device: &dyn Device) -> bool {
    device.segment_sectors().is_none() && device.zones().is_none()
}

/// The superblock, from block 0 or from the copy in group 1.
pub(crate) fn superblock(reader: &mut Reader) -> Result<Superblock, MountError> {
    let decoded = |block: Box<Bytes>| Superblock::decode(&block).map_err(MountError::Superblock);
    let first = reader.block(0).and_then(decoded);
    let superblock = match first {
        Ok(superblock) => superblock,
        Err(error @ (MountError::Silent | MountError::DeviceFailed(_))) => return Err(error),
        Err(error) => {
            let sectors = reader.below.device().sectors();
            let copies = GROUPS.iter().filter(|block| u64::from(**block + 1) * BLOCK_SECTORS <= sectors);
            let mut found = None;
            for block in copies {
                match reader.block(*block).and_then(decoded) {
                    Err(error @ (MountError::Silent | MountError::DeviceFailed(_))) => return Err(error),
                    copy => found = found.or(copy.ok().filter(|copy| copy.group_blocks == *block)),
                }
            }
            found.ok_or(error)?
        }
    };
    let expected = u64::from(superblock.blocks) * BLOCK_SECTORS;
    let found = reader.below.device().sectors();
    if found < expected {
        return Err(MountError::Device { what: "number of sectors at least", found, expected });
    }
    Ok(superblock)
}

/// Mounts what is on a device.
pub(crate) fn mount(mut reader: Reader, options: &Options) -> Mounted {
    match load(&mut reader, options) {
        Ok((core, log)) => {
            let mut system = Journaling::of(core, reader.below.into_below(), log);
            system.proceed();
            Ok(Box::new(system))
        }
        Err(error) => Err((error, reader.below.into_device())),
    }
}

fn load(reader: &mut Reader, options: &Options) -> Result<(Core, Log), MountError> {
    let before = superblock(reader)?;
    let found = replay::read(reader, &before)?;
    let next = found.next;
    let written = write_back(reader, &before, &found);
    // A drive that takes no more is mounted with what the journal has in memory.
    let read_only = match written {
        Err(MountError::DeviceFailed(Status::ReadOnly)) => Some("the device takes no writes".to_string()),
        other => other.map(|()| None)?,
    };
    let newer = if read_only.is_some() { found.blocks } else { BTreeMap::new() };
    let superblock = match block(reader, &newer, 0) {
        Ok(block) => Superblock::decode(&block).unwrap_or(before),
        // A copy knows no orphans.
        Err(MountError::Unreadable { .. }) => before,
        Err(error) => return Err(error),
    };
    let mut told = Vec::with_capacity(superblock.groups() as usize);
    for part in 0..superblock.descriptor_blocks() {
        let block = block(reader, &newer, 1 + part)?;
        let end = superblock.groups().min((part + 1) * DESCRIPTORS);
        for group in part * DESCRIPTORS..end {
            let one = group::decode(&superblock, group, &block)
                .map_err(MountError::of_block(1 + part, "descriptors of groups"))?;
            told.push(one);
        }
    }
    let space = Space::new(&superblock, told);
    let mut core = Core::new(superblock, *options, reader.cell, space);
    let orphans = orphans(reader, &newer, &superblock)?;
    core.homes.commit(next.sequence, core.now, newer);
    core.read_only = read_only;
    core.orphans = orphans.iter().map(|inode| inode.number).collect();
    core.freeing = core.orphans.iter().map(|number| (*number, false)).collect();
    let named = orphans.iter().filter(|inode| inode.links > 0);
    core.free_from = named.map(|inode| (inode.number, inode.size.div_ceil(BLOCK_BYTES) as u32)).collect();
    let log = Log::new(superblock.journal_runs().unwrap_or_default(), next);
    Ok((core, log))
}

/// Writes what the journal has to its places, and then that the journal has nothing.
fn write_back(reader: &mut Reader, superblock: &Superblock, found: &replay::Found) -> Result<(), MountError> {
    let has_write_cache = reader.has_write_cache();
    if has_write_cache {
        reader.flush()?;
    }
    if !found.is_open {
        return Ok(());
    }
    for (place, block) in &found.blocks {
        write(reader, *place, block, false)?;
    }
    if has_write_cache {
        reader.flush()?;
    }
    // The next log is none of this one.
    let tail = Tail { epoch: found.next.epoch.wrapping_add(1), ..found.next };
    let place = address(&superblock.journal_runs().unwrap_or_default(), 0);
    write(reader, place, &tail.encode(superblock.volume), has_write_cache)
}

fn write(reader: &mut Reader, place: u32, block: &Bytes, fua: bool) -> Result<(), MountError> {
    let cell = reader.cell;
    let mut cells = if cell == 512 { block.to_vec() } else { Vec::new() };
    cells.resize(BLOCK_SECTORS as usize * cell, 0);
    let sector = u64::from(place) * BLOCK_SECTORS;
    reader.send(Request { fua, ..Request::new(Op::Write, sector, BLOCK_SECTORS) }, &cells)?;
    if cell != 512 {
        reader.below.keep_record(sector, block);
    }
    Ok(())
}

/// A block, where the journal has no newer one that could not be written.
fn block(reader: &mut Reader, newer: &BTreeMap<u32, Box<Bytes>>, place: u32) -> Result<Box<Bytes>, MountError> {
    match newer.get(&place) {
        Some(block) => Ok(block.clone()),
        None => reader.block(place),
    }
}

/// The list of orphans, from its head in the superblock.
fn orphans(
    reader: &mut Reader,
    newer: &BTreeMap<u32, Box<Bytes>>,
    superblock: &Superblock,
) -> Result<Vec<Inode>, MountError> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    let mut number = superblock.first_orphan;
    while number != 0 {
        let (place, index) = superblock.place_of_inode(number.min(superblock.inodes()));
        let bad = |bad| MountError::of_block(place, "orphan")(bad);
        if number > superblock.inodes() || !seen.insert(number) {
            return Err(bad(Bad::Field("list of orphans")));
        }
        let block = block(reader, newer, place)?;
        let bytes = &block[index * inode::SIZE..(index + 1) * inode::SIZE];
        let inode = Inode::decode(superblock.volume, number, bytes).map_err(bad)?;
        let inode = inode.ok_or_else(|| bad(Bad::Field("list of orphans")))?;
        all.push(inode);
        number = inode.next_orphan;
    }
    Ok(all)
}
