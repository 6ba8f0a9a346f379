//! What the drive tells its host unasked: numbered, in order, and kept until the host has acknowledged it.

use std::collections::VecDeque;

use ssdlab_base::command_set::EVENT_WORDS;
use ssdlab_base::{CommandSet, Event, EventKind, Nanos};

use crate::seeded::{Bug, seeded};

/// Events by number; a power cut loses them with the rest of the RAM, and a design that needs them tells them anew.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    set: Option<&'static CommandSet>,
    sent: u64,
    /// Not acknowledged, or not delivered; by number.
    kept: VecDeque<Event>,
    /// How many of them, from the front on, were delivered.
    delivered: usize,
}

impl EventQueue {
    pub(crate) fn new(set: Option<&'static CommandSet>) -> EventQueue {
        EventQueue { set, ..EventQueue::default() }
    }

    /// Sends an event at `at`, the present.
    pub(crate) fn send(&mut self, at: Nanos, kind: EventKind, words: &[u64]) {
        let spec = self.set.and_then(|set| set.event(kind)).expect("the design sends events of its set");
        assert_eq!(words.len(), usize::from(spec.words), "{} has as many words as its set says", spec.name);
        let mut all = [0; EVENT_WORDS];
        all[..words.len()].copy_from_slice(words);
        self.sent += 1;
        assert!(self.kept.back().is_none_or(|last| last.number < self.sent), "event {} is the latest", self.sent);
        let event = Event { number: self.sent, at, kind, words: all };
        let behind = self.kept.len() - usize::from(seeded(Bug::EventOvertakes) && self.has_news());
        self.kept.insert(behind, event);
    }

    fn is_acknowledged(&self, event: &Event) -> bool {
        self.set.and_then(|set| set.event(event.kind)).is_some_and(|spec| spec.acknowledged)
    }

    /// Whether there is something to deliver.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.delivered < self.kept.len()
    }

    /// Moves what is new to `to`.
    pub(crate) fn deliver(&mut self, to: &mut Vec<Event>) {
        assert!(self.delivered <= self.kept.len(), "{} events delivered of {}", self.delivered, self.kept.len());
        if !self.has_news() {
            return;
        }
        to.extend(self.kept.iter().skip(self.delivered));
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|event| self.is_acknowledged(event));
        self.kept = kept;
        self.delivered = self.kept.len();
    }

    /// The host knows nothing of what it did not acknowledge.
    pub(crate) fn deliver_again(&mut self) {
        self.delivered = usize::from(seeded(Bug::EventForgotten) && !self.kept.is_empty());
    }

    /// The host has seen every event up to `number`; false if it cannot have.
    pub(crate) fn acknowledge(&mut self, number: u64) -> bool {
        let unseen = self.kept.get(self.delivered).map_or(self.sent + 1, |event| event.number);
        if number >= unseen {
            return false;
        }
        let last = number.saturating_sub(u64::from(seeded(Bug::AcknowledgedAgain)));
        while self.kept.front().is_some_and(|event| event.number <= last) {
            self.kept.pop_front();
            assert!(self.delivered > 0, "event {number} is acknowledged, and none was delivered");
            self.delivered -= 1;
        }
        true
    }

    /// Events sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Events that wait for delivery or acknowledgement.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.len() as u64
    }
}
