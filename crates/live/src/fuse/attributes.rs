//! Extended attributes of the file of a target that takes appends to segments: what they have in common, and a report of them.

use std::ffi::OsStr;

use fuser::Errno;
use ssdlab_base::SECTOR_BYTES;
use ssdlab_base::command_sets::segments::SegmentState;

use crate::segments::{runs, text};
use crate::{Appends, Target};

/// Most bytes of a value, by the kernel (`XATTR_SIZE_MAX`).
const VALUE_BYTES_MAX: usize = 64 << 10;

/// What all names begin with.
const PREFIX: &str = "user.ssdlab.segments.";
const REPORT: &str = "report";

/// The value of a name.
///
/// # Errors
/// `ENODATA` for a name that there is not, `E2BIG` for a report that is longer than a value may be.
pub(super) fn value(target: &dyn Target, appends: &Appends, name: &OsStr) -> Result<String, Errno> {
    let shape = appends.shape;
    let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).ok_or(Errno::ENODATA)?;
    Ok(match name {
        "count" => shape.count.to_string(),
        "sectors" => shape.sectors.to_string(),
        "bytes" => (shape.sectors * SECTOR_BYTES).to_string(),
        "write_unit" => (shape.write_unit * SECTOR_BYTES).to_string(),
        "states" => states(target, shape.count),
        REPORT => report(target, 0, shape.count)?,
        ranged => {
            let range = ranged.strip_prefix(REPORT).and_then(|range| range.strip_prefix('.')).ok_or(Errno::ENODATA)?;
            let (first, count) = in_range(range, shape.count).ok_or(Errno::ENODATA)?;
            report(target, first, count)?
        }
    })
}

/// The names, each with a 0 behind it, as listxattr(2) has them. A report that is too long is left out.
pub(super) fn names(target: &dyn Target, appends: &Appends) -> Vec<u8> {
    let mut names = vec!["count", "sectors", "bytes", "write_unit", "states"];
    if report(target, 0, appends.shape.count).is_ok() {
        names.push(REPORT);
    }
    names.iter().flat_map(|name| format!("{PREFIX}{name}\0").into_bytes()).collect()
}

fn report(target: &dyn Target, first: u64, count: u64) -> Result<String, Errno> {
    let text = text(&runs(first, target.segments(first, count)));
    if text.len() > VALUE_BYTES_MAX { Err(Errno::E2BIG) } else { Ok(text) }
}

fn states(target: &dyn Target, count: u64) -> String {
    let mut counts = [0_u64; SegmentState::ALL.len()];
    target.segments(0, count).iter().for_each(|segment| counts[segment.state as usize] += 1);
    let line = |(state, count): (SegmentState, u64)| format!("{} {count}\n", state.name());
    SegmentState::ALL.into_iter().zip(counts).map(line).collect()
}

/// `FIRST` or `FIRST-LAST`, as the first number and how many, of segments that there are.
fn in_range(range: &str, count: u64) -> Option<(u64, u64)> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
    let (first, last): (u64, u64) = (number(first)?, number(last)?);
    (first <= last && last < count).then(|| (first, last + 1 - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_numbers_of_segments() {
        for (range, found) in [("0", (0, 1)), ("7", (7, 1)), ("0-7", (0, 8)), ("3-3", (3, 1))] {
            assert_eq!(in_range(range, 8), Some(found), "{range}");
        }
        for range in ["", "-", "8", "0-8", "3-2", "+1", "1-", "-1", "a", "1-2-3", "18446744073709551616"] {
            assert_eq!(in_range(range, 8), None, "{range}");
        }
    }
}
