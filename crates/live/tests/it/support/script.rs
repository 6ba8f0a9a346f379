//! A client that is a script: what it sends is known beforehand, and what it gets is kept.

use std::io::{self, IoSlice};
use std::sync::Mutex;
use std::time::Duration;

use rand::Rng as _;
use ssdlab_base::{Rng, rng};
use ssdlab_live::nbd::Stream;

/// A stream in memory. It gives and takes pieces of any length, and now and then takes nothing without waiting.
pub(crate) struct Script {
    sends: Vec<u8>,
    state: Mutex<State>,
}

struct State {
    sent: usize,
    got: Vec<u8>,
    random: Option<Rng>,
    shut: bool,
}

impl Script {
    /// A client that sends this and then ends its side; with a seed, in pieces.
    pub(crate) fn new(sends: Vec<u8>, seed: Option<u64>) -> Script {
        let random = seed.map(|seed| rng(seed, "stream"));
        Script { sends, state: Mutex::new(State { sent: 0, got: Vec::new(), random, shut: false }) }
    }

    /// What the client got.
    pub(crate) fn got(&self) -> Vec<u8> {
        self.state.lock().expect("no panic").got.clone()
    }
}

impl State {
    /// Some length up to `most`, often a short one.
    fn piece(&mut self, most: usize) -> usize {
        let Some(random) = &mut self.random else { return most };
        let bound = if random.next_u64().is_multiple_of(2) { 64 } else { 20_000 };
        most.min(1 + (random.next_u64() % bound) as usize)
    }
}

impl Stream for Script {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock().expect("no panic");
        let left = &self.sends[state.sent..];
        if state.shut || left.is_empty() {
            return Ok(0);
        }
        let count = state.piece(left.len().min(buffer.len()));
        buffer[..count].copy_from_slice(&left[..count]);
        state.sent += count;
        Ok(count)
    }

    fn send(&self, slices: &[IoSlice<'_>], wait: bool) -> io::Result<usize> {
        let mut state = self.state.lock().expect("no panic");
        if state.shut {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if !wait && state.random.as_mut().is_some_and(|random| random.next_u64().is_multiple_of(4)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut left = state.piece(slices.iter().map(|slice| slice.len()).sum());
        let count = left;
        for slice in slices {
            let now = left.min(slice.len());
            state.got.extend_from_slice(&slice[..now]);
            left -= now;
        }
        Ok(count)
    }

    fn set_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn shutdown(&self) {
        self.state.lock().expect("no panic").shut = true;
    }
}
