//! The commands of the set `shrd`, as they arrive: what cannot be is refused, and nothing has changed.

use std::collections::BTreeSet;

use ssdlab_base::command_sets::shrd::{
    ANOTHER_OLPN, BAD_BLOCK, BEHIND_CAPACITY, BEHIND_LOG, HOLDS_NOTHING, NAMED_TWICE, NO_HEADER, NO_ROOM,
    PART_OF_A_UNIT, Pairs, READ_LOG, REMAP, RESTORE, TRIM_LOG, TWRITE_DATA, TWRITE_HEADER, TwriteHeader, VENDOR_REMAP,
    VENDOR_TRIM_LOG, VENDOR_TWRITE_HEADER,
};
use ssdlab_base::{Opcode, Refusal, Request, SECTOR_BYTES};
use ssdlab_flash::Lpn;

use super::Shrd;
use super::remap_jobs::Work;
use crate::Status;
use crate::ftl::{CannotYet, Commands, Outcome, SetCommand};
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// What a vendor command stands for.
fn plain(opcode: Opcode) -> Opcode {
    match opcode {
        VENDOR_TWRITE_HEADER => TWRITE_HEADER,
        VENDOR_REMAP => REMAP,
        VENDOR_TRIM_LOG => TRIM_LOG,
        other => other,
    }
}

impl Commands for Shrd {
    fn leaves_buffer(&self, media: &Media, command: &SetCommand<'_>) -> Vec<Lpn> {
        let tlpns = match plain(command.opcode) {
            TWRITE_DATA => {
                let Ok((first, count)) = self.range(media, command.request) else { return Vec::new() };
                let of_header = self.rwlb.announced(first, count).unwrap_or_default().iter().copied().map(Lpn);
                let (of_header, tlpns) = (of_header.collect(), first..first + count);
                return self.with_holders(tlpns, of_header);
            }
            REMAP => Pairs::decode(command.words)
                .map_or_else(|_| Vec::new(), |pairs| pairs.0.into_iter().map(|(tlpn, _)| tlpn).collect()),
            TRIM_LOG => Pairs::decode(command.words).map_or_else(
                |_| Vec::new(),
                |pairs| {
                    let end = |first: u32, count: u32| first.saturating_add(count).min(self.rwlb.units());
                    pairs.0.into_iter().flat_map(|(first, count)| first..end(first, count)).collect()
                },
            ),
            RESTORE => self.rwlb.all_held().map(|(tlpn, _)| tlpn).collect(),
            _ => return Vec::new(),
        };
        self.with_holders(tlpns.into_iter(), Vec::new())
    }

    fn execute(&mut self, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, CannotYet> {
        let refused = |refusal: Refusal| Ok(Outcome::new(Status::Refused(refusal)));
        if self.works_for(command.waiter) {
            return self.go_on_with_work(media, command.waiter);
        }
        match plain(command.opcode) {
            TWRITE_HEADER => match self.header(command.words) {
                Ok(TwriteHeader { first, units }) => {
                    self.rwlb.announce(first, units);
                    Ok(Outcome::new(Status::Success))
                }
                Err(refusal) => refused(refusal),
            },
            // Older copies of its units may have stayed in the buffer.
            TWRITE_DATA if command.read_only => Ok(Outcome::new(Status::ReadOnly)),
            TWRITE_DATA => match self.data(media, &command) {
                Ok(outcome) => outcome,
                Err(refusal) => refused(refusal),
            },
            READ_LOG => Ok(Outcome { block_io: true, ..Outcome::new(Status::Success) }),
            REMAP => match self.remap(command.words) {
                Ok(entries) => {
                    self.counters.remaps += 1;
                    self.begin_work(media, Work::remap(command.waiter, &self.rwlb, entries))
                }
                Err(refusal) => refused(refusal),
            },
            TRIM_LOG => match self.trim_log(command.words) {
                Ok(tlpns) => self.begin_work(media, Work::trim(command.waiter, &self.rwlb, tlpns)),
                Err(refusal) => refused(refusal),
            },
            RESTORE => {
                self.rwlb.forget_headers();
                let work = self.restore_work(media, command.waiter);
                self.begin_work(media, work)
            }
            other => unreachable!("{other:?} is no command of the set"),
        }
    }

    fn has_begun(&self, waiter: Waiter) -> bool {
        self.works_for(waiter)
    }

    fn never_written(&mut self, media: &Media, lpns: &[Lpn]) {
        for lpn in lpns {
            self.rwlb.is_as_mapped(media, &self.base.data, *lpn);
        }
    }
}

impl Shrd {
    /// tLPNs, and the units of the user that they hold.
    fn with_holders(&self, tlpns: impl Iterator<Item = u32>, mut lpns: Vec<Lpn>) -> Vec<Lpn> {
        for tlpn in tlpns.filter(|tlpn| *tlpn < self.rwlb.units()) {
            lpns.push(self.rwlb.lpn(tlpn));
            lpns.extend(self.rwlb.held(tlpn).map(|origin| origin.lpn));
        }
        if seeded(Bug::BufferedCopyForgotten) {
            lpns.clear();
        }
        lpns
    }

    /// The tLPNs of a request: the first and how many.
    fn range(&self, media: &Media, request: &Request) -> Result<(u32, u32), Refusal> {
        let per_unit = u64::from(media.unit_bytes) / SECTOR_BYTES;
        if !request.sector.is_multiple_of(per_unit) || !request.sectors.is_multiple_of(per_unit) {
            return Err(PART_OF_A_UNIT);
        }
        // The drive has checked that it is within the log.
        let first = request.sector / per_unit - u64::from(self.rwlb.user_units());
        Ok((first as u32, (request.sectors / per_unit) as u32))
    }

    fn header(&self, words: &[u64]) -> Result<TwriteHeader, Refusal> {
        let header = TwriteHeader::decode(words).map_err(|_| BAD_BLOCK)?;
        let end = header.first.checked_add(header.units.len() as u32);
        if end.is_none_or(|end| end > self.rwlb.units()) {
            return Err(BEHIND_LOG);
        }
        if header.units.iter().any(|lpn| *lpn >= self.rwlb.user_units()) {
            return Err(BEHIND_CAPACITY);
        }
        distinct(header.units.iter().copied())?;
        Ok(header)
    }

    /// Data for the log: the outer error refuses it.
    fn data(&mut self, media: &mut Media, command: &SetCommand<'_>) -> Result<Result<Outcome, CannotYet>, Refusal> {
        let (first, count) = self.range(media, command.request)?;
        if self.rwlb.announced(first, count).is_none() {
            return Err(NO_HEADER);
        }
        if !self.rwlb.has_numbers(count) {
            return Err(NO_ROOM);
        }
        // In the worst case each unit has a page of its own.
        let left = |media: &Media, promised: u32| media.log_pages_left().saturating_sub(promised);
        let promised = self.rwlb.promised();
        if left(media, promised) < count + count {
            let is_turning = self.base.map.ends_active_blocks() || self.rwlb.has_due();
            if media.log_pages_coming() < count && !is_turning && !self.rwlb.has_settled(media) {
                return Err(NO_ROOM);
            }
            self.make_room(media);
            self.wants_room = left(media, promised) < count;
            if self.wants_room {
                return Ok(Err(CannotYet::Space));
            }
        }
        // What is superseded may leave flash when the newer copy of its unit is there.
        let tlpns = first..first + count;
        let in_flight = |lpn: Lpn| !self.is_on_flash(media, lpn);
        let waits = tlpns.clone().filter_map(|tlpn| Some((tlpn, self.rwlb.held(tlpn)?)));
        if waits.into_iter().any(|(tlpn, origin)| in_flight(self.rwlb.lpn(tlpn)) || in_flight(origin.lpn)) {
            return Ok(Err(self.wait_for_programs(command.waiter)));
        }
        self.rwlb.take(media, first);
        self.counters.twrites += 1;
        self.counters.units += u64::from(count);
        let outcome = Outcome::new(Status::Success);
        let write_through = !seeded(Bug::LogNotWrittenThrough);
        Ok(Ok(Outcome { block_io: true, write_through, ..outcome }))
    }

    fn remap(&self, words: &[u64]) -> Result<Vec<(u32, Lpn)>, Refusal> {
        let Pairs(pairs) = Pairs::decode(words).map_err(|_| BAD_BLOCK)?;
        for (tlpn, lpn) in &pairs {
            if *tlpn >= self.rwlb.units() {
                return Err(BEHIND_LOG);
            }
            if *lpn >= self.rwlb.user_units() {
                return Err(BEHIND_CAPACITY);
            }
        }
        distinct(pairs.iter().map(|(tlpn, _)| *tlpn))?;
        distinct(pairs.iter().map(|(_, lpn)| *lpn))?;
        for (tlpn, lpn) in &pairs {
            let held = self.rwlb.held(*tlpn).ok_or(HOLDS_NOTHING)?;
            if held.lpn != Lpn(*lpn) {
                return Err(ANOTHER_OLPN);
            }
        }
        Ok(pairs.into_iter().map(|(tlpn, lpn)| (tlpn, Lpn(lpn))).collect())
    }

    /// The tLPNs of runs that hold something.
    fn trim_log(&self, words: &[u64]) -> Result<Vec<u32>, Refusal> {
        let Pairs(runs) = Pairs::decode(words).map_err(|_| BAD_BLOCK)?;
        if runs.iter().any(|(_, count)| *count == 0) {
            return Err(BAD_BLOCK);
        }
        if runs.iter().any(|(first, count)| first.checked_add(*count).is_none_or(|end| end > self.rwlb.units())) {
            return Err(BEHIND_LOG);
        }
        let all = || runs.iter().flat_map(|(first, count)| *first..*first + *count);
        distinct(all())?;
        Ok(all().filter(|tlpn| self.rwlb.held(*tlpn).is_some()).collect())
    }

    /// Settled log blocks are to become data blocks.
    pub(super) fn make_room(&mut self, media: &mut Media) {
        if self.rwlb.has_settled(media) {
            self.base.map.end_active_blocks_now(&mut self.base.data, media);
        }
        self.convert_settled_logs(media);
    }
}

fn distinct(numbers: impl Iterator<Item = u32>) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for number in numbers {
        if !seen.insert(number) {
            return Err(NAMED_TWICE);
        }
    }
    Ok(())
}
