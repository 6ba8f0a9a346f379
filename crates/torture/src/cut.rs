//! Power cuts as data and as text, and how a drive loses its power by them.
//!
//! ```text
//! cut                       the power goes, and comes back
//! cut after=5 10%           as soon as 5 events have run, 10 % of the way to the next
//! cut program recovery=40%    and again when recovery has looked at 40 % of the written pages
//! cut program recovery=erase:1  and again in recovery, in the second erase of a torn block
//! cut durable               as soon as a flush or a FUA write has completed
//! cut erase 40% unread      in the middle of an erase, 40 % of the way to the next event; nothing is read afterwards
//! ```
//!
//! Of a stack, where all sectors are compared only if the step says so:
//!
//! ```text
//! crash 40% compare                  the host alone crashes 40 % of the way to the next event
//! cut drive=1 recovery=30% compare   drive 1 loses its power, and again when recovery has looked at 30 % of the pages
//! cut all                            everything loses its power
//! ```
//!
//! Of a file system, whose host counts its own work and mounts anew after each cut:
//!
//! ```text
//! cut all job=cleaning:5 40%         when 5 events have run while it cleans
//! cut all mount=7 mount=0            and again 7 events into the mount, and before the first event of the mount after that
//! ```

use std::fmt;
use std::time::Instant;

use rand::RngExt;
use ssdlab_base::{Nanos, Rng};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options, Recovered};
use ssdlab_flash::{Contents, Flash};
use ssdlab_fs::Job;

use crate::script::ScriptError;
use crate::step::Words;
use crate::totals::{CutKind, Totals};

/// A power cut, when its moment comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What loses its power.
    pub whose: Whose,
    /// What is waited for before.
    pub at: Moment,
    /// How much of the time from there to the next event passes, in percent; at 0 the last event has just happened.
    pub percent: u8,
    /// Where the power goes again in the recovery, in the recovery from that, and so on; `None` is not at all.
    pub recovery: [Option<Again>; 3],
    /// After how many events of the mount the power goes again, in the mount after that, and so on. Of a file system alone.
    pub mount: [Option<u32>; 2],
    /// Nothing is read after this cut: the next one follows.
    pub unread: bool,
}

/// What loses its power, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The only drive.
    Only,
    /// The host of a stack alone: its layers lose their memory, and the drives do what they have taken.
    Host,
    /// One drive of a stack, by its place modulo their number.
    Drive(usize),
    /// The host of a stack and all drives at one time.
    All,
}

/// Where in a recovery the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When so many percent of the written pages have been looked at.
    Scan(u8),
    /// While the next of the torn blocks is erased, after so many of them.
    Erase(u8),
}

/// What a power cut waits for, while the steps behind it go on: and if it does not come before the next cut there is
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing.
    Now,
    /// A page is being programmed.
    Program,
    /// A block is being erased.
    Erase,
    /// A flush, or a FUA write, has completed.
    Durable,
    /// So many events have run.
    After(u32),
    /// So many events have run while a file system did this work of its own.
    Job(Job, u32),
}

const MOMENTS: [(&str, Moment); 3] =
    [("program", Moment::Program), ("erase", Moment::Erase), ("durable", Moment::Durable)];

impl Cut {
    /// The power of the only drive goes at once, and everything is read afterwards.
    pub const NOW: Cut =
        Cut { whose: Whose::Only, at: Moment::Now, percent: 0, recovery: [None; 3], mount: [None; 2], unread: false };

    /// Whether a file system alone can be cut like that.
    pub(crate) fn is_of_files(&self) -> bool {
        matches!(self.at, Moment::Job(..)) || self.mount.iter().any(Option::is_some)
    }

    /// Plainer cuts, the plainest first.
    pub(crate) fn plainer(self) -> Vec<Cut> {
        let none = [None; 3];
        let [first, second, _] = self.recovery;
        let whose = if let Whose::Drive(_) = self.whose { Whose::Drive(0) } else { self.whose };
        vec![
            Cut { whose: self.whose, unread: whose != Whose::Only, ..Cut::NOW },
            Cut { recovery: none, ..self },
            Cut { mount: [None; 2], ..self },
            Cut { mount: [self.mount[0], None], ..self },
            Cut { recovery: [first, None, None], ..self },
            Cut { recovery: [first, second, None], ..self },
            Cut { at: Moment::Now, ..self },
            Cut { percent: 0, ..self },
            Cut { percent: 50, ..self },
            Cut { unread: whose != Whose::Only, ..self },
            Cut { whose, ..self },
        ]
    }

    /// Where in a recovery, and in those from it, the power goes again, as operations of the recovery; `None` is no
    /// more.
    pub(crate) fn again(&self) -> impl FnMut(&Flash) -> Option<u64> {
        let mut again = self.recovery.into_iter().flatten();
        move |flash| {
            let (scanned, torn) = recovery_of(flash);
            again.next().map(|again| match again {
                Again::Scan(percent) => {
                    assert!(percent <= 100, "{percent} % of a scan");
                    scanned * u64::from(percent) / 100
                }
                Again::Erase(blocks) => scanned + u64::from(blocks).min(torn),
            })
        }
    }

    /// Reads what comes behind the word `first`: `cut` or `crash`.
    pub(crate) fn parse(first: &str, words: &mut Words<'_>) -> Result<Cut, ScriptError> {
        let mut cut = Cut { whose: if first == "crash" { Whose::Host } else { Whose::Only }, ..Cut::NOW };
        let mut compared = false;
        while let Some(word) = words.next() {
            let percent = |word: &str, most: u8| word.strip_suffix('%')?.parse().ok().filter(|part| *part <= most);
            if let Some((_, moment)) = MOMENTS.iter().find(|(name, _)| *name == word) {
                cut.at = *moment;
            } else if let Some(events) = word.strip_prefix("after=").and_then(|word| word.parse().ok()) {
                cut.at = Moment::After(events);
            } else if let Some(drive) = word.strip_prefix("drive=").and_then(|word| word.parse().ok()) {
                cut.whose = Whose::Drive(drive);
            } else if let Some(job) = word.strip_prefix("job=") {
                let known =
                    job.split_once(':').and_then(|(name, events)| Some((Job::of_name(name)?, events.parse().ok()?)));
                let (job, events) =
                    known.ok_or_else(|| words.expected(&format!("job=NAME:EVENTS, of {}", Job::NAMES)))?;
                cut.at = Moment::Job(job, events);
            } else if let Some(events) = word.strip_prefix("mount=") {
                let free = cut.mount.iter_mut().find(|place| place.is_none());
                let (events, free) =
                    events.parse().ok().zip(free).ok_or_else(|| words.expected("at most two of mount=EVENTS"))?;
                *free = Some(events);
            } else if let Some(again) = word.strip_prefix("recovery=") {
                let erase = again.strip_prefix("erase:").and_then(|blocks| blocks.parse().ok());
                let again = percent(again, 100).map(Again::Scan).or(erase.map(Again::Erase));
                let free = cut.recovery.iter_mut().find(|place| place.is_none());
                let (again, free) = again.zip(free).ok_or_else(|| {
                    words.expected("at most three of recovery=PERCENT%, at most 100, or recovery=erase:BLOCKS")
                })?;
                *free = Some(again);
            } else if let Some(percent) = percent(word, 99) {
                cut.percent = percent;
            } else {
                match word {
                    "all" => cut.whose = Whose::All,
                    "unread" => cut.unread = true,
                    "compare" => compared = true,
                    _ => {
                        return Err(words.expected(
                            "cut, then program, erase, durable or after=EVENTS, a percentage below 100, \
                             recovery=PERCENT%, unread; or cut all, cut drive=N or crash, then compare",
                        ));
                    }
                }
            }
        }
        // What is read unless it says so, and what is only where it does.
        let of_stack = cut.whose != Whose::Only;
        if of_stack && cut.unread || !of_stack && compared {
            return Err(words.expected("unread behind a cut of a drive, compare behind one of a stack"));
        }
        cut.unread |= of_stack && !compared;
        Ok(cut)
    }
}

/// A cut after some events, and up to two more in recoveries.
pub(crate) fn draw_cut(rng: &mut Rng) -> Cut {
    let mut cut = Cut { at: Moment::After(rng.random_range(0..60)), ..Cut::NOW };
    let again = rng.random_range(0..3);
    cut.recovery[..again].iter_mut().for_each(|place| *place = Some(draw_again(rng)));
    cut
}

/// A moment in a recovery.
pub(crate) fn draw_again(rng: &mut Rng) -> Again {
    if rng.random_bool(0.5) { Again::Erase(rng.random_range(0..3)) } else { Again::Scan(rng.random_range(0..=100)) }
}

impl fmt::Display for Cut {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { whose, at, percent, recovery, mount, unread } = self;
        match whose {
            Whose::Only => write!(to, "cut")?,
            Whose::Host => write!(to, "crash")?,
            Whose::Drive(drive) => write!(to, "cut drive={drive}")?,
            Whose::All => write!(to, "cut all")?,
        }
        if let Some((name, _)) = MOMENTS.iter().find(|(_, moment)| moment == at) {
            write!(to, " {name}")?;
        } else if let Moment::After(events) = at {
            write!(to, " after={events}")?;
        } else if let Moment::Job(job, events) = at {
            write!(to, " job={}:{events}", job.name())?;
        }
        if *percent > 0 {
            write!(to, " {percent}%")?;
        }
        for again in recovery.iter().flatten() {
            match again {
                Again::Scan(percent) => write!(to, " recovery={percent}%")?,
                Again::Erase(blocks) => write!(to, " recovery=erase:{blocks}")?,
            }
        }
        mount.iter().flatten().try_for_each(|events| write!(to, " mount={events}"))?;
        match (whose, unread) {
            (Whose::Only, true) => write!(to, " unread"),
            (Whose::Host | Whose::Drive(_) | Whose::All, false) => write!(to, " compare"),
            _ => Ok(()),
        }
    }
}

/// Why a host that knows a drive by its own commands stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The power is to go now.
    Cut,
    /// The drive takes no more writes.
    ReadOnly,
}

/// A power cut that waits for its moment.
#[derive(Clone, Copy, Debug)]
struct Trap {
    cut: Cut,
    /// What had been made durable when it was set.
    durable: u64,
    /// Events since.
    events: u32,
}

/// A drive whose power goes and comes back.
pub struct PoweredDrive {
    /// What the drive is.
    pub config: DriveConfig,
    /// What its power comes back with.
    options: Options,
    /// Always there, but for the instant of a power cut.
    drive: Option<Drive>,
    trap: Option<Trap>,
}

impl PoweredDrive {
    /// A fresh drive.
    ///
    /// # Errors
    /// The drive refuses its description.
    pub fn new(config: &DriveConfig, options: Options) -> Result<PoweredDrive, DriveError> {
        Ok(PoweredDrive { config: config.clone(), options, drive: Some(Drive::new(config, options)?), trap: None })
    }

    /// The drive.
    ///
    /// # Panics
    /// It has no power.
    pub fn get(&mut self) -> &mut Drive {
        self.drive.as_mut().expect("the power is on")
    }

    /// The drive, unless it is the instant of a power cut.
    pub(crate) fn if_on(&self) -> Option<&Drive> {
        self.drive.as_ref()
    }

    /// What the drive keeps of its data.
    pub(crate) const fn contents(&self) -> Contents {
        self.options.contents
    }

    /// Lets a power cut wait for its moment from now on, when so many flushes and FUA writes have completed. One that
    /// waits does not come any more.
    pub(crate) fn set_trap(&mut self, cut: Cut, durable: u64) {
        assert_eq!(cut.whose, Whose::Only, "the drive is alone: {cut}");
        assert!(cut.percent < 100, "a cut comes before the next event: {cut}");
        self.trap = Some(Trap { cut, durable, events: 0 });
    }

    /// Whether a power cut waits.
    pub(crate) const fn has_trap(&self) -> bool {
        self.trap.is_some()
    }

    /// Whether the moment has come that a power cut waits for, when so many flushes and FUA writes have completed.
    pub(crate) fn is_due(&self, durable: u64) -> bool {
        let (Some(trap), Some(drive)) = (&self.trap, &self.drive) else { return false };
        // What is in flight right after this event.
        let work = || drive.array_work(drive.now() + Nanos(1));
        match trap.cut.at {
            Moment::Now => true,
            Moment::Program => work().programs > 0,
            Moment::Erase => work().erases > 0,
            Moment::Durable => durable > trap.durable,
            Moment::After(events) => trap.events >= events,
            Moment::Job(..) => unreachable!("{} of a drive without a file system", trap.cut),
        }
    }

    /// The power cut that waits, or one at once.
    pub(crate) fn take_trap(&mut self) -> Cut {
        self.trap.take().map_or(Cut::NOW, |trap| trap.cut)
    }

    /// An event has run.
    pub(crate) fn count_event(&mut self) {
        if let Some(trap) = &mut self.trap {
            trap.events += 1;
        }
    }

    /// Runs the next event, or what is left to do at this instant; false if nothing comes of it.
    pub(crate) fn run_event(&mut self) -> bool {
        self.count_event();
        let drive = self.get();
        let (before, next) = (drive.now(), drive.next_event());
        assert!(next.is_none_or(|next| next >= before), "an event at {next:?} is over at {before}");
        drive.run_until(next.unwrap_or(drive.now()));
        next.is_some() || drive.next_event().is_some() || !drive.completions().is_empty()
    }

    /// Lets the part of the time to the next event pass that a cut wants.
    pub(crate) fn pass_part(&mut self, cut: &Cut) {
        let in_the_middle = matches!(cut.at, Moment::Program | Moment::Erase);
        let drive = self.get();
        if (cut.percent > 0 || in_the_middle)
            && let Some(next) = drive.next_event()
        {
            let now = drive.now().0;
            // Never the event itself.
            let left = next.0.saturating_sub(now);
            let part = (left * u64::from(cut.percent) / 100).max(u64::from(in_the_middle)).min(left.saturating_sub(1));
            drive.run_until(Nanos(now + part));
        }
    }

    /// Cuts the power at this instant, and then in recoveries as the cut says. Returns how often.
    pub(crate) fn cut(&mut self, cut: &Cut, totals: &mut Totals) -> u64 {
        let drive = self.get();
        let work = drive.array_work(drive.now());
        totals.cut(match (work.erases, work.programs) {
            (1.., _) => CutKind::Erase,
            (0, 1..) => CutKind::Program,
            (0, 0) => CutKind::Idle,
        });
        for work in drive.in_flight_work() {
            *totals.cuts_by_work.entry(work).or_default() += 1;
        }
        let start = Instant::now();
        let cuts = self.cut_in_recovery(cut.again());
        assert!(cuts <= 1 + cut.recovery.len() as u64, "{cuts} power cuts by {cut}");
        for _ in 1..cuts {
            totals.cut(CutKind::Recovery);
        }
        totals.recovering += start.elapsed();
        cuts
    }

    /// Cuts the power at this instant, and then again during recoveries, each time after as many of its operations as
    /// `operations` says of the chips, until it says `None` or the recovery is over before. Returns how often.
    ///
    /// # Panics
    /// The drive does not come back.
    pub fn cut_in_recovery(&mut self, mut operations: impl FnMut(&Flash) -> Option<u64>) -> u64 {
        let mut flash = self.drive.take().expect("the power is on").power_cut();
        let mut cuts = 0;
        loop {
            cuts += 1;
            let until = operations(&flash).unwrap_or(u64::MAX);
            match Drive::recover_until(&self.config, self.options, flash, until).expect("a drive comes back") {
                Recovered::Whole(drive, _) => {
                    self.drive = Some(*drive);
                    assert!(self.trap.is_none(), "a power cut waits over another one");
                    return cuts;
                }
                Recovered::Cut(chips) => flash = *chips,
            }
        }
    }

    /// All invariants of the drive hold.
    pub(crate) fn check(&mut self) {
        crate::driver::assert_checks(self.get());
    }
}

/// Operations of recovery before its first erase, and its erases.
pub fn recovery_of(flash: &Flash) -> (u64, u64) {
    let torn = flash.blocks.all().iter().filter(|block| block.torn);
    let read = flash.blocks.all().iter().filter(|block| !block.torn);
    (read.map(|block| u64::from(block.programmed)).sum(), torn.count() as u64)
}
