//! Blocks of the inode map (AMF, section 3.3), and of the table of inode-map blocks (TIMB).
//!
//! ```text
//!   check-point --list--> TIMB blocks --> 1,024 inode-map blocks each --> 512 nodes each
//! ```
//!
//! An entry of the inode map has the node's number and its address, 4 bytes each. An entry of a node that is not there has no address.

use super::{Bad, Bytes, expect, get_u32, put_u32, zeroes};

/// Entries of a block of the inode map.
pub const ENTRIES: usize = 512;

/// Entries of a TIMB block.
pub const TABLE_ENTRIES: usize = 1024;

/// Where nodes are.
pub type Places = [u32; ENTRIES];

/// Block `part` of the inode map.
pub fn encode(part: u32, places: &Places) -> Box<Bytes> {
    let mut block = zeroes();
    for (index, place) in places.iter().enumerate() {
        put_u32(&mut *block, 8 * index, part * ENTRIES as u32 + index as u32);
        put_u32(&mut *block, 8 * index + 4, *place);
    }
    block
}

/// The addresses of a block of the inode map.
///
/// # Errors
/// It is another block, or an address lies outside of the drive's `blocks`.
pub fn decode(block: &Bytes, part: u32, blocks: u32) -> Result<Box<Places>, Bad> {
    let mut places = Box::new([0; ENTRIES]);
    for (index, place) in places.iter_mut().enumerate() {
        expect("node", get_u32(block, 8 * index), part * ENTRIES as u32 + index as u32)?;
        *place = get_u32(block, 8 * index + 4);
        if *place >= blocks {
            return Err(Bad::Field("address of a node"));
        }
    }
    Ok(places)
}

/// A TIMB block, of as many entries as it has.
pub fn encode_table(places: &[u32]) -> Box<Bytes> {
    let mut block = zeroes();
    places.iter().take(TABLE_ENTRIES).enumerate().for_each(|(index, place)| put_u32(&mut *block, 4 * index, *place));
    block
}

/// The addresses of a TIMB block.
///
/// # Errors
/// An address lies outside of the drive's `blocks`.
pub fn decode_table(block: &Bytes, blocks: u32) -> Result<Vec<u32>, Bad> {
    let places: Vec<u32> = (0..TABLE_ENTRIES).map(|index| get_u32(block, 4 * index)).collect();
    if places.iter().any(|place| *place >= blocks) {
        return Err(Bad::Field("address of an inode-map block"));
    }
    Ok(places)
}
