//! What a layer is, and what all layers share.
//!
//! ```text
//!   request -> waits for others on the same sectors -> start -> commands to the devices below
//!                                                                        |
//!   answer  <------------------------ ended, of each of them <-----------+
//! ```
//!
//! A [`Layer`] says what is its own: what a command excludes, how it starts, what follows when a part of it has ended, what the
//! layer does at a time of its own, and what a power cut below means. The rest stands here once. [`Io`] holds the devices and
//! the commands, [`engine`] brings a layer through time, and [`device`] makes a device of it.
//!
//! A layer never runs a device and never answers from within [`start`](Layer::start) what a device has not done: it sends
//! commands, and acts on their ends.

mod array;
mod device;
mod engine;
mod io;
mod overlaps;
mod paths;
mod slots;
pub mod standing;
#[cfg(test)]
mod template;
#[cfg(test)]
mod tests;
mod units;
mod words;

use ssdlab_base::{Nanos, Request};

pub(crate) use array::{Array, Ended};
pub(crate) use engine::Engine;
pub(crate) use io::{Command, Io};
pub(crate) use overlaps::{Overlaps, Turn, changes};
pub(crate) use slots::Slots;
pub(crate) use units::{units_of, whole_units_of, widened};
pub(crate) use words::{cells_of, read_words};

use crate::{Identity, LayerKind, LayerMetrics, Loss};

/// A layer above one device or several.
pub(crate) trait Layer: Send + Sized {
    /// What the registry knows of it.
    const KIND: LayerKind;

    /// Requests of one instant belong together, so that what ends at that instant is looked at after them.
    const HOLDS_INSTANT: bool = false;

    /// What it sends a command below for.
    type Purpose: Send;

    /// What it notes of a command from above.
    type State: Default + Send;

    /// What every layer keeps.
    fn io(&self) -> &Io<Self::Purpose, Self::State>;

    /// What every layer keeps, to change.
    fn io_mut(&mut self) -> &mut Io<Self::Purpose, Self::State>;

    /// Sectors that it offers; by default those of the one device below.
    fn capacity(&self) -> u64 {
        self.io().array.device(0).sectors()
    }

    /// Whether it takes trims and writes of zeroes; by default where all devices below do.
    fn takes_trims(&self) -> bool {
        self.io().array.devices().all(|device| device.trims())
    }

    /// What a command excludes: those that overlap it wait, where one of the two changes sectors. One without sectors excludes
    /// nothing.
    fn extent(&self, request: &Request) -> Request {
        *request
    }

    /// Whether a command may start before earlier ones on the same sectors have ended. It takes effect after them.
    fn passes(&self, _: &Request) -> bool {
        false
    }

    /// A command starts. With [`Turn::Passes`] earlier ones on the same sectors have not ended; it is called again when they have.
    fn start(&mut self, slot: u32, turn: Turn);

    /// A command below has ended.
    fn ended(&mut self, part: Ended<Self::Purpose>);

    /// Everything that has ended was looked at: sends what may go now. True if there may be more to do at once.
    fn proceed(&mut self) -> bool {
        self.start_ready();
        false
    }

    /// When [`wake`](Layer::wake) is due: at once, where that time is over. The devices' events of that time come before.
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }

    /// The time of [`wakes_at`](Layer::wakes_at) is there. It says a later one from now on, or none.
    fn wake(&mut self) {}

    /// Who is above waits for what it has sent: nothing is held back for more to come.
    fn caller_waits(&mut self) {
        self.io_mut().array.unplug();
    }

    /// A device has lost its power, and with it what `loss` says; what a host of the layer has lost.
    fn power_lost(&mut self, device: usize, loss: Loss) -> Loss {
        let _ = device;
        loss
    }

    /// The host stops in good order: no request comes any more.
    fn closes(&mut self) {}

    /// Whether a sector holds data, and the first sector up to `end` from which on that is different.
    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        self.io().array.device(0).mapped_run(sector, end)
    }

    /// These requests will come soon: a hint that changes nothing.
    fn expect(&mut self, requests: &[Request]) {
        self.io_mut().array.device_mut(0).prefetch(requests);
    }

    /// Who it is, of what the devices below it are.
    fn identity(&self, below: Identity) -> Identity {
        below
    }

    /// Its settings and counters. What it took and sent is filled in.
    fn metrics(&self) -> LayerMetrics;

    /// Its counters begin anew.
    fn reset_counts(&mut self) {}

    /// Requests that take effect in one step have orders of one multiple of this.
    fn stride(&self) -> u64 {
        1
    }
}
