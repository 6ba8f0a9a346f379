//! A placement policy of one's own: the first eighth of the addresses, where a file system has its journal, in a stream apart.

use std::sync::atomic::AtomicBool;

use ssdlab_device::{Description, DriveConfig, Entry, PlacementPolicy, WrittenUnit, register_placement};
use ssdlab_lab::{Control, DeviceUnderTest, Experiment, NoProgress, Preconditioning, ReplayOptions, TextSource, table};

struct Journal(u32);

impl PlacementPolicy for Journal {
    fn name(&self) -> &'static str {
        "journal"
    }

    fn stream(&self, unit: &WrittenUnit) -> u16 {
        u16::from(unit.lpn.0 < self.0)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let make = |config: &DriveConfig| -> Box<dyn PlacementPolicy> { Box::new(Journal(config.user_units() / 8)) };
    register_placement(Entry { name: "journal", summary: "the first eighth apart", keys: &[], make })?;
    let drive = |policy: &str| -> Result<DeviceUnderTest, Box<dyn std::error::Error>> {
        let mut description = Description::load("devices/demo-slc.toml".as_ref())?;
        // An eighth of the drive.
        let small = ["flash.blocks_per_plane=144", "capacity.user=1g"];
        let shared = ["ftl.streams=2", "ftl.separate_gc_frontier=false", "gc.victim=cost-benefit"];
        small.iter().chain(&shared).try_for_each(|set| description.set(set))?;
        description.set(&format!("placement.policy={policy}"))?;
        Ok(DeviceUnderTest { label: policy.to_string(), config: description.resolve()? })
    };
    let drives = [drive("stream-hint")?, drive("journal")?];
    let skewed = "rw=randwrite,bs=4k,iodepth=32,number_ios=50000,random_distribution=zoned:90/12.5:10/87.5";
    let workload = TextSource::open(skewed, ReplayOptions::default(), 1)?;
    let experiment = Experiment { preconditioning: Preconditioning::Steady, ..Experiment::new(&drives, &workload) };
    let stop = AtomicBool::new(false);
    println!("{}", table::render(&ssdlab_lab::run(&experiment, None, &Control::new(&stop, &NoProgress))?));
    Ok(())
}
