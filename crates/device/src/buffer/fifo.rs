//! FIFO: whole requests leave in the order they came, as in VSSIM.

use super::{BufferPolicy, Chain, NIL, Slot};

/// Units in order of the request that brought them in; an overwrite leaves a unit where it is.
#[derive(Default)]
pub(super) struct Fifo {
    queue: Chain,
    command_of: Vec<u64>,
}

impl BufferPolicy for Fifo {
    fn insert(&mut self, slot: Slot, command: u64) {
        if self.command_of.len() <= slot as usize {
            self.command_of.resize(slot as usize + 1, 0);
        }
        self.command_of[slot as usize] = command;
        self.queue.push(slot);
    }

    fn touch(&mut self, _: Slot, _: u64) {}

    fn remove(&mut self, slot: Slot) {
        self.queue.remove(slot);
    }

    fn victims(&self, wanted: usize, out: &mut Vec<Slot>) {
        let mut slot = self.queue.head;
        let mut command = None;
        while slot != NIL {
            let of = Some(self.command_of[slot as usize]);
            if of != command && out.len() >= wanted {
                break;
            }
            command = of;
            out.push(slot);
            slot = self.queue.next(slot);
        }
    }
}
