//! Lists of owners, where they are in the place of OOB areas: what commands promise, and what waits for space.

use ssdlab_base::Op;
use ssdlab_flash::Lpn;

use super::Drive;
use crate::Status;
use crate::ftl::Found;
use crate::media::Promised;
use crate::seeded::{Bug, seeded};

impl Drive {
    /// Whether a command that has done all else waits until lists name what it promises. They are written early for it.
    #[cold]
    pub(super) fn awaits_lists(&mut self, command: u32) -> bool {
        let state = &mut self.commands[command];
        if std::mem::replace(&mut state.listed, true) || state.status != Status::Success {
            return false;
        }
        let request = state.request;
        let promised = match request.op {
            Op::Flush if !seeded(Bug::FlushBeforeLists) => Promised::Everything,
            Op::Trim | Op::WriteZeroes if request.fua => Promised::Everything,
            Op::Write if request.fua && request.sectors > 0 && !seeded(Bug::FuaBeforeList) => {
                let first = Lpn((request.sector / self.sectors_per_unit) as u32);
                let end = Lpn(request.end().div_ceil(self.sectors_per_unit) as u32);
                // Of a unit that was trimmed since, and whose program failed, the record of that trim is all there is.
                let is_trimmed = |lpn| self.ftl.find(lpn) == Found::Unmapped;
                // Nor are owners with marks of a design's own those of a range.
                if !request.opcode.is_block() || Lpn::each(first..end).any(is_trimmed) {
                    Promised::Everything
                } else {
                    Promised::Units(first, end)
                }
            }
            _ => return false,
        };
        if !self.media.list_for_command(command, promised) {
            return false;
        }
        self.commands[command].remaining = 1;
        if !self.media.flash.timed() {
            self.work_untimed();
            self.end_listed_commands();
        }
        true
    }

    /// Commands end whose lists are on flash. Returns whether one did.
    pub(super) fn end_listed_commands(&mut self) -> bool {
        let commands = self.media.take_listed_commands();
        let ends = !commands.is_empty();
        commands.into_iter().for_each(|command| self.release_command(command));
        ends
    }

    /// Where something waits for space, and emptied blocks for lists: those are written early. Returns whether one was.
    pub(super) fn list_for_space(&mut self) -> bool {
        let waits = || {
            !self.waiting.stalled.is_empty() || !self.failures.pending_rewrites.is_empty() || self.stage.destage_waits
        };
        self.media.lists_owners() && waits() && self.media.list_for_space()
    }

    /// Lists name all that was written, and what waited for them comes to its end.
    pub(super) fn list_all(&mut self) {
        while self.media.list_all() {
            if self.media.flash.timed() {
                self.run_out();
            } else {
                self.work_untimed();
            }
        }
    }
}
