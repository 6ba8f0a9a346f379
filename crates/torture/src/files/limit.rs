//! A device that stands still after so many events: the power is about to go in the middle of a mount, which waits for its commands
//! and gives the device back when none is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ssdlab_base::Nanos;
use ssdlab_host::{Between, Device};

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

    fn is_free(&self) -> bool {
        self.left() == Limit::NONE
    }
}

impl Between for Limit {
    fn next_event(&self, device: &dyn Device) -> Option<Nanos> {
        if self.left() == 0 { None } else { device.next_event() }
    }

    fn run_until(&mut self, device: &mut dyn Device, until: Nanos) {
        if self.is_free() {
            return device.run_until(until);
        }
        while device.next_event().is_some_and(|at| at <= until) {
            let Some(at) = device.next_event().filter(|_| self.take()) else { return };
            device.run_until(at);
        }
        if self.left() > 0 {
            device.run_until(until);
        }
    }

    fn run_to_completion(&mut self, device: &mut dyn Device, until: Nanos) -> bool {
        if self.is_free() {
            return device.run_to_completion(until);
        }
        while device.completions().is_empty() {
            let next = device.next_event().filter(|at| *at <= until);
            let Some(at) = next.filter(|_| self.take()) else { return false };
            device.run_until(at);
        }
        true
    }
}
