//! Texts that people write, such as descriptions and job files: read up to a length, and refused where they are not in UTF-8.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Why a file is not such a text, as the rest of a sentence behind its name.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system said no.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// It is longer than any such text, or has no end.
    #[error("found more than {most} bytes, expected {expected}")]
    TooLong {
        /// Bytes that such a text has at most.
        most: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// It is text in another encoding.
    #[error("found text in {encoding}, expected {expected} in UTF-8")]
    Encoded {
        /// The encoding.
        encoding: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// It is no text, or in an encoding that does not show.
    #[error("byte {byte} is not text in UTF-8, expected {expected}")]
    Binary {
        /// The first byte that is not text, from 0.
        byte: usize,
        /// What was expected.
        expected: &'static str,
    },
}

/// Reads a file of at most `most` bytes, which should be `expected`, such as "a description". A byte order mark is dropped.
///
/// # Errors
/// It cannot be read, is longer (a device may have no end), or is not in UTF-8.
pub fn read_text(path: &Path, most: u64, expected: &'static str) -> Result<String, TextError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(TextError::Unreadable)?;
    if bytes.len() as u64 > most {
        return Err(TextError::TooLong { most, expected });
    }
    if let Some(encoding) = other_encoding(&bytes) {
        return Err(TextError::Encoded { encoding, expected });
    }
    let mut text = String::from_utf8(bytes)
        .map_err(|error| TextError::Binary { byte: error.utf8_error().valid_up_to(), expected })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

/// The encoding of bytes that begin as a text in UTF-16 or UTF-32 does: with a byte order mark, or with letters between zeros.
pub fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => return Some("UTF-32"),
        [0xff, 0xfe, ..] => return Some("UTF-16 (little-endian)"),
        [0xfe, 0xff, ..] => return Some("UTF-16 (big-endian)"),
        _ => {}
    }
    let (pairs, _) = bytes[..bytes.len().min(32)].as_chunks::<2>();
    let all = |is: fn(&[u8; 2]) -> bool| pairs.len() > 1 && pairs.iter().all(is);
    if all(|[low, high]| *low != 0 && *high == 0) {
        Some("UTF-16 (little-endian)")
    } else if all(|[high, low]| *low != 0 && *high == 0) {
        Some("UTF-16 (big-endian)")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_known_by_their_marks_and_by_zeros_between_letters() {
        let little: Vec<u8> = "[flash]".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "[flash]".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let (le, be) = (Some("UTF-16 (little-endian)"), Some("UTF-16 (big-endian)"));
        for (bytes, expected) in [
            (little.clone(), le),
            (big.clone(), be),
            ([vec![0xff, 0xfe], little].concat(), le),
            ([vec![0xfe, 0xff], big].concat(), be),
            (b"\xff\xfe\0\0[\0\0\0".to_vec(), Some("UTF-32")),
            (b"[flash]".to_vec(), None),
            ("gr\u{fc}n".as_bytes().to_vec(), None),
            (vec![0; 40], None),
            (b"a\0".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(other_encoding(&bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_without_an_end_is_read_no_further_than_such_a_text_goes() {
        let error = read_text(Path::new("/dev/zero"), 1000, "a description").expect_err("refused");
        assert_eq!(error.to_string(), "found more than 1000 bytes, expected a description");
    }
}
