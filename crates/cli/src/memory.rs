//! `--memory`: what a command may take is settled before it takes it.

use std::path::Path;

use ssdlab_base::{format_size, parse_size};
use ssdlab_device::{Drive, DriveConfig};
use ssdlab_host::Host;
use ssdlab_lab::Memory;
use ssdlab_lab::memory::{BESIDES, Part};

use crate::failure::Failure;

/// Where a machine does not say what it has.
const OTHERWISE: u64 = 4 << 30;

/// Memory that a command may take, and who says so.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// In bytes.
    pub(crate) bytes: u64,
    why: String,
}

/// As `--memory` has it; by default three quarters of what the machine, or the control group, has available.
pub(crate) fn allowed(option: Option<&str>) -> Result<Allowed, Failure> {
    if let Some(text) = option {
        let bytes = parse_size(text).map_err(|error| Failure::input(format!("--memory: {error}")))?;
        return Ok(Allowed { bytes, why: format!("--memory {text}") });
    }
    let of_machine = available(&read("/proc/meminfo"));
    let of_group = in_group(&read("/proc/self/cgroup"), |file| read(Path::new("/sys/fs/cgroup").join(file)));
    let shared = |bytes: u64, whose: &str| Allowed {
        bytes: bytes / 4 * 3,
        why: format!("three quarters of the {} that {whose} has available", format_size(bytes)),
    };
    Ok(match (of_machine, of_group) {
        (Some(machine), Some(group)) if group < machine => shared(group, "the control group"),
        (None, Some(group)) => shared(group, "the control group"),
        (Some(machine), _) => shared(machine, "the machine"),
        (None, None) => Allowed { bytes: OTHERWISE, why: "the machine does not say what is available".to_string() },
    })
}

/// A file of the system's; empty where it cannot be read.
fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// What `/proc/meminfo` says can be taken without swapping.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What the limits of the process's control group (version 2) and of those above it leave.
fn in_group(groups: &str, read: impl Fn(&Path) -> String) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let number = |file: &Path| read(file).trim().parse::<u64>().ok();
    let left = Path::new(own).ancestors().filter_map(|group| {
        let limit = number(&group.join("memory.max"))?;
        Some(limit.saturating_sub(number(&group.join("memory.current")).unwrap_or(0)))
    });
    left.min()
}

impl Allowed {
    /// Refuses what takes more: `what` is said to take `bytes`, `hints` are what would fit.
    pub(crate) fn check(&self, what: &str, bytes: u64, hints: Vec<String>) -> Result<(), Failure> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let sentence = format!(
            "{what} needs up to {} of memory, more than the limit of {} ({})",
            format_size(bytes),
            format_size(self.bytes),
            self.why
        );
        let more = format!("--memory {}m allows it", bytes.div_ceil(1 << 20));
        Err(Failure::input(sentence).hint(hints.into_iter().chain([more]).collect::<Vec<_>>().join("; ")))
    }

    /// Refuses a host with a layer that alone takes more, with the place in its description.
    pub(crate) fn check_host(&self, host: &Host) -> Result<(), Failure> {
        for (place, key, bytes) in host.memory() {
            self.check(&format!("{place}: {key}: the layer"), bytes, vec![format!("a smaller {key} takes less")])?;
        }
        Ok(())
    }

    /// Refuses served drives and a host above them, whose contents are in images; how many bytes they leave.
    pub(crate) fn check_served(&self, drives: &[DriveConfig], host: &Host) -> Result<u64, Failure> {
        self.check_host(host)?;
        let bytes = |config: &DriveConfig| Drive::simulator_bytes_on_image(config);
        let mut served = BESIDES.saturating_add(host.memory_bytes());
        for config in drives {
            served = served.saturating_add(bytes(config).map_err(Failure::input)?);
        }
        match drives {
            [config] => {
                let fits = |config: &DriveConfig| bytes(config).is_ok_and(|bytes| bytes + BESIDES <= self.bytes);
                let hints = what_fits(config, fits).into_iter().collect();
                self.check(&format!("{}: the served drive", config.name), served, hints)?;
            }
            _ => self.check(&format!("the {} served drives", drives.len()), served, Vec::new())?,
        }
        Ok(self.bytes.saturating_sub(served))
    }

    /// Refuses a run of which one drive alone would take more, with what would fit.
    pub(crate) fn check_run(&self, drives: &[(&DriveConfig, Memory)]) -> Result<(), Failure> {
        for (config, memory) in drives {
            let verified = memory.expected > 0;
            let mut parts = Vec::new();
            if verified {
                parts.push(format!("{} for its tables and stamps", format_size(memory.drive)));
                parts.push(format!("{} for what is expected", format_size(memory.expected)));
            } else if !memory.parts.is_empty() {
                parts.push(format!("{} for its tables", format_size(memory.drive)));
            }
            parts.extend(
                memory.parts.iter().map(|(part, bytes)| format!("{} for {}", format_size(*bytes), named(*part))),
            );
            let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
            let total = memory.total().saturating_add(BESIDES);
            let mut hints = Vec::new();
            if verified {
                let drive = Memory::of(&memory.label, config, false).map_or(0, |memory| memory.total());
                let parts: u64 = memory.parts.iter().map(|(_, bytes)| bytes).sum();
                let plain = drive.saturating_add(parts).saturating_add(BESIDES);
                let fits = if plain <= self.bytes { "takes" } else { "still takes" };
                hints.push(format!("without --verify it {fits} {}", format_size(plain)));
            }
            // What matters is worth a word.
            let large = memory.parts.iter().filter(|(_, bytes)| *bytes > total / 8);
            hints.extend(large.map(|(part, bytes)| less(*part, total - bytes)));
            if memory.drive.saturating_add(memory.expected).saturating_add(BESIDES) > self.bytes {
                let fits = |config: &DriveConfig| {
                    Memory::of("", config, verified).is_ok_and(|memory| memory.total() + BESIDES <= self.bytes)
                };
                hints.extend(what_fits(config, fits));
            }
            self.check(&format!("{}: the run{parts}", memory.label), total, hints)?;
        }
        Ok(())
    }
}

/// What a part of a run's memory is for.
fn named(part: Part) -> String {
    match part {
        Part::InFlight(requests) => format!("{requests} requests in flight"),
        Part::RandomMaps => "random maps".to_string(),
        Part::Workload => "tables of the workload".to_string(),
        Part::Slowest(requests) => format!("the {requests} slowest requests"),
        Part::Timeline => "the timeline".to_string(),
        Part::Cache => "the cache of the file system".to_string(),
        Part::Metadata => "its metadata".to_string(),
        Part::Check => "the check at its end".to_string(),
        Part::Layers => "the host's layers".to_string(),
    }
}

/// What takes less than this part, without which a run takes `rest`.
fn less(part: Part, rest: u64) -> String {
    let rest = format_size(rest);
    match part {
        Part::InFlight(_) => "a lower iodepth or numjobs takes less".to_string(),
        Part::RandomMaps => format!("with norandommap, or one block size, it takes {rest}; fewer jobs take less"),
        Part::Workload => "fewer jobs, a lower iodepth, or larger zones take less".to_string(),
        Part::Slowest(_) => "fewer of the slowest requests (--slowest) take less".to_string(),
        Part::Timeline => format!("without --timeline-interval it takes {rest}"),
        Part::Cache => "a smaller cache (--fs-set cache=...) takes less".to_string(),
        Part::Metadata => "fewer or smaller files take less".to_string(),
        Part::Check => format!("with --no-check it takes {rest}"),
        Part::Layers => {
            format!("without the host's layers it takes {rest}, and a smaller ram of page-cache takes less")
        }
    }
}

/// The largest drive of this kind that `fits`, as its keys have it; nothing where not even one with a block in sixty-four is.
pub(crate) fn what_fits(config: &DriveConfig, fits: impl Fn(&DriveConfig) -> bool) -> Option<String> {
    let whole = config.flash.geometry.blocks_per_plane;
    let of = |blocks: u32| {
        let mut smaller = config.clone();
        smaller.flash.geometry.blocks_per_plane = blocks;
        let share = u128::from(config.user_bytes) * u128::from(blocks) / u128::from(whole);
        smaller.user_bytes = u64::try_from(share).unwrap_or(u64::MAX);
        smaller.user_bytes -= smaller.user_bytes % u64::from(config.ftl.mapping_unit);
        smaller
    };
    let (mut good, mut bad) = (whole / 64, whole);
    if good == 0 || !fits(&of(good)) {
        return None;
    }
    while bad - good > whole / 64 {
        let middle = good + (bad - good) / 2;
        if fits(&of(middle)) { good = middle } else { bad = middle }
    }
    let user = format_size(of(good).user_bytes);
    Some(format!("a drive of its kind with {good} blocks a plane (flash.blocks_per_plane, of {whole}) and {user} fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_has_is_read_in_kibibytes() {
        let meminfo = "MemTotal:       24000000 kB\nMemFree:          100 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(available(meminfo), Some(20_000_000 * 1024));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available(""), None);
    }

    #[test]
    fn the_tightest_of_a_group_and_those_above_it_counts() {
        let files = |file: &Path| match file.to_str() {
            Some("a/b/memory.max") => "max\n".to_string(),
            Some("a/memory.max") => "1000\n".to_string(),
            Some("a/memory.current") => "300\n".to_string(),
            Some("memory.max") => "5000\n".to_string(),
            _ => String::new(),
        };
        assert_eq!(in_group("1:cpu:/x\n0::/a/b\n", files), Some(700));
        assert_eq!(in_group("0::/elsewhere\n", |_| String::new()), None);
        assert_eq!(in_group("4:memory:/a\n", files), None);
    }

    #[test]
    fn the_option_goes_before_what_the_machine_says() {
        assert_eq!(allowed(Some("2g")).map(|allowed| allowed.bytes).ok(), Some(2 << 30));
        assert_eq!(allowed(Some("2GB")).map(|allowed| allowed.bytes).ok(), Some(2_000_000_000));
        assert!(allowed(Some("2gb")).is_err_and(|error| error.to_string().contains("two readings")));
        assert!(allowed(None).is_ok_and(|allowed| allowed.bytes > 0));
    }
}
