//! What all connections of a server may hold together: requests that are being read, that the target has, and whose
//! replies are not out.
//!
//! ```text
//!   connection -> Share: the first 128 KiB are its own, what it holds beyond comes from the Budget
//!   Budget: who finds too little left waits in turn; who holds much and keeps it from them is hung up on
//! ```
//!
//! The part of its own lets every connection send small requests whatever the others hold. What the target has it will
//! answer. A client that sends half a request, or takes no reply, might keep its memory for ever: while others wait it has to
//! move a share of what it holds in each [`Budget::patience`], or its connection ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What a connection holds without asking.
pub(super) const OWN: u64 = 128 << 10;

/// How often a waiting connection looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Of what it holds, a client moves at least one part in so many while others wait, in each span of patience.
const PARTS: u64 = 16;

/// The memory of all connections of a server.
pub(super) struct Budget {
    bytes: u64,
    patience: Duration,
    state: Mutex<State>,
    /// Something was given back.
    given: Condvar,
}

#[derive(Default)]
struct State {
    held: u64,
    shares: Vec<Weak<Share>>,
    /// Who waits, the first first.
    waiting: VecDeque<u64>,
    tickets: u64,
    /// While others wait: the last look at the clients.
    watched: Option<Look>,
}

/// What each client had moved at a time.
struct Look {
    at: Instant,
    moved: Vec<(Weak<Share>, u64)>,
}

/// What one connection holds.
pub(super) struct Share {
    budget: Arc<Budget>,
    held: AtomicU64,
    /// Bytes that came from or went to the client.
    moved: AtomicU64,
    /// Whether what is held waits for the client: it counts who waits, the reader and the writer.
    waits_for_client: AtomicU64,
    hang_up: Box<dyn Fn() + Send + Sync>,
}

/// What of a connection's bytes comes from the budget.
fn shared(held: u64) -> u64 {
    held.saturating_sub(OWN)
}

impl Budget {
    /// Of so many bytes. A request that is longer is taken when nothing else is held.
    pub(super) fn new(bytes: u64, patience: Duration) -> Arc<Budget> {
        Arc::new(Budget { bytes, patience, state: Mutex::default(), given: Condvar::new() })
    }

    /// A new connection's share; `hang_up` ends the connection.
    pub(super) fn share(self: &Arc<Budget>, hang_up: impl Fn() + Send + Sync + 'static) -> Arc<Share> {
        let share = Arc::new(Share {
            budget: Arc::clone(self),
            held: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            waits_for_client: AtomicU64::new(0),
            hang_up: Box::new(hang_up),
        });
        let mut state = self.lock();
        state.shares.retain(|share| share.strong_count() > 0);
        state.shares.push(Arc::downgrade(&share));
        share
    }

    /// A panic elsewhere leaves the state whole: nothing in here stops half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes, waiting in turn; false where `give_up` says so, which is asked without the lock.
    fn acquire(&self, bytes: u64, give_up: &dyn Fn() -> bool) -> bool {
        // A share that goes gives back what it holds: the last of it must not go under the lock.
        let mut seen = Vec::new();
        let fits = |state: &State| state.held == 0 || state.held.saturating_add(bytes) <= self.bytes;
        let mut state = self.lock();
        if state.waiting.is_empty() && fits(&state) {
            state.held += bytes;
            return true;
        }
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.push_back(ticket);
        loop {
            drop(state);
            seen.clear();
            let gives_up = give_up();
            state = self.lock();
            let is_taken = !gives_up && state.waiting.front() == Some(&ticket) && fits(&state);
            if is_taken || gives_up {
                state.held += if is_taken { bytes } else { 0 };
                state.waiting.retain(|other| *other != ticket);
                if state.waiting.is_empty() {
                    state.watched = None;
                }
                // The next may fit, too.
                self.given.notify_all();
                return is_taken;
            }
            let late = self.late(&mut state, &mut seen);
            if late.is_empty() {
                state = self.given.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                drop(state);
                late.iter().for_each(|share| (share.hang_up)());
                state = self.lock();
            }
        }
    }

    fn release(&self, bytes: u64) {
        let mut state = self.lock();
        debug_assert!(bytes <= state.held, "{bytes} bytes given back of {}", state.held);
        state.held = state.held.saturating_sub(bytes);
        if !state.waiting.is_empty() {
            self.given.notify_all();
        }
    }

    /// Connections that hold what others wait for and moved too little of it since the last look, at the end of each span of
    /// patience.
    fn late(&self, state: &mut State, seen: &mut Vec<Arc<Share>>) -> Vec<Arc<Share>> {
        let now = Instant::now();
        if state.watched.as_ref().is_some_and(|look| now.duration_since(look.at) < self.patience) {
            return Vec::new();
        }
        seen.extend(state.shares.iter().filter_map(Weak::upgrade));
        let moved = |share: &Arc<Share>| (Arc::downgrade(share), share.moved.load(Ordering::Relaxed));
        let before = state.watched.replace(Look { at: now, moved: seen.iter().map(moved).collect() });
        let before = before.map_or_else(Vec::new, |look| look.moved);
        let is_late = |share: &&Arc<Share>| {
            let known = before.iter().find(|(other, _)| other.as_ptr() == Arc::as_ptr(share));
            let held = shared(share.held.load(Ordering::Relaxed));
            known.is_some_and(|(_, moved)| share.moved.load(Ordering::Relaxed) - moved < held.div_ceil(PARTS))
                && share.waits_for_client.load(Ordering::Relaxed) > 0
        };
        seen.iter().filter(is_late).map(Arc::clone).collect()
    }
}

impl Share {
    /// Counts a request before anything of it is read, waiting for others if need be. False where `give_up` says so.
    pub(super) fn take(&self, cost: u64, give_up: impl Fn() -> bool) -> bool {
        loop {
            let held = self.held.load(Ordering::Relaxed);
            let more = shared(held + cost) - shared(held);
            if more > 0 && !self.budget.acquire(more, &give_up) {
                return false;
            }
            let counted = self.held.compare_exchange(held, held + cost, Ordering::Relaxed, Ordering::Relaxed);
            if counted.is_ok() {
                return true;
            }
            // Something was given back meanwhile, so that less has to come from the others.
            if more > 0 {
                self.budget.release(more);
            }
        }
    }

    /// A request's reply is out, or no client will take it.
    pub(super) fn give(&self, cost: u64) {
        let mut held = self.held.load(Ordering::Relaxed);
        loop {
            let left = held.saturating_sub(cost);
            match self.held.compare_exchange(held, left, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) if shared(held) > shared(left) => return self.budget.release(shared(held) - shared(left)),
                Ok(_) => return,
                Err(now) => held = now,
            }
        }
    }

    /// Gives all back: the connection is over.
    pub(super) fn give_all(&self) {
        self.give(u64::MAX);
    }

    /// Bytes came from the client or went to it.
    pub(super) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Runs what waits for the client.
    pub(super) fn waiting_for_client<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.waits_for_client.fetch_add(1, Ordering::Relaxed);
        let done = wait();
        self.waits_for_client.fetch_sub(1, Ordering::Relaxed);
        done
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    const NEVER: fn() -> bool = || false;

    fn share(budget: &Arc<Budget>) -> (Arc<Share>, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        (budget.share(move || told.store(true, Ordering::Relaxed)), ended)
    }

    #[test]
    fn the_first_bytes_are_a_connection_s_own_and_the_rest_is_shared() {
        let budget = Budget::new(1000, Duration::from_secs(60));
        let ((one, _), (other, _)) = (share(&budget), share(&budget));
        assert!(one.take(OWN + 1000, NEVER));
        assert!(other.take(OWN, NEVER), "small requests never wait");
        assert!(!other.take(1, || true), "there is nothing left");
        one.give(1);
        assert!(other.take(1, NEVER));
        one.give_all();
        assert_eq!(budget.lock().held, 1);
        drop(other);
        assert_eq!(budget.lock().held, 0);
        // More than all there is fits alone.
        assert!(one.take(OWN + 5000, NEVER));
    }

    #[test]
    fn who_waits_is_served_in_turn() {
        let budget = Budget::new(1000, Duration::from_secs(60));
        let (first, _) = share(&budget);
        assert!(first.take(OWN + 600, NEVER));
        let (large, _) = share(&budget);
        let (small, _) = share(&budget);
        let order = Arc::new(Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let waits = |share: Arc<Share>, bytes: u64, name: &'static str| {
                let (order, before) = (Arc::clone(&order), budget.lock().waiting.len());
                scope.spawn(move || {
                    assert!(share.take(OWN + bytes, NEVER));
                    order.lock().expect("whole").push(name);
                    share.give_all();
                });
                while budget.lock().waiting.len() == before {
                    thread::yield_now();
                }
            };
            waits(Arc::clone(&large), 900, "large");
            waits(Arc::clone(&small), 200, "small");
            // The small one would have fitted all the time.
            first.give_all();
        });
        assert_eq!(*order.lock().expect("whole"), ["large", "small"]);
    }

    #[test]
    fn a_client_that_moves_nothing_is_hung_up_on_while_others_wait() {
        let budget = Budget::new(1600, Duration::from_millis(40));
        let ((stuck, ended), (slow, kept), (busy, served)) = (share(&budget), share(&budget), share(&budget));
        for share in [&stuck, &slow, &busy] {
            assert!(share.take(OWN + 500, NEVER));
        }
        let (waiter, _) = share(&budget);
        // No connection waits: each may take all the time there is.
        thread::sleep(Duration::from_millis(100));
        assert!(!ended.load(Ordering::Relaxed));
        stuck.waits_for_client.store(1, Ordering::Relaxed);
        slow.waits_for_client.store(1, Ordering::Relaxed);
        let moves = || {
            slow.moved(100);
            if ended.load(Ordering::Relaxed) {
                stuck.give_all();
            }
            false
        };
        assert!(waiter.take(OWN + 500, moves));
        assert!(ended.load(Ordering::Relaxed));
        assert!(!kept.load(Ordering::Relaxed), "it moves what it holds");
        assert!(!served.load(Ordering::Relaxed), "the target has what it holds");
    }
}
