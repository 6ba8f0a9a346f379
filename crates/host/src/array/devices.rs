//! The devices below a layer, kept in one virtual time, and the commands that the layer has in them.

use ssdlab_base::{Answer, Nanos, Request};
use ssdlab_device::path::{self, Path};
use ssdlab_device::{Completion, Data, Payload, Status};

use crate::device::Again;
use crate::promise::Promise;
use crate::seeded::acts_on_unkept;
use crate::{Device, Identity, LayerError, LayerMetrics, Loss, Member, Part, PartMut, Traffic};

/// A command that has ended in a device.
pub(crate) struct Ended {
    /// Which device.
    pub(crate) device: usize,
    /// What the layer called it.
    pub(crate) owner: u64,
    /// The command as it was sent.
    pub(crate) request: Request,
    /// How it ended.
    pub(crate) completion: Completion,
    /// What it read, where contents are kept.
    pub(crate) cells: Option<Vec<u8>>,
    /// What it waited for, where that is recorded.
    pub(crate) path: Option<Path>,
}

/// A device and what is in it.
struct Below {
    device: Box<dyn Device>,
    /// By tag.
    sent: Vec<Option<(u64, Request)>>,
    free: Vec<u32>,
    in_flight: u64,
    /// A plain write may be lost with the power after its answer.
    buffered: bool,
}

impl Below {
    /// Whether a completion is there whose answer promises something.
    fn has_promised(&mut self) -> bool {
        let (sent, buffered) = (&self.sent, self.buffered);
        let of = |completion: &Completion| sent[completion.tag as usize].as_ref().map(|(_, request)| request);
        let promises =
            |completion| of(completion).is_some_and(|request| Promise::of_request(request, buffered).is_any());
        self.device.completions().iter().any(promises)
    }
}

/// Devices side by side.
pub(crate) struct Array {
    below: Vec<Below>,
    now: Nanos,
    /// What was sent to all of them and has ended.
    pub(crate) sent: Traffic,
    records_paths: bool,
    paths: Vec<Path>,
    /// There are several devices, and images under them: what an answer of one promises is in its images before the layer acts
    /// on it ([`promise`](crate::promise)).
    has_images: bool,
}

impl Array {
    pub(crate) fn new(devices: Vec<Box<dyn Device>>) -> Array {
        let now = devices.iter().map(|device| device.now()).max().unwrap_or(Nanos::ZERO);
        let records_paths = devices.iter().flat_map(|device| device.parts()).any(|part| part.drive.records_paths());
        let mut parts = devices.iter().flat_map(|device| device.parts());
        let has_images = devices.len() > 1 && parts.any(|part| part.drive.image().is_some());
        let below = |device: Box<dyn Device>| {
            let identity = device.identify();
            let buffered = identity.has_write_cache || identity.has_host_cache;
            Below { device, sent: Vec::new(), free: Vec::new(), in_flight: 0, buffered }
        };
        let below = devices.into_iter().map(below).collect();
        Array { below, now, sent: Traffic::default(), records_paths, paths: Vec::new(), has_images }
    }

    pub(crate) fn len(&self) -> usize {
        self.below.len()
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) fn device(&self, index: usize) -> &dyn Device {
        &*self.below[index].device
    }

    pub(crate) fn device_mut(&mut self, index: usize) -> &mut dyn Device {
        &mut *self.below[index].device
    }

    /// The device that has the stack's part of this number, and the number there.
    pub(crate) fn place_of(&self, part: usize) -> (usize, usize) {
        let mut inside = part;
        for (index, below) in self.below.iter().enumerate() {
            let parts = below.device.parts().len();
            if inside < parts {
                return (index, inside);
            }
            inside -= parts;
        }
        panic!("the stack has no part {part}")
    }

    /// The power of a part goes and comes back now.
    pub(crate) fn cut(&mut self, part: usize, again: &mut Again<'_>) -> (usize, Loss) {
        self.advance(self.now);
        let (device, inside) = self.place_of(part);
        (device, self.below[device].device.cut(inside, again))
    }

    /// The host stops, as [`close`](crate::device::Power::close) has it.
    pub(crate) fn close(&mut self) {
        self.below.iter_mut().for_each(|below| below.device.close());
    }

    /// Who the devices are together.
    pub(crate) fn identify(&self, kind: &str) -> Identity {
        let identities: Vec<Identity> = self.devices().map(|device| device.identify()).collect();
        let names: Vec<&str> = identities.iter().map(|identity| identity.name.as_str()).collect();
        let design = identities.first().map(|identity| identity.design.clone()).unwrap_or_default();
        let alike = identities.iter().all(|identity| identity.design == design);
        let all = names.iter().all(|name| *name == names[0]);
        Identity {
            name: if all {
                format!("{kind} of {} {}", names.len(), names[0])
            } else {
                format!("{kind} of {}", names.join(", "))
            },
            design: if alike { design } else { "more than one".to_string() },
            unit_bytes: identities.iter().map(|identity| identity.unit_bytes).max().unwrap_or(512),
            is_timed: identities.iter().all(|identity| identity.is_timed),
            has_write_cache: identities.iter().any(|identity| identity.has_write_cache),
            has_host_cache: identities.iter().any(|identity| identity.has_host_cache),
        }
    }

    /// A layer's own figures, and those of the layers below it, from left to right.
    pub(crate) fn layers(&self, mut own: LayerMetrics) -> Vec<LayerMetrics> {
        own.sent = self.sent;
        own.below = Traffic::default();
        self.devices().for_each(|device| own.below.merge(&device.taken()));
        std::iter::once(own).chain(self.devices().flat_map(|device| device.layers())).collect()
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &dyn Device> {
        self.below.iter().map(|below| &*below.device)
    }

    pub(crate) fn devices_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Device>> {
        self.below.iter_mut().map(|below| &mut below.device)
    }

    /// The drives of all devices, from left to right.
    pub(crate) fn parts(&self) -> Vec<Part<'_>> {
        self.devices().flat_map(|device| device.parts()).collect()
    }

    /// The drives of all devices, from left to right, to change.
    pub(crate) fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.devices_mut().flat_map(|device| device.parts_mut()).collect()
    }

    /// Takes the drives out of all devices, from left to right, and drops the devices' layers.
    pub(crate) fn into_members(self) -> Vec<Member> {
        self.below.into_iter().flat_map(|below| below.device.into_members()).collect()
    }

    /// Whether paths are recorded.
    pub(crate) const fn records_paths(&self) -> bool {
        self.records_paths
    }

    /// That a command waits for this from now on; nothing while no paths are recorded.
    pub(crate) fn wait(&self, part: path::Part) -> Option<(Nanos, path::Part)> {
        self.records_paths.then_some((self.now, part))
    }

    /// Sets whether paths are recorded from now on, here and in the devices.
    pub(crate) fn record_paths(&mut self, on: bool) {
        self.records_paths = on;
        self.below.iter_mut().for_each(|below| below.device.record_paths(on));
    }

    /// Whether no command of the layer's is in a device.
    pub(crate) fn is_idle(&self) -> bool {
        self.below.iter().all(|below| below.in_flight == 0)
    }

    /// Commands in a device.
    pub(crate) fn in_flight(&self, index: usize) -> u64 {
        self.below[index].in_flight
    }

    /// Sends a command to a device now; `cells` is what a write brings, empty where contents are not kept.
    pub(crate) fn send(&mut self, index: usize, request: Request, cells: &[u8], owner: u64) {
        self.send_of_set(index, request, cells, &[], owner);
    }

    /// Sends block I/O or a command of the device's own set to a device now. `words` go with a command of the set;
    /// `cells` is what a write brings, empty where contents are not kept.
    pub(crate) fn send_of_set(&mut self, index: usize, request: Request, cells: &[u8], words: &[u64], owner: u64) {
        let below = &mut self.below[index];
        if below.device.now() < self.now {
            below.device.run_until(self.now);
        }
        let tag = below.free.pop().unwrap_or_else(|| {
            below.sent.push(None);
            below.sent.len() as u32 - 1
        });
        let request = Request { at: self.now, tag, ..request };
        below.sent[tag as usize] = Some((owner, request));
        below.in_flight += 1;
        let data = if cells.is_empty() { Data::Nothing } else { Data::Bytes(cells) };
        below.device.submit_command(&request, Payload { data, words });
    }

    /// Runs one command on the only device, in which there is none; how it ended, and what it read.
    ///
    /// # Errors
    /// The device never answers.
    pub(crate) fn alone(&mut self, request: Request, cells: &[u8]) -> Result<(Status, Option<Vec<u8>>), LayerError> {
        self.send(0, request, cells, 0);
        self.end_of_only_command()
    }

    /// Runs one command of the device's own set, with its words, on the only device, which holds no other; how it
    /// ended, and its answer.
    ///
    /// # Errors
    /// The device never answers.
    pub(crate) fn alone_of_set(
        &mut self,
        request: Request,
        words: &[u64],
    ) -> Result<(Status, Option<Answer>), LayerError> {
        self.send_of_set(0, request, &[], words, 0);
        let (status, _) = self.end_of_only_command()?;
        let mut answers = Vec::new();
        self.device_mut(0).take_answers(&mut answers);
        Ok((status, answers.pop()))
    }

    fn end_of_only_command(&mut self) -> Result<(Status, Option<Vec<u8>>), LayerError> {
        let mut ended = Vec::new();
        loop {
            self.take(&mut ended);
            match ended.pop() {
                Some(part) => return Ok((part.completion.status, part.cells)),
                None if self.run_to_completion(Nanos::MAX) || self.step(Nanos::MAX) => {}
                None => return Err(LayerError::Silent { device: 0 }),
            }
        }
    }

    /// Whether something has ended in a device that [`take`](Array::take) has not given.
    pub(crate) fn has_ended(&mut self, index: usize) -> bool {
        !self.below[index].device.completions().is_empty()
    }

    /// Whether something has ended in any device that [`take`](Array::take) has not given. A device that is brought to
    /// the time of the others may find something to do although it has no event.
    pub(crate) fn any_has_ended(&mut self) -> bool {
        (0..self.below.len()).any(|index| self.has_ended(index))
    }

    /// What has ended since the last call, device after device.
    pub(crate) fn take(&mut self, to: &mut Vec<Ended>) {
        for (index, below) in self.below.iter_mut().enumerate() {
            if below.device.completions().is_empty() {
                continue;
            }
            let kept = !self.has_images || acts_on_unkept() || !below.has_promised() || below.device.persist();
            let mut completions = std::mem::take(below.device.completions());
            // What was read stands in the order of the completions.
            let mut read = std::mem::take(below.device.read_data());
            let mut cells_read = read.drain(..).peekable();
            below.device.take_paths(&mut self.paths);
            let mut paths = self.paths.drain(..);
            for mut completion in completions.drain(..) {
                let (owner, request) = below.sent[completion.tag as usize].take().expect("a tag below is in use once");
                let promises = || Promise::of_request(&request, below.buffered).is_any();
                if !kept && completion.status == Status::Success && promises() {
                    completion.status = Status::StorageFull;
                }
                below.free.push(completion.tag);
                below.in_flight -= 1;
                self.sent.add(&request);
                let cells = cells_read.next_if(|(tag, _)| *tag == completion.tag).map(|(_, cells)| cells);
                to.push(Ended { device: index, owner, request, completion, cells, path: paths.next() });
            }
            assert!(cells_read.next().is_none(), "what was read belongs to a completion that succeeded");
            drop((paths, cells_read));
            // The allocations go back: the device fills them again.
            *below.device.completions() = completions;
            *below.device.read_data() = read;
        }
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.below.iter().filter_map(|below| below.device.next_event()).min()
    }

    /// Whether a device has something to do up to `until`: one without events may find something while commands are in
    /// it.
    pub(crate) fn has_work(&self, until: Nanos) -> bool {
        match self.next_event() {
            Some(at) => at <= until,
            None => self.below.iter().any(|below| below.in_flight > 0),
        }
    }

    /// Runs the events of the earliest time, which is not beyond `until`; false if there are none, and no device finds
    /// something to do.
    pub(crate) fn step(&mut self, until: Nanos) -> bool {
        let Some(at) = self.next_event().filter(|at| *at <= until) else { return self.run_those_without_events() };
        self.now = self.now.max(at);
        for below in &mut self.below {
            if below.device.next_event().is_some_and(|event| event <= at) {
                below.device.run_until(at);
            }
        }
        true
    }

    /// Runs events of the only device up to `until`, and stops as soon as a completion is there; true if one is. Events for the host
    /// are dropped: no layer has a use for them, and the device stops while one is there.
    pub(crate) fn run_to_completion(&mut self, until: Nanos) -> bool {
        let device = &mut self.below[0].device;
        let any = device.wait_for_completion(until);
        self.now = self.now.max(device.now());
        any
    }

    /// Commands may wait in a device in which nothing will happen: it finds out when it is run. True if that changed anything.
    fn run_those_without_events(&mut self) -> bool {
        let mut any = false;
        for below in self.below.iter_mut().filter(|below| below.in_flight > 0) {
            if below.device.next_event().is_none() {
                let before = below.device.outstanding();
                below.device.run_until(self.now.max(below.device.now()));
                any |= below.device.outstanding() != before || below.device.next_event().is_some();
            }
        }
        any
    }

    /// Brings all devices to one time, before which no event is left.
    pub(crate) fn advance(&mut self, to: Nanos) {
        self.now = self.now.max(to);
        for below in &mut self.below {
            if below.device.now() < self.now {
                below.device.run_until(self.now);
            }
        }
    }

    /// Functional fast-forward: what the devices still do by themselves comes to its end before, and takes time.
    pub(crate) fn set_timed(&mut self, timed: bool) {
        for below in &mut self.below {
            below.device.set_timed(timed);
            self.now = self.now.max(below.device.now());
        }
        self.advance(self.now);
    }

    /// Statistics and time begin anew.
    pub(crate) fn reset_statistics(&mut self) {
        self.below.iter_mut().for_each(|below| below.device.reset_statistics());
        self.now = Nanos::ZERO;
        self.sent = Traffic::default();
    }
}
