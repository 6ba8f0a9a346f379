//! The log of a simulated drive, as real drives keep one: what the paper's vSSD exposes its count of page programs by.
//!
//! As JSON it has the keys of `nvme smart-log`, of OCP's extended log and of `nvme id-ctrl`, so that the tools for those
//! read it, and an object `ssdlab` with what no real drive tells: programs by cause, and bytes to the byte.

use serde_json::{Map, Value, json};
use ssdlab_base::{Nanos, fnv1a};
use ssdlab_device::Drive;
use ssdlab_device::description::to_toml;
use ssdlab_flash::{Cause, Geometry, OpCounts, OpKind};

/// NVMe counts data in thousands of 512 bytes, rounded up.
const DATA_UNIT: u64 = 512_000;

/// What a simulated drive says of itself at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SmartLog {
    /// The drive's name.
    pub model: String,
    /// User capacity in bytes.
    pub capacity: u64,
    /// The drive's clock.
    pub now: Nanos,
    /// Its chips.
    pub geometry: Geometry,
    /// Commands completed: reads, writes.
    pub commands: (u64, u64),
    /// Bytes of those.
    pub host_bytes: (u64, u64),
    /// Flash operations by kind and cause.
    pub flash: OpCounts,
    /// Erases of the least worn block, on average, and of the most worn, over its whole life.
    pub erases: (u64, f64, u64),
    /// Erases a block is rated for, where the description says it.
    pub rated_erases: Option<u32>,
    /// Blocks gone bad since the factory.
    pub bad_blocks: u64,
    /// What tells drives of the same name and chips apart, where they are the drives of runs.
    pub individual: Option<u64>,
}

impl SmartLog {
    /// What a drive says of itself now.
    pub fn of(drive: &Drive) -> SmartLog {
        let (config, counters, wear) = (drive.config(), drive.counters(), drive.wear());
        SmartLog {
            model: config.name.clone(),
            capacity: config.user_bytes,
            now: drive.now(),
            geometry: config.flash.geometry,
            commands: (counters.commands[0], counters.commands[1]),
            host_bytes: (counters.bytes[0], counters.bytes[1]),
            flash: counters.flash,
            erases: (wear.min.into(), wear.mean, wear.max.into()),
            rated_erases: config.flash.faults.endurance,
            bad_blocks: counters.grown_bad_blocks,
            individual: None,
        }
    }

    /// The log of a run's drive: with another configuration or seed it is another drive. A served drive is its image, whatever
    /// it is started with.
    pub fn of_run(drive: &Drive, seed: u64) -> SmartLog {
        let individual = fnv1a(to_toml(drive.config()).bytes().chain(seed.to_le_bytes()));
        SmartLog { individual: Some(individual), ..SmartLog::of(drive) }
    }

    /// Pages programmed for a cause, copybacks among them.
    pub fn programs(&self, cause: Cause) -> u64 {
        self.flash.get(OpKind::Program, cause) + self.flash.get(OpKind::Copyback, cause)
    }

    /// Pages programmed: the paper's `N_page_real`.
    pub fn pages_programmed(&self) -> u64 {
        Cause::ALL.iter().map(|&cause| self.programs(cause)).sum()
    }

    /// Bytes written to the chips.
    pub fn media_bytes_written(&self) -> u64 {
        self.pages_programmed() * u64::from(self.geometry.page_bytes)
    }

    /// Percent of the blocks beyond the user's that have not gone bad, rounded down.
    pub fn spare_percent(&self) -> u64 {
        let block_bytes = u64::from(self.geometry.pages_per_block) * u64::from(self.geometry.page_bytes);
        let user_blocks = self.capacity.div_ceil(block_bytes.max(1));
        let spare_blocks = u64::from(self.geometry.blocks()).saturating_sub(user_blocks).max(1);
        100 - (self.bad_blocks * 100).div_ceil(spare_blocks).min(100)
    }

    /// A serial number: two drives of one name have different ones if their chips or capacities differ, and those of runs if
    /// anything in their configurations does.
    fn serial(&self) -> String {
        let chips = &self.geometry;
        let numbers = [
            self.capacity,
            chips.channels.into(),
            chips.chips_per_channel.into(),
            chips.dies_per_chip.into(),
            chips.planes_per_die.into(),
            chips.blocks_per_plane.into(),
            chips.pages_per_block.into(),
            chips.page_bytes.into(),
        ];
        let hash = fnv1a(numbers.into_iter().chain(self.individual).flat_map(u64::to_le_bytes));
        format!("SSDLAB-{}-{:08x}", self.model, hash >> 32)
    }

    /// The log as one JSON document.
    pub fn to_json(&self) -> Value {
        let media_read = self.flash.total(OpKind::Read) * u64::from(self.geometry.page_bytes);
        let wide = |bytes: u64| json!({ "hi": 0, "lo": bytes });
        let (least, mean, most) = self.erases;
        let mut log = Map::new();
        let mut set = |key: &str, value: Value| drop(log.insert(key.to_string(), value));
        set("sn", json!(self.serial()));
        set("mn", json!(self.model));
        set("tnvmcap", json!(self.capacity));
        set("critical_warning", json!(0));
        set("avail_spare", json!(self.spare_percent()));
        if let Some(rated) = self.rated_erases.filter(|&rated| rated > 0) {
            set("percent_used", json!((mean * 100.0 / f64::from(rated)).floor().min(255.0) as u64));
        }
        set("data_units_read", json!(self.host_bytes.0.div_ceil(DATA_UNIT)));
        set("data_units_written", json!(self.host_bytes.1.div_ceil(DATA_UNIT)));
        set("host_read_commands", json!(self.commands.0));
        set("host_write_commands", json!(self.commands.1));
        set("power_on_hours", json!(self.now.0 / 3_600_000_000_000));
        set("Physical media units written", wide(self.media_bytes_written()));
        set("Physical media units read", wide(media_read));
        set("Bad user nand blocks - Raw", json!(self.bad_blocks));
        if let Some(rated) = self.rated_erases {
            set("Endurance estimate", wide(self.geometry.bytes().saturating_mul(rated.into())));
        }
        set("Max User data erase counts", json!(most));
        set("Min User data erase counts", json!(least));
        set("Nand avg erase count", json!(mean as u64));
        let by_cause = |count: &dyn Fn(Cause) -> u64| -> Map<String, Value> {
            Cause::ALL.iter().map(|&cause| (cause.key().to_string(), json!(count(cause)))).collect()
        };
        set(
            "ssdlab",
            json!({
                "format": 1,
                "virtual_time_ns": self.now.0,
                "host_bytes_read": self.host_bytes.0,
                "host_bytes_written": self.host_bytes.1,
                "media_bytes_written": self.media_bytes_written(),
                "pages_programmed": self.pages_programmed(),
                "pages_programmed_by_cause": by_cause(&|cause| self.programs(cause)),
                "erases": self.flash.total(OpKind::Erase),
                "erases_by_cause": by_cause(&|cause| self.flash.get(OpKind::Erase, cause)),
                "erases_mean": mean,
                "rated_erases": self.rated_erases,
            }),
        );
        Value::Object(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive_log::{Snapshot, compare};

    fn log(host: u64, pages: [u64; 2], now: u64) -> SmartLog {
        let mut flash = OpCounts::default();
        flash.0[OpKind::Program as usize][Cause::Host as usize] = pages[0];
        flash.0[OpKind::Program as usize][Cause::Gc as usize] = pages[1];
        flash.0[OpKind::Copyback as usize][Cause::Gc as usize] = pages[1];
        SmartLog {
            model: "toy".to_string(),
            capacity: 1 << 30,
            now: Nanos(now),
            geometry: Geometry {
                channels: 2,
                chips_per_channel: 1,
                dies_per_chip: 1,
                planes_per_die: 1,
                blocks_per_plane: 600,
                pages_per_block: 256,
                page_bytes: 4096,
                oob_bytes: 0,
            },
            commands: (0, host / 4096),
            host_bytes: (0, host),
            flash,
            erases: (9, 12.5, 25),
            rated_erases: Some(50),
            bad_blocks: 44,
            individual: None,
        }
    }

    /// Images keep the serial numbers that they have had.
    #[test]
    fn the_serial_number_of_a_drive_of_a_run_depends_on_more_than_that_of_an_image() {
        let image = log(0, [0, 0], 0);
        assert_eq!(image.serial(), "SSDLAB-toy-e9c71ea0");
        let of_run = |individual| SmartLog { individual: Some(individual), ..image.clone() }.serial();
        assert!(of_run(1) != image.serial() && of_run(1) != of_run(2));
    }

    #[test]
    fn the_log_is_read_back_as_a_drive_s_and_gives_the_exact_amplification() {
        let read = |log: &SmartLog| Snapshot::parse("x", &log.to_json().to_string()).expect("our own log");
        let before = read(&log(4096 * 10, [10, 3], 5_000_000_000));
        let after = read(&log(4096 * 110, [110, 28], 9_000_000_000));
        assert_eq!(before.logs, ["nvme smart-log", "nvme ocp smart-add-log", "nvme id-ctrl", "ssdlab"]);
        assert_eq!(before.percent_used, Some(25.0));
        // 1200 blocks, 1024 of them the user's, 44 of the other 176 bad.
        assert_eq!(before.spare_percent, Some(75));
        let report = compare(&before, &after).expect("one drive");
        let amplification = report.amplification.expect("both are told");
        assert_eq!((amplification.value, amplification.least, amplification.most), (1.5, 1.5, 1.5));
        assert_eq!(report.elapsed.map(|elapsed| elapsed.seconds), Some(4.0));
        // 1200 blocks of a mebibyte take 50 erases each; the most worn block has had twice the mean.
        let lifetime = report.lifetime.expect("an endurance is stated");
        assert_eq!(lifetime.written_bytes, 50.0 * 1200.0 * 1_048_576.0 / 1.5);
        assert_eq!(lifetime.worst_written_bytes, Some(lifetime.written_bytes / 2.0));
        let years = lifetime.written_bytes / (4096.0 * 100.0 / 4.0) / 31_557_600.0;
        assert!((lifetime.years.expect("a rate") / years - 1.0).abs() < 1e-12);
        assert!((lifetime.drive_writes_per_day - lifetime.written_bytes / (1 << 30) as f64 / 1826.25).abs() < 1e-12);
    }
}
