//! Words that a layer keeps on its devices, each at the start of so many sectors of its own.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::Array;
use crate::LayerError;

/// A word at the start of `sectors` sectors that keep `cell` bytes each.
pub(crate) fn cells_of(word: u64, cell: usize, sectors: u64) -> Vec<u8> {
    let mut cells = vec![0; cell * sectors as usize];
    if let Some(first) = cells.get_mut(..8) {
        first.copy_from_slice(&word.to_le_bytes());
    }
    cells
}

/// Reads as many words from the sector `first` on; `sectors` belong to each.
///
/// # Errors
/// The sectors cannot be read.
pub(crate) fn read_words(
    array: &mut Array<()>,
    (layer, device): (&'static str, usize),
    first: u64,
    words: u64,
    sectors: u64,
) -> Result<Vec<u64>, LayerError> {
    let part = array.alone(device, Request::new(Op::Read, first, words * sectors), &[], &[])?;
    let status = part.status;
    let cells = part.cells.filter(|_| status == Status::Success);
    let cells = cells.ok_or(LayerError::Unreadable { layer, device, status })?;
    let word = |cells: &[u8]| cells[..8].try_into().map(u64::from_le_bytes).unwrap_or(0);
    Ok(cells.chunks_exact(cells.len() / words as usize).map(word).collect())
}
