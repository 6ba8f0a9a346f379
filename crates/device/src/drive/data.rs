//! What a write brings: nothing, a stamp, or the contents of its sectors.

use ssdlab_base::Request;

/// The data that goes with a write.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// None: zeroes where contents are kept.
    Nothing,
    /// One stamp for every sector of the request; see [`sector_stamp`].
    Stamp(u64),
    /// The data of all sectors of the request, one behind the other: their bytes, where a drive keeps those.
    Bytes(&'a [u8]),
}

/// All that goes with a command.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The data of its range.
    pub data: Data<'a>,
    /// Its parameters, where it is one of the drive's own set.
    pub words: &'a [u64],
}

impl<'a> From<Data<'a>> for Payload<'a> {
    fn from(data: Data<'a>) -> Payload<'a> {
        Payload { data, words: &[] }
    }
}

impl Data<'_> {
    /// What the sectors of the request are to hold, `per_sector` bytes each (`Drive::sector_data_bytes`).
    pub fn sector_data(self, request: &Request, per_sector: usize) -> Vec<u8> {
        let length = request.sectors as usize * per_sector;
        match self {
            Data::Nothing => vec![0; length],
            Data::Stamp(stamp) => {
                let mut sector_data = vec![0; length];
                for (index, out) in sector_data.chunks_exact_mut(per_sector).enumerate() {
                    let value = sector_stamp(stamp, request.sector + index as u64);
                    out[..8].copy_from_slice(&value.to_le_bytes());
                }
                sector_data
            }
            Data::Bytes(bytes) => {
                assert_eq!(bytes.len(), length, "a write brings as many bytes as it says");
                bytes.to_vec()
            }
        }
    }
}

/// What a sector holds after a write with `stamp`: the stamp bound to its address, so that misplaced data shows.
pub const fn sector_stamp(stamp: u64, sector: u64) -> u64 {
    stamp ^ sector.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
