//! Snapshots: a drive at rest is saved and restored, and what was saved is checked before it is believed.

use std::io::{self, Read, Write};

use ssdlab_base::{Saved, damaged, load, load_magic, saved};
use ssdlab_flash::BlockId;

use super::Drive;
use super::Options;
use crate::block_pool::{BlockKind, BlockPool, BlockState};
use crate::{Check, DriveConfig};

/// First and last bytes of a saved state; the number changes with the layout.
pub(super) const MAGIC: &[u8; 16] = b"ssdlab drive 6\n\0";

/// What the controller keeps of superblocks.
#[derive(Debug, Default)]
pub(super) struct Controller {
    /// The number of the next program.
    sequence: u64,
    /// By superblock.
    states: Vec<BlockState>,
    kinds: Vec<BlockKind>,
    /// Whether a trim took units from it.
    trimmed: Vec<bool>,
    /// When it was closed.
    order: Vec<u64>,
    closings: u64,
    /// Free superblocks, group by group in the order in which they leave.
    free: Vec<u32>,
    /// By group: victims since static wear levelling last moved a block, and victims in a row that were valid from end to end.
    victims_since_wear_move: Vec<u32>,
    full_in_a_row: Vec<u32>,
    /// The last page that a host wrote left room in its row.
    host_row_open: bool,
    /// The superblock of each write frontier, and how many of its pages were given out.
    frontiers: Vec<(u32, u32)>,
}

saved!(Controller: sequence, states, kinds, trimmed, order, closings, free, victims_since_wear_move, full_in_a_row, host_row_open,
    frontiers);

impl Drive {
    /// Writes the whole state, once what the drive does by itself has come to its end; only while no command is
    /// outstanding, and only where contents are not kept.
    ///
    /// # Errors
    /// Those of the writer, and [`io::ErrorKind::Unsupported`] for a drive that keeps contents or has units in its write buffer.
    pub fn save(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.quiesce();
        if self.media.flash.store.sector_data_bytes() > 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a drive that keeps contents is not saved"));
        }
        if self.stage.buffer.as_ref().is_some_and(|buffer| buffer.units() > 0) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the write buffer must be flushed first"));
        }
        self.save_flash(to)
    }

    /// The state of everything but the write buffer, which is on flash or in the controller's tables.
    pub(super) fn save_flash(&self, to: &mut dyn Write) -> io::Result<()> {
        let pool = &self.media.pool;
        let superblocks = 0..pool.superblocks_count();
        let controller = Controller {
            sequence: self.media.sequence(),
            states: superblocks.clone().map(|superblock| pool.state(superblock)).collect(),
            kinds: superblocks.clone().map(|superblock| pool.kind(superblock)).collect(),
            trimmed: superblocks.clone().map(|superblock| pool.is_trimmed(superblock)).collect(),
            order: superblocks.map(|superblock| pool.closed_order(superblock)).collect(),
            closings: pool.closings(),
            free: (0..pool.groups()).flat_map(|group| pool.free_list(group)).collect(),
            victims_since_wear_move: self.gc.victims_since_wear_move().to_vec(),
            full_in_a_row: self.gc.full_in_a_row().to_vec(),
            host_row_open: self.media.host_row_open,
            frontiers: self.media.open_blocks().collect(),
        };
        to.write_all(MAGIC)?;
        self.media.flash.save(to)?;
        controller.save_to(to)?;
        self.ftl.save(to)?;
        if let Some(beside) = &self.beside {
            beside.save_state(to)?;
        }
        if let Some(placement) = &self.placement {
            placement.save_to(to)?;
        }
        to.write_all(MAGIC)
    }

    /// Reads a state that a drive of the same configuration saved. Policies draw from the seed anew.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for bytes that are no state of this drive: of another version, cut,
    /// or such that an invariant of [`Drive::check`] does not hold.
    pub fn restore(config: &DriveConfig, options: Options, from: &mut dyn Read) -> io::Result<Drive> {
        let mut drive = Drive::new(config, options).map_err(|error| damaged(error.to_string()))?;
        load_magic(MAGIC, from, "this is not a saved drive of this version")?;
        drive.media.flash.load_state(from)?;
        let usable: u32 = drive.usable().iter().sum();
        // Which blocks make up which superblock is known only now.
        drive.media.pool = BlockPool::new(config, &mut drive.media.flash);
        let controller: Controller = load(from)?;
        drive.place_blocks(&controller)?;
        if !drive.media.accept_lists() {
            return Err(damaged("a list names other owners than its pages have"));
        }
        drive.ftl.restore(&mut drive.media, from)?;
        if let Some(beside) = &mut drive.beside {
            beside.restore_state(from)?;
        }
        if let Some(placement) = &mut drive.placement {
            placement.load_from(from)?;
            placement.accept()?;
        }
        load_magic(MAGIC, from, "the saved drive is damaged")?;
        drive.adopt_blocks(&controller)?;
        if let Some(Check { name, detail, .. }) = drive.check().into_iter().find(|check| !check.passed) {
            return Err(damaged(format!("the saved drive is damaged: {name} does not hold: {detail}")));
        }
        drive.find_segments();
        drive.retire_suspects();
        drive.gc.grown_bad = u64::from(usable.saturating_sub(drive.usable().iter().sum()));
        drive.failures.read_only = drive.over_provisioning_is_gone();
        drive.announce_read_only();
        Ok(drive)
    }

    /// Puts back what a design looks at: the kinds of superblocks and the write frontiers.
    fn place_blocks(&mut self, controller: &Controller) -> io::Result<()> {
        let superblocks = self.media.pool.superblocks_count() as usize;
        let Controller { states, kinds, trimmed, order, frontiers, .. } = controller;
        if [states.len(), kinds.len(), trimmed.len(), order.len()] != [superblocks; 4]
            || frontiers.len() != self.media.open_blocks().count()
            || controller.victims_since_wear_move.len() != self.gc.victims_since_wear_move().len()
            || controller.full_in_a_row.len() != self.gc.full_in_a_row().len()
        {
            return Err(damaged("it has other superblocks, groups or write frontiers than the drive"));
        }
        if controller.sequence >= 1 << 62 {
            return Err(damaged("a running number is out of its range"));
        }
        self.gc.victims_since_wear_move_mut().copy_from_slice(&controller.victims_since_wear_move);
        self.gc.full_in_a_row_mut().copy_from_slice(&controller.full_in_a_row);
        self.media.host_row_open = controller.host_row_open;
        self.media.pool.forget();
        for (superblock, kind) in (0..).zip(kinds).filter(|(_, kind)| **kind != BlockKind::Data) {
            if !self.media.pool.has(*kind) {
                return Err(damaged("a block holds map pages, or a log, of a drive that has none"));
            }
            self.media.pool.found(superblock, *kind);
        }
        for (slot, (superblock, next_page)) in frontiers.iter().enumerate() {
            if !self.media.set_open_block(slot, *superblock, *next_page) {
                return Err(damaged("a write frontier is on a block that it cannot be on"));
            }
        }
        self.media.set_sequence(controller.sequence);
        Ok(())
    }

    /// Puts back the states of superblocks. The design has counted the valid units in them before.
    fn adopt_blocks(&mut self, controller: &Controller) -> io::Result<()> {
        for (superblock, state) in (0..).zip(&controller.states) {
            if !self.state_fits(superblock, *state, controller.sequence) {
                return Err(damaged("a block's state does not agree with what is written in it"));
            }
            let (order, trimmed) = (controller.order[superblock as usize], controller.trimmed[superblock as usize]);
            self.media.pool.restore_state(superblock, *state, order, trimmed);
        }
        if !self.media.pool.set_closings(controller.closings) {
            return Err(damaged("a running number is out of its range"));
        }
        if !self.media.pool.restore_free(&controller.free, &self.media.flash) {
            return Err(damaged("the free lists do not name the free blocks"));
        }
        Ok(())
    }

    /// Whether the controller's state of a superblock agrees with the chips'.
    fn state_fits(&self, superblock: u32, state: BlockState, sequence: u64) -> bool {
        let blocks: Vec<BlockId> = self.media.pool.superblocks.members(superblock).collect();
        let chips: Vec<_> = blocks.iter().map(|block| *self.media.flash.blocks.get(*block)).collect();
        let good = self.media.pool.is_good(superblock, &self.media.flash);
        let suspect = chips.iter().any(|chips| chips.suspect);
        let programmed = self.media.programmed(superblock);
        let kind = match state {
            BlockState::Free => {
                good && !suspect && programmed == 0 && self.media.pool.kind(superblock) == BlockKind::Data
            }
            BlockState::Bad => !good,
            BlockState::Open => good && (self.media.own_blocks || !suspect && self.media.is_frontier(superblock)),
            _ => good && programmed > 0 && !self.media.is_frontier(superblock),
        };
        let valid = self.media.pool.valid(superblock);
        let holds_valid = matches!(state, BlockState::Open | BlockState::Closed) || valid == 0;
        let numbers = blocks.iter().zip(&chips).all(|(block, chips)| {
            (0..chips.programmed).all(|page| self.media.flash.oob.sequence(*block, page) < sequence)
        });
        kind && holds_valid && numbers
    }
}
