//! One client: negotiation, then requests until it goes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::budget::{Budget, Share};
use super::input::{Input, PAYLOAD_BUFFERED_MAX};
use super::negotiation::{self, Agreed};
use super::outbox::{Outbox, Pending, REQUEST_COST_MIN};
use super::reply::Reply;
use super::request::{Action, Header, Refusal, Terms, check};
use super::session::{Ending, Export, Limits, Stream};
use super::wire::REQUEST_BYTES;
use crate::{Command, Sink, Target};

/// Extents in one reply to `NBD_CMD_BLOCK_STATUS`; clients ask again for the rest.
const EXTENTS_MAX: usize = 4096;

/// Serves one client to its end on the calling thread, and a second one where the client is slow.
///
/// When it returns the target has answered everything the client asked, and what was answered has been sent if the
/// client took it. With `stopping` set, and the stream's reading side ended, what is read is refused with `ESHUTDOWN`.
pub fn serve_stream<S: Stream>(stream: &Arc<S>, export: &Export, limits: &Limits, stopping: &AtomicBool) -> Ending {
    serve_within(stream, export, limits, &Budget::new(limits.total_bytes, limits.patience), stopping)
}

/// Serves one of the clients that share a budget.
pub(super) fn serve_within<S: Stream>(
    stream: &Arc<S>,
    export: &Export,
    limits: &Limits,
    budget: &Arc<Budget>,
    stopping: &AtomicBool,
) -> Ending {
    let mut input = Input::new(&**stream);
    let agreed = match negotiation::negotiate(&**stream, &mut input, export, limits.handshake) {
        Ok(agreed) => agreed,
        Err(ending) => {
            stream.shutdown();
            return ending;
        }
    };
    let held = Arc::clone(stream);
    let share = budget.share(move || held.shutdown());
    let outbox = Arc::new(Outbox::new(Arc::clone(stream), agreed.structured, limits.pending_bytes, Arc::clone(&share)));
    let writer = {
        let outbox = Arc::clone(&outbox);
        thread::Builder::new().name("nbd-writer".to_owned()).spawn(move || outbox.write_what_blocked())
    };
    let Ok(writer) = writer else {
        stream.shutdown();
        return Ending::NoThread;
    };
    let finish = Finish(&outbox, stream);
    let ending = Reader::new(input, export, agreed, Arc::clone(&outbox), Arc::clone(&share), stopping).run();
    outbox.drain();
    share.give_all();
    drop(finish);
    // Its panic has been reported where it happened; the connection ends either way.
    let _ = writer.join();
    ending
}

/// Tells a client that is one too many so, and ends the connection.
pub(super) fn refuse_stream<S: Stream>(stream: &S, export: &Export, limit: Duration, why: &str) {
    let _ = negotiation::turn_away(stream, &mut Input::new(stream), export, limit, why);
    stream.shutdown();
}

/// Ends the stream and the writer thread, also where a target panics.
struct Finish<'a, S: Stream>(&'a Outbox<S>, &'a S);

impl<S: Stream> Drop for Finish<'_, S> {
    fn drop(&mut self) {
        self.0.close();
        self.1.shutdown();
    }
}

/// The reading side of a connection in transmission.
struct Reader<'a, S: Stream> {
    input: Input<'a, S>,
    target: &'a dyn Target,
    terms: Terms,
    outbox: Arc<Outbox<S>>,
    sink: Arc<dyn Sink>,
    share: Arc<Share>,
    stopping: &'a AtomicBool,
    /// The batch: commands, and beside them what to remember of each.
    commands: Vec<Command>,
    pending: Vec<Pending>,
    /// Replies that need no target.
    replies: Vec<Reply>,
    /// What may still be taken before the limit, as far as this thread knows.
    room: u64,
}

/// What a request led to.
enum Step {
    Next,
    /// The rest of it has not arrived.
    Incomplete,
    End(Ending),
}

impl<'a, S: Stream> Reader<'a, S> {
    fn new(
        input: Input<'a, S>,
        export: &'a Export,
        agreed: Agreed,
        outbox: Arc<Outbox<S>>,
        share: Arc<Share>,
        stopping: &'a AtomicBool,
    ) -> Reader<'a, S> {
        let Agreed { bytes, structured, status } = agreed;
        let terms = Terms { bytes, structured, status, appends: export.target.appends() };
        let sink = Arc::clone(&outbox) as Arc<dyn Sink>;
        let (commands, pending, replies) = (Vec::new(), Vec::new(), Vec::new());
        let target = &*export.target;
        Reader { input, target, terms, outbox, sink, share, stopping, commands, pending, replies, room: 0 }
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Takes all requests that have arrived, hands them on, waits for more; until the end.
    fn run(mut self) -> Ending {
        loop {
            self.room = self.outbox.room();
            let step = loop {
                match self.step() {
                    Ok(Step::Next) => {}
                    Ok(step) => break step,
                    Err(_) => break Step::End(Ending::HungUp),
                }
            };
            self.hand_over();
            if self.stopping() {
                return Ending::Stopped;
            }
            if let Step::End(ending) = step {
                return ending;
            }
            if self.input.fill().is_err() {
                return if self.stopping() { Ending::Stopped } else { Ending::HungUp };
            }
        }
    }

    /// One request out of the buffer.
    fn step(&mut self) -> io::Result<Step> {
        let Some(bytes) = self.input.arrived().first_chunk::<REQUEST_BYTES>() else { return Ok(Step::Incomplete) };
        let Some(header) = Header::parse(bytes) else { return Ok(Step::End(Ending::Garbage)) };
        let payload = header.payload() as usize;
        let checked = if self.stopping() { Err(Refusal::SHUTDOWN) } else { check(&header, &self.terms) };
        match checked {
            Ok(Action::Disconnect) => return Ok(Step::End(Ending::Disconnected)),
            Ok(Action::Command(request)) => {
                let buffered = payload <= PAYLOAD_BUFFERED_MAX;
                if buffered && self.input.arrived().len() < REQUEST_BYTES + payload {
                    return Ok(Step::Incomplete);
                }
                let pending = Pending::new(header.handle, header.offset, request.op, header.length);
                if !self.make_room(pending.cost) {
                    return Ok(Step::End(self.gone()));
                }
                self.input.take(REQUEST_BYTES);
                let data = if buffered {
                    self.input.take(payload).to_vec()
                } else {
                    self.hand_over();
                    self.input.take_long(payload, &self.share)?
                };
                self.commands.push(Command { request, data, cookie: 0, sink: Arc::clone(&self.sink) });
                self.pending.push(pending);
                return Ok(Step::Next);
            }
            _ => {}
        }
        if !self.make_room(REQUEST_COST_MIN) {
            return Ok(Step::End(self.gone()));
        }
        self.input.take(REQUEST_BYTES);
        if payload > self.input.arrived().len() {
            self.hand_over();
        }
        self.input.skip(payload as u64)?;
        let reply = match checked {
            Err(refusal) => {
                if let Some(reason) = refusal.reason {
                    self.target.count_refused(reason);
                }
                Reply::refused(REQUEST_COST_MIN, header.handle, self.terms.structured, &refusal)
            }
            Ok(Action::Status { one }) => self.status(&header, one),
            Ok(_) => Reply::done(REQUEST_COST_MIN, header.handle),
        };
        self.replies.push(reply);
        Ok(Step::Next)
    }

    fn status(&self, header: &Header, one: bool) -> Reply {
        let limit = if one { 1 } else { EXTENTS_MAX };
        let mut extents = self.target.extents(header.offset, u64::from(header.length), limit);
        extents.truncate(limit);
        let zeroes = self.terms.appends.is_none_or(|appends| appends.zeroes);
        Reply::status(REQUEST_COST_MIN, header.handle, header.length, &extents, zeroes)
    }

    fn gone(&self) -> Ending {
        if self.stopping() { Ending::Stopped } else { Ending::HungUp }
    }

    /// Counts a request against the limit, waiting for others to be answered if need be.
    fn make_room(&mut self, cost: u64) -> bool {
        if self.room < cost {
            self.hand_over();
            let stopping = self.stopping;
            match self.outbox.wait_for_room(cost, || stopping.load(Ordering::Acquire)) {
                Some(room) => self.room = room,
                None => return false,
            }
        }
        self.room -= cost;
        let (share, stopping) = (Arc::clone(&self.share), self.stopping);
        if !share.take(cost, || true) {
            // What others wait for may be in this connection's batch.
            self.hand_over();
            return share.take(cost, || stopping.load(Ordering::Acquire) || self.outbox.is_broken());
        }
        true
    }

    /// Gives the batch to the target, and the replies that did not need it to the client.
    fn hand_over(&mut self) {
        if !self.commands.is_empty() {
            self.outbox.admit(&mut self.pending, &mut self.commands);
            self.target.submit(&mut self.commands);
            debug_assert!(self.commands.is_empty(), "a target takes all commands");
            self.commands.clear();
        }
        if !self.replies.is_empty() {
            self.outbox.post(&mut self.replies);
        }
    }
}
