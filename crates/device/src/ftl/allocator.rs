//! Which group takes the next page of host data: which plane, where every block stands alone.

use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{DieId, Lpn, PlaneId};

use crate::media::{Frontier, Media};
use crate::superblocks::dies_in_order;
use crate::{Allocation, DriveConfig, Level, Superblock};

/// The allocation of host pages over groups.
pub(super) struct Allocator {
    kind: Kind,
    /// Groups in stripe order: the first level of the order varies fastest.
    stripe: Vec<u32>,
    units_per_page: u32,
    /// The next stripe position (round robin) or die (dynamic).
    next: u32,
    /// The next plane of each die (dynamic).
    next_plane: Vec<u32>,
    /// Groups of a die: its planes, or one.
    groups_per_die: u32,
    /// Where a die programs several pages at once: the group that took the last page of each stream.
    last: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Static,
    RoundRobin,
    Dynamic,
}

impl Allocator {
    pub(super) fn new(config: &DriveConfig) -> Allocator {
        let geometry = &config.flash.geometry;
        let (kind, order) = match config.ftl.allocation {
            Allocation::Static(order) => (Kind::Static, order),
            Allocation::RoundRobin(order) => (Kind::RoundRobin, order),
            Allocation::Dynamic => (Kind::Dynamic, [Level::Channel, Level::Way, Level::Die, Level::Plane]),
        };
        let (stripe, groups_per_die) = match config.ftl.superblock {
            Superblock::None => {
                (planes_in_order(config, order).into_iter().map(|plane| plane.0).collect(), geometry.planes_per_die)
            }
            Superblock::Die => (dies_in_order(config).into_iter().map(|die| die.0).collect(), 1),
            Superblock::Drive => (vec![0], 1),
        };
        let mut groups = stripe.clone();
        groups.sort_unstable();
        assert!(groups.iter().copied().eq(0..groups.len() as u32), "each group has one turn in {stripe:?}");
        let count = stripe.len();
        assert!(count.is_multiple_of(groups_per_die as usize), "{count} groups, {groups_per_die} a die");
        let streams = if config.ftl.superblock == Superblock::Die { config.ftl.streams } else { 0 };
        Allocator {
            kind,
            next_plane: vec![0; stripe.len() / groups_per_die as usize],
            stripe,
            units_per_page: geometry.page_bytes / config.ftl.mapping_unit,
            next: 0,
            groups_per_die,
            last: vec![0; streams as usize],
        }
    }

    /// Whether two units may share a page: where the LPN decides the plane, only those of one page of LPNs.
    #[inline]
    pub(super) fn share_page(&self, first: Lpn, second: Lpn) -> bool {
        self.kind != Kind::Static || first / self.units_per_page == second / self.units_per_page
    }

    /// The die that the next page goes to if its first unit is `lpn`; `None` where that is the least loaded one.
    pub(super) fn next_die(&self, media: &Media, lpn: Lpn) -> Option<DieId> {
        let groups = self.stripe.len() as u32;
        let frontier = Frontier::Host(0);
        if media.pool.superblocks.width() > 1 && (groups == 1 || self.kind != Kind::Dynamic) {
            let turns = (0..groups).map(|step| self.stripe[((self.next + step) % groups) as usize]);
            let within = self.within_row(media, frontier);
            let group = within.or_else(|| turns.into_iter().find(|group| media.has_page(*group, frontier)))?;
            return media.next_page(group, frontier).map(|place| media.flash.die_of(place.block));
        }
        let plane = match self.kind {
            Kind::Static => Some(self.stripe[(lpn / self.units_per_page % groups) as usize]),
            Kind::RoundRobin => {
                let turns = (0..groups).map(|step| self.stripe[((self.next + step) % groups) as usize]);
                turns.into_iter().find(|plane| media.has_page(*plane, frontier))
            }
            Kind::Dynamic => None,
        };
        plane.map(|plane| DieId(plane / self.groups_per_die))
    }

    /// The group whose row the stream began and did not fill, where it goes on.
    #[inline]
    fn within_row(&self, media: &Media, frontier: Frontier) -> Option<u32> {
        let Frontier::Host(stream) = frontier else { return None };
        let group = *self.last.get(usize::from(stream).min(self.last.len().saturating_sub(1)))?;
        (media.is_within_row(group, frontier) && media.has_page(group, frontier)).then_some(group)
    }

    /// The group for a page whose first unit is `lpn`; `None` when no group it may use has a page.
    // Every write comes by here: with one group or many, it is a few instructions, and no call.
    #[inline(always)]
    pub(super) fn choose(&mut self, media: &Media, lpn: Lpn, frontier: Frontier) -> Option<u32> {
        if self.last.is_empty() {
            self.choose_next(media, lpn, frontier)
        } else {
            self.choose_row(media, lpn, frontier)
        }
    }

    /// The group for a page whose first unit is `lpn`, where a die programs several pages at once: a stream fills the
    /// row that it began. `None` when no group it may use has a page.
    #[inline(never)]
    fn choose_row(&mut self, media: &Media, lpn: Lpn, frontier: Frontier) -> Option<u32> {
        if let Some(group) = self.within_row(media, frontier) {
            return Some(group);
        }
        let group = self.choose_next(media, lpn, frontier)?;
        if let Frontier::Host(stream) = frontier {
            let stream = usize::from(stream).min(self.last.len() - 1);
            self.last[stream] = group;
        }
        Some(group)
    }

    #[inline(always)]
    fn choose_next(&mut self, media: &Media, lpn: Lpn, frontier: Frontier) -> Option<u32> {
        match self.kind {
            Kind::Static => {
                let position = lpn / self.units_per_page % self.stripe.len() as u32;
                let plane = self.stripe[position as usize];
                media.has_page(plane, frontier).then_some(plane)
            }
            Kind::RoundRobin => {
                let groups = self.stripe.len() as u32;
                for _ in 0..groups {
                    let group = self.stripe[self.next as usize];
                    self.next = if self.next + 1 == groups { 0 } else { self.next + 1 };
                    if media.has_page(group, frontier) {
                        return Some(group);
                    }
                }
                None
            }
            Kind::Dynamic => self.least_loaded(media, frontier),
        }
    }

    /// Pages until each plane has had its turn; a whole stripe where planes take no turns.
    pub(super) fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        let (groups, width) = (self.stripe.len() as u32, media.stripe_width());
        let begun = if self.kind == Kind::RoundRobin { self.next } else { 0 };
        let last = self.last.first().copied().unwrap_or(0);
        let in_row =
            if media.pool.superblocks.width() > 1 { media.pages_left_in_stripe(last, Frontier::Host(0)) } else { 0 };
        debug_assert!(begun < groups, "turn {begun} of {groups}");
        let left = in_row + (groups - begun) % groups * width;
        if left == 0 { groups * width } else { left }
    }

    /// The groups that a page of `lpn` may go to.
    pub(super) fn groups_for(&self, lpn: Lpn) -> &[u32] {
        if self.kind != Kind::Static {
            return &self.stripe;
        }
        let position = (lpn / self.units_per_page) as usize % self.stripe.len();
        &self.stripe[position..=position]
    }

    /// Whether a page of `lpn` may be in `group`.
    pub(super) fn may_hold(&self, group: u32, lpn: Lpn) -> bool {
        self.kind != Kind::Static || self.groups_for(lpn) == [group]
    }

    fn least_loaded(&mut self, media: &Media, frontier: Frontier) -> Option<u32> {
        if self.stripe.len() == 1 {
            return media.has_page(self.stripe[0], frontier).then_some(self.stripe[0]);
        }
        let dies = self.next_plane.len() as u32;
        let mut best: Option<(u32, u32, u32)> = None;
        for step in 0..dies {
            // Walk the dies in stripe order, so that equals take turns over the channels first.
            let position = (self.next + step) % dies;
            let die = DieId(self.stripe[position as usize] / self.groups_per_die);
            let load = media.flash.load(die);
            if best.is_some_and(|(least, ..)| load >= least) {
                continue;
            }
            let first = self.next_plane[die.index()];
            let planes = (0..self.groups_per_die).map(|index| (first + index) % self.groups_per_die);
            let mut planes = planes.map(|plane| die.0 * self.groups_per_die + plane);
            let found = planes.find(|plane| media.has_page(*plane, frontier));
            if let Some(plane) = found {
                best = Some((load, plane, position));
                if load == 0 {
                    break;
                }
            }
        }
        let (_, plane, position) = best?;
        debug_assert!(position < dies, "the die of plane {plane} has turn {position} of {dies}");
        self.next = (position + 1) % dies;
        self.next_plane[(plane / self.groups_per_die) as usize] = (plane + 1) % self.groups_per_die;
        Some(plane)
    }

    /// Refuses a restored state whose next plane is not one of the drive's.
    pub(super) fn accept(&self) -> io::Result<()> {
        let groups = self.stripe.len() as u32;
        let known = self.next < groups
            && self.last.iter().all(|group| *group < groups)
            && self.next_plane.iter().all(|plane| *plane < self.groups_per_die);
        if known { Ok(()) } else { Err(damaged("the next plane to write is not one of the drive's")) }
    }
}

saved!(Allocator: next, next_plane[..], last[..]);

/// The planes of the drive in an order of levels: the first varies fastest.
fn planes_in_order(config: &DriveConfig, order: [Level; 4]) -> Vec<PlaneId> {
    let geometry = &config.flash.geometry;
    let size = |level: Level| match level {
        Level::Channel => geometry.channels,
        Level::Way => geometry.chips_per_channel,
        Level::Die => geometry.dies_per_chip,
        Level::Plane => geometry.planes_per_die,
    };
    let plane = |position: u32| {
        let mut rest = position;
        let (mut channel, mut way, mut die, mut plane) = (0, 0, 0, 0);
        for level in order {
            let digit = rest % size(level);
            rest /= size(level);
            match level {
                Level::Channel => channel = digit,
                Level::Way => way = digit,
                Level::Die => die = digit,
                Level::Plane => plane = digit,
            }
        }
        let die = (channel * geometry.chips_per_channel + way) * geometry.dies_per_chip + die;
        PlaneId(die * geometry.planes_per_die + plane)
    };
    (0..geometry.planes()).map(plane).collect()
}
