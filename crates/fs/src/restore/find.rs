//! Nodes that fsyncs wrote behind a check-point: the log is followed from where the check-point says, from segment to segment by their
//! summaries or by the last node of each, up to the first block that a cut tore.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::FileKind;
use crate::error::MountError;
use crate::format::checkpoint::Position;
use crate::format::fsync::{self, Mark};
use crate::format::inode::{Index, Inode, is_inode};
use crate::format::summary::{self, Owner};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_SECTORS, Bad, Bytes, LOST, NOWHERE};
use crate::reader::Reader;
use crate::seeded::{FsBug, seeded};

/// A file as its last fsync left it.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) inode: Inode,
    /// Index blocks that have changed since the check-point, by number.
    pub(crate) indexes: BTreeMap<u32, Index>,
    /// Its name, where the check-point has none.
    pub(crate) name: Option<Vec<u8>>,
    /// The last fsync.
    fsync: u32,
}

/// What fsyncs wrote behind a check-point.
#[derive(Debug, Default)]
pub(crate) struct Rolled {
    files: BTreeMap<u32, File>,
    /// Segments that the log has taken since.
    pub(crate) segments: BTreeSet<u32>,
    /// Blocks that cannot be read.
    pub(crate) unreadable: u64,
}

/// Nodes of an fsync that is being read.
#[derive(Default)]
struct Group {
    mark: Mark,
    nodes: Vec<(u32, u32, Box<Bytes>)>,
}

/// Follows the log of fsyncs from where a check-point of a version says. `written` is how many sectors a segment has.
pub(crate) fn find(
    reader: &mut Reader,
    superblock: &Superblock,
    position: Position,
    version: u64,
    written: impl Fn(u32) -> u64,
) -> Result<Rolled, MountError> {
    let mut rolled = Rolled::default();
    let (mut segment, mut from, mut group) = (position.segment, position.next, Group::default());
    let main = superblock.first_segment()..superblock.segments;
    while main.contains(&segment) && rolled.segments.insert(segment) {
        let first = segment * superblock.segment_blocks;
        let blocks = (written(segment) / BLOCK_SECTORS) as u32;
        let end = superblock.data_blocks().min(blocks);
        let (begin, mut next) = (first + from.min(end), 0);
        for (at, block) in (begin..).zip(reader.blocks(begin, first + end - begin)?) {
            let Ok(block) = block else {
                rolled.unreadable += 1;
                return Ok(rolled);
            };
            // Between them are nodes of a check-point that a crash cut off, and blocks that fill up write units.
            let Some((mark, number)) = fsync::of(&block, superblock.volume) else { continue };
            if mark.version != version && !(mark.version < version && seeded(FsBug::OldNodesRolledForward)) {
                continue;
            }
            if !group.takes(mark) {
                return Ok(rolled);
            }
            next = mark.next;
            group.nodes.push((number, at, block));
            if group.nodes.len() == mark.count as usize || seeded(FsBug::PartOfFsync) {
                rolled.take(&mut group, superblock)?;
            }
        }
        if superblock.areas.is_some() {
            (segment, from) = (next, 0);
            continue;
        }
        if blocks <= superblock.data_blocks() {
            break;
        }
        let summary = reader.blocks(first + superblock.data_blocks(), 1)?.pop();
        let Some(Ok(summary)) = summary else {
            rolled.unreadable += 1;
            break;
        };
        match summary::link(&summary, superblock.volume, segment) {
            Ok(link) if link.version == version => (segment, from) = (link.next, 0),
            _ => break,
        }
    }
    Ok(rolled)
}

impl Group {
    /// Whether a node is the next of this fsync, or the first of the next one.
    fn takes(&mut self, mark: Mark) -> bool {
        if self.nodes.is_empty() {
            let is_next = mark.fsync == self.mark.fsync.wrapping_add(1) && mark.place == 0;
            self.mark = mark;
            return is_next;
        }
        mark == Mark { place: self.nodes.len() as u32, next: mark.next, ..self.mark } || seeded(FsBug::PartOfFsync)
    }
}

fn bad(block: u32) -> impl FnOnce(Bad) -> MountError {
    MountError::of_block(block, "node of an fsync")
}

impl Rolled {
    /// All nodes of an fsync are there: the inode is the last.
    fn take(&mut self, group: &mut Group, superblock: &Superblock) -> Result<(), MountError> {
        let (volume, blocks) = (superblock.volume, superblock.blocks());
        let Some((number, at, block)) = group.nodes.pop() else { return Ok(()) };
        let nodes = std::mem::take(&mut group.nodes);
        if is_inode(&block) != Some(true) {
            return Err(bad(at)(Bad::Field("place in the fsync")));
        }
        let inode = Inode::decode(&block, volume, number, blocks).map_err(bad(at))?;
        if inode.kind != FileKind::File || number == 0 || number >= superblock.nodes {
            return Err(bad(at)(Bad::Field("kind")));
        }
        let mut indexes = BTreeMap::new();
        for (node, at, block) in nodes {
            let index = Index::decode(&block, volume, node, blocks).map_err(bad(at))?;
            let is_numbered = (1..superblock.nodes).contains(&node);
            if (index.inode, index.generation) != (number, inode.generation) || !is_numbered {
                return Err(bad(at)(Bad::Field("inode")));
            }
            indexes.insert(node, index);
        }
        let name = fsync::name_of(&block).map(<[u8]>::to_vec);
        let fsync = group.mark.fsync;
        match self.files.get_mut(&number).filter(|file| file.inode.generation == inode.generation) {
            Some(file) => {
                file.indexes.append(&mut indexes);
                (file.inode, file.name, file.fsync) = (inode, name, fsync);
            }
            None => drop(self.files.insert(number, File { inode, indexes, name, fsync })),
        }
        Ok(())
    }

    /// What the blocks that the files name were written for.
    pub(crate) fn owners(&self) -> BTreeMap<u32, Owner> {
        let mut owners = BTreeMap::new();
        for (number, file) in &self.files {
            let direct = (0..).zip(&file.inode.direct);
            let data = file.indexes.values().filter(|index| index.level == 1);
            let indexed = data.flat_map(|index| {
                // A damaged index block may say any first block.
                let blocks = (0..).map(|entry: u32| index.first.wrapping_add(entry));
                blocks.zip(index.entries.iter())
            });
            for (index, address) in direct.chain(indexed).filter(|(_, at)| !matches!(**at, NOWHERE | LOST)) {
                owners.insert(*address, Owner::Data { inode: *number, index });
            }
        }
        owners
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files, in the order of their last fsyncs.
    pub(crate) fn into_files(self) -> Vec<File> {
        let mut files: Vec<File> = self.files.into_values().collect();
        files.sort_unstable_by_key(|file| file.fsync);
        files
    }
}
