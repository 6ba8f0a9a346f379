//! Last in, first out: the unit that came in last leaves. A template to copy.

use ssdlab_flash::Lpn;

use super::{BufferPolicy, Policy, Slot, Unit, View};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "lifo",
    summary: "the page that came in last leaves",
    keys: &[],
    make: Some(|_| Box::new(Lifo::default())),
};

/// The units, the last one on top.
#[derive(Default)]
pub(super) struct Lifo {
    stack: Vec<Slot>,
}

impl BufferPolicy for Lifo {
    fn insert(&mut self, slot: Slot, _: &Unit) {
        self.stack.push(slot);
    }

    fn touch(&mut self, _: Slot, _: &Unit) {}

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.stack.retain(|other| *other != slot);
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        self.coming(wanted, out);
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.extend(self.stack.iter().rev().take(wanted));
    }
}
