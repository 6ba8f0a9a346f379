//! FIFO: whole requests leave in the order they came, as in VSSIM.

use ssdlab_flash::Lpn;

use super::{BufferPolicy, Chain, Policy, Slot, Unit, View};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "fifo",
    summary: "whole requests leave in the order they came (VSSIM)",
    keys: &[],
    make: Some(|_| Box::new(Fifo::default())),
};

/// Units in order of the request that brought them in; an overwrite leaves a unit where it is.
#[derive(Default)]
pub(super) struct Fifo {
    queue: Chain,
    command_of: Vec<u64>,
}

impl BufferPolicy for Fifo {
    fn insert(&mut self, slot: Slot, unit: &Unit) {
        if self.command_of.len() <= slot.index() {
            self.command_of.resize(slot.index() + 1, 0);
        }
        self.command_of[slot.index()] = unit.command;
        self.queue.push(slot);
    }

    fn touch(&mut self, _: Slot, _: &Unit) {}

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.queue.remove(slot);
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        self.coming(wanted, out);
    }

    fn order(&self) -> Option<Vec<Slot>> {
        Some(self.queue.iter().collect())
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        let mut slot = self.queue.head;
        let mut command = None;
        while slot != Slot::NONE {
            let of = Some(self.command_of[slot.index()]);
            if of != command && out.len() >= wanted {
                break;
            }
            command = of;
            out.push(slot);
            slot = self.queue.next(slot);
        }
    }
}
