//! The superblock: what was decided when the file system was made. It is the first block of segment 0, and is never written again.
//!
//! Where metadata has fixed places ([`Areas`]), block 1 is a copy of it.

use super::{Bad, Bytes, HEADER, Header, expect, get_u32, get_u64, hash, open, put_u32, put_u64, seal, zeroes};

pub(crate) const MAGIC: [u8; 4] = *b"ALFS";
pub(crate) const AREAS_MAGIC: [u8; 4] = *b"LFSS";

/// The format that this code writes and reads.
pub const FORMAT: u32 = 2;

/// Fixed places of metadata that is overwritten (F2FS, section 2.1). Blocks of the usage table (SIT) and of the node map (NAT) have two
/// places each, and a check-point says which one has the newest; its own two places are segments 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// The first block of the usage table: all its blocks, and all of them again.
    pub usage: u32,
    /// The first block of the node map: all its blocks, and all of them again.
    pub map: u32,
    /// The first block of the summaries (SSA): those of all segments, in their order.
    pub summaries: u32,
    /// The first segment for data and nodes.
    pub main: u32,
}

/// What is fixed when a file system is made. Counts are of blocks of 4 KB unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Number that tells apart file systems on one drive.
    pub volume: u64,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Segments of the drive.
    pub segments: u32,
    /// Blocks of a write unit of the drive, at least 1.
    pub unit_blocks: u32,
    /// Inodes and index blocks that there can be, and the unused number 0.
    pub nodes: u32,
    /// Segments for the inode map, its table and the usage table.
    pub map_segments: u32,
    /// Blocks for data and nodes.
    pub user_blocks: u32,
    /// Logs for data and nodes: 2, 4 or 6.
    pub logs: u32,
    /// Where metadata is overwritten; `None` where it is appended, and summaries are at the ends of segments.
    pub areas: Option<Areas>,
}

impl Superblock {
    /// The block.
    pub fn encode(&self) -> Box<Bytes> {
        let mut block = zeroes();
        put_u32(&mut *block, 32, FORMAT);
        put_u64(&mut *block, 40, self.volume);
        let fields = [
            self.segment_blocks,
            self.segments,
            self.unit_blocks,
            self.nodes,
            self.map_segments,
            self.user_blocks,
            self.logs,
        ];
        fields.iter().enumerate().for_each(|(index, field)| put_u32(&mut *block, 48 + 4 * index, *field));
        if let Some(Areas { usage, map, summaries, main }) = self.areas {
            let areas = [usage, map, summaries, main];
            areas.iter().enumerate().for_each(|(index, field)| put_u32(&mut *block, 76 + 4 * index, *field));
        }
        let magic = if self.areas.is_some() { AREAS_MAGIC } else { MAGIC };
        seal(&mut block, 0, magic, Header::default());
        block
    }

    /// Reads the block of a file system on segments.
    ///
    /// # Errors
    /// It is none, of another format, or its numbers contradict each other.
    pub fn decode(block: &Bytes) -> Result<Superblock, Bad> {
        open(block, 0, MAGIC, "superblock of ALFS")?;
        Superblock::read(block, false)
    }

    /// Reads the block of a file system whose metadata has fixed places.
    ///
    /// # Errors
    /// It is none, of another format, or its numbers contradict each other.
    pub fn decode_with_areas(block: &Bytes) -> Result<Superblock, Bad> {
        open(block, 0, AREAS_MAGIC, "superblock of LFS")?;
        Superblock::read(block, true)
    }

    fn read(block: &Bytes, has_areas: bool) -> Result<Superblock, Bad> {
        expect("format", get_u32(block, HEADER), FORMAT)?;
        let field = |index: usize| get_u32(block, 48 + 4 * index);
        let superblock = Superblock {
            volume: get_u64(block, 40),
            segment_blocks: field(0),
            segments: field(1),
            unit_blocks: field(2),
            nodes: field(3),
            map_segments: field(4),
            user_blocks: field(5),
            logs: field(6),
            areas: has_areas.then(|| Areas { usage: field(7), map: field(8), summaries: field(9), main: field(10) }),
        };
        superblock.check()?;
        Ok(superblock)
    }

    fn check(&self) -> Result<(), Bad> {
        let blocks = u64::from(self.segment_blocks) * u64::from(self.segments);
        let unit = self.unit_blocks;
        if unit == 0 || self.segment_blocks == 0 || !self.segment_blocks.is_multiple_of(unit) {
            return Err(Bad::Field("segment"));
        }
        if self.segment_blocks <= self.summary_blocks() || blocks >= u64::from(u32::MAX) {
            return Err(Bad::Field("number of blocks"));
        }
        if self.nodes < 512 || !self.nodes.is_multiple_of(512) {
            return Err(Bad::Field("number of nodes"));
        }
        if !matches!(self.logs, 2 | 4 | 6) {
            return Err(Bad::Field("number of logs"));
        }
        if let Some(areas) = self.areas {
            return self.check_areas(areas);
        }
        let least = 3 + u64::from(self.map_segments) + u64::from(self.logs);
        if self.map_segments < 4 || u64::from(self.segments) <= least || u64::from(self.user_blocks) > blocks {
            return Err(Bad::Field("share of segments"));
        }
        Ok(())
    }

    fn check_areas(&self, areas: Areas) -> Result<(), Bad> {
        if self.usage_entries() == 0 || self.map_segments != 0 || self.unit_blocks != 1 {
            return Err(Bad::Field("segment"));
        }
        let end = |first: u32, blocks: u64| u64::from(first) + blocks;
        let main = u64::from(areas.main) * u64::from(self.segment_blocks);
        let summaries = u64::from(self.segments) * u64::from(self.summary_parts());
        let follow = areas.usage >= 3 * self.segment_blocks
            && end(areas.usage, 2 * u64::from(self.usage_blocks())) <= u64::from(areas.map)
            && end(areas.map, 2 * u64::from(self.map_blocks())) <= u64::from(areas.summaries)
            && end(areas.summaries, summaries) <= main;
        if !follow {
            return Err(Bad::Field("order of areas"));
        }
        let least = u64::from(areas.main) + u64::from(self.logs);
        if u64::from(self.segments) <= least || u64::from(self.user_blocks) > u64::from(self.blocks()) - main {
            return Err(Bad::Field("share of segments"));
        }
        Ok(())
    }

    /// The first segment for data and nodes.
    pub const fn first_segment(&self) -> u32 {
        match self.areas {
            Some(areas) => areas.main,
            None => 3,
        }
    }

    /// Blocks at the end of each segment that say what the others are, as whole write units; none where these have an area of their own.
    pub const fn summary_blocks(&self) -> u32 {
        if self.areas.is_some() {
            return 0;
        }
        self.segment_blocks.div_ceil(super::summary::ENTRIES as u32 + 1).next_multiple_of(self.unit_blocks)
    }

    /// Blocks of the summary of a segment.
    pub const fn summary_parts(&self) -> u32 {
        match self.areas {
            Some(_) => self.segment_blocks.div_ceil(super::summary::PLAIN_ENTRIES as u32),
            None => self.summary_blocks(),
        }
    }

    /// Entries of a block of a summary.
    pub const fn summary_entries(&self) -> usize {
        if self.areas.is_some() { super::summary::PLAIN_ENTRIES } else { super::summary::ENTRIES }
    }

    /// The block that has part `part` of the summary of a segment.
    pub const fn summary_address(&self, segment: u32, part: u32) -> u32 {
        match self.areas {
            Some(areas) => areas.summaries + segment * self.summary_parts() + part,
            None => segment * self.segment_blocks + self.data_blocks() + part,
        }
    }

    /// Segments that a block of the usage table has entries of.
    pub const fn usage_entries(&self) -> u32 {
        match self.areas {
            Some(_) => super::usage::entries_with_bits(self.segment_blocks),
            None => super::usage::ENTRIES as u32,
        }
    }

    /// Blocks of a segment for data and nodes.
    pub const fn data_blocks(&self) -> u32 {
        self.segment_blocks - self.summary_blocks()
    }

    /// Blocks of the inode map.
    pub const fn map_blocks(&self) -> u32 {
        self.nodes.div_ceil(super::map::ENTRIES as u32)
    }

    /// Blocks of the table of inode-map blocks.
    pub const fn table_blocks(&self) -> u32 {
        self.map_blocks().div_ceil(super::map::TABLE_ENTRIES as u32)
    }

    /// Blocks of the usage table.
    pub const fn usage_blocks(&self) -> u32 {
        self.segments.div_ceil(self.usage_entries())
    }

    /// Place 1 or 2 of a block of the usage table that is overwritten.
    ///
    /// # Panics
    /// The file system has no areas.
    pub const fn usage_place(&self, part: u32, place: u32) -> u32 {
        self.fixed().usage + (place - 1) * self.usage_blocks() + part
    }

    /// Place 1 or 2 of a block of the node map that is overwritten.
    ///
    /// # Panics
    /// The file system has no areas.
    pub const fn map_place(&self, part: u32, place: u32) -> u32 {
        self.fixed().map + (place - 1) * self.map_blocks() + part
    }

    const fn fixed(&self) -> Areas {
        self.areas.expect("metadata has fixed places")
    }

    /// Segments of the main area that files cannot have.
    pub const fn kept_segments(&self) -> u32 {
        self.segments - self.first_segment() - self.user_blocks / self.segment_blocks
    }

    /// All blocks of the drive.
    pub const fn blocks(&self) -> u32 {
        self.segment_blocks * self.segments
    }

    /// A number that differs for file systems whose numbers differ.
    pub fn volume_of(&self, seed: u64) -> u64 {
        let mut bytes = Superblock { volume: 0, ..*self }.encode();
        put_u64(&mut *bytes, 8, seed);
        hash(seed, &bytes[..]) | 1
    }
}
