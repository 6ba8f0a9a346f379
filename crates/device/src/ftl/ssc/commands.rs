//! The set `cache`, as its commands arrive.

use std::ops::Range;

use ssdlab_base::command_sets::cache::{
    BlockBits, CLEAN, EVICT, EXISTS, IDLE, MOST_BLOCKS, Miss, NO_ROOM, PART_OF_A_BLOCK, READ, STANDBY, TOO_LONG,
    WRITE_CLEAN, WRITE_DIRTY,
};
use ssdlab_base::{Refusal, SECTOR_BYTES};
use ssdlab_flash::Lpn;

use super::Ssc;
use crate::Status;
use crate::ftl::{CannotYet, Commands, Ftl, Outcome, SetCommand, TrimTarget};
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// The blocks that a command touches.
fn touched(media: &Media, command: &SetCommand<'_>) -> Range<Lpn> {
    let per_unit = u64::from(media.unit_bytes) / SECTOR_BYTES;
    let request = command.request;
    if request.sectors == 0 {
        return Lpn(0)..Lpn(0);
    }
    Lpn((request.sector / per_unit) as u32)..Lpn(request.end().div_ceil(per_unit) as u32)
}

/// The blocks of a command, which covers them from end to end.
fn whole(media: &Media, command: &SetCommand<'_>) -> Result<Range<Lpn>, Refusal> {
    let per_unit = u64::from(media.unit_bytes) / SECTOR_BYTES;
    let request = command.request;
    let is_whole = request.sector.is_multiple_of(per_unit) && request.end().is_multiple_of(per_unit);
    if is_whole { Ok(touched(media, command)) } else { Err(PART_OF_A_BLOCK) }
}

/// Refuses a range of more blocks than an answer has bits for.
fn fits(blocks: &Range<Lpn>) -> Result<(), Refusal> {
    if blocks.end - blocks.start <= MOST_BLOCKS { Ok(()) } else { Err(TOO_LONG) }
}

impl Commands for Ssc {
    fn leaves_buffer(&self, media: &Media, command: &SetCommand<'_>) -> Vec<Lpn> {
        match command.opcode {
            EVICT | CLEAN => Lpn::each(touched(media, command)).collect(),
            // What was dropped is not there, even if the buffer kept what was read of it.
            READ => {
                let is_dropped = |lpn: &Lpn| self.table.get(*lpn).is_none() && !command.buffered.contains(lpn);
                Lpn::each(touched(media, command)).filter(is_dropped).collect()
            }
            _ => Vec::new(),
        }
    }

    fn execute(&mut self, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, CannotYet> {
        let refused = |refusal: Refusal| Ok(Outcome::new(Status::Refused(refusal)));
        let outcome = match command.opcode {
            WRITE_DIRTY | WRITE_CLEAN => self.written(media, &command),
            READ => self.read(media, &command),
            EXISTS => self.exists(media, &command),
            EVICT | CLEAN if command.read_only => Ok(Outcome::new(Status::ReadOnly)),
            EVICT | CLEAN => match whole(media, &command) {
                Ok(blocks) => return self.change(media, &command, blocks),
                Err(refusal) => Err(refusal),
            },
            STANDBY | IDLE => Ok(Outcome { saves_trims: true, awaits_records: true, ..Outcome::new(Status::Success) }),
            other => unreachable!("{other:?} is no command of the set"),
        };
        outcome.or_else(refused)
    }
}

impl Ssc {
    fn written(&mut self, media: &Media, command: &SetCommand<'_>) -> Result<Outcome, Refusal> {
        let blocks = whole(media, command)?;
        let clean = command.opcode == WRITE_CLEAN;
        if !self.is_loose(clean) && !command.has_room {
            return Err(NO_ROOM);
        }
        self.counters.written_clean += if clean { u64::from(blocks.end - blocks.start) } else { 0 };
        Ok(Outcome { block_io: true, expendable: clean, ..Outcome::new(Status::Success) })
    }

    fn read(&self, media: &mut Media, command: &SetCommand<'_>) -> Result<Outcome, Refusal> {
        let blocks = touched(media, command);
        fits(&blocks)?;
        let Some(miss) = Miss::of_words(command.words) else { return Ok(Outcome::new(Status::Invalid)) };
        let is_missing = |lpn: Lpn| self.table.get(lpn).is_none() && !command.buffered.contains(&lpn);
        let missing: Vec<bool> = Lpn::each(blocks.clone()).map(is_missing).collect();
        let all_missing = missing.iter().all(|missing| *missing);
        if !missing.contains(&true) {
            return Ok(Outcome { block_io: !all_missing, ..Outcome::new(Status::Success) });
        }
        // Block I/O looks blocks up itself.
        if miss == Miss::Error || miss == Miss::Words && all_missing {
            for lpn in Lpn::each(blocks.clone()) {
                self.look_up(lpn);
            }
            media.look_up(blocks.end - blocks.start + self.owed.take());
        }
        let words = BlockBits(missing).words();
        Ok(match miss {
            Miss::Words => Outcome { words, block_io: !all_missing, ..Outcome::new(Status::Absent) },
            Miss::Pattern => Outcome { words, block_io: true, absent_in_data: true, ..Outcome::new(Status::Success) },
            Miss::Error => Outcome::new(Status::UncorrectableRead),
        })
    }

    fn exists(&self, media: &mut Media, command: &SetCommand<'_>) -> Result<Outcome, Refusal> {
        let blocks = touched(media, command);
        fits(&blocks)?;
        media.look_up(blocks.end - blocks.start);
        let in_map = |lpn: Lpn| self.look_up(lpn).is_some_and(|present| !present.clean);
        let is_dirty = |lpn: Lpn| match command.buffered.contains(&lpn) {
            true => !command.expendable.contains(&lpn),
            false => in_map(lpn),
        };
        let dirty = BlockBits(Lpn::each(blocks).map(is_dirty).collect());
        Ok(Outcome { bytes: dirty.bytes(), ..Outcome::new(Status::Success) })
    }

    /// Evicts or cleans blocks, as far as the log has room for that.
    fn change(
        &mut self,
        media: &mut Media,
        command: &SetCommand<'_>,
        blocks: Range<Lpn>,
    ) -> Result<Outcome, CannotYet> {
        self.settle_erased(media);
        // From the first one on each time: what the write buffer could not give up before may be on flash now.
        for (number, lpn) in (1..).zip(Lpn::each(blocks)) {
            if self.log.in_sram.len() >= self.log.per_unit() {
                self.save_trims(media, TrimTarget::Host, Waiter::None)?;
            }
            media.look_up(1);
            if command.opcode == EVICT {
                self.evict(media, lpn);
            } else {
                self.clean(media, lpn);
            }
            command.furthest.set(command.furthest.get().max(number));
        }
        let owed = self.owed.take();
        media.look_up(owed);
        Ok(Outcome::new(Status::Success))
    }

    /// The disk has the data of a block: if the block is there and dirty it becomes clean.
    fn clean(&mut self, media: &mut Media, lpn: Lpn) {
        let Some(present) = self.look_up(lpn).filter(|present| !present.clean) else { return };
        self.table.set_clean(lpn);
        let place = media.place_of(present.unit);
        // After a power cut it is clean, or absent if this copy is lost: never an older one.
        let copy = media.flash.oob.sequence(place.block, place.page);
        self.log.note(lpn.0, Some(if seeded(Bug::CleanedCopyUnnamed) { 0 } else { copy }), true);
        if self.is_loose(true) {
            self.invalidate(media, present.unit, false);
            self.set_valid(media, present.unit, true);
            self.may_return(media, lpn);
        }
        self.counters.cleaned += 1;
    }
}
