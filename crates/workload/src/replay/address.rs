//! Where a trace's requests go on a drive of another size.

use std::fmt;

use rustc_hash::FxHashMap;
use ssdlab_base::{Op, Request, SECTOR_BYTES};

/// The extent that a dense remap moves as a whole, in bytes: addresses keep their place within it, so alignment up to
/// this size is preserved.
pub const FIT_EXTENT_BYTES: u64 = 1 << 20;
const EXTENT: u64 = FIT_EXTENT_BYTES / SECTOR_BYTES;
/// Extents in a leaf of the remap table.
const LEAF: u64 = 64;
/// An extent that the trace neither reads nor writes.
const NONE: u32 = u32::MAX;

/// What is done with a trace whose addresses do not fit the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Addresses are the drive's own; a trace that reaches beyond its end is refused.
    #[default]
    Exact,
    /// Addresses modulo the drive's size. A request across the end is cut in two; one longer than the drive covers it
    /// once.
    Wrap,
    /// Dense remap: every extent of 1 MiB that is read or written takes the next free one on the drive, in order of
    /// first touch. Requests over extents that are not neighbours on the drive are cut; trims of extents that are
    /// never read or written are left out.
    Dense,
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fit::Exact => "exact",
            Fit::Wrap => "wrap",
            Fit::Dense => "fit",
        })
    }
}

/// What the map did to requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MapCounts {
    pub(super) moved: u64,
    pub(super) split: u64,
    /// Pieces beyond the first of each.
    pub(super) further_pieces: u64,
    pub(super) dropped: u64,
}

/// From the trace's sectors to the drive's.
pub(super) struct AddressMap {
    fit: Fit,
    capacity: u64,
    /// Learning: leaf number to place in `leaves`.
    places: FxHashMap<u64, u32>,
    /// Frozen: leaf numbers with their places, sorted.
    index: Vec<(u64, u32)>,
    leaves: Vec<[u32; LEAF as usize]>,
    used: u32,
    /// The index entry that answered last.
    last: usize,
    pub(super) counts: MapCounts,
}

impl AddressMap {
    pub(super) fn new(fit: Fit, capacity: u64) -> AddressMap {
        AddressMap {
            fit,
            capacity,
            places: FxHashMap::default(),
            index: Vec::new(),
            leaves: Vec::new(),
            used: 0,
            last: 0,
            counts: MapCounts::default(),
        }
    }

    /// Before the run: gives the extents of a request their places. An error says what does not fit, behind the
    /// trace's name.
    pub(super) fn learn(&mut self, request: &Request) -> Result<(), String> {
        if self.fit != Fit::Dense || matches!(request.op, Op::Trim | Op::Flush) {
            return Ok(());
        }
        for extent in request.sector / EXTENT..request.end().div_ceil(EXTENT) {
            let leaves = &mut self.leaves;
            let place = *self.places.entry(extent / LEAF).or_insert_with(|| {
                leaves.push([NONE; LEAF as usize]);
                (leaves.len() - 1) as u32
            });
            let slot = &mut self.leaves[place as usize][(extent % LEAF) as usize];
            if *slot == NONE {
                let free = self.capacity / EXTENT;
                if u64::from(self.used) >= free || self.used == NONE - 1 {
                    return Err(format!(
                        "has a footprint that exceeds the drive even when packed densely: the drive has {free} whole extents \
                         of 1 MiB, and the footprint more; take a larger drive, or `--wrap`"
                    ));
                }
                *slot = self.used;
                self.used += 1;
            }
        }
        Ok(())
    }

    /// Ends learning.
    pub(super) fn freeze(&mut self) {
        self.index = self.places.drain().collect();
        self.index.sort_unstable();
        self.places.shrink_to_fit();
    }

    /// Cuts the next piece off the front of `rest` and gives its place on the drive. Nothing where the front of `rest`
    /// has none; an error, in words, where it should have one.
    pub(super) fn cut(&mut self, rest: &mut Request, begun: bool) -> Result<Option<Request>, &'static str> {
        let mut piece = *rest;
        match self.fit {
            Fit::Exact => {
                if rest.end() > self.capacity {
                    return Err("reaches beyond the drive's end");
                }
            }
            Fit::Wrap => {
                if !begun {
                    self.counts.moved += u64::from(rest.end() > self.capacity);
                    rest.sectors = rest.sectors.min(self.capacity);
                }
                piece.sector = rest.sector % self.capacity;
                piece.sectors = rest.sectors.min(self.capacity - piece.sector);
            }
            Fit::Dense => {
                let Some((sector, sectors, skipped)) = self.dense(rest) else {
                    if rest.op != Op::Trim {
                        return Err("touches an extent that was not there before");
                    }
                    self.counts.dropped += u64::from(!begun);
                    rest.sectors = 0;
                    return Ok(None);
                };
                if skipped > 0 && rest.op != Op::Trim {
                    return Err("touches an extent that was not there before");
                }
                piece.sector = sector;
                piece.sectors = sectors;
                rest.sector += skipped;
                rest.sectors -= skipped;
            }
        }
        rest.sector += piece.sectors;
        rest.sectors -= piece.sectors;
        self.counts.split += u64::from(!begun && rest.sectors > 0);
        self.counts.further_pieces += u64::from(begun);
        Ok(Some(piece))
    }

    /// The first stretch of `rest` that has a place and is contiguous there: the drive's sector, its length, and how
    /// many sectors of `rest` lie before it. Nothing if no part of `rest` has a place.
    fn dense(&mut self, rest: &Request) -> Option<(u64, u64, u64)> {
        let end = rest.end();
        let (extent, slot) = self.first_placed(rest.sector / EXTENT, end.div_ceil(EXTENT))?;
        let from = rest.sector.max(extent * EXTENT);
        let mut to = end.min((extent + 1) * EXTENT);
        let mut next = (extent + 1, u64::from(slot) + 1);
        while to < end && self.slot(next.0).is_some_and(|slot| u64::from(slot) == next.1) {
            to = end.min((next.0 + 1) * EXTENT);
            next = (next.0 + 1, next.1 + 1);
        }
        Some((u64::from(slot) * EXTENT + from % EXTENT, to - from, from - rest.sector))
    }

    /// The place in the index of the first leaf that is not before `leaf`.
    fn seek(&mut self, leaf: u64) -> usize {
        if self.index.get(self.last).is_some_and(|&(number, _)| number == leaf) {
            return self.last;
        }
        let found = self.index.partition_point(|&(number, _)| number < leaf);
        self.last = found.min(self.index.len().saturating_sub(1));
        found
    }

    fn slot(&mut self, extent: u64) -> Option<u32> {
        let at = self.seek(extent / LEAF);
        let &(leaf, place) = self.index.get(at)?;
        if leaf != extent / LEAF {
            return None;
        }
        let slot = self.leaves[place as usize][(extent % LEAF) as usize];
        (slot != NONE).then_some(slot)
    }

    /// The first extent with a place in `from..to`, passing over leaves without any.
    fn first_placed(&mut self, from: u64, to: u64) -> Option<(u64, u32)> {
        let start = self.seek(from / LEAF);
        for &(leaf, place) in self.index.get(start..)? {
            let first = from.max(leaf * LEAF);
            let last = to.min((leaf + 1) * LEAF);
            if leaf * LEAF >= to {
                return None;
            }
            for extent in first..last {
                let slot = self.leaves[place as usize][(extent % LEAF) as usize];
                if slot != NONE {
                    return Some((extent, slot));
                }
            }
        }
        None
    }
}
