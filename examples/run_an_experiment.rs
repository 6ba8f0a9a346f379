//! Runs random writes on a shipped drive in its steady state, and prints the table that `ssdlab run` prints.

use std::sync::atomic::AtomicBool;

use ssdlab_device::Description;
use ssdlab_lab::{Control, DeviceUnderTest, Experiment, NoProgress, Preconditioning, ReplayOptions, TextSource, table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut description = Description::load("devices/demo-slc.toml".as_ref())?;
    description.set("gc.victim=cost-benefit")?;
    let drives = [DeviceUnderTest { label: "demo-slc".to_string(), config: description.resolve()? }];

    // A line of fio's options; a path would be a job file or a trace.
    let workload = TextSource::open("rw=randwrite,bs=4k,iodepth=32,number_ios=50000", ReplayOptions::default(), 1)?;
    let experiment = Experiment { preconditioning: Preconditioning::Steady, ..Experiment::new(&drives, &workload) };
    let stop = AtomicBool::new(false);
    let result = ssdlab_lab::run(&experiment, None, &Control::new(&stop, &NoProgress))?;

    println!("{}", table::render(&result));
    for check in result.devices.iter().flat_map(|device| &device.checks) {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    Ok(())
}
