//! What takes requests at points in virtual time and completes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ssdlab_base::{Nanos, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Completion, Data, Drive};

/// Requests and their bytes by kind: reads, writes, trims (write zeroes among them), flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// How many.
    pub requests: [u64; 4],
    /// Their bytes.
    pub bytes: [u64; 4],
}

impl Traffic {
    /// Counts one.
    pub fn add(&mut self, request: &Request) {
        let kind = request.op.class();
        self.requests[kind] += 1;
        self.bytes[kind] += request.bytes();
    }
}

/// What a room did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomFigures {
    /// Its kind, as descriptions name it.
    pub kind: String,
    /// Its settings, as descriptions say them, everything filled in.
    pub configuration: BTreeMap<String, String>,
    /// Requests that it took from above.
    pub taken: Traffic,
    /// Requests that it sent to the device below.
    pub sent: Traffic,
    /// Counts of its own.
    pub figures: BTreeMap<String, f64>,
}

/// A drive, or host software above one.
pub trait BlockDevice: Send {
    /// Capacity in sectors of 512 bytes.
    fn sectors(&self) -> u64;

    /// Virtual time.
    fn now(&self) -> Nanos;

    /// Takes a request at `request.at`; events before that time must have run. Data goes with writes.
    fn submit(&mut self, request: &Request, data: Data<'_>);

    /// When something happens next; `None` when nothing will.
    fn next_event(&self) -> Option<Nanos>;

    /// Runs every event up to and including `until`; virtual time is `until` then.
    fn run_until(&mut self, until: Nanos);

    /// Runs events up to `until` but stops as soon as a completion is there; true if one is.
    fn run_to_completion(&mut self, until: Nanos) -> bool;

    /// Requests submitted and not completed.
    fn outstanding(&self) -> u64;

    /// Completions since the last drain; the caller clears it.
    ///
    /// They are numbered in the order in which they took effect, in steps of [`order_stride`](BlockDevice::order_stride).
    fn completions(&mut self) -> &mut Vec<Completion>;

    /// Moves the paths of the completions since the last call to the end of `to`, in the same order; nothing where they
    /// are not recorded. A layer puts its own time before what the device below says.
    fn take_paths(&mut self, to: &mut Vec<Path>);

    /// Tags and bytes of completed reads, where contents are kept; the caller clears it.
    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)>;

    /// Whether `sector` holds data, and the first sector up to `end` from which on that is different.
    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64);

    /// Requests whose [`Completion::order`] lies in the same multiple of this took effect in one step of the drive's, and
    /// complete together; steps have no gaps. 1 for a drive.
    fn order_stride(&self) -> u64;

    /// What the rooms have done up to now, the topmost first; nothing for a drive.
    fn rooms(&self) -> Vec<RoomFigures>;

    /// The drive at the bottom.
    fn drive(&self) -> &Drive;

    /// The same, to change.
    fn drive_mut(&mut self) -> &mut Drive;

    /// The same, without the rooms, which must be at rest.
    fn into_drive(self: Box<Self>) -> Drive;
}

impl BlockDevice for Drive {
    fn sectors(&self) -> u64 {
        self.user_sectors()
    }

    fn now(&self) -> Nanos {
        Drive::now(self)
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.submit_with(request, data);
    }

    fn next_event(&self) -> Option<Nanos> {
        Drive::next_event(self)
    }

    fn run_until(&mut self, until: Nanos) {
        Drive::run_until(self, until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        Drive::run_to_completion(self, until)
    }

    fn outstanding(&self) -> u64 {
        Drive::outstanding(self)
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        Drive::completions(self)
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        Drive::take_paths(self, to);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        Drive::read_data(self)
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        Drive::mapped_run(self, sector, end)
    }

    fn order_stride(&self) -> u64 {
        1
    }

    fn rooms(&self) -> Vec<RoomFigures> {
        Vec::new()
    }

    fn drive(&self) -> &Drive {
        self
    }

    fn drive_mut(&mut self) -> &mut Drive {
        self
    }

    fn into_drive(self: Box<Self>) -> Drive {
        *self
    }
}
