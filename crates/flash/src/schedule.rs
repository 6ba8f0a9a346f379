//! Which operation of a die's queue goes next: a decision over the heads of its classes.

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

/// The head of a class that could start now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Place in the order of arrival at the drive's flash.
    pub(crate) order: u64,
    /// When it arrived.
    pub(crate) queued: Nanos,
}

const HOST_READ: usize = Class::HostRead as usize;
const HOST_WRITE: usize = Class::HostWrite as usize;
const GC_READ: usize = Class::GcRead as usize;

/// The class to serve next; `None` when no head is ready.
pub(crate) fn choose(kind: SchedulerKind, heads: &[Option<Head>; CLASSES], now: Nanos) -> Option<usize> {
    let oldest = |classes: &[usize]| {
        let ready = classes.iter().filter_map(|class| heads[*class].map(|head| (head.order, *class)));
        ready.min().map(|(_, class)| class)
    };
    const ALL: [usize; CLASSES] = [0, 1, 2, 3, 4];
    match kind {
        SchedulerKind::Fifo => oldest(&ALL),
        SchedulerKind::ReadsFirst => oldest(&[HOST_READ]).or_else(|| oldest(&[GC_READ])).or_else(|| oldest(&ALL)),
        SchedulerKind::HostFirst { starvation } => {
            let gc = oldest(&ALL[GC_READ..]);
            let starved = gc.filter(|class| heads[*class].is_some_and(|head| now.since(head.queued) >= starvation));
            starved.or_else(|| oldest(&[HOST_READ, HOST_WRITE])).or(gc)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(orders: [Option<u64>; CLASSES]) -> [Option<Head>; CLASSES] {
        orders.map(|order| order.map(|order| Head { order, queued: Nanos(order) }))
    }

    #[test]
    fn fifo_takes_the_oldest_whatever_it_is() {
        let heads = heads([Some(5), Some(2), Some(9), None, Some(1)]);
        assert_eq!(choose(SchedulerKind::Fifo, &heads, Nanos(10)), Some(4));
    }

    #[test]
    fn reads_pass_older_programs() {
        let heads = heads([Some(5), Some(2), None, None, Some(1)]);
        assert_eq!(choose(SchedulerKind::ReadsFirst, &heads, Nanos(10)), Some(0));
    }

    #[test]
    fn the_host_passes_gc_until_gc_starves() {
        let kind = SchedulerKind::HostFirst { starvation: Nanos(100) };
        let heads = heads([None, Some(50), Some(3), None, None]);
        assert_eq!(choose(kind, &heads, Nanos(102)), Some(1));
        assert_eq!(choose(kind, &heads, Nanos(103)), Some(2));
    }
}
