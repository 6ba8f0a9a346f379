//! Text from outside on its way to a person: names of files, jobs, drives and signals may hold anything.
//!
//! What a terminal would obey instead of showing (control characters, and those that turn the direction of writing) is
//! written as an escape. Names in tables have an end: what is longer is cut, with an ellipsis in its place.

use std::borrow::Cow;

use ssdlab_base::grouped;

/// Characters of a cell in [`columns`] at most.
const CELL_MAX: usize = 120;

/// Whether a terminal would obey a character, or show what follows it elsewhere.
///
/// Beside Unicode's control characters these are the marks and embeddings of bidirectional text, and the separators of
/// lines and paragraphs.
#[must_use]
pub fn is_unprintable(letter: char) -> bool {
    let turns = |letter| matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns(letter)
}

/// A name on one line: what is not printable is escaped as in a Rust string.
///
/// ```
/// use ssdlab_lab::text::printable;
///
/// assert_eq!(printable("plain Größe"), "plain Größe");
/// assert_eq!(printable("a\x1b[31m\nb"), "a\\u{1b}[31m\\nb");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_unprintable)
}

/// Sentences on any number of lines: as [`printable`], but lines end and tabs stay.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| is_unprintable(letter) && !matches!(letter, '\n' | '\t'))
}

fn escaped(text: &str, is_wrong: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_wrong) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_wrong(letter) { out.extend(letter.escape_default()) } else { out.push(letter) }
    }
    Cow::Owned(out)
}

/// A sentence with `separator` between the thousands of its whole numbers; digits behind a point or in a word stay.
///
/// ```
/// use ssdlab_lab::text::with_thousands;
///
/// assert_eq!(with_thousands("9907768 of 12345.6789 pages, ch1.die10000", ','), "9,907,768 of 12,345.6789 pages, ch1.die10000");
/// ```
#[must_use]
pub fn with_thousands(sentence: &str, separator: char) -> String {
    let mut out = String::with_capacity(sentence.len() + 16);
    let mut rest = sentence;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        let (digits, behind) = after.split_at(end);
        let is_whole = !out.ends_with(|letter: char| letter == '.' || letter == '_' || letter.is_alphanumeric())
            && !behind.starts_with(|letter: char| letter == '_' || letter.is_alphanumeric());
        if is_whole {
            out.push_str(&grouped(digits, separator));
        } else {
            out.push_str(digits);
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// A name as [`printable`] has it, of at most `most` characters.
///
/// ```
/// use ssdlab_lab::text::clipped;
///
/// assert_eq!(clipped("short", 6), "short");
/// assert_eq!(clipped("far too long", 6), "far t…");
/// ```
#[must_use]
pub fn clipped(name: &str, most: usize) -> String {
    // Every character takes at least one, so what is behind this is never shown.
    let end = name.char_indices().nth(most + 1).map_or(name.len(), |(at, _)| at);
    let shown = printable(&name[..end]);
    if shown.chars().count() <= most {
        return shown.into_owned();
    }
    shown.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Names as [`clipped`] has them, but with another beginning left out where different names would look alike.
///
/// ```
/// use ssdlab_lab::text::clipped_apart;
///
/// let names = ["tlc [gc.victim=fifo]".to_string(), "tlc [gc.victim=greedy]".to_string(), "slc".to_string()];
/// assert_eq!(clipped_apart(&names, 9), ["…fifo]", "…greedy]", "slc"]);
/// ```
#[must_use]
pub fn clipped_apart(names: &[String], most: usize) -> Vec<String> {
    let mut shown: Vec<String> = names.iter().map(|name| clipped(name, most)).collect();
    for index in 0..names.len() {
        let alike: Vec<usize> = (index..names.len()).filter(|other| shown[*other] == shown[index]).collect();
        let first = &names[index];
        let common = |other: &String| first.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let Some(same) = alike.iter().map(|other| &names[*other]).filter(|other| *other != first).map(common).min()
        else {
            continue;
        };
        let ends: Vec<String> = alike.iter().map(|other| names[*other].chars().skip(same).collect()).collect();
        // Shorter by what was left out, so this ends.
        for (other, end) in alike.into_iter().zip(clipped_apart(&ends, most.saturating_sub(1))) {
            shown[other] = format!("…{end}");
        }
    }
    shown
}

/// Bytes in powers of 1000, as data sheets count them, with three digits or all before the point: `64.0 GB`.
pub(crate) fn decimal_bytes(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut unit, mut value) = (0, bytes);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A table as lines: the first `left` columns begin at the same place, all others end there. Cells that are too long are
/// cut, but for those of a last column that begins at its place, which run free.
#[must_use]
pub fn columns(rows: &[Vec<String>], left: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let runs_free = |column: usize| column + 1 == count && column < left;
    let cell = |row: &Vec<String>, column: usize| -> String {
        let text = row.get(column).map_or("", String::as_str);
        if runs_free(column) { printable(text).into_owned() } else { clipped(text, CELL_MAX) }
    };
    let shown: Vec<Vec<String>> = rows.iter().map(|row| (0..count).map(|column| cell(row, column)).collect()).collect();
    let width = |column: usize| shown.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(|column| if runs_free(column) { 0 } else { width(column) }).collect();
    let mut text = String::new();
    for row in &shown {
        let begin = text.len();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                text.push_str("  ");
            }
            let padding = width.saturating_sub(cell.chars().count());
            let (before, after) = if column < left { (0, padding) } else { (padding, 0) };
            text.extend(std::iter::repeat_n(' ', before));
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', after));
        }
        text.truncate(begin + text[begin..].trim_end().len());
        text.push('\n');
    }
    text
}

/// A share as a percentage with a sensible number of digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent >= 99.95 => format!("{percent:.0} %"),
        _ if percent >= 9.95 => format!("{percent:.1} %"),
        _ if percent >= 0.005 || percent == 0.0 => format!("{percent:.2} %"),
        _ => "less than 0.01 %".to_string(),
    }
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        for letter in (0..=0x10_ffff).filter_map(char::from_u32).filter(|letter| is_unprintable(*letter)) {
            let shown = printable(&format!("a{letter}b")).into_owned();
            assert!(shown.starts_with("a\\") && shown.ends_with('b'), "{shown:?}");
            assert!(shown.is_ascii(), "{shown:?}");
        }
        assert_eq!(printable_lines("one\ttwo\nthree\r\x07"), "one\ttwo\nthree\\r\\u{7}");
        assert_eq!(printable("\u{9b}31m \u{202e}gpj.exe"), "\\u{9b}31m \\u{202e}gpj.exe");
    }

    #[test]
    fn thousands_are_set_apart_in_whole_numbers_alone() {
        let cases = [
            ("1234 sent and 999 completed", "1,234 sent and 999 completed"),
            ("[3, 500000, 0, 1]; 1000000", "[3, 500,000, 0, 1]; 1,000,000"),
            ("9907768.", "9,907,768."),
            ("0.123456 and 1.5000 and v12345 and 0x12345678 and a_12345 and 12345ns", ""),
            ("größer 12345 ß", "größer 12,345 ß"),
            ("", ""),
        ];
        for (plain, shown) in cases {
            assert_eq!(with_thousands(plain, ','), if shown.is_empty() { plain } else { shown });
        }
    }

    #[test]
    fn names_are_cut_by_characters_after_they_were_escaped() {
        assert_eq!(clipped("längst", 6), "längst");
        assert_eq!(clipped("längst zu lang", 6), "längs…");
        assert_eq!(clipped("\x1b\x1b", 6), "\\u{1b…");
        assert_eq!(clipped("", 0), "");
        assert_eq!(clipped(&"n".repeat(70_000), 22).chars().count(), 22);
    }

    #[test]
    fn columns_stand_below_each_other_and_lines_end_without_spaces() {
        let rows = [vec!["a".into(), "1".into(), "x".into()], vec!["längst".into(), "22".into(), String::new()]];
        assert_eq!(columns(&rows, 3), "a       1   x\nlängst  22\n");
        assert_eq!(columns(&rows, 1), "a        1  x\nlängst  22\n");
    }

    #[test]
    fn cells_of_any_width_make_a_table() {
        let wide = "n".repeat(70_000);
        let rows = [vec![wide.clone(), wide.clone()], vec!["a".into(), "b".into()]];
        let table = columns(&rows, 2);
        assert_eq!(table.lines().map(|line| line.chars().count()).collect::<Vec<_>>(), [CELL_MAX + 2 + 70_000, 123]);
        let table = columns(&rows, 1);
        assert!(table.lines().all(|line| line.chars().count() == 2 * CELL_MAX + 2), "{table}");
    }

    #[test]
    fn shares_are_readable() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(percent(0.00001), "less than 0.01 %");
        assert_eq!(percent(0.0), "0.00 %");
    }
}
