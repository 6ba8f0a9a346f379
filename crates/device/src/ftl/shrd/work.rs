//! Remaps, trims of tLPNs and `restore`: entry by entry, each with the map pages of both its names in the cache. Nothing is
//! pinned between two entries.

use std::collections::BTreeMap;

use ssdlab_flash::Lpn;

use super::Shrd;
use crate::Status;
use crate::ftl::{Asker, CachedMap, CannotYet, Outcome};
use crate::media::Media;
use crate::seeded::{Bug, seeded};

/// What is done with a tLPN.
#[derive(Clone, Copy, Debug)]
struct Step {
    tlpn: u32,
    /// The unit that gets its entry; `None` where it is dropped.
    to: Option<Lpn>,
}

/// A command that changes many entries.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) asker: Asker,
    kind: &'static str,
    steps: Vec<Step>,
    next: usize,
    /// The map page of the last oLPN.
    page: Option<u32>,
}

impl Work {
    pub(super) fn remap(asker: Asker, entries: Vec<(u32, Lpn)>) -> Work {
        let steps = entries.into_iter().map(|(tlpn, lpn)| Step { tlpn, to: Some(lpn) }).collect();
        Work { asker, kind: "remap", steps, next: 0, page: None }
    }

    pub(super) fn trim(asker: Asker, tlpns: Vec<u32>) -> Work {
        let steps = tlpns.into_iter().map(|tlpn| Step { tlpn, to: None }).collect();
        Work { asker, kind: "trim of the log", steps, next: 0, page: None }
    }

    pub(super) const fn kind(&self) -> &'static str {
        self.kind
    }
}

impl Shrd {
    /// All that is in the log, by oLPN. Of several copies of a unit the one that the host wrote last gets its name, unless the
    /// one at home is newer.
    pub(super) fn restore_work(&self, media: &Media, asker: Asker) -> Work {
        let mut newest: BTreeMap<Lpn, (u32, u32)> = BTreeMap::new();
        for (tlpn, origin) in self.rwlb.all_held() {
            let newer = newest.entry(origin.lpn).or_insert((origin.number, tlpn));
            *newer = (*newer).max((origin.number, tlpn));
        }
        let is_current = |lpn: Lpn, number: u32| {
            let home = self.base.data.unit_of(lpn).map(|unit| media.flash.oob.origin(unit).number);
            let trimmed = self.base.map.is_trimmed_since(lpn);
            home.is_none_or(|home| home <= number) && trimmed.is_none_or(|since| since <= number)
        };
        let mut steps: Vec<Step> = Vec::new();
        for (tlpn, origin) in self.rwlb.all_held() {
            let moves = newest[&origin.lpn].1 == tlpn && is_current(origin.lpn, origin.number);
            steps.push(Step { tlpn, to: moves.then_some(origin.lpn) });
        }
        steps.sort_by_key(|step| (step.to.is_none(), step.to, step.tlpn));
        Work { asker, kind: "restore", steps, next: 0, page: None }
    }

    pub(super) fn begin_work(&mut self, media: &mut Media, work: Work) -> Result<Outcome, CannotYet> {
        assert!(self.work.is_none(), "{:?} begins, and {:?} is not done", work.kind, self.work);
        self.work = Some(work);
        self.go_on_with_work(media)
    }

    /// A command waits until programs in flight have ended.
    pub(super) fn wait_for_programs(&mut self, asker: Asker) -> CannotYet {
        if !self.for_programs.contains(&asker) {
            self.for_programs.push(asker);
        }
        CannotYet::Map
    }

    pub(super) fn go_on_with_work(&mut self, media: &mut Media) -> Result<Outcome, CannotYet> {
        while let Some(work) = &self.work
            && let Some(step) = work.steps.get(work.next).copied()
        {
            let asker = work.asker;
            self.take_step(media, asker, step)?;
            let work = self.work.as_mut().expect("it was there");
            work.next += 1;
            if let Some(page) = step.to.map(|lpn| self.base.map.shape.page_of(lpn))
                && work.page.replace(page) != Some(page)
                && work.kind == "remap"
            {
                self.counters.remap_pages += 1;
            }
        }
        self.work = None;
        self.end_active_blocks(media);
        Ok(Outcome::new(Status::Success))
    }

    /// An entry goes from a tLPN to a unit of the user, or is dropped.
    fn take_step(&mut self, media: &mut Media, asker: Asker, step: Step) -> Result<(), CannotYet> {
        let Some(origin) = self.rwlb.held(step.tlpn) else { return Ok(()) };
        let from = self.rwlb.lpn(step.tlpn);
        let Some(unit) = self.base.data.unit_of(from) else {
            unreachable!("tLPN {} holds unit {}, and is not mapped", step.tlpn, origin.lpn)
        };
        // What is dropped or superseded may leave flash as soon as the newer copy is there.
        let is_there = |lpn: Lpn| self.is_on_flash(media, lpn);
        let all_is_there = is_there(from) && is_there(origin.lpn);
        if !all_is_there && !seeded(Bug::RemapBeforeData) {
            return Err(self.wait_for_programs(asker));
        }
        let lpns = [from, step.to.unwrap_or(from)];
        if !self.request(media, asker, &lpns) {
            return Err(CannotYet::Map);
        }
        self.rwlb.settled(media, unit);
        self.rwlb.release(step.tlpn);
        match step.to {
            Some(to) => {
                self.base.data.rename(media, from, to);
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
