//! The check-points of a segment, one behind the other.

use std::collections::BTreeMap;

use ssdlab_device::Status;

use crate::error::MountError;
use crate::format::checkpoint::Checkpoint;
use crate::format::summary::Owner;
use crate::format::superblock::Superblock;
use crate::format::{Bad, Bytes};
use crate::reader::Reader;

/// What a check-point segment has.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// The newest whole check-point.
    pub(crate) newest: Option<Checkpoint>,
    /// The block behind it.
    pub(crate) end: u32,
    /// The highest version of any block, whole or not.
    pub(crate) seen: u64,
    /// Blocks that cannot be read.
    pub(crate) unreadable: u64,
    /// Summaries of segments, put together of the parts that all of them have.
    pub(crate) owners: BTreeMap<u32, Vec<Owner>>,
}

/// Reads the written part of a check-point segment.
pub(crate) fn read(
    reader: &mut Reader,
    superblock: &Superblock,
    segment: u32,
    written: u32,
) -> Result<Chain, MountError> {
    let first = segment * superblock.segment_blocks;
    let blocks = reader.blocks(first, written.min(superblock.segment_blocks))?;
    follow(&blocks, superblock, first)
}

fn follow(blocks: &[Result<Box<Bytes>, Status>], superblock: &Superblock, first: u32) -> Result<Chain, MountError> {
    let volume = superblock.volume;
    let unreadable = blocks.iter().filter(|block| block.is_err()).count() as u64;
    let mut chain = Chain { unreadable, ..Chain::default() };
    let whole = |at: usize| -> Result<(Checkpoint, usize), MountError> {
        let bad = |bad| MountError::Checkpoint { block: first + at as u32, bad };
        let get = |at: usize| match blocks.get(at) {
            Some(Ok(block)) => Ok(&**block),
            Some(Err(status)) => Err(MountError::Unreadable { block: first + at as u32, status: *status }),
            None => Err(bad(Bad::Short)),
        };
        let (_, count) = Checkpoint::begins(get(at)?, volume).map_err(bad)?;
        let parts: Result<Vec<&Bytes>, MountError> = (at..at + count as usize).map(get).collect();
        Ok((Checkpoint::decode(&parts?, volume).map_err(bad)?, count as usize))
    };
    let mut at = 0;
    let mut failed = None;
    while at < blocks.len() {
        match whole(at) {
            Ok((checkpoint, count)) => {
                let follows = chain.newest.as_ref().map_or(checkpoint.is_first, |newest| {
                    !checkpoint.is_first && checkpoint.version == newest.version + 1
                });
                if !follows {
                    failed = Some(MountError::Checkpoint { block: first + at as u32, bad: Bad::Field("version") });
                    break;
                }
                chain.seen = chain.seen.max(checkpoint.version);
                for part in &checkpoint.parts {
                    let owners = chain.owners.entry(part.segment).or_default();
                    owners.resize(owners.len().min(part.first as usize), Owner::Nothing);
                    owners.resize(part.first as usize, Owner::Nothing);
                    owners.extend(&part.owners);
                }
                at = (at + count).next_multiple_of(superblock.unit_blocks as usize);
                chain.end = at as u32;
                chain.newest = Some(checkpoint);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    // A check-point that a crash cut off is the last of its segment. One that is damaged has others behind it.
    let (begin, unit) = (chain.end as usize, superblock.unit_blocks as usize);
    for (later, block) in blocks.iter().enumerate().skip(begin) {
        if let Ok(block) = block {
            chain.seen = chain.seen.max(Checkpoint::version_of(block, volume).unwrap_or(0));
        }
        if later > begin
            && later.is_multiple_of(unit)
            && whole(later).is_ok()
            && let Some(error) = failed
        {
            return Err(error);
        }
    }
    Ok(chain)
}
