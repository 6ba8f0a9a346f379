//! How far the work is. On a terminal: drive, phase, percent, rate, time left, a line for each drive at work, drawn anew. In a
//! pipe or a file: a line of text now and then.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use ssdlab_lab::progress::{Phase, Progress};
use ssdlab_lab::text::printable;

use crate::args::time_of_environment;
use crate::failure::Failure;
use crate::stderr;

/// How often a line of text is said, and the variable that says otherwise.
const EVERY: Duration = Duration::from_secs(20);
const EVERY_OF: &str = "SSDLAB_PROGRESS_EVERY";

/// A line on a terminal that is drawn anew; hidden where nothing is to be shown.
pub(crate) fn line(quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    let style = ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    bar
}

/// What shows progress: nothing if `quiet`, bars on a terminal, lines of text elsewhere.
///
/// # Errors
/// The environment says no time.
pub(crate) fn shown(quiet: bool) -> Result<Box<dyn Progress>, Failure> {
    let line = Line::new();
    Ok(match quiet || line.lines.is_hidden() {
        true => Box::new(Spoken::new(quiet)?),
        false => Box::new(line),
    })
}

/// Times a second that the line is drawn anew.
const DRAWS_PER_S: u8 = 8;

/// A line on standard error, below those that it was made beside.
pub(crate) struct Line {
    lines: MultiProgress,
    state: Mutex<State>,
}

struct State {
    bar: ProgressBar,
    began: Instant,
    drawn: Instant,
    phase: Phase,
}

impl Line {
    /// A line that is drawn if standard error is a terminal.
    fn new() -> Line {
        Line::among(MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S)))
    }

    fn among(lines: MultiProgress) -> Line {
        let now = Instant::now();
        let bar = lines.add(ProgressBar::no_length());
        Line { lines, state: Mutex::new(State { bar, began: now, drawn: now, phase: Phase::Run }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants below, and a test draws with each.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─")
}

const KNOWN: &str = "{prefix:.bold} {bar:28.cyan/dim} {percent:>3} %  {msg}";
const UNKNOWN: &str = "{prefix:.bold} {spinner}  {msg}";

/// What stands behind the bar: how much, how fast, how long still.
fn message(done: u64, total: Option<u64>, elapsed: Duration, phase: Phase) -> Vec<String> {
    let seconds = elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
    let (done_shown, rate_shown) = if phase.counts_bytes() {
        (HumanBytes(done).to_string(), format!("{}/s", HumanBytes(rate as u64)))
    } else {
        (format!("{} requests", short(done as f64)), format!("{}/s", short(rate)))
    };
    let left = match total {
        Some(total) if rate > 0.0 && total >= done => {
            let seconds = (total - done) as f64 / rate;
            let most = if phase.may_end_early() { "at most " } else { "" };
            Some(format!("{most}{} left", HumanDuration(Duration::from_secs_f64(seconds.min(1e9)))))
        }
        _ => None,
    };
    [done_shown, rate_shown].into_iter().chain(left).collect()
}

fn short(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} G", value / 1e9),
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e3 => format!("{:.1} k", value / 1e3),
        value => format!("{value:.0}"),
    }
}

impl Progress for Line {
    fn beside(&self) -> Box<dyn Progress + '_> {
        Box::new(Line::among(self.lines.clone()))
    }

    fn begin(&self, device: &str, phase: Phase) {
        let mut state = self.state();
        state.began = Instant::now();
        state.drawn = state.began;
        state.phase = phase;
        state.bar.set_style(style(UNKNOWN));
        state.bar.set_prefix(format!("{}: {}", printable(device), phase.label()));
        state.bar.set_message("");
        state.bar.tick();
    }

    fn advance(&self, done: u64, total: Option<u64>) {
        let mut state = self.state();
        let now = Instant::now();
        if now.duration_since(state.drawn) < Duration::from_secs(1) / DRAWS_PER_S.into() || state.bar.is_hidden() {
            return;
        }
        state.drawn = now;
        if let Some(total) = total {
            state.bar.set_length(total);
            state.bar.set_style(style(KNOWN));
        }
        state.bar.set_position(done);
        state.bar.set_message(message(done, total, now.duration_since(state.began), state.phase).join("  "));
        state.bar.tick();
    }

    fn note(&self, sentence: &str) {
        self.lines.suspend(|| stderr::note(sentence));
    }

    fn finish(&self) {
        let state = self.state();
        state.bar.finish_and_clear();
        self.lines.remove(&state.bar);
    }
}

/// Lines of text. Drives that are at work together share when one of them has last been spoken of: each is spoken of in time,
/// and so is a row of drives that take less.
pub(crate) struct Spoken {
    /// What is said in place of the drive's name.
    label: Option<String>,
    /// Nothing: never.
    every: Option<Duration>,
    last: Arc<Mutex<Instant>>,
    phase: Mutex<Told>,
}

struct Told {
    what: String,
    began: Instant,
    last: Instant,
    phase: Phase,
}

impl Spoken {
    /// Lines as often as the environment says, or none.
    ///
    /// # Errors
    /// The environment says no time.
    pub(crate) fn new(quiet: bool) -> Result<Spoken, Failure> {
        let every = time_of_environment(EVERY_OF, "20s")?.unwrap_or(EVERY);
        Ok(Spoken::every((!quiet).then_some(every)))
    }

    fn every(every: Option<Duration>) -> Spoken {
        let now = Instant::now();
        let told = Told { what: String::new(), began: now, last: now, phase: Phase::Run };
        Spoken { label: None, every, last: Arc::new(Mutex::new(now)), phase: Mutex::new(told) }
    }

    /// Another beside it, of work that has a name of its own.
    pub(crate) fn of(&self, label: Option<String>) -> Spoken {
        Spoken { label, last: Arc::clone(&self.last), ..Spoken::every(self.every) }
    }

    /// The line that is due, if one is.
    fn due(&self, now: Instant, done: u64, total: Option<u64>) -> Option<String> {
        let every = self.every?;
        let mut told = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(told.last) < every && now.duration_since(*last) < every {
            return None;
        }
        (told.last, *last) = (now, now);
        let elapsed = now.duration_since(told.began);
        let share = total.filter(|&total| total > 0).map(|total| (100.0 * done as f64 / total as f64).min(100.0));
        let share = share.map(|percent| format!("{percent:.0} %"));
        let so_far = format!("{} s so far", elapsed.as_secs());
        let parts: Vec<String> =
            share.into_iter().chain(message(done, total, elapsed, told.phase)).chain([so_far]).collect();
        Some(format!("{}: {}", told.what, parts.join(", ")))
    }
}

impl Progress for Spoken {
    fn beside(&self) -> Box<dyn Progress + '_> {
        Box::new(self.of(self.label.clone()))
    }

    fn begin(&self, device: &str, phase: Phase) {
        let mut told = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        told.began = Instant::now();
        told.phase = phase;
        told.what = format!("{}: {}", self.label.as_deref().unwrap_or(device), phase.label());
    }

    fn advance(&self, done: u64, total: Option<u64>) {
        if let Some(line) = self.due(Instant::now(), done, total) {
            stderr::say(line);
        }
    }

    fn note(&self, sentence: &str) {
        stderr::note(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_how_fast_and_how_long_still() {
        let half = message(1_500_000, Some(3_000_000), Duration::from_secs(3), Phase::Run);
        assert_eq!(half, ["1.50 M requests", "500.0 k/s", "3 seconds left"]);
        assert_eq!(message(1 << 30, None, Duration::from_secs(2), Phase::Fill), ["1.00 GiB", "512.00 MiB/s"]);
        assert_eq!(message(0, Some(5), Duration::ZERO, Phase::Run), ["0 requests", "0/s"]);
        // Preconditioning ends when write amplification is steady, and at its total at the latest.
        let aged = message(1 << 30, Some(3 << 30), Duration::from_secs(2), Phase::Preconditioning);
        assert_eq!(aged.last().map(String::as_str), Some("at most 4 seconds left"));
        // More was done than was promised: no time left is claimed.
        assert_eq!(message(6, Some(5), Duration::from_secs(1), Phase::Run), ["6 requests", "6/s"]);
    }

    #[test]
    fn both_templates_can_be_drawn() {
        assert!(ProgressStyle::with_template(KNOWN).is_ok());
        assert!(ProgressStyle::with_template(UNKNOWN).is_ok());
    }

    #[test]
    fn a_line_is_drawn_of_any_numbers() {
        let line = Line::among(MultiProgress::with_draw_target(ProgressDrawTarget::hidden()));
        line.begin("drive", Phase::Run);
        line.advance(u64::MAX, Some(0));
        let beside = line.beside();
        beside.begin("another", Phase::Preconditioning);
        beside.advance(1, None);
        beside.finish();
        line.finish();
        line.finish();
    }

    #[test]
    fn in_a_pipe_every_drive_is_spoken_of_in_time_and_so_are_many_short_ones() {
        let root = Spoken::every(Some(Duration::from_secs(20)));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds) + Duration::from_millis(500);
        let (one, other) = (root.of(None), root.of(None));
        one.begin("one", Phase::Preconditioning);
        other.begin("other", Phase::Run);
        assert_eq!(one.due(at(19), 1 << 30, Some(4 << 30)), None);
        let line = one.due(at(20), 1 << 30, Some(4 << 30)).expect("it is time");
        assert!(
            line.starts_with("one: preconditioning: 25 %, 1.00 GiB, ")
                && line.contains(", at most ")
                && line.ends_with(" left, 20 s so far"),
            "{line}"
        );
        let line = other.due(at(20), 1_000, None).expect("of its own time");
        assert!(line.starts_with("other: running: 1.0 k requests, ") && line.ends_with("20 s so far"), "{line}");
        assert_eq!((one.due(at(39), 1, None), other.due(at(39), 1, None)), (None, None));
        // Each of a row of drives takes a moment, and all of them long.
        let short = root.of(Some("third of many".to_string()));
        short.begin("short", Phase::Fill);
        let line = short.due(at(40), 0, Some(0)).expect("nothing was said for so long");
        assert!(line.starts_with("third of many: filling: 0 B, "), "{line}");
        assert_eq!(short.due(at(41), 1, None), None);
        let silent = Spoken::every(None);
        assert_eq!(silent.due(at(1_000), 1, None), None);
    }
}
