//! Commands on append-only segments: the command set's rules take or refuse them as they arrive, and they take effect in the
//! order that [`Order`] finds.

use std::ops::Range;

use ssdlab_base::command_set::ZoneAction;
use ssdlab_base::{Op, Request};
use ssdlab_flash::Lpn;

use super::Drive;
use crate::command_sets::{Admitted, Order, Rules};
use crate::ftl::Found;
use crate::{ReadUnwritten, Status};

/// The rules that a drive's host follows, and the commands that they took.
pub(super) struct Admission {
    pub(super) rules: Box<dyn Rules>,
    order: Order,
    /// Commands that waited are being dispatched.
    dispatching: bool,
    /// A write that was taken has failed: commands that were taken after it may rely on it.
    write_failed: bool,
}

impl Admission {
    /// Nothing is written, and no command taken.
    pub(super) fn new(rules: Box<dyn Rules>) -> Admission {
        let order = Order::new(rules.segment_sectors());
        Admission { rules, order, dispatching: false, write_failed: false }
    }
}

impl Drive {
    /// The rules of its command set for its segments, of a drive that has segments.
    pub(crate) fn rules(&self) -> Option<&dyn Rules> {
        self.admission.as_ref().map(|admission| &*admission.rules)
    }

    /// The segments are as the design has them: after recovery, and of a restored drive.
    pub(super) fn find_segments(&mut self) {
        let Some(count) = self.rules().map(Rules::count) else { return };
        (0..count).for_each(|segment| self.find_segment(segment));
    }

    fn find_segment(&mut self, segment: u64) {
        let (Some(admission), Some(design)) = (&mut self.admission, self.ftl.append_only()) else { return };
        let (units, takes_no_more) = design.written(segment as u32);
        admission.rules.set(segment, u64::from(units) * self.sectors_per_unit, takes_no_more);
    }

    /// Where the drive takes no more writes, its rules say so from now on, and the host hears of it.
    pub(super) fn announce_read_only(&mut self) {
        if !self.failures.read_only {
            return;
        }
        let event = self.admission.as_mut().and_then(|admission| admission.rules.make_read_only());
        if let Some((kind, words)) = event {
            self.media.events.send(self.media.now, kind, &words);
        }
    }

    /// A block command, or an action on segments, within the host's address space, arrives.
    ///
    /// # Errors
    /// The status that it ends with, if it is refused.
    #[cold]
    pub(super) fn admit(&mut self, request: &Request, action: Option<ZoneAction>) -> Result<Admitted, Status> {
        let (ftl, per_unit) = (&self.ftl, self.sectors_per_unit);
        let is_held = |from: u64, to: u64| {
            let (first, end) = (Lpn((from / per_unit) as u32), Lpn(to.div_ceil(per_unit) as u32));
            Lpn::each(first..end).all(|lpn| ftl.find(lpn) != Found::Unmapped)
        };
        let admission = self.admission.as_mut().expect("a drive with segments");
        admission.rules.admit(request, action, &is_held)
    }

    /// A command was taken. From here on its sectors are those of the data.
    #[cold]
    pub(super) fn enter_order(&mut self, command: u32, sectors: Range<u64>) {
        let admission = self.admission.as_mut().expect("a drive with segments");
        let request = &mut self.commands[command].request;
        (request.sector, request.sectors) = (sectors.start, sectors.end - sectors.start);
        if !sectors.is_empty() && request.op != Op::Flush {
            admission.order.enter(command, request.op, sectors);
        }
    }

    /// Whether a command has to wait for an earlier one; it is dispatched again then.
    pub(super) fn must_wait_for_order(&mut self, command: u32) -> bool {
        self.admission.as_mut().is_some_and(|admission| admission.order.must_wait(command))
    }

    /// A command has taken effect, or never will: its segment is as it left it.
    #[inline]
    pub(super) fn leave_order(&mut self, command: u32) {
        if self.admission.is_some() {
            self.leave_order_of_set(command);
        }
    }

    fn leave_order_of_set(&mut self, command: u32) {
        let Some(admission) = &mut self.admission else { return };
        let Some((op, sectors)) = admission.order.leave(command) else { return };
        if op != Op::Read && self.commands[command].status != Status::Success {
            // What came behind it is refused when its turn comes.
            admission.write_failed |= op == Op::Write;
            admission.order.segments_of(&sectors).for_each(|segment| self.find_segment(segment));
        }
    }

    /// Whether a command relies on a write that was taken and failed: nothing is written behind a gap, nor read there.
    #[inline(never)]
    pub(super) fn follows_a_gap(&mut self, command: u32) -> bool {
        let (Some(design), Some(admission)) = (self.ftl.append_only(), &self.admission) else { return false };
        let request = self.commands[command].request;
        if !admission.write_failed || request.sectors == 0 || self.commands[command].cursor > 0 {
            return false;
        }
        let unit = (request.sector / self.sectors_per_unit) as u32;
        let (gap, unwritten) = admission.rules.refusals_after_failure();
        let reason = match request.op {
            Op::Write => {
                let (segment, within) = (unit / design.segment_units(), unit % design.segment_units());
                (design.written(segment).0 != within).then_some(gap)
            }
            Op::Read if self.config.interface.read_unwritten == ReadUnwritten::Error => {
                let end = request.end().div_ceil(self.sectors_per_unit) as u32;
                let is_held = |lpn| self.ftl.find(lpn) != Found::Unmapped;
                (!Lpn::each(Lpn(unit)..Lpn(end)).all(is_held)).then_some(unwritten)
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.commands[command].status = Status::Refused(reason);
        }
        reason.is_some()
    }

    /// Dispatches what waited and need not wait any longer.
    pub(super) fn dispatch_unblocked(&mut self) {
        while let Some(admission) = &mut self.admission {
            if admission.dispatching {
                return;
            }
            let Some(command) = admission.order.next_unblocked() else { return };
            admission.dispatching = true;
            self.dispatch(command);
            if let Some(admission) = &mut self.admission {
                admission.dispatching = false;
            }
        }
    }
}
