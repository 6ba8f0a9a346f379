//! Which operation of a die's queue goes next: a decision over the heads of its classes.

use std::ops::Range;

use ssdlab_base::Nanos;

use crate::SchedulerKind;

/// Classes of a die's queue. Within a class operations keep their order, so pages of a block are programmed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Reads that a host command waits for.
    HostRead,
    /// Programs of host data.
    HostWrite,
    /// Reads for relocation and the controller's own.
    GcRead,
    /// Programs and copybacks for relocation.
    GcWrite,
    /// Erases.
    Erase,
}

/// How many classes there are.
pub(crate) const CLASSES: usize = 5;

const HOST_READS: Range<usize> = Class::HostRead as usize..Class::HostRead as usize + 1;
const HOST: Range<usize> = Class::HostRead as usize..Class::HostWrite as usize + 1;
const GC_READS: Range<usize> = Class::GcRead as usize..Class::GcRead as usize + 1;
const GC: Range<usize> = Class::GcRead as usize..CLASSES;
const ALL: Range<usize> = 0..CLASSES;

/// Whether a queue of a die (`class * planes + plane`) is one of garbage collection's.
pub(crate) const fn is_collection(queue: u32, planes: u32) -> bool {
    queue >= GC.start as u32 * planes
}

/// The queue to serve next; `None` when no head is ready. `oldest` says which queue of some classes has the ready head
/// that came first, `waited` how long the head of a queue has waited; `collection_had_a_turn` that what went last was
/// garbage collection's; `may_send` that the head of the drive's one queue is this die's and may be sent.
#[inline]
pub(crate) fn choose(
    kind: SchedulerKind,
    collection_had_a_turn: bool,
    oldest: impl Fn(Range<usize>) -> Option<u32>,
    waited: impl Fn(u32) -> Nanos,
    may_send: impl Fn() -> bool,
) -> Option<u32> {
    match kind {
        SchedulerKind::Fifo => oldest(ALL),
        // If the head of the drive's queue may be sent to this die, it is the oldest here.
        SchedulerKind::SingleFifo | SchedulerKind::InOrder => {
            if may_send() {
                oldest(ALL)
            } else {
                None
            }
        }
        SchedulerKind::ReadsFirst => oldest(HOST_READS).or_else(|| oldest(GC_READS)).or_else(|| oldest(ALL)),
        SchedulerKind::HostFirst { starvation } => {
            let gc = oldest(GC);
            // Behind a busy host all of collection's operations are late. Each earns it a turn, and the host has the next:
            // were every turn collection's, the host would wait for all of a block.
            let late = gc.filter(|queue| !collection_had_a_turn && waited(*queue) >= starvation);
            late.or_else(|| oldest(HOST)).or(gc)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of heads that came at these times, one queue a class, which goes next at `now`.
    fn next(kind: SchedulerKind, came: [Option<u64>; CLASSES], now: u64) -> Option<u32> {
        next_after(kind, false, came, now)
    }

    /// Of heads that came at these times, one queue a class, which goes next at `now`; `collection_had_a_turn` says
    /// whether what went last was garbage collection's.
    fn next_after(
        kind: SchedulerKind,
        collection_had_a_turn: bool,
        came: [Option<u64>; CLASSES],
        now: u64,
    ) -> Option<u32> {
        let oldest = |classes: Range<usize>| {
            let ready = classes.filter_map(|class| came[class].map(|at| (at, class as u32)));
            ready.min().map(|(_, class)| class)
        };
        let waited = |queue| Nanos(now - came[queue as usize].expect("it was ready"));
        choose(kind, collection_had_a_turn, oldest, waited, || false)
    }

    #[test]
    fn fifo_takes_the_oldest_whatever_it_is() {
        assert_eq!(next(SchedulerKind::Fifo, [Some(5), Some(2), Some(9), None, Some(1)], 10), Some(4));
    }

    #[test]
    fn one_queue_takes_the_oldest_if_it_may_be_sent() {
        for kind in [SchedulerKind::SingleFifo, SchedulerKind::InOrder] {
            for may_send in [false, true] {
                let chosen = choose(kind, false, |_| Some(3), |_| Nanos(0), || may_send);
                assert_eq!(chosen, may_send.then_some(3));
            }
        }
    }

    #[test]
    fn reads_pass_older_programs() {
        assert_eq!(next(SchedulerKind::ReadsFirst, [Some(5), Some(2), None, None, Some(1)], 10), Some(0));
        assert_eq!(next(SchedulerKind::ReadsFirst, [None, Some(2), Some(5), None, Some(1)], 10), Some(2));
        assert_eq!(next(SchedulerKind::ReadsFirst, [None, Some(2), None, None, Some(1)], 10), Some(4));
    }

    #[test]
    fn the_host_passes_gc_until_gc_starves() {
        let kind = SchedulerKind::HostFirst { starvation: Nanos(100) };
        let came = [None, Some(50), Some(3), None, None];
        assert_eq!(next(kind, came, 102), Some(1));
        assert_eq!(next(kind, came, 103), Some(2));
        assert_eq!(next(kind, [None, None, Some(3), None, None], 10), Some(2));
    }

    #[test]
    fn being_late_earns_gc_a_turn_and_the_host_the_next() {
        let kind = SchedulerKind::HostFirst { starvation: Nanos(100) };
        let came = [None, Some(950), Some(3), Some(4), Some(5)];
        assert_eq!(next_after(kind, false, came, 1000), Some(2));
        assert_eq!(next_after(kind, true, came, 1000), Some(1));
        // Without the host collection goes on, whatever went last.
        assert_eq!(next_after(kind, true, [None, None, Some(3), Some(4), None], 1000), Some(2));
        // The turns are host-first's alone.
        assert_eq!(next_after(SchedulerKind::Fifo, true, came, 1000), Some(2));
        assert_eq!(next_after(SchedulerKind::ReadsFirst, true, came, 1000), Some(2));
    }
}
