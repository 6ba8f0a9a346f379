//! What a file system did, by kind.

use crate::core::log::Kind;
use crate::format::checkpoint::LOGS;

/// Counters of a file system since it was mounted, or since they were reset. Bytes are 4,096 times the blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Blocks of files that calls wrote to, each once for each call.
    pub written_blocks: u64,
    /// Times that a block of a file became dirty, by a call or by cleaning. A call that writes a dirty block adds nothing.
    pub dirtied_blocks: u64,
    /// Dirty blocks of files that were deleted before they were written.
    pub dropped_blocks: u64,
    /// Blocks of files that were written, without those that cleaning moved.
    pub data_blocks: u64,
    /// Of these, the ones that were written to the places that they had.
    pub in_place_blocks: u64,
    /// Blocks of files that cleaning moved.
    pub moved_blocks: u64,
    /// Blocks of directories that were written.
    pub directory_blocks: u64,
    /// Inodes and index blocks that were written.
    pub node_blocks: u64,
    /// Of the node and directory blocks, those that were written for cleaning alone.
    pub moved_metadata_blocks: u64,
    /// Blocks of the inode map that were written.
    pub map_blocks: u64,
    /// Of these, those that were written for cleaning alone.
    pub moved_map_blocks: u64,
    /// TIMB blocks that were written.
    pub table_blocks: u64,
    /// Blocks of the usage table that were written.
    pub usage_blocks: u64,
    /// Fsyncs that wrote nodes of a file, and no check-point.
    pub rolled_fsyncs: u64,
    /// Files that a mount went on with behind the check-point.
    pub rolled_files: u64,
    /// Blocks behind the check-point that the mount could not read: a cut tore them, or media lost them.
    pub unreadable_fsync_blocks: u64,
    /// Blocks among the check-points that the mount could not read.
    pub unreadable_checkpoint_blocks: u64,
    /// Check-points.
    pub checkpoints: u64,
    /// Their blocks.
    pub checkpoint_blocks: u64,
    /// Switches to the other check-point segment.
    pub checkpoint_switches: u64,
    /// Blocks of the journal that were written: descriptors, copies of blocks, revocations, commit blocks and its superblock.
    pub journal_blocks: u64,
    /// Blocks that were written to their places after their commit.
    pub home_blocks: u64,
    /// Blocks of summaries that were written.
    pub summary_blocks: u64,
    /// Blocks that filled up write units.
    pub padding_blocks: u64,
    /// Segments of data and nodes that were cleaned.
    pub cleaned_segments: u64,
    /// Valid blocks that they had.
    pub cleaned_valid_blocks: u64,
    /// Segments whose invalid blocks were written again (threaded logging).
    pub threaded_segments: u64,
    /// Segments of the inode map that were cleaned.
    pub cleaned_map_segments: u64,
    /// Segments that were trimmed.
    pub trimmed_segments: u64,
    /// Blocks that were trimmed, those of check-points among them.
    pub trimmed_blocks: u64,
    /// Blocks of files that were lost: they could not be read when they were to be moved.
    pub lost_blocks: u64,
    /// Blocks that reads of files needed.
    pub read_blocks: u64,
    /// Of these, those that were not in the cache.
    pub missed_blocks: u64,
    /// Blocks that were read from the drive, for whatever.
    pub loaded_blocks: u64,
    /// Blocks that were read ahead.
    pub ahead_blocks: u64,
    /// Calls that waited for a check-point or cleaning to make room.
    pub room_waits: u64,
    /// Calls that waited because too much was dirty.
    pub dirty_waits: u64,
}

impl Memory {
    /// Everything but the cache: what the paper's Table 2 counts for ALFS.
    pub const fn tables_bytes(&self) -> usize {
        self.table_bytes + self.list_bytes + self.number_bytes + self.segment_bytes + self.summary_bytes
    }
}

impl Metrics {
    /// All blocks that were written.
    pub const fn all_blocks(&self) -> u64 {
        self.data_blocks
            + self.moved_blocks
            + self.directory_blocks
            + self.node_blocks
            + self.map_blocks
            + self.table_blocks
            + self.usage_blocks
            + self.checkpoint_blocks
            + self.journal_blocks
            + self.home_blocks
            + self.summary_blocks
            + self.padding_blocks
    }

    /// Counts blocks of a kind that were written.
    pub(crate) const fn count(&mut self, kind: Kind, blocks: u64) {
        match kind {
            Kind::Data => self.data_blocks += blocks,
            Kind::MovedData => self.moved_blocks += blocks,
            Kind::Directory => self.directory_blocks += blocks,
            Kind::DirectoryNode | Kind::FileNode | Kind::UpperNode => self.node_blocks += blocks,
            Kind::Map => self.map_blocks += blocks,
            Kind::Table => self.table_blocks += blocks,
            Kind::Usage => self.usage_blocks += blocks,
        }
    }
}

/// Into what the device of a file system is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Segments of the device.
    pub segments: u64,
    /// Blocks of each.
    pub segment_blocks: u64,
    /// Of these, the ones for data and nodes.
    pub data_blocks: u64,
    /// Segments for the inode map.
    pub map_segments: u64,
    /// Blocks for data and nodes.
    pub user_blocks: u64,
    /// Inodes and index blocks that there can be, and the unused number 0.
    pub nodes: u64,
}

/// What a file system has at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Blocks in the cache.
    pub cached_blocks: u64,
    /// Dirty blocks of files.
    pub dirty_blocks: u64,
    /// Dirty nodes and blocks of directories.
    pub dirty_metadata_blocks: u64,
    /// Free segments.
    pub free_segments: u64,
    /// Valid blocks of data and nodes on the drive.
    pub valid_blocks: u64,
    /// Segments of each log that have valid blocks or are open. The last is that of the inode map; of two logs the first has data.
    pub log_segments: [u32; LOGS],
}

/// RAM of a file system, by table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The table of inode-map blocks, TIMB.
    pub table_bytes: usize,
    /// The lists of TIMB blocks and of blocks of the usage table.
    pub list_bytes: usize,
    /// A bit for each block of the inode map: whether it may have a free number.
    pub number_bytes: usize,
    /// The segments: state, valid blocks, commands and age of each, and which are free.
    pub segment_bytes: usize,
    /// Summaries of segments that are open or loose.
    pub summary_bytes: usize,
    /// Blocks in the cache, 4,096 bytes each.
    pub cached_blocks: usize,
    /// The most blocks that were in the cache.
    pub cached_blocks_max: usize,
}
