//! The layer begins: it finds what is kept of the table on the device, or makes room for it there.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::config::LAYER;
use super::layout::{HEADER_SECTORS, Layout};
use super::records::{Records, header, read_header};
use crate::LayerError;
use crate::layer::Array;

/// Sectors that are read at once.
const MOST_SECTORS: u64 = 1024;

/// What the device has.
pub(super) struct Found {
    pub(super) records: Records,
    /// Whether the device has a header that frees fewer places, or may have after a power cut.
    pub(super) header_is_stale: bool,
    /// Why the device does not take records, if it does not.
    pub(super) stuck: Option<Status>,
}

impl Found {
    /// An empty log.
    pub(super) fn nothing(layout: &Layout) -> Found {
        Found { records: Records::new(layout, 0, None), header_is_stale: false, stuck: None }
    }
}

/// Reads what is kept on the device, which has `cell` bytes of a sector; a device that has nothing, or keeps no contents, gets
/// an empty table.
pub(super) fn find(array: &mut Array<()>, layout: &Layout, cell: usize) -> Result<Found, LayerError> {
    let words = read_words(array, layout.header, HEADER_SECTORS, cell)?;
    if let Some((freed, places)) = read_header([words[0], words[1]]) {
        if places != u64::from(layout.places) {
            return Err(LayerError::OtherLog { found: places, expected: u64::from(layout.places) });
        }
        let found = read_words(array, layout.slots, u64::from(layout.places), cell)?;
        let mut records = Records::new(layout, freed, Some(found));
        // A device that refused a record returns it until its power is cut: only a flush says that what was read is on flash.
        let status = array.alone(0, Request::new(Op::Flush, 0, 0), &[], &[])?.status;
        if status.is_error() {
            records.are_stale(0..layout.places);
        }
        return Ok(Found { records, header_is_stale: status.is_error(), stuck: None });
    }
    // The header comes last: without it there is no table.
    let slots = Request::new(Op::WriteZeroes, layout.slots, layout.header - layout.slots);
    let header_words = sectors_of(&header(0, layout.places), layout.per_unit, cell);
    let sectors = HEADER_SECTORS.next_multiple_of(layout.per_unit);
    let header = Request { fua: true, ..Request::new(Op::Write, layout.header, sectors) };
    let mut stuck = None;
    for (request, cells) in [(slots, Vec::new()), (Request::new(Op::Flush, 0, 0), Vec::new()), (header, header_words)] {
        if stuck.is_none() {
            let status = array.alone(0, request, &cells, &[])?.status;
            stuck = status.is_error().then_some(status);
        }
    }
    Ok(Found { stuck, ..Found::nothing(layout) })
}

/// Words as sectors that hold one each, and sectors of nothing up to whole units.
pub(super) fn sectors_of(words: &[u64], per_unit: u64, cell: usize) -> Vec<u8> {
    let sectors = (words.len() as u64).next_multiple_of(per_unit) as usize;
    let mut cells = vec![0; sectors * cell];
    if cell > 0 {
        for (sector, word) in cells.chunks_exact_mut(cell).zip(words) {
            sector[..8].copy_from_slice(&word.to_le_bytes());
        }
    }
    cells
}

/// Reads words that stand in sectors of their own; 0 for each where contents are not kept.
fn read_words(array: &mut Array<()>, first: u64, count: u64, cell: usize) -> Result<Vec<u64>, LayerError> {
    let mut words = Vec::with_capacity(count as usize);
    for from in (0..count).step_by(MOST_SECTORS as usize) {
        let read = Request::new(Op::Read, first + from, MOST_SECTORS.min(count - from));
        let part = array.alone(0, read, &[], &[])?;
        let status = part.status;
        if status != Status::Success {
            return Err(LayerError::Unreadable { layer: LAYER.name, device: 0, status });
        }
        let cells = part.cells.unwrap_or_default();
        let word = |sector: &[u8]| sector[..8].try_into().map(u64::from_le_bytes).unwrap_or(0);
        words.extend(cells.chunks_exact(cell.max(1)).map(word));
    }
    if cell == 0 {
        words.resize(count as usize, 0);
    }
    assert_eq!(words.len() as u64, count, "a read brings every sector");
    Ok(words)
}
