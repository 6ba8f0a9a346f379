//! What operations took and moved.

use hdrhistogram::Histogram;
use serde::Serialize;
use ssdlab_base::Nanos;

use super::flowop::OpKind;

/// Percentiles are within 0.1 % of the true ones.
const SIGNIFICANT_DIGITS: u8 = 3;

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it was.
    pub kind: OpKind,
    /// From its first call to the end of its last.
    pub latency: Nanos,
    /// Bytes that it read.
    pub bytes_read: u64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
}

/// Latencies in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// Half are at most this.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 95 %.
    pub p95: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// The most.
    pub max: u64,
}

/// All operations of one kind.
#[derive(Clone, Debug)]
pub struct OpMeasure {
    histogram: Histogram<u64>,
    latency_sum_ns: u128,
    latency_min_ns: u64,
    latency_max_ns: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl Default for OpMeasure {
    fn default() -> OpMeasure {
        OpMeasure::new()
    }
}

impl OpMeasure {
    /// Nothing measured.
    pub fn new() -> OpMeasure {
        OpMeasure {
            histogram: Histogram::new(SIGNIFICANT_DIGITS).expect("the digits are a constant that it accepts"),
            latency_sum_ns: 0,
            latency_min_ns: u64::MAX,
            latency_max_ns: 0,
            bytes_read: 0,
            bytes_written: 0,
        }
    }

    /// Counts an operation that took so long and moved so many bytes.
    pub fn record(&mut self, latency: Nanos, bytes_read: u64, bytes_written: u64) {
        // It grows as needed, and every 64-bit value has a place in one that has grown.
        self.histogram.record(latency.0).unwrap_or_else(|_| self.histogram.saturating_record(latency.0));
        self.latency_sum_ns += u128::from(latency.0);
        self.latency_min_ns = self.latency_min_ns.min(latency.0);
        self.latency_max_ns = self.latency_max_ns.max(latency.0);
        self.bytes_read += bytes_read;
        self.bytes_written += bytes_written;
    }

    /// Operations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their latencies; nothing without an operation.
    pub fn latency(&self) -> Option<Latency> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        // A bucket's upper end may lie above the largest value in it.
        let at = |share: f64| self.histogram.value_at_quantile(share).clamp(self.latency_min_ns, self.latency_max_ns);
        Some(Latency {
            mean: self.latency_sum_ns as f64 / count as f64,
            min: self.latency_min_ns,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.latency_max_ns,
        })
    }
}

/// Operations by kind.
#[derive(Clone, Debug)]
pub struct Measures {
    kinds: Vec<OpMeasure>,
}

impl Default for Measures {
    fn default() -> Measures {
        Measures::new()
    }
}

impl Measures {
    /// Nothing measured.
    pub fn new() -> Measures {
        Measures { kinds: OpKind::ALL.iter().map(|_| OpMeasure::new()).collect() }
    }

    /// Counts an operation.
    pub fn record(&mut self, done: &Done) {
        self.kinds[done.kind as usize].record(done.latency, done.bytes_read, done.bytes_written);
    }

    /// The operations of one kind.
    pub fn of(&self, kind: OpKind) -> &OpMeasure {
        &self.kinds[kind as usize]
    }

    /// The kinds that happened.
    pub fn kinds(&self) -> impl Iterator<Item = (OpKind, &OpMeasure)> {
        OpKind::ALL.into_iter().zip(&self.kinds).filter(|(_, measure)| measure.count() > 0)
    }

    /// Operations of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(OpMeasure::count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds_are_found_by_their_place() {
        for (place, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    proptest! {
        #[test]
        fn a_summary_agrees_with_a_sorted_list(mut values in prop::collection::vec(0_u64..u64::MAX / 4096, 1..400)) {
            let mut measures = Measures::new();
            for &value in &values {
                let kind = OpKind::Fsync;
                measures.record(&Done { kind, latency: Nanos(value), bytes_read: 1, bytes_written: 2 });
            }
            values.sort_unstable();
            let fsync = measures.of(OpKind::Fsync);
            let found = fsync.latency().expect("values");
            prop_assert_eq!((fsync.count(), fsync.bytes_read), (values.len() as u64, values.len() as u64));
            prop_assert_eq!((found.min, found.max), (values[0], values[values.len() - 1]));
            let rank = (values.len() as f64 * 0.9).ceil() as usize;
            let wanted = values[rank - 1] as f64;
            prop_assert!((found.p90 as f64 - wanted).abs() <= wanted * 0.001 + 1.0, "{} {wanted}", found.p90);
            prop_assert_eq!(measures.operations(), values.len() as u64);
            prop_assert_eq!(measures.kinds().count(), 1);
        }
    }
}
