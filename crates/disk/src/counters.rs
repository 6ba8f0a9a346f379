//! What a disk has done.

use ssdlab_base::Op;

/// Counters since the disk was made or its statistics were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Commands that took effect: reads, writes, trims (none: they are refused), flushes.
    pub commands: [u64; 4],
    /// Bytes of those commands.
    pub bytes: [u64; 4],
    /// Commands that have ended, by kind, however they ended.
    pub ended: [u64; 4],
    /// Bytes of those.
    pub ended_bytes: [u64; 4],
    /// Commands that the disk does not know.
    pub unsupported: u64,
    /// Reads that the heads served.
    pub media_reads: u64,
    /// Operations of the heads that wrote.
    pub media_writes: u64,
    /// Sectors that the heads wrote.
    pub sectors_written: u64,
    /// Operations for which the heads moved to another cylinder.
    pub seeks: u64,
    /// Time of all movements, head switches among them, up to the first sector's track, in nanoseconds.
    pub seek_ns: u64,
    /// Operations that waited for their first sector.
    pub rotational_waits: u64,
    /// Time of those waits, in nanoseconds.
    pub rotational_wait_ns: u64,
    /// Reads that were served from what had been read or read ahead.
    pub read_hits: u64,
    /// Reads that were served from the write cache.
    pub write_cache_hits: u64,
    /// Reads that lost the power while they waited for the heads.
    pub aborted_reads: u64,
    /// Commands that were served before an older one.
    pub reorders: u64,
    /// Commands that were served first because of their age.
    pub aged: u64,
    /// Flushes that found data in the write cache.
    pub write_cache_flushes: u64,
    /// Writes that waited for space in the write cache.
    pub write_cache_full: u64,
}

ssdlab_base::saved!(
    DiskCounters: commands, bytes, ended, ended_bytes, unsupported, media_reads, media_writes, sectors_written, seeks, seek_ns, rotational_waits,
    rotational_wait_ns, read_hits, write_cache_hits, aborted_reads, reorders, aged, write_cache_flushes, write_cache_full
);

impl DiskCounters {
    pub(crate) const fn took_effect(&mut self, op: Op, bytes: u64) {
        self.commands[op.class()] += 1;
        self.bytes[op.class()] += bytes;
    }

    /// Every counter with its name, for results.
    pub const fn named(&self) -> [(&'static str, u64); 19] {
        [
            ("reads", self.commands[0]),
            ("writes", self.commands[1]),
            ("flushes", self.commands[3]),
            ("read_bytes", self.bytes[0]),
            ("written_bytes", self.bytes[1]),
            ("unsupported", self.unsupported),
            ("media_reads", self.media_reads),
            ("media_writes", self.media_writes),
            ("sectors_written", self.sectors_written),
            ("seeks", self.seeks),
            ("seek_ns", self.seek_ns),
            ("rotational_waits", self.rotational_waits),
            ("rotational_wait_ns", self.rotational_wait_ns),
            ("read_hits", self.read_hits),
            ("write_cache_hits", self.write_cache_hits),
            ("reorders", self.reorders),
            ("aged", self.aged),
            ("write_cache_flushes", self.write_cache_flushes),
            ("write_cache_full", self.write_cache_full),
        ]
    }
}
