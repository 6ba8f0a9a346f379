//! Room for what a drive with more addresses than room has to keep (FlashTier's `no-room`): a write that would need more is refused.
//!
//! A drive of the set `cache` drops clean data for whatever comes, but has to keep dirty data: on flash, in the write buffer, and what
//! commands that were let in have still to bring. All of it together is never more than the drive has room for, so a write that
//! was let in finds a place. What the drive need not keep any more, but a power cut may bring back, takes its room until that is
//! impossible: a write that needs such room waits until the notes on it are on flash.

use std::collections::BTreeSet;
use std::ops::Range;

use ssdlab_base::{Op, Opcode};
use ssdlab_flash::Lpn;

use super::Drive;
use super::dispatch::Stall;
use crate::Status;
use crate::buffer::Slot;
use crate::ftl::TrimTarget;
use crate::waiter::Waiter;

/// Who has been let in.
#[derive(Default)]
pub(super) struct Admitted {
    /// Commands that have still to bring a part of what they write.
    commands: BTreeSet<u32>,
}

impl Drive {
    /// Refuses a command of block I/O that would need more room than there is; false if it was refused.
    #[cold]
    #[inline(never)]
    pub(super) fn enters_room(&mut self, command: u32) -> Result<bool, Stall> {
        if self.finds_room(command)? {
            self.is_let_in(command);
            return Ok(true);
        }
        let limit = self.ftl.limited_room().expect("room is limited");
        self.commands[command].status = Status::Refused(limit.refusal());
        self.commit_effect(command);
        Ok(false)
    }

    /// Whether what a write of the set brings takes room.
    pub(super) fn keeps(&self, opcode: Opcode) -> bool {
        self.admitted.is_some() && self.ftl.limited_room().is_some_and(|limit| limit.keeps(opcode))
    }

    /// A command may write; its room is kept for it.
    pub(super) fn is_let_in(&mut self, command: u32) {
        if let Some(admitted) = &mut self.admitted {
            admitted.commands.insert(command);
        }
    }

    /// A command has written all that it brings, or never will.
    pub(super) fn leaves_room(&mut self, command: u32) {
        if let Some(admitted) = &mut self.admitted {
            admitted.commands.remove(&command);
        }
    }

    /// Whether there is room for what a command writes. It waits if there will be.
    pub(super) fn finds_room(&mut self, command: u32) -> Result<bool, Stall> {
        let Some(admitted) = &self.admitted else { return Ok(true) };
        if admitted.commands.contains(&command) {
            return Ok(true);
        }
        let wanted = self.writes_units(command);
        let touched: u64 = wanted.iter().map(|units| u64::from(units.end - units.start)).sum();
        let reserved = self.units_to_come();
        let buffered = self.stage.buffer.as_ref().map_or(0, |buffer| u64::from(buffer.units()));
        let at_most = touched + reserved.iter().map(|units| u64::from(units.end - units.start)).sum::<u64>() + buffered;
        let limit = self.ftl.limited_room().expect("room is limited");
        let room = limit.room().saturating_sub(limit.kept());
        if at_most + limit.may_return() <= room {
            return Ok(true);
        }
        let of_buffer = self.stage.buffer.iter().flat_map(|buffer| buffer.dirty_lpns(limit.keeps_expendable()));
        let in_buffer: BTreeSet<Lpn> = of_buffer.collect();
        let counts = |lpn: &Lpn| !in_buffer.contains(lpn) && !limit.is_kept(*lpn);
        let more =
            |units: &[Range<Lpn>]| units.iter().flat_map(|units| Lpn::each(units.clone())).filter(counts).count();
        let of_buffer = in_buffer.iter().filter(|lpn| !limit.is_kept(**lpn)).count();
        let of_command = more(&wanted);
        let all = of_command + more(&reserved) + of_buffer;
        if of_command == 0 {
            return Ok(true);
        }
        if all as u64 > room {
            let superseded = self.superseded();
            if superseded.is_empty() || all as u64 > room + superseded.len() as u64 {
                return Ok(false);
            }
            // They are kept until what came in for them is on its way to flash.
            self.evict(&superseded, None)?;
            return self.finds_room(command);
        }
        if self.may_return_less(room - all as u64) {
            return Ok(true);
        }
        self.make_room_durable()?;
        match self.may_return_less(room - all as u64) {
            true => Ok(true),
            false => Err(Stall::NoSpace),
        }
    }

    /// Expendable units in the write buffer whose older data on flash is kept.
    fn superseded(&self) -> Vec<Slot> {
        let Some(limit) = self.ftl.limited_room().filter(|limit| !limit.keeps_expendable()) else { return Vec::new() };
        let buffered = self.stage.buffer.iter().flat_map(|buffer| buffer.expendable());
        let mut kept: Vec<(Lpn, Slot)> = buffered.filter(|(lpn, _)| limit.is_kept(*lpn)).collect();
        kept.sort_unstable_by_key(|(lpn, _)| *lpn);
        kept.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Units that a command writes: of a trim the parts that it fills with zeroes.
    fn writes_units(&self, command: u32) -> Vec<Range<Lpn>> {
        let request = self.commands[command].request;
        if request.sectors == 0 {
            return Vec::new();
        }
        let per_unit = self.sectors_per_unit;
        let unit = |sector: u64| Lpn((sector / per_unit) as u32);
        let touched = unit(request.sector)..Lpn(request.end().div_ceil(per_unit) as u32);
        if request.op == Op::Write {
            return vec![touched.start + self.commands[command].cursor..touched.end];
        }
        let is_part = |sector: &u64| !sector.is_multiple_of(per_unit);
        let mut parts: Vec<Lpn> = [request.sector, request.end()].into_iter().filter(is_part).map(unit).collect();
        parts.dedup();
        parts.into_iter().filter(|lpn| self.ftl.is_mapped(*lpn)).map(|lpn| lpn..lpn + 1).collect()
    }

    /// What commands that were let in have still to write.
    fn units_to_come(&self) -> Vec<Range<Lpn>> {
        let admitted = self.admitted.iter().flat_map(|admitted| &admitted.commands);
        admitted.flat_map(|command| self.writes_units(*command)).collect()
    }

    /// Whether a power cut can bring back no more than so many units.
    fn may_return_less(&mut self, most: u64) -> bool {
        self.ftl.settle_room(&self.media);
        self.ftl.limited_room().is_some_and(|limit| limit.may_return() <= most)
    }

    /// Starts what makes sure that a power cut brings nothing back.
    fn make_room_durable(&mut self) -> Result<(), Stall> {
        self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None)?;
        self.media.wakes.room_waits = true;
        self.media.list_for_room();
        if !self.media.flash.timed() {
            self.work_untimed();
        }
        Ok(())
    }
}
