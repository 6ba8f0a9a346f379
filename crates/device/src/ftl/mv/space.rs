//! How many versions the drive may hold beside a full page of every logical one.
//!
//! Versions live on spare pages, and so does garbage collection. Of the pages that are left when every logical page has a
//! full one and collection has what it needs, versions may take a share (`ftl.version_spare`); with that used up partial
//! writes merge. A version that a program in flight supersedes still counts: if the power goes it is there again. So the
//! pages that are valid never exceed what collection can live with, before a power cut and after it.

use ssdlab_flash::{BlockId, NONE};

use crate::media::{Media, Place};
use crate::{Allocation, DriveConfig};

/// The pages of versions, in each plane where the LPN decides the plane, else over the whole drive.
pub(super) struct VersionSpace {
    config: DriveConfig,
    /// Percent of the over-provisioned pages that versions may take.
    percent: u64,
    metadata_units: u32,
    by_plane: bool,
    /// Valid pages of versions.
    held: Vec<u32>,
    /// Superseded ones whose superseding program has not ended.
    leaving: Vec<u32>,
    pending: Vec<Leaving>,
    /// Pending ones are looked through when there are so many.
    look_at: usize,
}

const LOOK_AT_LEAST: usize = 256;

/// Pages of versions that are superseded when a page is on flash.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    by: Place,
    /// Erases of its block then: with more of them it has come and gone.
    erases: u32,
    domain: usize,
}

impl Leaving {
    fn is_over(&self, media: &Media) -> bool {
        let Place { block, page } = self.by;
        let written = media.flash.is_written(block, page);
        written && media.flash.blocks.readable(media.ppn_at(self.by))
            || media.flash.blocks.get(block).erases != self.erases
    }
}

impl VersionSpace {
    pub(super) fn new(config: &DriveConfig, percent: u64, metadata_units: u32) -> VersionSpace {
        let by_plane = matches!(config.ftl.allocation, Allocation::Static(_));
        let domains = if by_plane { config.flash.geometry.planes() as usize } else { 1 };
        VersionSpace {
            config: config.clone(),
            percent,
            metadata_units,
            by_plane,
            held: vec![0; domains],
            leaving: vec![0; domains],
            pending: Vec::new(),
            look_at: LOOK_AT_LEAST,
        }
    }

    fn domain(&self, media: &Media, block: BlockId) -> usize {
        if self.by_plane { media.group_of(block) as usize } else { 0 }
    }

    /// A page of a version became valid.
    pub(super) fn add(&mut self, media: &Media, block: BlockId) {
        let domain = self.domain(media, block);
        self.held[domain] += 1;
    }

    /// A page of a version is no longer valid; `by` is the page that supersedes it, if one does.
    pub(super) fn drop(&mut self, media: &Media, block: BlockId, by: Option<Place>) {
        let domain = self.domain(media, block);
        assert!(self.held[domain] > 0, "a version in block {block} is superseded, and domain {domain} holds none");
        self.held[domain] -= 1;
        if let Some(by) = by.filter(|_| media.flash.timed()) {
            self.leaving[domain] += 1;
            let erases = media.flash.blocks.get(by.block).erases;
            self.pending.push(Leaving { by, erases, domain });
            if self.pending.len() > self.look_at {
                self.forget_gone(media);
                self.look_at = (self.pending.len() * 2).max(LOOK_AT_LEAST);
            }
        }
    }

    /// A page that supersedes versions failed, and `to` takes its place; `None`: what was written later did.
    pub(super) fn rewritten(&mut self, media: &Media, from: Place, to: Option<Place>) {
        let leaving = &mut self.leaving;
        self.pending.retain_mut(|pending| {
            if pending.by != from {
                return true;
            }
            match to {
                Some(to) => (pending.by, pending.erases) = (to, media.flash.blocks.get(to.block).erases),
                None => leaving[pending.domain] -= 1,
            }
            to.is_some()
        });
    }

    /// Valid pages of versions in the whole drive.
    pub(super) fn total(&self) -> u64 {
        self.held.iter().map(|pages| u64::from(*pages)).sum()
    }

    /// Whether one more version may go to `plane`.
    pub(super) fn admits(&mut self, media: &Media, plane: u32) -> bool {
        let domain = if self.by_plane { plane as usize } else { 0 };
        let limit = self.limit(media, domain);
        if self.held[domain] + self.leaving[domain] >= limit {
            self.forget_gone(media);
        }
        self.held[domain] + self.leaving[domain] < limit
    }

    /// Whether one more version may go to `plane`, as [`VersionSpace::admits`] says, without forgetting anything.
    pub(super) fn has_room(&self, media: &Media, plane: u32) -> bool {
        let domain = if self.by_plane { plane as usize } else { 0 };
        let (held, limit) = (self.held[domain], self.limit(media, domain));
        let still = |leaving: &&Leaving| leaving.domain == domain && !leaving.is_over(media);
        held + self.leaving[domain] < limit || held + (self.pending.iter().filter(still).count() as u32) < limit
    }

    fn forget_gone(&mut self, media: &Media) {
        let all: u32 = self.leaving.iter().sum();
        assert_eq!(all as usize, self.pending.len(), "versions that leave, and what they wait for");
        let leaving = &mut self.leaving;
        self.pending.retain(|pending| {
            let over = pending.is_over(media);
            leaving[pending.domain] -= u32::from(over);
            !over
        });
    }

    /// Pages that versions may take in a domain with the blocks that are good now.
    fn limit(&self, media: &Media, domain: usize) -> u32 {
        let planes = media.pool.groups();
        let room = |plane: u32| self.config.room_units(media.pool.usable(plane));
        let logical = u64::from(self.config.user_units()) + u64::from(self.metadata_units);
        let (room, logical) = if self.by_plane {
            (room(domain as u32), logical.div_ceil(u64::from(planes)))
        } else {
            ((0..planes).map(room).sum(), logical)
        };
        let spare = room.saturating_sub(logical + 1);
        (spare * self.percent / 100).min(u64::from(NONE - 1)) as u32
    }

    /// The limits over the whole drive.
    pub(super) fn limits(&self, media: &Media) -> u64 {
        (0..self.held.len()).map(|domain| u64::from(self.limit(media, domain))).sum()
    }

    pub(super) fn clear(&mut self) {
        self.held.fill(0);
        self.leaving.fill(0);
        self.pending.clear();
    }
}
