//! Which plane takes the next page of host data.

use std::io::{self, Read, Write};

use crate::media::{Frontier, Media};
use crate::{Allocation, DriveConfig, Level};

/// The allocation of host pages over planes.
pub(super) struct Placement {
    kind: Kind,
    /// Planes in stripe order: the first level of the order varies fastest.
    stripe: Vec<u32>,
    units_per_page: u32,
    /// The next stripe position (round robin) or die (dynamic).
    next: u32,
    /// The next plane of each die (dynamic).
    next_plane: Vec<u32>,
    planes_per_die: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Static,
    RoundRobin,
    Dynamic,
}

impl Placement {
    pub(super) fn new(config: &DriveConfig) -> Placement {
        let geometry = &config.flash.geometry;
        let (kind, order) = match config.ftl.allocation {
            Allocation::Static(order) => (Kind::Static, order),
            Allocation::RoundRobin(order) => (Kind::RoundRobin, order),
            Allocation::Dynamic => (Kind::Dynamic, [Level::Channel, Level::Way, Level::Die, Level::Plane]),
        };
        let size = |level: Level| match level {
            Level::Channel => geometry.channels,
            Level::Way => geometry.chips_per_channel,
            Level::Die => geometry.dies_per_chip,
            Level::Plane => geometry.planes_per_die,
        };
        let stripe = (0..geometry.planes())
            .map(|position| {
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
                die * geometry.planes_per_die + plane
            })
            .collect();
        Placement {
            kind,
            stripe,
            units_per_page: geometry.page_bytes / config.ftl.mapping_unit,
            next: 0,
            next_plane: vec![0; geometry.dies() as usize],
            planes_per_die: geometry.planes_per_die,
        }
    }

    /// Whether two units may share a page: where the LPN decides the plane, only those of one page of LPNs.
    #[inline]
    pub(super) fn share_page(&self, first: u32, second: u32) -> bool {
        self.kind != Kind::Static || first / self.units_per_page == second / self.units_per_page
    }

    /// The die that the next page goes to if its first unit is `lpn`; `None` where that is the least loaded one.
    pub(super) fn next_die(&self, media: &Media, lpn: u32) -> Option<u32> {
        let planes = self.stripe.len() as u32;
        let plane = match self.kind {
            Kind::Static => Some(self.stripe[(lpn / self.units_per_page % planes) as usize]),
            Kind::RoundRobin => {
                let turns = (0..planes).map(|step| self.stripe[((self.next + step) % planes) as usize]);
                turns.into_iter().find(|plane| media.has_page(*plane, Frontier::Host(0)))
            }
            Kind::Dynamic => None,
        };
        plane.map(|plane| plane / self.planes_per_die)
    }

    /// The plane for a page whose first unit is `lpn`; `None` when no plane it may use has a page.
    #[inline]
    pub(super) fn choose(&mut self, media: &Media, lpn: u32, frontier: Frontier) -> Option<u32> {
        match self.kind {
            Kind::Static => {
                let position = lpn / self.units_per_page % self.stripe.len() as u32;
                let plane = self.stripe[position as usize];
                media.has_page(plane, frontier).then_some(plane)
            }
            Kind::RoundRobin => {
                let planes = self.stripe.len() as u32;
                for _ in 0..planes {
                    let plane = self.stripe[self.next as usize];
                    self.next = if self.next + 1 == planes { 0 } else { self.next + 1 };
                    if media.has_page(plane, frontier) {
                        return Some(plane);
                    }
                }
                None
            }
            Kind::Dynamic => self.least_loaded(media, frontier),
        }
    }

    /// The planes that a page of `lpn` may go to.
    pub(super) fn planes_for(&self, lpn: u32) -> &[u32] {
        if self.kind != Kind::Static {
            return &self.stripe;
        }
        let position = (lpn / self.units_per_page) as usize % self.stripe.len();
        &self.stripe[position..=position]
    }

    /// Whether a page of `lpn` may be in `plane`.
    pub(super) fn may_hold(&self, plane: u32, lpn: u32) -> bool {
        self.kind != Kind::Static || self.planes_for(lpn) == [plane]
    }

    /// The die of a plane.
    pub(super) const fn die_of(&self, plane: u32) -> u32 {
        plane / self.planes_per_die
    }

    fn least_loaded(&mut self, media: &Media, frontier: Frontier) -> Option<u32> {
        let dies = self.next_plane.len() as u32;
        let mut best: Option<(u32, u32, u32)> = None;
        for step in 0..dies {
            // Walk the dies in stripe order, so that equals take turns over the channels first.
            let position = (self.next + step) % dies;
            let die = self.stripe[position as usize] / self.planes_per_die;
            let load = media.flash.load(die);
            if best.is_some_and(|(least, ..)| load >= least) {
                continue;
            }
            let first = self.next_plane[die as usize];
            let planes = (0..self.planes_per_die).map(|index| (first + index) % self.planes_per_die);
            let found =
                planes.map(|plane| die * self.planes_per_die + plane).find(|plane| media.has_page(*plane, frontier));
            if let Some(plane) = found {
                best = Some((load, plane, position));
                if load == 0 {
                    break;
                }
            }
        }
        let (_, plane, position) = best?;
        self.next = (position + 1) % dies;
        self.next_plane[(plane / self.planes_per_die) as usize] = (plane + 1) % self.planes_per_die;
        Some(plane)
    }

    pub(super) fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.next.to_le_bytes())?;
        to.write_all(bytemuck::cast_slice(&self.next_plane))
    }

    pub(super) fn restore(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let mut next = [0; 4];
        from.read_exact(&mut next)?;
        self.next = u32::from_le_bytes(next);
        from.read_exact(bytemuck::cast_slice_mut(&mut self.next_plane))?;
        if self.next as usize >= self.stripe.len() || self.next_plane.iter().any(|plane| *plane >= self.planes_per_die)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the next plane to write is not one of the drive's",
            ));
        }
        Ok(())
    }
}
