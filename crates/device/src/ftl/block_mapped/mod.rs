//! FTL design `block-mapped`: the template of docs/adding-a-design.md. It maps blocks, collects by itself, and never touches
//! the OOB area.
//!
//! The logical space is cut into logical blocks. Each is kept in one physical block: a header in the first page, and page
//! `offset` of the logical block in page `offset + 1`. What comes next in order is appended. Everything else is a merge:
//! the whole logical block goes into a new physical block, and the old one is erased. So writes in order to empty logical blocks
//! cost a page each, and each page that is overwritten costs a block, in order or not: no large drive is built like this any
//! more. The design is small, and complete.
//!
//! ```text
//!   logical block 7      header: sequence, logical block 7, which pages are inherited, which were written
//!   +---+---+---+        +---+---+---+---+
//!   | A | B | C |   ->   | H | A | B | C |   physical block 42
//!   +---+---+---+        +---+---+---+---+
//! ```
//!
//! - `header.rs`: what the header says, and how it hides what older blocks hold.
//! - `merge.rs`: the one way in which a logical block moves.
//! - `recovery.rs`: the map from headers alone.
//! - `saved.rs`: snapshots.

mod header;
mod merge;
mod recovery;
mod saved;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use ssdlab_base::Saved;
use ssdlab_flash::{BlockId, Cause, DieId, Lpn, NONE, Ppn};

use self::header::Header;
use self::merge::Merge;
use crate::block_pool::BlockState;
use crate::ftl::block_mapping_limits;
use crate::ftl::{
    Design, Drawing, Found, Ftl, Make, NoSpace, OwnCollection, Relocated, TrimTarget, UnitWrite, full_mask,
};
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError};

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "block-mapped",
    summary: "a map of blocks, merged when a page is overwritten; metadata in pages of its own, nothing in the OOB area",
    keys: &[],
    make: Make {
        check: |config| block_mapping_limits::check(config, DESIGN.name, Header::bytes),
        uses_oob: false,
        partial_write: "costs a read-modify-write, and a merge of its logical block",
        drawing: Drawing {
            drive: |config, rng| block_mapping_limits::draw(config, rng, Header::bytes),
            handful: block_mapping_limits::handful,
            one_in: 8,
            ..Drawing::ANY
        },
        ..Make::of(|config| Box::new(BlockFtl::new(config)), BlockFtl::simulator_bytes)
    },
};

/// Where a logical block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DataBlock {
    /// The physical block; [`BlockId::NONE`] while nothing of it was ever written.
    block: BlockId,
    /// Its pages behind the header that were given out: the next one is appended there.
    pages: u32,
}

/// A logical block that a power cut left in several physical ones: the rest of an interrupted merge.
#[derive(Clone, Debug, Default)]
struct Split {
    /// The blocks behind the newest; none is erased before the logical block is merged.
    older: Vec<BlockId>,
    /// Offsets whose page is in one of them, and where.
    pages: BTreeMap<u32, Ppn>,
}

/// A map of blocks.
pub(crate) struct BlockFtl {
    /// By logical block.
    data_blocks: Vec<DataBlock>,
    /// One bit an LPN: holds data.
    mapped: Vec<u64>,
    /// Logical blocks with trims that no header on flash tells of, in the order of the first such trim.
    trimmed: Vec<u32>,
    splits: BTreeMap<u32, Split>,
    /// By physical block: the logical block that its header names, `NONE` without a header.
    owners: Vec<u32>,
    /// Physical blocks that hold no logical block any more, to be erased.
    to_erase: Vec<BlockId>,
    /// Pages of a logical block: all of a block but the header.
    data_pages: u32,
    user_units: u32,
    full_mask: u64,
    /// Free blocks that host writes leave to relocation and failed programs.
    reserve: u32,
    /// The group whose turn it is to open a block.
    next_group: u32,
    merges: u64,
    merged_pages: u64,
    appended_pages: u64,
}

impl BlockFtl {
    pub(crate) fn new(config: &DriveConfig) -> BlockFtl {
        let geometry = &config.flash.geometry;
        let user_units = config.user_units();
        let data_pages = geometry.pages_per_block - 1;
        let logical_blocks = user_units.div_ceil(data_pages);
        BlockFtl {
            data_blocks: vec![DataBlock { block: BlockId::NONE, pages: 0 }; logical_blocks as usize],
            mapped: vec![0; user_units.div_ceil(64) as usize],
            trimmed: Vec::new(),
            splits: BTreeMap::new(),
            owners: vec![NONE; geometry.blocks() as usize],
            to_erase: Vec::new(),
            data_pages,
            user_units,
            full_mask: full_mask(config.ftl.mapping_unit),
            reserve: config.gc_reserve(),
            next_group: 0,
            merges: 0,
            merged_pages: 0,
            appended_pages: 0,
        }
    }

    /// Bytes that [`BlockFtl::new`] and the headers take.
    fn simulator_bytes(config: &DriveConfig) -> u64 {
        let geometry = &config.flash.geometry;
        let data_pages = geometry.pages_per_block.saturating_sub(1).max(1);
        let user_units = u64::from(config.user_units());
        let data_blocks = user_units.div_ceil(u64::from(data_pages)) * size_of::<DataBlock>() as u64;
        let headers = u64::from(geometry.blocks()) * (Header::bytes(data_pages) + 64);
        data_blocks + user_units.div_ceil(64) * 8 + u64::from(geometry.blocks()) * 8 + headers
    }

    /// The logical block of an LPN, and the page in it.
    fn split(&self, lpn: Lpn) -> (u32, u32) {
        (lpn / self.data_pages, lpn % self.data_pages)
    }

    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.mapped[lpn.index() / 64] >> (lpn % 64) & 1 != 0
    }

    fn set_mapped(&mut self, lpn: Lpn, mapped: bool) {
        let word = &mut self.mapped[lpn.index() / 64];
        *word = *word & !(1 << (lpn % 64)) | u64::from(mapped) << (lpn % 64);
    }

    /// The physical page of an LPN that holds data. A page holds one unit.
    fn page_of(&self, lpn: Lpn) -> Ppn {
        debug_assert!(self.is_mapped(lpn), "LPN {lpn} holds nothing");
        let (logical, offset) = self.split(lpn);
        let displaced = self.splits.get(&logical).and_then(|split| split.pages.get(&offset));
        displaced.copied().unwrap_or_else(|| self.first_page(self.data_blocks[logical as usize].block) + 1 + offset)
    }

    /// The number of a block's header page.
    const fn first_page(&self, block: BlockId) -> Ppn {
        Ppn::of(block, 0, self.data_pages + 1)
    }

    /// Whether a page can be programmed behind the last one of its logical block.
    fn appends(&self, media: &Media, lpn: Lpn) -> bool {
        let (logical, offset) = self.split(lpn);
        let data_block = self.data_blocks[logical as usize];
        data_block.block != BlockId::NONE
            && data_block.pages == offset
            && media.pool.state(data_block.block.0) == BlockState::Open
            && !media.flash.blocks.get(data_block.block).suspect
    }

    /// Whether a block holds something that a merge has to move before it may be erased.
    fn is_needed(&self, block: BlockId) -> bool {
        let logical = self.owners[block.index()];
        logical != NONE
            && (self.data_blocks[logical as usize].block == block
                || self.splits.get(&logical).is_some_and(|split| split.older.contains(&block)))
    }

    fn blocks_needed(&self, config: &DriveConfig) -> u32 {
        self.data_blocks.len() as u32 + config.gc.free_blocks
    }
}

impl Ftl for BlockFtl {
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        _: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let [unit] = units else { unreachable!("{} units in a page of one", units.len()) };
        if self.appends(media, unit.lpn) {
            self.append(media, unit, cause, owner);
            return Ok(());
        }
        let (logical, _) = self.split(unit.lpn);
        let merge = Merge { new: Some(*unit), new_cause: cause, owner, ..Merge::of_host() };
        self.merge(media, logical, &merge)
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        let partial = mask != self.full_mask && self.is_mapped(lpn);
        let block = match partial {
            true => media.block_of_page(self.page_of(lpn)),
            false if self.appends(media, lpn) => self.data_blocks[self.split(lpn).0 as usize].block,
            false => return None,
        };
        Some(media.flash.die_of(block))
    }

    fn find(&self, lpn: Lpn) -> Found {
        if self.is_mapped(lpn) { Found::At { unit: self.page_of(lpn).sole_unit() } } else { Found::Unmapped }
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        let mut trimmed = 0;
        for lpn in Lpn::each(first..end) {
            if !self.is_mapped(lpn) {
                continue;
            }
            media.pool.drop_valid(media.block_of_page(self.page_of(lpn)));
            self.set_mapped(lpn, false);
            trimmed += 1;
            let (logical, _) = self.split(lpn);
            if !self.trimmed.contains(&logical) {
                self.trimmed.push(logical);
            }
        }
        trimmed
    }

    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, _: Waiter) -> Result<u32, NoSpace> {
        let mut started = 0;
        while let Some(logical) = self.trimmed.first() {
            let merge = Merge { for_host: to == TrimTarget::Host, ..Merge::of_host() };
            self.merge(media, *logical, &merge)?;
            started += 1;
        }
        Ok(started)
    }

    fn trims_pending(&self) -> u32 {
        self.trimmed.len() as u32
    }

    fn trim_segment_units(&self) -> u32 {
        self.data_pages
    }

    fn relocate(&mut self, media: &mut Media, victim: u32, cursor: u32, _: u32, cause: Cause, _: Waiter) -> Relocated {
        let logical = self.owners[victim as usize];
        let merge = Merge { cause, for_host: false, is_copy: true, ..Merge::of_host() };
        let stuck = self.is_needed(BlockId(victim)) && self.merge(media, logical, &merge).is_err();
        // Each copy delays the erase of the victim until it is on flash.
        Relocated { cursor: if stuck { cursor } else { media.units_per_superblock() }, started: 0, stuck }
    }

    fn rewrite(&mut self, media: &mut Media, place: Place, _: Frontier, _: Cause, _: Waiter) -> Result<bool, NoSpace> {
        let logical = self.owners[place.block.index()];
        if logical == NONE || self.data_blocks[logical as usize].block != place.block {
            return Ok(false);
        }
        let merge = Merge { cause: Cause::Retirement, for_host: false, ..Merge::of_host() };
        self.merge(media, logical, &merge)?;
        Ok(true)
    }

    fn current_locations(&self, _: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        let logical = self.owners[place.block.index()];
        let data_block = if logical == NONE {
            DataBlock { block: BlockId::NONE, pages: 0 }
        } else {
            self.data_blocks[logical as usize]
        };
        if data_block.block != BlockId::NONE {
            // The header tells of trims, too: none has to be saved for this page.
            let first = self.first_page(data_block.block);
            pages.push(first);
            pages.extend((1..=data_block.pages).contains(&place.page).then(|| first + place.page));
        }
        false
    }

    fn is_recoverable(&self, media: &Media, place: Place) -> bool {
        // A page in flight when its logical block was merged is found in the new block, and only there.
        let logical = self.owners[place.block.index()];
        let is_data_block = logical != NONE && self.data_blocks[logical as usize].block == place.block;
        is_data_block && media.flash.blocks.readable(self.first_page(place.block))
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.rebuild(media, reads);
    }

    fn metadata_units(&self) -> u32 {
        self.data_blocks.len() as u32
    }

    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        let (needed, good) = (self.blocks_needed(config), usable.iter().sum::<u32>());
        if needed <= good {
            return Ok(());
        }
        Err(DriveError {
            key: "capacity".to_string(),
            reason: format!(
                "too little over-provisioning: {} logical blocks of {} pages and the {} blocks that are kept for merges \
                 (gc.free_blocks) take {needed} blocks, and {good} are good: lower the user capacity or gc.free_blocks",
                self.data_blocks.len(),
                self.data_pages,
                config.gc.free_blocks,
            ),
        })
    }

    fn data_bytes(&self, config: &DriveConfig, usable: &[u32]) -> f64 {
        let blocks = usable.iter().sum::<u32>().saturating_sub(config.gc.free_blocks);
        f64::from(blocks) * f64::from(self.data_pages) * f64::from(config.flash.geometry.page_bytes)
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        let mapped: u64 = self.mapped.iter().map(|word| u64::from(word.count_ones())).sum();
        let in_use = self.data_blocks.iter().filter(|data_block| data_block.block != BlockId::NONE);
        let headers = in_use.clone().count() as u64;
        let counted: u64 = (0..media.pool.superblocks_count()).map(|block| u64::from(media.pool.valid(block))).sum();
        let named = self.data_blocks.iter().enumerate().filter(|(logical, data_block)| {
            data_block.block != BlockId::NONE
                && Header::of(media, data_block.block, self.data_pages)
                    .is_some_and(|header| u64::from(header.logical) == *logical as u64)
        });
        let wrong = headers - named.count() as u64;
        vec![
            Check {
                name: "valid_pages_equal_mapped_pages",
                passed: counted == mapped + headers,
                detail: format!("{mapped} pages mapped, {headers} headers, {counted} valid in blocks"),
            },
            Check {
                name: "headers_name_their_logical_block",
                passed: wrong == 0,
                detail: format!("{wrong} of {headers} headers name another logical block than the one that they hold"),
            },
        ]
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            // A block number and how many of its pages are written.
            ("mapping_bytes", self.data_blocks.len() as u64 * 8),
            ("valid_bitmap_bytes", self.mapped.len() as u64 * 8),
        ]
    }

    fn design(&self, _: &Media) -> Vec<(String, f64)> {
        let counts = [
            ("block_merges", self.merges),
            ("block_merge_pages", self.merged_pages),
            ("block_appended_pages", self.appended_pages),
        ];
        counts.map(|(name, count)| (name.to_string(), count as f64)).to_vec()
    }

    fn reset_counters(&mut self) {
        (self.merges, self.merged_pages, self.appended_pages) = (0, 0, 0);
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.load_from(from)?;
        self.accept(media)
    }

    fn own_collection(&mut self) -> Option<&mut dyn OwnCollection> {
        Some(self)
    }
}

impl OwnCollection for BlockFtl {
    fn next_victim(&mut self, media: &Media, group: u32, _: bool) -> Option<u32> {
        let can_merge = media.free_blocks() > 0;
        let may_leave = |block: &BlockId| {
            media.group_of(*block) == group
                && media.pool.state(block.0) == BlockState::Closed
                && (can_merge || !self.is_needed(*block))
        };
        // What needs no merge first: it gives a block to merge into.
        let key = |index: &usize| self.is_needed(self.to_erase[*index]);
        let indexes = (0..self.to_erase.len()).filter(|index| may_leave(&self.to_erase[*index]));
        let index = indexes.min_by_key(key)?;
        Some(self.to_erase.remove(index).0)
    }
}
