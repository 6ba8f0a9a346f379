//! The layer as a device.

use ssdlab_base::{Nanos, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Completion, Counters, Data, Payload};

use super::Restoring;
use super::config::LAYER;
use super::metrics::Counts;
use crate::device::Again;
use crate::layer::{completion, turned_away};
use crate::{Administration, BlockDevice, Identity, LayerMetrics, Loss, Member, Part, PartMut, Power, Traffic};

impl BlockDevice for Restoring {
    fn sectors(&self) -> u64 {
        self.layout.sectors
    }

    fn cell_bytes(&self) -> usize {
        self.cell
    }

    fn now(&self) -> Nanos {
        self.array.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        // Requests of one instant are packed together, so that only what is before it ends.
        if request.at > self.array.now() {
            self.run_until(request.at);
        }
        self.outstanding += 1;
        if let Some(status) = turned_away(request, self.layout.sectors) {
            self.order += 1;
            self.outstanding -= 1;
            self.taken.add(request);
            self.paths.extend(self.array.records_paths().then(|| Path { request: *request, segments: Vec::new() }));
            self.completions.push(completion(request, status, self.array.now(), self.order - 1));
            return;
        }
        self.arrive(*request, data);
        self.work();
        if !self.is_timed {
            self.come_to_rest();
        }
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.submit(request, payload.data);
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.array.device_mut(0).prefetch(requests);
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.waits_for_more() { Some(self.array.now()) } else { self.array.next_event() }
    }

    fn run_until(&mut self, until: Nanos) {
        while (self.waits_for_more() || self.array.has_work(until)) && self.step(until) {}
        self.array.advance(until);
        self.work();
        if self.waits_for_more() {
            self.end_instant();
        }
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.completions.is_empty() && self.step(until) {}
        !self.completions.is_empty()
    }

    fn outstanding(&self) -> u64 {
        self.outstanding
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        to.append(&mut self.paths);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        let (per_unit, end) = (self.layout.per_unit, end.min(self.layout.sectors));
        let run = |from: u64| {
            let unit = (from / per_unit) as u32;
            let last = end.div_ceil(per_unit) as u32;
            if self.table.place_of(unit).is_some() {
                return (true, end.min(u64::from(self.table.next(unit, last, false)) * per_unit));
            }
            let home = end.min(u64::from(self.table.next(unit, last, true)) * per_unit);
            self.array.device(0).mapped_run(from, home)
        };
        let (is_mapped, mut to) = run(sector);
        while to < end {
            let (next_is_mapped, next) = run(to);
            if next_is_mapped != is_mapped {
                break;
            }
            to = next;
        }
        (is_mapped, to)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Restoring {
    /// Until a flush the table is in the host's memory alone, whatever the device below has.
    fn identify(&self) -> Identity {
        Identity { has_write_cache: true, has_host_cache: true, ..self.array.device(0).identify() }
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        self.array.layers(LayerMetrics {
            kind: LAYER.name.to_string(),
            configuration: self.config.shown(),
            taken: self.taken,
            figures: self.figures(),
            ..LayerMetrics::default()
        })
    }

    fn set_timed(&mut self, timed: bool) {
        self.come_to_rest();
        self.array.set_timed(timed);
        self.is_timed = timed;
        self.work();
    }

    fn record_paths(&mut self, on: bool) {
        self.array.record_paths(on);
    }

    fn taken(&self) -> Traffic {
        self.taken
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.array.parts()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.array.parts_mut()
    }

    fn reset_statistics(&mut self) {
        assert_eq!(self.outstanding, 0, "only an idle layer can be reset");
        self.come_to_rest();
        self.array.reset_statistics();
        (self.order, self.counts, self.taken) = (0, Counts::default(), Traffic::default());
        self.packing.reset();
    }

    fn counters(&self) -> Counters {
        self.array.device(0).counters()
    }
}

impl Power for Restoring {
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        self.work();
        let (_, loss) = self.array.cut(part, again);
        if loss == Loss::Unflushed {
            self.revert();
        }
        self.work();
        loss
    }

    fn close(&mut self) {
        self.array.devices_mut().for_each(|device| device.close());
    }

    fn into_members(mut self: Box<Self>) -> Vec<Member> {
        self.array.take_members()
    }

    fn persist(&mut self) -> bool {
        self.array.device_mut(0).persist()
    }

    fn forget(&mut self) {
        self.array.device_mut(0).forget();
    }

    fn broken_image(&self) -> Option<String> {
        self.array.device(0).broken_image()
    }
}
