//! An FTL with commands of its own on top of another one's mapping: what is not a command of the set passes through.

use std::io::{self, Read, Write};

use ssdlab_flash::Cause;

use super::{Compaction, Found, Ftl, NoSpace, Outcome, Relocated, SetCommand, TrimTarget, UnitWrite, VersionPart};
use crate::Check;
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::token::Owner;

/// The commands of a set, above a mapping.
pub(crate) trait Extension: Send {
    /// As [`Ftl::command`].
    fn command(&mut self, ftl: &mut dyn Ftl, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, NoSpace>;

    /// RAM that a real drive would need, by name.
    fn memory(&self) -> Vec<(&'static str, u64)>;

    /// Its state for a snapshot.
    fn save(&self, to: &mut dyn Write) -> io::Result<()>;

    /// The state that a snapshot holds.
    fn restore(&mut self, from: &mut dyn Read) -> io::Result<()>;
}

/// A mapping and an extension; recovery begins with a fresh extension.
pub(crate) struct Extended<E> {
    pub(crate) ftl: Box<dyn Ftl>,
    pub(crate) extension: E,
}

impl<E: Extension> Ftl for Extended<E> {
    fn command(&mut self, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, NoSpace> {
        self.extension.command(&mut *self.ftl, media, command)
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        [self.ftl.memory(), self.extension.memory()].concat()
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.ftl.save(to)?;
        self.extension.save(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.ftl.restore(media, from)?;
        self.extension.restore(from)
    }

    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Owner,
    ) -> Result<(), NoSpace> {
        self.ftl.write(media, units, stream, cause, owner)
    }

    fn writes_anew(&self) -> bool {
        self.ftl.writes_anew()
    }

    fn compacts(&self) -> Option<Compaction> {
        self.ftl.compacts()
    }

    fn may_compact(&self, media: &Media, lpn: u32) -> bool {
        self.ftl.may_compact(media, lpn)
    }

    fn write_compacted(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Owner,
    ) -> Result<(), NoSpace> {
        self.ftl.write_compacted(media, units, stream, cause, owner)
    }

    fn first_die(&self, media: &Media, lpn: u32, mask: u64) -> Option<u32> {
        self.ftl.first_die(media, lpn, mask)
    }

    fn share_page(&self, first: u32, second: u32) -> bool {
        self.ftl.share_page(first, second)
    }

    fn stripe_left(&self, media: &Media) -> u32 {
        self.ftl.stripe_left(media)
    }

    fn find(&self, lpn: u32) -> Found {
        self.ftl.find(lpn)
    }

    fn versions(&mut self, media: &Media, lpn: u32, wanted: u64, out: &mut Vec<VersionPart>) {
        self.ftl.versions(media, lpn, wanted, out);
    }

    fn read_versions(&self, media: &Media, lpn: u32, first: u64, out: &mut [u8]) -> bool {
        self.ftl.read_versions(media, lpn, first, out)
    }

    fn trim(&mut self, media: &mut Media, first: u32, end: u32) -> u64 {
        self.ftl.trim(media, first, end)
    }

    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, owner: Owner) -> Result<u32, NoSpace> {
        self.ftl.save_trims(media, to, owner)
    }

    fn trims_pending(&self) -> u32 {
        self.ftl.trims_pending()
    }

    fn trim_segment_units(&self) -> u32 {
        self.ftl.trim_segment_units()
    }

    fn relocate(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Owner,
    ) -> Relocated {
        self.ftl.relocate(media, victim, cursor, limit, cause, owner)
    }

    fn rewrite(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Owner,
    ) -> Result<bool, NoSpace> {
        self.ftl.rewrite(media, place, frontier, cause, owner)
    }

    fn whereabouts(&self, media: &Media, place: Place, pages: &mut Vec<u32>) -> bool {
        self.ftl.whereabouts(media, place, pages)
    }

    fn has_idle_work(&self) -> bool {
        self.ftl.has_idle_work()
    }

    fn idle_work(&mut self, media: &mut Media, limit: u32, owner: Owner) -> u32 {
        self.ftl.idle_work(media, limit, owner)
    }

    fn prefetch(&self, media: &Media, lpns: &[u32]) {
        self.ftl.prefetch(media, lpns);
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.ftl.recover(media, reads);
    }

    fn metadata_units(&self) -> u32 {
        self.ftl.metadata_units()
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        self.ftl.check(media)
    }

    fn design(&self, media: &Media) -> Vec<(String, f64)> {
        self.ftl.design(media)
    }

    fn reset_counters(&mut self) {
        self.ftl.reset_counters();
    }
}
