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
use crate::layer::Array;

/// Units that are read at once.
const MOST_UNITS: u32 = 128;

/// What the drive has.
pub(super) struct Found {
    /// By unit: its place, and sectors that are lost.
    pub(super) places: Vec<u32>,
    pub(super) lost: Lost,
    /// The area with the newest checkpoint, and its serial; 0 where there is none.
    pub(super) area: u32,
    pub(super) serial: u32,
    /// The highest serial of all areas, whole or not.
    pub(super) newest: u32,
}

/// Reads what the drive, which keeps `cell` bytes of a sector, has of the map. A drive that keeps no contents counts as new.
pub(super) fn find(
    array: &mut Array<()>,
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
    array: &'a mut Array<()>,
    target: Target,
    layout: &'a Layout,
    segments: &'a [Reported],
    cell: usize,
}

impl Reader<'_> {
    /// The map of a checkpoint and the commits behind it; `None` if the checkpoint is not whole.
    fn replay(mut self, area: u32, serial: u32) -> Result<Option<(Vec<u32>, Lost)>, LayerError> {
        let (mut places, mut lost) = (vec![NOWHERE; self.layout.units as usize], Lost::default());
        let (mut is_whole, mut commit, mut at) = (false, Vec::new(), Position::first(serial));
        while at.block < self.layout.area_blocks() {
            let blocks = self.blocks(area, at.block, MOST_UNITS)?;
            if blocks.is_empty() {
                break;
            }
            for words in blocks {
                let Some(says) = log::read(&words, at) else {
                    return Ok(is_whole.then_some((places, lost)));
                };
                at = at.behind(&words);
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
            let part = self.array.alone(0, self.target.addressed(read), &[], &[])?;
            match (part.status, part.cells) {
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

#[cfg(test)]
mod tests {
    use ssdlab_device::{Description, Options};
    use ssdlab_flash::Contents;

    use super::*;
    use crate::Member;
    use crate::append::config::{AppendConfig, Cleaning};
    use crate::layers::Below;

    /// A drive of 96 segments of 8 pages.
    fn member() -> Member {
        let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                    blocks_per_plane = 104\npages_per_block = 4\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\n\
                    user = \"3m\"\n[buffer]\npolicy = \"none\"\n[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\n";
        let config = Description::parse(text, "small.toml").and_then(|description| description.resolve());
        let config = config.expect("a drive");
        Member::new("small", &config, Options { seed: 1, contents: Contents::Bytes }).expect("a drive")
    }

    /// A host crash hid a checkpoint, so that its serial was given again; a power cut then undid the TRIM of the area's second segment.
    #[test]
    fn blocks_of_another_checkpoint_with_the_same_serial_do_not_count() {
        let config = AppendConfig {
            over_provisioning: 7,
            cleaning: Cleaning::Greedy,
            free_segments: 2,
            pacing: ssdlab_device::Pacing::Off,
            copies: 1,
            copy_size: 4096,
        };
        let below = Below { sectors: 96 * 64, unit_bytes: 4096, segment: Some(64), most_active: 0 };
        let layout = Layout::new(&below, &config).expect("a layout");
        assert!(layout.area_segments > 1, "an area of {} segments", layout.area_segments);
        let mut array = Array::new(vec![Box::new(member())]);
        let (target, _) = Target::report(&mut array).expect("a report");
        let data = layout.data_segments().start * layout.segment_units;
        let log_of = |unit: u32| {
            let mut at = Position::first(9);
            let block = |number: u32| {
                let flags = LAST | if number == 0 { WHOLE } else { 0 };
                let entry = Entry::Mapped { unit, place: data + number };
                let words = log::entries_block(layout.words(), at, flags, &[entry]);
                at = at.behind(&words);
                words
            };
            (0..2 * layout.segment_units).map(block).collect::<Vec<_>>()
        };
        let (before, after) = (log_of(1), log_of(2));
        let segment = layout.segment_units as usize;
        for (number, words) in after[..segment].iter().chain(&before[segment..]).enumerate() {
            let cells: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let write =
                Request::new(Op::Write, layout.sector_of(layout.block_place(0, number as u32)), layout.per_unit);
            let part = array.alone(0, write, &cells, &[]).expect("an answer");
            assert_eq!(part.status, Status::Success);
        }
        let (_, segments) = Target::report(&mut array).expect("a report");
        let cell = array.device(0).sector_data_bytes();
        let found = find(&mut array, target, &layout, &segments, cell).expect("a map");
        assert_eq!((found.area, found.serial, found.newest), (0, 9, 9));
        let last = data + layout.segment_units - 1;
        assert_eq!((found.places[1], found.places[2]), (NOWHERE, last), "the end of another checkpoint's log counts");
    }
}
