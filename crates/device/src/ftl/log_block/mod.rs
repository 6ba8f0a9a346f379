//! Log-block FTL designs `bast` and `fast`: a map of blocks, and log blocks that take what is overwritten. Application-Managed
//! Flash (Lee et al., FAST 2016), section 5.1, compares its FTL with such hybrids.
//!
//! The logical space is cut into logical blocks. Each is kept in one *data block*: a header in the first page, and page `offset` of
//! the logical block in page `offset + 1`. What comes next in order is appended. Everything else goes to a *log block*, page by
//! page in the order of writes. When log blocks run out one is merged (`merge.rs`).
//!
//! ```text
//!   data block           log block
//!   +---+---+---+---+    +---+----+----+---+
//!   | H | A | B | C |    | H | B' | A' |   |     A' and B' count; the map of log blocks says where they are
//!   +---+---+---+---+    +---+----+----+---+
//! ```
//!
//! - `bast.rs`, `fast.rs`: the log block that a write goes to, and the one that is merged.
//! - `logs.rs`: the log blocks, as they are found; `merge.rs`: switch, partial and full merges.
//! - `header.rs`: what a block says of itself.
//! - `recovery.rs`: the map from headers and OOB areas; `saved.rs`: snapshots; `keys.rs`: keys and drawn drives.

mod bast;
mod fast;
mod header;
mod keys;
mod logs;
mod merge;
mod recovery;
mod saved;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use rustc_hash::FxHashMap;
use ssdlab_base::Saved;
use ssdlab_flash::{BlockId, Cause, DieId, Lpn, NONE, Ppn};

pub(super) use self::bast::BAST;
pub(super) use self::fast::FAST;
use self::header::{Header, Role};
use self::logs::{Log, LogNumber, Logs};
use self::merge::Why;
use crate::block_pool::BlockState;
use crate::ftl::block_mapping_limits;
use crate::ftl::whole_pages::{self, Page};
use crate::ftl::{
    Design, Drawing, Found, Ftl, Make, NoSpace, OwnCollection, Relocated, TrimTarget, UnitWrite, full_mask,
};
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError};

/// Which log block a write goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Bast,
    Fast,
}

impl Scheme {
    /// The fewest log blocks that it works with.
    const fn least_logs(self) -> u32 {
        match self {
            Scheme::Bast => 1,
            Scheme::Fast => 2,
        }
    }
}

/// A design of this folder.
const fn design(
    name: &'static str,
    summary: &'static str,
    check: fn(&DriveConfig) -> Result<(), DriveError>,
    make: fn(&DriveConfig) -> Box<dyn Ftl>,
) -> Design {
    Design {
        name,
        summary,
        keys: keys::KEYS,
        make: Make {
            check,
            partial_write: "costs a read-modify-write into a log block",
            drawing: Drawing { drive: keys::draw, handful: block_mapping_limits::handful, one_in: 16, ..Drawing::ANY },
            ..Make::of(make, LogBlockFtl::simulator_bytes)
        },
    }
}

/// Where the pages of a logical block are that are at their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DataBlock {
    /// The data block; [`BlockId::NONE`] if there is none.
    block: BlockId,
    /// Its pages behind the header that were given out: the next one is appended there.
    pages: u32,
}

/// Merges so far.
#[derive(Clone, Copy, Debug, Default)]
struct Merges {
    switch: u64,
    partial: u64,
    full: u64,
}

/// A map of blocks with log blocks.
pub(crate) struct LogBlockFtl {
    scheme: Scheme,
    /// By logical block.
    data_blocks: Vec<DataBlock>,
    /// One bit an LPN: holds data.
    mapped: Vec<u64>,
    /// Pages that are not at their place: in log blocks, or where a power cut left them.
    displaced: FxHashMap<Lpn, Ppn>,
    logs: Logs,
    most_logs: u32,
    /// Logical blocks with trims that no header on flash tells of, in the order of the first such trim.
    trimmed: Vec<u32>,
    /// By logical block: blocks of pages that were trimmed, a page each. They hide older copies, and count as valid until a header
    /// tells of the trim.
    held: BTreeMap<u32, Vec<BlockId>>,
    /// LPNs that held nothing before a program that may not have ended, and its number.
    revived: BTreeMap<Lpn, u64>,
    /// Blocks that are neither data nor log blocks any more, to be erased.
    to_erase: Vec<BlockId>,
    /// Pages of a logical block: all of a block but the header.
    data_pages: u32,
    user_units: u32,
    full_mask: u64,
    /// Free blocks that host writes leave to relocation and failed programs.
    reserve: u32,
    /// The group whose turn it is to open a block.
    next_group: u32,
    /// Writes to log blocks.
    clock: u64,
    merges: Merges,
    copied_pages: u64,
    appended_pages: u64,
    logged_pages: u64,
}

impl LogBlockFtl {
    fn new(config: &DriveConfig, scheme: Scheme) -> LogBlockFtl {
        let user_units = config.user_units();
        let data_pages = config.flash.geometry.pages_per_block - 1;
        let logical_blocks = user_units.div_ceil(data_pages);
        LogBlockFtl {
            scheme,
            data_blocks: vec![DataBlock { block: BlockId::NONE, pages: 0 }; logical_blocks as usize],
            mapped: vec![0; user_units.div_ceil(64) as usize],
            displaced: FxHashMap::default(),
            logs: Logs::default(),
            most_logs: keys::log_blocks(config, scheme.least_logs()),
            trimmed: Vec::new(),
            held: BTreeMap::new(),
            revived: BTreeMap::new(),
            to_erase: Vec::new(),
            data_pages,
            user_units,
            full_mask: full_mask(config.ftl.mapping_unit),
            reserve: config.gc_reserve(),
            next_group: 0,
            clock: 0,
            merges: Merges::default(),
            copied_pages: 0,
            appended_pages: 0,
            logged_pages: 0,
        }
    }

    /// Bytes that the tables and the headers take at most.
    fn simulator_bytes(config: &DriveConfig) -> u64 {
        let geometry = &config.flash.geometry;
        let data_pages = geometry.pages_per_block.saturating_sub(1).max(1);
        let user_units = u64::from(config.user_units());
        let data_blocks = user_units.div_ceil(u64::from(data_pages)) * size_of::<DataBlock>() as u64;
        let headers = u64::from(geometry.blocks()) * (Header::bytes(data_pages) + 64);
        let logs = u64::from(keys::log_blocks(config, 2)) * (u64::from(data_pages) * 24 + 64);
        data_blocks + user_units.div_ceil(64) * 8 + headers + logs
    }

    /// The logical block of an LPN, and the page in it.
    fn split(&self, lpn: Lpn) -> (u32, u32) {
        (lpn / self.data_pages, lpn % self.data_pages)
    }

    /// The first LPN of a logical block.
    fn first_of(&self, logical: u32) -> Lpn {
        Lpn(logical * self.data_pages)
    }

    /// Pages of a logical block; the last one may have fewer.
    fn pages_of(&self, logical: u32) -> u32 {
        self.data_pages.min(self.user_units - logical * self.data_pages)
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
        let displaced_page = self.displaced.get(&lpn).copied();
        displaced_page.unwrap_or_else(|| self.first_page(self.data_blocks[logical as usize].block) + 1 + offset)
    }

    /// The number of a block's header page.
    const fn first_page(&self, block: BlockId) -> Ppn {
        Ppn::of(block, 0, self.data_pages + 1)
    }

    /// The logical block whose data block this is.
    fn home_in(&self, media: &Media, block: BlockId) -> Option<u32> {
        let logical = Header::of(media, block, self.data_pages)?.logical;
        (logical != NONE && self.data_blocks[logical as usize].block == block).then_some(logical)
    }

    /// Whether a page can still be given out of an open block.
    fn takes_pages(&self, media: &Media, block: BlockId) -> bool {
        media.pool.state(block.0) == BlockState::Open
            && !media.flash.blocks.get(block).suspect
            && media.flash.oob.sequence_fits(block, media.sequence())
    }

    /// Whether an LPN that holds nothing goes behind the last page of its data block.
    fn appends(&self, media: &Media, lpn: Lpn) -> bool {
        let (logical, offset) = self.split(lpn);
        let data_block = self.data_blocks[logical as usize];
        !self.is_mapped(lpn)
            && data_block.block != BlockId::NONE
            && data_block.pages == offset
            && self.takes_pages(media, data_block.block)
    }

    /// Whether a logical block holds nothing at all, so that its first page opens a data block.
    fn begins(&self, lpn: Lpn) -> bool {
        let (logical, offset) = self.split(lpn);
        let first = self.first_of(logical);
        offset == 0
            && self.data_blocks[logical as usize].block == BlockId::NONE
            && Lpn::each(first..first + self.pages_of(logical)).all(|lpn| !self.is_mapped(lpn))
    }

    /// Whether a log block has a page to give out.
    fn has_page(&self, media: &Media, number: LogNumber) -> bool {
        let log = &self.logs[number];
        (log.lpns.len() as u32) < self.data_pages && self.takes_pages(media, log.block)
    }

    /// Opens a log block for a logical block, or (`NONE`) for any.
    fn open_log(&mut self, media: &mut Media, logical: u32) -> Result<(), NoSpace> {
        let (count, most) = (self.logs.len() as u32, self.most_logs);
        assert!(count < most, "a log block is opened beside {count} of {most}");
        let known = logical != NONE && self.logs.of_logical(logical).is_some();
        assert!(!known, "logical block {logical} has a log block, and another is opened");
        let (revived, sources, held) = (Vec::new(), Vec::new(), Vec::new());
        let header = Header { role: Role::Log, logical, pages: 0, sequence: 0, revived, sources, held };
        let block = self.begin_block(media, &header, &[], true)?;
        let log = Log { block, logical, lpns: Vec::new(), used: self.clock };
        self.logs.add(log).unwrap_or_else(|log| panic!("block {} was opened, and is a log block", log.block));
        Ok(())
    }

    /// Programs the next page of a data block.
    fn append(&mut self, media: &mut Media, unit: &UnitWrite<'_>, cause: Cause, owner: Waiter) {
        let (logical, offset) = self.split(unit.lpn);
        let DataBlock { block, pages } = self.data_blocks[logical as usize];
        assert!(!self.is_mapped(unit.lpn), "LPN {} holds data, and is appended", unit.lpn);
        assert_eq!(pages, offset, "LPN {} is appended to data block {block}, out of order", unit.lpn);
        let place = Place { block, page: offset + 1 };
        self.revive(media, unit.lpn);
        let page = Page { place, lpn: unit.lpn, ..Page::OF_OWN_BLOCK };
        whole_pages::write_page(media, unit, &page, cause, owner);
        media.pool.add_valid(block);
        self.set_mapped(unit.lpn, true);
        self.data_blocks[logical as usize].pages = offset + 1;
        if offset + 1 == self.data_pages {
            media.end_block(block, offset + 2);
        }
        self.appended_pages += 1;
    }

    /// Programs the next page of a log block.
    fn log(&mut self, media: &mut Media, number: LogNumber, unit: &UnitWrite<'_>, cause: Cause, owner: Waiter) {
        let block = self.logs[number].block;
        let pages = self.logs[number].lpns.len() as u32 + 1;
        assert!(pages <= self.data_pages, "log block {block} has {pages} pages of {}", self.data_pages);
        let logical = self.logs[number].logical;
        assert!(logical == NONE || logical == self.split(unit.lpn).0, "LPN {} goes to a log of {logical}", unit.lpn);
        let place = Place { block, page: pages };
        let was_mapped = self.is_mapped(unit.lpn);
        let source = if was_mapped { self.page_of(unit.lpn) } else { Ppn::NONE };
        if !was_mapped {
            self.revive(media, unit.lpn);
        }
        let pin = [if was_mapped { media.block_of_page(source) } else { BlockId::NONE }];
        let pins = if was_mapped { &pin[..] } else { &[] };
        whole_pages::write_page(
            media,
            unit,
            &Page { place, lpn: unit.lpn, source, pins, ..Page::OF_OWN_BLOCK },
            cause,
            owner,
        );
        if was_mapped {
            self.set_page(media, unit.lpn, media.ppn_at(place));
        } else {
            media.pool.add_valid(block);
            self.set_mapped(unit.lpn, true);
            self.displaced.insert(unit.lpn, media.ppn_at(place));
        }
        self.clock += 1;
        self.logs.give_page(number, unit.lpn);
        self.logs.use_at(number, self.clock);
        if pages == self.data_pages {
            media.end_block(block, pages + 1);
        }
        self.logged_pages += 1;
    }

    /// An LPN that holds nothing is written by the next program.
    fn revive(&mut self, media: &Media, lpn: Lpn) {
        assert!(!self.is_mapped(lpn), "LPN {lpn} holds data, and is written as if it held nothing");
        self.revived.insert(lpn, media.sequence());
        // As many as are in flight stay.
        if self.revived.len() >= 256 && self.revived.len().is_power_of_two() {
            self.forget_settled(media);
        }
    }

    /// Drops revived LPNs whose page is on flash, or that hold nothing again.
    fn forget_settled(&mut self, media: &Media) {
        let mut revived = std::mem::take(&mut self.revived);
        revived.retain(|lpn, _| self.is_mapped(*lpn) && !media.is_on_flash(self.page_of(*lpn)));
        self.revived = revived;
    }

    /// Logical blocks that have something in a block.
    fn logicals_in(&self, media: &Media, block: BlockId) -> Vec<u32> {
        let pages = 1..=self.data_pages;
        let lpns = pages.map(|page| media.flash.oob.lpn(media.unit_at(Place { block, page })));
        let current = |lpn: &Lpn| {
            lpn.0 < self.user_units && self.is_mapped(*lpn) && media.block_of_page(self.page_of(*lpn)) == block
        };
        let holding = self.held.iter().filter(|(_, blocks)| blocks.contains(&block)).map(|(logical, _)| *logical);
        let mut logicals: Vec<u32> = lpns.filter(current).map(|lpn| self.split(lpn).0).chain(holding).collect();
        logicals.extend(self.home_in(media, block));
        logicals.sort_unstable();
        logicals.dedup();
        logicals
    }

    fn blocks_needed(&self, config: &DriveConfig) -> u32 {
        self.data_blocks.len() as u32 + self.most_logs + config.gc.free_blocks
    }
}

impl Ftl for LogBlockFtl {
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        _: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let [unit] = units else { unreachable!("{} units in a page of one", units.len()) };
        loop {
            if self.appends(media, unit.lpn) {
                self.append(media, unit, cause, owner);
                return Ok(());
            }
            if self.begins(unit.lpn) {
                self.full_merge(media, self.split(unit.lpn).0, Why { is_copy: false, ..Why::LOG })?;
                continue;
            }
            let log = match self.scheme {
                Scheme::Bast => self.bast_log(media, unit.lpn),
                Scheme::Fast => self.fast_log(media, unit.lpn),
            };
            if let Some(number) = log {
                self.log(media, number, unit, cause, owner);
                return Ok(());
            }
            match self.scheme {
                Scheme::Bast => self.bast_step(media, unit.lpn)?,
                Scheme::Fast => self.fast_step(media, unit.lpn)?,
            }
        }
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        let log = match self.scheme {
            Scheme::Bast => self.bast_log(media, lpn),
            Scheme::Fast => self.fast_log(media, lpn),
        };
        let block = if mask != self.full_mask && self.is_mapped(lpn) {
            media.block_of_page(self.page_of(lpn))
        } else if self.appends(media, lpn) {
            self.data_blocks[self.split(lpn).0 as usize].block
        } else {
            self.logs[log?].block
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
            let (logical, _) = self.split(lpn);
            let block = media.block_of_page(self.page_of(lpn));
            self.held.entry(logical).or_default().push(block);
            assert!(media.pool.valid(block.0) > 0, "LPN {lpn} is in block {block}, which has nothing valid");
            self.displaced.remove(&lpn);
            self.set_mapped(lpn, false);
            trimmed += 1;
            if !self.trimmed.contains(&logical) {
                self.trimmed.push(logical);
            }
        }
        trimmed
    }

    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, _: Waiter) -> Result<u32, NoSpace> {
        let mut started = 0;
        while let Some(logical) = self.trimmed.first() {
            let why = Why { for_host: to == TrimTarget::Host, is_copy: false, cause: Cause::Merge };
            self.full_merge(media, *logical, why)?;
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
        let block = BlockId(victim);
        let why = Why { cause, for_host: false, is_copy: true };
        let mut logicals = self.logicals_in(media, block).into_iter();
        let stuck = logicals.any(|logical| self.full_merge(media, logical, why).is_err());
        if !stuck {
            assert!(self.home_in(media, block).is_none(), "block {block} was emptied, and is a data block");
            if let Some(number) = self.logs.of_block(block) {
                self.logs.remove(number);
            }
            self.to_erase.retain(|other| *other != block);
        }
        // Each copy delays the erase of the victim until it is on flash.
        Relocated { cursor: if stuck { cursor } else { media.units_per_superblock() }, started: 0, stuck }
    }

    fn rewrite(&mut self, media: &mut Media, place: Place, _: Frontier, _: Cause, _: Waiter) -> Result<bool, NoSpace> {
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        let is_current = place.page > 0
            && lpn.0 < self.user_units
            && self.is_mapped(lpn)
            && self.page_of(lpn) == media.ppn_at(place);
        let logical = self.home_in(media, place.block).or_else(|| is_current.then(|| self.split(lpn).0));
        if let Some(logical) = logical {
            self.full_merge(media, logical, Why::FAILED)?;
        }
        // The block takes no more pages, and is emptied.
        self.drop_log(media, place.block);
        Ok(logical.is_some())
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        let is_data = place.page > 0 && lpn.0 < self.user_units;
        let of_header = Header::of(media, place.block, self.data_pages).map(|header| header.logical);
        let logical = if is_data { Some(self.split(lpn).0) } else { of_header.filter(|logical| *logical != NONE) };
        let data_block = logical.map_or(BlockId::NONE, |logical| self.data_blocks[logical as usize].block);
        if data_block != BlockId::NONE {
            // The header tells of trims.
            pages.push(self.first_page(data_block));
        }
        if is_data && self.is_mapped(lpn) {
            pages.push(self.page_of(lpn));
        }
        is_data && !self.is_mapped(lpn) && logical.is_some_and(|logical| self.trimmed.contains(&logical))
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.rebuild(media, reads);
    }

    fn metadata_units(&self) -> u32 {
        self.data_blocks.len() as u32 + self.most_logs
    }

    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        let (needed, good) = (self.blocks_needed(config), usable.iter().sum::<u32>());
        if needed <= good {
            return Ok(());
        }
        Err(DriveError {
            key: "capacity".to_string(),
            reason: format!(
                "too little over-provisioning: {} logical blocks of {} pages, {} log blocks (ftl.log_blocks) and the {} blocks that \
                 are kept for merges (gc.free_blocks) take {needed} blocks, and {good} are good: lower the user capacity, \
                 ftl.log_blocks or gc.free_blocks",
                self.data_blocks.len(),
                self.data_pages,
                self.most_logs,
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
        let headers = self.data_blocks.iter().filter(|data_block| data_block.block != BlockId::NONE).count() as u64;
        let held = self.held.values().map(Vec::len).sum::<usize>() as u64;
        let counted: u64 = (0..media.pool.superblocks_count()).map(|block| u64::from(media.pool.valid(block))).sum();
        let lpns = || Lpn::each(Lpn(0)..Lpn(self.user_units)).filter(|lpn| self.is_mapped(*lpn));
        let wrong = lpns().filter(|lpn| media.flash.oob.lpn(self.page_of(*lpn).sole_unit()) != *lpn).count();
        let most = self.most_logs as usize;
        vec![
            Check {
                name: "valid_pages_equal_mapped_pages",
                passed: counted == mapped + headers + held,
                detail: format!(
                    "{mapped} pages mapped, {headers} headers, {held} trimmed and not saved, {counted} valid in blocks"
                ),
            },
            Check {
                name: "pages_name_their_lpn",
                passed: wrong == 0,
                detail: format!("{wrong} of {mapped} LPNs are mapped to a page that names another"),
            },
            Check {
                name: "log_blocks_within_their_share",
                passed: self.logs.len() <= most,
                detail: format!("{} log blocks, of {most} at most", self.logs.len()),
            },
        ]
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let log_pages = u64::from(self.most_logs) * u64::from(self.data_pages);
        vec![
            // A block number each; how many pages of it are written is in the OOB area, too.
            ("mapping_bytes", self.data_blocks.len() as u64 * size_of::<DataBlock>() as u64),
            // What each page of a log block holds, and where a page is that is in one.
            ("log_map_bytes", log_pages * (size_of::<Lpn>() + size_of::<(Lpn, Ppn)>()) as u64),
            ("valid_bitmap_bytes", self.mapped.len() as u64 * 8),
        ]
    }

    fn design(&self, _: &Media) -> Vec<(String, f64)> {
        let counts = [
            ("switch_merges", self.merges.switch),
            ("partial_merges", self.merges.partial),
            ("full_merges", self.merges.full),
            ("merge_copied_pages", self.copied_pages),
            ("appended_pages", self.appended_pages),
            ("logged_pages", self.logged_pages),
            ("log_blocks", self.logs.len() as u64),
            ("log_blocks_max", self.most_logs.into()),
        ];
        counts.map(|(name, count)| (name.to_string(), count as f64)).to_vec()
    }

    fn reset_counters(&mut self) {
        self.merges = Merges::default();
        (self.copied_pages, self.appended_pages, self.logged_pages) = (0, 0, 0);
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

/// Whether a block that leaves can be a victim of its group: all of its pages are written.
fn is_closed_in(media: &Media, group: u32, block: BlockId) -> bool {
    media.group_of(block) == group && media.pool.state(block.0) == BlockState::Closed
}

impl OwnCollection for LogBlockFtl {
    fn next_victim(&mut self, media: &Media, group: u32, _: bool) -> Option<u32> {
        let can_merge = media.free_blocks() > 0;
        let may_leave =
            |block: &BlockId| is_closed_in(media, group, *block) && (can_merge || media.pool.valid(block.0) == 0);
        // What needs no merge first: it gives a block to merge into.
        let indexes = (0..self.to_erase.len()).filter(|index| may_leave(&self.to_erase[*index]));
        let index = indexes.min_by_key(|index| media.pool.valid(self.to_erase[*index].0) > 0)?;
        Some(self.to_erase.remove(index).0)
    }

    /// A log block of several logical blocks takes as many merges, and the data blocks that they replace are erased meanwhile.
    fn has_empty_victim(&self, media: &Media, group: u32) -> bool {
        let is_empty = |block: &BlockId| is_closed_in(media, group, *block) && media.pool.valid(block.0) == 0;
        self.to_erase.iter().any(is_empty)
    }

    fn put_back(&mut self, victim: u32) {
        self.to_erase.push(BlockId(victim));
    }
}
