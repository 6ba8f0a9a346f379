//! The statistics of every trace and recording equal the ones that were published with them.

use serde_json::Value;
use ssdlab_workload::stats::TraceStats;
use ssdlab_workload::trace::Trace;

use crate::shared::shared;

/// Compares numbers as they were rounded for print, and gathers every difference.
struct Check<'a> {
    name: &'a str,
    published: &'a Value,
    wrong: &'a mut Vec<String>,
}

impl Check<'_> {
    fn equal(&mut self, key: &str, ours: f64) {
        let Some(theirs) = self.published.get(key).and_then(Value::as_f64) else {
            return;
        };
        let text = self.published[key].to_string();
        let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len()) as i32;
        // Half a unit of the last digit, and the binary rounding of a tie.
        let tolerance = 0.5 * 10_f64.powi(-decimals) + 1e-6;
        if (ours - theirs).abs() > tolerance {
            self.wrong.push(format!("{} {key}: {ours} here, {theirs} published", self.name));
        }
    }
}

fn open(folder: &std::path::Path, name: &str) -> TraceStats {
    let path = folder.join(format!("{name}.csv.zst"));
    let mut trace = Trace::open(path.to_str().expect("a plain path")).expect("the trace opens");
    assert_eq!(trace.format().name(), "csv");
    assert_eq!(trace.compression(), "zstd");
    let stats = TraceStats::of(&mut trace).expect("the trace is sound");
    let counts = trace.counts();
    assert_eq!((counts.clamped, counts.rounded, counts.bad), (0, 0, 0), "{name}");
    stats
}

fn published(path: &str) -> Option<(std::path::PathBuf, Value)> {
    let path = shared(path)?;
    let text = std::fs::read_to_string(&path).expect("readable");
    let folder = path.parent().expect("a folder").to_path_buf();
    Some((folder, serde_json::from_str(&text).expect("JSON")))
}

#[test]
fn the_table_of_the_recordings_is_reproduced() {
    let Some((folder, table)) = published("recordings/stats.json") else { return };
    let mut wrong = Vec::new();
    for (name, row) in table.as_object().expect("a table") {
        let stats = open(&folder, name);
        let mut check = Check { name, published: row, wrong: &mut wrong };
        let device_pages = 8_589_934_592.0 / 4096.0;
        check.equal("requests", stats.requests as f64);
        check.equal("span_s", stats.span_ns as f64 / 1e9);
        check.equal("R", stats.read.requests as f64);
        check.equal("W", stats.write.requests as f64);
        check.equal("T", stats.trim.requests as f64);
        check.equal("F", stats.flushes as f64);
        check.equal("write_pct", stats.write_percent);
        check.equal("mean_w_kb", stats.write.length_bytes.mean / 1024.0);
        check.equal("mean_r_kb", stats.read.length_bytes.mean / 1024.0);
        check.equal("ua4", stats.unaligned[0].percent);
        check.equal("ua8", stats.unaligned[1].percent);
        check.equal("ua16", stats.unaligned[2].percent);
        check.equal("foot_all", stats.footprint.pages as f64);
        check.equal("foot_w", stats.footprint.pages_written as f64);
        check.equal("w_per_flush", stats.writes_per_flush);
        check.equal("trim_gb", stats.trim.bytes as f64 / 1e9);
        check.equal("trim_live_gb", stats.trimmed_live_bytes as f64 / 1e9);
        check.equal("written_gb", stats.write.bytes as f64 / 1e9);
        check.equal("read_gb", stats.read.bytes as f64 / 1e9);
        check.equal("dev_writes", stats.write.bytes as f64 / 8_589_934_592.0);
        check.equal("peak_live_pct", stats.live.pages_peak as f64 / device_pages * 100.0);
        check.equal("end_live_pct", stats.live.pages_end as f64 / device_pages * 100.0);
        check.equal("overwrite_pct", stats.overwrite_percent);
        check.equal("seqw_pct", stats.sequential_write_percent);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_the_traces_is_reproduced() {
    let Some((folder, table)) = published("traces/stats.json") else { return };
    let mut wrong = Vec::new();
    for (name, row) in table.as_object().expect("a table") {
        let stats = open(&folder, name);
        let mut check = Check { name, published: row, wrong: &mut wrong };
        check.equal("n", stats.requests as f64);
        check.equal("span_s", stats.span_ns as f64 / 1e9);
        // This table's write share is of all requests.
        check.equal("wr%", stats.write.requests as f64 / stats.requests as f64 * 100.0);
        check.equal("other", (stats.trim.requests + stats.flushes) as f64);
        if stats.write.requests > 0 {
            check.equal("mw_kB", stats.write.length_bytes.mean / 1024.0);
            check.equal("un4", stats.unaligned[0].percent);
            check.equal("un8", stats.unaligned[1].percent);
            check.equal("un16", stats.unaligned[2].percent);
            check.equal("unst4", stats.unaligned[0].start_percent);
            check.equal("unst8", stats.unaligned[1].start_percent);
            check.equal("unst16", stats.unaligned[2].start_percent);
        }
        if stats.read.requests > 0 {
            check.equal("mr_kB", stats.read.length_bytes.mean / 1024.0);
        }
        check.equal("fp4k", stats.footprint.pages as f64);
        check.equal("fpw4k", stats.footprint.pages_written as f64);
        // This table's GB and MB are powers of 1024.
        check.equal("maxoff_GB", stats.end_bytes as f64 / 1_073_741_824.0);
        check.equal("w_MB", stats.write.bytes as f64 / 1_048_576.0);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
