//! How a command ends that could not do what was asked: a sentence, a hint, and a status.

use std::fmt;
use std::io::ErrorKind;

use ssdlab_lab::output::OutputError;

/// Why a command failed. Status 2 is the asker's to mend, status 1 is not (or not by other input).
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    sentence: String,
    hint: Option<String>,
}

impl Failure {
    /// The input was wrong.
    pub(crate) fn input(sentence: impl fmt::Display) -> Failure {
        Failure { status: 2, sentence: sentence.to_string(), hint: None }
    }

    /// The input was good, and the work failed.
    pub(crate) fn work(sentence: impl fmt::Display) -> Failure {
        Failure { status: 1, sentence: sentence.to_string(), hint: None }
    }

    /// With a hint what to do about it.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

impl From<ssdlab_lab::SourceError> for Failure {
    fn from(error: ssdlab_lab::SourceError) -> Failure {
        Failure { hint: error.hint.map(std::borrow::Cow::into_owned), ..Failure::input(error.sentence) }
    }
}

impl From<ssdlab::DeviceError> for Failure {
    fn from(error: ssdlab::DeviceError) -> Failure {
        Failure { hint: error.hint(), ..Failure::input(error.sentence()) }
    }
}

impl From<ssdlab::Error> for Failure {
    fn from(error: ssdlab::Error) -> Failure {
        match error {
            ssdlab::Error::Device(error) => error.into(),
            ssdlab::Error::Workload(error) => error.into(),
            ssdlab::Error::Output(error) => error.into(),
            error => Failure::input(error),
        }
    }
}

impl From<OutputError> for Failure {
    /// A full disk is not the input's fault; a folder that cannot be written is.
    fn from(error: OutputError) -> Failure {
        match error.source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::work(&error),
            _ => Failure::input(&error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.sentence)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
