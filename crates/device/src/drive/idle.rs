//! Idle time: when the drive counts as idle, and what the FTL does then.

use ssdlab_base::Nanos;

use super::Drive;
use crate::waiter::Waiter;

/// What the FTL has in flight at one time while the drive is idle.
const IDLE_IN_FLIGHT: u32 = 8;

/// When the drive is idle, and what it does then.
pub(super) struct Idle {
    /// The earlier of the two times at which it will count as idle.
    pub(super) at: Option<Nanos>,
    pub(super) work: IdlePace,
}

/// When the drive counts as idle, and what the FTL does then.
#[derive(Clone, Debug)]
pub(super) struct IdlePace {
    /// Commands in flight at most for the FTL to do it.
    light_load: u64,
    /// When background collection may run, and when the FTL may begin.
    background_at: Option<Nanos>,
    due: Option<Nanos>,
    /// It may go on.
    on: bool,
    in_flight: u32,
}

impl IdlePace {
    pub(super) fn new(light_load: u64) -> IdlePace {
        IdlePace { light_load, background_at: None, due: None, on: false, in_flight: 0 }
    }

    pub(super) const fn light_load(&self) -> u64 {
        self.light_load
    }

    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.background_at.into_iter().chain(self.due).min()
    }
}

impl Drive {
    /// A command came: what waits for fewer of them waits on.
    pub(super) fn load_has_grown(&mut self) {
        self.idle.work.background_at = None;
        if self.commands.outstanding > self.idle.work.light_load {
            self.idle.work.on = false;
            self.idle.work.due = None;
        }
        self.idle.at = self.idle.work.due;
    }

    /// A command has completed, and few are left or none.
    pub(super) fn load_has_fallen(&mut self) {
        if self.commands.outstanding == 0 {
            self.idle.work.background_at = self.gc.idle_after().map(|after| self.media.now + after);
        }
        if !self.idle.work.on && self.idle.work.due.is_none() && self.has_idle_work() {
            self.idle.work.due = Some(self.media.now + self.config.gc.idle_after);
        }
        self.idle.at = self.idle.work.next();
    }

    fn has_idle_work(&mut self) -> bool {
        self.ftl.idle_work().is_some_and(|work| work.has_work())
    }

    /// The drive counts as idle, for background collection or for what the FTL does then.
    pub(super) fn idle_time_has_come(&mut self, at: Nanos) {
        if self.idle.work.background_at == Some(at) {
            self.idle.work.background_at = None;
            self.gc.set_background(true);
            self.pump_all();
        }
        if self.idle.work.due == Some(at) {
            self.idle.work.due = None;
            self.idle.work.on = true;
            self.work_idle();
        }
        self.idle.at = self.idle.work.next();
    }

    /// The drive does not become idle by itself.
    pub(super) fn forget_idle_times(&mut self) {
        self.idle.at = None;
        (self.idle.work.background_at, self.idle.work.due, self.idle.work.on) = (None, None, false);
    }

    /// Lets the FTL do what it does while the drive is idle, a few programs at a time.
    fn work_idle(&mut self) {
        if self.idle.work.on && !self.failures.read_only && self.idle.work.in_flight < IDLE_IN_FLIGHT {
            assert!(self.media.flash.timed(), "a drive without time is never idle");
            let limit = IDLE_IN_FLIGHT - self.idle.work.in_flight;
            if let Some(work) = self.ftl.idle_work() {
                let started = work.work(&mut self.media, limit, Waiter::Idle);
                assert!(started <= limit, "{started} programs of idle work were started, of {limit}");
                self.idle.work.in_flight += started;
            }
            // With nothing in flight it begins anew when the next command has completed.
            self.idle.work.on = self.idle.work.in_flight > 0;
        }
    }

    /// A program of it is on flash.
    pub(super) fn idle_work_done(&mut self) {
        assert!(self.idle.work.in_flight > 0, "idle work ended, and none was in flight");
        self.idle.work.in_flight -= 1;
        self.work_idle();
    }
}
