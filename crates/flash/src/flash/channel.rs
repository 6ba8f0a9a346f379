//! The channel: one transfer at a time, commands before data, else in order of asking.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::NONE;
use super::resources::{Phase, Staged};
use crate::{DieId, OpKind, Resource};

impl Flash {
    /// Asks for the channel; true if the die has it at once. Commands go before data, else in order of asking: a command
    /// is short and sets an array to work; behind the data of all other dies it would leave its die, and soon the
    /// channel, with nothing to do.
    pub(super) fn request_channel(&mut self, die: DieId, duration: Nanos, now: Nanos) -> bool {
        let dies = self.dies.len() as u32;
        let state = &mut self.dies[die.index()];
        let index = state.channel;
        let channel = &mut self.channels[index as usize];
        debug_assert_eq!(
            channel.head == DieId::NONE,
            channel.tail == DieId::NONE,
            "channel {index} has a line with two ends, or none"
        );
        debug_assert!(
            channel.head != DieId::NONE || channel.last_command == DieId::NONE,
            "channel {index} has a command in an empty line"
        );
        if channel.head == DieId::NONE && channel.free_at <= now {
            self.occupy(index, die, duration, now);
            return true;
        }
        state.wants = duration;
        state.next_waiter = DieId::NONE;
        let command =
            state.phase == Phase::AwaitChannel && self.flights[state.running as usize].submit.kind != OpKind::Program;
        if channel.head == DieId::NONE {
            self.events.set(dies + index, channel.free_at);
            (channel.head, channel.tail) = (die, die);
        } else if !command {
            self.dies[channel.tail.index()].next_waiter = die;
            channel.tail = die;
        } else if channel.last_command == DieId::NONE {
            state.next_waiter = channel.head;
            channel.head = die;
        } else {
            let before = channel.last_command;
            let after = std::mem::replace(&mut self.dies[before.index()].next_waiter, die);
            self.dies[die.index()].next_waiter = after;
            if after == DieId::NONE {
                channel.tail = die;
            }
        }
        if command {
            channel.last_command = die;
        }
        false
    }

    pub(super) fn channel_event(&mut self, index: u32, now: Nanos) {
        // Behind the channels are the drive's one queue and its processor, where it has these.
        let Some(channel) = self.channels.get_mut(index as usize) else {
            return if index as usize == self.channels.len() { self.queue_event(now) } else { self.issue_event(now) };
        };
        let die = channel.head;
        assert!(channel.free_at <= now, "channel {index} is given away at {now}, busy until {}", channel.free_at);
        let (next, duration) = (self.dies[die.index()].next_waiter, self.dies[die.index()].wants);
        channel.head = next;
        if next == DieId::NONE {
            debug_assert_eq!(channel.tail, die, "die {die} was the last in the line of channel {index}");
            channel.tail = DieId::NONE;
        }
        if channel.last_command == die {
            channel.last_command = DieId::NONE;
        }
        let resource = self.dies.len() as u32 + index;
        if next == DieId::NONE {
            self.events.clear(resource);
        } else {
            self.events.set(resource, now + duration);
        }
        self.occupy(index, die, duration, now);
    }

    pub(super) fn occupy(&mut self, index: u32, die: DieId, duration: Nanos, now: Nanos) {
        let end = now + duration;
        let channel = &mut self.channels[index as usize];
        debug_assert!(channel.free_at <= now, "channel {index} carries two transfers at {now}");
        channel.free_at = end;
        channel.busy += duration;
        if self.is_watched {
            self.tell_transfer(index, die, now, end);
        }
        match self.dies[die.index()].phase {
            Phase::AwaitChannel => self.begin_array(die, now, end),
            Phase::AwaitDataOut => {
                let state = &mut self.dies[die.index()];
                debug_assert_ne!(state.running, NONE, "die {die} puts out the data of a read");
                state.phase = Phase::DataOut;
                state.until = end;
                self.events.set(die.0, end);
            }
            Phase::Array | Phase::Suspending => {
                let state = &self.dies[die.index()];
                assert_ne!(state.staged, NONE, "die {die} got the channel while its array works, for nothing staged");
                assert_eq!(state.staged_state, Staged::Waiting, "the staged data of die {die} moves once");
                self.dies[die.index()].staged_state = Staged::Transferring { until: end };
            }
            phase => unreachable!("die {die} got the channel in phase {phase:?}"),
        }
    }

    /// The observer, the waits and the drive's one queue of the group whose commands or data are on the channel now.
    #[cold]
    #[inline(never)]
    fn tell_transfer(&mut self, index: u32, die: DieId, now: Nanos, end: Nanos) {
        if self.sends_one_at_a_time() && self.dies[die.index()].phase != Phase::AwaitDataOut {
            self.look_at_head(end);
        }
        if self.observer.is_some() {
            let state = &self.dies[die.index()];
            let group = if state.phase == Phase::Array { state.staged } else { state.running };
            self.report(Resource::Channel(index), group, now, end);
        }
        if self.waits.is_some() {
            self.note_transfer(index, die, now, end);
        }
    }

    fn note_transfer(&mut self, index: u32, die: DieId, now: Nanos, end: Nanos) {
        let state = &self.dies[die.index()];
        let phase = state.phase;
        let group = if matches!(phase, Phase::Array | Phase::Suspending) { state.staged } else { state.running };
        let (_, cause) = self.what(group);
        if let Some(waits) = &mut self.waits {
            waits.carried(index, now, end, cause);
        }
        if phase == Phase::AwaitDataOut {
            self.note_waits(group, |waits, op| waits.moves_out(op, now));
        } else {
            self.note_waits(group, |waits, op| waits.moved_in(op, now, end));
        }
    }
}
