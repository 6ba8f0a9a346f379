//! What a configuration must satisfy so that garbage collection never runs out of blocks, and what over-provisioning it
//! leaves. The design decides; what is here holds for one that writes behind frontiers.

use ssdlab_base::command_set::{CommandSpec, DataPhase};
use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{Nanos, Op, SECTOR_BYTES};

use ssdlab_flash::OobUse;

use crate::ftl::{DESIGNS, Make};
use crate::media::List;
use crate::{
    Allocation, Answers, DriveConfig, DriveError, InterfaceKind, OverProvisioning, Owners, Parity, SATA_QUEUE_DEPTH,
    Superblock,
};

/// Fewest pages of a block with a list of owners.
const LEAST_PAGES_WITH_LIST: u32 = 3;

/// Largest mapping unit: a buffered unit's sectors are a 64-bit mask.
const MAX_UNIT_BYTES: u32 = 32 << 10;

fn refuse<T>(key: &str, reason: String) -> Result<T, DriveError> {
    Err(DriveError { key: key.to_string(), reason })
}

impl DriveConfig {
    /// Mapping units of the user's capacity.
    pub fn user_units(&self) -> u32 {
        (self.user_bytes / u64::from(self.ftl.mapping_unit)) as u32
    }

    /// Bytes of the addresses that the drive maps: the user's capacity, and of a cache the capacity of its disk.
    pub fn logical_bytes(&self) -> u64 {
        if self.below_layers {
            return self.user_bytes;
        }
        self.make().map_or(self.user_bytes, |make| (make.logical_bytes)(self))
    }

    /// Mapping units of the addresses that the drive maps.
    pub(crate) fn logical_units(&self) -> u32 {
        (self.logical_bytes() / u64::from(self.ftl.mapping_unit)) as u32
    }

    /// Whether the drive has more addresses than room for data.
    pub fn is_sparse(&self) -> bool {
        self.logical_bytes() > self.user_bytes
    }

    /// Mapping units of the addresses that the drive maps, and those that the design keeps behind them.
    pub(crate) fn mapped_units(&self) -> u32 {
        self.logical_units() + self.reserved_units()
    }

    /// Superblocks of each group that only relocation may open. One is enough to finish any job; with a threshold of three or
    /// more there are two, which leaves room for records of trims and for failed programs.
    pub(crate) const fn gc_reserve(&self) -> u32 {
        if self.gc.free_blocks >= 3 { 2 } else { 1 }
    }

    /// What the design says of itself; `None` of one that is not known.
    pub(crate) fn make(&self) -> Option<&'static Make> {
        DESIGNS.iter().find(|design| design.name == self.ftl.design).map(|design| &design.make)
    }

    /// Blocks of each plane, from the first on, that the design keeps for checkpoints of its map.
    pub(crate) fn checkpoint_blocks(&self) -> u32 {
        self.make().map_or(0, |make| (make.checkpoint_blocks)(self))
    }

    /// Superblocks of each group that the design sets aside for map pages.
    pub(crate) fn map_blocks(&self) -> u32 {
        self.make().map_or(0, |make| (make.map_blocks)(self))
    }

    /// Superblocks of each group that the design sets aside for a log of units whose names are not final.
    pub(crate) fn log_blocks(&self) -> u32 {
        self.make().map_or(0, |make| (make.log_blocks)(self))
    }

    /// Whether OOB areas have a second LPN and the number of the host's write for each unit.
    pub fn keeps_origins(&self) -> bool {
        self.log_blocks() > 0
    }

    /// Units behind the user's that the design keeps for commands of its own.
    pub(crate) fn reserved_units(&self) -> u32 {
        self.make().map_or(0, |make| (make.reserved_units)(self))
    }

    /// Pages of each block that are kept for a list of owners.
    pub(crate) fn list_pages(&self) -> u32 {
        u32::from(self.ftl.owners == Owners::Summary)
    }

    /// Whether a completed write may be lost with the power before a flush: one that is in the write buffer, or in a page that no
    /// list names yet.
    pub fn has_volatile_cache(&self) -> bool {
        self.buffer.policy != "none" || self.ftl.owners == Owners::Summary
    }

    /// Segments with unsaved trims that are tolerated before a trim saves them: what the reserve has room for.
    pub(crate) fn trim_backlog(&self) -> u32 {
        if self.gc_reserve() >= 2 { (self.flash.geometry.pages_per_block / 2).min(64) } else { 0 }
    }

    /// Write frontiers a group keeps open.
    pub(crate) fn frontiers(&self) -> u32 {
        self.ftl.streams + u32::from(self.ftl.separate_gc_frontier)
    }

    /// Units of an append-only segment; `None` of a drive without segments.
    pub fn segment_units(&self) -> Option<u32> {
        Some((self.make()?.segment_units)(self)).filter(|units| *units > 0)
    }

    /// Its zones, of a drive whose host sees zones.
    pub fn zones(&self) -> Option<ZoneShape> {
        if self.below_layers {
            return None;
        }
        (self.make()?.zones)(self)
    }

    /// Bytes that the host addresses: those that the drive maps, and of zones also what is between their capacity and their size.
    pub fn address_bytes(&self) -> u64 {
        self.zones().map_or_else(|| self.logical_bytes(), |zones| zones.sectors() * SECTOR_BYTES)
    }

    /// Refuses a drive that takes no block I/O but appends to segments.
    ///
    /// # Errors
    /// The drive is one.
    pub fn takes_block_io(&self) -> Result<(), DriveError> {
        if self.segment_units().is_none() {
            return Ok(());
        }
        if self.zones().is_some() {
            let reason = format!(
                "\"{}\": the drive accepts writes only at the write pointers of its zones; use a workload for zones: fio's options with \
                 zonemode=zbd (docs/workloads.md), or a trace with commands of the set 'zoned'",
                self.ftl.design
            );
            return refuse("ftl.design", reason);
        }
        let reason = format!(
            "\"{}\": the drive accepts only appends to its segments; for block I/O put the layer 'append' above it: --host FILE, with \
             `[[layer]]` and `kind = \"append\"` in the file (docs/host.md)",
            self.ftl.design
        );
        refuse("ftl.design", reason)
    }

    /// Refuses what cannot work, with the numbers.
    ///
    /// # Errors
    /// A value that no drive can have, or values that do not go together.
    pub fn validate(&self) -> Result<(), DriveError> {
        let geometry = &self.flash.geometry;
        let unit = self.ftl.mapping_unit;
        if unit == 0 || !unit.is_multiple_of(512) || !(unit / 512).is_power_of_two() {
            return refuse("ftl.mapping_unit", format!("{unit} bytes is not a power of two times 512"));
        }
        if unit > geometry.page_bytes || !geometry.page_bytes.is_multiple_of(unit) {
            return refuse(
                "ftl.mapping_unit",
                format!("{unit} bytes does not divide a page of {}", geometry.page_bytes),
            );
        }
        if unit > MAX_UNIT_BYTES || geometry.page_bytes / unit > 64 {
            return refuse("ftl.mapping_unit", format!("{unit} bytes: at most 32 KiB, and at most 64 units a page"));
        }
        if geometry.planes_per_die > ssdlab_flash::MAX_PLANES_PER_DIE {
            let most = ssdlab_flash::MAX_PLANES_PER_DIE;
            return refuse(
                "flash.planes_per_die",
                format!("{} is more than the {most} that are modelled", geometry.planes_per_die),
            );
        }
        let units = geometry.pages() * u64::from(geometry.page_bytes / unit);
        if units >= u64::from(u32::MAX) - 1 {
            return refuse("ftl.mapping_unit", format!("{units} physical units are more than 32 bits can number"));
        }
        if self.user_bytes == 0 || !self.user_bytes.is_multiple_of(u64::from(unit)) {
            return refuse("capacity", format!("{} user bytes is not a whole number of units", self.user_bytes));
        }
        if self.gc.free_blocks < 2 {
            return refuse(
                "gc.free_blocks",
                format!("{} is too few: relocation needs a block of its own", self.gc.free_blocks),
            );
        }
        if self.ftl.superblock != Superblock::None {
            if matches!(self.ftl.allocation, Allocation::Static(_)) {
                return refuse(
                    "ftl.allocation",
                    "an order in which the LPN decides the plane cannot go with superblocks, whose pages go to all planes \
                     in turn: use \"dynamic\" or \"round-robin:...\", or ftl.superblock = \"none\""
                        .to_string(),
                );
            }
            if self.gc.copyback {
                return refuse(
                    "gc.copyback",
                    "true, but a copyback stays in its plane, and what leaves a superblock goes to all of its planes"
                        .to_string(),
                );
            }
        }
        let planes = self.ftl.superblock.planes(geometry);
        match self.ftl.parity {
            Parity::None => {}
            Parity::Page if planes < 2 => {
                return refuse(
                    "ftl.parity",
                    "\"page\", but a stripe is one page: parity needs superblocks of at least two planes \
                     (ftl.superblock = \"die\" or \"drive\")"
                        .to_string(),
                );
            }
            Parity::Die if self.ftl.superblock != Superblock::Drive || geometry.dies() < 2 => {
                return refuse(
                    "ftl.parity",
                    format!(
                        "\"die\", but a stripe is not on two dies or more: it needs ftl.superblock = \"drive\" (found \
                         \"{}\") and at least 2 dies (found {})",
                        self.ftl.superblock.word(),
                        geometry.dies(),
                    ),
                );
            }
            Parity::Page | Parity::Die => {}
        }
        self.check_owners()?;
        if self.ftl.streams == 0 {
            return refuse("ftl.streams", "there is at least 1 stream".to_string());
        }
        let placement = &self.placement.policy;
        if *placement != crate::placement::DEFAULT && self.ftl.streams < 2 {
            let reason = format!(
                "\"{placement}\" chooses between streams, and ftl.streams = {}: it needs at least 2",
                self.ftl.streams
            );
            return refuse("placement.policy", reason);
        }
        if self.interface.queues == 0 || self.interface.queue_depth == 0 {
            return refuse("interface.queue_depth", "queues and depth are at least 1".to_string());
        }
        if self.interface.kind == InterfaceKind::Sata
            && (self.interface.queues > 1 || self.interface.queue_depth > SATA_QUEUE_DEPTH)
        {
            return refuse("interface.queue_depth", format!("SATA has one queue of at most {SATA_QUEUE_DEPTH}"));
        }
        if self.controller.clock > 0 && self.interface.processing > Nanos::ZERO {
            let reason = "found beside interface.processing, expected one of them: both are the time of one processor";
            return refuse("controller.clock", reason.to_string());
        }
        self.carries_commands()?;
        if self.buffer.policy != "none" && self.buffer.bytes < u64::from(unit) {
            return refuse("buffer.size", format!("{} bytes cannot hold one unit of {unit}", self.buffer.bytes));
        }
        let destage = &self.buffer.destage;
        if !(1..=100).contains(&destage.high_percent) || destage.low_percent > destage.high_percent {
            let (low, high) = (destage.low_percent, destage.high_percent);
            return refuse(
                "buffer.high_watermark",
                format!("{high} % over {low} %: at most 100, and low at most high"),
            );
        }
        if let Some(make) = self.make() {
            (make.check)(self)?;
        }
        let faults = &self.flash.faults;
        if (faults.program_failure > 0.0 || !faults.script.is_empty()) && self.gc.free_blocks < 3 {
            return refuse("gc.free_blocks", "program failures need a reserve: at least 3".to_string());
        }
        Ok(())
    }

    /// Refuses a command set that the interface cannot carry: it has too few codes, or no words for answers.
    fn carries_commands(&self) -> Result<(), DriveError> {
        let Some(set) = self.make().and_then(|make| make.commands) else { return Ok(()) };
        let codes = self.interface.command_codes;
        for (carrier, queue) in [(Op::Read, "reads"), (Op::Write, "writes")] {
            // The first code is block I/O's.
            let of_queue = || set.commands.iter().filter(|command| command.carrier == carrier);
            if codes > 0
                && let Some(command) = of_queue().nth(codes as usize - 1)
            {
                let reason = format!(
                    "found {codes} codes for the queue of {queue}, expected at least {}: the set '{}' has {} commands there beside block \
                     I/O, and there is none for '{}'",
                    of_queue().count() + 1,
                    set.name,
                    of_queue().count(),
                    command.name
                );
                return refuse("interface.command_codes", reason);
            }
        }
        if self.interface.answers == Answers::Words {
            return Ok(());
        }
        let travels = |command: &&CommandSpec| {
            command.words_out.most() == 0 || command.carrier == Op::Read && command.data != DataPhase::Range
        };
        if let Some(command) = set.commands.iter().find(|command| !travels(command)) {
            let reason = format!(
                "found \"data\", expected \"words\" under the set '{}': the answer of '{}' is words, and the command is no read whose data \
                 they could be",
                set.name, command.name
            );
            return refuse("interface.answers", reason);
        }
        if let Some(event) = set.events.first() {
            let reason = format!(
                "found \"data\", expected \"words\" under the set '{}': the drive sends the event '{}'",
                set.name, event.name
            );
            return refuse("interface.answers", reason);
        }
        Ok(())
    }

    /// Refuses a design that needs OOB areas on chips without them, and lists of owners where they cannot be.
    fn check_owners(&self) -> Result<(), DriveError> {
        let (design, Some(make)) = (&self.ftl.design, self.make()) else { return Ok(()) };
        let geometry = &self.flash.geometry;
        let named = |takes: fn(&Make) -> bool| {
            let names =
                DESIGNS.iter().filter(|design| takes(&design.make)).map(|design| format!("\"{}\"", design.name));
            names.collect::<Vec<_>>().join(", ")
        };
        if self.ftl.owners == Owners::Oob {
            if self.flash.oob == OobUse::Ecc && make.uses_oob {
                return refuse(
                    "flash.oob",
                    format!(
                        "\"ecc\", but the design \"{}\" keeps metadata in OOB areas: expected ftl.owners = \"summary\" with a design that \
                         lists owners ({}), a design without metadata there ({}), or flash.oob = \"free\"",
                        design,
                        named(|make| make.lists_owners),
                        named(|make| !make.uses_oob),
                    ),
                );
            }
            return Ok(());
        }
        if !make.lists_owners {
            return refuse(
                "ftl.owners",
                format!(
                    "\"summary\", but the design \"{}\" writes no lists of owners: expected \"oob\", or one of the designs {}",
                    design,
                    named(|make| make.lists_owners),
                ),
            );
        }
        if self.ftl.superblock != Superblock::None {
            return refuse(
                "ftl.owners",
                format!(
                    "\"summary\" beside ftl.superblock = \"{}\": a list is of one block; expected \"oob\", or ftl.superblock = \"none\"",
                    self.ftl.superblock.word(),
                ),
            );
        }
        if self.gc.pacing.is_on() {
            return refuse(
                "ftl.owners",
                "\"summary\" beside gc.pacing = \"proportional\": paced collection counts on the block of a victim as soon as that is empty, \
                 and its erase waits for lists; expected gc.pacing = \"off\""
                    .to_string(),
            );
        }
        if geometry.pages_per_block < LEAST_PAGES_WITH_LIST {
            return refuse(
                "ftl.owners",
                format!(
                    "\"summary\" with blocks of {} pages: expected at least {LEAST_PAGES_WITH_LIST}, one for the list, one for an early \
                     list, and one for data",
                    geometry.pages_per_block
                ),
            );
        }
        let (units, page) = (geometry.page_bytes / self.ftl.mapping_unit, u64::from(geometry.page_bytes));
        let bytes = List::bytes(geometry.pages_per_block - 1, units);
        if bytes > page {
            return refuse(
                "ftl.owners",
                format!(
                    "\"summary\", but the list of {} pages of {units} units takes {bytes} bytes: expected at most a page ({page} bytes); \
                     a larger ftl.mapping_unit or fewer pages a block make it shorter",
                    geometry.pages_per_block - 1
                ),
            );
        }
        Ok(())
    }

    /// Pages in a superblock that hold data, all but parity and lists of owners: in a block, where every block stands alone.
    fn pages_per_superblock(&self) -> u64 {
        let geometry = &self.flash.geometry;
        let data = self.ftl.superblock.planes(geometry) - self.ftl.parity_pages(geometry);
        u64::from(geometry.pages_per_block - self.list_pages()) * u64::from(data)
    }

    /// Superblocks of a group that hold no data for sure: those that GC keeps free, the write frontiers, and one for what early lists
    /// take from the room of relocation between two jobs.
    fn kept_blocks(&self) -> u32 {
        self.gc.free_blocks + self.frontiers() + self.list_pages()
    }

    /// Units that a group with so many good superblocks can hold beside what GC needs and the write frontiers.
    pub(crate) fn room_units(&self, blocks: u32) -> u64 {
        let geometry = &self.flash.geometry;
        let units_per_page = u64::from(geometry.page_bytes / self.ftl.mapping_unit);
        let kept = self.kept_blocks();
        // Some closed block must always have a page's worth of invalid units, and another one's where emptying it may take an early
        // list.
        let pages = self.pages_per_superblock() - u64::from(self.list_pages());
        let block = pages * units_per_page - units_per_page.saturating_sub(1);
        u64::from(blocks.saturating_sub(kept)) * block
    }

    /// Refuses a configuration whose groups, with so many good superblocks each, cannot hold the user's data and the design's
    /// metadata beside what GC and the write frontiers need: what [`Ftl::check_space`](crate::ftl::Ftl::check_space) is for a
    /// design that writes behind frontiers.
    pub(crate) fn check_frontier_space(&self, usable: &[u32], metadata_units: u32) -> Result<(), DriveError> {
        let geometry = &self.flash.geometry;
        let units_per_page = u64::from(geometry.page_bytes / self.ftl.mapping_unit);
        let kept = self.kept_blocks();
        let room = |blocks: u32| self.room_units(blocks);
        let (noun, group) = (self.ftl.superblock.noun(), self.ftl.superblock.group());
        let needed = u64::from(self.user_units()) + u64::from(metadata_units);
        let planes = usable.len() as u64;
        let (needed, room, whole) = match self.ftl.allocation {
            Allocation::Static(_) => {
                let stripe = needed.div_ceil(units_per_page).div_ceil(planes) * units_per_page;
                (stripe, usable.iter().map(|blocks| room(*blocks)).min().unwrap_or(0), "each plane")
            }
            _ => (needed, usable.iter().map(|blocks| room(*blocks)).sum(), "the drive"),
        };
        if needed < room {
            return Ok(());
        }
        refuse(
            "capacity",
            format!(
                "too little over-provisioning: {whole} must hold {needed} units, but only {room} are left when {kept} of its {} {noun} \
                 {group} are kept for garbage collection (gc.free_blocks = {}) and write frontiers ({}): garbage \
                 collection could run out of blocks; lower the user capacity or gc.free_blocks",
                usable.iter().min().unwrap_or(&0),
                self.gc.free_blocks,
                self.frontiers(),
            ),
        )
    }

    /// Bytes for the user's data, current and stale, behind write frontiers. What GC keeps free is none of it, nor is, on
    /// average, half of every open block beyond the first; bad blocks and parity pages are not either.
    pub(crate) fn frontier_bytes(&self, usable: &[u32]) -> f64 {
        let block = self.pages_per_superblock() as f64 * f64::from(self.flash.geometry.page_bytes);
        let kept = f64::from(self.gc.free_blocks) + f64::from(self.frontiers() - 1) / 2.0;
        let blocks: f64 = usable.iter().map(|blocks| (f64::from(*blocks) - kept).max(0.0)).sum();
        blocks * block
    }

    /// The nominal and the effective over-provisioning, where the design has `data_bytes` for the user's data.
    pub(crate) fn over_provisioning(&self, data_bytes: f64) -> OverProvisioning {
        let user = self.user_bytes as f64;
        let all = self.flash.geometry.bytes() as f64;
        OverProvisioning { nominal: (all - user) / user, effective: (data_bytes - user) / user }
    }
}
