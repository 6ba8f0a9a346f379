//! What is wrong with a description, as one sentence with its place.

use std::fmt;

/// Where a problem was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A position in a file; both count from 1, the column in characters.
    File {
        /// The file as it was named.
        file: String,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// A file as a whole.
    Whole {
        /// The file as it was named.
        file: String,
    },
    /// An override, as it was written.
    Set {
        /// The text after `--set`.
        text: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Whole { file } => write!(f, "{file}"),
            Place::Set { text } => write!(f, "--set '{}'", shown(text)),
        }
    }
}

/// Why a description was refused. It prints as `place: key: what was found and what was expected`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DescriptionError {
    /// Where.
    pub place: Place,
    /// The dotted key; empty when the text as a whole is wrong.
    pub key: String,
    /// What was found and what was expected.
    pub reason: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.place, self.reason)
        } else {
            write!(f, "{}: {}: {}", self.place, self.key, self.reason)
        }
    }
}

/// Text for a message: on one line, and cut when it is long.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push_str("...");
    }
    out
}

/// `a, b or c`, for messages.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_string(),
        [one] => (*one).to_string(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The name closest to what was written, if one is close enough to be meant.
pub(super) fn closest<'n>(written: &str, names: &[&'n str]) -> Option<&'n str> {
    const LONGEST: usize = 40;
    let written: Vec<char> = written.chars().take(LONGEST + 1).collect();
    if written.len() > LONGEST {
        return None;
    }
    names
        .iter()
        .map(|name| (distance(&written, name), *name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions and substitutions from one to the other.
fn distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (above, letter) in to.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for index in 0..from.len() {
            let substituted = diagonal + usize::from(from[index] != letter);
            diagonal = row[index + 1];
            row[index + 1] = substituted.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[from.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let names = ["channels", "chips_per_channel", "page_size"];
        assert_eq!(closest("chanels", &names), Some("channels"));
        assert_eq!(closest("pagesize", &names), Some("page_size"));
        assert_eq!(closest("victim", &names), None);
        assert_eq!(closest(&"x".repeat(100_000), &names), None);
    }

    #[test]
    fn long_or_broken_text_is_shown_on_one_short_line() {
        assert_eq!(shown("a\nb"), "a b");
        assert_eq!(shown(&"é".repeat(100)).chars().count(), 63);
    }
}
