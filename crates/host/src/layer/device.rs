//! A layer as a device: the three traits of [`device`](crate::device), for every layer alike.

use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Completion, Counters, Data, Drive, Payload};
use ssdlab_disk::Disk;

use super::{Engine, Layer};
use crate::device::Again;
use crate::{Administration, BlockDevice, Device, Identity, LayerMetrics, Loss, Member, Part, Power, Traffic};

/// The only device below a layer that hands on what it does not know.
fn handed_on<L: Layer>(layer: &L) -> Option<&dyn Device> {
    L::KIND.hands_on.then(|| layer.io().array.device(0))
}

impl<L: Layer> BlockDevice for L {
    fn sectors(&self) -> u64 {
        self.capacity()
    }

    fn reserved_sectors(&self) -> u64 {
        handed_on(self).map_or(0, |device| device.reserved_sectors())
    }

    fn sector_data_bytes(&self) -> usize {
        self.io().cell
    }

    fn trims(&self) -> bool {
        self.takes_trims()
    }

    fn now(&self) -> Nanos {
        self.io().array.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.arrive(request, data.into());
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        handed_on(self)?.command_set()
    }

    fn segment_sectors(&self) -> Option<u64> {
        handed_on(self)?.segment_sectors()
    }

    fn zones(&self) -> Option<ZoneShape> {
        handed_on(self)?.zones()
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        handed_on(self)?.zone(number)
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.arrive(request, payload);
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        to.append(&mut self.io_mut().answers);
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        if L::KIND.hands_on {
            self.io_mut().array.take_events(to);
        }
    }

    fn keep_meaning(&mut self, sector: u64, stamp: u64, words: &[u64]) {
        if L::KIND.hands_on {
            self.io_mut().array.device_mut(0).keep_meaning(sector, stamp, words);
        }
    }

    fn meaning(&self, sector: u64, stamp: u64) -> Option<Vec<u64>> {
        handed_on(self)?.meaning(sector, stamp)
    }

    fn keep_record(&mut self, sector: u64, bytes: &[u8]) {
        self.io_mut().records.keep(sector, bytes);
    }

    fn drop_record(&mut self, sector: u64) {
        self.io_mut().records.take(sector..sector + 1);
    }

    fn record(&self, sector: u64) -> Option<&[u8]> {
        self.io().records.get(sector)
    }

    fn record_bytes(&self) -> u64 {
        self.io().records.memory_bytes()
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.expect(requests);
    }

    fn unplug(&mut self) {
        self.caller_waits();
    }

    fn next_event(&self) -> Option<Nanos> {
        self.next_time()
    }

    fn run_until(&mut self, until: Nanos) {
        self.go_through(until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        self.go_to_answer(until)
    }

    fn outstanding(&self) -> u64 {
        self.io().outstanding
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.io_mut().completions
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        to.append(&mut self.io_mut().paths);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.io_mut().read_data
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.mapped(sector, end)
    }

    fn order_stride(&self) -> u64 {
        self.stride()
    }
}

impl<L: Layer> Administration for L {
    fn identify(&self) -> Identity {
        let array = &self.io().array;
        let (_, most) = L::KIND.devices;
        self.identity(if most == 1 { array.device(0).identify() } else { array.identify(L::KIND.name) })
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        let (kind, taken) = (L::KIND.name.to_string(), self.io().taken);
        self.io().array.layers(LayerMetrics { kind, taken, ..self.metrics() })
    }

    fn taken(&self) -> Traffic {
        self.io().taken
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        self.io().array.drives()
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        self.io_mut().array.drives_mut()
    }

    fn disks(&self) -> Vec<Part<&Disk>> {
        self.io().array.disks()
    }

    fn disks_mut(&mut self) -> Vec<Part<&mut Disk>> {
        self.io_mut().array.disks_mut()
    }

    fn members(&self) -> usize {
        self.io().array.devices().map(|device| device.members()).sum()
    }

    fn reset_statistics(&mut self) {
        assert_eq!(self.io().outstanding, 0, "only an idle layer can be reset");
        self.come_to_rest();
        self.io_mut().reset_statistics();
        self.reset_counts();
    }

    fn set_timed(&mut self, timed: bool) {
        self.come_to_rest();
        let io = self.io_mut();
        io.array.set_timed(timed);
        io.is_timed = timed;
        self.work();
    }

    fn record_paths(&mut self, on: bool) {
        self.io_mut().array.record_paths(on);
    }

    fn counters(&self) -> Counters {
        let mut devices = self.io().array.devices().map(|device| device.counters());
        let mut counters = devices.next().expect("a layer has a device");
        devices.for_each(|other| counters.add(&other));
        counters
    }
}

impl<L: Layer> Power for L {
    fn cut(&mut self, member: usize, again: &mut Again<'_>) -> Loss {
        self.work();
        let (device, loss) = self.io_mut().array.cut(member, again);
        let loss = self.power_lost(device, loss);
        self.work();
        loss
    }

    fn into_members(mut self: Box<Self>) -> Vec<Member> {
        self.io_mut().array.take_members()
    }

    fn persist(&mut self) -> bool {
        self.io_mut().array.devices_mut().fold(true, |all, device| all & device.persist())
    }

    fn close(&mut self) {
        self.closes();
        self.io_mut().array.devices_mut().for_each(|device| device.close());
    }

    fn forget(&mut self) {
        self.io_mut().array.devices_mut().for_each(|device| device.forget());
    }

    fn broken_image(&self) -> Option<String> {
        self.io().array.devices().find_map(|device| device.broken_image())
    }
}
