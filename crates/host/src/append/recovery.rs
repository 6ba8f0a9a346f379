//! The layer begins: it finds the newest checkpoint on the drive, and the commits behind it.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::READS;
use super::config::LAYER;
use super::layout::{Layout, NOWHERE};
use super::log::{self, Entry, LAST, Position, Says, WHOLE};
use super::target::{Reported, Target};
use super::unreadable::Lost;
use crate::LayerError;
use crate::array::Array;

/// Units that are read at once.
const MOST_UNITS: u32 = 128;

/// What the drive has.
pub(super) struct Found {
    /// By unit: its place, and sectors that are lost.
    pub(super) places: Vec<u32>,
    pub(super) lost: Lost,
    /// The area with the newest checkpoint, and its serial; 0 where there is none.
    pub(super) area: u32,
    pub(super) serial: u64,
    /// The highest serial of all areas, whole or not.
    pub(super) newest: u64,
}

/// Reads what the drive, which keeps `cell` bytes of a sector, has of the map. A drive that keeps no contents counts as new.
pub(super) fn find(
    array: &mut Array,
    target: Target,
    layout: &Layout,
    segments: &[Reported],
    cell: usize,
) -> Result<Found, LayerError> {
    let nothing = vec![NOWHERE; layout.units as usize];
    if cell == 0 {
        return Ok(Found { places: nothing, lost: Lost::default(), area: 1, serial: 0, newest: 0 });
    }
    let mut areas = Vec::new();
    for area in 0..2 {
        let mut reader = Reader { array, target, layout, segments, cell };
        if let Some(words) = reader.blocks(area, 0, 1)?.first()
            && let Some(serial) = log::serial_of(words)
        {
            areas.push((serial, area));
        }
    }
    areas.sort_unstable();
    let newest = areas.last().map_or(0, |(serial, _)| *serial);
    for (serial, area) in areas.into_iter().rev() {
        let reader = Reader { array, target, layout, segments, cell };
        if let Some((places, lost)) = reader.replay(area, serial)? {
            return Ok(Found { places, lost, area, serial, newest });
        }
    }
    // Data is written behind the first checkpoint.
    match layout.data_segments().filter(|segment| !segments[*segment as usize].is_free).count() {
        0 => Ok(Found { places: nothing, lost: Lost::default(), area: 1, serial: 0, newest }),
        segments => Err(LayerError::Foreign { layer: LAYER.name, segments }),
    }
}

struct Reader<'a> {
    array: &'a mut Array,
    target: Target,
    layout: &'a Layout,
    segments: &'a [Reported],
    cell: usize,
}

impl Reader<'_> {
    /// The map of a checkpoint and the commits behind it; `None` if the checkpoint is not whole.
    fn replay(mut self, area: u32, serial: u64) -> Result<Option<(Vec<u32>, Lost)>, LayerError> {
        let (mut places, mut lost) = (vec![NOWHERE; self.layout.units as usize], Lost::default());
        let (mut is_whole, mut commit, mut block) = (false, Vec::new(), 0);
        while block < self.layout.area_blocks() {
            let blocks = self.blocks(area, block, MOST_UNITS)?;
            if blocks.is_empty() {
                break;
            }
            for words in blocks {
                let Some(says) = log::read(&words, Position { serial, block }) else {
                    return Ok(is_whole.then_some((places, lost)));
                };
                block += 1;
                match says {
                    Says::MapPage { page, places: of_page } => {
                        let first = page as usize * log::mapped_in(self.layout.words());
                        let range = first..first + of_page.len();
                        let Some(to) = places.get_mut(range) else { return Err(self.contradicts()) };
                        to.copy_from_slice(&of_page);
                    }
                    Says::Entries { flags, entries } => {
                        commit.extend(entries);
                        if flags & LAST != 0 {
                            is_whole |= flags & WHOLE != 0;
                            for entry in commit.drain(..) {
                                self.apply(&mut places, &mut lost, entry)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(is_whole.then_some((places, lost)))
    }

    fn apply(&self, places: &mut [u32], lost: &mut Lost, entry: Entry) -> Result<(), LayerError> {
        match entry {
            Entry::Mapped { unit, place } => *places.get_mut(unit as usize).ok_or(self.contradicts())? = place,
            Entry::Trimmed { first, count } => {
                let range = first as usize..first as usize + count as usize;
                places.get_mut(range).ok_or(self.contradicts())?.fill(NOWHERE);
            }
            Entry::Lost { unit, part, bits } => lost.set_part(unit, part, bits),
        }
        Ok(())
    }

    const fn contradicts(&self) -> LayerError {
        LayerError::Unreadable { layer: LAYER.name, device: 0, status: Status::Invalid }
    }

    /// Blocks of an area from `first` on, `most` of them at most and as far as they are written one behind the other.
    fn blocks(&mut self, area: u32, first: u32, most: u32) -> Result<Vec<Vec<u64>>, LayerError> {
        let (per_unit, segment_units) = (self.layout.per_unit, self.layout.segment_units);
        let place = self.layout.block_place(area, first);
        let segment = self.segments[(place / segment_units) as usize];
        let written = (segment.written / per_unit) as u32;
        let within = place % segment_units;
        let mut count = most.min(written.saturating_sub(within));
        if count == 0 {
            return Ok(Vec::new());
        }
        let sector = self.layout.sector_of(place);
        let mut attempts = 0;
        let cells = loop {
            let read = Request::new(Op::Read, sector, u64::from(count) * per_unit);
            match self.array.alone(self.target.addressed(read), &[])? {
                (Status::Success, Some(cells)) => break cells,
                // A power cut may have left a gap there: what is before it counts.
                (Status::Refused(_), _) if count > 1 => count = 1,
                (Status::Refused(_), _) => return Ok(Vec::new()),
                (status, _) if attempts == READS => {
                    return Err(LayerError::Unreadable { layer: LAYER.name, device: 0, status });
                }
                _ => attempts += 1,
            }
        };
        let unit_cells = self.cell * per_unit as usize;
        let words = |(index, cells): (u32, &[u8])| self.words(place + index, cells);
        Ok((0..).zip(cells.chunks_exact(unit_cells)).map(words).collect())
    }

    /// What a unit of the log holds; no words where it is none.
    fn words(&self, place: u32, cells: &[u8]) -> Vec<u64> {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        if self.cell == 512 {
            return cells.chunks_exact(8).map(word).collect();
        }
        let stamps: Vec<u64> = cells.chunks_exact(self.cell).map(|cell| word(&cell[..8])).collect();
        if stamps.iter().any(|stamp| *stamp != stamps[0]) {
            return vec![0; self.layout.words()];
        }
        let meaning = self.array.device(0).meaning(self.layout.sector_of(place), stamps[0]);
        meaning.unwrap_or_else(|| vec![0; self.layout.words()])
    }
}
