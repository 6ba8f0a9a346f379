//! What the cache of a map did, of a drive that keeps its map on flash and a part of it in RAM.

use ssdlab_base::Nanos;

/// Who asks for map pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapUser {
    /// Commands of the host.
    #[default]
    Host,
    /// What leaves the write buffer by itself, and what is loaded ahead for it.
    Buffer,
    /// Relocation of data.
    Gc,
    /// Flushes of a log of what relocation changed.
    Log,
}

impl MapUser {
    /// All of them, in the order of their numbers.
    pub const ALL: [MapUser; 4] = [MapUser::Host, MapUser::Buffer, MapUser::Gc, MapUser::Log];

    /// The key in results.
    pub const fn key(self) -> &'static str {
        match self {
            MapUser::Host => "host",
            MapUser::Buffer => "buffer",
            MapUser::Gc => "gc",
            MapUser::Log => "log",
        }
    }
}

/// What was asked for, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapRequests {
    /// Map pages that were cached.
    pub hits: u64,
    /// Map pages that were not.
    pub misses: u64,
    /// Map pages read from flash: fewer than misses where several share a load, and where a page was never programmed.
    pub loads: u64,
    /// Dirty map pages programmed to make room for a load.
    pub flushes: u64,
}

impl MapRequests {
    /// Hits by hits and misses; `None` where no map page was asked for.
    pub fn hit_ratio(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }

    fn add(&mut self, other: &MapRequests) {
        let MapRequests { hits, misses, loads, flushes } = other;
        self.hits += hits;
        self.misses += misses;
        self.loads += loads;
        self.flushes += flushes;
    }
}

/// Commands of the host that waited for map pages themselves. One that waits for room in the buffer does not count here,
/// whatever that room waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapWaits {
    /// How many did.
    pub commands: u64,
    /// How long, summed over commands.
    pub time: Nanos,
}

/// Counters of a map's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCacheStats {
    /// By [`MapUser`].
    pub by: [MapRequests; MapUser::ALL.len()],
    /// Map pages, or entries of a cache by entry, that left the cache for others.
    pub evictions: u64,
    /// Dirty map pages that stayed and were programmed into the page of flash of one that left.
    pub flushed_with_others: u64,
    /// Dirty map pages with trims that were programmed and stayed: for a flush of the host, or since trims were many.
    pub flushed_for_trims: u64,
    /// Dirty map pages that were programmed and stayed when the active blocks were full.
    pub flushed_for_blocks: u64,
    /// Times that active blocks became data blocks.
    pub block_changes: u64,
    /// Map pages read, of a cache by entry, since a page that is programmed has entries that are not cached.
    pub update_reads: u64,
    /// Map pages that collection moved out of map blocks.
    pub moved_pages: u64,
    /// Entries put into the log of what relocation changed.
    pub log_entries: u64,
    /// Entries that left the log for their map pages.
    pub log_entries_applied: u64,
    /// Flushes of the log.
    pub log_flushes: u64,
    /// Commands that waited.
    pub waits: MapWaits,
}

impl MapCacheStats {
    /// What one user asked for.
    pub(crate) const fn of(&mut self, user: MapUser) -> &mut MapRequests {
        &mut self.by[user as usize]
    }

    /// What all asked for.
    pub fn total(&self) -> MapRequests {
        let mut total = MapRequests::default();
        self.by.iter().for_each(|requests| total.add(requests));
        total
    }

    /// Map pages programmed since something changed in them: for waiters of others, with these, for trims, and when
    /// active blocks were full.
    pub fn flushes(&self) -> u64 {
        self.total().flushes + self.flushed_with_others + self.flushed_for_trims + self.flushed_for_blocks
    }

    /// Adds those of another drive.
    pub fn add(&mut self, other: &MapCacheStats) {
        // Taken apart whole, so that no counter is forgotten.
        let MapCacheStats {
            by,
            evictions,
            flushed_with_others,
            flushed_for_trims,
            flushed_for_blocks,
            block_changes,
            update_reads,
            moved_pages,
            log_entries,
            log_entries_applied,
            log_flushes,
            waits: MapWaits { commands, time },
        } = other;
        self.by.iter_mut().zip(by).for_each(|(to, from)| to.add(from));
        self.evictions += evictions;
        self.flushed_with_others += flushed_with_others;
        self.flushed_for_trims += flushed_for_trims;
        self.flushed_for_blocks += flushed_for_blocks;
        self.block_changes += block_changes;
        self.update_reads += update_reads;
        self.moved_pages += moved_pages;
        self.log_entries += log_entries;
        self.log_entries_applied += log_entries_applied;
        self.log_flushes += log_flushes;
        self.waits.commands += commands;
        self.waits.time += *time;
    }
}
