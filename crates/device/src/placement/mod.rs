//! Where a write goes: which stream, and so which write frontier, takes a unit of the host's data.
//!
//! A policy is one file and one line in [`POLICIES`]. It looks at one unit and returns a stream; the engine checks the
//! stream, keeps the ages of units, and writes. Units whose data dies together then share blocks, and collection moves less.
//! What relocation moves is not asked for: it goes to relocation's frontier.

mod recency;
#[cfg(test)]
mod template;

use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{HugeArray, Lpn};

use crate::gc::victim::BROKEN_CONTRACT;
use crate::registry::{Entry, MakePolicy, Registry};
use crate::{DriveConfig, DriveError};

/// A placement policy. Those that descriptions name are registered here; [`crate::register_placement`] adds one from outside.
///
/// It keeps nothing of what it was asked: a drive from a snapshot, or after a power cut, decides as any other would that has
/// the ages of its units.
pub trait PlacementPolicy: Send {
    /// The name a description uses, and messages.
    fn name(&self) -> &'static str;

    /// The stream that takes a unit: below [`WrittenUnit::streams`]. With `ftl.separate_gc_frontier = false` stream 0 shares the
    /// frontier of relocation.
    ///
    /// A write that finds no space is tried again, and the policy is asked again. The drive panics with [`BROKEN_CONTRACT`]
    /// where the answer is no stream of the drive.
    fn stream(&self, unit: &WrittenUnit) -> u16;
}

/// A unit that the host writes, as a placement policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenUnit {
    /// The logical unit.
    pub lpn: Lpn,
    /// Units that the host wrote after this one was last written, whatever became of it; `None` for the first write since the
    /// drive was made or had its power cut. 2^31 stands for all that is longer.
    pub age: Option<u32>,
    /// The stream that the command names, below `streams`.
    pub hint: u16,
    /// Streams of the drive (`ftl.streams`): at least 2.
    pub streams: u16,
}

/// A registered policy; one that cannot be made is the host's word, which costs nothing.
type Policy = Entry<Option<MakePolicy<dyn PlacementPolicy>>>;

/// The policy of a description that names none.
pub(crate) const DEFAULT: &str = "stream-hint";

/// Every placement policy.
pub(crate) static POLICIES: Registry<Option<MakePolicy<dyn PlacementPolicy>>> = Registry::new(
    "placement.policy",
    &[
        Policy { name: DEFAULT, summary: "the stream that the command names", keys: &[], make: None },
        recency::POLICY,
        #[cfg(test)]
        template::POLICY,
    ],
);

/// Ages from here on are alike.
const OLDEST: u32 = 1 << 31;

/// A stamp of a unit that was not written.
const NEVER: u32 = 0;

/// A drive's placement policy, and when each unit was last written.
pub(crate) struct Placement {
    policy: Box<dyn PlacementPolicy>,
    streams: u16,
    /// By unit: the number of the host's write that wrote it last, of those since `clock` was last set back.
    stamps: HugeArray<u32>,
    /// The number of the next write.
    clock: u32,
}

saved!(Placement: stamps, clock);

impl Placement {
    /// The drive's, where a policy is to be asked.
    pub(crate) fn new(config: &DriveConfig) -> Result<Option<Placement>, DriveError> {
        let make = POLICIES.pick(&config.placement.policy)?;
        Ok(make.map(|make| Placement {
            policy: make(config),
            streams: config.ftl.streams as u16,
            stamps: HugeArray::new(config.mapped_units() as usize),
            clock: NEVER + 1,
        }))
    }

    /// Bytes that [`Placement::new`] takes.
    pub(crate) fn simulator_bytes(config: &DriveConfig) -> u64 {
        if config.placement.policy == DEFAULT {
            0
        } else {
            HugeArray::<u32>::bytes_of(u64::from(config.mapped_units()))
        }
    }

    /// RAM that a real drive would need for the ages.
    pub(crate) fn bytes(&self) -> u64 {
        self.stamps.bytes()
    }

    /// Units that the host wrote after a unit was last written.
    fn age(&self, lpn: Lpn) -> Option<u32> {
        let stamp = self.stamps.get(lpn.index());
        debug_assert!(stamp < self.clock, "unit {lpn} was written as number {stamp}, and {} is next", self.clock);
        (stamp != NEVER).then(|| (self.clock - 1 - stamp).min(OLDEST))
    }

    /// The stream that takes a unit.
    // Drives whose hosts choose have none of this: their writes are not to carry the code of it.
    #[inline(never)]
    pub(crate) fn stream(&self, lpn: Lpn, hint: u16) -> u16 {
        let streams = self.streams;
        let unit = WrittenUnit { lpn, age: self.age(lpn), hint: hint.min(streams - 1), streams };
        let stream = self.policy.stream(&unit);
        let name = self.policy.name();
        assert!(
            stream < streams,
            "the placement policy {name} {BROKEN_CONTRACT}PlacementPolicy::stream: it returned stream {stream} of {streams} \
             for {unit:?}; allowed are those below {streams}"
        );
        stream
    }

    /// The host wrote units from `first` on.
    #[inline(never)]
    pub(crate) fn note_written(&mut self, first: Lpn, units: u32) {
        for lpn in Lpn::each(first..first + units) {
            if self.clock == u32::MAX {
                self.set_back();
            }
            self.stamps.set(lpn.index(), self.clock);
            self.clock += 1;
        }
    }

    /// Makes room for more numbers: what is older than [`OLDEST`] gets as old as that.
    #[cold]
    fn set_back(&mut self) {
        let back = self.clock - OLDEST - 2;
        for stamp in self.stamps.as_mut_slice().iter_mut().filter(|stamp| **stamp != NEVER) {
            *stamp = stamp.saturating_sub(back).max(NEVER + 1);
        }
        self.clock -= back;
    }

    /// Refuses a restored state with a unit that was written later than the last.
    pub(crate) fn accept(&self) -> io::Result<()> {
        let is_past = |stamp: &u32| *stamp < self.clock;
        match self.clock > NEVER && self.stamps.as_slice().iter().all(is_past) {
            true => Ok(()),
            false => Err(damaged("a unit was last written by a write that was not")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for the stream of every unit by its age alone.
    struct Oldest;

    impl PlacementPolicy for Oldest {
        fn name(&self) -> &'static str {
            "oldest"
        }

        fn stream(&self, unit: &WrittenUnit) -> u16 {
            u16::from(unit.age == Some(OLDEST))
        }
    }

    fn placement(units: usize) -> Placement {
        Placement { policy: Box::new(Oldest), streams: 2, stamps: HugeArray::new(units), clock: NEVER + 1 }
    }

    #[test]
    fn an_age_is_the_number_of_units_written_since() {
        let mut placement = placement(8);
        assert_eq!(placement.age(Lpn(3)), None);
        placement.note_written(Lpn(2), 3);
        assert_eq!([2, 3, 4].map(|lpn| placement.age(Lpn(lpn))), [Some(2), Some(1), Some(0)]);
        placement.note_written(Lpn(3), 1);
        assert_eq!([2, 3, 4, 5].map(|lpn| placement.age(Lpn(lpn))), [Some(3), Some(0), Some(1), None]);
    }

    #[test]
    fn ages_stay_right_when_numbers_run_out() {
        let mut placement = placement(4);
        placement.note_written(Lpn(0), 1);
        placement.clock = u32::MAX - 2;
        placement.note_written(Lpn(1), 2);
        assert_eq!(placement.clock, u32::MAX);
        placement.note_written(Lpn(3), 1);
        assert!(placement.clock < u32::MAX);
        assert_eq!([0, 1, 2, 3].map(|lpn| placement.age(Lpn(lpn))), [Some(OLDEST), Some(2), Some(1), Some(0)]);
        assert_eq!([0, 1].map(|lpn| placement.stream(Lpn(lpn), 9)), [1, 0]);
        assert!(placement.accept().is_ok());
    }

    #[test]
    fn a_state_from_the_future_is_refused() {
        let mut placement = placement(4);
        placement.note_written(Lpn(0), 2);
        let mut bytes = Vec::new();
        ssdlab_base::Saved::save_to(&placement, &mut bytes).expect("bytes are taken");
        let mut again = self::placement(4);
        ssdlab_base::Saved::load_from(&mut again, &mut bytes.as_slice()).expect("whole bytes");
        assert_eq!(again.age(Lpn(0)), Some(1));
        again.clock = 1;
        assert!(again.accept().is_err());
    }
}
