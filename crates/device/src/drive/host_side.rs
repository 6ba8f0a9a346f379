//! The host's side: what comes over the link, and what goes back.

use ssdlab_base::{Answer, CommandSet};

use super::commands::CommandCount;
use crate::Completion;
use crate::interface::Interface;

/// The host's side: what comes over the link, and what goes back.
pub(super) struct HostSide {
    pub(super) interface: Interface,
    /// Commands that waited on the host's side are being let in.
    pub(super) admitting: bool,
    pub(super) completions: Vec<Completion>,
    pub(super) read_data: Vec<(u32, Vec<u8>)>,
    /// The commands that the drive knows beyond block I/O, how often each ended, and their answers.
    pub(super) set: Option<&'static CommandSet>,
    pub(super) command_counts: Vec<CommandCount>,
    pub(super) answers: Vec<Answer>,
}
