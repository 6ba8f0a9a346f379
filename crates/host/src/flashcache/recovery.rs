//! The layer begins: it finds the cache that was left on its devices, or makes a new one there.
//!
//! Every step is on flash before the next one. A new cache has a superblock that says so before its disk has a label, so that one
//! whose making was interrupted is made again, while a label without its cache means that blocks of the disk are missing.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::config::{FlashCacheConfig, LAYER, Mode};
use super::layout::{BLOCK_SECTORS, Layout};
use super::metadata::{ENTRY_WORDS, Entry, Left, SECTOR_WORDS, Superblock, identity_in, label, read_entry};
use super::sets::Sets;
use super::{CACHE, DISK};
use crate::LayerError;
use crate::caching::{hash, hash_of_names};
use crate::layer::Array;

/// Sectors that are read at once.
const MOST_SECTORS: u64 = 1024;

/// Attempts to read a sector of metadata.
const READS: u32 = 4;

/// What the devices have.
pub(super) struct Found {
    pub(super) sets: Sets,
    /// Who cache and disk are together, where the cache keeps metadata.
    pub(super) superblock: Superblock,
    /// Why the cache does not take metadata, if it does not.
    pub(super) refuses: Option<Status>,
}

/// Sectors of words as a device keeps sectors: their bytes, or a stamp and what that means.
pub(super) fn cells_of(cell: usize, words: &[u64], mut keep_meaning: impl FnMut(u64, u64, &[u64])) -> Vec<u8> {
    assert!(words.len().is_multiple_of(SECTOR_WORDS), "{} words are no whole sectors", words.len());
    if cell == 0 {
        return Vec::new();
    }
    let mut cells = Vec::with_capacity(words.len() / SECTOR_WORDS * cell);
    for (sector, words) in (0..).zip(words.chunks_exact(SECTOR_WORDS)) {
        if cell == size_of_val(words) {
            cells.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            continue;
        }
        // A sector of zeroes has no meaning of its own: so it reads as one that was never written.
        let stamp = if words.iter().all(|word| *word == 0) { 0 } else { hash(words) };
        if stamp != 0 {
            keep_meaning(sector, stamp, words);
        }
        let end = cells.len() + cell;
        cells.extend_from_slice(&stamp.to_le_bytes());
        cells.resize(end, 0);
    }
    cells
}

/// Reads what is kept on the devices, which have `cell` bytes of a sector; without any the cache is new.
pub(super) fn find(
    array: &mut Array<()>,
    config: &FlashCacheConfig,
    layout: &Layout,
    cell: usize,
) -> Result<Found, LayerError> {
    let names = [CACHE, DISK].map(|device| hash_of_names(array.device(device)));
    let expected = Superblock::of(layout, names, Left::InUse);
    let mut found = Found {
        sets: Sets::new(layout.sets, layout.set_blocks, config.replacement),
        superblock: expected,
        refuses: None,
    };
    if cell == 0 {
        return Ok(found);
    }
    let labelled = identity_in(read_sectors(array, DISK, layout.label(), 1, cell)?[0][0]);
    let there = Superblock::from_words(&read_sectors(array, CACHE, 0, 1, cell)?[0]);
    if Superblock::from_words(&read_sectors(array, DISK, 0, 1, cell)?[0]).is_some() {
        return Err(LayerError::OtherCache {
            what: "the disk",
            found: "a drive that caches a disk".to_string(),
            expected: "below = [CACHE, DISK], the disk behind its cache".to_string(),
        });
    }
    if config.mode != Mode::Back {
        return match (there, labelled) {
            (None, None) => Ok(found),
            _ => Err(LayerError::OtherCache {
                what: "mode",
                found: "a cache in write-back, whose blocks the disk may lack".to_string(),
                expected: "devices that no such cache uses, or mode = \"write-back\"".to_string(),
            }),
        };
    }
    let there = match there {
        None if labelled.is_some() => {
            return Err(LayerError::OtherCache {
                what: "the cache",
                found: "a drive without a superblock, and a disk that belongs to a cache".to_string(),
                expected: "the drive that the disk was used with".to_string(),
            });
        }
        Some(there) => {
            if let Some((what, found, expected)) = there.difference(&expected) {
                return Err(LayerError::OtherCache { what, found, expected });
            }
            match labelled {
                Some(identity) if identity == there.identity => Some(there),
                None if there.left == Left::New => None,
                found => {
                    let shown = |identity: u64| format!("a disk with the label {identity:#014x}");
                    return Err(LayerError::OtherCache {
                        what: "the disk",
                        found: found.map_or_else(|| "a disk without a label".to_string(), shown),
                        expected: shown(there.identity),
                    });
                }
            }
        }
        None => None,
    };
    let is_new = there.is_none_or(|there| there.left == Left::New);
    if is_new {
        found.refuses = make(array, layout, &expected, cell)?;
    } else {
        let keeps_clean = there.is_some_and(|there| there.left == Left::Closed);
        read_entries(array, layout, &mut found.sets, keeps_clean, cell)?;
    }
    if found.refuses.is_none() {
        // A device that refused metadata returns it until its power is cut: only a flush says that what was read is on flash.
        let flush = Request::new(Op::Flush, 0, 0);
        let status = array.alone(CACHE, flush, &[], &[])?.status;
        let in_use = write_superblock(array, &expected, cell)?;
        found.refuses = Some(status).filter(|status| status.is_error()).or(in_use);
    }
    Ok(found)
}

/// Makes a new cache; why the devices do not take it, if they do not.
fn make(
    array: &mut Array<()>,
    layout: &Layout,
    expected: &Superblock,
    cell: usize,
) -> Result<Option<Status>, LayerError> {
    let new = Superblock { left: Left::New, ..*expected };
    if let Some(status) = write_superblock(array, &new, cell)? {
        return Ok(Some(status));
    }
    // Without its meaning, a stamp says nothing at the next start.
    if cell != size_of::<[u64; SECTOR_WORDS]>() && array.device(CACHE).meaning(0, hash(&new.to_words())).is_none() {
        return Err(LayerError::NoMeaning { layer: LAYER.name });
    }
    let mut label_cells = vec![0; cell * BLOCK_SECTORS as usize];
    label_cells[..8].copy_from_slice(&label(expected.identity).to_le_bytes());
    let fua = |request: Request| Request { fua: true, ..request };
    let metadata = layout.metadata_sector(0);
    let steps = [
        (CACHE, fua(Request::new(Op::WriteZeroes, metadata, layout.data - metadata)), &[][..]),
        (CACHE, Request::new(Op::Flush, 0, 0), &[]),
        (DISK, fua(Request::new(Op::Write, layout.label(), BLOCK_SECTORS)), &label_cells),
    ];
    for (device, request, cells) in steps {
        let status = array.alone(device, request, cells, &[])?.status;
        if status.is_error() {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

/// Writes the superblock; why the cache does not take it, if it does not.
fn write_superblock(array: &mut Array<()>, superblock: &Superblock, cell: usize) -> Result<Option<Status>, LayerError> {
    let (request, cells) = superblock_write(superblock, cell, |sector, stamp, words| {
        array.device_mut(CACHE).keep_meaning(sector, stamp, words);
    });
    let status = array.alone(CACHE, request, &cells, &[])?.status;
    Ok(Some(status).filter(|status| status.is_error()))
}

/// The write of a superblock: its sector, and zeroes up to the end of the block.
pub(super) fn superblock_write(
    superblock: &Superblock,
    cell: usize,
    keep_meaning: impl FnMut(u64, u64, &[u64]),
) -> (Request, Vec<u8>) {
    let mut words = superblock.to_words().to_vec();
    words.resize(SECTOR_WORDS * BLOCK_SECTORS as usize, 0);
    let request = Request { fua: true, ..Request::new(Op::Write, 0, BLOCK_SECTORS) };
    (request, cells_of(cell, &words, keep_meaning))
}

/// Puts what the entries say into the sets: dirty blocks, and with `keeps_clean` the others.
fn read_entries(
    array: &mut Array<()>,
    layout: &Layout,
    sets: &mut Sets,
    keeps_clean: bool,
    cell: usize,
) -> Result<(), LayerError> {
    let first = layout.metadata_sector(0);
    let entries = layout.slots() as usize;
    let count = entries.div_ceil(SECTOR_WORDS / ENTRY_WORDS) as u64;
    let mut slot = 0;
    for from in (0..count).step_by(MOST_SECTORS as usize) {
        let sectors = read_sectors(array, CACHE, first + from, MOST_SECTORS.min(count - from), cell)?;
        for (sector, words) in (first + from..).zip(sectors) {
            let damaged = |what: String| LayerError::DamagedCache { sector, what };
            for words in words.chunks_exact(ENTRY_WORDS) {
                let entry = read_entry([words[0], words[1]])
                    .map_err(|()| damaged(format!("the words {:#x} and {:#x} for slot {slot}", words[0], words[1])))?;
                if slot >= layout.slots() && entry.is_some() {
                    return Err(damaged(format!("an entry for slot {slot} of {}", layout.slots())));
                }
                if let Some(Entry { block, is_dirty }) = entry.filter(|entry| entry.is_dirty || keeps_clean) {
                    if block >= layout.disk_blocks {
                        return Err(damaged(format!(
                            "block {block} in slot {slot}, but the disk has {}",
                            layout.disk_blocks
                        )));
                    }
                    if sets.set_of(block) != sets.set_of_slot(slot) {
                        return Err(damaged(format!("block {block} in slot {slot} of another set")));
                    }
                    if let Some(other) = sets.find(block) {
                        return Err(damaged(format!("block {block} in the slots {other} and {slot}")));
                    }
                    sets.put(slot, block);
                    sets.set_dirty(slot, is_dirty);
                }
                slot += 1;
            }
        }
    }
    Ok(())
}

/// Reads sectors as the words that were written there.
fn read_sectors(
    array: &mut Array<()>,
    device: usize,
    first: u64,
    count: u64,
    cell: usize,
) -> Result<Vec<Vec<u64>>, LayerError> {
    let mut attempts = 0;
    let cells = loop {
        let part = array.alone(device, Request::new(Op::Read, first, count), &[], &[])?;
        match (part.status, part.cells) {
            (Status::Success, Some(cells)) => break cells,
            (status, _) if attempts == READS => {
                return Err(LayerError::Unreadable { layer: LAYER.name, device, status });
            }
            _ => attempts += 1,
        }
    };
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let mut sectors = Vec::with_capacity(count as usize);
    for (sector, cells) in (first..).zip(cells.chunks_exact(cell)) {
        if cell == size_of::<[u64; SECTOR_WORDS]>() {
            sectors.push(cells.chunks_exact(8).map(word).collect());
            continue;
        }
        let stamp = word(&cells[..8]);
        let meaning = if stamp == 0 { None } else { array.device(device).meaning(sector, stamp) };
        // The label on the disk is its own stamp.
        let alone = || {
            let mut words = vec![0; SECTOR_WORDS];
            words[0] = stamp;
            words
        };
        sectors.push(meaning.unwrap_or_else(alone));
    }
    assert_eq!(sectors.len() as u64, count, "a read brings every sector");
    Ok(sectors)
}
