//! All errors of a description, gathered while it is read: a datasheet is copied key by key, and an error a run would take as
//! many runs as there are mistakes.
//!
//! [`Section::check`](super::Section::check) tells what the tables of keys know of each key by itself, and readers tell what
//! keys ask of each other. A reader returns at its first error as usual and goes through [`Errors::keep`], so what depends on a
//! bad value is not judged.

use super::error::DescriptionError;
use super::tree::Tree;

/// Most errors that are gathered: of text that is no description at all, the first will do.
pub(super) const MOST_ERRORS: usize = 100;

/// Errors of one description.
#[derive(Debug, Default)]
pub struct Errors {
    found: Vec<Found>,
    /// Keys that are not there, since something similar is.
    misspelt: Vec<String>,
}

#[derive(Debug)]
struct Found {
    error: DescriptionError,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The key is there, and there is none of that name.
    Unknown,
    /// The key is not there.
    Missing,
    Wrong,
}

impl Errors {
    /// The value that was read; its error is kept where there is none.
    pub fn keep<T>(&mut self, read: Result<T, DescriptionError>) -> Option<T> {
        read.map_err(|error| self.add(error)).ok()
    }

    /// Keeps an error. A key is told once: its reader knows more of it than the table of keys, which was asked before.
    pub fn add(&mut self, error: DescriptionError) {
        match self.found.iter_mut().find(|found| found.error.key == error.key) {
            Some(found) => found.error = error,
            None => self.push(error, What::Wrong),
        }
    }

    /// Keeps the error of a key that is not there.
    pub(super) fn missing(&mut self, error: DescriptionError) {
        self.push(error, What::Missing);
    }

    /// Keeps the error of a key that is unknown. Where the one that was probably meant is not there, mending this one mends both.
    pub(super) fn unknown(&mut self, error: DescriptionError, meant: Option<String>) {
        if !self.is_full() {
            self.push(error, What::Unknown);
            self.misspelt.extend(meant);
        }
    }

    /// Whether no more errors are kept: there is no need to look for them.
    pub fn is_full(&self) -> bool {
        self.found.len() == MOST_ERRORS
    }

    fn push(&mut self, error: DescriptionError, what: What) {
        if !self.is_full() {
            self.found.push(Found { error, what });
        }
    }

    /// All of them as one, in the order of the file and then of the overrides; nothing where there are none.
    ///
    /// # Errors
    /// There are some.
    pub fn into_result(self, tree: &Tree) -> Result<(), DescriptionError> {
        let follows = |found: &Found| {
            let key = &found.error.key;
            let of = |meant: &String| match found.what {
                What::Unknown => false,
                What::Missing => is_within(key, meant) || is_within(meant, key),
                What::Wrong => is_within(key, meant),
            };
            self.misspelt.iter().any(of)
        };
        let mut errors: Vec<DescriptionError> =
            self.found.iter().filter(|found| !follows(found)).map(|found| found.error.clone()).collect();
        // Stable: keys that are missing in one table keep the order of the tables of keys.
        errors.sort_by_key(|error| tree.order_of(&error.place));
        let mut errors = errors.into_iter();
        match errors.next() {
            Some(first) => Err(DescriptionError { others: errors.collect(), ..first }),
            None => Ok(()),
        }
    }
}

/// Whether a dotted key is another one or below it.
fn is_within(key: &str, other: &str) -> bool {
    key.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
