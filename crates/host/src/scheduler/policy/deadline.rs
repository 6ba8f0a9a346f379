//! Linux's deadline scheduler (`block/deadline-iosched.c`, Documentation/block/deadline-iosched.txt): batches of one direction in
//! the order of sectors, and a time after which a request is served first.
//!
//! Linux looks at deadlines where a batch begins. Here the policy looks at them before each request, so that after its deadline
//! nothing younger of its direction goes before a request.

use std::sync::Arc;

use ssdlab_base::Nanos;
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};

use super::{Direction, Policy, PolicyConfig, PolicySpec};
use crate::layers::shown_time;
use crate::scheduler::queue::{Candidate, View};

/// The policy as a description names it.
pub(super) const POLICY: PolicySpec = PolicySpec { name: "deadline", keys: KEYS, read: Some(read) };

/// A day: the longest deadline.
const LONGEST: Nanos = Nanos(86_400_000_000_000);

/// Its keys.
const KEYS: &[Key] = &[
    Key::new(
        "read_expire",
        Kind::Time(LONGEST),
        Default::number(500_000_000),
        "Time after which a waiting read goes before all younger reads (Linux 2.6.33, Documentation/block/deadline-iosched.txt: \
         500 ms).",
    )
    .only_with("policy", "deadline"),
    Key::new(
        "write_expire",
        Kind::Time(LONGEST),
        Default::number(5_000_000_000),
        "Time after which a waiting write goes before all younger writes (the same page: 5 s).",
    )
    .only_with("policy", "deadline"),
    Key::new(
        "fifo_batch",
        Kind::Count { unit: "requests", least: 1, most: 65_536 },
        Default::number(16),
        "Requests of a batch at most: they have one direction and go in the order of sectors (the same page: 16).",
    )
    .only_with("policy", "deadline"),
    Key::new(
        "writes_starved",
        Kind::Count { unit: "batches", least: 1, most: 65_536 },
        Default::number(2),
        "Batches of reads that go while writes wait, before a batch of writes goes (the same page: 2).",
    )
    .only_with("policy", "deadline"),
];

/// What its keys say.
#[derive(Clone, Copy, Debug)]
struct DeadlineConfig {
    /// Of reads and of writes.
    expire: [Nanos; 2],
    fifo_batch: u32,
    writes_starved: u32,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn PolicyConfig>, DescriptionError> {
    Ok(Arc::new(DeadlineConfig {
        expire: [Nanos(keys.number("read_expire")?), Nanos(keys.number("write_expire")?)],
        fifo_batch: keys.count("fifo_batch")?,
        writes_starved: keys.count("writes_starved")?,
    }))
}

impl PolicyConfig for DeadlineConfig {
    fn make(&self) -> Box<dyn Policy> {
        Box::new(Deadline { config: *self, batch: None, starved: 0, counts: Counts::default() })
    }

    fn shown(&self) -> Vec<(&'static str, String)> {
        let [read, write] = self.expire;
        vec![
            ("read_expire", shown_time(read)),
            ("write_expire", shown_time(write)),
            ("fifo_batch", self.fifo_batch.to_string()),
            ("writes_starved", self.writes_starved.to_string()),
        ]
    }
}

/// Requests of one direction that go one after the other.
#[derive(Clone, Copy)]
struct Batch {
    direction: Direction,
    /// Where the last one ended.
    position: u64,
    /// How many may still go.
    left: u32,
}

/// What it did.
#[derive(Clone, Copy, Default)]
struct Counts {
    read_batches: u64,
    write_batches: u64,
    expired: u64,
}

/// The policy.
struct Deadline {
    config: DeadlineConfig,
    batch: Option<Batch>,
    /// Batches of reads since the last one of writes, while writes waited.
    starved: u32,
    counts: Counts,
}

impl Deadline {
    /// The oldest request of a direction, if its deadline is over.
    fn expired(&self, waiting: &View<'_>, direction: Direction, now: Nanos) -> Option<Candidate> {
        let expire = self.config.expire[direction as usize];
        waiting.oldest(direction).filter(|oldest| now.0 >= oldest.since.0.saturating_add(expire.0))
    }

    /// The direction of a new batch.
    fn direction(&mut self, waiting: &View<'_>) -> Direction {
        let (reads, writes) = (waiting.count(Direction::Read) > 0, waiting.count(Direction::Write) > 0);
        assert!(reads || writes, "a policy is asked while requests wait");
        if reads && !(writes && self.starved >= self.config.writes_starved) {
            self.starved += u32::from(writes);
            self.counts.read_batches += 1;
            return Direction::Read;
        }
        self.starved = 0;
        self.counts.write_batches += 1;
        Direction::Write
    }
}

impl Policy for Deadline {
    fn choose(&mut self, waiting: &View<'_>, now: Nanos) -> u32 {
        let running = self.batch.filter(|batch| batch.left > 0).and_then(|batch| {
            let expired = self.expired(waiting, batch.direction, now);
            let next = expired.or_else(|| waiting.at_or_behind(batch.direction, batch.position));
            next.map(|next| (batch, next, expired.is_some()))
        });
        let (batch, next, is_expired) = running.unwrap_or_else(|| {
            let direction = self.direction(waiting);
            let expired = self.expired(waiting, direction, now);
            // Another direction begins with its oldest.
            let position = self.batch.filter(|last| last.direction == direction).map(|last| last.position);
            let further = || position.and_then(|position| waiting.at_or_behind(direction, position));
            let next = expired.or_else(further).or_else(|| waiting.oldest(direction));
            let next = next.expect("a batch begins where requests of its direction wait");
            (Batch { direction, position: 0, left: self.config.fifo_batch }, next, expired.is_some())
        });
        self.counts.expired += u64::from(is_expired);
        self.batch = Some(Batch { position: next.end, left: batch.left - 1, ..batch });
        next.slot
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let Counts { read_batches, write_batches, expired } = self.counts;
        vec![("expired", expired), ("read_batches", read_batches), ("write_batches", write_batches)]
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
    }
}
