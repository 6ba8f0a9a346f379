//! A device that stands still after so many events: the power is about to go in the middle of a mount, which waits for its commands
//! and gives the device back when none is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Check, Completion, Counters, Data, Payload};
use ssdlab_host::{
    Administration, Again, BlockDevice, Device, Identity, LayerMetrics, Loss, Member, Part, PartMut, Power, Traffic,
};

/// Events that a device may still run.
#[derive(Clone, Debug)]
pub(super) struct Limit(Arc<AtomicU64>);

impl Limit {
    /// No limit.
    const NONE: u64 = u64::MAX;

    pub(super) fn new() -> Limit {
        Limit(Arc::new(AtomicU64::new(Limit::NONE)))
    }

    /// So many events from now on.
    pub(super) fn set(&self, events: u32) {
        self.0.store(events.into(), Ordering::Relaxed);
    }

    /// What is left of the limit, which ends.
    pub(super) fn lift(&self) -> Option<u64> {
        Some(self.0.swap(Limit::NONE, Ordering::Relaxed)).filter(|left| *left != Limit::NONE)
    }

    fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes an event; false if none is left.
    fn take(&self) -> bool {
        match self.left() {
            Limit::NONE => true,
            0 => false,
            left => {
                self.0.store(left - 1, Ordering::Relaxed);
                true
            }
        }
    }
}

/// A device with a limit.
pub(super) struct Limited {
    inner: Box<dyn Device>,
    limit: Limit,
}

impl Limited {
    /// A device that heeds a limit.
    pub(super) fn new(inner: Box<dyn Device>, limit: Limit) -> Limited {
        Limited { inner, limit }
    }

    fn is_free(&self) -> bool {
        self.limit.left() == Limit::NONE
    }
}

impl BlockDevice for Limited {
    fn next_event(&self) -> Option<Nanos> {
        if self.limit.left() == 0 { None } else { self.inner.next_event() }
    }

    fn run_until(&mut self, until: Nanos) {
        if self.is_free() {
            return self.inner.run_until(until);
        }
        while self.inner.next_event().is_some_and(|at| at <= until) {
            let Some(at) = self.inner.next_event().filter(|_| self.limit.take()) else { return };
            self.inner.run_until(at);
        }
        if self.limit.left() > 0 {
            self.inner.run_until(until);
        }
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        if self.is_free() {
            return self.inner.run_to_completion(until);
        }
        while self.inner.completions().is_empty() {
            let next = self.inner.next_event().filter(|at| *at <= until);
            let Some(at) = next.filter(|_| self.limit.take()) else { return false };
            self.inner.run_until(at);
        }
        true
    }

    fn sectors(&self) -> u64 {
        self.inner.sectors()
    }

    fn reserved_sectors(&self) -> u64 {
        self.inner.reserved_sectors()
    }

    fn cell_bytes(&self) -> usize {
        self.inner.cell_bytes()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.inner.submit(request, data);
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        self.inner.command_set()
    }

    fn segment_sectors(&self) -> Option<u64> {
        self.inner.segment_sectors()
    }

    fn zones(&self) -> Option<ZoneShape> {
        self.inner.zones()
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        self.inner.zone(number)
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.inner.submit_command(request, payload);
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        self.inner.take_answers(to);
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        self.inner.take_events(to);
    }

    fn keep_meaning(&mut self, sector: u64, stamp: u64, words: &[u64]) {
        self.inner.keep_meaning(sector, stamp, words);
    }

    fn meaning(&self, sector: u64, stamp: u64) -> Option<Vec<u64>> {
        self.inner.meaning(sector, stamp)
    }

    fn keep_record(&mut self, sector: u64, bytes: &[u8]) {
        self.inner.keep_record(sector, bytes);
    }

    fn record(&self, sector: u64) -> Option<&[u8]> {
        self.inner.record(sector)
    }

    fn record_bytes(&self) -> u64 {
        self.inner.record_bytes()
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.inner.prefetch(requests);
    }

    fn outstanding(&self) -> u64 {
        self.inner.outstanding()
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        self.inner.completions()
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        self.inner.take_paths(to);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        self.inner.read_data()
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.inner.mapped_run(sector, end)
    }

    fn order_stride(&self) -> u64 {
        self.inner.order_stride()
    }
}

impl Administration for Limited {
    fn identify(&self) -> Identity {
        self.inner.identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        self.inner.layers()
    }

    fn taken(&self) -> Traffic {
        self.inner.taken()
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.inner.parts()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.inner.parts_mut()
    }

    fn reset_statistics(&mut self) {
        self.inner.reset_statistics();
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn check(&self) -> Vec<(String, Check)> {
        self.inner.check()
    }

    fn set_timed(&mut self, timed: bool) {
        self.inner.set_timed(timed);
    }

    fn record_paths(&mut self, on: bool) {
        self.inner.record_paths(on);
    }
}

impl Power for Limited {
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        self.inner.cut(part, again)
    }

    fn into_members(self: Box<Self>) -> Vec<Member> {
        self.inner.into_members()
    }

    fn close(&mut self) {
        self.inner.close();
    }
}
