//! Metadata that has fixed places: which place of each block counts, what check-points have in place of blocks, and the summaries.

use super::decode::{Point, Shape, is_whole, point, word};
use super::{Begun, Check, bit, no_superblock};
use crate::error::MountError;
use crate::reader::Reader;

/// What a walk begins with.
pub(super) fn begin(reader: &mut Reader) -> Result<Begun, MountError> {
    let of = |block: &[u8]| Shape::of(block).filter(|shape| shape.areas.is_some());
    let (mut shape, mut lost) = (None, None);
    for block in 0..2 {
        match reader.block(block) {
            Ok(bytes) => shape = shape.or(of(&bytes[..])),
            Err(error @ MountError::Unreadable { .. }) => lost = lost.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let shape = shape.ok_or_else(|| lost.unwrap_or_else(no_superblock))?;
    let blocks = u64::from(shape.segment_blocks) * u64::from(shape.segments);
    let limits = [
        ("number of sectors at most", blocks * 8, reader.below.device().sectors()),
        ("limit of nodes", u64::from(shape.nodes), 2 * blocks + 512),
        ("limit of segments for metadata", shape.main.into(), shape.segments.into()),
    ];
    if let Some((what, expected, found)) = limits.into_iter().find(|(_, least, most)| least > most) {
        return Err(MountError::Device { what, found, expected });
    }
    if shape.entries() == 0 {
        return Err(no_superblock());
    }
    let (mut newest, mut unreadable): (Option<Point>, u64) = (None, 0);
    for segment in 1..3 {
        let first = segment * shape.segment_blocks;
        let Some(Ok(begin)) = reader.blocks(first, 1)?.pop() else {
            unreadable += 1;
            continue;
        };
        if !is_whole(&begin[..], shape.volume, b"CHPT") {
            continue;
        }
        let count = word(&begin[..], 16).min(shape.segment_blocks);
        let read = reader.blocks(first, count)?;
        unreadable += read.iter().filter(|block| block.is_err()).count() as u64;
        let bytes: Vec<&[u8]> =
            read.iter().map(|block| block.as_ref().map_or(&[0; 4096][..], |block| &block[..])).collect();
        let one = point(&bytes, shape.volume).map(|point| Point { block: first, ..point });
        newest = newest.into_iter().chain(one).max_by_key(|point| point.version);
    }
    let point = newest.ok_or(MountError::NoCheckpoint { unreadable })?;
    let written = vec![shape.segment_blocks; shape.segments as usize];
    Ok(Begun { shape, written, point, damaged: Vec::new(), unreadable })
}

/// Which place of a block counts, as words of a check-point say: 0 for none.
fn place(words: &[u32], part: u32) -> u32 {
    words.get(part as usize / 16).map_or(0, |word| word >> (2 * (part % 16)) & 3)
}

impl Shape {
    /// Words of four bytes of the bits of a segment.
    const fn words(&self) -> u32 {
        self.segment_blocks.div_ceil(64) * 2
    }

    /// Segments that a block of the usage table has.
    const fn entries(&self) -> u32 {
        (4096 - 32) / (16 + 4 * self.words())
    }
}

impl Check {
    fn area(&self, which: usize) -> u32 {
        self.shape.areas.map_or(0, |areas| areas[which])
    }

    pub(super) fn usage_in_area(&mut self, point: &Point) -> Result<(), MountError> {
        let (each, words) = (self.shape.entries(), self.shape.words());
        let parts = self.shape.segments.div_ceil(each);
        for part in 0..parts {
            let which = place(&point.usage, part);
            if which == 0 {
                continue;
            }
            let block = self.area(0) + (which - 1) * parts + part;
            let Some(bytes) = self.read(block)? else { continue };
            if which == 3 || !is_whole(&bytes[..], self.shape.volume, b"USAG") || word(&bytes[..], 12) != part {
                self.problem(block, format!("it is not block {part} of the usage table"));
                continue;
            }
            for segment in part * each..self.shape.segments.min((part + 1) * each) {
                let at = 32 + (segment % each * (16 + 4 * words)) as usize;
                let entry = (0..4 + words).map(|index| word(&bytes[..], at + 4 * index as usize)).collect();
                self.usage_entry(point, block, segment, entry);
            }
        }
        for (segment, entry) in &point.journaled_usage {
            if *segment < self.shape.main || *segment >= self.shape.segments || entry.len() as u32 != 4 + words {
                self.problem(point.block, format!("its journal has an entry of segment {segment}, which cannot be"));
                continue;
            }
            self.usage_entry(point, point.block, *segment, entry.clone());
        }
        // Segments of metadata have no entries of their own.
        (0..self.shape.main as usize).for_each(|segment| self.kinds[segment] = super::Kind::Fixed);
        self.logs(point);
        Ok(())
    }

    fn usage_entry(&mut self, point: &Point, block: u32, segment: u32, entry: Vec<u32>) {
        let journaled = point.journaled_usage.iter().any(|(of, _)| *of == segment);
        if journaled && block != point.block {
            return;
        }
        let (state, log) = (entry[1] as u8, (entry[1] >> 8) as u8);
        if state == 4 {
            self.problem(block, format!("segment {segment} is said to have its summary in check-points"));
        }
        self.segment(point, block, segment, (state, log, entry[0]));
        self.told_bits.insert(segment, entry[4..].to_vec());
    }

    pub(super) fn map_in_area(&mut self, point: &Point) -> Result<(), MountError> {
        self.map.journaled = point.journaled_nodes.iter().copied().collect();
        if point.journaled_nodes.iter().any(|(number, _)| *number >= self.shape.nodes) {
            self.problem(point.block, "its journal has a node that cannot be");
        }
        let (parts, mut used) = (self.shape.nodes.div_ceil(512), 0);
        for part in 0..parts {
            let which = place(&point.table, part);
            if which == 3 {
                self.problem(point.block, format!("it says no place of block {part} of the inode map"));
                continue;
            }
            let block = if which == 0 { point.block } else { self.area(1) + (which - 1) * parts + part };
            self.map.table[part as usize] = if which == 0 { 0 } else { block };
            let has_journaled = self.map.journaled.range(part * 512..(part + 1) * 512).next().is_some();
            if which != 0 || has_journaled {
                used += self.entries(point, part, block)?;
            } else if part < point.first_free {
                self.problem(point.block, format!("block {part} of the inode map has free numbers, it says otherwise"));
            }
        }
        self.nodes_used(point, used);
        Ok(())
    }

    /// What the blocks of a segment were written for, as its summary says.
    pub(super) fn owners_in_area(&mut self, segment: u32) -> Result<Vec<(u32, u32)>, MountError> {
        let parts = self.shape.segment_blocks.div_ceil(512);
        let mut owners = Vec::new();
        for part in 0..parts {
            let block = self.area(2) + segment * parts + part;
            match self.read(block)? {
                Some(bytes) => {
                    let entry = |entry: usize| (word(&bytes[..], 8 * entry), word(&bytes[..], 8 * entry + 4));
                    owners.extend((0..512).map(entry));
                }
                None => owners.resize(owners.len() + 512, (0, 0)),
            }
        }
        Ok(owners)
    }

    /// Bits of the usage table say of each block whether it is valid.
    pub(super) fn bits(&mut self, point: &Point) {
        let blocks = self.shape.segment_blocks;
        for (segment, words) in std::mem::take(&mut self.told_bits) {
            let is_told = |block: u32| words[block as usize / 32] >> (block % 32) & 1 == 1;
            let differs = |block: &u32| is_told(*block) != bit(&self.valid, segment * blocks + block);
            if let Some(block) = (0..blocks).find(differs) {
                let what = format!("its bit of block {block} of segment {segment} is wrong");
                self.problem(point.block, what);
            }
        }
    }
}
