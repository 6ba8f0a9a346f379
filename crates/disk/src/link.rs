//! The link to the host, half-duplex, and the controller's time for commands.

use ssdlab_base::{Nanos, SECTOR_BYTES};

use crate::config::DiskConfig;

/// Both resources, by when they are free.
pub(crate) struct Link {
    bandwidth: u64,
    overhead: Nanos,
    free: u64,
    controller_free: u64,
}

ssdlab_base::saved!(Link: free, controller_free);

impl Link {
    pub(crate) const fn new(config: &DiskConfig) -> Link {
        Link { bandwidth: config.bandwidth, overhead: config.command_overhead, free: 0, controller_free: 0 }
    }

    fn time(&self, bytes: u64) -> u64 {
        if self.bandwidth == 0 {
            return 0;
        }
        (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bandwidth)) as u64
    }

    /// When the controller has dealt with a command that it gets at `now`.
    pub(crate) fn command(&mut self, now: Nanos) -> Nanos {
        self.controller_free = self.controller_free.max(now.0) + self.overhead.0;
        Nanos(self.controller_free)
    }

    /// When bytes that are ready at `ready` are across.
    pub(crate) fn transfer(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        if self.bandwidth == 0 || bytes == 0 {
            return ready;
        }
        self.free = self.free.max(ready.0) + self.time(bytes);
        Nanos(self.free)
    }

    /// When bytes are across that the heads read from `begin` to `end`: they go while the heads read, and the last sector goes at
    /// its end.
    pub(crate) fn stream(&mut self, begin: Nanos, end: Nanos, bytes: u64) -> Nanos {
        if self.bandwidth == 0 || bytes == 0 {
            return end;
        }
        let across = self.free.max(begin.0) + self.time(bytes);
        self.free = across.max(end.0 + self.time(bytes.min(SECTOR_BYTES)));
        Nanos(self.free)
    }

    /// Whether both are free within the times that a run reaches.
    pub(crate) const fn is_consistent(&self) -> bool {
        self.free < Nanos::HORIZON.0 && self.controller_free < Nanos::HORIZON.0
    }

    /// The power has gone.
    pub(crate) const fn clear(&mut self) {
        (self.free, self.controller_free) = (0, 0);
    }
}
