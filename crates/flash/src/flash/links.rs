//! What operations wait for: reads that bring their data, programs that become ready with them, and failed reads.

use ssdlab_base::Nanos;

use super::Flash;
use super::issue::NOT_ISSUED;
use super::operation::{NONE, OpId};
use crate::{BlockId, OpKind};

impl Flash {
    /// Makes `later` wait for `earlier` too; it was submitted with `waits_for` counting this link.
    pub fn link(&mut self, earlier: OpId, later: OpId) {
        let flight = &mut self.flights[earlier as usize];
        assert_eq!(flight.then, NONE, "an operation releases one other");
        flight.then = later;
        debug_assert!(self.waits(later), "operation {later} was submitted without a link, and waits for {earlier}");
    }

    /// Makes `later` ready together with `earlier`, which is not ready yet, and whose followers end with it: pages of a
    /// row are programmed on all planes at once. `later` was submitted with `waits_for` counting this, and nothing else.
    pub fn follow(&mut self, earlier: OpId, later: OpId) {
        assert!(self.waits(earlier), "what is ready is followed by nothing");
        let flight = &mut self.flights[earlier as usize];
        assert_eq!(flight.follower, NONE, "one operation follows another");
        flight.follower = later;
        let links = self.links_of(later);
        assert_eq!(links, 1, "operation {later} follows {earlier} and waits for nothing else");
    }

    /// Makes `later` wait until `earlier`, which waits for reads, is ready: until its data is in the controller's RAM. It was
    /// submitted with `waits_for` counting this.
    pub fn link_ready(&mut self, earlier: OpId, later: OpId) {
        assert!(self.waits(earlier), "what is ready holds nothing up");
        assert!(
            self.waits(later),
            "operation {later} was submitted without a link, and waits until {earlier} is ready"
        );
        if self.on_ready.len() <= earlier as usize {
            self.on_ready.resize(self.flights.len(), NONE);
        }
        assert_eq!(self.on_ready[earlier as usize], NONE, "one operation waits until another is ready");
        self.on_ready[earlier as usize] = later;
    }

    /// Makes `later`, which waits already, wait for the read `earlier` as well.
    pub fn link_also(&mut self, earlier: OpId, later: OpId) {
        assert!(self.waits(later), "what is ready waits for nothing more");
        assert_eq!(self.flights[earlier as usize].submit.kind, OpKind::Read, "a row waits for reads");
        self.flights[later as usize].waits_for += 1;
        self.link(earlier, later);
    }

    /// From now on who waits for a read that fails goes on waiting, until [`Flash::release_waiter`].
    pub fn hold_failed_reads(&mut self) {
        self.holds_failed_reads = true;
    }

    /// Whether who waits for a failed read waits on.
    pub const fn holds_failed_reads(&self) -> bool {
        self.holds_failed_reads
    }

    /// What a failed read was to bring is there by other means, or never will be: `waiter`, which [`Done::then`](super::Done::then) named, goes
    /// on; `by` is the operation that ended last for it.
    pub fn release_waiter(&mut self, waiter: OpId, by: OpId, now: Nanos) {
        assert!(self.holds_failed_reads, "operation {waiter} was released when {by} ended");
        let is_last = self.links_of(waiter) == 1;
        if let Some(waits) = &mut self.waits
            && is_last
        {
            waits.released(waiter, by, now);
        }
        self.release(waiter, now);
    }

    /// The operation that becomes ready with `op`, or `NONE`.
    pub fn follower(&self, op: OpId) -> OpId {
        self.flights[op as usize].follower
    }

    /// The operation that waits for `op`, or `NONE`.
    pub fn waiter(&self, op: OpId) -> OpId {
        self.flights[op as usize].then
    }

    /// The last operation of the chain that waits for `op`, or `op` itself.
    pub fn last_waiter(&self, op: OpId) -> OpId {
        let mut last = op;
        while self.flights[last as usize].then != NONE {
            last = self.flights[last as usize].then;
        }
        last
    }

    /// Whether a program in flight still waits for reads.
    pub fn waits(&self, op: OpId) -> bool {
        self.links_of(op) > 0
    }

    /// How many others an operation waits for.
    #[inline]
    pub(super) fn links_of(&self, op: OpId) -> u16 {
        self.flights[op as usize].waits_for & !NOT_ISSUED
    }

    /// Whether `op` is a program of this page that still waits; `op` may have ended long ago.
    pub fn awaits_reads(&self, op: OpId, block: BlockId, page: u32) -> bool {
        self.flights.get(op as usize).is_some_and(|flight| {
            flight.waits_for & !NOT_ISSUED > 0 && (flight.submit.block, flight.submit.page) == (block, page)
        })
    }
}
