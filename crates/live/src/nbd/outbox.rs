//! What a connection owes its client: requests on their way through the target, and replies on their way out.
//!
//! The thread that brings answers sends them, never blocking and never holding the lock while in the kernel: replies
//! that come meanwhile are left for the thread that is sending. When the client takes no more, the rest is handed to
//! the connection's writer thread, which waits. Every request counts its bytes against a limit from when it was read
//! until its reply is out, so that neither a deep queue nor a client that never reads makes memory grow.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ssdlab_base::Op;

use super::budget::Share;
use super::reply::Reply;
use super::request::Refusal;
use super::session::Stream;
use crate::{Answer, Command, Failure, Sink};

/// Replies in one system call.
const REPLIES_PER_SEND: usize = 64;

/// The least that a request counts: what it costs besides its data, and then some.
pub(super) const REQUEST_COST_MIN: u64 = 4096;

/// A request that the target has.
pub(super) struct Pending {
    pub(super) handle: u64,
    pub(super) offset: u64,
    /// Bytes that a read has to bring.
    pub(super) read_bytes: usize,
    pub(super) cost: u64,
}

impl Pending {
    /// A request as the protocol numbers it, and what it counts.
    pub(super) fn new(handle: u64, offset: u64, op: Op, length: u32) -> Pending {
        let moved = if matches!(op, Op::Read | Op::Write) { length } else { 0 };
        let read_bytes = if op == Op::Read { moved as usize } else { 0 };
        Pending { handle, offset, read_bytes, cost: u64::from(moved).max(REQUEST_COST_MIN) }
    }
}

struct Slot {
    /// Tells a slot's requests apart, so that a cookie is good for one answer only.
    generation: u32,
    pending: Option<Pending>,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    queue: VecDeque<Reply>,
    /// An emptied queue, kept for its allocation.
    spare: VecDeque<Reply>,
    /// How much of the queue's first reply is out already.
    front_sent: usize,
    /// A thread is in the kernel with what was in the queue, or the writer thread has been called.
    sending: bool,
    /// The client took no more: the queue is the writer thread's.
    blocked: bool,
    /// The client is gone; replies are dropped.
    broken: bool,
    /// Nothing will be added any more.
    closed: bool,
    /// Requests that the target has.
    outstanding: usize,
    /// Cost of everything unanswered or unsent.
    cost: u64,
    /// The reader waits for room, or for the end.
    reader_waits: bool,
}

/// The writing side of a connection, and the sink of its commands.
pub(super) struct Outbox<S: Stream> {
    stream: Arc<S>,
    structured: bool,
    cost_max: u64,
    /// What the connection holds of the server's memory.
    share: Arc<Share>,
    state: Mutex<State>,
    /// The reader waits here.
    reader: Condvar,
    /// The writer thread waits here.
    writer: Condvar,
}

impl<S: Stream> Outbox<S> {
    pub(super) fn new(stream: Arc<S>, structured: bool, cost_max: u64, share: Arc<Share>) -> Outbox<S> {
        let state = Mutex::new(State::default());
        Outbox { stream, structured, cost_max, share, state, reader: Condvar::new(), writer: Condvar::new() }
    }

    /// A panic elsewhere leaves the state whole: nothing in here stops half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much may be read before the limit, a single request of `cost` aside: that always fits when all else is done.
    pub(super) fn room(&self) -> u64 {
        self.cost_max.saturating_sub(self.lock().cost)
    }

    /// Waits until a request of `cost` fits, and gives the room there is. `None` if the client is gone or `stopping`
    /// says so.
    pub(super) fn wait_for_room(&self, cost: u64, stopping: impl Fn() -> bool) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if state.broken || stopping() {
                return None;
            }
            let room = self.cost_max.saturating_sub(state.cost);
            if room >= cost || state.cost == 0 {
                return Some(room.max(cost));
            }
            state.reader_waits = true;
            state = self.reader.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the client is gone.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().broken
    }

    /// Notes requests and gives each its cookie; the two go side by side.
    pub(super) fn admit(&self, pending: &mut Vec<Pending>, commands: &mut [Command]) {
        debug_assert_eq!(pending.len(), commands.len());
        let mut state = self.lock();
        for (pending, command) in pending.drain(..).zip(commands) {
            state.cost += pending.cost;
            state.outstanding += 1;
            let slot = state.slots_free.pop().unwrap_or_else(|| {
                state.slots.push(Slot { generation: 0, pending: None });
                state.slots.len() as u32 - 1
            });
            let entry = &mut state.slots[slot as usize];
            entry.pending = Some(pending);
            command.cookie = u64::from(entry.generation) << 32 | u64::from(slot);
        }
    }

    /// Sends replies that need no target. Their cost counts from now on.
    pub(super) fn post(&self, replies: &mut Vec<Reply>) {
        let mut state = self.lock();
        if state.broken {
            replies.clear();
            return;
        }
        state.cost += replies.iter().map(|reply| reply.cost).sum::<u64>();
        state.queue.extend(replies.drain(..));
        self.send(state);
    }

    fn reply(&self, pending: &Pending, result: Result<Vec<u8>, Failure>) -> Reply {
        let Pending { handle, offset, read_bytes, cost } = *pending;
        match result {
            Ok(data) if data.len() != read_bytes => {
                debug_assert!(false, "{} bytes read where {read_bytes} were asked for", data.len());
                Reply::refused(cost, handle, self.structured, &Failure::Io.into())
            }
            Ok(_) if read_bytes == 0 => Reply::done(cost, handle),
            Ok(data) => Reply::data(cost, handle, self.structured, offset, data),
            Err(failure) => Reply::refused(cost, handle, self.structured, &Refusal::from(failure)),
        }
    }

    /// Sends what is queued without blocking, unless another thread is sending.
    fn send<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        if state.sending {
            return;
        }
        while !state.queue.is_empty() {
            let (mut queue, mut front_sent) = self.take_queue(&mut state);
            drop(state);
            let sent = send_all(&*self.stream, &mut queue, &mut front_sent, false);
            state = self.lock();
            self.put_back(&mut state, queue, front_sent, &sent);
            if state.broken {
                break;
            }
            if !state.queue.is_empty() && sent.outcome.is_err() {
                // What did not go is the writer thread's, which clears `sending` when it is through.
                state.sending = true;
                state.blocked = true;
                self.writer.notify_one();
                return;
            }
        }
        self.wake_reader(&mut state);
    }

    fn take_queue(&self, state: &mut State) -> (VecDeque<Reply>, usize) {
        state.sending = true;
        let spare = mem::take(&mut state.spare);
        (mem::replace(&mut state.queue, spare), mem::take(&mut state.front_sent))
    }

    /// After a send: what went is no longer owed, what did not go is first in the queue again.
    fn put_back(&self, state: &mut State, mut queue: VecDeque<Reply>, front_sent: usize, sent: &Sent) {
        state.sending = false;
        state.cost -= sent.cost;
        self.share.moved(sent.bytes);
        self.share.give(sent.cost);
        let blocked = matches!(&sent.outcome, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        if sent.outcome.is_err() && !blocked {
            self.break_off(state, queue);
            return;
        }
        if !queue.is_empty() {
            // Rare, and then the queue holds more than the socket takes: moving what came meanwhile costs little.
            queue.append(&mut state.queue);
            state.front_sent = front_sent;
            mem::swap(&mut state.queue, &mut queue);
        }
        if state.spare.capacity() == 0 {
            state.spare = queue;
        }
    }

    fn break_off(&self, state: &mut State, queue: VecDeque<Reply>) {
        state.broken = true;
        let dropped: u64 = queue.iter().chain(&state.queue).map(|reply| reply.cost).sum();
        state.cost -= dropped;
        self.share.give(dropped);
        state.queue.clear();
        state.front_sent = 0;
        // The threads that read or write on this connection learn of it.
        self.stream.shutdown();
        self.reader.notify_all();
        self.writer.notify_all();
    }

    fn wake_reader(&self, state: &mut State) {
        if mem::take(&mut state.reader_waits) {
            self.reader.notify_all();
        }
    }

    /// The writer thread: sends, waiting for the client, what could not be sent at once.
    pub(super) fn write_what_blocked(&self) {
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            if !state.blocked {
                state = self.writer.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.queue.is_empty() {
                state.blocked = false;
                state.sending = false;
                self.wake_reader(&mut state);
                continue;
            }
            let (mut queue, mut front_sent) = self.take_queue(&mut state);
            drop(state);
            let sent = self.share.waiting_for_client(|| send_all(&*self.stream, &mut queue, &mut front_sent, true));
            state = self.lock();
            self.put_back(&mut state, queue, front_sent, &sent);
            // Until the queue is empty it stays the writer's.
            state.sending = true;
            self.wake_reader(&mut state);
        }
    }

    /// Waits until the target has answered everything and the client has taken it, or is gone.
    pub(super) fn drain(&self) {
        let mut state = self.lock();
        while state.outstanding > 0 || (!state.broken && (state.sending || !state.queue.is_empty())) {
            state.reader_waits = true;
            state = self.reader.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the writer thread end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.writer.notify_all();
    }
}

impl<S: Stream> Sink for Outbox<S> {
    fn answers(&self, answers: &mut Vec<Answer>) {
        let mut state = self.lock();
        for answer in answers.drain(..) {
            let slot = answer.cookie as u32;
            let generation = (answer.cookie >> 32) as u32;
            let entry = state.slots.get_mut(slot as usize).filter(|entry| entry.generation == generation);
            let Some(pending) = entry.and_then(|entry| entry.pending.take()) else {
                debug_assert!(false, "an answer to what was answered or never asked: {:#x}", answer.cookie);
                continue;
            };
            state.slots[slot as usize].generation = generation.wrapping_add(1);
            state.slots_free.push(slot);
            state.outstanding -= 1;
            if state.broken {
                state.cost -= pending.cost;
                self.share.give(pending.cost);
                continue;
            }
            let reply = self.reply(&pending, answer.result);
            state.queue.push_back(reply);
        }
        // The thread that ends up sending wakes a reader that waits.
        self.send(state);
    }
}

/// What became of sending a queue.
struct Sent {
    /// Cost of the replies that went out whole.
    cost: u64,
    /// All that went out.
    bytes: usize,
    outcome: io::Result<()>,
}

/// Sends a queue, as much as goes, and takes from it what went.
fn send_all<S: Stream>(stream: &S, queue: &mut VecDeque<Reply>, front_sent: &mut usize, wait: bool) -> Sent {
    let mut sent = Sent { cost: 0, bytes: 0, outcome: Ok(()) };
    while !queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); REPLIES_PER_SEND * 2];
        let mut count = 0;
        for part in queue.iter().take(REPLIES_PER_SEND).flat_map(Reply::parts).filter(|part| !part.is_empty()) {
            slices[count] = IoSlice::new(part);
            count += 1;
        }
        let mut unsent = &mut slices[..count];
        IoSlice::advance_slices(&mut unsent, *front_sent);
        match stream.send(unsent, wait) {
            Ok(bytes) => {
                *front_sent += bytes;
                sent.bytes += bytes;
            }
            Err(error) => {
                sent.outcome = Err(error);
                return sent;
            }
        }
        while let Some(front) = queue.front().filter(|front| front.len() <= *front_sent) {
            *front_sent -= front.len();
            sent.cost += front.cost;
            queue.pop_front();
        }
    }
    sent
}
