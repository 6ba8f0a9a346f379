//! What a file system sends to its device, counted apart from the file system.
//!
//! A [`Tap`] stands between the two and changes nothing. While a recorder is in its [`Socket`], it counts every request and
//! completion, and samples the drives' counters, as the replay of a block workload does. So a drive's result of a file run is made
//! of the same tallies as that of any other run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Check, Completion, Counters, Data, Options, Payload};
use ssdlab_host::{
    Administration, Again, BlockDevice, Device, Identity, LayerMetrics, Loss, Member, Part, PartMut, Power, Traffic,
};

use crate::replay::Recorder;

/// Where the recorder of a tap is put in and taken out.
#[derive(Clone, Default)]
pub(crate) struct Socket(Arc<Mutex<Option<Recorder>>>);

impl Socket {
    fn lock(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests are counted from now on.
    pub(crate) fn put(&self, recorder: Recorder) {
        *self.lock() = Some(recorder);
    }

    /// Requests are not counted any more.
    pub(crate) fn take(&self) -> Option<Recorder> {
        self.lock().take()
    }
}

/// A device whose requests are counted.
pub(crate) struct Tap {
    device: Box<dyn Device>,
    socket: Socket,
}

impl Tap {
    /// Counts the requests to `device` while there is a recorder in `socket`.
    pub(crate) fn new(device: Box<dyn Device>, socket: Socket) -> Tap {
        Tap { device, socket }
    }

    /// When the timeline's interval ends that is being recorded.
    fn next_tick(&self) -> Nanos {
        self.socket.lock().as_ref().map_or(Nanos::MAX, |recorder| Nanos(recorder.next_tick_ns()))
    }

    /// Does something with the device, and counts what completed by it.
    fn counted<T>(&mut self, act: impl FnOnce(&mut dyn Device) -> T) -> T {
        let mut socket = self.socket.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorder) = socket.as_mut() else { return act(&mut *self.device) };
        let before = self.device.completions().len();
        let result = act(&mut *self.device);
        for completion in &self.device.completions()[before..] {
            recorder.completed(completion);
        }
        let (now, device) = (self.device.now(), &self.device);
        recorder.tick_if_due(now, || device.counters());
        result
    }

    fn count(&self, request: &Request) {
        if let Some(recorder) = self.socket.lock().as_mut() {
            recorder.submitted(request);
        }
    }
}

impl BlockDevice for Tap {
    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn reserved_sectors(&self) -> u64 {
        self.device.reserved_sectors()
    }

    fn cell_bytes(&self) -> usize {
        self.device.cell_bytes()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.count(request);
        self.counted(|device| device.submit(request, data));
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.count(request);
        self.counted(|device| device.submit_command(request, payload));
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

    fn record_bytes(&self) -> u64 {
        self.device.record_bytes()
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.device.prefetch(requests);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn run_until(&mut self, until: Nanos) {
        loop {
            let to = until.min(self.next_tick());
            self.counted(|device| device.run_until(to));
            if to == until {
                return;
            }
        }
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        // Intervals end on the way to the next event, and no later: without one, time stays where it is.
        while let Some(event) = self.device.next_event().filter(|event| *event <= until) {
            let tick = self.next_tick();
            if tick < event {
                self.counted(|device| device.run_until(tick));
            } else if tick >= until {
                break;
            } else if self.counted(|device| device.run_to_completion(tick)) {
                return true;
            }
        }
        self.counted(|device| device.run_to_completion(until))
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

impl Administration for Tap {
    fn identify(&self) -> Identity {
        self.device.identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        self.device.layers()
    }

    fn taken(&self) -> Traffic {
        self.device.taken()
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.device.parts()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.device.parts_mut()
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

impl Power for Tap {
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        self.counted(|device| device.cut(part, again))
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
