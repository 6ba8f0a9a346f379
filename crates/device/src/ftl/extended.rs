//! An FTL with commands of its own on top of another one's mapping: what is not a command of the set passes through.

use std::io::{self, Read, Write};

use ssdlab_flash::{Cause, DieId, Lpn, Ppn};

use super::{
    CannotYet, Commands, Compacts, Found, Ftl, IdleWork, NoSpace, Outcome, OwnCollection, Relocated, SetCommand,
    SteppedReads, TrimTarget, UnitWrite,
};
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::token::Owner;
use crate::{Check, DriveConfig, DriveError};

/// The commands of a set, above a mapping.
pub(crate) trait Extension: Send {
    /// Executes a command on `ftl`, for [`Commands::execute`]. A refused one changes nothing; `Err` is tried again when
    /// there is space.
    fn execute(&mut self, ftl: &mut dyn Ftl, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, NoSpace>;

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
    fn stepped_reads(&mut self) -> Option<&mut dyn SteppedReads> {
        self.ftl.stepped_reads()
    }

    fn compacts(&mut self) -> Option<&mut dyn Compacts> {
        self.ftl.compacts()
    }

    fn idle_work(&mut self) -> Option<&mut dyn IdleWork> {
        self.ftl.idle_work()
    }

    fn own_collection(&mut self) -> Option<&mut dyn OwnCollection> {
        self.ftl.own_collection()
    }

    fn commands(&mut self) -> Option<&mut dyn Commands> {
        Some(self)
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

    fn supports_rewrite(&self) -> bool {
        self.ftl.supports_rewrite()
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        self.ftl.first_die(media, lpn, mask)
    }

    fn share_page(&self, first: Lpn, second: Lpn) -> bool {
        self.ftl.share_page(first, second)
    }

    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.ftl.pages_left_in_stripe(media)
    }

    fn find(&self, lpn: Lpn) -> Found {
        self.ftl.find(lpn)
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
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

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        self.ftl.current_locations(media, place, pages)
    }

    fn is_recoverable(&self, media: &Media, place: Place) -> bool {
        self.ftl.is_recoverable(media, place)
    }

    fn prefetch(&self, media: &Media, lpns: &[Lpn]) {
        self.ftl.prefetch(media, lpns);
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.ftl.recover(media, reads);
    }

    fn metadata_units(&self) -> u32 {
        self.ftl.metadata_units()
    }

    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        self.ftl.check_space(config, usable)
    }

    fn data_bytes(&self, config: &DriveConfig, usable: &[u32]) -> f64 {
        self.ftl.data_bytes(config, usable)
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

impl<E: Extension> Commands for Extended<E> {
    fn execute(&mut self, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, CannotYet> {
        Ok(self.extension.execute(&mut *self.ftl, media, command)?)
    }
}
