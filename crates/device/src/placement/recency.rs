//! Recency: a unit that is overwritten soon after its last write is hot, and goes to a stream for hot data.
//!
//! The data that a write replaces lived as long as the unit was old. What replaces it will probably live about as long: data
//! that dies young then fills blocks of its own, which are nearly empty when they are collected. Wang et al., "Separating Data
//! via Block Invalidation Time Inference for Write Amplification Reduction in Log-Structured Storage" (SepBIT), FAST 2022,
//! parts user writes so, by one threshold that follows the lives of collected segments. Here the threshold is a
//! share of the capacity, and each stream beyond the second has a quarter of the one before. SepBIT's classes of what
//! collection rewrites are not built.

use super::{PlacementPolicy, Policy, WrittenUnit};
use crate::DriveConfig;
use crate::description::{Default, Key, Kind};

/// The age from which on a unit is cold.
const HOT_AGE: Key = Key::new(
    "hot_age",
    Kind::Percent(1),
    Default::number(70),
    "Age below which a unit is hot when it is overwritten: units that the host wrote since, in whole percent of the user \
     capacity. Stream 0 takes what is older and what is written for the first time, stream 1 what is hot, each further \
     stream what is younger than a quarter of the age before.",
);

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "recency",
    summary: "hot units apart, by their age when they are overwritten (placement.hot_age)",
    keys: &[HOT_AGE],
    make: Some(|config| Box::new(Recency::new(config))),
};

/// Streams by the age of what is overwritten.
struct Recency {
    /// In units.
    hot_age: u64,
}

/// How many times younger than the stream before a further stream's units are.
const STEP: u64 = 4;

impl Recency {
    fn new(config: &DriveConfig) -> Recency {
        let percent = config.placement.own.number(&HOT_AGE, &config.flash.geometry);
        Recency { hot_age: u64::from(config.user_units()) * percent / 100 }
    }
}

impl PlacementPolicy for Recency {
    fn name(&self) -> &'static str {
        "recency"
    }

    fn stream(&self, unit: &WrittenUnit) -> u16 {
        let Some(age) = unit.age.map(u64::from) else { return 0 };
        let limits = std::iter::successors(Some(self.hot_age), |limit| Some(limit / STEP));
        let hotter = limits.take(usize::from(unit.streams) - 1).take_while(|limit| age < *limit);
        hotter.count() as u16
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_flash::Lpn;

    use super::*;

    #[test]
    fn each_stream_has_units_a_quarter_as_old() {
        let recency = Recency { hot_age: 160 };
        let stream = |age, streams| recency.stream(&WrittenUnit { lpn: Lpn(0), age, hint: 0, streams });
        assert_eq!([None, Some(200), Some(160)].map(|age| stream(age, 2)), [0, 0, 0]);
        assert_eq!([159, 40, 39, 0].map(|age| stream(Some(age), 2)), [1, 1, 1, 1]);
        assert_eq!([159, 40, 39, 10, 9].map(|age| stream(Some(age), 4)), [1, 1, 2, 2, 3]);
        assert_eq!(stream(Some(0), 256), 4, "streams whose age is below a unit have none");
    }
}
