//! The check's own decoding: numbers at offsets, written apart from the code that mounts and reads.
//!
//! It shares the checksum and nothing else with `format`, so that a field that both sides of `format` get wrong is found here.

use twox_hash::XxHash3_64;

/// A number of four bytes.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

/// A number of eight bytes.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Whether a block has a magic number and the checksum of a volume.
pub(super) fn is_whole(bytes: &[u8], volume: u64, magic: &[u8]) -> bool {
    &bytes[8..12] == magic && long(bytes, 0) == XxHash3_64::oneshot_with_seed(volume, &bytes[8..4096])
}

/// What the superblock says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) volume: u64,
    pub(super) segment_blocks: u32,
    pub(super) segments: u32,
    pub(super) unit_blocks: u32,
    pub(super) nodes: u32,
    /// The first segment of data and nodes.
    pub(super) main: u32,
    /// Where the usage table, the node map and the summaries begin, where these have areas of their own.
    pub(super) areas: Option<[u32; 3]>,
}

impl Shape {
    pub(super) fn of(bytes: &[u8]) -> Option<Shape> {
        let has_areas = is_whole(bytes, 0, b"LFSS");
        let is_known = (has_areas || is_whole(bytes, 0, b"ALFS")) && word(bytes, 32) == 2;
        is_known.then(|| Shape {
            main: if has_areas { word(bytes, 88) } else { 3 },
            areas: has_areas.then(|| [76, 80, 84].map(|at| word(bytes, at))),
            volume: long(bytes, 40),
            segment_blocks: word(bytes, 48),
            segments: word(bytes, 52),
            unit_blocks: word(bytes, 56).max(1),
            nodes: word(bytes, 60),
        })
    }

    /// Blocks at the end of a segment for its summary.
    pub(super) fn summary_blocks(&self) -> u32 {
        if self.areas.is_some() {
            return 0;
        }
        let parts = self.segment_blocks.div_ceil(509);
        parts.div_ceil(self.unit_blocks) * self.unit_blocks
    }
}

/// A part of the summary of a segment: the segment, the first block, and the numbers of owners.
pub(super) type Part = (u32, u32, Vec<(u32, u32)>);

/// What a check-point says, as far as the check needs it.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    pub(super) version: u64,
    /// Its first block.
    pub(super) block: u32,
    pub(super) nodes_used: u32,
    /// Blocks of the inode map before this one have no free number.
    pub(super) first_free: u32,
    /// For each log its segment and the next block.
    pub(super) logs: Vec<(u32, u32)>,
    pub(super) table: Vec<u32>,
    pub(super) usage: Vec<u32>,
    /// In their order.
    pub(super) orphans: Vec<u32>,
    pub(super) parts: Vec<Part>,
    /// Nodes with their places, and segments with the words of their entries, that the tables do not have yet.
    pub(super) journaled_nodes: Vec<(u32, u32)>,
    pub(super) journaled_usage: Vec<(u32, Vec<u32>)>,
    pub(super) is_first: bool,
    /// Blocks that it takes.
    pub(super) blocks: u32,
}

/// Reads a check-point at the beginning of blocks.
pub(super) fn point(blocks: &[&[u8]], volume: u64) -> Option<Point> {
    let first = blocks.first()?;
    if !is_whole(first, volume, b"CHPT") || word(first, 12) != 0 {
        return None;
    }
    let (count, length, version) = (word(first, 16), word(first, 20) as usize, long(first, 24));
    let mut bytes = Vec::new();
    for (index, block) in blocks.get(..count as usize)?.iter().enumerate() {
        let is_part = word(block, 12) == index as u32 && long(block, 24) == version;
        if !is_whole(block, volume, b"CHPT") || !is_part {
            return None;
        }
        bytes.extend_from_slice(&block[32..4096]);
    }
    let bytes = bytes.get(..length)?;
    if length < 8 || long(bytes, 0) != XxHash3_64::oneshot_with_seed(volume ^ version, &bytes[8..]) {
        return None;
    }
    let mut words = bytes[8..].chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let mut next = || words.next();
    let flags = next()?;
    let mut point = Point { version, is_first: flags & 2 != 0, blocks: count, ..Point::default() };
    next()?;
    point.nodes_used = next()?;
    point.first_free = next()?;
    // Clock and time.
    (0..4).try_for_each(|_| next().map(|_| ()))?;
    for _ in 0..7 {
        point.logs.push((next()?, next()?));
    }
    for list in 0..3 {
        for _ in 0..next()? {
            let value = next()?;
            match list {
                0 => point.table.push(value),
                1 => point.usage.push(value),
                _ => point.orphans.push(value),
            }
        }
    }
    for _ in 0..next()? {
        let (segment, first, count) = (next()?, next()?, next()?);
        let mut owners = Vec::new();
        for _ in 0..count {
            owners.push((next()?, next()?));
        }
        point.parts.push((segment, first, owners));
    }
    if flags & 4 != 0 {
        for _ in 0..next()? {
            point.journaled_nodes.push((next()?, next()?));
        }
        let (count, words) = (next()?, next()?);
        for _ in 0..count {
            let segment = next()?;
            let entry: Option<Vec<u32>> = (0..4 + 2 * u64::from(words)).map(|_| next()).collect();
            point.journaled_usage.push((segment, entry?));
        }
    }
    point.orphans.sort_unstable();
    Some(point)
}

/// An entry of a directory.
pub(super) struct Named {
    pub(super) number: u32,
    pub(super) is_directory: bool,
    pub(super) name: Vec<u8>,
}

/// The names of a directory's block; what contradicts itself.
pub(super) fn named(bytes: &[u8], index: u32) -> Result<Vec<Named>, &'static str> {
    let used = |slot: usize| bytes[32 + slot / 8] >> (slot % 8) & 1 == 1;
    let (mut slot, mut all) = (0, Vec::new());
    while slot < 126 {
        if !used(slot) {
            slot += 1;
            continue;
        }
        let at = 64 + slot * 32;
        let (length, kind, slots) = (bytes[at + 8] as usize, bytes[at + 9], bytes[at + 10] as usize);
        if length == 0 || slots == 0 || slots != (length + 12).div_ceil(32) || slot + slots > 126 {
            return Err("a name takes slots that it does not need");
        }
        if (slot..slot + slots).any(|slot| !used(slot)) {
            return Err("a name takes slots that are free");
        }
        let name = bytes[at + 12..at + 12 + length].to_vec();
        if all.iter().any(|other: &Named| other.name == name) {
            return Err("a name is there twice");
        }
        if name == b"." || name == b".." || name.iter().any(|byte| *byte == 0 || *byte == b'/') {
            return Err("a name is none");
        }
        let hash = XxHash3_64::oneshot_with_seed(0x6469_7265, &name) as u32;
        let level = (index / 2 + 1).ilog2();
        let bucket = (1_u32 << level) - 1 + hash % (1 << level);
        if word(bytes, at + 4) != hash || index / 2 != bucket {
            return Err("a name is not where its hash says");
        }
        if !matches!(kind, 1 | 2) {
            return Err("a name has no kind");
        }
        all.push(Named { number: word(bytes, at), is_directory: kind == 2, name });
        slot += slots;
    }
    Ok(all)
}
