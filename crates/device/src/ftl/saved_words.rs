//! Words of a snapshot, for designs whose tables are lists of numbers.

use std::io::{self, Read};

/// Puts a list behind its length.
pub(super) fn push_list(words: &mut Vec<u32>, list: impl ExactSizeIterator<Item = u32>) {
    words.push(list.len() as u32);
    words.extend(list);
}

/// Puts a number of 64 bits, the low word first.
pub(super) fn push_long(words: &mut Vec<u32>, number: u64) {
    words.extend([number as u32, (number >> 32) as u32]);
}

pub(super) fn word(from: &mut dyn Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// A number that [`push_long`] put.
pub(super) fn long(from: &mut dyn Read) -> io::Result<u64> {
    Ok(u64::from(word(from)?) | u64::from(word(from)?) << 32)
}

/// The length of a list of at most `most`.
pub(super) fn count(from: &mut dyn Read, most: u32) -> io::Result<u32> {
    let count = word(from)?;
    if count > most {
        return Err(bad(&format!("a list of {count}, and at most {most} fit")));
    }
    Ok(count)
}

/// A list of at most `most` numbers.
pub(super) fn list(from: &mut dyn Read, most: u32) -> io::Result<Vec<u32>> {
    (0..count(from, most)?).map(|_| word(from)).collect()
}

/// A snapshot that contradicts itself.
pub(super) fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}
