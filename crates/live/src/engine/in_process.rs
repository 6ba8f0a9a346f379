//! The host of a drive's command set inside this process: commands, answers and events that no block transport carries.

use std::sync::mpsc;

use ssdlab_base::command_set::DataPhase;
use ssdlab_base::{CommandSet, Event, Op, Request};
use ssdlab_device::{Data, Payload, Status};

use super::{Engine, Outgoing, State, To, deliver};
use crate::target::Failure;

/// How a command ended, and all that came back with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// How it ended.
    pub status: Status,
    /// The words of its answer.
    pub words: Vec<u64>,
    /// The bytes of its answer.
    pub bytes: Vec<u8>,
    /// The sectors that it read.
    pub data: Vec<u8>,
}

impl Executed {
    fn only(status: Status) -> Executed {
        Executed { status, words: Vec::new(), bytes: Vec::new(), data: Vec::new() }
    }
}

impl Engine {
    /// The commands and events that the device knows beyond block I/O.
    pub fn command_set(&self) -> Option<&'static CommandSet> {
        self.shared.lock().device.command_set()
    }

    /// A host of the command set starts: from now on the engine keeps events for it, first of all those that no host
    /// has acknowledged. Before, events are taken from the device and dropped.
    pub fn attach_host(&self) {
        let mut state = self.shared.lock();
        state.has_host = true;
        state.events.clear();
        state.device.host_restarted();
    }

    /// The events since the last call, in order; none without [`Engine::attach_host`].
    pub fn take_events(&self) -> Vec<Event> {
        let mut state = self.shared.lock();
        state.gather_events();
        std::mem::take(&mut state.events)
    }

    /// Executes a command of the set, or block I/O, and waits for its end. The engine sets the request's time and tag. `data`
    /// are the bytes of a write's sectors; without any it writes zeroes.
    ///
    /// # Errors
    /// `Invalid` where `data` is not as long as the sectors, `Shutdown` where the engine stops before the command ends,
    /// `NoSpace` where the image's disk is full, and `Io` where the image takes no more for another reason. What the drive says of a command is its status.
    pub fn execute(&self, request: &Request, words: &[u64], data: &[u8]) -> Result<Executed, Failure> {
        let (to, from) = mpsc::channel();
        let mut outgoing = Outgoing::new();
        let payload = Payload { data: if data.is_empty() { Data::Nothing } else { Data::Bytes(data) }, words };
        {
            let state = self.shared.lock();
            let set = state.device.command_set();
            let spec = set.and_then(|set| set.command(request.opcode));
            // What the set does not know does not enter the device, which may have no set at all.
            if !request.opcode.is_block() && spec.is_none() {
                return Ok(Executed::only(Status::Unsupported));
            }
            let has_range = spec.is_none_or(|spec| spec.data == DataPhase::Range);
            let brings_data = request.op == Op::Write && has_range;
            let length = request.sectors.checked_mul(ssdlab_base::SECTOR_BYTES);
            if brings_data && !data.is_empty() && length != Some(data.len() as u64) {
                return Err(Failure::Invalid);
            }
        }
        let enter = |state: &mut State, now| {
            if state.stopping {
                return;
            }
            match state.refusal_of(request) {
                // The receiver is below.
                Some(failure) => _ = to.send(Err(failure)),
                None => state.enter(*request, payload, now, To::Caller(to)),
            }
        };
        if self.shared.paced {
            self.shared.enter_paced(|state, _| {
                let now = state.virtual_at(std::time::Instant::now());
                enter(state, now);
            });
        } else {
            let mut state = self.shared.lock();
            let now = state.next_instant();
            enter(&mut state, now);
            self.shared.run_all(&mut state, &mut outgoing);
        }
        deliver(outgoing);
        // The sender is dropped where the engine has stopped.
        from.recv().unwrap_or(Err(Failure::Shutdown))
    }
}
