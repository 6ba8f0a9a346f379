//! What is wrong with a description, as one sentence with its place.

use std::fmt;

use super::errors::MOST_ERRORS;

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
        /// The option that gave it, such as `--set`.
        option: &'static str,
        /// The text after it.
        text: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Whole { file } => write!(f, "{file}"),
            Place::Set { option, text } => write!(f, "{option} '{}'", shown(text)),
        }
    }
}

/// Why a description was refused. It prints as `place: key: what was found and what was expected`, a line an error, and
/// their number where there are several.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DescriptionError {
    /// Where.
    pub place: Place,
    /// The dotted key; empty when the text as a whole is wrong.
    pub key: String,
    /// What was found and what was expected.
    pub reason: String,
    /// What else is wrong, in the order of the file and then of the overrides.
    pub others: Vec<DescriptionError>,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.place, self.reason)?;
        } else {
            write!(f, "{}: {}: {}", self.place, self.key, self.reason)?;
        }
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))?;
        match self.others.len() + 1 {
            1 => Ok(()),
            MOST_ERRORS => write!(f, "\n{MOST_ERRORS} errors or more"),
            errors => write!(f, "\n{errors} errors"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_or_broken_text_is_shown_on_one_short_line() {
        assert_eq!(shown("a\nb"), "a b");
        assert_eq!(shown(&"é".repeat(100)).chars().count(), 63);
    }
}
