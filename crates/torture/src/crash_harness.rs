//! Power cuts in the middle of random work.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng};
use ssdlab_device::{Completion, Drive, DriveConfig, Options, Recovered};
use ssdlab_flash::Flash;
use ssdlab_host::BlockDevice as _;

use crate::commands::Mix;
use crate::driver::{assert_checks, contents, submit};
use crate::durability_oracle::Durable;
use crate::journal::stamps;

/// A drive, what a host may rely on, and how they go on together over power cuts.
pub struct CrashHarness {
    /// What the drive is.
    pub config: DriveConfig,
    /// What its power comes back with.
    pub options: Options,
    /// Always there, but for the instant of a power cut.
    drive: Option<Drive>,
    /// What a host may rely on.
    pub oracle: Durable,
    /// Power cuts so far.
    pub cuts: u64,
    /// Commands submitted so far.
    pub commands: u64,
}

impl CrashHarness {
    /// A fresh drive.
    pub fn new(config: &DriveConfig, options: Options) -> CrashHarness {
        let drive = Drive::new(config, options).expect("an accepted drive");
        let oracle = Durable::new(drive.user_sectors(), config.buffer.policy == "none");
        CrashHarness { config: config.clone(), options, drive: Some(drive), oracle, cuts: 0, commands: 0 }
    }

    /// The drive.
    pub fn drive(&mut self) -> &mut Drive {
        self.drive.as_mut().expect("the power is on")
    }

    /// The drive, unless it is the instant of a power cut.
    pub(crate) fn drive_if_on(&self) -> Option<&Drive> {
        self.drive.as_ref()
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
        let drive = self.drive.as_mut().expect("the power is on");
        let mut completions: Vec<Completion> = std::mem::take(drive.completions());
        let data = std::mem::take(drive.read_data());
        // They took effect in this order; a flush that completed covers only what had completed when it was submitted.
        completions.sort_by_key(|completion| completion.order);
        for completion in &completions {
            let cells = data.iter().find(|(tag, _)| *tag == completion.tag).map(|(_, cells)| stamps(cells));
            self.oracle.completed(completion, cells);
        }
    }

    /// Runs one event; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.drive().next_event() else { return false };
        self.drive().run_until(at);
        self.collect();
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
    pub fn cut_in_recovery(&mut self, mut operations: impl FnMut(&Flash) -> Option<u64>) {
        self.oracle.power_lost();
        let mut flash = self.drive.take().expect("the power is on").power_cut();
        self.drive = Some(loop {
            self.cuts += 1;
            let until = operations(&flash).unwrap_or(u64::MAX);
            match Drive::recover_until(&self.config, self.options, flash, until).expect("a drive comes back") {
                Recovered::Whole(drive, _) => break *drive,
                Recovered::Cut(chips) => flash = *chips,
            }
        });
    }

    /// What the drive holds is what it may hold, and its own checks hold.
    pub fn compare(&mut self) {
        let drive = self.drive.as_mut().expect("the power is on");
        assert_checks(drive);
        let (found, next) = contents(drive);
        self.oracle.found(&found, next, &format!("cut {} after {} commands", self.cuts, self.commands));
    }
}

/// Operations of recovery before its first erase, and its erases.
pub fn recovery_of(flash: &Flash) -> (u64, u64) {
    let torn = flash.blocks.all().iter().filter(|block| block.torn);
    let read = flash.blocks.all().iter().filter(|block| !block.torn);
    (read.map(|block| u64::from(block.programmed)).sum(), torn.count() as u64)
}
