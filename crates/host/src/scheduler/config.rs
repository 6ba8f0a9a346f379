//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::{Nanos, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};

use super::Scheduler;
use super::policy::{OWN_KEYS, POLICIES, PolicyConfig, with_own_keys};
use super::request::PARTS_MAX;
use crate::layers::{LayerConfig, LayerKind, only, shown_time};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "scheduler",
    summary: "the block layer: an I/O scheduler with a policy, neighbours merged",
    keys: &KEYS,
    devices: (1, 1),
    hands_on: true,
    read,
};

/// A second: the longest that requests wait for others.
const LONGEST_PLUG: Nanos = Nanos(1_000_000_000);

/// Linux's limits of a request and of the queue, and its plug, for every policy but `fifo`.
const SEGMENTS: u32 = 128;
const REQUESTS: u32 = 128;
const UNPLUG_REQUESTS: u32 = 4;
const UNPLUG_TIME: Nanos = Nanos(3_000_000);

/// The layer's keys but those of the policies.
const OF_LAYER: [Key; 7] = [
    Key::new(
        "depth",
        Kind::Count { unit: "requests", least: 1, most: 65_536 },
        Default::number(32),
        "Requests that the device below holds at once.",
    ),
    Key::new(
        "merge_size",
        Kind::Size { least: 0, most: u64::MAX, step: SECTOR_BYTES },
        Default::number(512 << 10),
        "The largest request that merging makes, in whole sectors; `0` merges nothing (Linux 2.6.33, \
         Documentation/block/queue-sysfs.txt, max_sectors_kb: 512 KB).",
    ),
    Key::new(
        "policy",
        Kind::Word(policies),
        Default::word("fifo"),
        "Which waiting request goes next. `fifo`: in the order of arrival; a request is joined to the last one that waits. `noop`: in \
         the order of arrival; a request is joined to a neighbour wherever that waits. `deadline`: batches in the order of sectors, \
         reads before writes, and deadlines.",
    ),
    Key::new(
        "segments",
        Kind::Count { unit: "segments", least: 1, most: 4096 },
        Default::Means("128; 4096 with `fifo`"),
        "Most pages of 4 KB of host memory in a request that merging makes (Linux 2.6.33, include/linux/blkdev.h, MAX_PHYS_SEGMENTS: \
         128).",
    ),
    Key::new(
        "requests",
        Kind::Count { unit: "requests", least: 1, most: 1 << 20 },
        Default::Means("128; no limit with `fifo`"),
        "Most requests of each direction that wait for the policy. The submitters of others wait (Linux 2.6.33, \
         Documentation/block/queue-sysfs.txt, nr_requests: 128).",
    ),
    Key::new(
        "unplug_requests",
        Kind::Count { unit: "requests", least: 1, most: 65_536 },
        Default::Means("4; 1 with `fifo`"),
        "If nothing waits, the first plain write or trim waits for others, until this many requests wait (Linux 2.6.33, \
         block/blk-settings.c, unplug_thresh: 4). Reads and FUA commands do not wait.",
    ),
    Key::new(
        "unplug_time",
        Kind::Time(LONGEST_PLUG),
        Default::number(UNPLUG_TIME.0),
        "Longest time for which a write waits for others (the same file, unplug_delay: 3 ms).",
    ),
];

/// All keys.
static KEYS: [Key; OF_LAYER.len() + OWN_KEYS] = with_own_keys(&OF_LAYER);

fn policies() -> Vec<&'static str> {
    POLICIES.iter().map(|policy| policy.name).collect()
}

/// What the scheduler is told.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// Requests in the device at one time, at least 1.
    pub depth: u32,
    /// Most bytes of a merged request; 0 merges nothing.
    pub merge_bytes: u64,
    /// What is said of requests that a policy orders; without it every request keeps its place.
    pub(super) ordered: Option<Ordered>,
}

/// What is said where a policy orders requests.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    name: &'static str,
    pub(super) policy: Arc<dyn PolicyConfig>,
    /// Most segments of a request that merging makes.
    pub(super) segments: u32,
    /// Most requests of each direction that wait for the policy.
    pub(super) requests: u32,
    pub(super) unplug_requests: u32,
    pub(super) unplug_time: Nanos,
}

impl SchedulerConfig {
    /// First come, first served, with so many requests in the device and merged ones of so many bytes.
    pub const fn fifo(depth: u32, merge_bytes: u64) -> SchedulerConfig {
        SchedulerConfig { depth, merge_bytes, ordered: None }
    }

    /// Most segments of a request that merging makes.
    pub(super) fn segments(&self) -> u64 {
        self.ordered.as_ref().map_or(PARTS_MAX, |ordered| u64::from(ordered.segments))
    }

    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        let mut all = vec![("depth", self.depth.to_string()), ("merge_size", format_size(self.merge_bytes))];
        match &self.ordered {
            None => all.push(("policy", POLICIES[0].name.to_string())),
            Some(ordered) => {
                all.extend([
                    ("policy", ordered.name.to_string()),
                    ("segments", ordered.segments.to_string()),
                    ("requests", ordered.requests.to_string()),
                    ("unplug_requests", ordered.unplug_requests.to_string()),
                    ("unplug_time", shown_time(ordered.unplug_time)),
                ]);
                all.extend(ordered.policy.shown());
            }
        }
        all.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
    }
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let depth = keys.count("depth")?;
    let merge_bytes = match keys.get("merge_size") {
        None => keys.number("merge_size")?,
        Some(size) => match size.size()? {
            bytes if bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, or 0 to merge nothing")),
        },
    };
    let count = |key: &'static str, default: u32| match keys.get(key) {
        None => Ok(default),
        Some(_) => keys.count(key),
    };
    let name = match keys.get("policy") {
        None => POLICIES[0].name,
        Some(policy) => policy.name(&policies())?,
    };
    let policy = POLICIES.iter().find(|policy| policy.name == name).expect("it is one of them");
    let ordered = match policy.read {
        None => {
            let unread = ["segments", "requests", "unplug_requests", "unplug_time"];
            let ordering = POLICIES.iter().filter(|other| other.read.is_some()).map(|other| other.name);
            let all = ordering.collect::<Vec<_>>().join(" or ");
            let of_one = POLICIES.iter().flat_map(|other| other.keys.iter().map(|key| (other.name, key.name)));
            let all_unread = unread.into_iter().map(|key| (all.as_str(), key)).chain(of_one);
            if let Some((readers, field)) =
                all_unread.into_iter().find_map(|(readers, key)| Some((readers, keys.get(key)?)))
            {
                return Err(field.expected(&format!("nothing: the policy {name} does not read it, only {readers}")));
            }
            None
        }
        Some(read) => {
            let of_others = POLICIES.iter().filter(|other| other.name != name);
            let other = of_others.flat_map(|other| other.keys.iter().map(|key| (other.name, key.name)));
            if let Some((owner, field)) = other.into_iter().find_map(|(owner, key)| Some((owner, keys.get(key)?))) {
                return Err(field.expected(&format!("nothing: only the policy {owner} reads it")));
            }
            Some(Ordered {
                name: policy.name,
                policy: read(keys)?,
                segments: count("segments", SEGMENTS)?,
                requests: count("requests", REQUESTS)?,
                unplug_requests: count("unplug_requests", UNPLUG_REQUESTS)?,
                unplug_time: Nanos(keys.number("unplug_time")?),
            })
        }
    };
    Ok(Arc::new(SchedulerConfig { depth, merge_bytes, ordered }))
}

impl LayerConfig for SchedulerConfig {
    fn is_transparent(&self) -> bool {
        true
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        Ok(Box::new(Scheduler::new(below, self.clone())))
    }
}
