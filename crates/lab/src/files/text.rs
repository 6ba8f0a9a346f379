//! The table of a file run on a simulated drive: that of a run in a directory, then what the file system and the drive did.

use std::fmt;

use ssdlab_base::{Nanos, format_size};

use super::result::DeviceFilesResult;
use crate::jobs;
use crate::text::percent;

fn grouped(number: u64) -> String {
    ssdlab_base::grouped(&number.to_string(), ',')
}

impl fmt::Display for DeviceFilesResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fs = &self.file_system;
        let names: Vec<&str> = self.drives.iter().map(|drive| drive.name.as_str()).collect();
        write!(f, "on {} on {}: {}", fs.kind, names.join(", "), self.run)?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, value: String| writeln!(f, "{name:<22} {value}");
        writeln!(f)?;
        let (written, capacity) = (&fs.written_bytes, &fs.capacity);
        let share = |bytes: u64| percent(bytes as f64 / capacity.user_bytes.max(1) as f64);
        let used = format!(
            "{} of {} at the start, {} at the end",
            share(capacity.used_bytes_before),
            format_size(capacity.user_bytes),
            share(capacity.used_bytes)
        );
        row(f, "file system", used)?;
        let kinds = [
            ("data", written.data),
            ("cleaning", written.cleaning),
            ("directories", written.directory),
            ("nodes", written.node),
            ("inode map", written.inode_map),
            ("TIMB", written.timb),
            ("usage", written.usage),
            ("check-points", written.checkpoint),
            ("journal", written.journal),
            ("blocks at their places", written.home),
            ("summaries", written.summary),
            ("padding", written.padding),
        ];
        let parts: Vec<String> = kinds
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(name, bytes)| format!("{name} {}", percent(*bytes as f64 / written.total.max(1) as f64)))
            .collect();
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        row(f, "written to the drive", format!("{}{parts}", format_size(written.total)))?;
        let ratio = |ratio: Option<f64>| ratio.map_or("-".to_string(), |ratio| format!("{ratio:.3}"));
        let amplification = &fs.write_amplification;
        let text = format!(
            "{} by the file system ({} by cleaning alone), {} by the drive, {} in all",
            ratio(amplification.total),
            ratio(amplification.cleaning),
            ratio(amplification.drive),
            ratio(amplification.all)
        );
        row(f, "write amplification", text)?;
        let cleaning = &fs.cleaning;
        if cleaning.segments + cleaning.map_segments > 0 {
            let valid = cleaning.valid_share.map_or(String::new(), |share| format!(", {} valid", percent(share)));
            let text = format!(
                "{} segments{valid}, {} blocks of files copied; {} segments of the inode map",
                grouped(cleaning.segments),
                grouped(cleaning.copied_data_blocks),
                grouped(cleaning.map_segments)
            );
            row(f, "cleaned", text)?;
        }
        let points = &fs.checkpoints;
        let mut text = grouped(points.count);
        if let Some(blocks) = points.timb_blocks_each {
            text.push_str(&format!(", with {blocks:.1} TIMB blocks each"));
        }
        if points.rolled_fsyncs > 0 {
            text.push_str(&format!("; {} fsyncs wrote nodes in place of one", grouped(points.rolled_fsyncs)));
        }
        row(f, "check-points", text)?;
        let calls = &fs.calls;
        if calls.waited_for_write_out + calls.waited_for_room > 0 {
            let text = format!(
                "{} calls, since much was dirty; {}, since no segment was free",
                grouped(calls.waited_for_write_out),
                grouped(calls.waited_for_room)
            );
            row(f, "waited", text)?;
        }
        let cache = &fs.cache;
        let hits = cache.hit_ratio.map_or(String::new(), |ratio| {
            format!(" ({} of the blocks of reads were in the cache, read-ahead included)", percent(ratio))
        });
        row(f, "read from the drive", format!("{}{hits}", format_size(fs.read_bytes)))?;
        let host = &fs.host_time;
        let text = format!("{} a call, {} for 4 KiB copied", Nanos(host.call_ns), Nanos(host.copy_ns));
        row(f, "host time", format!("{text}; {} in all", Nanos(host.total_ns)))?;
        row(f, "last sync", Nanos(fs.sync_ns).to_string())?;
        let memory = &fs.memory;
        let tables = memory.timb_bytes + memory.segment_bytes + memory.summary_bytes;
        row(f, "memory", format!("{} of tables, {} of cache", format_size(tables), format_size(memory.cache_bytes)))?;
        for drive in &self.drives {
            let flash = &drive.flash;
            let text = format!(
                "{} pages programmed, {} read, {} blocks erased",
                grouped(flash.programs.total),
                grouped(flash.reads.total),
                grouped(flash.erases.total)
            );
            row(f, "flash", text)?;
        }
        if !self.jobs.is_empty() {
            f.write_str(&jobs::render(&self.run.personality, true, &self.jobs))?;
        }
        let of_drives = self.drives.iter().flat_map(|drive| &drive.checks);
        let all: Vec<_> = self.checks.iter().chain(of_drives).collect();
        let broken: Vec<_> = all.iter().filter(|check| !check.passed).collect();
        match broken.is_empty() {
            true => writeln!(f, "\nall {} invariants hold", all.len())?,
            false => broken.iter().try_for_each(|check| writeln!(f, "\nBROKEN: {}: {}", check.name, check.detail))?,
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}
