//! One drive, driven by hand: commands, their completions, power cuts.
//!
//! A run of [`Run`](crate::Run) does this for a whole workload. Here a program sends each command itself and decides
//! how far virtual time goes:
//!
//! - [`Drive::submit_with`] takes a command at a point in virtual time; the drive's events before that time must have
//!   run.
//! - [`Drive::run_to_completion`] runs events until a command has completed, [`Drive::run_until`] until a point in
//!   time.
//! - [`Drive::completions`] has what completed, [`Drive::read_data`] what reads brought, where the drive keeps
//!   contents.
//! - [`Drive::counters`] has what happened so far.
//!
//! # Power cuts
//!
//! [`Drive::power_cut`] leaves the chips as they are at that instant. [`Drive::recover`] makes a drive of them again.
//! What a flush or a FUA write covered is there afterwards; a later write may be there or not.
//!
//! ```
//! use ssdlab::Device;
//! use ssdlab::drive::{Contents, Data, Drive, Nanos, Op, Options, Request};
//!
//! /// Sends a request, waits for its completion and returns the data of a read.
//! fn run(drive: &mut Drive, op: Op, sector: u64, data: &[u8]) -> Vec<u8> {
//!     let sectors = if op == Op::Flush { 0 } else { 8 };
//!     let request = Request { at: drive.now(), ..Request::new(op, sector, sectors) };
//!     drive.submit_with(&request, Data::Bytes(data));
//!     assert!(drive.run_to_completion(Nanos::MAX), "the request completes");
//!     drive.completions().clear();
//!     drive.read_data().drain(..).flat_map(|(_, bytes)| bytes).collect()
//! }
//!
//! let config = Device::named("demo-tlc")?.config()?;
//! let options = Options { seed: 1, contents: Contents::Bytes };
//! let mut drive = Drive::new(&config, options)?;
//! run(&mut drive, Op::Write, 0, &[1; 4096]);
//! run(&mut drive, Op::Flush, 0, &[]);
//! run(&mut drive, Op::Write, 8, &[2; 4096]);
//!
//! let (mut drive, recovery) = Drive::recover(&config, options, drive.power_cut())?;
//! println!("recovery read {} pages in {}", recovery.pages_read, recovery.time);
//! assert_eq!(run(&mut drive, Op::Read, 0, &[]), [1; 4096], "a flush covered it");
//! assert_eq!(run(&mut drive, Op::Read, 8, &[]), [0; 4096], "it was in the write buffer");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[doc(inline)]
pub use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
#[doc(inline)]
pub use ssdlab_device::{
    Completion, Counters, Data, Description, DriveConfig, DriveError, OverProvisioning, Recovery, Status, Wear,
};
#[doc(inline)]
pub use ssdlab_device::{Drive, Options};
#[doc(inline)]
pub use ssdlab_flash::{Cause, Contents, OpCounts, OpKind};
