//! A stack and the oracle beside it.

use std::ops::ControlFlow;
use std::time::Instant;

use ssdlab_base::command_sets::cache::{CACHE, MISS_STAMP};
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Drive, Options, Status};
use ssdlab_flash::Contents;
use ssdlab_host::{Administration as _, BlockDevice as _, Device, Host, Loss, Member, StackError, seed_of};

use super::Stack;
use crate::case::{Allowed, Case, Refused, Subject, System};
use crate::cut::{Cut, Whose};
use crate::driver;
use crate::durability_oracle::Durable;
use crate::step::{BlockCommand, Place, Step};
use crate::totals::Totals;

/// How often a stack sends a command at most, for the limit of [`driver::hangs_after`]: an error handler repeats all in flight after a timeout.
const SENT_AGAIN: u64 = 64;

/// Every so many commands write the pattern of a miss, where a cache may tell of one by it.
const PATTERN_EVERY: u32 = 4;

/// Virtual time in which a disk completes some command: it holds up to 32 commands, and cached data may be written before them.
const LONGEST_OF_A_DISK: Nanos = Nanos(3_600_000_000_000);

/// What is tortured: it takes commands, runs, loses its power in parts or whole, comes back, and is compared.
pub struct StackUnderTest {
    host: Host,
    /// Always there, but for the instant of a cut.
    device: Option<Box<dyn Device>>,
    oracle: Durable,
    /// The oracle's numbers of effect follow those of this host's life.
    stride: u64,
    cuts: u64,
    /// Virtual time in which some command completes, or the stack hangs.
    hangs_after: Nanos,
    tag: u32,
    /// A cache of the stack may tell of misses by a pattern in the data.
    writes_pattern: bool,
    /// What a layer keeps could not be read, so that the stack did not come back, and said so.
    is_lost: bool,
}

impl System for StackUnderTest {
    type Command = BlockCommand;

    fn apply(&mut self, step: &Step<BlockCommand>, totals: &mut Totals) -> ControlFlow<()> {
        match step {
            Step::Command(BlockCommand { request, depth }) => {
                self.wait_for_fewer_than(u64::from(*depth));
                self.submit(request, totals);
            }
            Step::Run(events) => {
                for _ in 0..*events {
                    if !self.step() {
                        break;
                    }
                }
            }
            Step::Drain => self.wait_for_fewer_than(1),
            Step::Fail(kind, Place::Drive(drive)) => {
                let mut parts = self.device().drives_mut();
                if let Some(drive) = drive.checked_rem(parts.len()) {
                    parts[drive].device.fail_next(*kind, None);
                }
            }
            Step::Cut(cut) => {
                self.pass_part(cut.percent);
                self.cut(cut, totals)?;
                if !cut.unread {
                    let start = Instant::now();
                    self.compare(totals);
                    totals.comparing += start.elapsed();
                }
            }
            other => unreachable!("{other} is no step of a stack"),
        }
        ControlFlow::Continue(())
    }

    /// What is there in the end: after the power of everything went once more, and after what the layers do by
    /// themselves.
    fn end(&mut self, totals: &mut Totals) {
        self.wait_for_fewer_than(1);
        self.submit(&Request::new(Op::Write, 0, 1), totals);
        self.submit(&Request::new(Op::Flush, 0, 0), totals);
        self.wait_for_fewer_than(1);
        self.compare(totals);
        self.settle();
        // Any side of a mirror may be the one that is read now.
        let members = (0..self.device().members()).map(Whose::Drive);
        for whose in std::iter::once(Whose::All).chain(members) {
            if self.cut(&Cut { whose, ..Cut::NOW }, totals).is_break() {
                return;
            }
            self.compare(totals);
            self.settle();
        }
    }

    fn drives(&self) -> Vec<&Drive> {
        self.device.iter().flat_map(|device| device.drives()).map(|part| part.device).collect()
    }

    fn count(&self, totals: &mut Totals) {
        totals.refused += self.oracle.refused;
        totals.unreadable += self.oracle.unreadable;
        totals.not_back += u64::from(self.is_lost);
        totals.read_only += u64::from(self.device.as_ref().is_some_and(|device| device.is_read_only()));
    }
}

impl StackUnderTest {
    /// A fresh stack.
    ///
    /// # Errors
    /// A drive or a layer refuses.
    pub(super) fn new(case: &Case<Stack>) -> Result<StackUnderTest, Refused> {
        let host = &case.subject.host;
        host.sectors(&case.drive)?;
        let Fresh { members, allowed, hangs_after } = fresh(case, host, Contents::Stamps)?;
        let device = host.build(members)?;
        let writes_through = !device.identify().has_write_cache;
        let stride = device.order_stride();
        let mut oracle = Durable::new(device.sectors(), writes_through).in_steps_of(stride);
        (oracle.faulty, oracle.may_end_read_only) = (allowed.failed_reads, allowed.read_only);
        oracle.trims_nothing = !device.trims();
        let writes_pattern = host.commands().iter().any(|set| set.name == CACHE.name);
        let (host, device) = (host.clone(), Some(device));
        let (cuts, tag, is_lost) = (0, 0, false);
        Ok(StackUnderTest { host, device, oracle, stride, cuts, hangs_after, tag, writes_pattern, is_lost })
    }

    fn device(&mut self) -> &mut dyn Device {
        &mut **self.device.as_mut().expect("the power is on")
    }

    /// Submits a command now.
    fn submit(&mut self, request: &Request, totals: &mut Totals) {
        assert!(self.tag < u32::MAX - 1, "tags are used up");
        self.tag += 1;
        totals.commands += 1;
        let request = Request { at: self.device().now(), tag: self.tag, ..*request };
        let stamp = match self.writes_pattern && self.tag.is_multiple_of(PATTERN_EVERY) {
            true => MISS_STAMP,
            false => u64::from(self.tag),
        };
        self.oracle.submitted(&request, stamp);
        self.device().submit(&request, Data::Stamp(stamp));
        self.collect();
    }

    /// Tells the oracle what has completed.
    fn collect(&mut self) {
        for (completion, cells) in driver::take_completed(self.device()) {
            self.oracle.completed(&completion, cells);
        }
        self.oracle.show_turns();
    }

    /// Runs the next event; false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some(at) = self.device().next_event() else { return false };
        self.device().run_until(at);
        self.collect();
        true
    }

    /// Waits until fewer commands are in flight.
    fn wait_for_fewer_than(&mut self, count: u64) {
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
    fn pass_part(&mut self, percent: u8) {
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
    fn settle(&mut self) {
        let mut events = 0_u64;
        while self.step() {
            events += 1;
            assert!(events < 1_000_000, "an idle stack comes to rest");
        }
    }

    /// Power is lost, and comes back; `Break` where reads may fail and the stack does not come back, since what a layer
    /// keeps cannot be read.
    fn cut(&mut self, cut: &Cut, totals: &mut Totals) -> ControlFlow<()> {
        let start = Instant::now();
        self.lose(cut);
        totals.stack_cut(cut.whose);
        totals.recovering += start.elapsed();
        if self.is_lost { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn lose(&mut self, cut: &Cut) {
        self.cuts += 1;
        assert!(!self.is_lost, "a stack that did not come back loses nothing more");
        match cut.whose {
            Whose::Drive(drive) => {
                let member = drive % self.device().members();
                if self.device().cut(member, &mut cut.again()) == Loss::Unflushed {
                    self.oracle.may_abort = true;
                    self.oracle.device_lost();
                }
                self.collect();
            }
            Whose::Only => unreachable!("a stack may have several drives"),
            Whose::Host | Whose::All => {
                let has_host_cache = self.device().identify().has_host_cache;
                if cut.whose == Whose::All || has_host_cache {
                    self.oracle.power_lost();
                } else {
                    self.oracle.host_lost();
                }
                let device = self.device.take().expect("the power is on");
                self.oracle.may_abort = false;
                self.device = match build_again(&self.host, device, cut) {
                    Ok(device) => Some(device),
                    Err(why) => {
                        assert!(self.oracle.faulty, "a stack comes back: {why}");
                        self.is_lost = true;
                        None
                    }
                };
            }
        }
    }

    /// Everything is flushed and read through the layers, and is what it may be.
    fn compare(&mut self, totals: &mut Totals) {
        self.wait_for_fewer_than(1);
        let flushed = driver::alone(self.device(), &Request::new(Op::Flush, 0, 0), 0).status;
        let refused = matches!(flushed, Status::ReadOnly | Status::StorageFull) && self.oracle.may_end_read_only;
        assert!(refused || flushed == Status::Success, "a flush of an idle stack ends with {flushed:?}");
        let sectors = self.device().sectors();
        let stride = self.stride;
        let (found, next) = driver::contents(self.device(), stride);
        let context = format!("after {} cuts", self.cuts);
        if refused {
            self.oracle.seen(&found, next, &context);
        } else {
            self.oracle.found(&found, next, &context);
        }
        for (name, check) in self.device().check() {
            assert!(check.passed, "{name}: {}", check.detail);
        }
        totals.sectors_compared += sectors;
    }
}

/// The drives and disks of a stack before anything was written.
pub(crate) struct Fresh {
    pub(crate) members: Vec<Member>,
    /// What some drive may do.
    pub(crate) allowed: Allowed,
    /// Virtual time in which some command completes, or the stack hangs.
    pub(crate) hangs_after: Nanos,
}

/// The drives and disks below the layers of a case.
///
/// # Errors
/// A drive refuses.
pub(crate) fn fresh<S: Subject>(case: &Case<S>, host: &Host, contents: Contents) -> Result<Fresh, Refused> {
    let mut fresh = Fresh { members: Vec::new(), allowed: Allowed::default(), hangs_after: Nanos(0) };
    for (index, (name, config)) in host.members(&case.drive).into_iter().enumerate() {
        let options = Options { seed: seed_of(case.seed, index), contents };
        let mut member = Member::fresh(&name, &config, options)?;
        let longest = match config.drive() {
            Some(config) => {
                let allowed = case.allows(config);
                fresh.allowed = fresh.allowed.or(allowed);
                allowed.prepare(member.drives_mut()[0].device);
                Nanos(driver::hangs_after(config).0.saturating_mul(SENT_AGAIN))
            }
            None => LONGEST_OF_A_DISK,
        };
        fresh.hangs_after = fresh.hangs_after.max(longest);
        fresh.members.push(member);
    }
    Ok(fresh)
}

/// The host has crashed, or the power of everything has gone and come back: what the layers above the same drives and disks are then.
///
/// # Errors
/// A layer cannot stand on what is below it.
pub(crate) fn build_again(host: &Host, device: Box<dyn Device>, cut: &Cut) -> Result<Box<dyn Device>, StackError> {
    let now = device.now();
    let mut members = device.into_members();
    if cut.whose == Whose::All {
        for member in &mut members {
            finish_until(member, now);
            // Each recovery is cut as often as asked.
            member.cycle(&mut cut.again());
            forget_answers(member);
        }
    } else {
        let mut end = now;
        for member in &mut members {
            finish(member);
            end = end.max(member.now());
        }
        members.iter_mut().for_each(|member| finish_until(member, end));
    }
    host.build(members)
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

#[cfg(test)]
mod tests {
    use ssdlab_base::rng;

    use super::*;
    use crate::configs;

    #[test]
    fn the_same_seed_does_the_same() {
        let mut rng = rng(3, "stacks");
        let mut config = configs::draw(&mut rng);
        config.flash.faults = Default::default();
        let subject = Stack::new("[[layer]]\nkind = \"mirror\"\nregion = \"1k\"\n".to_string());
        let write = Step::Command(BlockCommand { request: Request::new(Op::Write, 0, 1), depth: 20 });
        let cut = Step::Cut(Cut { whose: Whose::Drive(0), unread: true, ..Cut::NOW });
        let case = Case { seed: 1, drive: config, subject, steps: [vec![write; 19], vec![cut]].concat() };
        let digest = || {
            let mut system = StackUnderTest::new(&case).ok()?;
            for step in &case.steps {
                assert!(system.apply(step, &mut Totals::default()).is_continue());
            }
            system.settle();
            Some((system.device().now(), system.device().counters()))
        };
        assert_eq!(digest(), digest());
    }
}
