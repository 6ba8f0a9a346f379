//! The segments in a snapshot. What OOB areas say is in the snapshot of the chips.

use std::io::{self, Read, Write};

use ssdlab_flash::{BlockId, Ppn};

use super::trims::Held;
use super::{Aftl, Closed, Dead};
use crate::ftl::saved_words::{bad, count, list, long, push_list, push_long, word};
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
        words.push(self.dead.iter().map(Vec::len).sum::<usize>() as u32);
        self.dead.iter().flatten().for_each(|dead| push_dead(&mut words, dead));
        words.push(self.trims.erasing.len() as u32);
        self.trims.erasing.iter().for_each(|dead| push_dead(&mut words, dead));
        words.push(self.trims.held.len() as u32);
        for (segment, Held { trim, blocks }) in &self.trims.held {
            words.extend([*segment, *blocks]);
            push_long(&mut words, *trim);
        }
        push_list(&mut words, self.trims.unrecorded.iter().copied());
        words.extend([self.trims.block.0, self.trims.pages]);
        let (place, number) = self.trims.newest.unwrap_or((Place { block: BlockId::NONE, page: 0 }, 0));
        words.extend([place.block.0, place.page]);
        push_long(&mut words, number);
        push_long(&mut words, self.trims.covers);
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
        for _ in 0..count(from, segments)? {
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
        let dead = dead_list(from, blocks)?;
        self.trims.erasing = dead_list(from, blocks)?;
        for _ in 0..count(from, segments)? {
            let (segment, blocks) = (word(from)?, word(from)?);
            self.trims.held.insert(segment, Held { trim: long(from)?, blocks });
        }
        self.trims.unrecorded = list(from, segments)?;
        (self.trims.block, self.trims.pages) = (BlockId(word(from)?), word(from)?);
        let (block, page) = (BlockId(word(from)?), word(from)?);
        let number = long(from)?;
        self.trims.newest = (block != BlockId::NONE).then_some((Place { block, page }, number));
        self.trims.covers = long(from)?;
        for dead in dead {
            self.dead[media.group_of(dead.block) as usize].push(dead);
        }
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

fn push_dead(words: &mut Vec<u32>, Dead { block, segment, trim }: &Dead) {
    words.extend([block.0, *segment]);
    push_long(words, *trim);
}

fn dead_list(from: &mut dyn Read, blocks: u32) -> io::Result<Vec<Dead>> {
    let mut dead = Vec::new();
    for _ in 0..count(from, blocks)? {
        dead.push(Dead { block: BlockId(word(from)?), segment: word(from)?, trim: long(from)? });
    }
    if dead.iter().any(|dead| dead.block.0 >= blocks) {
        return Err(bad("a list of blocks names one that is not there"));
    }
    Ok(dead)
}
