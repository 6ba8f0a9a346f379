//! Commands of a set in a trace: all of one set, with the words of those that were read last.

use ssdlab_base::Request;

use super::arrange::Arrange;
use super::record::{CommandRecord, Flaw};

/// What a pass over a trace knows of its commands.
#[derive(Debug, Default)]
pub(super) struct Commands {
    set: Option<&'static str>,
    /// Of the batch at hand, by tag.
    words: Vec<Vec<u64>>,
}

impl Commands {
    pub(super) fn take(
        &mut self,
        command: &CommandRecord,
        line: u64,
        arrange: &mut Arrange,
        out: &mut Vec<Request>,
    ) -> Result<(), Flaw> {
        let set = *self.set.get_or_insert(command.set);
        if set != command.set {
            return Err(Flaw::in_words(
                format!("a command of the set '{}'", command.set),
                format!("commands of the set '{set}', as before"),
            ));
        }
        arrange.push_command(command, line, self.words.len() as u32, out)?;
        self.words.push(command.words.clone());
        Ok(())
    }

    pub(super) fn words(&self, tag: u32) -> &[u64] {
        self.words.get(tag as usize).map_or(&[], Vec::as_slice)
    }

    pub(super) fn forget_words(&mut self) {
        self.words.clear();
    }

    pub(super) const fn set(&self) -> Option<&'static str> {
        self.set
    }
}
