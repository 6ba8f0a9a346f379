//! Flash translation layers: designs that say where logical units are on flash.
//!
//! A design is one folder and one line in [`DESIGNS`]. The drive calls it when a command is dispatched, when garbage
//! collection empties a block, and at recovery; the design answers by starting flash operations on [`Media`].

mod aftl;
mod allocator;
mod bit_fields;
mod block_mapped;
mod block_mapping_limits;
mod cached_map;
mod capabilities;
mod demand_paged;
mod dftl;
mod drawing;
mod durable_trims;
mod log_block;
pub(crate) mod mv;
mod one_table;
mod oob_recovery;
pub(crate) mod page;
mod page_mapping;
mod page_of_units;
mod shrd;
mod ssc;
mod tagged;
mod trims;
mod whole_pages;

use std::cell::Cell;

use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{CommandSet, Opcode, Request};
use ssdlab_flash::{Cause, DieId, Lpn, Ppn, UnitId};

use crate::command_sets::Rules;
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError, MapCacheStats, Status, registry};

pub(crate) use drawing::Drawing;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use ssc::{checkpoint_from_bytes, notes_from_bytes};

pub use ssc::{drops_clean, overrides_for_addresses, set_addresses};

pub use drawing::{
    design_commands, design_with, designs_with_lists, draw_design, draw_owners, draw_user_units, draw_zone_limits,
    drawn_designs, handful_for_design, has_own_campaign, partial_write_cost, set_owners,
};

pub(crate) use capabilities::{
    AppendOnly, CachedMap, Checkpoints, Commands, Compacts, IdleWork, LimitedRoom, OwnCollection, SteppedReads,
};

/// Most units that can share a page: 32 KiB pages of 512-byte units.
pub(crate) const MAX_UNITS: usize = 64;

/// All sectors of a unit.
pub(crate) const fn full_mask(unit_bytes: u32) -> u64 {
    u64::MAX >> (64 - unit_bytes / 512)
}

/// A unit to be written: which, which of its sectors, and their data where contents are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitWrite<'a> {
    /// The logical unit.
    pub(crate) lpn: Lpn,
    /// The sectors given, bit 0 the first; all others come from the old version.
    pub(crate) mask: u64,
    /// Data of all sectors of the unit (only those in `mask` mean anything); empty where nothing is kept.
    pub(crate) sector_data: &'a [u8],
    /// The host has the data elsewhere: a design that drops such data may drop it.
    pub(crate) expendable: bool,
}

/// The frontier has no page to give: garbage collection has to free a block first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSpace;

/// How far a relocation call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relocated {
    /// Where to go on in the victim, in units by the order in which its pages were given out.
    pub(crate) cursor: u32,
    /// Programs started that will report to their owner.
    pub(crate) started: u32,
    /// The frontier ran out; call again when a block is free.
    pub(crate) stuck: bool,
}

/// What a read of a unit found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was ever written there, or it was trimmed.
    Unmapped,
    /// On flash, or on its way there (then it is still in the controller's RAM).
    At {
        /// The physical unit.
        unit: UnitId,
    },
    /// In several versions, or in part of a page: [`SteppedReads::versions`] says where.
    Versions,
}

/// A version of a unit that has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionPart {
    /// The physical page. A design whose units have versions maps whole pages.
    pub(crate) ppn: Ppn,
    /// Sectors of the unit that it has and no newer version has; none if only its pattern is wanted.
    pub(crate) sectors: u64,
    /// Bytes that cross the channel.
    pub(crate) bytes: u32,
}

/// Where records of trims go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrimTarget {
    /// With the host's data.
    Host,
    /// To the relocation frontier of a group, out of GC's reserve.
    Gc(u32),
}

/// Most units looked up ahead in one go: as many cache misses overlap, and what they bring is not gone before it is used.
pub(crate) const PREFETCHED: usize = 32;

/// Small partial units of one region of the logical space that an FTL takes into one page (WAFLASH, 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compaction {
    /// Units in a region: `lpn / region_units` is its number.
    pub(crate) region_units: u32,
    /// Most sectors that a small unit holds (half a page).
    pub(crate) small_sectors: u32,
    /// Sectors of data that a page takes, without what the index of the page needs.
    pub(crate) room_sectors: u32,
    /// Most runs of sectors that the index of a page takes.
    pub(crate) most_runs: u32,
    /// Most units that a page takes; at most [`MAX_UNITS`].
    pub(crate) most_units: u32,
}

/// A command of the design's own set. The drive has checked it against what the set says.
#[derive(Debug)]
pub(crate) struct SetCommand<'a> {
    pub(crate) opcode: Opcode,
    pub(crate) request: &'a Request,
    pub(crate) words: &'a [u64],
    /// Units of its range with data of the host in the write buffer, which [`Commands::leaves_buffer`] let stay there or which cannot
    /// leave.
    pub(crate) buffered: &'a [Lpn],
    /// Those of them that are expendable.
    pub(crate) expendable: &'a [Lpn],
    /// The drive takes no more writes: what would have to be durable some day is refused.
    pub(crate) read_only: bool,
    /// Whether there is room for what it writes, if the drive has to keep that.
    pub(crate) has_room: bool,
    /// As whom it asks for map pages.
    pub(crate) waiter: Waiter,
    /// How many units of its range it was through with when it had to wait, at most: a command that comes further is not stuck.
    pub(crate) furthest: &'a Cell<u32>,
}

/// Why a command of the design's own set has to be executed again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CannotYet {
    /// It waits for a block.
    Space,
    /// It waits for map pages, or for programs in flight: its waiter is put on [`Wakes::map_waiters`](crate::wakes::Wakes::map_waiters) then.
    Map,
}

impl From<NoSpace> for CannotYet {
    fn from(_: NoSpace) -> CannotYet {
        CannotYet::Space
    }
}

/// What a command of the design's own set came to.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    /// Words and bytes of the answer.
    pub(crate) words: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
    /// The drive starts the records of all trims so far, and `words` is how many programs these are. Without space for them it
    /// executes the command again later, which must change nothing but then.
    pub(crate) saves_trims: bool,
    /// The command waits until every record of trims is on flash.
    pub(crate) awaits_records: bool,
    /// The range is read or written as block I/O now.
    pub(crate) block_io: bool,
    /// What is written is on flash when the command completes.
    pub(crate) write_through: bool,
    /// What is written is expendable: the host has it elsewhere.
    pub(crate) expendable: bool,
    /// Units of the range whose bits in `words` are set are told of by [`MISS_STAMP`] in their data, and the words do not travel.
    ///
    /// [`MISS_STAMP`]: ssdlab_base::command_sets::cache::MISS_STAMP
    pub(crate) absent_in_data: bool,
}

impl Outcome {
    /// It ended, with nothing to tell.
    pub(crate) const fn new(status: Status) -> Outcome {
        Outcome {
            status,
            words: Vec::new(),
            bytes: Vec::new(),
            saves_trims: false,
            awaits_records: false,
            block_io: false,
            write_through: false,
            expendable: false,
            absent_in_data: false,
        }
    }
}

/// A flash translation layer: what every design does, and at the end what it may do beside.
pub(crate) trait Ftl: Send {
    /// Writes at most a page's worth of units into one page. `Err` leaves everything as it was.
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace>;

    /// Whether [`Ftl::write`] takes units of which no sector is given, and writes them anew as they are on flash: what page
    /// padding needs.
    fn supports_rewrite(&self) -> bool {
        false
    }

    /// The die of the first flash operation that writing this unit now would start: the read of what completes it, else
    /// its program; `None` where the program goes to whatever die is idle. This is what a buffer policy calls the unit's
    /// chip.
    fn first_die(&self, _: &Media, _: Lpn, _: u64) -> Option<DieId> {
        None
    }

    /// Whether two units may share a page.
    fn share_page(&self, _: Lpn, _: Lpn) -> bool {
        false
    }

    /// Pages that the FTL gives out until each plane has had its turn: what is written together begins and ends with a
    /// stripe, so that the planes of a die stay in step.
    fn pages_left_in_stripe(&self, _: &Media) -> u32 {
        1
    }

    /// Where a unit is.
    fn find(&self, lpn: Lpn) -> Found;

    /// Whether a unit holds data on flash, or on its way there, for one who looks at the drive from outside: no processor works on it.
    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.find(lpn) != Found::Unmapped
    }

    /// The first unit of `first..end` that holds data, as [`Ftl::is_mapped`] says; `end` if none does.
    fn next_mapped(&self, first: Lpn, end: Lpn) -> Lpn {
        Lpn::each(first..end).find(|lpn| self.is_mapped(*lpn)).unwrap_or(end)
    }

    /// The unit that an owner in an OOB area or a list stands for, without marks of the design's own.
    fn owner(&self, owner: Lpn) -> Lpn {
        owner
    }

    /// Map entries beyond the first that looks for units took since the last call: the processor works on them, too.
    fn take_owed_probes(&mut self) -> u32 {
        0
    }

    /// Unmaps whole units `first..end`; returns how many held data.
    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64;

    /// Starts the programs that make every trim so far survive a power cut; returns how many were started.
    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, owner: Waiter) -> Result<u32, NoSpace>;

    /// Segments of the logical space with trims that are not on flash yet.
    fn trims_pending(&self) -> u32;

    /// Such segments that are tolerated before a trim saves them; the drive would tolerate `otherwise`.
    fn trim_backlog(&self, otherwise: u32) -> u32 {
        otherwise
    }

    /// Whether another such segment may be trimmed now; if not, the trim waits for a block to be erased.
    fn may_trim(&mut self, _: &mut Media) -> bool {
        true
    }

    /// Units in a segment of the logical space whose trims are saved together.
    fn trim_segment_units(&self) -> u32;

    /// Moves valid units of the superblock `victim` from `cursor` on, until about `limit` programs are started.
    fn relocate(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated;

    /// A page's program failed: its units that are still current go elsewhere. `Ok(false)` when none is.
    fn rewrite(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace>;

    /// Adds the pages that hold the units of a page whose program failed now; returns whether one of them was
    /// trimmed since.
    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool;

    /// Whether recovery would find a page that was just written: not where only another page of its block, whose program
    /// failed, could tell what it is. Such a page counts as one whose program failed, but its block stays good.
    fn is_recoverable(&self, _: &Media, _: Place) -> bool {
        true
    }

    /// Brings into the processor's cache what units that will be needed soon are looked up in; at most
    /// [`PREFETCHED`] at a time.
    fn prefetch(&self, _: &Media, _: &[Lpn]) {}

    /// Rebuilds the mapping from flash alone, and tells `reads` of every page that it looks at.
    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads);

    /// Programs what recovery has to, without time, now that blocks are known again.
    fn finish_recovery(&mut self, _: &mut Media, _: &mut RecoveryReads) -> RecoveryStep {
        RecoveryStep::Done
    }

    /// It maps more addresses than it has room for.
    fn limited_room(&self) -> Option<&dyn LimitedRoom> {
        None
    }

    /// Looks which units a power cut could bring back: what [`LimitedRoom::may_return`] counts.
    fn settle_room(&mut self, _: &Media) {}

    /// Units of metadata kept on flash beside the user's.
    fn metadata_units(&self) -> u32 {
        0
    }

    /// Refuses a drive with so many good superblocks in each group where they cannot hold the user's data beside what the
    /// design needs. Asked when the drive is made, and again when blocks go bad.
    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        config.check_frontier_space(usable, self.metadata_units())
    }

    /// Bytes that the same superblocks have for the user's data, current and stale: what the effective over-provisioning is
    /// told from.
    fn data_bytes(&self, config: &DriveConfig, usable: &[u32]) -> f64 {
        config.frontier_bytes(usable)
    }

    /// Mapped units and valid units, counted by walking everything.
    fn check(&self, media: &Media) -> Vec<Check>;

    /// RAM that a real drive would need, by name.
    fn memory(&self) -> Vec<(&'static str, u64)>;

    /// The design's own figures by name, for results.
    fn design(&self, _: &Media) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Names of the design's own work in flight: what a power cut would interrupt now.
    fn in_flight_work(&mut self, _: &Media) -> Vec<&'static str> {
        Vec::new()
    }

    /// Forgets what was counted.
    fn reset_counters(&mut self) {}

    /// The map's state for a snapshot.
    fn save(&self, to: &mut dyn std::io::Write) -> std::io::Result<()>;

    /// The state a snapshot holds.
    fn restore(&mut self, media: &mut Media, from: &mut dyn std::io::Read) -> std::io::Result<()>;

    /// Units may be in several versions.
    fn stepped_reads(&mut self) -> Option<&mut dyn SteppedReads> {
        None
    }

    /// Small partial units are compacted.
    fn compacts(&mut self) -> Option<&mut dyn Compacts> {
        None
    }

    /// There may be work for idle time.
    fn idle_work(&mut self) -> Option<&mut dyn IdleWork> {
        None
    }

    /// It opens blocks by itself, and says which are erased.
    fn own_collection(&mut self) -> Option<&mut dyn OwnCollection> {
        None
    }

    /// Its map is on flash, and a part of it is cached.
    fn cached_map(&mut self) -> Option<&mut dyn CachedMap> {
        None
    }

    /// What the cache of its map did, if it has one.
    fn map_stats(&self) -> Option<MapCacheStats> {
        None
    }

    /// It takes nothing but appends to segments.
    fn append_only(&self) -> Option<&dyn AppendOnly> {
        None
    }

    /// It writes checkpoints of its map.
    fn checkpoints(&mut self) -> Option<&mut dyn Checkpoints> {
        None
    }

    /// It has commands of its own.
    fn commands(&mut self) -> Option<&mut dyn Commands> {
        None
    }
}

/// How a registered design is made.
pub(crate) struct Make {
    /// Refuses a configuration that it cannot work with.
    pub(crate) check: fn(&DriveConfig) -> Result<(), DriveError>,
    /// Makes it; the configuration was checked.
    pub(crate) make: fn(&DriveConfig) -> Box<dyn Ftl>,
    /// Its commands and events beyond block I/O.
    pub(crate) commands: Option<&'static CommandSet>,
    /// Who executes these, where the mapping does not.
    pub(crate) beside: fn(&DriveConfig) -> Option<Box<dyn Commands>>,
    /// Bytes that it takes in the simulator at most, whatever is written.
    pub(crate) simulator_bytes: fn(&DriveConfig) -> u64,
    /// Superblocks of each group that it sets aside for map pages: 0 where the map is in RAM.
    pub(crate) map_blocks: fn(&DriveConfig) -> u32,
    /// Superblocks of each group that it sets aside for a log of units whose names are not final: 0 where it has no
    /// log.
    pub(crate) log_blocks: fn(&DriveConfig) -> u32,
    /// Blocks of each plane, from the first on, that it keeps for checkpoints of its map: nothing else is written there. 0 where it
    /// writes none.
    pub(crate) checkpoint_blocks: fn(&DriveConfig) -> u32,
    /// Bytes of the addresses that it maps. They end behind the user's capacity where it caches a disk, whose addresses they are.
    pub(crate) logical_bytes: fn(&DriveConfig) -> u64,
    /// Units that it keeps behind the user's for commands of its own set: what
    /// [`AddressSpace::Reserved`](ssdlab_base::command_set::AddressSpace::Reserved) is.
    pub(crate) reserved_units: fn(&DriveConfig) -> u32,
    /// Units of an append-only segment, where the drive has segments; else 0.
    pub(crate) segment_units: fn(&DriveConfig) -> u32,
    /// Its zones, where the host sees segments as zones.
    pub(crate) zones: fn(&DriveConfig) -> Option<ZoneShape>,
    /// Which commands its segments take, where it has segments.
    pub(crate) rules: fn(&DriveConfig) -> Option<Box<dyn Rules>>,
    /// Whether it has anything in the OOB area. Recovery finds none there if not, so that nothing can rely on it.
    pub(crate) uses_oob: bool,
    /// Whether it can do with lists of owners in its pages, in place of the OOB area (`ftl.owners = "summary"`).
    pub(crate) lists_owners: bool,
    /// What a write of part of a unit that holds data comes to, as the end of a sentence about it.
    pub(crate) partial_write: &'static str,
    /// What tests that draw drives have to know.
    pub(crate) drawing: Drawing,
}

impl Make {
    /// A design whose map is in RAM, with block I/O alone, that works with every configuration: others say what differs.
    pub(crate) const fn of(make: fn(&DriveConfig) -> Box<dyn Ftl>, simulator_bytes: fn(&DriveConfig) -> u64) -> Make {
        Make {
            check: |_| Ok(()),
            make,
            commands: None,
            beside: |_| None,
            simulator_bytes,
            map_blocks: |_| 0,
            log_blocks: |_| 0,
            checkpoint_blocks: |_| 0,
            logical_bytes: |config| config.user_bytes,
            reserved_units: |_| 0,
            segment_units: |_| 0,
            zones: |_| None,
            rules: |_| None,
            uses_oob: true,
            lists_owners: false,
            partial_write: "costs a read-modify-write",
            drawing: Drawing::ANY,
        }
    }
}

/// How far the programs of recovery came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryStep {
    /// To their end.
    Done,
    /// A superblock has to be erased first.
    NeedsErase,
    /// The power goes again.
    PowerGone,
}

/// A registered design.
pub(crate) type Design = registry::Entry<Make>;

/// Every FTL design.
pub(crate) const DESIGNS: &[Design] = &[
    page::DESIGN,
    mv::DESIGN,
    tagged::DESIGN,
    block_mapped::DESIGN,
    dftl::DESIGN,
    shrd::DESIGN,
    log_block::BAST,
    log_block::FAST,
    aftl::DESIGN,
    aftl::ZONED,
    one_table::DESIGN,
    ssc::DESIGN,
];
