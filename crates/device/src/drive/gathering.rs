//! Reads through a read buffer in DRAM (`controller.reads = "gather"`; Getting Real, section 3.1.2).
//!
//! A page that the write buffer filled holds units of any addresses, so that the units of one command may be on a page in any order. Where
//! enough of the page is valid, one read brings all units that the command wants from there; else each unit has a read of its own. What
//! was read is in the read buffer: it is copied from there, and the host's transfer begins when all wanted units are copied. The rest
//! of a page is not waited for, and does not cross the channel.

use ssdlab_flash::{Lpn, Ppn, UnitId};

use super::Drive;
use super::dispatch::Stall;
use crate::Reads;
use crate::ftl::Found;
use crate::waiter::Waiter;

impl Drive {
    /// Reads what the buffer does not hold, with as few reads of pages as the share of their valid units allows.
    pub(super) fn read_gathered(&mut self, command: u32) -> Result<(), Stall> {
        let mut wanted: Vec<(Ppn, u32)> = Vec::new();
        self.read_pages(command, |_, _, page, sectors| {
            if page == Ppn::NONE {
                return;
            }
            match wanted.iter_mut().find(|(known, _)| *known == page) {
                Some((_, more)) => *more += sectors,
                None => wanted.push((page, sectors)),
            }
        })?;
        let request = self.commands[command].request;
        debug_assert!(
            wanted.iter().map(|(_, sectors)| u64::from(*sectors)).sum::<u64>() <= request.sectors,
            "{wanted:?} is more than {request:?} asks for"
        );
        for (page, sectors) in wanted {
            if self.gathers(page) {
                self.read_page(command, page, sectors);
                continue;
            }
            let (mut left, unit) = (sectors, self.sectors_per_unit as u32);
            while left > 0 {
                let part = left.min(unit);
                self.read_page(command, page, part);
                left -= part;
            }
        }
        Ok(())
    }

    /// Whether so many units of a page are valid that one read gathers those that a command wants.
    fn gathers(&self, page: Ppn) -> bool {
        let units = self.media.units_per_page;
        debug_assert!(self.config.controller.gather_percent <= 100, "a share of a page's units is at most all of them");
        let first = page.first_unit(units);
        let mapped_units = self.config.mapped_units();
        let is_valid = |unit: &UnitId| {
            let lpn = self.ftl.owner(self.media.flash.oob.lpn(*unit));
            let is_mapped = lpn != Lpn::NONE && lpn.0 < mapped_units;
            is_mapped && self.ftl.find(lpn) == Found::At { unit: *unit }
        };
        let valid = UnitId::each(first..first + units).filter(is_valid).count();
        valid as u64 * 100 >= u64::from(self.config.controller.gather_percent) * u64::from(units)
    }

    /// The command that waits for a read, by itself or by way of the read buffer.
    pub(super) fn command_that_reads(&self, waiter: Waiter) -> Option<u32> {
        match waiter {
            Waiter::Command(command) => Some(command),
            Waiter::Gathered(slot) => Some(self.reads.gathered[slot].command),
            _ => None,
        }
    }

    /// Who waits for the read of `sectors` sectors of a page: the command itself, or what copies them from the read buffer.
    #[inline]
    pub(super) fn read_owner(&mut self, command: u32, sectors: u32) -> Waiter {
        if self.config.controller.reads != Reads::Gather {
            return Waiter::Command(command);
        }
        Waiter::Gathered(self.reads.gathered.insert(Gathered { command, sectors }))
    }

    /// What a command wants from a page is in the read buffer: it is copied from there.
    #[cold]
    pub(super) fn gathered(&mut self, slot: u32) {
        let Gathered { command, sectors } = self.reads.gathered[slot];
        self.reads.gathered.release(slot);
        debug_assert!(sectors > 0, "nothing was read for command {command}");
        debug_assert!(
            self.commands[command].remaining > 0,
            "command {command} waits for nothing, and its data was read"
        );
        self.wait_for_copy(command, sectors);
        self.release_command(command);
    }
}

/// What one read brings to the read buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    /// The command that waits for it.
    command: u32,
    /// What it wants.
    sectors: u32,
}
