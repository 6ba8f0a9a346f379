//! The check: it walks a device from its superblock to every node, and names each contradiction with its block.
//!
//! It decodes by itself (`decode.rs`) and trusts nothing that a mount computes. Its memory is bounded by the device: a bit for each
//! block, 12 bytes for each node that there can be, and some for each segment. It follows no pointer twice, so no image keeps it busy for ever.
//!
//! ```text
//!   superblock -> check-point -> usage, TIMB -> inode map -> nodes -> index blocks, directories
//!   names -> links, parents, orphans;   addresses -> valid counts, summaries, pointers of the drive
//! ```

mod decode;
mod walk;

use std::fmt;

use ssdlab_base::command_sets::segments::SegmentState;
use ssdlab_host::Device;

use crate::error::MountError;
use crate::reader::Reader;
use decode::{Point, Shape, is_whole, point, word};

/// Most problems that a check tells.
const MOST: usize = 1000;

/// A contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The block that has it.
    pub block: u32,
    /// What it is, as a sentence.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}: {}", self.block, self.what)
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Contradictions, a thousand at most.
    pub problems: Vec<Problem>,
    /// Version of the check-point that was walked.
    pub version: u64,
    /// Files that have a name.
    pub files: u64,
    /// Directories that have a name, and the root.
    pub directories: u64,
    /// Inodes without a name, which a mount frees.
    pub orphans: u64,
    /// Blocks of data.
    pub data_blocks: u64,
    /// Inodes and index blocks.
    pub nodes: u64,
}

/// A kind of segment, as the usage table says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Free,
    Fixed,
    /// Data and nodes: whether its summary is at its end.
    Log(bool),
    Map,
}

/// Everything that a walk notes.
struct Check {
    reader: Reader,
    shape: Shape,
    written: Vec<u32>,
    kinds: Vec<Kind>,
    told: Vec<u32>,
    counted: Vec<u32>,
    /// By segment, a mix of addresses and owners of its valid blocks.
    mixed: Vec<u64>,
    valid: Vec<u64>,
    /// By node: where it is, which directory names it, and the parent that a directory says.
    places: Vec<u32>,
    named_by: Vec<u32>,
    parents: Vec<u32>,
    is_inode: Vec<u64>,
    is_directory: Vec<u64>,
    is_reached: Vec<u64>,
    found: Found,
}

fn bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn set(bits: &mut [u64], at: u32) {
    bits[at as usize / 64] |= 1 << (at % 64);
}

fn bits(count: u32) -> Vec<u64> {
    vec![0; count as usize / 64 + 1]
}

/// A number that differs for blocks of other owners or addresses.
fn mix(address: u32, owner: (u32, u32)) -> u64 {
    let mut value =
        u64::from(address).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(owner.0) << 32 | u64::from(owner.1));
    value = (value ^ value >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 29
}

/// Checks the file system on a device that nothing else uses. The device comes back as it was.
///
/// # Errors
/// There is nothing to walk: the device has no segments, no superblock, or no whole check-point; with the reason.
pub fn check(device: Box<dyn Device>) -> (Box<dyn Device>, Result<Found, MountError>) {
    let mut reader = Reader::new(device);
    match begin(&mut reader) {
        Ok((shape, written, point)) => {
            let mut check = Check::new(reader, shape, written);
            let result = check.walk(&point);
            let found = check.found;
            (check.reader.below.into_device(), result.map(|()| found))
        }
        Err(error) => (reader.below.into_device(), Err(error)),
    }
}

/// The superblock, what is written of each segment, and the newest check-point with all parts of summaries.
fn begin(reader: &mut Reader) -> Result<(Shape, Vec<u32>, Point), MountError> {
    let (segments, told) = reader.report()?;
    let no_superblock = || MountError::Superblock(crate::format::Bad::Magic("superblock of ALFS"));
    if told.first().is_none_or(|segment| segment.written < 8) {
        return Err(no_superblock());
    }
    let block = reader.block(0)?;
    let shape = Shape::of(&block[..]).ok_or_else(no_superblock)?;
    let blocks = u64::from(shape.segment_blocks) * u64::from(shape.segments);
    let pairs = [
        ("number of segments", segments.count, u64::from(shape.segments)),
        ("sectors of a segment", segments.sectors, u64::from(shape.segment_blocks) * 8),
        ("blocks of a write unit", segments.write_unit.div_ceil(8).max(1), u64::from(shape.unit_blocks)),
        // Numbers of nodes are bounded, or the walk's memory would not be.
        ("limit of nodes", u64::from(shape.nodes).max(2 * blocks + 512), 2 * blocks + 512),
    ];
    if let Some((what, found, expected)) = pairs.into_iter().find(|(_, found, expected)| found != expected) {
        return Err(MountError::Device { what, found, expected });
    }
    if shape.summary_blocks() >= shape.segment_blocks {
        return Err(no_superblock());
    }
    let written: Vec<u32> = told
        .iter()
        .map(|segment| if segment.state == SegmentState::Free { 0 } else { (segment.written / 8) as u32 })
        .collect();
    let mut newest: Option<Point> = None;
    for segment in 1..3_u32 {
        let count = written[segment as usize].min(shape.segment_blocks);
        let blocks = reader.blocks(segment * shape.segment_blocks, count)?;
        let bytes: Vec<&[u8]> =
            blocks.iter().map(|block| block.as_ref().map_or(&[0; 4096][..], |block| &block[..])).collect();
        let (mut at, mut last): (usize, Option<Point>) = (0, None);
        while let Some(mut one) = bytes.get(at..).and_then(|rest| point(rest, shape.volume)) {
            at += (one.blocks as usize).next_multiple_of(shape.unit_blocks as usize);
            if let Some(before) = last.take().filter(|_| !one.is_first) {
                let own = std::mem::replace(&mut one.parts, before.parts);
                one.parts.extend(own);
            }
            last = Some(one);
        }
        if let Some(last) = last
            && newest.as_ref().is_none_or(|newest| last.version > newest.version)
        {
            newest = Some(last);
        }
    }
    Ok((shape, written, newest.ok_or(MountError::NoCheckpoint)?))
}

impl Check {
    fn new(reader: Reader, shape: Shape, written: Vec<u32>) -> Check {
        let (segments, nodes) = (shape.segments as usize, shape.nodes as usize);
        Check {
            reader,
            written,
            kinds: vec![Kind::Free; segments],
            told: vec![0; segments],
            counted: vec![0; segments],
            mixed: vec![0; segments],
            valid: bits(shape.segment_blocks * shape.segments),
            places: vec![0; nodes],
            named_by: vec![0; nodes],
            parents: vec![0; nodes],
            is_inode: bits(shape.nodes),
            is_directory: bits(shape.nodes),
            is_reached: bits(shape.nodes),
            shape,
            found: Found::default(),
        }
    }

    fn problem(&mut self, block: u32, what: impl Into<String>) {
        if self.found.problems.len() < MOST {
            self.found.problems.push(Problem { block, what: what.into() });
        }
    }

    /// Reads a block; one that cannot be read is a problem.
    fn read(&mut self, block: u32) -> Result<Option<Box<crate::format::Bytes>>, MountError> {
        match self.reader.block(block) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(MountError::Unreadable { status, .. }) => {
                self.problem(block, format!("it cannot be read: {status:?}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn segment_of(&self, address: u32) -> u32 {
        address / self.shape.segment_blocks
    }

    /// Notes that `from` says of a block that it is valid, and what for.
    fn note(&mut self, from: u32, address: u32, owner: (u32, u32), is_map: bool) -> bool {
        let segment = self.segment_of(address);
        if address == 0 || segment < 3 || segment >= self.shape.segments {
            self.problem(from, format!("it names block {address}, which is no place for it"));
            return false;
        }
        let (kind, within) = (self.kinds[segment as usize], address % self.shape.segment_blocks);
        let fits = if is_map { kind == Kind::Map } else { matches!(kind, Kind::Log(_)) };
        if !fits {
            self.problem(from, format!("it names block {address} in segment {segment}, which is for something else"));
            return false;
        }
        if within >= self.written[segment as usize] {
            self.problem(from, format!("it names block {address}, which is not written"));
            return false;
        }
        if bit(&self.valid, address) {
            self.problem(from, format!("it names block {address}, which belongs to something else, too"));
            return false;
        }
        set(&mut self.valid, address);
        self.counted[segment as usize] += 1;
        self.mixed[segment as usize] ^= mix(address, owner);
        true
    }

    fn walk(&mut self, point: &Point) -> Result<(), MountError> {
        self.found.version = point.version;
        self.usage(point)?;
        self.map(point)?;
        self.nodes(point)?;
        self.directories()?;
        self.links(point);
        self.summaries(point)?;
        self.counts();
        Ok(())
    }

    fn usage(&mut self, point: &Point) -> Result<(), MountError> {
        let parts = self.shape.segments.div_ceil(254);
        if point.usage.len() as u32 != parts {
            self.problem(0, format!("the check-point names {} usage blocks, expected {parts}", point.usage.len()));
        }
        for (part, address) in (0..parts).zip(&point.usage) {
            let (block, end) = (*address, self.shape.segments.min((part + 1) * 254));
            if self.segment_of(block) >= self.shape.segments {
                self.problem(0, format!("the check-point names usage block {block}, which is not there"));
                continue;
            }
            let Some(bytes) = self.read(block)? else { continue };
            if !is_whole(&bytes[..], self.shape.volume, b"USAG") || word(&bytes[..], 12) != part {
                self.problem(block, format!("it is not block {part} of the usage table"));
                continue;
            }
            for segment in part * 254..end {
                let at = 32 + 16 * (segment % 254) as usize;
                let (state, log, valid) = (bytes[at + 4], bytes[at + 5], word(&bytes[..], at));
                let kind = match (state, log) {
                    (0, _) => Kind::Free,
                    (1, _) => Kind::Fixed,
                    (2 | 3, 6) => Kind::Map,
                    (3, 0..6) => Kind::Log(true),
                    (2 | 4, 0..6) => Kind::Log(false),
                    _ => {
                        self.problem(block, format!("segment {segment} has the state {state} and the log {log}"));
                        Kind::Free
                    }
                };
                if (kind == Kind::Fixed) != (segment < 3) {
                    self.problem(block, format!("segment {segment} is said to be {kind:?}"));
                }
                (self.kinds[segment as usize], self.told[segment as usize]) = (kind, valid);
            }
        }
        for address in point.usage.iter().filter(|address| **address != 0) {
            self.note(0, *address, (0, 0), true);
        }
        Ok(())
    }

    fn map(&mut self, point: &Point) -> Result<(), MountError> {
        let (maps, mut used) = (self.shape.nodes.div_ceil(512), 0_u32);
        if point.table.len() as u32 != maps.div_ceil(1024) {
            self.problem(0, format!("the check-point names {} TIMB blocks", point.table.len()));
        }
        for (index, table) in (0_u32..).zip(&point.table).filter(|(_, table)| **table != 0) {
            if !self.note(0, *table, (0, 0), true) {
                continue;
            }
            let Some(bytes) = self.read(*table)? else { continue };
            for part in index * 1024..maps.min((index + 1) * 1024) {
                let address = word(&bytes[..], 4 * (part % 1024) as usize);
                if address == 0 || !self.note(*table, address, (0, 0), true) {
                    continue;
                }
                let Some(entries) = self.read(address)? else { continue };
                for entry in 0..512_u32 {
                    let (number, place) = (part * 512 + entry, word(&entries[..], 8 * entry as usize + 4));
                    if word(&entries[..], 8 * entry as usize) != number {
                        self.problem(address, format!("entry {entry} is not that of node {number}"));
                        break;
                    }
                    if place == 0 || number >= self.shape.nodes {
                        continue;
                    }
                    used += 1;
                    if self.note(address, place, (number, u32::MAX), false) {
                        self.places[number as usize] = place;
                    }
                }
            }
        }
        if used != point.nodes_used {
            self.problem(0, format!("the inode map has {used} nodes, the check-point says {}", point.nodes_used));
        }
        self.found.nodes = used.into();
        Ok(())
    }

    /// Summaries say of each valid block what it is for.
    fn summaries(&mut self, point: &Point) -> Result<(), MountError> {
        let (blocks, end) = (self.shape.segment_blocks, self.shape.segment_blocks - self.shape.summary_blocks());
        for segment in 3..self.shape.segments {
            let Kind::Log(is_sealed) = self.kinds[segment as usize] else { continue };
            if self.counted[segment as usize] == 0 {
                continue;
            }
            let mut owners: Vec<(u32, u32)> = Vec::new();
            if is_sealed {
                for part in 0..end.div_ceil(508) {
                    let block = segment * blocks + end + part;
                    let Some(bytes) = self.read(block)? else { continue };
                    let is_it = is_whole(&bytes[..], self.shape.volume, b"SUMM");
                    if !is_it || word(&bytes[..], 12) != segment || word(&bytes[..], 16) != part {
                        self.problem(block, format!("it is not part {part} of the summary of segment {segment}"));
                        continue;
                    }
                    let entry = |entry: usize| (word(&bytes[..], 32 + 8 * entry), word(&bytes[..], 36 + 8 * entry));
                    owners.extend((0..508).map(entry));
                }
            } else {
                for (_, first, part) in point.parts.iter().filter(|(of, ..)| *of == segment) {
                    owners.resize(*first as usize, (0, 0));
                    owners.extend(part);
                }
            }
            let mut mixed = 0;
            for (block, owner) in (segment * blocks..segment * blocks + end).zip(&owners) {
                if bit(&self.valid, block) {
                    mixed ^= mix(block, *owner);
                }
            }
            if mixed != self.mixed[segment as usize] {
                let block = segment * blocks + end;
                self.problem(block, format!("the summary of segment {segment} names other owners than the inodes"));
            }
        }
        Ok(())
    }

    fn counts(&mut self) {
        for segment in 3..self.shape.segments {
            let at = segment as usize;
            let (kind, told, counted) = (self.kinds[at], self.told[at], self.counted[at]);
            if !matches!(kind, Kind::Map) && told != counted {
                let block = segment * self.shape.segment_blocks;
                self.problem(block, format!("the usage table says {told} valid blocks, the walk found {counted}"));
            }
        }
    }
}
