//! Simulated solid-state drives: describe one, run a workload on it, and read where time, writes and wear went.
//!
//! This crate is the command `ssdlab` for programs, by the same names: [`Device`] is `--device`, [`Run`] is
//! `ssdlab run`, and each of its methods is an option.
//!
//! ```
//! use ssdlab::{Device, Run};
//!
//! // A drive that ships, made small so that it is soon in its steady state.
//! let small = Device::named("demo-slc")?.set("flash.blocks_per_plane=64")?;
//! let device = small.set("capacity.over_provisioning=14%")?;
//! // A line of fio's options; a path would be a job file or a trace.
//! let workload = "rw=randwrite,bs=4k,iodepth=32,io_size=100%,norandommap";
//! let result = Run::new(device, workload).precondition("steady").run()?;
//!
//! println!("{result}"); // the table of `ssdlab run`
//! let drive = &result.devices[0];
//! let amplification = drive.write_amplification.as_ref().ok_or("nothing was written")?;
//! println!("write amplification {:.3}", amplification.total);
//! println!("of it, by cause: {:?}", amplification.by_cause);
//! println!("{:.0} writes a second", drive.throughput.write_iops);
//! println!("p99.9 {:?} ns", drive.latency_ns.write.map(|write| write.p999));
//! assert!(result.checks_held(), "an invariant does not hold: {:?}", drive.checks);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One seed gives one result, to the nanosecond, on any machine.
//!
//! # The life of a drive
//!
//! 1. **Description.** A drive is a text of TOML that reads like a datasheet. [`Device`] takes one that ships, a file,
//!    or a text, and [`Device::set`] changes keys. [`Device::config`] fills in every default, or says all that is
//!    wrong.
//! 2. **From the factory.** [`Drive::new`](drive::Drive::new) makes the drive: every block is erased, nothing is
//!    mapped, and virtual time is 0.
//! 3. **Preconditioning.** A fresh drive writes without garbage collection, so it says little. [`Run::precondition`]
//!    writes to it until it is full, or until its write amplification is steady. This takes no virtual time. Afterwards
//!    clock and counters are at zero; data, map and wear stay. A [`SnapshotCache`] keeps the drive for the next run.
//! 4. **Commands.** A command arrives at a point in virtual time. The controller decides where its data goes, changes
//!    the map and queues flash operations; then the chips take their time, and the command completes. Virtual time
//!    jumps from event to event. Where free blocks run short, the drive collects garbage; a [policy] chooses the block.
//!    Each flash operation has a [cause](drive::Cause), and write amplification is the sum over causes.
//! 5. **Flush.** A write completes when it is in the write buffer, if the drive has one. A flush, or a FUA write,
//!    completes when the data is on flash.
//! 6. **Power cut.** [`Drive::power_cut`](drive::Drive::power_cut) takes the drive and leaves its chips. What was in
//!    flight is torn, RAM is lost. [`Drive::recover`](drive::Drive::recover) finds everything again from flash alone,
//!    and says how long that takes. What a flush covered is there ([an example](drive#power-cuts)).
//! 7. **End of life.** Blocks wear out, or fail by chance or by a script (`flash.faults`). The drive retires them, and
//!    becomes [read-only](drive::Drive::is_read_only) when it has none left to write to.
//!
//! A [`Run`] goes through steps 1 to 4 and ends with the invariants of the drive, each a [`Check`](results::Check) of
//! the result.
//!
//! # Index
//!
//! | to | use |
//! | --- | --- |
//! | name a drive, read or change its description | [`Device`], [`shipped::DRIVES`] |
//! | run a trace, a job or a generator on one drive or several | [`Run`] |
//! | compare drives, designs or settings | [`Run::device`], [`Device::set`], [`Device::label`] |
//! | vary keys, repeat with other seeds | [`Run::vary`], [`Run::repeat`] |
//! | bring drives to a state first, and keep them | [`Run::precondition`], [`Run::snapshots`], [`SnapshotCache`] |
//! | say when a trace's requests are sent, fit it onto a drive | [`Run::replay`], [`Run::fit`], [`Run::wrap`], [`Run::limit`] |
//! | put a page cache, a scheduler, a stripe or a driver above drives | [`Run::host`], [`host`] |
//! | check every read | [`Run::verify`] |
//! | read numbers: latency, write amplification by cause, wear | [`results::RunResult`], [`results::DeviceResult`] |
//! | see what requests waited for | [`Run::latency_breakdown`], [`results::LatencyBreakdown`] |
//! | write tables, `result.json`, CSV, Parquet, a report | [`Run::out`], [`results`] |
//! | show progress, stop early | [`Run::progress`], [`Run::stop`], [`Progress`], [`Phase`] |
//! | add a victim, buffer or placement policy | [`policy`] |
//! | send commands one by one, cut the power | [`drive`] |
//! | send requests of a generator of one's own | `lab::WorkloadSource`, `lab::Experiment` |
//!
//! What is not here is in the crates that this one stands on, from the top: `lab` (experiments, results, reports), `fs`
//! (file systems), `workload` (traces, jobs, models), [`host`] (layers above drives), `disk` (hard disks), `device`
//! (the controller), `flash` (the chips), `base` (time, sizes, requests). Power cuts by the thousand, with faults, are
//! the command's: `ssdlab torture`.

pub use ssdlab_base as base;
pub use ssdlab_device as device;
pub use ssdlab_disk as disk;
pub use ssdlab_flash as flash;
pub use ssdlab_fs as fs;
pub use ssdlab_lab as lab;
pub use ssdlab_workload as workload;

mod described;
pub mod drive;
mod error;
pub mod host;
pub mod policy;
pub mod results;
mod run;
pub mod shipped;
pub mod variants;

pub use described::Device;
pub use error::{DeviceError, Error};
pub use results::RunResult;
pub use run::Run;
#[doc(inline)]
pub use ssdlab_lab::{NoProgress, Phase, Progress, SnapshotCache};

/// The lines of Rust on pages of the documentation, compiled.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/rust.md")]
    struct Rust;
}
