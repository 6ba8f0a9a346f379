//! For what stands on a device and is no layer itself, as a file system: one device below, kept in virtual time, and the commands
//! in it.
//!
//! ```text
//!   who stands here    purposes, commands  ->  Below  ->  the device
//!                      Done, records       <-         <-
//! ```
//!
//! [`Below`] gives each command a number, remembers what it was sent for, and says how it ended. It never decides anything.

use ssdlab_base::command_sets::segments::{MOST_REPORTED, REPORT, REPORTED_BYTES, SEGMENTS, Segment, SegmentShape};
use ssdlab_base::{Nanos, Request};
use ssdlab_device::Status;

pub use super::slots::Slots;
use super::{Array, Ended};
use crate::device::Again;
use crate::{Device, LayerError, Loss, Traffic};

/// A command that has ended in the device.
#[derive(Debug)]
pub struct Done<P> {
    /// What it was sent for.
    pub purpose: P,
    /// The command as it was sent.
    pub request: Request,
    /// How it ended.
    pub status: Status,
    /// What it read, where contents are kept.
    pub cells: Option<Vec<u8>>,
}

/// The one device below, and for what (`P`) each command was sent to it.
pub struct Below<P> {
    array: Array<P>,
    ended: Vec<Ended<P>>,
}

/// A device in which there is no command, before anybody stands on it.
pub struct Unused {
    array: Array<()>,
}

impl Unused {
    /// A device. What a host that has crashed left in flight in it comes to its end first, and its completions and answers are dropped.
    pub fn new(mut device: Box<dyn Device>) -> Unused {
        while device.outstanding() > 0 && device.wait_for_completion(Nanos::MAX) {
            device.completions().clear();
        }
        device.completions().clear();
        device.read_data().clear();
        device.take_answers(&mut Vec::new());
        Unused { array: Array::new(vec![device]) }
    }

    /// The device, to look at.
    pub fn device(&self) -> &dyn Device {
        self.array.device(0)
    }

    /// Runs one command to its end: block I/O or one of the device's own set, with its words.
    ///
    /// # Errors
    /// The device never answers.
    pub fn alone(&mut self, request: Request, cells: &[u8], words: &[u64]) -> Result<Done<()>, LayerError> {
        self.array.alone(0, request, cells, words).map(of_ended)
    }

    /// Runs block I/O side by side, each command to its end. They come back in the order in which they ended.
    ///
    /// # Errors
    /// The device never answers.
    pub fn together(&mut self, requests: &[Request]) -> Result<Vec<Done<()>>, LayerError> {
        requests.iter().for_each(|request| self.array.send(0, *request, &[], ()));
        Ok(self.array.run_out(requests.len())?.into_iter().map(of_ended).collect())
    }

    /// Asks a device of the set `segments` what its segments have in common, and how each is.
    ///
    /// # Errors
    /// The device does not know the set, or how the report failed.
    pub fn report(&mut self) -> Result<(SegmentShape, Vec<Segment>), Status> {
        if self.device().command_set().is_none_or(|set| set.name != SEGMENTS.name) {
            return Err(Status::Unsupported);
        }
        let spec = SEGMENTS.command(REPORT).ok_or(Status::Unsupported)?;
        let (mut shape, mut all) = (SegmentShape { sectors: 0, count: 1, write_unit: 0 }, Vec::new());
        while (all.len() as u64) < shape.count {
            let from = all.len() as u64;
            // How many there are is in the first report.
            let asked = if from == 0 { 1 } else { MOST_REPORTED.min(shape.count - from) };
            let part = self.array.alone(0, Request::of_set(spec, 0, 0), &[], &[from, asked]);
            let mut part = part.map_err(|_| Status::Aborted)?;
            let answer = part.answer.take();
            let status = of_ended(part).status;
            let answer = answer.filter(|_| status == Status::Success).ok_or(status)?;
            let [sectors, count, write_unit] = answer.words[..] else { return Err(Status::Invalid) };
            shape = SegmentShape { sectors, count, write_unit };
            let decode = |bytes: &[u8]| Segment::decode(bytes.try_into().ok()?);
            let told: Option<Vec<Segment>> = answer.bytes.chunks_exact(REPORTED_BYTES).map(decode).collect();
            all.extend(told.filter(|told| told.len() as u64 == asked).ok_or(Status::Invalid)?);
        }
        Ok((shape, all))
    }

    /// The record that was kept at a sector ([`BlockDevice::record`](crate::BlockDevice::record)).
    pub fn record(&self, sector: u64) -> Option<&[u8]> {
        self.device().record(sector)
    }

    /// Keeps the bytes of a record ([`BlockDevice::keep_record`](crate::BlockDevice::keep_record)).
    pub fn keep_record(&mut self, sector: u64, bytes: &[u8]) {
        self.array.device_mut(0).keep_record(sector, bytes);
    }

    /// Gives the device back.
    ///
    /// # Panics
    /// Never: there is one device.
    pub fn into_device(self) -> Box<dyn Device> {
        self.array.into_devices().pop().expect("there is one device")
    }

    /// Gives the device to who stands on it from now on.
    pub fn into_below<P>(self) -> Below<P> {
        Below { array: self.array.for_layer(false), ended: Vec::new() }
    }
}

impl<P> Below<P> {
    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.array.now()
    }

    /// The device, to look at.
    pub fn device(&self) -> &dyn Device {
        self.array.device(0)
    }

    /// The device, to change: its observers and clocks, never its data.
    pub fn device_mut(&mut self) -> &mut dyn Device {
        self.array.device_mut(0)
    }

    /// Sends a command now; `cells` is what a write brings, empty where contents are not kept.
    pub fn send(&mut self, request: Request, cells: &[u8], purpose: P) {
        self.array.send(0, request, cells, purpose);
    }

    /// Moves what has ended since the last call to the end of `to`, in the order in which it ended.
    pub fn take(&mut self, to: &mut Vec<Done<P>>) {
        self.array.take(&mut self.ended);
        to.extend(self.ended.drain(..).map(of_ended));
    }

    /// When something happens next in the device; `None` when nothing will.
    pub fn next_event(&self) -> Option<Nanos> {
        self.array.next_event()
    }

    /// Runs events up to `until`, and stops when a command has ended; true if one has.
    pub fn run(&mut self, until: Nanos) -> bool {
        self.array.run(until)
    }

    /// Lets commands go on that wait in a device without an event; true if that changed anything.
    pub fn run_stuck(&mut self) -> bool {
        self.array.run_stuck()
    }

    /// Brings the device to a time before which no event is left.
    pub fn advance(&mut self, to: Nanos) {
        self.array.advance(to);
    }

    /// Whether no command is in the device.
    pub fn is_idle(&self) -> bool {
        self.array.is_idle()
    }

    /// Commands in the device.
    pub fn in_flight(&self) -> u64 {
        self.array.in_flight(0)
    }

    /// What was sent and has ended.
    pub fn sent(&self) -> Traffic {
        self.array.sent
    }

    /// Functional fast-forward of the device.
    pub fn set_timed(&mut self, timed: bool) {
        self.array.set_timed(timed);
    }

    /// Statistics and time of the device begin anew. Only while nothing is in it.
    pub fn reset_statistics(&mut self) {
        self.array.reset_statistics();
    }

    /// The power of a drive or disk of the device goes and comes back now, while the host goes on.
    pub fn cut(&mut self, member: usize, again: &mut Again<'_>) -> Loss {
        self.array.cut(member, again).1
    }

    /// Gives the device back with what is in flight in it.
    ///
    /// # Panics
    /// Never: there is one device.
    pub fn into_device(self) -> Box<dyn Device> {
        self.array.into_devices().pop().expect("there is one device")
    }
}

fn of_ended<P>(ended: Ended<P>) -> Done<P> {
    Done { purpose: ended.purpose, request: ended.request, status: ended.status, cells: ended.cells }
}
