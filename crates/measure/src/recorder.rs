//! The slave recorder (section IV.B): a microcontroller that looks at one die's Ready/Busy line in a loop.
//!
//! ```text
//!   line     ‾‾‾‾\______________/‾‾‾‾‾‾\_/‾‾‾‾‾‾‾‾
//!   samples  |    |    |    |    |    |    |    |      every `interval`
//!                 Ts             Te         (missed)   Te - Ts in (a, b): one program
//! ```
//!
//! It knows what a sampling loop can know. A low between two samples is missed; two lows with no sample between them are
//! one; an erase that is as short as a program is a program. When the line has been high for `send_every` it sends its
//! count, and is blind while it does. When the line has been high for `quiet` the test is over, and the next low begins
//! another.

use ssdlab_base::Nanos;
use ssdlab_flash::{DieId, Observer};

use crate::histogram::Durations;
use crate::{Low, Window};

/// How the recorder is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time from one sample to the next; at least 1 ns.
    pub interval: Nanos,
    /// Time of the first sample.
    pub phase: Nanos,
    /// The durations that are taken for a program.
    pub window: Window,
    /// How long the line is high before the count is sent, and until it is sent again.
    pub send_every: Nanos,
    /// How long sending takes; no samples are taken meanwhile.
    pub send_takes: Nanos,
    /// How long the line is high before the test is over.
    pub quiet: Nanos,
}

impl Settings {
    /// What the paper says (a test ends after five minutes of silence) and, where it says nothing, a microcontroller of
    /// its time: a sample each microsecond, a count sent after a second of silence in 1 ms (eleven bytes at 115,200 baud).
    pub const fn with_window(window: Window) -> Settings {
        Settings {
            interval: Nanos::from_us(1),
            phase: Nanos::ZERO,
            window,
            send_every: Nanos::from_ms(1000),
            send_takes: Nanos::from_ms(1),
            quiet: Nanos::from_ms(300_000),
        }
    }
}

/// What a test gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Test {
    /// `N_Tprogram`: lows in the window.
    pub programs: u64,
    /// Lows that were seen, of any length.
    pub lows: u64,
    /// When the first was seen.
    pub begun: Nanos,
    /// When the last was over.
    pub ended: Nanos,
}

/// What the recorder did not notice: known to the simulation, not to the recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unnoticed {
    /// Lows that fell between two samples, or into the time of sending.
    pub missed: u64,
    /// Lows that were taken for part of the one before.
    pub merged: u64,
}

/// The recorder. It is given the lows of one line, in order.
#[derive(Clone, Debug)]
pub struct Recorder {
    settings: Settings,
    /// When the next sample is taken.
    next: Nanos,
    /// When the count is sent, if the line stays high.
    send_at: Nanos,
    /// A low that was seen: its first sample, and the sample that will find the line high again.
    open: Option<(Nanos, Nanos)>,
    test: Test,
    tests: Vec<Test>,
    durations: Durations,
    unnoticed: Unnoticed,
    sends: u64,
}

/// What a recorder brought home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The tests, in order; none in which no low was seen.
    pub tests: Vec<Test>,
    /// The lows as they were measured.
    pub durations: Durations,
    /// What was not noticed.
    pub unnoticed: Unnoticed,
    /// How often the count was sent.
    pub sends: u64,
}

impl Report {
    /// `N_Tprogram` over all tests.
    pub fn programs(&self) -> u64 {
        self.tests.iter().map(|test| test.programs).sum()
    }
}

impl Recorder {
    /// A recorder that begins at the time of its phase.
    pub fn new(settings: Settings) -> Recorder {
        let settings = Settings { interval: settings.interval.max(Nanos(1)), ..settings };
        Recorder {
            settings,
            next: settings.phase,
            send_at: Nanos(settings.phase.0.saturating_add(settings.send_every.0)),
            open: None,
            test: Test::default(),
            tests: Vec::new(),
            durations: Durations::default(),
            unnoticed: Unnoticed::default(),
            sends: 0,
        }
    }

    /// The first sample at or after `at`.
    fn sample_from(&self, at: Nanos) -> Nanos {
        let behind = at.since(self.next).0;
        Nanos(
            self.next
                .0
                .saturating_add(behind.div_ceil(self.settings.interval.0).saturating_mul(self.settings.interval.0)),
        )
    }

    /// The line is high from the next sample on until before `until`: counts are sent.
    fn wait(&mut self, until: Nanos) {
        let Settings { interval, send_every, send_takes, .. } = self.settings;
        let first = self.sample_from(self.send_at);
        // Whether it is time to send is asked before the level: a sample that would find the line low sends first.
        let last_moment = until.0.saturating_add(interval.0 - 1);
        if first.0 > last_moment {
            return;
        }
        // From one send to the next.
        let waits = send_every.0.max(1).div_ceil(interval.0).saturating_mul(interval.0);
        let period = waits.saturating_add(send_takes.0.max(interval.0));
        let more = (last_moment - first.0) / period;
        self.sends += 1 + more;
        let last = first.0 + more * period;
        self.next = Nanos(last.saturating_add(send_takes.0.max(interval.0)));
        self.send_at = Nanos(self.next.0.saturating_add(send_every.0));
    }

    /// Takes a low.
    pub fn low(&mut self, low: Low) {
        if let Some((begun, seen)) = self.open {
            if low.start <= seen {
                // No sample found the line high in between.
                self.unnoticed.merged += 1;
                let behind = low.end.since(seen).0;
                let more = behind.div_ceil(self.settings.interval.0).saturating_mul(self.settings.interval.0);
                self.open = Some((begun, Nanos(seen.0.saturating_add(more))));
                return;
            }
            self.close();
        }
        self.wait(low.start);
        let begun = self.sample_from(low.start);
        if begun >= low.end {
            self.unnoticed.missed += 1;
            return;
        }
        self.next = begun;
        let seen = self.sample_from(low.end);
        self.open = Some((begun, seen));
    }

    /// The line was found high again: the low is over.
    fn close(&mut self) {
        let Some((begun, seen)) = self.open.take() else { return };
        if self.test.lows > 0 && begun.since(self.test.ended) > self.settings.quiet {
            self.tests.push(std::mem::take(&mut self.test));
        }
        if self.test.lows == 0 {
            self.test.begun = begun;
        }
        let duration = seen.since(begun);
        self.durations.add(duration);
        self.test.lows += 1;
        self.test.ended = seen;
        self.test.programs += u64::from(self.settings.window.contains(duration));
        self.next = Nanos(seen.0.saturating_add(self.settings.interval.0));
        self.send_at = Nanos(seen.0.saturating_add(self.settings.send_every.0));
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Report {
        self.close();
        if self.test.lows > 0 {
            self.tests.push(self.test);
        }
        Report { tests: self.tests, durations: self.durations, unnoticed: self.unnoticed, sends: self.sends }
    }
}

/// A recorder that watches a die of a simulated drive. [`Probe::observer`] goes to the drive, the probe stays.
#[derive(Debug)]
pub struct Probe(std::sync::Arc<std::sync::Mutex<Watch>>);

#[derive(Debug)]
struct Watch {
    die: u32,
    low_since: Option<Nanos>,
    recorder: Recorder,
}

impl Probe {
    /// A recorder on the line of `die`.
    pub fn new(die: u32, settings: Settings) -> Probe {
        let watch = Watch { die, low_since: None, recorder: Recorder::new(settings) };
        Probe(std::sync::Arc::new(std::sync::Mutex::new(watch)))
    }

    /// What the drive is to be observed by.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Probe(std::sync::Arc::clone(&self.0)))
    }

    /// What it has recorded up to now.
    pub fn report(&self) -> Report {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recorder.clone().finish()
    }
}

impl Observer for Probe {
    fn ready_busy(&mut self, die: DieId, at: Nanos, busy: bool) {
        let mut watch = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if die.0 != watch.die {
            return;
        }
        if busy {
            watch.low_since.get_or_insert(at);
        } else if let Some(start) = watch.low_since.take() {
            watch.recorder.low(Low { die: die.0, start, end: at });
        }
    }
}

#[cfg(test)]
mod tests;
