//! Power: the cut that takes the RAM away, and the recovery that needs nothing but flash.

use ssdlab_base::{Nanos, Request, SECTOR_BYTES};
use ssdlab_flash::{BlockId, Cause, Flash, Image, ImageError, OpKind};

use super::command_table::UNNUMBERED;
use super::{Drive, DriveError, Options};
use crate::block_pool::BlockState;
use crate::ftl::{DESIGNS, RecoveryStep};
use crate::media::Media;
use crate::recovery_reads::RecoveryReads;
use crate::registry::pick;
use crate::seeded::{Bug, seeded};
use crate::{Completion, DriveConfig, Owners, Status};

/// What a recovery cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Pages whose OOB was read.
    pub pages_read: u64,
    /// Blocks whose erase had been cut, erased again.
    pub blocks_erased: u64,
    /// Pages programmed: map pages, where the map is on flash.
    pub pages_programmed: u64,
    /// Modelled time: dies work in parallel, each channel carries the OOB areas of its dies.
    pub time: Nanos,
}

/// How far a recovery came before the power went again.
pub enum Recovered {
    /// To its end.
    Whole(Box<Drive>, Recovery),
    /// Not to its end: these are the chips it leaves behind.
    Cut(Box<Flash>),
}

/// Why a drive cannot be had over an image.
#[derive(Debug, thiserror::Error)]
pub enum OnImageError {
    /// The description.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The image.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// What a drive whose power went leaves to a host that goes on.
pub struct Left {
    /// Of the commands that were in it, all of them [`Status::Aborted`]; before them what had not been taken.
    pub completions: Vec<Completion>,
    /// When the power went.
    pub now: Nanos,
    /// The next command takes effect as this number.
    pub next_order: u64,
}

impl Drive {
    /// Power goes now. What had ended on flash is kept, what was in flight is torn or never happened, RAM is lost.
    pub fn power_cut(mut self) -> Flash {
        self.media.flash.power_cut(self.media.now);
        self.media.flash
    }

    /// A drive over chips that lost power: everything is found again from OOB areas.
    pub fn recover(config: &DriveConfig, options: Options, flash: Flash) -> Result<(Drive, Recovery), DriveError> {
        config.validate()?;
        let mut drive = Drive::assemble(config, Media::over(config, options, flash))?;
        let recovery = drive.rebuild(u64::MAX).expect("the power stays");
        Ok((drive, recovery))
    }

    /// Recovers a drive as [`Drive::recover`] does, but the power goes again when `operations` of recovery's flash
    /// operations have ended: OOB reads of written pages, then erases of torn blocks. The block whose erase is next is
    /// under erase then, and torn again.
    ///
    /// A recovery that needs no more operations comes to its end.
    pub fn recover_until(
        config: &DriveConfig,
        options: Options,
        flash: Flash,
        operations: u64,
    ) -> Result<Recovered, DriveError> {
        config.validate()?;
        let mut drive = Drive::assemble(config, Media::over(config, options, flash))?;
        Ok(match drive.rebuild(operations) {
            Some(recovery) => Recovered::Whole(Box::new(drive), recovery),
            None => Recovered::Cut(Box::new(drive.media.flash)),
        })
    }

    /// Power goes now, under a host that goes on: the chips, and what the host must hear of.
    pub fn lose_power(mut self) -> (Flash, Left) {
        let in_drive = self.commands.slots.used();
        let mut lost: Vec<(u64, Request)> = in_drive.map(|command| (command.order, command.request)).collect();
        // What had not taken effect takes its place behind what had, in the order of arrival.
        lost.sort_by_key(|(order, request)| (*order, request.at, request.tag));
        let mut next_order = self.commands.order;
        let mut completions = std::mem::take(self.completions());
        for (order, request) in lost {
            let order = if order == UNNUMBERED { next_order } else { order };
            next_order = next_order.max(order + 1);
            completions.push(Completion {
                tag: request.tag,
                op: request.op,
                has_answer: false,
                status: Status::Aborted,
                submitted: request.at,
                at: self.media.now,
                order,
                bytes: request.sectors.saturating_mul(SECTOR_BYTES),
            });
        }
        let left = Left { completions, now: self.media.now, next_order };
        (self.power_cut(), left)
    }

    /// A host begins anew above a drive that has nothing to do for the one before: the order of effect does, too.
    pub fn reset_order(&mut self) {
        assert_eq!(self.outstanding(), 0, "commands of the host before are in the drive");
        self.commands.order = 0;
    }

    /// Recovers a drive as [`Drive::recover_until`] does, for a host that went on: virtual time and the order of effect
    /// go on from `left`, too.
    pub fn recover_in_place(
        config: &DriveConfig,
        options: Options,
        flash: Flash,
        operations: u64,
        left: &Left,
    ) -> Result<Recovered, DriveError> {
        config.validate()?;
        let mut drive = Drive::assemble(config, Media::over(config, options, flash))?;
        drive.media.now = left.now;
        drive.commands.order = left.next_order;
        Ok(match drive.rebuild(operations) {
            Some(recovery) => Recovered::Whole(Box::new(drive), recovery),
            None => Recovered::Cut(Box::new(drive.media.flash)),
        })
    }

    /// The chips' image, where one keeps the contents.
    pub fn image(&self) -> Option<&Image> {
        self.media.flash.store.image()
    }

    /// Puts everything that has happened into the image's files, where there is one. No completion is told to the host
    /// before. False if the files cannot take it: no completion may be told then.
    pub fn persist(&mut self) -> bool {
        self.media.flash.store.image_mut().is_none_or(ssdlab_flash::Image::settle)
    }

    /// The end of the process: what is not in the image's files by now never will be.
    pub fn forget(&mut self) {
        if let Some(image) = self.media.flash.store.image_mut() {
            image.forget();
        }
    }

    /// The drive's process ends with `lifeline`, in a write to the image's files, where there is one.
    pub fn end_with(&mut self, lifeline: &ssdlab_flash::Lifeline) {
        if let Some(image) = self.media.flash.store.image_mut() {
            image.end_with(lifeline);
        }
    }

    /// The end of the process, and the drive is gone.
    pub fn kill(mut self) {
        self.forget();
    }

    /// A drive over an image: recovered from what is there, or fresh where the image is new.
    pub fn on_image(config: &DriveConfig, options: Options, image: Image) -> Result<(Drive, Recovery), OnImageError> {
        config.validate()?;
        let fresh = image.is_fresh();
        let flash = Flash::on_image(&config.flash, options.seed, config.timed, image)?;
        // Where lists name the owners, the firmware does not know after a power cut which numbers pages have that no list names, and
        // gives them again.
        debug_assert!(
            config.ftl.owners == Owners::Summary
                || (0..config.flash.geometry.blocks())
                    .map(BlockId)
                    .all(|block| flash.oob.numbers_ascend(block, flash.blocks.get(block).programmed)),
            "pages of an image were programmed out of order"
        );
        if fresh {
            let drive = Drive::assemble(config, Media::over(config, options, flash))?;
            drive.ftl.check_space(config, &drive.usable())?;
            return Ok((drive, Recovery::default()));
        }
        Ok(Drive::recover(config, options, flash)?)
    }

    /// Blocks in which programs failed are emptied and go bad, as they were about to before the RAM was lost.
    pub(super) fn retire_suspects(&mut self) {
        for block in (0..self.config.flash.geometry.blocks()).map(BlockId) {
            let state = self.media.flash.blocks.get(block);
            if state.suspect && !state.bad && !self.media.pool.is_kept_apart(block.0) {
                let superblock = self.media.pool.superblocks.of(block);
                self.gc.retire(&mut self.media, superblock);
            }
        }
    }

    /// Programs what recovery has to, without time; false if the power goes before its end.
    fn finish_recovery(&mut self, reads: &mut RecoveryReads) -> bool {
        let timed = self.media.flash.timed();
        self.media.flash.set_timed(false);
        let whole = loop {
            let step = self.ftl.finish_recovery(&mut self.media, reads);
            self.replace_failed_pages();
            match step {
                RecoveryStep::Done => break true,
                RecoveryStep::PowerGone => break false,
                RecoveryStep::NeedsErase if self.media.wakes.erasable.is_empty() => {
                    // Spares are gone: what cannot be programmed stays in RAM, and the drive takes no more writes.
                    assert!(!self.failures.read_only, "recovery of a read-only drive waits for a superblock");
                    self.failures.read_only = true;
                    self.ftl.cached_map().expect("recovery programs a map that is cached").set_read_only();
                }
                RecoveryStep::NeedsErase => self.erase_emptied_superblocks(),
            }
        };
        self.media.flash.set_timed(timed);
        whole
    }

    /// `None` when the power goes after so many operations.
    fn rebuild(&mut self, operations: u64) -> Option<Recovery> {
        let geometry = *self.media.flash.geometry();
        let mut recovery = Recovery::default();
        let mut partly_written = Vec::new();
        assert_eq!(self.media.flash.in_flight(), 0, "the power comes back to chips that do nothing");
        assert_eq!(self.commands.outstanding, 0, "the power comes back to a drive without commands");
        self.media.pool.forget();
        let mut reads = RecoveryReads::new(&self.media.flash, &self.config.flash.timing);
        reads.set_limit(operations);
        if !pick("ftl.design", &self.config.ftl.design, DESIGNS).expect("the drive was made with it").uses_oob {
            self.media.flash.forget_oob();
        }
        self.ftl.recover(&mut self.media, &mut reads);
        recovery.pages_read = reads.pages();
        self.media.flash.count(OpKind::Read, Cause::Recovery, recovery.pages_read.min(operations));
        if recovery.pages_read > operations {
            return None;
        }
        for block in (0..geometry.blocks()).map(BlockId) {
            let state = *self.media.flash.blocks.get(block);
            if state.bad || !state.torn {
                continue;
            }
            if recovery.pages_read + recovery.blocks_erased == operations {
                return None;
            }
            let failed =
                !seeded(Bug::TornBlockFree) && self.media.flash.execute(OpKind::Erase, Cause::Recovery, block, 0);
            recovery.blocks_erased += 1;
            reads.erased(block);
            if failed {
                self.media.flash.retire(block);
                self.media.pool.superblocks.remove(block);
                self.gc.grown_bad += 1;
            }
        }
        for superblock in 0..self.media.pool.superblocks_count() {
            if self.media.pool.is_kept_apart(superblock) {
                self.media.pool.adopt(superblock, BlockState::Bad);
                continue;
            }
            let members: Vec<_> = self.media.pool.superblocks.members(superblock).collect();
            let states: Vec<_> = members.iter().map(|block| *self.media.flash.blocks.get(*block)).collect();
            let good = self.media.pool.is_good(superblock, &self.media.flash);
            let suspect = states.iter().any(|state| state.suspect);
            let programmed: u32 = states.iter().filter(|state| !state.bad).map(|state| state.programmed).sum();
            if states.iter().any(|state| state.torn) {
                // Only the seeded bug [`Bug::TornBlockFree`] leaves one torn.
                self.media.pool.adopt(superblock, BlockState::Free);
                continue;
            }
            let stays_open = |block| self.ftl.own_collection().is_some_and(|design| design.stays_open(block));
            if self.media.own_blocks && good && programmed > 0 && members.iter().copied().any(stays_open) {
                self.media.pool.adopt(superblock, BlockState::Open);
                continue;
            }
            if good && !suspect && (1..self.media.pages_per_superblock()).contains(&programmed) {
                partly_written.push((programmed, superblock));
                continue;
            }
            // One that lacks a member and still holds data is emptied first, like one in which a program failed.
            let found = match (programmed, good) {
                (0, true) => BlockState::Free,
                (0, false) => BlockState::Bad,
                _ => BlockState::Closed,
            };
            self.media.pool.adopt(superblock, found);
            if found == BlockState::Closed && !good {
                self.gc.retire(&mut self.media, superblock);
            }
        }
        // The emptiest become frontiers again.
        partly_written.sort_unstable();
        for (_, superblock) in partly_written {
            if self.media.own_blocks || !self.media.reopen(superblock) {
                self.media.pool.adopt(superblock, BlockState::Closed);
            }
        }
        // The XOR of open stripes was in RAM.
        let reread = std::mem::take(&mut self.media.reread);
        self.media.flash.count(OpKind::Read, Cause::Recovery, reread.len() as u64);
        for place in reread {
            reads.page(place);
        }
        recovery.pages_read = reads.pages();
        self.media.pool.rebuild_free(&self.media.flash);
        self.media.pool.mend_all(&mut self.media.flash);
        for group in 0..self.media.pool.groups() {
            self.media.pool.audit(group);
        }
        if !self.finish_recovery(&mut reads) {
            return None;
        }
        recovery.pages_programmed = reads.programs();
        recovery.time = reads.time();
        self.find_segments();
        self.retire_suspects();
        self.media.fill_stripes();
        self.pump_all();
        // Spares that were gone before are gone still: what is there can be read.
        self.failures.read_only |= self.over_provisioning_is_gone();
        self.announce_read_only();
        if self.media.flash.timed() {
            self.work();
        } else {
            self.work_untimed();
        }
        Some(recovery)
    }
}
