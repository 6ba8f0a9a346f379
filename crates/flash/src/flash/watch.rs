//! What an observer is told; nothing is computed when there is none.

use ssdlab_base::Nanos;

use super::{Flash, NONE};
use crate::{Resource, Span};

impl Flash {
    #[inline]
    pub(super) fn edge(&mut self, die: u32, at: Nanos, busy: bool) {
        if let Some(observer) = &mut self.observer {
            observer.ready_busy(die, at, busy);
        }
    }

    pub(super) fn report(&mut self, resource: Resource, group: u32, start: Nanos, end: Nanos) {
        let submit = self.flights[group as usize].submit;
        let (mut planes, mut op) = (0, group);
        while op != NONE {
            planes += 1;
            op = self.flights[op as usize].next;
        }
        let pages = u64::from(self.geometry.pages_per_block);
        let ppn = u64::from(submit.block) * pages + u64::from(submit.page);
        if let Some(observer) = &mut self.observer {
            observer.span(Span { resource, kind: submit.kind, cause: submit.cause, ppn, planes, start, end });
        }
    }
}
