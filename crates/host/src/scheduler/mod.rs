//! The block layer of a host: an I/O scheduler.
//!
//! ```text
//!   command -> waits in the order of arrival -> queue, which a policy looks at -> the device, `depth` requests at a time
//! ```
//!
//! While the device is full, requests wait. One that begins where a waiting one of its kind ends is joined to it (a back merge), or one
//! that ends where it begins (a front merge), so the device sees fewer and larger requests. The policy (`policy/`) says which one goes
//! next; with `fifo` all keep their places.
//!
//! Some commands keep their places under every policy: a flush, a command of a set, a change of an append-only segment or zone, and a
//! command on the sectors of one that waits, where one of the two changes them. Such a command goes when everything before it has
//! gone, what comes behind it waits, and nothing is joined across it. So nothing that overlaps is reordered.

mod config;
mod policy;
mod queue;
mod request;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ssdlab_base::command_set::Merging;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Status;

pub use config::SchedulerConfig;

use self::config::Ordered;
use self::policy::Policy;
use self::queue::Queue;
use self::request::{Joined, PARTS_MAX, Rules};
use crate::layer::{Array, Ended, Io, Layer, Turn};
use crate::layers::LayerKind;
use crate::{Device, LayerMetrics, Loss};

pub(crate) use config::LAYER;

/// A policy, and the requests that it orders.
struct Elevator {
    ordered: Ordered,
    policy: Box<dyn Policy>,
    queue: Queue,
    /// While it is plugged: when the requests go that wait for others.
    plugged_until: Option<Nanos>,
    /// A caller waits for what is held back.
    has_waiter: bool,
    plugs: u64,
    unplugged_by_time: u64,
    unplugged_by_waiter: u64,
}

impl Elevator {
    fn new(ordered: &Ordered, rules: Rules) -> Elevator {
        Elevator {
            policy: ordered.policy.make(),
            queue: Queue::new(rules, ordered.requests),
            ordered: ordered.clone(),
            plugged_until: None,
            has_waiter: false,
            plugs: 0,
            unplugged_by_time: 0,
            unplugged_by_waiter: 0,
        }
    }

    /// A request is ordered from now on. The first one waits for others, unless a caller waits for it.
    fn admit(&mut self, joined: Joined, now: Nanos, is_timed: bool) {
        let Request { op, fua, .. } = joined.request;
        let (was_empty, can_wait) = (self.queue.is_empty(), op != Op::Read && !fua);
        self.queue.admit(joined, now);
        if was_empty && is_timed {
            self.plugged_until = Some(Nanos(now.0.saturating_add(self.ordered.unplug_time.0)));
            self.has_waiter = false;
            self.plugs += u64::from(can_wait && self.ordered.unplug_requests > 1);
        }
        if !can_wait || self.queue.len() >= self.ordered.unplug_requests as usize {
            self.plugged_until = None;
        }
    }
}

/// Orders and joins what goes to a device.
pub struct Scheduler {
    io: Io<Joined, ()>,
    config: SchedulerConfig,
    rules: Rules,
    /// Commands in the order of arrival: all of them, or those that keep their places and what came behind them.
    waiting: VecDeque<Joined>,
    elevator: Option<Elevator>,
    /// Requests that were joined to the last one that kept its place.
    merged: u64,
    /// Commands that wait, merged ones one by one, and the most that ever did.
    waiting_commands: u64,
    waiting_max: u64,
    /// The layer above sends commands of the device's set.
    serves_a_set: bool,
}

impl Scheduler {
    /// A scheduler above a device.
    pub fn new(below: Box<dyn Device>, config: SchedulerConfig) -> Scheduler {
        let (capacity, zone) = (below.sectors(), below.segment_sectors());
        let rules = Rules { bytes: config.merge_bytes, segments: config.segments(), capacity, zone };
        Scheduler {
            io: Io::new(Array::new(vec![below]), &LAYER),
            elevator: config.ordered.as_ref().map(|ordered| Elevator::new(ordered, rules)),
            config: SchedulerConfig { depth: config.depth.max(1), ..config },
            rules,
            waiting: VecDeque::new(),
            merged: 0,
            waiting_commands: 0,
            waiting_max: 0,
            serves_a_set: false,
        }
    }

    /// Commands that were joined to another one.
    pub fn merged(&self) -> u64 {
        let of_queue = self.elevator.as_ref().map_or(0, |elevator| {
            let counts = elevator.queue.counts;
            counts.back_merges + counts.front_merges + counts.neighbours_joined
        });
        self.merged + of_queue
    }

    /// Whether a request becomes part of the one that arrived before it.
    fn joins_last(&self, last: &Joined, next: &Joined) -> bool {
        last.request.queue == next.request.queue && self.rules.join(last, next) && self.set_allows(last, next)
    }

    /// Whether the command set lets the two become one.
    fn set_allows(&self, last: &Joined, next: &Joined) -> bool {
        if last.request.opcode.is_block() {
            return true;
        }
        let set = self.io.array.device(0).command_set();
        set.and_then(|set| set.command(last.request.opcode)).is_some_and(|spec| {
            spec.merging == Merging::Neighbours && spec.words_in.allow(last.words.len() + next.words.len())
        })
    }

    /// Whether a command keeps its place under every policy.
    fn keeps_place(rules: &Rules, request: &Request) -> bool {
        let in_range = request.sector.checked_add(request.sectors).is_some_and(|end| end <= rules.capacity);
        !request.opcode.is_block()
            || request.sectors == 0
            || !in_range
            || rules.zone.is_some() && request.op != Op::Read
    }

    /// Gives the policy what has no place to keep.
    fn feed(&mut self) {
        let Some(elevator) = &mut self.elevator else { return };
        let (now, is_timed) = (self.io.array.now(), self.io.is_timed);
        while let Some(front) = self.waiting.front()
            && !Scheduler::keeps_place(&self.rules, &front.request)
            && !elevator.queue.conflicts(&front.request)
        {
            let front = self.waiting.pop_front().expect("it was there");
            elevator.admit(front, now, is_timed);
        }
        if !self.waiting.is_empty() {
            elevator.plugged_until = None;
        }
    }

    /// The request that goes next, if one may.
    fn next(&mut self) -> Option<Joined> {
        self.feed();
        let Some(elevator) = &mut self.elevator else { return self.waiting.pop_front() };
        if elevator.queue.is_empty() {
            return self.waiting.pop_front();
        }
        if elevator.plugged_until.is_some() {
            return None;
        }
        let now = self.io.array.now();
        let slot = elevator.policy.choose(&elevator.queue.view(), now);
        Some(elevator.queue.take(slot, now))
    }

    /// What a request brings to the device: that of its commands, in the order of sectors.
    fn cells_of(&mut self, joined: &Joined) -> Vec<u8> {
        let mut cells = std::mem::take(&mut self.io.command(joined.first).cells);
        for slot in &joined.more {
            cells.append(&mut self.io.command(*slot).cells);
        }
        cells
    }

    fn send(&mut self, mut joined: Joined) {
        self.waiting_commands -= joined.parts();
        let cells = self.cells_of(&joined);
        let words = std::mem::take(&mut joined.words);
        self.io.array.send_of_set(0, joined.request, &cells, &words, joined);
    }
}

impl Layer for Scheduler {
    const KIND: LayerKind = LAYER;
    type Purpose = Joined;
    type State = ();

    fn io(&self) -> &Io<Joined, ()> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Joined, ()> {
        &mut self.io
    }

    /// The device below keeps the order.
    fn extent(&self, request: &Request) -> Request {
        Request { sectors: 0, ..*request }
    }

    fn start(&mut self, slot: u32, _: Turn) {
        let command = self.io.command(slot);
        let joined = Joined::new(command.request, slot, command.take_words());
        self.serves_a_set |= !joined.request.opcode.is_block();
        self.waiting_commands += 1;
        let is_behind = self.elevator.is_none() || !self.waiting.is_empty();
        if is_behind && self.waiting.back().is_some_and(|last| self.joins_last(last, &joined)) {
            self.waiting.back_mut().expect("it was there").append(joined);
            self.merged += 1;
        } else {
            self.waiting.push_back(joined);
        }
    }

    fn ended(&mut self, mut part: Ended<Joined>) {
        let (joined, status, order) = (part.purpose, part.status, part.order);
        if let Some(elevator) = &mut self.elevator {
            elevator.plugged_until = None;
        }
        let cell = part.cells.as_ref().map_or(0, |cells| cells.len() / joined.request.sectors.max(1) as usize);
        for (index, slot) in (0..).zip(joined.slots()) {
            let command = self.io.command(slot);
            let from = (command.request.sector - joined.request.sector) as usize * cell;
            let to = from + command.request.sectors as usize * cell;
            command.cells = part.cells.as_ref().map_or(Vec::new(), |cells| cells[from..to].to_vec());
            command.note_path(part.path.clone());
            // What has an answer is never joined.
            command.note_answer(part.answer.take());
            self.io.answer_in_order(slot, status, order * PARTS_MAX + index);
        }
    }

    /// Sends what may go.
    fn proceed(&mut self) -> bool {
        while self.io.array.in_flight(0) < u64::from(self.config.depth)
            && let Some(joined) = self.next()
        {
            self.send(joined);
        }
        if !self.io.array.any_has_ended() {
            self.waiting_max = self.waiting_max.max(self.waiting_commands);
        }
        false
    }

    fn wakes_at(&self) -> Option<Nanos> {
        self.elevator.as_ref().and_then(|elevator| elevator.plugged_until)
    }

    fn wake(&mut self) {
        if let Some(elevator) = &mut self.elevator {
            elevator.plugged_until = None;
            let by_waiter = std::mem::take(&mut elevator.has_waiter);
            elevator.unplugged_by_waiter += u64::from(by_waiter);
            elevator.unplugged_by_time += u64::from(!by_waiter);
        }
    }

    /// The plug goes at once, after what is sent at this instant.
    fn caller_waits(&mut self) {
        self.feed();
        let now = self.io.array.now();
        if let Some(elevator) = &mut self.elevator
            && elevator.plugged_until.is_some_and(|until| until > now)
        {
            (elevator.plugged_until, elevator.has_waiter) = (Some(now), true);
        }
        self.io.array.unplug();
    }

    /// A layer that knows the device's set counts on it that what it has sent ends with the power, and sends it again as the device
    /// is then. It does not look at the order of effect.
    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if self.serves_a_set {
            let ordered = self.elevator.as_mut().map_or(Vec::new(), |elevator| {
                elevator.plugged_until = None;
                elevator.queue.drain()
            });
            for joined in ordered.into_iter().chain(std::mem::take(&mut self.waiting)) {
                for slot in joined.slots() {
                    self.io.answer(slot, Status::Aborted);
                }
            }
            self.waiting_commands = 0;
        }
        loss
    }

    fn metrics(&self) -> LayerMetrics {
        let mut figures = vec![("merged_requests", self.merged()), ("waiting_max", self.waiting_max)];
        if let Some(elevator) = &self.elevator {
            let counts = elevator.queue.counts;
            figures.extend([
                ("back_merges", counts.back_merges + self.merged),
                ("front_merges", counts.front_merges),
                ("neighbours_joined", counts.neighbours_joined),
                ("plugs", elevator.plugs),
                ("submitters_held", counts.held),
                ("unplugged_by_time", elevator.unplugged_by_time),
                ("unplugged_by_waiter", elevator.unplugged_by_waiter),
            ]);
            figures.extend(elevator.policy.figures());
        }
        LayerMetrics {
            configuration: self.config.shown(),
            figures: figures.into_iter().map(|(key, value)| (key.to_string(), value as f64)).collect(),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        (self.merged, self.waiting_max) = (0, 0);
        if let Some(elevator) = &mut self.elevator {
            (elevator.plugs, elevator.unplugged_by_time, elevator.unplugged_by_waiter) = (0, 0, 0);
            elevator.queue.counts = queue::Counts::default();
            elevator.policy.reset_counts();
        }
    }

    fn stride(&self) -> u64 {
        self.io.array.device(0).order_stride() * PARTS_MAX
    }
}
