//! The run over time, in constant memory.
//!
//! A run begins with intervals of a microsecond (or 64 requests, on a drive that takes no time). When there are
//! [`SAMPLES_MAX`] of them, neighbours are merged and the interval doubles, so a run of any length ends with 512 to
//! 1024 samples, or fewer if it is very short. A run that asks for intervals of some length begins with those and merges
//! no neighbours before there are [`ASKED_MAX`]. The replay loop stops the drive exactly at an interval's end, so a
//! flash operation is counted in the interval in which it completed.

use ssdlab_device::Counters;
use ssdlab_flash::{Cause, OpKind};

use crate::breakdown::OPS;
use crate::result::{OpTimeline, Timeline};

/// Samples at which neighbours are merged; even.
const SAMPLES_MAX: usize = 1024;

/// Samples at which neighbours are merged where an interval was asked for; even.
const ASKED_MAX: usize = 65_536;

/// The first interval: a microsecond.
const FIRST_NS: u64 = 1_000;

/// The first interval of a drive that takes no time.
const FIRST_REQUESTS: u64 = 64;

/// Buckets in each power of two of a sketch.
const SKETCH_STEPS: u64 = 16;

/// Latencies from here on share a sketch's last bucket: 2^42 ns, 73 minutes.
const SKETCH_BITS: u32 = 42;

/// Buckets of a sketch.
const SKETCH_LEN: usize = (SKETCH_BITS as usize - 3) * SKETCH_STEPS as usize;

/// Memory of a timeline with intervals that were asked for, of so many kinds of requests: 200 to 800 MB.
pub(crate) fn asked_bytes(kinds: u64) -> u64 {
    // As a column of the result and of its files an interval takes some hundred numbers more.
    const AS_RESULT: u64 = 2 << 10;
    let tallies = kinds * (size_of::<Tally>() + size_of::<[u32; SKETCH_LEN]>()) as u64;
    ASKED_MAX as u64 * (size_of::<Sample>() as u64 + tallies + AS_RESULT)
}

/// What the intervals divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Virtual time, for drives that take time.
    Time,
    /// Completed requests, for drives that only count.
    Requests,
}

/// A coarse histogram of latencies that can be merged: 16 buckets in each power of two.
#[derive(Clone, Debug)]
struct Sketch(Box<[u32; SKETCH_LEN]>);

impl Sketch {
    fn new() -> Sketch {
        Sketch(Box::new([0; SKETCH_LEN]))
    }

    #[inline]
    fn bucket(ns: u64) -> usize {
        let ns = ns.min((1 << SKETCH_BITS) - 1);
        if ns < SKETCH_STEPS {
            return ns as usize;
        }
        let shift = 59 - ns.leading_zeros();
        (u64::from(shift) * SKETCH_STEPS + (ns >> shift)) as usize
    }

    /// The largest latency that falls into a bucket.
    fn upper(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < 2 * SKETCH_STEPS {
            return bucket;
        }
        let shift = bucket / SKETCH_STEPS - 1;
        ((bucket % SKETCH_STEPS + SKETCH_STEPS + 1) << shift) - 1
    }

    fn quantile(&self, count: u64, quantile: f64) -> u64 {
        let rank = ((count as f64 * quantile).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, &here) in self.0.iter().enumerate() {
            below += u64::from(here);
            if below >= rank {
                return Sketch::upper(bucket);
            }
        }
        u64::MAX
    }

    fn add(&mut self, other: &Sketch) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// Latencies in an interval.
#[derive(Clone, Debug)]
struct Tally {
    requests: u64,
    sum_ns: u128,
    max_ns: u64,
    sketch: Sketch,
}

impl Tally {
    fn new() -> Tally {
        Tally { requests: 0, sum_ns: 0, max_ns: 0, sketch: Sketch::new() }
    }

    fn add(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sketch.add(&other.sketch);
    }

    /// Mean, 99th percentile and most.
    fn summary(&self) -> (f64, u64, u64) {
        let p99 = self.sketch.quantile(self.requests, 0.99).min(self.max_ns);
        (self.sum_ns as f64 / self.requests as f64, p99, self.max_ns)
    }
}

/// One interval.
#[derive(Clone, Debug)]
struct Sample {
    end_ns: u64,
    requests: u64,
    read_bytes: u64,
    write_bytes: u64,
    /// Of each kind of request that completed.
    latencies: [Option<Box<Tally>>; 4],
    reads: [u64; Cause::COUNT],
    programs: [u64; Cause::COUNT],
    erases: u64,
    gc_stall_ns: u64,
    /// Pages in the write buffer at the end, and how many of them are partial.
    buffer_pages: [u64; 2],
    /// Map pages that were asked for: cached, and not; of a drive that caches its map.
    map: Option<[u64; 2]>,
}

impl Sample {
    fn new() -> Sample {
        Sample {
            end_ns: 0,
            requests: 0,
            read_bytes: 0,
            write_bytes: 0,
            latencies: [const { None }; 4],
            reads: [0; Cause::COUNT],
            programs: [0; Cause::COUNT],
            erases: 0,
            gc_stall_ns: 0,
            buffer_pages: [0; 2],
            map: None,
        }
    }

    /// Becomes the two intervals together; `later` follows directly.
    fn merge(&mut self, later: &Sample) {
        self.end_ns = later.end_ns;
        self.requests += later.requests;
        self.read_bytes += later.read_bytes;
        self.write_bytes += later.write_bytes;
        for (mine, theirs) in self.latencies.iter_mut().zip(&later.latencies) {
            match (mine, theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) => mine.add(theirs),
                (mine, theirs) => mine.clone_from(theirs),
            }
        }
        for (mine, theirs) in self.reads.iter_mut().zip(later.reads) {
            *mine += theirs;
        }
        for (mine, theirs) in self.programs.iter_mut().zip(later.programs) {
            *mine += theirs;
        }
        self.erases += later.erases;
        self.gc_stall_ns += later.gc_stall_ns;
        self.buffer_pages = later.buffer_pages;
        self.map = match (self.map, later.map) {
            (Some([hits, misses]), Some(later)) => Some([hits + later[0], misses + later[1]]),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// Gathers the samples.
#[derive(Debug)]
pub(crate) struct Sampler {
    axis: Axis,
    interval: u64,
    samples_max: usize,
    samples: Vec<Sample>,
    current: Sample,
    requests_total: u64,
    /// Where the current interval ends, in the axis's unit.
    boundary: u64,
    earlier: Counters,
}

impl Sampler {
    /// Starts at time zero with the counters the drive has now.
    pub(crate) fn new(axis: Axis, counters: Counters) -> Sampler {
        let interval = match axis {
            Axis::Time => FIRST_NS,
            Axis::Requests => FIRST_REQUESTS,
        };
        Sampler {
            axis,
            interval,
            samples_max: SAMPLES_MAX,
            samples: Vec::with_capacity(SAMPLES_MAX),
            current: Sample::new(),
            requests_total: 0,
            boundary: interval,
            earlier: counters,
        }
    }

    /// Starts at time zero with intervals of so many nanoseconds.
    pub(crate) fn every(interval: u64, counters: Counters) -> Sampler {
        let interval = interval.max(1);
        Sampler { interval, boundary: interval, samples_max: ASKED_MAX, ..Sampler::new(Axis::Time, counters) }
    }

    /// A request of a kind completed in the current interval.
    #[inline]
    pub(crate) fn completed(&mut self, class: usize, latency_ns: u64) {
        self.current.requests += 1;
        let tally = self.current.latencies[class].get_or_insert_with(|| Box::new(Tally::new()));
        tally.requests += 1;
        tally.sum_ns += u128::from(latency_ns);
        tally.max_ns = tally.max_ns.max(latency_ns);
        let bucket = &mut tally.sketch.0[Sketch::bucket(latency_ns)];
        *bucket = bucket.saturating_add(1);
    }

    /// The virtual time at which the drive must be stopped for [`Sampler::tick`]; never, on the other axis.
    #[inline]
    pub(crate) fn next_tick_ns(&self) -> u64 {
        match self.axis {
            Axis::Time => self.boundary,
            Axis::Requests => u64::MAX,
        }
    }

    /// Whether the current interval is over.
    #[inline]
    pub(crate) fn due(&self, now_ns: u64) -> bool {
        match self.axis {
            Axis::Time => now_ns >= self.boundary,
            Axis::Requests => self.requests_total + self.current.requests >= self.boundary,
        }
    }

    /// Closes the current interval at `now_ns`.
    pub(crate) fn tick(&mut self, now_ns: u64, counters: &Counters) {
        self.close(now_ns, counters);
        if self.samples.len() == self.samples_max {
            self.halve();
        }
        let position = match self.axis {
            Axis::Time => now_ns,
            Axis::Requests => self.requests_total,
        };
        self.boundary = (position / self.interval + 1).saturating_mul(self.interval);
    }

    fn close(&mut self, now_ns: u64, counters: &Counters) {
        let mut sample = std::mem::replace(&mut self.current, Sample::new());
        let flash = counters.flash.since(&self.earlier.flash);
        sample.end_ns = now_ns;
        sample.read_bytes = counters.bytes[0] - self.earlier.bytes[0];
        sample.write_bytes = counters.bytes[1] - self.earlier.bytes[1];
        for cause in Cause::ALL {
            sample.reads[cause as usize] = flash.get(OpKind::Read, cause);
            sample.programs[cause as usize] = flash.get(OpKind::Program, cause) + flash.get(OpKind::Copyback, cause);
        }
        sample.erases = flash.total(OpKind::Erase);
        sample.buffer_pages = [counters.buffer.pages_now, counters.buffer.partial_pages_now];
        sample.gc_stall_ns = counters.gc_stall.since(self.earlier.gc_stall).0;
        sample.map = counters.map_cache.map(|stats| {
            let (now, before) = (stats.total(), self.earlier.map_cache.unwrap_or_default().total());
            [now.hits - before.hits, now.misses - before.misses]
        });
        self.requests_total += sample.requests;
        self.earlier = *counters;
        self.samples.push(sample);
    }

    fn halve(&mut self) {
        for pair in 0..self.samples_max / 2 {
            let later = std::mem::replace(&mut self.samples[2 * pair + 1], Sample::new());
            let mut merged = std::mem::replace(&mut self.samples[2 * pair], Sample::new());
            merged.merge(&later);
            self.samples[pair] = merged;
        }
        self.samples.truncate(self.samples_max / 2);
        self.interval = self.interval.saturating_mul(2);
    }

    /// Closes the last interval and gives the columns; `page_bytes` turns programs into bytes.
    pub(crate) fn finish(mut self, now_ns: u64, counters: &Counters, page_bytes: u64) -> Timeline {
        let unfinished = self.current.requests > 0
            || counters.flash != self.earlier.flash
            || self.samples.last().is_some_and(|last| last.end_ns < now_ns);
        if unfinished {
            self.close(now_ns, counters);
        }
        let mut timeline = Timeline {
            axis: match self.axis {
                Axis::Time => "time".to_string(),
                Axis::Requests => "requests".to_string(),
            },
            interval: self.interval,
            ..Timeline::default()
        };
        let by_cause = |table: fn(&Sample) -> &[u64; Cause::COUNT]| {
            let column = |cause: Cause| self.samples.iter().map(|s| table(s)[cause as usize]).collect();
            Cause::ALL.iter().map(|&cause| (cause.key().to_string(), column(cause))).collect()
        };
        timeline.reads = by_cause(|sample| &sample.reads);
        timeline.programs = by_cause(|sample| &sample.programs);
        for (class, name) in OPS.iter().enumerate() {
            if self.samples.iter().any(|sample| sample.latencies[class].is_some()) {
                timeline.latency_by_op.insert((*name).to_string(), self.latencies_of(class));
            }
        }
        let mut requests_total = 0;
        let mut start_ns = 0;
        for sample in &self.samples {
            requests_total += sample.requests;
            let span_s = (sample.end_ns - start_ns) as f64 / 1e9;
            let mut all: Option<Tally> = None;
            for tally in sample.latencies.iter().flatten() {
                all.get_or_insert_with(Tally::new).add(tally);
            }
            let summary = all.map(|all| all.summary());
            let programmed = (sample.programs.iter().sum::<u64>() * page_bytes) as f64;
            timeline.time_ns.push(sample.end_ns);
            timeline.requests_total.push(requests_total);
            timeline.requests.push(sample.requests);
            timeline.read_bytes.push(sample.read_bytes);
            timeline.write_bytes.push(sample.write_bytes);
            timeline.iops.push(if span_s > 0.0 { sample.requests as f64 / span_s } else { 0.0 });
            timeline.latency_mean_ns.push(summary.map(|(mean, ..)| mean));
            timeline.latency_p99_ns.push(summary.map(|(_, p99, _)| p99));
            timeline.latency_max_ns.push(summary.map(|(.., max)| max));
            let written = sample.write_bytes > 0;
            timeline.write_amplification.push(written.then(|| programmed / sample.write_bytes as f64));
            timeline.erases.push(sample.erases);
            timeline.gc_stall_ns.push(sample.gc_stall_ns);
            timeline.buffer_pages.push(sample.buffer_pages[0]);
            timeline.buffer_partial_pages.push(sample.buffer_pages[1]);
            if let Some([hits, misses]) = sample.map {
                timeline.map_hit_ratio.push((hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64));
            }
            start_ns = sample.end_ns;
        }
        timeline
    }

    /// Latencies of one kind of request over time.
    fn latencies_of(&self, class: usize) -> OpTimeline {
        let mut columns = OpTimeline::default();
        for sample in &self.samples {
            let tally = sample.latencies[class].as_ref();
            let summary = tally.map(|tally| tally.summary());
            columns.requests.push(tally.map_or(0, |tally| tally.requests));
            columns.latency_mean_ns.push(summary.map(|(mean, ..)| mean));
            columns.latency_p99_ns.push(summary.map(|(_, p99, _)| p99));
            columns.latency_max_ns.push(summary.map(|(.., max)| max));
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ssdlab_device::MapCacheStats;

    proptest! {
        #[test]
        fn a_sketch_bucket_holds_its_latency_within_a_sixteenth(ns in 0_u64..1 << SKETCH_BITS) {
            let bucket = Sketch::bucket(ns);
            prop_assert!(bucket < SKETCH_LEN);
            let upper = Sketch::upper(bucket);
            prop_assert!(upper >= ns);
            prop_assert!(upper as f64 <= ns as f64 * (1.0 + 1.0 / 16.0));
            prop_assert_eq!(Sketch::bucket(upper), bucket);
        }

        #[test]
        fn nothing_is_lost_however_often_neighbours_merge(gaps in prop::collection::vec(1_u64..1 << 30, 1..400)) {
            let mut counters = Counters { map_cache: Some(MapCacheStats::default()), ..Counters::default() };
            let mut sampler = Sampler::new(Axis::Time, counters);
            let mut now = 0;
            for gap in &gaps {
                let target = now + gap;
                while sampler.next_tick_ns() < target {
                    now = sampler.next_tick_ns();
                    sampler.tick(now, &counters);
                }
                now = target;
                counters.flash.0[OpKind::Program as usize][Cause::Gc as usize] += 3;
                counters.bytes[1] += 4096;
                let map = counters.map_cache.get_or_insert_default();
                map.by[(*gap % 4) as usize].hits += gap % 5;
                map.by[(*gap % 3) as usize].misses += 1;
                sampler.completed((*gap % 3) as usize, *gap);
                if sampler.due(now) {
                    sampler.tick(now, &counters);
                }
            }
            let timeline = sampler.finish(now, &counters, 4096);
            prop_assert!(timeline.time_ns.len() <= SAMPLES_MAX);
            prop_assert_eq!(timeline.requests.iter().sum::<u64>(), gaps.len() as u64);
            prop_assert_eq!(timeline.requests_total.last().copied(), Some(gaps.len() as u64));
            prop_assert_eq!(timeline.write_bytes.iter().sum::<u64>(), gaps.len() as u64 * 4096);
            prop_assert_eq!(timeline.programs["gc"].iter().sum::<u64>(), gaps.len() as u64 * 3);
            prop_assert_eq!(timeline.time_ns.last().copied(), Some(now));
            for (index, &end) in timeline.time_ns.iter().enumerate().rev().skip(1) {
                prop_assert_eq!(end, (index as u64 + 1) * timeline.interval);
            }
            let longest = timeline.latency_max_ns.iter().flatten().max().copied();
            prop_assert_eq!(longest, gaps.iter().max().copied());
            for (class, op) in OPS.iter().enumerate().take(3) {
                let mine: Vec<u64> = gaps.iter().copied().filter(|gap| (gap % 3) as usize == class).collect();
                let column = timeline.latency_by_op.get(*op);
                prop_assert_eq!(column.map_or(0, |column| column.requests.iter().sum::<u64>()), mine.len() as u64);
                let longest = column.and_then(|column| column.latency_max_ns.iter().flatten().max().copied());
                prop_assert_eq!(longest, mine.iter().max().copied());
            }
            prop_assert!(!timeline.latency_by_op.contains_key("flush"));
            // In each interval one is missed for each write.
            prop_assert_eq!(timeline.map_hit_ratio.len(), timeline.time_ns.len());
            let mut start = 0;
            let mut at = 0;
            let ends: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            for (ratio, &end) in timeline.map_hit_ratio.iter().zip(&timeline.time_ns) {
                let inside = gaps.iter().zip(&ends).filter(|(_, at)| (start..=end).contains(*at) && **at > start);
                let (hits, misses) = inside.fold((0, 0), |(hits, misses), (gap, _)| (hits + gap % 5, misses + 1));
                let expected = (misses > 0).then(|| hits as f64 / (hits + misses) as f64);
                prop_assert_eq!(*ratio, expected);
                start = end;
            }
        }
    }

    #[test]
    fn a_gap_of_a_century_takes_no_memory_and_little_time() {
        let mut sampler = Sampler::new(Axis::Time, Counters::default());
        let century = 100 * 365 * 86_400 * 1_000_000_000;
        let mut ticks = 0;
        while sampler.next_tick_ns() < century {
            let now = sampler.next_tick_ns();
            sampler.tick(now, &Counters::default());
            ticks += 1;
        }
        assert!(ticks < 60 * SAMPLES_MAX, "{ticks} stops");
        assert!(sampler.samples.len() <= SAMPLES_MAX);
    }

    #[test]
    fn a_drive_without_time_is_sampled_by_requests() {
        let mut sampler = Sampler::new(Axis::Requests, Counters::default());
        for _ in 0..1_000_000 {
            sampler.completed(1, 0);
            if sampler.due(0) {
                sampler.tick(0, &Counters::default());
            }
        }
        let timeline = sampler.finish(0, &Counters::default(), 4096);
        assert_eq!(timeline.axis, "requests");
        assert_eq!(timeline.requests.iter().sum::<u64>(), 1_000_000);
        assert!((400..=SAMPLES_MAX).contains(&timeline.requests.len()), "{} samples", timeline.requests.len());
    }
}
