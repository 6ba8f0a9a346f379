//! Remaps, trims of tLPNs and `restore`: entry by entry, each with the map pages of both its names in the cache. Nothing is
//! pinned between two entries.

use std::collections::BTreeMap;

use ssdlab_flash::{Lpn, Origin, UnitId};

use super::Shrd;
use super::rwlb::Rwlb;
use crate::ftl::{CachedMap, CannotYet, Outcome};
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;
use crate::{MapUser, Status};

/// Steps whose map pages are loaded ahead.
const STEPS_AHEAD: usize = 128;

/// The kind of work of `restore`.
const RESTORING: &str = "restore";

/// What is done with a tLPN.
#[derive(Clone, Copy, Debug)]
struct Step {
    tlpn: u32,
    /// The number of what it holds: what was written there since the command came is left alone.
    number: u32,
    /// The unit that gets its entry; `None` where it is dropped.
    to: Option<Lpn>,
}

/// A command that changes many entries.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) waiter: Waiter,
    kind: &'static str,
    steps: Vec<Step>,
    next: usize,
    /// The map page of the last oLPN.
    page: Option<u32>,
    /// What the host wrote and was not told of is not on flash, and may come there later.
    leaves_unsettled: bool,
}

impl Work {
    pub(super) fn remap(waiter: Waiter, rwlb: &Rwlb, entries: Vec<(u32, Lpn)>) -> Work {
        let number = |tlpn| rwlb.held(tlpn).map_or(0, |origin| origin.number);
        let steps = entries.into_iter().map(|(tlpn, lpn)| Step { tlpn, number: number(tlpn), to: Some(lpn) }).collect();
        Work { waiter, kind: "remap", steps, next: 0, page: None, leaves_unsettled: false }
    }

    pub(super) fn trim(waiter: Waiter, rwlb: &Rwlb, tlpns: Vec<u32>) -> Work {
        let number = |tlpn| rwlb.held(tlpn).map_or(0, |origin| origin.number);
        let steps = tlpns.into_iter().map(|tlpn| Step { tlpn, number: number(tlpn), to: None }).collect();
        Work { waiter, kind: "trim of the log", steps, next: 0, page: None, leaves_unsettled: false }
    }

    pub(super) const fn kind(&self) -> &'static str {
        self.kind
    }
}

impl Shrd {
    /// All that is in the log, by oLPN. Of several copies of a unit the one that the host wrote last gets its name, unless the
    /// one at home is newer.
    pub(super) fn restore_work(&self, media: &Media, waiter: Waiter) -> Work {
        let mut newest: BTreeMap<Lpn, (u32, u32)> = BTreeMap::new();
        let is_written = |(tlpn, origin): &(u32, Origin)| {
            self.unit_of(media, *tlpn, *origin).is_some() && self.will_stay(media, *tlpn)
        };
        for (tlpn, origin) in self.rwlb.all_held().filter(is_written) {
            let newer = newest.entry(origin.lpn).or_insert((origin.number, tlpn));
            *newer = (*newer).max((origin.number, tlpn));
        }
        let mut steps: Vec<Step> = Vec::new();
        for (tlpn, origin) in self.rwlb.all_held() {
            let moves =
                newest.get(&origin.lpn).is_some_and(|newest| newest.1 == tlpn) && self.is_current(media, origin);
            steps.push(Step { tlpn, number: origin.number, to: moves.then_some(origin.lpn) });
        }
        steps.sort_by_key(|step| (step.to.is_none(), step.to, step.tlpn));
        Work { waiter, kind: RESTORING, steps, next: 0, page: None, leaves_unsettled: false }
    }

    /// Whether the host wrote a unit of the log after what is at home, and after the last trim of it.
    fn is_current(&self, media: &Media, held: Origin) -> bool {
        let home = self.base.data.unit_of(held.lpn).map(|unit| media.flash.oob.origin(unit).number);
        let trimmed = self.base.map.is_trimmed_since(held.lpn);
        home.is_none_or(|home| home <= held.number) && trimmed.is_none_or(|since| since <= held.number)
    }

    /// Whether what a tLPN holds is on flash or on its way there. A drive that takes no more writes keeps a page whose
    /// program failed in RAM. If that moved what the host had written, the copy that it was moved from is on flash
    /// still, since the host was told so. If it brought what the host wrote, the host was not, and it must not
    /// supersede what is on flash.
    fn will_stay(&self, media: &Media, tlpn: u32) -> bool {
        let is_written = |held| Rwlb::is_on_flash(media, held);
        !self.base.map.is_read_only()
            || self.is_on_flash(media, self.rwlb.lpn(tlpn))
            || self.rwlb.held(tlpn).is_some_and(is_written)
    }

    pub(super) fn begin_work(&mut self, media: &mut Media, work: Work) -> Result<Outcome, CannotYet> {
        let waiter = work.waiter;
        assert!(!self.works_for(waiter), "{:?} begins, and one of the same command is not done", work.kind);
        self.works.push(work);
        self.go_on_with_work(media, waiter)
    }

    /// A page of the log that a command is about is not on flash, since the drive takes no more writes. It may still be programmed when a
    /// block becomes free, and the next recovery finds it then.
    fn leaves_unsettled(&mut self, waiter: Waiter) {
        let work = self.works.iter_mut().find(|work| work.waiter == waiter);
        work.expect("a command that has begun").leaves_unsettled = true;
    }

    /// Whether a command has begun, and is not done.
    pub(super) fn works_for(&self, waiter: Waiter) -> bool {
        self.works.iter().any(|work| work.waiter == waiter)
    }

    /// A command waits until programs in flight have ended.
    pub(super) fn wait_for_programs(&mut self, waiter: Waiter) -> CannotYet {
        if !self.for_programs.contains(&waiter) {
            self.for_programs.push(waiter);
        }
        CannotYet::Map
    }

    pub(super) fn go_on_with_work(&mut self, media: &mut Media, waiter: Waiter) -> Result<Outcome, CannotYet> {
        let at = self.works.iter().position(|work| work.waiter == waiter).expect("a command that has begun");
        while let Some(step) = self.works[at].steps.get(self.works[at].next).copied() {
            if let Err(why) = self.take_step(media, waiter, step) {
                self.load_next_steps(media, at);
                return Err(why);
            }
            let work = &mut self.works[at];
            work.next += 1;
            if let Some(page) = step.to.map(|lpn| self.base.map.shape.page_of(lpn))
                && work.page.replace(page) != Some(page)
                && work.kind == "remap"
            {
                self.counters.remap_pages += 1;
            }
        }
        let work = self.works.remove(at);
        self.end_active_blocks(media);
        let is_in_doubt = work.kind == RESTORING && work.leaves_unsettled;
        Ok(Outcome::new(if is_in_doubt { Status::ReadOnly } else { Status::Success }))
    }

    /// The map pages of the steps that follow are loaded side by side: a map page in a chip is not far behind another.
    fn load_next_steps(&mut self, media: &mut Media, at: usize) {
        let work = &self.works[at];
        let next = work.steps[work.next..].iter().filter_map(|step| step.to).take(STEPS_AHEAD).collect::<Vec<_>>();
        if media.flash.timed() && !next.is_empty() {
            self.base.map.load_ahead(&mut self.base.data, media, &next, MapUser::Host);
        }
    }

    /// Where the data of a tLPN is, if what it holds is there already.
    fn unit_of(&self, media: &Media, tlpn: u32, held: Origin) -> Option<UnitId> {
        let unit = self.base.data.unit_of(self.rwlb.lpn(tlpn))?;
        (media.flash.oob.origin(unit) == held).then_some(unit)
    }

    /// An entry goes from a tLPN to a unit of the user, or is dropped.
    fn take_step(&mut self, media: &mut Media, waiter: Waiter, step: Step) -> Result<(), CannotYet> {
        let origin = self.rwlb.held(step.tlpn).filter(|origin| origin.number == step.number);
        let Some(origin) = origin else { return Ok(()) };
        let from = self.rwlb.lpn(step.tlpn);
        let Some(unit) = self.unit_of(media, step.tlpn, origin) else {
            // Its data took effect and is in the write buffer alone: the drive takes no more writes, and the host was
            // not told that it is there.
            assert!(self.rwlb.promised() > 0, "tLPN {} holds unit {}, and is not mapped", step.tlpn, origin.lpn);
            self.leaves_unsettled(waiter);
            return Ok(());
        };
        // What is dropped or superseded may leave flash as soon as the newer copy is there.
        let is_there = |lpn: Lpn| self.is_on_flash(media, lpn);
        let from_is_there = is_there(from);
        let is_settled = from_is_there || seeded(Bug::RemapBeforeData);
        let all_is_there = from_is_there && is_there(origin.lpn);
        // A drive that takes no more writes erases nothing, and keeps what it could not program in RAM.
        if !all_is_there && !self.base.map.is_read_only() && !seeded(Bug::RemapBeforeData) {
            return Err(self.wait_for_programs(waiter));
        }
        let stays = self.will_stay(media, step.tlpn);
        if !stays {
            self.leaves_unsettled(waiter);
        }
        let to = step.to.filter(|_| stays);
        let lpns = [from, to.unwrap_or(from)];
        if !self.request(media, waiter, &lpns) {
            return Err(CannotYet::Map);
        }
        self.rwlb.settled(media, unit);
        self.rwlb.release(step.tlpn);
        match to {
            Some(to) => {
                self.base.data.rename(media, from, to);
                if !is_settled {
                    self.base.map.unsettled_goes(from, to);
                }
                assert_eq!(self.base.data.unit_of(to), Some(unit), "tLPN {} was moved to unit {to}", step.tlpn);
                self.base.map.is_mapped_again(to);
                if !seeded(Bug::RemapForgetsMapPage) {
                    self.base.map.changed(to, false);
                }
                self.counters.remapped += 1;
            }
            None => {
                self.base.data.unmap_units(media, from, from + 1);
            }
        }
        self.base.map.changed(from, false);
        assert!(self.base.data.unit_of(from).is_none(), "tLPN {} was released, and is mapped", step.tlpn);
        Ok(())
    }
}
