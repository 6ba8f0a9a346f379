//! A device behind something that watches or holds back what goes through it, and changes nothing else of it.

use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Check, Completion, Counters, Data, Drive, Options, Payload};
use ssdlab_disk::Disk;

use crate::device::Again;
use crate::{Administration, BlockDevice, Device, Identity, LayerMetrics, Loss, Member, Part, Power, Traffic};

/// What stands between a device and who uses it. By default each part passes on what it is asked.
pub trait Between: Send {
    /// A command of block I/O comes.
    fn submit(&mut self, device: &mut dyn Device, request: &Request, data: Data<'_>) {
        device.submit(request, data);
    }

    /// A command with a payload of its set comes.
    fn submit_command(&mut self, device: &mut dyn Device, request: &Request, payload: Payload<'_>) {
        device.submit_command(request, payload);
    }

    /// When something happens next.
    fn next_event(&self, device: &dyn Device) -> Option<Nanos> {
        device.next_event()
    }

    /// Time goes on, as [`BlockDevice::run_until`] says.
    fn run_until(&mut self, device: &mut dyn Device, until: Nanos) {
        device.run_until(until);
    }

    /// Time goes on to a completion, as [`BlockDevice::run_to_completion`] says.
    fn run_to_completion(&mut self, device: &mut dyn Device, until: Nanos) -> bool {
        device.run_to_completion(until)
    }

    /// The power of a part goes and comes back, as [`Power::cut`] says.
    fn cut(&mut self, device: &mut dyn Device, member: usize, again: &mut Again<'_>) -> Loss {
        device.cut(member, again)
    }
}

/// A device, and what stands before it.
pub struct Through<B> {
    device: Box<dyn Device>,
    between: B,
}

impl<B: Between> Through<B> {
    /// Puts `between` before a device.
    pub fn new(device: Box<dyn Device>, between: B) -> Through<B> {
        Through { device, between }
    }
}

impl<B: Between> BlockDevice for Through<B> {
    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.between.submit(&mut *self.device, request, data);
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.between.submit_command(&mut *self.device, request, payload);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.between.next_event(&*self.device)
    }

    fn run_until(&mut self, until: Nanos) {
        self.between.run_until(&mut *self.device, until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        self.between.run_to_completion(&mut *self.device, until)
    }

    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn reserved_sectors(&self) -> u64 {
        self.device.reserved_sectors()
    }

    fn sector_data_bytes(&self) -> usize {
        self.device.sector_data_bytes()
    }

    fn trims(&self) -> bool {
        self.device.trims()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        self.device.command_set()
    }

    fn segment_sectors(&self) -> Option<u64> {
        self.device.segment_sectors()
    }

    fn zones(&self) -> Option<ZoneShape> {
        self.device.zones()
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        self.device.zone(number)
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        self.device.take_answers(to);
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        self.device.take_events(to);
    }

    fn keep_meaning(&mut self, sector: u64, stamp: u64, words: &[u64]) {
        self.device.keep_meaning(sector, stamp, words);
    }

    fn meaning(&self, sector: u64, stamp: u64) -> Option<Vec<u64>> {
        self.device.meaning(sector, stamp)
    }

    fn keep_record(&mut self, sector: u64, bytes: &[u8]) {
        self.device.keep_record(sector, bytes);
    }

    fn record(&self, sector: u64) -> Option<&[u8]> {
        self.device.record(sector)
    }

    fn drop_record(&mut self, sector: u64) {
        self.device.drop_record(sector);
    }

    fn record_bytes(&self) -> u64 {
        self.device.record_bytes()
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.device.prefetch(requests);
    }

    fn unplug(&mut self) {
        self.device.unplug();
    }

    fn outstanding(&self) -> u64 {
        self.device.outstanding()
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        self.device.completions()
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        self.device.take_paths(to);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        self.device.read_data()
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.device.mapped_run(sector, end)
    }

    fn order_stride(&self) -> u64 {
        self.device.order_stride()
    }
}

impl<B: Between> Administration for Through<B> {
    fn identify(&self) -> Identity {
        self.device.identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        self.device.layers()
    }

    fn taken(&self) -> Traffic {
        self.device.taken()
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        self.device.drives()
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        self.device.drives_mut()
    }

    fn disks(&self) -> Vec<Part<&Disk>> {
        self.device.disks()
    }

    fn disks_mut(&mut self) -> Vec<Part<&mut Disk>> {
        self.device.disks_mut()
    }

    fn reset_statistics(&mut self) {
        self.device.reset_statistics();
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }

    fn check(&self) -> Vec<(String, Check)> {
        self.device.check()
    }

    fn host_restarted(&mut self) {
        self.device.host_restarted();
    }

    fn set_timed(&mut self, timed: bool) {
        self.device.set_timed(timed);
    }

    fn reseed(&mut self, options: Options) {
        self.device.reseed(options);
    }

    fn record_paths(&mut self, on: bool) {
        self.device.record_paths(on);
    }
}

impl<B: Between> Power for Through<B> {
    fn cut(&mut self, member: usize, again: &mut Again<'_>) -> Loss {
        self.between.cut(&mut *self.device, member, again)
    }

    fn into_members(self: Box<Self>) -> Vec<Member> {
        self.device.into_members()
    }

    fn persist(&mut self) -> bool {
        self.device.persist()
    }

    fn close(&mut self) {
        self.device.close();
    }

    fn forget(&mut self) {
        self.device.forget();
    }

    fn broken_image(&self) -> Option<String> {
        self.device.broken_image()
    }
}
