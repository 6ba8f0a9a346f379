//! A stack and the oracle beside it.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Completion, Data, DriveError, Options, Status};
use ssdlab_flash::{Contents, FaultKind, Flash};
use ssdlab_host::{Administration as _, BlockDevice as _, Device, Host, Loss, Member, StackError, seed_of};

use super::{Cut, StackCase, Step};
use crate::case::Case;
use crate::crash_harness::recovery_of;
use crate::driver;
use crate::durability_oracle::Durable;
use crate::journal::stamps;
use crate::totals::Totals;

/// What is tortured: it takes commands, runs, loses its power in parts or whole, comes back, and is compared.
pub struct System {
    host: Host,
    /// Always there, but for the instant of a cut.
    device: Option<Box<dyn Device>>,
    oracle: Durable,
    /// The oracle's numbers of effect follow those of this host's life.
    stride: u64,
    cuts: u64,
    /// Virtual time in which some command completes, or the stack hangs.
    hangs_after: Nanos,
}

/// Why a stack cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A drive.
    #[error("{0}")]
    Drive(DriveError),
    /// A layer.
    #[error("{0}")]
    Layer(StackError),
}

impl System {
    /// A fresh stack.
    ///
    /// # Errors
    /// A drive or a layer refuses.
    pub fn new(host: &Host, case: &StackCase) -> Result<System, Refused> {
        host.sectors(&case.drive).map_err(Refused::Layer)?;
        let mut members = Vec::new();
        let mut hangs_after = Nanos(0);
        let (mut faulty, mut may_end_read_only) = (false, false);
        for (index, (name, config)) in host.drives(&case.drive).into_iter().enumerate() {
            hangs_after = hangs_after.max(driver::hangs_after(&config));
            let options = Options { seed: seed_of(case.seed, index), contents: Contents::Stamps };
            let mut member = Member::new(&name, &config, options).map_err(Refused::Drive)?;
            let alone = Case { seed: case.seed, config, steps: Vec::new() };
            let asked = |kinds: &[FaultKind]| {
                case.steps.iter().any(|step| matches!(step, Step::Fail { kind, .. } if kinds.contains(kind)))
                    || kinds.iter().any(|kind| alone.may_fail(*kind))
            };
            faulty |= asked(&[FaultKind::Read]);
            let writes_fail = asked(&[FaultKind::Program, FaultKind::Erase]);
            // As for a single drive: with one block in reserve a few torn pages are too much.
            may_end_read_only |= alone.config.gc.free_blocks < 3 || writes_fail;
            if faulty || writes_fail {
                member.parts_mut()[0].drive.expect_faults();
            }
            members.push(member);
        }
        let device = host.build(members).map_err(Refused::Layer)?;
        let writes_through = !device.identify().has_write_cache;
        let mut oracle = Durable::new(device.sectors(), writes_through).in_steps_of(device.order_stride());
        (oracle.faulty, oracle.may_end_read_only) = (faulty, may_end_read_only);
        let stride = device.order_stride();
        Ok(System { host: host.clone(), device: Some(device), oracle, stride, cuts: 0, hangs_after })
    }

    fn device(&mut self) -> &mut dyn Device {
        &mut **self.device.as_mut().expect("the power is on")
    }

    /// Drives at the bottom.
    pub fn drives(&mut self) -> usize {
        self.device().parts().len()
    }

    /// Lets the next operation of a kind fail on a drive, by its place modulo their number.
    pub fn fail_next(&mut self, kind: FaultKind, drive: usize) {
        let mut parts = self.device().parts_mut();
        let drive = drive % parts.len();
        parts[drive].drive.fail_next(kind, None);
    }

    /// Adds what struck, and what was refused.
    pub fn count(&self, totals: &mut Totals) {
        totals.refused += self.oracle.refused;
        totals.unreadable += self.oracle.unreadable;
        let Some(device) = &self.device else { return };
        for part in device.parts() {
            part.drive.faults_struck().iter().for_each(|fault| totals.struck(fault.kind));
        }
        totals.read_only += u64::from(device.is_read_only());
    }

    /// Submits a command now.
    pub fn submit(&mut self, request: &Request, stamp: u64) {
        self.oracle.submitted(request, stamp);
        let at = self.device().now();
        self.device().submit(&Request { at, ..*request }, Data::Stamp(stamp));
        self.collect();
    }

    /// Tells the oracle what has completed.
    fn collect(&mut self) {
        let mut completions: Vec<Completion> = std::mem::take(self.device().completions());
        let data = std::mem::take(self.device().read_data());
        completions.sort_by_key(|completion| completion.order);
        for completion in &completions {
            let cells = data.iter().find(|(tag, _)| *tag == completion.tag).map(|(_, cells)| stamps(cells));
            self.oracle.completed(completion, cells);
        }
        self.oracle.show_turns();
    }

    /// Runs the next event; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.device().next_event() else { return false };
        self.device().run_until(at);
        self.collect();
        true
    }

    /// Waits until fewer commands are in flight.
    pub fn wait_for_fewer_than(&mut self, count: u64) {
        let until = Nanos(self.device().now().0.saturating_add(self.hangs_after.0));
        while self.device().outstanding() >= count.max(1) {
            let progress = self.device().wait_for_completion(until);
            self.collect();
            assert!(progress, "{} commands never complete", self.device().outstanding());
        }
        if count <= 1 {
            // Whatever was in flight when a drive lost its power has been answered.
            self.oracle.may_abort = false;
        }
    }

    /// Lets so much of the time to the next event pass, in percent.
    pub fn pass_part(&mut self, percent: u8) {
        let now = self.device().now().0;
        if let Some(next) = self.device().next_event()
            && percent > 0
        {
            let left = next.0.saturating_sub(now);
            let part = (left * u64::from(percent) / 100).min(left.saturating_sub(1));
            self.device().run_until(Nanos(now + part));
            self.collect();
        }
    }

    /// Lets the layers and drives come to rest.
    pub fn settle(&mut self) {
        let mut events = 0_u64;
        while self.step() {
            events += 1;
            assert!(events < 1_000_000, "an idle stack comes to rest");
        }
    }

    /// Power is lost, and comes back; false where reads may fail and the stack does not come back, since what a layer keeps
    /// cannot be read.
    pub fn cut(&mut self, what: Cut, again: Option<u8>) -> bool {
        self.cuts += 1;
        let mut cut_again = again;
        let mut recoveries = |flash: &Flash| {
            let (scanned, _) = recovery_of(flash);
            cut_again.take().map(|percent| scanned * u64::from(percent) / 100)
        };
        match what {
            Cut::Drive(drive) => {
                let drive = drive % self.drives();
                if self.device().cut(drive, &mut recoveries) == Loss::Unflushed {
                    self.oracle.may_abort = true;
                    self.oracle.device_lost();
                }
                self.collect();
            }
            Cut::Host | Cut::All => {
                let now = self.device().now();
                let has_host_cache = self.device().identify().has_host_cache;
                let mut members = self.device.take().expect("the power is on").into_members();
                if what == Cut::All {
                    self.oracle.power_lost();
                    for member in &mut members {
                        finish_until(member, now);
                        // Each recovery is cut as often as asked.
                        cut_again = again;
                        let mut recoveries = |flash: &Flash| {
                            let (scanned, _) = recovery_of(flash);
                            cut_again.take().map(|percent| scanned * u64::from(percent) / 100)
                        };
                        member.cycle(&mut recoveries);
                        forget_answers(member);
                    }
                } else {
                    if has_host_cache {
                        self.oracle.power_lost();
                    } else {
                        self.oracle.host_lost();
                    }
                    let mut end = now;
                    for member in &mut members {
                        finish(member);
                        end = end.max(member.now());
                    }
                    members.iter_mut().for_each(|member| finish_until(member, end));
                }
                self.oracle.may_abort = false;
                self.device = match self.host.build(members) {
                    Ok(device) => Some(device),
                    Err(why) => {
                        assert!(self.oracle.faulty, "a stack comes back: {why}");
                        return false;
                    }
                };
            }
        }
        true
    }

    /// Everything is flushed and read through the layers, and is what it may be; gives back how many sectors.
    pub fn compare(&mut self) -> u64 {
        self.wait_for_fewer_than(1);
        let flushed = self.alone(&Request::new(Op::Flush, 0, 0)).status;
        let refused = matches!(flushed, Status::ReadOnly | Status::StorageFull) && self.oracle.may_end_read_only;
        assert!(refused || flushed == Status::Success, "a flush of an idle stack ends with {flushed:?}");
        let sectors = self.device().sectors();
        let (found, next) = self.read_all(sectors);
        let context = format!("after {} cuts", self.cuts);
        if refused {
            self.oracle.seen(&found, next, &context);
        } else {
            self.oracle.found(&found, next, &context);
        }
        for (name, check) in self.device().check() {
            assert!(check.held, "{name}: {}", check.detail);
        }
        sectors
    }

    /// What all sectors hold, and the step of the next command. What cannot be read whole is read by halves.
    fn read_all(&mut self, sectors: u64) -> (Vec<Result<u64, Status>>, u64) {
        let mut cells = Vec::with_capacity(sectors as usize);
        let mut next = 0;
        let mut parts = vec![(0, sectors)];
        while let Some((first, count)) = parts.pop() {
            let read = self.alone(&Request::new(Op::Read, first, count));
            next = read.order / self.stride + 1;
            let data = std::mem::take(self.device().read_data());
            match read.status {
                Status::Success => cells.extend(stamps(&data[0].1).into_iter().map(Ok)),
                status if count == 1 => cells.push(Err(status)),
                _ => parts.extend([(first + count / 2, count - count / 2), (first, count / 2)]),
            }
        }
        (cells, next)
    }

    /// Runs one command on a stack in which there is none.
    fn alone(&mut self, request: &Request) -> Completion {
        let at = self.device().now();
        self.device().submit(&Request { at, tag: u32::MAX, ..*request }, Data::Nothing);
        let completes = self.device().wait_for_completion(Nanos::MAX);
        assert!(completes, "{request:?} never completes");
        self.device().completions().pop().expect("it has completed")
    }
}

/// A drive does what it has taken; no host hears of it.
fn finish(member: &mut Member) {
    while member.outstanding() > 0 {
        assert!(member.wait_for_completion(Nanos::MAX), "a drive does what it has taken");
        member.completions().clear();
    }
    forget_answers(member);
}

fn finish_until(member: &mut Member, until: Nanos) {
    if member.now() < until {
        member.run_until(until);
    }
    forget_answers(member);
}

fn forget_answers(member: &mut Member) {
    member.completions().clear();
    member.read_data().clear();
}

/// A part of a stack, drawn for a cut.
pub(super) fn any_drive(rng: &mut ssdlab_base::Rng) -> usize {
    // More than any stack has: it is taken modulo the number of drives.
    rng.random_range(0..64)
}

#[cfg(test)]
mod tests {
    use ssdlab_base::rng;

    use super::*;
    use crate::configs;

    #[test]
    fn the_same_seed_does_the_same() {
        let host = Host::parse("[[layer]]\nkind = \"mirror\"\nregion = \"1k\"\n", "host.toml").expect("a host");
        let mut rng = rng(3, "stacks");
        let mut config = configs::draw(&mut rng);
        config.flash.faults = Default::default();
        let case = StackCase { seed: 1, host: String::new(), drive: config, steps: Vec::new() };
        let digest = || {
            let mut system = System::new(&host, &case).ok()?;
            for tag in 1..20 {
                system.submit(&Request { tag, ..Request::new(Op::Write, 0, 1) }, u64::from(tag));
            }
            assert!(system.cut(Cut::Drive(0), None));
            system.settle();
            Some((system.device().now(), system.device().counters()))
        };
        assert_eq!(digest(), digest());
    }
}
