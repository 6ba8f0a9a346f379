//! The segments in a snapshot. What OOB areas say is in the snapshot of the chips.

use std::io::{self, Read, Write};

use ssdlab_flash::{BlockId, Ppn};

use super::trims::Held;
use super::{Aftl, Closed, Dead};
use crate::media::{Media, Place};

impl Aftl {
    pub(super) fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut words: Vec<u32> = self.map.iter().map(|block| block.0).collect();
        words.extend(&self.written);
        words.extend(self.generations.iter().map(|generation| u32::from(*generation)));
        words.push(self.closed.len() as u32);
        for (segment, Closed { holes, strays, others }) in &self.closed {
            words.push(*segment);
            push_list(&mut words, holes.iter().copied());
            let strays: Vec<u32> = strays.iter().flat_map(|(page, ppn)| [*page, ppn.0]).collect();
            push_list(&mut words, strays.into_iter());
            push_list(&mut words, others.iter().map(|block| block.0));
        }
        for unused in &self.unused {
            push_list(&mut words, unused.iter().map(|block| block.0));
        }
        let dead: Vec<Dead> = self.dead.iter().flatten().copied().collect();
        for list in [&dead, &self.trims.erasing] {
            let numbers = |dead: &Dead| [dead.block.0, dead.segment, dead.trim as u32, (dead.trim >> 32) as u32];
            let words_of: Vec<u32> = list.iter().flat_map(numbers).collect();
            push_list(&mut words, words_of.into_iter());
        }
        let held: Vec<u32> = self
            .trims
            .held
            .iter()
            .flat_map(|(segment, Held { trim, blocks })| [*segment, *blocks, *trim as u32, (*trim >> 32) as u32])
            .collect();
        push_list(&mut words, held.into_iter());
        push_list(&mut words, self.trims.unrecorded.iter().copied());
        words.extend([self.trims.block.0, self.trims.pages]);
        let (place, number) = self.trims.newest.unwrap_or((Place { block: BlockId::NONE, page: 0 }, 0));
        words.extend([place.block.0, place.page, number as u32, (number >> 32) as u32]);
        words.extend([self.trims.covers as u32, (self.trims.covers >> 32) as u32]);
        to.write_all(bytemuck::cast_slice(&words))
    }

    pub(super) fn restore_from(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let segments = self.layout.segments;
        for block in &mut self.map {
            *block = BlockId(word(from)?);
        }
        for pages in &mut self.written {
            *pages = word(from)?;
        }
        for generation in &mut self.generations {
            *generation = u8::try_from(word(from)?).map_err(|_| bad("a segment has a generation that there is not"))?;
        }
        for _ in 0..word(from)?.min(segments) {
            let segment = word(from)?;
            let holes = list(from, self.layout.segment_pages)?.into_iter().collect();
            let strays = list(from, self.layout.segment_pages * 2)?;
            let strays = strays.chunks_exact(2).map(|pair| (pair[0], Ppn(pair[1]))).collect();
            let others = list(from, blocks)?.into_iter().map(BlockId).collect();
            self.closed.insert(segment, Closed { holes, strays, others });
        }
        for unused in &mut self.unused {
            *unused = list(from, blocks)?.into_iter().map(BlockId).collect();
        }
        let four = |words: Vec<u32>| -> Vec<[u32; 4]> {
            words.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]).collect()
        };
        let mut dead_lists = Vec::new();
        for _ in 0..2 {
            let dead = four(list(from, blocks.saturating_mul(4))?);
            dead_lists.push(
                dead.into_iter()
                    .map(|[block, segment, low, high]| Dead { block: BlockId(block), segment, trim: long(low, high) })
                    .collect::<Vec<Dead>>(),
            );
        }
        let held = four(list(from, segments.saturating_mul(4))?);
        self.trims.held = held
            .into_iter()
            .map(|[segment, blocks, low, high]| (segment, Held { trim: long(low, high), blocks }))
            .collect();
        self.trims.unrecorded = list(from, segments)?;
        (self.trims.block, self.trims.pages) = (BlockId(word(from)?), word(from)?);
        let (block, page) = (BlockId(word(from)?), word(from)?);
        let number = long(word(from)?, word(from)?);
        self.trims.newest = (block != BlockId::NONE).then_some((Place { block, page }, number));
        self.trims.covers = long(word(from)?, word(from)?);
        let [dead, erasing] = <[Vec<Dead>; 2]>::try_from(dead_lists).expect("two lists");
        if dead.iter().chain(&erasing).any(|dead| dead.block.0 >= blocks) {
            return Err(bad("a list of blocks names one that is not there"));
        }
        for dead in dead {
            self.dead[media.group_of(dead.block) as usize].push(dead);
        }
        self.trims.erasing = erasing;
        self.accept(media)
    }

    /// Looks whether the tables go together with one another and with the chips, and counts what is valid.
    fn accept(&mut self, media: &mut Media) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let of_records = [self.trims.block, self.trims.newest.map_or(BlockId::NONE, |(place, _)| place.block)];
        let listed = self.unused.iter().flatten().chain(self.closed.values().flat_map(|closed| &closed.others));
        if listed.chain(&of_records).any(|block| *block != BlockId::NONE && block.0 >= blocks) {
            return Err(bad("a list of blocks names one that is not there"));
        }
        if self.trims.pages > self.layout.pages_per_block
            || self.trims.held.len() > self.trims.most
            || self.trims.held.keys().chain(&self.trims.unrecorded).any(|segment| *segment >= self.layout.segments)
            || self.generations.iter().any(|generation| u32::from(*generation) >= self.layout.generations)
        {
            return Err(bad("a trimmed segment or a record of one is out of its range"));
        }
        let counted = |dead: &&Dead| dead.segment != ssdlab_flash::NONE;
        let dead = self.dead.iter().flatten().chain(&self.trims.erasing).filter(counted);
        let mut of_segments = std::collections::BTreeMap::<u32, u32>::new();
        dead.for_each(|dead| *of_segments.entry(dead.segment).or_default() += 1);
        if of_segments != self.trims.held.iter().map(|(segment, held)| (*segment, held.blocks)).collect() {
            return Err(bad("blocks of trimmed segments and their number do not agree"));
        }
        for segment in 0..self.layout.segments {
            if self.written[segment as usize] > self.layout.segment_pages {
                return Err(bad("a segment has more pages than there are"));
            }
            for page in 0..self.written[segment as usize] {
                let lpn = ssdlab_flash::Lpn(segment * self.layout.segment_pages + page);
                let Some(Place { block, page: offset }) = self.place_of(lpn) else { continue };
                if block.0 >= blocks || !media.flash.is_written(block, offset) {
                    return Err(bad("a page of a segment is written, and not on flash"));
                }
                let expected = self.layout.tagged(segment, page, self.generations[segment as usize].into());
                if media.flash.oob.lpn(media.unit_at(Place { block, page: offset })) != expected {
                    return Err(bad("a page of a segment is that of another"));
                }
                media.pool.add_valid(block);
            }
        }
        Ok(())
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

fn push_list(words: &mut Vec<u32>, list: impl ExactSizeIterator<Item = u32>) {
    words.push(list.len() as u32);
    words.extend(list);
}

fn word(from: &mut dyn Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

const fn long(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// A list of at most `most` numbers.
fn list(from: &mut dyn Read, most: u32) -> io::Result<Vec<u32>> {
    let count = word(from)?;
    if count > most {
        return Err(bad("a list is longer than it can be"));
    }
    (0..count).map(|_| word(from)).collect()
}
