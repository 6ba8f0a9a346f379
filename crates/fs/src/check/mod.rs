//! The check: it walks a device from its superblock to every node, and names each contradiction with its block.
//!
//! It decodes by itself (`decode.rs`) and trusts nothing that a mount computes. Its memory is bounded by the device: a bit for each
//! block, 3 bits for each node that there can be, TIMB, and some bytes for each segment. What it needs of a node again it reads again. It
//! follows no pointer twice, so no image keeps it busy for ever.
//!
//! ```text
//!   superblock -> check-point -> usage, TIMB -> inode map -> nodes -> index blocks, directories
//!   names -> links, parents, orphans;   addresses -> valid counts, summaries, pointers of the drive
//! ```

mod areas;
mod decode;
mod nodes;
mod walk;

use std::collections::BTreeMap;
use std::fmt;

use ssdlab_base::command_sets::segments::SegmentState;
use ssdlab_host::Device;

use crate::error::MountError;
use crate::journaling;
use crate::reader::Reader;
use decode::{Point, Shape, is_whole, point, word};
use nodes::{Map, Nodes, State};

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
    /// Blocks among the check-points that cannot be read: a cut tore them, or media lost them.
    pub unreadable_checkpoint_blocks: u64,
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
    nodes: Nodes,
    map: Map,
    /// Inodes that the check-point lists, in their order.
    listed: Vec<u32>,
    /// Bits of valid blocks that the usage table has, by segment, where it has any.
    told_bits: BTreeMap<u32, Vec<u32>>,
    found: Found,
}

/// Memory that a check takes at most on a device of so many blocks and segments, with so many nodes that there can be, in bytes: a bit for
/// each block, 3 bits for each node, 4 bytes for each block of the inode map, and 21 for each segment.
pub const fn memory_bytes(blocks: u64, nodes: u64, segments: u64) -> u64 {
    blocks / 8 + nodes * 3 / 8 + nodes / 512 * 4 + segments * 21
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
    let is_of_blocks = journaling::mount::fits(reader.below.device());
    if is_of_blocks && reader.begins_with(journaling::format::superblock::MAGIC) {
        let found = journaling::check::check(&mut reader);
        return (reader.below.into_device(), found);
    }
    match begin(&mut reader) {
        Ok(Begun { shape, written, point, damaged, unreadable }) => {
            let mut check = Check::new(reader, shape, written);
            check.found.unreadable_checkpoint_blocks = unreadable;
            for block in damaged {
                check.problem(block, "a check-point is not whole, and a later one follows");
            }
            let result = check.walk(&point);
            let found = check.found;
            (check.reader.below.into_device(), result.map(|()| found))
        }
        // The superblock may be lost, and have a copy.
        Err(error) => {
            let found =
                if is_of_blocks { journaling::check::check(&mut reader).map_err(|_| error) } else { Err(error) };
            (reader.below.into_device(), found)
        }
    }
}

/// What a walk begins with.
struct Begun {
    shape: Shape,
    /// Blocks of each segment that are written.
    written: Vec<u32>,
    /// The newest check-point with all parts of summaries.
    point: Point,
    /// Blocks of check-points that are damaged.
    damaged: Vec<u32>,
    /// Blocks among the check-points that cannot be read.
    unreadable: u64,
}

fn no_superblock() -> MountError {
    MountError::Superblock(crate::format::Bad::Magic("superblock of a file system"))
}

fn begin(reader: &mut Reader) -> Result<Begun, MountError> {
    if reader.below.device().segment_sectors().is_none() {
        return areas::begin(reader);
    }
    let (segments, told) = reader.report()?;
    if told.first().is_none_or(|segment| segment.written < 8) {
        return Err(no_superblock());
    }
    let block = reader.block(0)?;
    let shape = Shape::of(&block[..]).filter(|shape| shape.areas.is_none()).ok_or_else(no_superblock)?;
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
    let (mut newest, mut damaged, mut unreadable): (Option<Point>, Vec<u32>, u64) = (None, Vec::new(), 0);
    for segment in 1..3_u32 {
        let count = written[segment as usize].min(shape.segment_blocks);
        let blocks = reader.blocks(segment * shape.segment_blocks, count)?;
        unreadable += blocks.iter().filter(|block| block.is_err()).count() as u64;
        let bytes: Vec<&[u8]> =
            blocks.iter().map(|block| block.as_ref().map_or(&[0; 4096][..], |block| &block[..])).collect();
        let unit = shape.unit_blocks as usize;
        let (mut at, mut last): (usize, Option<Point>) = (0, None);
        while let Some(mut one) = bytes.get(at..).and_then(|rest| point(rest, shape.volume)) {
            one.block = segment * shape.segment_blocks + at as u32;
            at += (one.blocks as usize).next_multiple_of(unit);
            if let Some(before) = last.take().filter(|_| !one.is_first) {
                let own = std::mem::replace(&mut one.parts, before.parts);
                one.parts.extend(own);
            }
            last = Some(one);
        }
        // What a crash cut off is the last of its segment.
        let later = (at / unit + 1..).map(|next| next * unit).take_while(|next| *next < bytes.len());
        if later.into_iter().any(|next| point(&bytes[next..], shape.volume).is_some()) {
            damaged.push(segment * shape.segment_blocks + at as u32);
        }
        if let Some(last) = last
            && newest.as_ref().is_none_or(|newest| last.version > newest.version)
        {
            newest = Some(last);
        }
    }
    let point = newest.ok_or(MountError::NoCheckpoint { unreadable })?;
    Ok(Begun { shape, written, point, damaged, unreadable })
}

impl Check {
    fn new(reader: Reader, shape: Shape, written: Vec<u32>) -> Check {
        let segments = shape.segments as usize;
        Check {
            reader,
            written,
            kinds: vec![Kind::Free; segments],
            told: vec![0; segments],
            counted: vec![0; segments],
            mixed: vec![0; segments],
            valid: bits(shape.segment_blocks * shape.segments),
            nodes: Nodes::new(shape.nodes),
            map: Map::new(&shape),
            listed: Vec::new(),
            told_bits: BTreeMap::new(),
            shape,
            found: Found::default(),
        }
    }

    fn problem(&mut self, block: u32, what: impl Into<String>) {
        if self.found.problems.len() < MOST {
            self.found.problems.push(Problem { block, what: what.into() });
        }
    }

    /// Whether no more problems are told.
    fn is_full(&self) -> bool {
        self.found.problems.len() == MOST
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

    /// Where a node is; 0 if it is nowhere.
    fn place(&mut self, number: u32) -> Result<u32, MountError> {
        if self.nodes.get(number) == State::Absent {
            return Ok(0);
        }
        if let Some(place) = self.map.kept(number) {
            return Ok(place);
        }
        let part = number / 512;
        let Some(bytes) = self.read_map(part)? else { return Ok(0) };
        self.map.keep(part, &bytes[..]);
        Ok(self.map.kept(number).unwrap_or(0))
    }

    /// Reads a block of the inode map; one that was never written has no node.
    fn read_map(&mut self, part: u32) -> Result<Option<Box<crate::format::Bytes>>, MountError> {
        match self.map.table[part as usize] {
            0 => Ok(Some(crate::format::zeroes())),
            block => self.read(block),
        }
    }

    fn segment_of(&self, address: u32) -> u32 {
        address / self.shape.segment_blocks
    }

    /// Notes that `from` says of a block that it is valid, and what for.
    fn note(&mut self, from: u32, address: u32, owner: (u32, u32), is_map: bool) -> bool {
        let segment = self.segment_of(address);
        if address == 0 || segment < self.shape.main || segment >= self.shape.segments {
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
        self.listed.clone_from(&point.orphans);
        if self.shape.areas.is_some() {
            self.usage_in_area(point)?;
            self.map_in_area(point)?;
        } else {
            self.usage(point)?;
            self.map(point)?;
        }
        self.nodes(point)?;
        self.directories()?;
        self.links()?;
        self.summaries(point)?;
        self.counts(point);
        self.bits(point);
        Ok(())
    }

    fn usage(&mut self, point: &Point) -> Result<(), MountError> {
        let parts = self.shape.segments.div_ceil(254);
        if point.usage.len() as u32 != parts {
            self.problem(
                point.block,
                format!("the check-point names {} usage blocks, expected {parts}", point.usage.len()),
            );
        }
        for (part, address) in (0..parts).zip(&point.usage) {
            let (block, end) = (*address, self.shape.segments.min((part + 1) * 254));
            if self.segment_of(block) >= self.shape.segments {
                self.problem(point.block, format!("it names usage block {block}, which is not there"));
                continue;
            }
            let Some(bytes) = self.read(block)? else { continue };
            if !is_whole(&bytes[..], self.shape.volume, b"USAG") || word(&bytes[..], 12) != part {
                self.problem(block, format!("it is not block {part} of the usage table"));
                continue;
            }
            for segment in part * 254..end {
                let at = 32 + 16 * (segment % 254) as usize;
                self.segment(point, block, segment, (bytes[at + 4], bytes[at + 5], word(&bytes[..], at)));
            }
        }
        for address in point.usage.iter().filter(|address| **address != 0) {
            self.note(point.block, *address, (0, 0), true);
        }
        self.logs(point);
        Ok(())
    }

    /// What an entry of the usage table in a block says of a segment: its state, its log and its valid blocks.
    fn segment(&mut self, point: &Point, block: u32, segment: u32, (state, log, valid): (u8, u8, u32)) {
        // The block of the usage table itself may have filled up the segment of the map.
        let is_its = |(open, _): &(u32, u32)| *open == segment || (log == 6 && *open == 0);
        if state == 2 && !point.logs.get(log as usize).is_some_and(is_its) {
            self.problem(block, format!("segment {segment} is said to be open for log {log}, which writes another"));
        }
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
        if (kind == Kind::Fixed) != (segment < self.shape.main) {
            self.problem(block, format!("segment {segment} is said to be {kind:?}"));
        }
        (self.kinds[segment as usize], self.told[segment as usize]) = (kind, valid);
    }

    /// Each log goes on in a segment that is open for it.
    fn logs(&mut self, point: &Point) {
        for (log, (segment, next)) in point.logs.iter().enumerate().filter(|(_, (segment, _))| *segment != 0) {
            let kind = self.kinds.get(*segment as usize);
            let fits = if log == 6 { kind == Some(&Kind::Map) } else { kind == Some(&Kind::Log(false)) };
            if !fits || *next > self.shape.segment_blocks {
                let what = format!("log {log} goes on at block {next} of segment {segment}, which is not open for it");
                self.problem(point.block, what);
            }
        }
    }

    fn map(&mut self, point: &Point) -> Result<(), MountError> {
        let (maps, mut used) = (self.shape.nodes.div_ceil(512), 0_u32);
        if point.table.len() as u32 != maps.div_ceil(1024) {
            self.problem(point.block, format!("it names {} TIMB blocks", point.table.len()));
        }
        for (index, table) in (0_u32..).zip(&point.table).filter(|(_, table)| **table != 0) {
            if !self.note(point.block, *table, (0, 0), true) {
                continue;
            }
            let Some(bytes) = self.read(*table)? else { continue };
            for part in index * 1024..maps.min((index + 1) * 1024) {
                let address = word(&bytes[..], 4 * (part % 1024) as usize);
                if address == 0 || !self.note(*table, address, (0, 0), true) {
                    continue;
                }
                self.map.table[part as usize] = address;
                used += self.entries(point, part, address)?;
            }
        }
        self.nodes_used(point, used);
        Ok(())
    }

    /// The entries of a block of the map. How many nodes it has.
    fn entries(&mut self, point: &Point, part: u32, address: u32) -> Result<u32, MountError> {
        let Some(bytes) = self.read_map(part)? else { return Ok(0) };
        let is_written = self.map.table[part as usize] != 0;
        self.map.keep(part, &bytes[..]);
        let places: Vec<u32> = (0..512).map(|entry| self.map.kept(part * 512 + entry).unwrap_or(0)).collect();
        let is_free = |entry: u32| places[entry as usize] == 0 && part * 512 + entry > 0;
        if part < point.first_free && (0..512).any(is_free) {
            let what = format!("it has free numbers, the check-point says block {}", point.first_free);
            self.problem(address, format!("{what} of the inode map has the first ones"));
        }
        let mut used = 0;
        for (entry, place) in (0_u32..).zip(places) {
            let number = part * 512 + entry;
            if is_written && word(&bytes[..], 8 * entry as usize) != number {
                self.problem(address, format!("entry {entry} is not that of node {number}"));
                break;
            }
            if place == 0 || number >= self.shape.nodes {
                continue;
            }
            used += 1;
            if self.note(address, place, (number, u32::MAX), false) {
                self.nodes.set(number, State::Placed);
            }
        }
        Ok(used)
    }

    fn nodes_used(&mut self, point: &Point, used: u32) {
        if used != point.nodes_used {
            self.problem(point.block, format!("the inode map has {used} nodes, it says {}", point.nodes_used));
        }
        self.found.nodes = used.into();
    }

    /// Summaries say of each valid block what it is for.
    fn summaries(&mut self, point: &Point) -> Result<(), MountError> {
        let (blocks, end) = (self.shape.segment_blocks, self.shape.segment_blocks - self.shape.summary_blocks());
        for segment in self.shape.main..self.shape.segments {
            let Kind::Log(is_sealed) = self.kinds[segment as usize] else { continue };
            if self.counted[segment as usize] == 0 {
                continue;
            }
            let mut owners: Vec<(u32, u32)> = Vec::new();
            if is_sealed && self.shape.areas.is_some() {
                owners = self.owners_in_area(segment)?;
            } else if is_sealed {
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

    fn counts(&mut self, point: &Point) {
        for segment in self.shape.main..self.shape.segments {
            let at = segment as usize;
            let (kind, told, counted) = (self.kinds[at], self.told[at], self.counted[at]);
            if !matches!(kind, Kind::Map) && told != counted {
                let listed = if self.shape.areas.is_some() { None } else { point.usage.get(at / 254).copied() };
                let block = listed.unwrap_or(point.block);
                let what = format!("it says {told} valid blocks of segment {segment}, the walk found {counted}");
                self.problem(block, what);
            }
        }
    }
}
