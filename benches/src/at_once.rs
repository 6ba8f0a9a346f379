//! A device that answers each command at once and does nothing: what a layer above it takes is the layer's own.

use ssdlab_base::command_sets::shrd::SHRD;
use ssdlab_base::{CommandSet, Nanos, Request};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Completion, Data, Drive, Payload, Status};
use ssdlab_host::{Administration, Again, BlockDevice, Identity, LayerMetrics, Loss, Member, Part, Power, Traffic};

/// It knows the commands of the set `shrd`.
#[derive(Debug, Default)]
pub(crate) struct AtOnce {
    sectors: u64,
    log_sectors: u64,
    now: Nanos,
    order: u64,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
}

impl AtOnce {
    /// A device of so many sectors, and a log behind them.
    pub(crate) fn new(sectors: u64, log_sectors: u64) -> AtOnce {
        AtOnce { sectors, log_sectors, ..AtOnce::default() }
    }
}

impl BlockDevice for AtOnce {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn reserved_sectors(&self) -> u64 {
        self.log_sectors
    }

    fn sector_data_bytes(&self) -> usize {
        0
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, request: &Request, _: Data<'_>) {
        self.now = self.now.max(request.at);
        self.completions.push(Completion {
            tag: request.tag,
            op: request.op,
            has_answer: false,
            status: Status::Success,
            submitted: request.at,
            at: self.now,
            order: self.order,
            bytes: request.bytes(),
        });
        self.order += 1;
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        Some(&SHRD)
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.submit(request, payload.data);
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn run_until(&mut self, until: Nanos) {
        self.now = self.now.max(until);
    }

    fn run_to_completion(&mut self, _: Nanos) -> bool {
        !self.completions.is_empty()
    }

    fn outstanding(&self) -> u64 {
        0
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    fn take_paths(&mut self, _: &mut Vec<Path>) {}

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    fn mapped_run(&self, _: u64, end: u64) -> (bool, u64) {
        (true, end)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for AtOnce {
    fn identify(&self) -> Identity {
        let (name, design) = ("at once".to_string(), SHRD.name.to_string());
        Identity { name, design, unit_bytes: 4096, is_timed: true, has_write_cache: false, has_host_cache: false }
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        Vec::new()
    }

    fn taken(&self) -> Traffic {
        Traffic::default()
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        Vec::new()
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        Vec::new()
    }

    fn reset_statistics(&mut self) {
        (self.now, self.order) = (Nanos::ZERO, 0);
    }

    /// There are no operations that take time.
    fn set_timed(&mut self, _: bool) {}

    /// There are no operations to wait for.
    fn record_paths(&mut self, _: bool) {}
}

impl Power for AtOnce {
    fn cut(&mut self, _: usize, _: &mut Again<'_>) -> Loss {
        Loss::Nothing
    }

    fn close(&mut self) {}

    fn into_members(self: Box<Self>) -> Vec<Member> {
        Vec::new()
    }
}
