//! Blocks of metadata as the drive has them: little-endian numbers behind a header with a checksum.
//!
//! ```text
//!   0         8       12    16    20           24         32
//!   | checksum | magic | a   | b   | generation | version  | what the kind of block says ...
//! ```
//!
//! The checksum is XXH3 of all that follows it, seeded with the number of the volume, so a block that another file system left on the
//! drive is not taken for one of this. Decoding trusts nothing: it gives an error for any bytes.
//!
//! Blocks of the inode map and of its table (TIMB) have no header, since the paper fills them with entries (AMF, Table 1). An entry of
//! the map says the node's own number; that of the table leads to such entries.

pub mod checkpoint;
pub mod directory;
pub mod fsync;
pub mod identify;
pub mod inode;
pub mod map;
pub mod summary;
pub mod superblock;
pub mod usage;

use twox_hash::XxHash3_64;

/// Bytes of a block.
pub const BLOCK: usize = 4096;

/// Bytes of the header.
pub const HEADER: usize = 32;

/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = 8;

/// Address of a block that has none: block 0 is the superblock's.
pub const NOWHERE: u32 = 0;

/// Address of a block whose contents are lost: its reads fail.
pub const LOST: u32 = u32::MAX;

/// A block's bytes.
pub type Bytes = [u8; BLOCK];

/// Why bytes are not the block that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// The magic number is another.
    #[error("it is no {0}")]
    Magic(&'static str),
    /// The checksum is another.
    #[error("its checksum does not match")]
    Checksum,
    /// It belongs to another place.
    #[error("it says {found} where {expected} is expected as its {what}")]
    Other {
        /// What it says.
        what: &'static str,
        /// Which it says.
        found: u64,
        /// Which it should.
        expected: u64,
    },
    /// A field has a value that it cannot have.
    #[error("its {0} cannot be")]
    Field(&'static str),
    /// There are too few bytes.
    #[error("it is too short")]
    Short,
}

/// What the header of a block says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The first number of the kind of block.
    pub a: u32,
    /// The second number of the kind of block.
    pub b: u32,
    /// Generation of the inode that it belongs to.
    pub generation: u32,
    /// Version of the check-point that wrote it, where that matters.
    pub version: u64,
}

/// A block of zeroes.
pub fn zeroes() -> Box<Bytes> {
    let boxed: Box<[u8]> = vec![0; BLOCK].into();
    boxed.try_into().unwrap_or_else(|_| Box::new([0; BLOCK]))
}

/// Bytes that were read as a block: zeroes follow where there are fewer.
pub fn block_of(bytes: &[u8]) -> Box<Bytes> {
    let mut block = zeroes();
    let length = bytes.len().min(BLOCK);
    block[..length].copy_from_slice(&bytes[..length]);
    block
}

pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn hash(volume: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(volume, bytes)
}

/// Writes the header of a block whose contents stand.
pub(crate) fn seal(block: &mut Bytes, volume: u64, magic: [u8; 4], header: Header) {
    block[8..12].copy_from_slice(&magic);
    put_u32(block, 12, header.a);
    put_u32(block, 16, header.b);
    put_u32(block, 20, header.generation);
    put_u64(block, 24, header.version);
    let checksum = hash(volume, &block[8..]);
    put_u64(block, 0, checksum);
}

/// What the header of a block says that is whole and of this volume.
pub(crate) fn open(block: &Bytes, volume: u64, magic: [u8; 4], name: &'static str) -> Result<Header, Bad> {
    if block[8..12] != magic {
        return Err(Bad::Magic(name));
    }
    if get_u64(block, 0) != hash(volume, &block[8..]) {
        return Err(Bad::Checksum);
    }
    let (a, b, generation) = (get_u32(block, 12), get_u32(block, 16), get_u32(block, 20));
    Ok(Header { a, b, generation, version: get_u64(block, 24) })
}

/// Makes the checksum of a block right again whose contents were changed on purpose. For tests of what then refuses it.
pub fn mend(block: &mut Bytes, volume: u64) {
    let checksum = hash(volume, &block[8..]);
    put_u64(block, 0, checksum);
}

/// Refuses a number that is not the expected one.
pub(crate) fn expect(what: &'static str, found: impl Into<u64>, expected: impl Into<u64>) -> Result<(), Bad> {
    let (found, expected) = (found.into(), expected.into());
    if found == expected { Ok(()) } else { Err(Bad::Other { what, found, expected }) }
}
