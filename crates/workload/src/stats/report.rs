//! The numbers of a trace as a table for a person.

use std::fmt;

use ssdlab_base::{Nanos, format_size};

use super::{Distribution, OpStats, TraceStats};

impl fmt::Display for TraceStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, name: &str, value: String| writeln!(f, "{name:<24} {value}");
        row(f, "requests", grouped(self.requests))?;
        row(f, "span", Nanos(self.span_ns).to_string())?;
        row(
            f,
            "rate",
            format!(
                "{:.1} requests/s, at most {} in a second",
                self.requests_per_second,
                grouped(self.requests_per_second_peak)
            ),
        )?;
        for (name, op) in [
            ("reads", &self.read),
            ("writes", &self.write),
            ("trims", &self.trim),
            ("write zeroes", &self.write_zeroes),
        ] {
            if op.requests > 0 {
                row(f, name, one_kind(op))?;
            }
        }
        if self.flushes > 0 {
            let between = sizes(&self.writes_between_flushes, |value| value.to_string());
            row(
                f,
                "flushes",
                format!(
                    "{}, {:.1} writes for each; between two {between}",
                    grouped(self.flushes),
                    self.writes_per_flush
                ),
            )?;
        }
        if self.fua_writes > 0 {
            row(f, "writes with FUA", grouped(self.fua_writes))?;
        }
        row(f, "writes of reads+writes", format!("{:.2} %", self.write_percent))?;
        row(f, "end of addresses", format!("{} ({} bytes)", format_size(self.end_bytes), self.end_bytes))?;
        row(
            f,
            "footprint, 4 KiB pages",
            format!(
                "{} in all, {} written, {} read",
                grouped(self.footprint.pages),
                grouped(self.footprint.pages_written),
                grouped(self.footprint.pages_read)
            ),
        )?;
        row(
            f,
            "live pages",
            format!("{} at the peak, {} at the end", grouped(self.live.pages_peak), grouped(self.live.pages_end)),
        )?;
        if self.trim.requests + self.write_zeroes.requests > 0 {
            row(f, "live bytes trimmed", format_size(self.trimmed_live_bytes))?;
        }
        if self.write.requests > 0 {
            for unaligned in &self.unaligned {
                row(
                    f,
                    &format!("unaligned to {}", format_size(unaligned.page_bytes)),
                    format!("{:.2} % of writes, start {:.2} %", unaligned.percent, unaligned.start_percent),
                )?;
            }
            row(f, "sequential writes", format!("{:.2} %", self.sequential_write_percent))?;
            row(f, "overwrites", format!("{:.2} % of writes go to live pages only", self.overwrite_percent))?;
            if self.overwrite_distance_bytes.count > 0 {
                row(f, "overwrite distance", sizes(&self.overwrite_distance_bytes, format_size))?;
            }
        }
        if self.read.requests > 0 {
            row(f, "sequential reads", format!("{:.2} %", self.sequential_read_percent))?;
            row(f, "reads of the unwritten", format!("{:.2} % of reads", self.read_before_write_percent))?;
        }
        Ok(())
    }
}

fn one_kind(op: &OpStats) -> String {
    format!(
        "{}, {} in all; length {}",
        grouped(op.requests),
        format_size(op.bytes),
        sizes(&op.length_bytes, format_size)
    )
}

fn sizes(of: &Distribution, show: impl Fn(u64) -> String) -> String {
    format!(
        "mean {}, median {}, p90 {}, p99 {}, most {}",
        show(of.mean.round() as u64),
        show(of.p50),
        show(of.p90),
        show(of.p99),
        show(of.max)
    )
}

/// A number with commas at thousands.
fn grouped(value: u64) -> String {
    ssdlab_base::grouped(&value.to_string(), ',')
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
