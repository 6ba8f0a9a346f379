//! The superblock: what was decided when the file system was made. It is the first block of segment 0, and is never written again.

use super::{Bad, Bytes, HEADER, Header, expect, get_u32, get_u64, hash, open, put_u32, put_u64, seal, zeroes};

pub(crate) const MAGIC: [u8; 4] = *b"ALFS";

/// The format that this code writes and reads.
pub const FORMAT: u32 = 2;

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
        seal(&mut block, 0, MAGIC, Header::default());
        block
    }

    /// Reads the block.
    ///
    /// # Errors
    /// It is none, of another format, or its numbers contradict each other.
    pub fn decode(block: &Bytes) -> Result<Superblock, Bad> {
        open(block, 0, MAGIC, "superblock of ALFS")?;
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
        let least = 3 + u64::from(self.map_segments) + u64::from(self.logs);
        if self.map_segments < 4 || u64::from(self.segments) <= least || u64::from(self.user_blocks) > blocks {
            return Err(Bad::Field("share of segments"));
        }
        Ok(())
    }

    /// Blocks at the end of each segment that say what the others are, as whole write units.
    pub const fn summary_blocks(&self) -> u32 {
        self.segment_blocks.div_ceil(super::summary::ENTRIES as u32 + 1).next_multiple_of(self.unit_blocks)
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
        self.segments.div_ceil(super::usage::ENTRIES as u32)
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
