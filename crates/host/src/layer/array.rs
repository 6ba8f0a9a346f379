//! The devices below a layer, kept in one virtual time, and the commands that the layer has in them.

use ssdlab_base::{Answer, Event, Nanos, Request};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Completion, Data, Drive, Payload, Status};
use ssdlab_disk::Disk;

use super::Slots;
use crate::device::Again;
use crate::promise::Promise;
use crate::seeded::acts_on_unkept;
use crate::{AnswersBelow, Device, Identity, LayerError, LayerMetrics, Loss, Member, Part, Traffic};

/// A command that has ended in a device.
pub(crate) struct Ended<P> {
    /// Which device.
    pub(crate) device: usize,
    /// What the layer sent it for.
    pub(crate) purpose: P,
    /// The command as it was sent.
    pub(crate) request: Request,
    /// How it ended.
    pub(crate) status: Status,
    /// Its place in the device's order of effect.
    pub(crate) order: u64,
    /// What it read, where contents are kept.
    pub(crate) cells: Option<Vec<u8>>,
    /// The answer of a command of a set, if it has one.
    pub(crate) answer: Option<Box<Answer>>,
    /// What it waited for, where that is recorded.
    pub(crate) path: Option<Box<Path>>,
}

/// A device and what is in it.
struct Lower<P> {
    device: Box<dyn Device>,
    /// By tag.
    sent: Slots<(P, Request)>,
    in_flight: u64,
    /// A plain write may be lost with the power after its answer.
    buffered: bool,
    /// It gives what was read.
    keeps_contents: bool,
}

impl<P> Lower<P> {
    fn new(device: Box<dyn Device>) -> Lower<P> {
        let buffered = device.identify().may_lose_completed();
        let keeps_contents = device.sector_data_bytes() > 0;
        Lower { device, sent: Slots::new(), in_flight: 0, buffered, keeps_contents }
    }

    /// Whether the answer of one of these promises something.
    fn has_promised(&self, completions: &[Completion]) -> bool {
        let request = |completion: &Completion| &self.sent.get(completion.tag).1;
        completions.iter().any(|completion| Promise::of_request(request(completion), self.buffered).is_any())
    }

    /// A command is in it, and it has no event: it finds out when it is run whether it can go on.
    fn is_stuck(&self) -> bool {
        self.in_flight > 0 && self.device.next_event().is_none()
    }
}

/// Devices side by side, and for what (`P`) each command was sent to them.
pub(crate) struct Array<P> {
    below: Vec<Lower<P>>,
    now: Nanos,
    /// What was sent to all of them and has ended.
    pub(crate) sent: Traffic,
    records_paths: bool,
    paths: Vec<Path>,
    /// There are several devices, and images under them: what an answer of one promises is in its images before the layer acts
    /// on it ([`promise`](crate::promise)).
    has_images: bool,
    /// Events of the only device go to the host; otherwise they are dropped.
    hands_on_events: bool,
    /// The only device stopped because of an event that the host has not taken.
    has_event: bool,
}

impl Array<()> {
    /// Devices in which there is nothing, brought to one time.
    pub(crate) fn new(devices: Vec<Box<dyn Device>>) -> Array<()> {
        let now = devices.iter().map(|device| device.now()).max().unwrap_or(Nanos::ZERO);
        let records_paths = devices.iter().flat_map(|device| device.drives()).any(|part| part.device.records_paths());
        let mut drives = devices.iter().flat_map(|device| device.drives());
        let mut disks = devices.iter().flat_map(|device| device.disks());
        let has_images = devices.len() > 1
            && (drives.any(|part| part.device.image().is_some())
                || disks.any(|part| part.device.image_bytes().is_some()));
        let below = devices.into_iter().map(Lower::new).collect();
        let (sent, paths) = (Traffic::default(), Vec::new());
        let mut array =
            Array { below, now, sent, records_paths, paths, has_images, hands_on_events: false, has_event: false };
        array.advance(now);
        array
    }

    /// Runs one command on a device, in which there is no other: block I/O or one of the device's own set, with its words.
    ///
    /// # Errors
    /// The device never answers.
    pub(crate) fn alone(
        &mut self,
        device: usize,
        request: Request,
        cells: &[u8],
        words: &[u64],
    ) -> Result<Ended<()>, LayerError> {
        self.send_of_set(device, request, cells, words, ());
        let mut ended = self.run_out(1)?;
        ended.pop().ok_or(LayerError::Silent { device })
    }

    /// Runs until so many commands have ended, as many as there are in the devices, and gives them in the order in which they ended.
    ///
    /// # Errors
    /// A device never answers.
    pub(crate) fn run_out(&mut self, commands: usize) -> Result<Vec<Ended<()>>, LayerError> {
        let mut ended = Vec::new();
        loop {
            self.take(&mut ended);
            if ended.len() >= commands {
                return Ok(ended);
            }
            if !self.run(Nanos::MAX) && !self.run_stuck() {
                let device = self.below.iter().position(|below| below.in_flight > 0).unwrap_or(0);
                return Err(LayerError::Silent { device });
            }
        }
    }

    /// The devices for a layer, whose commands have purposes. None is in them now.
    pub(super) fn for_layer<P>(self, hands_on_events: bool) -> Array<P> {
        assert!(self.is_idle(), "a layer begins above idle devices");
        let below = self.below.into_iter().map(|below| Lower::new(below.device)).collect();
        let Array { now, sent, records_paths, paths, has_images, has_event, .. } = self;
        Array { below, now, sent, records_paths, paths, has_images, hands_on_events, has_event }
    }
}

impl<P> Array<P> {
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

    /// The device that has the stack's drive or disk of this number, and the number there.
    fn place_of(&self, member: usize) -> (usize, usize) {
        let mut inside = member;
        for (index, below) in self.below.iter().enumerate() {
            let members = below.device.members();
            if inside < members {
                return (index, inside);
            }
            inside -= members;
        }
        panic!("the stack has no drive or disk {member}")
    }

    /// The power of a drive or a disk goes and comes back now.
    pub(crate) fn cut(&mut self, member: usize, again: &mut Again<'_>) -> (usize, Loss) {
        self.advance(self.now);
        let (device, inside) = self.place_of(member);
        (device, self.below[device].device.cut(inside, again))
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

    /// A layer's own metrics, and those of the layers below it, from left to right.
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
    pub(crate) fn drives(&self) -> Vec<Part<&Drive>> {
        self.devices().flat_map(|device| device.drives()).collect()
    }

    /// The drives of all devices, from left to right, to change.
    pub(crate) fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        self.devices_mut().flat_map(|device| device.drives_mut()).collect()
    }

    /// The disks of all devices, from left to right.
    pub(crate) fn disks(&self) -> Vec<Part<&Disk>> {
        self.devices().flat_map(|device| device.disks()).collect()
    }

    /// The disks of all devices, from left to right, to change.
    pub(crate) fn disks_mut(&mut self) -> Vec<Part<&mut Disk>> {
        self.devices_mut().flat_map(|device| device.disks_mut()).collect()
    }

    /// Takes the drives and disks out of all devices, from left to right, and drops the devices' layers.
    pub(crate) fn take_members(&mut self) -> Vec<Member> {
        std::mem::take(&mut self.below).into_iter().flat_map(|below| below.device.into_members()).collect()
    }

    /// Takes the devices out, with what is in flight in them.
    pub(crate) fn into_devices(self) -> Vec<Box<dyn Device>> {
        self.below.into_iter().map(|below| below.device).collect()
    }

    /// Whether paths are recorded.
    pub(crate) const fn records_paths(&self) -> bool {
        self.records_paths
    }

    /// Sets whether paths are recorded from now on, here and in the devices.
    pub(crate) fn record_paths(&mut self, on: bool) {
        self.records_paths = on;
        self.devices_mut().for_each(|device| device.record_paths(on));
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
    pub(crate) fn send(&mut self, index: usize, request: Request, cells: &[u8], purpose: P) {
        self.send_of_set(index, request, cells, &[], purpose);
    }

    /// Sends block I/O or a command of the device's own set to a device now. `words` go with a command of the set;
    /// `cells` is what a write brings, empty where contents are not kept.
    pub(crate) fn send_of_set(&mut self, index: usize, request: Request, cells: &[u8], words: &[u64], purpose: P) {
        // The time of the only device is that of the layer.
        let several = self.below.len() > 1;
        let below = &mut self.below[index];
        if several && below.device.now() < self.now {
            below.device.run_until(self.now);
        }
        debug_assert!(below.device.now() >= self.now, "a command is sent now");
        let tag = below.sent.next_number();
        let request = Request { at: self.now, tag, ..request };
        below.sent.put((purpose, request));
        below.in_flight += 1;
        let data = if cells.is_empty() { Data::Nothing } else { Data::Bytes(cells) };
        below.device.submit_command(&request, Payload { data, words });
    }

    /// Whether something has ended in any device that [`take`](Array::take) has not given. A device that is brought to
    /// the time of the others may find something to do although it has no event.
    pub(crate) fn any_has_ended(&mut self) -> bool {
        self.below.iter_mut().any(|below| !below.device.completions().is_empty())
    }

    /// What has ended since the last call, device after device.
    pub(crate) fn take(&mut self, to: &mut Vec<Ended<P>>) {
        for (index, below) in self.below.iter_mut().enumerate() {
            let completions = below.device.completions();
            if completions.is_empty() {
                continue;
            }
            let mut completions = std::mem::take(completions);
            let kept =
                !self.has_images || acts_on_unkept() || !below.has_promised(&completions) || below.device.persist();
            // What was read stands in the order of the completions.
            let mut read = if below.keeps_contents { std::mem::take(below.device.read_data()) } else { Vec::new() };
            let mut cells_read = read.drain(..).peekable();
            let has_answers = completions.iter().any(|completion| completion.has_answer);
            debug_assert!(
                has_answers || AnswersBelow::take(&mut *below.device).is_empty(),
                "an answer belongs to a completion"
            );
            let mut answers = has_answers.then(|| AnswersBelow::take(&mut *below.device));
            if self.records_paths {
                below.device.take_paths(&mut self.paths);
            }
            let mut paths = self.paths.drain(..);
            for completion in completions.drain(..) {
                let Completion { tag, mut status, order, .. } = completion;
                let (purpose, request) = below.sent.take(tag);
                if !kept && status == Status::Success && Promise::of_request(&request, below.buffered).is_any() {
                    status = Status::StorageFull;
                }
                below.in_flight -= 1;
                self.sent.add_ended(&request, status);
                let cells = match below.keeps_contents {
                    true => cells_read.next_if(|(read, _)| *read == tag).map(|(_, cells)| cells),
                    false => None,
                };
                // Few commands have these, and each is moved often.
                let answer = answers.as_mut().and_then(|answers| answers.of(&completion)).map(Box::new);
                let path = if self.records_paths { paths.next().map(Box::new) } else { None };
                to.push(Ended { device: index, purpose, request, status, order, cells, answer, path });
            }
            assert!(cells_read.next().is_none(), "what was read belongs to a completion that succeeded");
            if let Some(answers) = answers {
                answers.end();
            }
            drop((paths, cells_read));
            // The allocations go back: the device fills them again.
            *below.device.completions() = completions;
            if below.keeps_contents {
                *below.device.read_data() = read;
            }
        }
    }

    /// Moves the events of the only device that the host has not seen to the end of `to`.
    pub(crate) fn take_events(&mut self, to: &mut Vec<Event>) {
        self.has_event = false;
        self.below[0].device.take_events(to);
    }

    /// Whether the only device stopped because of an event that the host has not taken.
    pub(crate) const fn has_event(&self) -> bool {
        self.has_event
    }

    /// No device holds back what was sent to it.
    pub(crate) fn unplug(&mut self) {
        self.below.iter_mut().for_each(|below| below.device.unplug());
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.below.iter().filter_map(|below| below.device.next_event()).min()
    }

    /// Whether a device has something to do up to `until`: one without events may find something while commands are in
    /// it.
    pub(crate) fn has_work(&self, until: Nanos) -> bool {
        self.next_event().is_some_and(|at| at <= until) || self.below.iter().any(Lower::is_stuck)
    }

    /// Runs events up to `until`: of several devices those of the earliest time, of one device all before its next completion, since
    /// most of a drive's events complete nothing. False if nothing has happened that the layer has to look at.
    pub(crate) fn run(&mut self, until: Nanos) -> bool {
        if let [below] = &mut self.below[..]
            && !self.has_event
        {
            let device = &mut below.device;
            let any = match self.hands_on_events {
                false => device.wait_for_completion(until),
                true => device.run_to_completion(until),
            };
            self.has_event = any && device.completions().is_empty();
            self.now = self.now.max(device.now());
            return any;
        }
        let Some(at) = self.next_event().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        for below in &mut self.below {
            if below.device.next_event().is_some_and(|event| event <= at) {
                below.device.run_until(at);
            }
        }
        true
    }

    /// Commands may wait in a device in which nothing will happen: it finds out when it is run. True if that changed anything.
    pub(crate) fn run_stuck(&mut self) -> bool {
        let mut any = false;
        for below in self.below.iter_mut().filter(|below| below.is_stuck()) {
            let before = below.device.outstanding();
            below.device.run_until(self.now.max(below.device.now()));
            any |= below.device.outstanding() != before || below.device.next_event().is_some();
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
        self.devices_mut().for_each(|device| device.reset_statistics());
        self.now = Nanos::ZERO;
        self.sent = Traffic::default();
    }
}
