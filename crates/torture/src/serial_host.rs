//! Hosts that send one command after the other to a drive of a command set: what those of the sets `shrd` and `cache` share.

use std::ops::ControlFlow;

use ssdlab_base::Request;
use ssdlab_device::{Data, Drive, DriveConfig, DriveError, Options, Payload, Status};
use ssdlab_flash::{Contents, FaultKind};

use crate::case::{Allowed, System};
use crate::cut::{PoweredDrive, Stop, Whose};
use crate::journal::stamps;
use crate::step::{Place, Step};
use crate::totals::Totals;

/// A drive that gets one command after the other.
pub struct SerialDrive {
    pub(crate) power: PoweredDrive,
    /// The drive may run out of spare blocks, and take no more writes.
    pub(crate) may_end_read_only: bool,
    /// Flushes, FUA commands and other commands with durable data that have completed.
    pub(crate) completed_durable: u64,
    /// The drive takes no more writes.
    is_over: bool,
}

/// What came back with a command.
#[derive(Debug)]
pub(crate) struct Back {
    pub(crate) status: Status,
    /// The stamp of each sector that was read.
    pub(crate) stamps: Vec<u64>,
    pub(crate) words: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

impl SerialDrive {
    /// A new drive.
    ///
    /// # Errors
    /// The drive is refused.
    pub(crate) fn new(config: &DriveConfig, seed: u64) -> Result<SerialDrive, DriveError> {
        let power = PoweredDrive::new(config, Options { seed, contents: Contents::Stamps })?;
        Ok(SerialDrive { power, may_end_read_only: false, completed_durable: 0, is_over: false })
    }

    /// Takes over what a case allows.
    pub(crate) fn allow(&mut self, allowed: &Allowed) {
        allowed.prepare(self.power.get());
        self.may_end_read_only = allowed.read_only;
    }

    /// Runs one command; what comes back, if the power stays.
    ///
    /// # Errors
    /// The host has to stop.
    pub(crate) fn run(&mut self, request: Request, words: &[u64], stamp: u32) -> Result<Back, Stop> {
        let drive = self.power.get();
        let request = Request { at: drive.now(), tag: 1, ..request };
        drive.submit_command(&request, Payload { data: Data::Stamp(stamp.into()), words });
        while self.power.get().completions().is_empty() {
            if self.power.is_due(self.completed_durable) {
                return Err(Stop::Cut);
            }
            assert!(self.power.run_event(), "{request:?} never completes");
        }
        let drive = self.power.get();
        let status = drive.completions().pop().expect("one command").status;
        let stamps = drive.read_data().pop().map(|(_, cells)| stamps(&cells)).unwrap_or_default();
        let answer = drive.answers().pop().unwrap_or_default();
        if status == Status::ReadOnly && self.may_end_read_only {
            return Err(Stop::ReadOnly);
        }
        Ok(Back { status, stamps, words: answer.words, bytes: answer.bytes })
    }

    /// The power goes, by the cut that waits or at once, and comes back.
    pub(crate) fn cut(&mut self, totals: &mut Totals) {
        let cut = self.power.take_trap();
        self.power.pass_part(&cut);
        self.power.cut(&cut, totals);
        totals.sectors_compared += self.power.get().user_sectors();
    }
}

/// A host that waits for each command, and its drive.
pub trait SerialHost {
    /// A command that it sends.
    type Command;

    /// Its drive.
    fn serial(&self) -> &SerialDrive;

    /// Its drive, to send commands to.
    fn serial_mut(&mut self) -> &mut SerialDrive;

    /// Sends a command, and waits for it.
    ///
    /// # Errors
    /// The host has to stop.
    fn command(&mut self, command: &Self::Command) -> Result<(), Stop>;

    /// The power goes, by the cut that waits or at once, and comes back; what is there is compared.
    fn cut(&mut self, totals: &mut Totals);

    /// Everything is what it was made last.
    ///
    /// # Errors
    /// The host has to stop.
    fn compare_all(&mut self) -> Result<(), Stop>;
}

/// Whether there is such a step for a host that waits for each command. Each read must succeed.
pub(crate) fn takes<C>(step: &Step<C>) -> bool {
    match step {
        Step::Fail(kind, place) => {
            matches!(kind, FaultKind::Program | FaultKind::Erase) && !matches!(place, Place::Drive(_))
        }
        Step::Run(_) | Step::Pass(_) => false,
        Step::Command(_) | Step::Drain => true,
        Step::Cut(cut) => cut.whose == Whose::Only && !cut.unread && !cut.is_of_files(),
    }
}

fn compare_at_rest(host: &mut impl SerialHost) {
    let compared = host.compare_all();
    assert!(compared.is_ok(), "the host stopped, and nothing was to stop it: {compared:?}");
}

impl<H: SerialHost> System for H {
    type Command = H::Command;

    fn apply(&mut self, step: &Step<H::Command>, totals: &mut Totals) -> ControlFlow<()> {
        let mut done = Ok(());
        match step {
            Step::Command(command) => {
                totals.commands += 1;
                done = self.command(command);
            }
            // Each command is waited for.
            Step::Drain => {}
            Step::Fail(kind, place) => self.serial_mut().power.get().fail_next(*kind, place.block()),
            Step::Cut(cut) => {
                let SerialDrive { power, completed_durable, .. } = self.serial_mut();
                power.set_trap(*cut, *completed_durable);
                done = if power.is_due(*completed_durable) { Err(Stop::Cut) } else { Ok(()) };
            }
            Step::Run(_) | Step::Pass(_) => unreachable!("a host that waits for each command takes no such step"),
        }
        if let Err(why) = done {
            self.cut(totals);
            if why == Stop::ReadOnly {
                self.serial_mut().is_over = true;
                compare_at_rest(self);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self, totals: &mut Totals) {
        self.cut(totals);
        compare_at_rest(self);
    }

    fn drives(&self) -> Vec<&Drive> {
        self.serial().power.if_on().into_iter().collect()
    }

    fn count(&self, totals: &mut Totals) {
        totals.read_only += u64::from(self.serial().is_over);
    }
}
