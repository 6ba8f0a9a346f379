//! What a file system sends to its device, counted apart from the file system.
//!
//! A [`Tap`] stands between the two and changes nothing. While a recorder is in its [`Socket`], it counts every request and
//! completion, and samples the drives' counters, as the replay of a block workload does. So a drive's result of a file run is made
//! of the same tallies as that of any other run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ssdlab_base::{Nanos, Request};
use ssdlab_device::{Data, Payload};
use ssdlab_host::{Again, Between, Device, Loss};

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

/// Counts the requests to a device while there is a recorder in the socket.
pub(crate) struct Tap(pub(crate) Socket);

impl Tap {
    /// When the timeline's interval ends that is being recorded.
    fn next_tick(&self) -> Nanos {
        self.0.lock().as_ref().map_or(Nanos::MAX, |recorder| Nanos(recorder.next_tick_ns()))
    }

    /// Does something with the device, and counts what completed by it.
    fn counted<T>(&self, device: &mut dyn Device, act: impl FnOnce(&mut dyn Device) -> T) -> T {
        let mut socket = self.0.lock();
        let Some(recorder) = socket.as_mut() else { return act(device) };
        let before = device.completions().len();
        let result = act(device);
        for completion in &device.completions()[before..] {
            recorder.completed(completion);
        }
        recorder.tick_if_due(device.now(), || device.counters());
        result
    }

    fn count(&self, request: &Request) {
        if let Some(recorder) = self.0.lock().as_mut() {
            recorder.submitted(request);
        }
    }
}

impl Between for Tap {
    fn submit(&mut self, device: &mut dyn Device, request: &Request, data: Data<'_>) {
        self.count(request);
        self.counted(device, |device| device.submit(request, data));
    }

    fn submit_command(&mut self, device: &mut dyn Device, request: &Request, payload: Payload<'_>) {
        self.count(request);
        self.counted(device, |device| device.submit_command(request, payload));
    }

    fn run_until(&mut self, device: &mut dyn Device, until: Nanos) {
        loop {
            let to = until.min(self.next_tick());
            self.counted(device, |device| device.run_until(to));
            if to == until {
                return;
            }
        }
    }

    fn run_to_completion(&mut self, device: &mut dyn Device, until: Nanos) -> bool {
        // Intervals end on the way to the next event, and no later: without one, time stays where it is.
        while let Some(event) = device.next_event().filter(|event| *event <= until) {
            let tick = self.next_tick();
            if tick < event {
                self.counted(device, |device| device.run_until(tick));
            } else if tick >= until {
                break;
            } else if self.counted(device, |device| device.run_to_completion(tick)) {
                return true;
            }
        }
        self.counted(device, |device| device.run_to_completion(until))
    }

    fn cut(&mut self, device: &mut dyn Device, part: usize, again: &mut Again<'_>) -> Loss {
        self.counted(device, |device| device.cut(part, again))
    }
}
