//! What every FTL design builds on: the chips, the pool of blocks, the write frontiers, and the one way to program.
//!
//! Mapping is the design's; order, space, pins and counting are kept here, so that no design can get them wrong.
//!
//! - `addresses.rs`: numbers of units, pages and blocks.
//! - `frontier.rs`: open superblocks, which give out pages in order.
//! - `space.rs`: which frontier has a page to give.
//! - `pacing.rs`: how much of that the host may take while collection lags behind.
//! - `own_blocks.rs`: blocks of a design without frontiers.
//! - `program.rs`: programs, and those of a row.
//! - `metadata.rs`: which metadata is not on flash yet.
//! - `read.rs`: reads, and what is lost with one.
//! - `source.rs`: where the data of a page is.
//! - `pins.rs`: blocks that may not be erased yet.
//! - `parity.rs`: stripes.
//! - `summary/`: lists of owners, where there are no OOB areas.

mod addresses;
mod checkpoint_area;
mod frontier;
mod metadata;
mod own_blocks;
mod pacing;
mod parity;
mod pins;
mod program;
mod read;
mod source;
mod space;
mod summary;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use ssdlab_base::{Divider, Nanos, Rng, rng, saved};
use ssdlab_flash::{BlockId, Flash, NONE, OpId, Submit, UnitId};

use self::frontier::{CLOSED, OpenBlock};
use self::metadata::MetadataInFlight;
use self::pacing::HostPace;
use self::program::{NO_ROW, Row};
use self::read::MultiSource;
use self::summary::Summary;
use crate::block_pool::{BlockKind, BlockPool};
use crate::event_queue::EventQueue;
use crate::processor::Processor;
use crate::superblocks::Role;
use crate::wakes::Wakes;
use crate::{DriveConfig, Options, Owners, Parity};

pub(crate) use frontier::Frontier;
pub(crate) use metadata::MetadataToken;
pub(crate) use parity::replace_sector_data;
pub(crate) use program::{FailedProgram, Programming};
pub(crate) use source::{Location, Source};
pub(crate) use summary::{List, OWNER_LISTS, Promised, checksum, summary_bytes};

/// A page that was given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The block.
    pub(crate) block: BlockId,
    /// The page in it.
    pub(crate) page: u32,
}

saved!(Place: block, page);

/// Chips, pool, frontiers.
pub(crate) struct Media {
    /// The chips.
    pub(crate) flash: Flash,
    /// The blocks.
    pub(crate) pool: BlockPool,
    /// Virtual time.
    pub(crate) now: Nanos,
    /// Randomness of the policies.
    pub(crate) rng: Rng,
    /// Mapping units in a page.
    pub(crate) units_per_page: u32,
    /// Bytes of a mapping unit.
    pub(crate) unit_bytes: u32,
    pages_per_block: u32,
    pages_per_superblock: u32,
    data_pages_per_superblock: u32,
    /// Pages of each block that are kept for a list of owners.
    list_pages: u32,
    /// Programs of a block have nothing to do with others: there are no rows, no stripes and no lists.
    stands_alone: bool,
    by_pages_per_block: Divider,
    by_units_per_page: Divider,
    /// Superblocks of each group that only relocation may open.
    pub(crate) gc_reserve: u32,
    /// The design opens blocks by itself: there are no frontiers.
    pub(crate) own_blocks: bool,
    separate_gc: bool,
    streams: u32,
    /// Frontiers of a group: of each stream, of relocation, of map pages where there are map blocks, and of a log.
    row: u32,
    frontiers: Vec<OpenBlock>,
    /// Pages of a frontier that power cuts left behind the others: they are given out first.
    skipped_pages: Vec<VecDeque<(Place, Role)>>,
    /// By frontier, with parity: programs of the stripe that it fills which waited for reads when they were started.
    deferred_programs: Vec<Vec<(OpId, Place)>>,
    /// Pages that could not be read and were had from the rest of their stripe.
    pub(crate) rebuilt_pages: u64,
    /// Pages of open stripes that recovery has to read again for their parity.
    pub(crate) reread: Vec<Place>,
    /// The last page of host data left room in its row: pages that its die can program with it.
    pub(crate) host_row_open: bool,
    /// Where planes are to program together: the row that each frontier fills.
    rows: Vec<Row>,
    sequence: u64,
    /// Pins of programs that supersede units in several blocks, `units_per_page` a program.
    pin_table: Vec<BlockId>,
    /// Where the units of programs that wait for reads come from, `units_per_page` a program: [`UnitId::NONE`] where all is
    /// there.
    sources: Vec<UnitId>,
    /// Programs of pages of one unit that supersede, or are built from, more than one page.
    multi_source_programs: FxHashMap<OpId, MultiSource>,
    /// Bytes of host pages programmed without data.
    pub(crate) padding_bytes: u64,
    /// Bytes of the pages of relocation that its units did not fill: a victim's last page is programmed as it is.
    pub(crate) relocation_padding_bytes: u64,
    /// Programs of metadata that are not done, and pages of it whose programs failed and that are not on flash since.
    pub(crate) metadata: MetadataInFlight,
    /// What paced collection has to know of the host, and tells it.
    pub(crate) host_pace: HostPace,
    /// What the design tells the host unasked.
    pub(crate) events: EventQueue,
    /// What has happened since the drive last looked.
    pub(crate) wakes: Wakes,
    /// Settled blocks of a log wait for free blocks that are set aside in their stead.
    pub(crate) log_waits: bool,
    /// The controller's processor and DRAM, where these take time.
    pub(crate) processor: Option<Box<Processor>>,
    /// Pins on emptied blocks that wait for a record beside the design's checkpoint.
    pub(crate) held_for_checkpoint: u32,
    /// Where lists name the owners of units.
    summary: Option<Box<Summary>>,
}

impl Media {
    /// Puts a record into a unit that is programmed next. Where contents are kept its data is zeroes, so that a copy of it has data.
    pub(crate) fn put_record(&mut self, unit: UnitId, words: Box<[u64]>) {
        self.flash.oob.put_record(unit, words);
        if self.flash.store.sector_data_bytes() > 0 {
            let sector_data = vec![0; self.flash.store.unit_data_bytes()];
            self.flash.store.write(unit, &sector_data);
        }
    }

    /// Sends a flash operation to the chips, now or when the processor has issued it.
    #[inline]
    pub(crate) fn issue(&mut self, submit: Submit) -> OpId {
        debug_assert!(self.flash.timed(), "{submit:?} is issued where operations take no time");
        match &mut self.processor {
            None => self.flash.submit(self.now, submit),
            Some(processor) => {
                let at = processor.issue(self.now);
                debug_assert!(at >= self.now, "{submit:?} is issued at {at}, in the past of {}", self.now);
                self.flash.submit_issued_at(self.now, submit, at)
            }
        }
    }

    /// The processor looks at map entries.
    #[inline]
    pub(crate) fn look_up(&mut self, entries: u32) {
        if let Some(processor) = &mut self.processor
            && self.flash.timed()
            && entries > 0
        {
            processor.look_up(self.now, entries);
        }
    }

    /// Fresh chips and everything free.
    pub(crate) fn new(config: &DriveConfig, options: Options) -> Media {
        let geometry = config.flash.geometry;
        let units_per_page = geometry.page_bytes / config.ftl.mapping_unit;
        let flash = Flash::new(&config.flash, units_per_page, options.contents, options.seed, config.timed);
        Media::over(config, options, flash)
    }

    /// The controller's side over chips that exist already.
    pub(crate) fn over(config: &DriveConfig, options: Options, mut flash: Flash) -> Media {
        let geometry = *flash.geometry();
        if config.ftl.parity != Parity::None {
            flash.hold_failed_reads();
        }
        if config.keeps_origins() {
            flash.oob.keep_origins();
        }
        let processor = Processor::new(&config.controller);
        if processor.is_some() {
            flash.expect_delayed_issues();
        }
        let (page, unit) = (geometry.page_bytes, config.ftl.mapping_unit);
        assert!(page.is_multiple_of(unit), "a page of {page} bytes in units of {unit}");
        let units = geometry.pages() * u64::from(page / unit);
        assert!(units < u64::from(NONE), "{units} units on flash, more than numbers for them");
        let pool = BlockPool::new(config, &mut flash);
        let row = config.ftl.streams + 1 + u32::from(pool.has(BlockKind::Map)) + u32::from(pool.has(BlockKind::Log));
        let frontiers = pool.groups() * row;
        let rows = if pool.superblocks.together() > 1 { frontiers as usize } else { 0 };
        let pages_per_superblock = geometry.pages_per_block * pool.superblocks.width();
        let host_pace = HostPace::new(config, pool.groups());
        let list_pages = config.list_pages();
        let summary = (config.ftl.owners == Owners::Summary).then(|| Box::new(Summary::new(geometry.blocks())));
        Media {
            flash,
            now: Nanos::ZERO,
            rng: rng(options.seed, "controller policies"),
            units_per_page: geometry.page_bytes / config.ftl.mapping_unit,
            unit_bytes: config.ftl.mapping_unit,
            pages_per_block: geometry.pages_per_block,
            by_pages_per_block: Divider::new(geometry.pages_per_block),
            by_units_per_page: Divider::new(geometry.page_bytes / config.ftl.mapping_unit),
            gc_reserve: config.gc_reserve(),
            pages_per_superblock,
            data_pages_per_superblock: (geometry.pages_per_block - list_pages)
                * (pool.superblocks.width() - pool.superblocks.parity()),
            list_pages,
            stands_alone: pool.superblocks.width() == 1 && summary.is_none(),
            deferred_programs: vec![Vec::new(); if pool.superblocks.parity() > 0 { frontiers as usize } else { 0 }],
            rebuilt_pages: 0,
            reread: Vec::new(),
            pool,
            own_blocks: false,
            separate_gc: config.ftl.separate_gc_frontier,
            streams: config.ftl.streams,
            row,
            frontiers: vec![CLOSED; frontiers as usize],
            skipped_pages: vec![VecDeque::new(); frontiers as usize],
            host_row_open: false,
            rows: vec![NO_ROW; rows],
            sequence: 1,
            pin_table: Vec::new(),
            sources: Vec::new(),
            multi_source_programs: FxHashMap::default(),
            padding_bytes: 0,
            relocation_padding_bytes: 0,
            metadata: MetadataInFlight::default(),
            host_pace,
            events: EventQueue::default(),
            wakes: Wakes::default(),
            log_waits: false,
            processor,
            held_for_checkpoint: 0,
            summary,
        }
    }
}
