//! Two observers at one drive.

use ssdlab_base::Nanos;
use ssdlab_flash::{DieId, Observer, Span};

/// Tells both what it is told.
pub(crate) struct Both(pub(crate) Box<dyn Observer>, pub(crate) Box<dyn Observer>);

impl Observer for Both {
    fn ready_busy(&mut self, die: DieId, at: Nanos, busy: bool) {
        self.0.ready_busy(die, at, busy);
        self.1.ready_busy(die, at, busy);
    }

    fn span(&mut self, span: Span) {
        self.0.span(span);
        self.1.span(span);
    }
}
