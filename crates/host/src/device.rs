//! What takes requests at points in virtual time and completes them.

use ssdlab_base::{Nanos, Request};
use ssdlab_device::{Completion, Data, Drive};

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
    fn completions(&mut self) -> &mut Vec<Completion>;

    /// Tags and bytes of completed reads, where contents are kept; the caller clears it.
    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)>;

    /// Whether `sector` holds data, and the first sector up to `end` from which on that is different.
    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64);

    /// The drive at the bottom.
    fn drive(&self) -> &Drive;

    /// The same, to change.
    fn drive_mut(&mut self) -> &mut Drive;
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

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        Drive::read_data(self)
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        Drive::mapped_run(self, sector, end)
    }

    fn drive(&self) -> &Drive {
        self
    }

    fn drive_mut(&mut self) -> &mut Drive {
        self
    }
}
