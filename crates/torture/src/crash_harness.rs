//! Power cuts in the middle of random work.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options};
use ssdlab_flash::Flash;
use ssdlab_host::BlockDevice as _;

use crate::commands::Mix;
use crate::cut::{Cut, PoweredDrive};
use crate::driver::{assert_checks, contents, submit, take_completed};
use crate::durability_oracle::Durable;
use crate::totals::Totals;

pub use crate::cut::recovery_of;

/// A drive, what a host may rely on, and how they go on together over power cuts.
pub struct CrashHarness {
    pub(crate) power: PoweredDrive,
    /// What a host may rely on.
    pub oracle: Durable,
    /// Power cuts so far.
    pub cuts: u64,
    /// Commands submitted so far.
    pub commands: u64,
}

impl CrashHarness {
    /// A fresh drive.
    ///
    /// # Panics
    /// The drive is refused.
    pub fn new(config: &DriveConfig, options: Options) -> CrashHarness {
        CrashHarness::build(config, options).expect("an accepted drive")
    }

    /// A fresh drive.
    ///
    /// # Errors
    /// The drive is refused.
    pub(crate) fn build(config: &DriveConfig, options: Options) -> Result<CrashHarness, DriveError> {
        let mut power = PoweredDrive::new(config, options)?;
        let oracle = Durable::new(power.get().user_sectors(), !config.has_volatile_cache());
        Ok(CrashHarness { power, oracle, cuts: 0, commands: 0 })
    }

    /// The drive.
    pub fn drive(&mut self) -> &mut Drive {
        self.power.get()
    }

    /// Submits a command now.
    pub fn submit(&mut self, request: &ssdlab_base::Request, stamp: u64) {
        self.oracle.submitted(request, stamp);
        self.commands += 1;
        submit(self.drive(), request, stamp);
        self.collect();
    }

    /// Tells the oracle what has completed.
    pub fn collect(&mut self) {
        // They took effect in this order; a flush that completed covers only what had completed when it was submitted.
        for (completion, cells) in take_completed(self.power.get()) {
            self.oracle.completed(&completion, cells);
        }
    }

    /// Runs one event; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.drive().next_event() else { return false };
        self.drive().run_until(at);
        self.collect();
        self.power.count_event();
        true
    }

    /// Runs commands of `mix` for a while, at most `depth` outstanding.
    pub fn work(&mut self, mix: &mut Mix, rng: &mut Rng, depth: u64, count: u64) {
        for _ in 0..count {
            while self.drive().outstanding() >= depth {
                let progress = self.drive().wait_for_completion(Nanos::MAX);
                self.collect();
                assert!(progress, "{} commands never complete", self.drive().outstanding());
            }
            if rng.random_bool(0.05) {
                let until = self.drive().now() + Nanos(rng.random_range(0..2_000_000));
                self.drive().run_until(until);
                self.collect();
            }
            let (request, stamp) = mix.next(rng);
            self.submit(&request, stamp);
        }
    }

    /// Waits for all commands.
    pub fn drain(&mut self) {
        while self.drive().outstanding() > 0 {
            let progress = self.drive().wait_for_completion(Nanos::MAX);
            self.collect();
            assert!(progress || self.drive().outstanding() == 0, "commands never complete");
        }
    }

    /// Cuts the power now, or a little later between two events, and lets it return. What the drive then holds is
    /// compared; with `again` the power is cut that many times more before anything is read, a few events into what
    /// the drive does by itself.
    pub fn cut(&mut self, rng: &mut Rng, again: u32) {
        for time in 0..=again {
            if time > 0 {
                for _ in 0..rng.random_range(0..20) {
                    if !self.step() {
                        break;
                    }
                }
            }
            if rng.random_bool(0.5)
                && let Some(next) = self.drive().next_event()
                && next.0 > self.drive().now().0 + 1
            {
                // In the middle of whatever is running.
                let now = self.drive().now().0;
                self.drive().run_until(Nanos(rng.random_range(now..next.0)));
                self.collect();
            }
            self.cut_now();
        }
        self.compare();
    }

    /// Cuts the power at this instant, and lets it return.
    pub fn cut_now(&mut self) {
        self.cut_in_recovery(|_| None);
    }

    /// Cuts the power at this instant, and then again during recoveries, each time after as many of its operations as
    /// `operations` says of the chips, until it says `None` or the recovery is over before.
    pub fn cut_in_recovery(&mut self, operations: impl FnMut(&Flash) -> Option<u64>) {
        self.oracle.power_lost();
        self.cuts += self.power.cut_in_recovery(operations);
    }

    /// Cuts the power when the part of the time has passed that `cut` says, and in recoveries as it says.
    pub(crate) fn cut_as(&mut self, cut: &Cut, totals: &mut Totals) {
        self.power.pass_part(cut);
        self.collect();
        self.oracle.power_lost();
        self.cuts += self.power.cut(cut, totals);
    }

    /// What the drive holds is what it may hold, and its own checks hold.
    pub fn compare(&mut self) {
        let drive = self.power.get();
        assert_checks(drive);
        let (found, next) = contents(drive, 1);
        self.oracle.found(&found, next, &format!("cut {} after {} commands", self.cuts, self.commands));
    }
}
