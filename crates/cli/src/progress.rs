//! How far the work is, on a terminal: drive, phase, percent, rate, time left, a line for each drive at work. In a pipe
//! nothing is drawn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use ssdlab_lab::progress::{Phase, Progress};
use ssdlab_lab::text::printable;

use crate::stderr;

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
    bytes: bool,
}

impl Line {
    /// A line that is drawn if standard error is a terminal, and `quiet` is not asked for.
    pub(crate) fn new(quiet: bool) -> Line {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S) };
        Line::among(MultiProgress::with_draw_target(target))
    }

    fn among(lines: MultiProgress) -> Line {
        let now = Instant::now();
        let bar = lines.add(ProgressBar::no_length());
        Line { lines, state: Mutex::new(State { bar, began: now, drawn: now, bytes: false }) }
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
fn message(done: u64, total: Option<u64>, elapsed: Duration, bytes: bool) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
    let (done_shown, rate_shown) = if bytes {
        (HumanBytes(done).to_string(), format!("{}/s", HumanBytes(rate as u64)))
    } else {
        (format!("{} requests", short(done as f64)), format!("{}/s", short(rate)))
    };
    let left = match total {
        Some(total) if rate > 0.0 && total >= done => {
            let seconds = (total - done) as f64 / rate;
            format!("  {} left", HumanDuration(Duration::from_secs_f64(seconds.min(1e9))))
        }
        _ => String::new(),
    };
    format!("{done_shown}  {rate_shown}{left}")
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
        state.bytes = phase.counts_bytes();
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
        state.bar.set_message(message(done, total, now.duration_since(state.began), state.bytes));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_how_fast_and_how_long_still() {
        let half = message(1_500_000, Some(3_000_000), Duration::from_secs(3), false);
        assert_eq!(half, "1.50 M requests  500.0 k/s  3 seconds left");
        assert_eq!(message(1 << 30, None, Duration::from_secs(2), true), "1.00 GiB  512.00 MiB/s");
        assert_eq!(message(0, Some(5), Duration::ZERO, false), "0 requests  0/s");
        // More was done than was promised: no time left is claimed.
        assert_eq!(message(6, Some(5), Duration::from_secs(1), false), "6 requests  6/s");
    }

    #[test]
    fn both_templates_can_be_drawn() {
        assert!(ProgressStyle::with_template(KNOWN).is_ok());
        assert!(ProgressStyle::with_template(UNKNOWN).is_ok());
    }

    #[test]
    fn progress_in_a_pipe_draws_nothing_and_takes_any_numbers() {
        let line = Line::new(true);
        line.begin("drive", Phase::Run);
        line.advance(u64::MAX, Some(0));
        let beside = line.beside();
        beside.begin("another", Phase::Age);
        beside.advance(1, None);
        beside.finish();
        line.finish();
        line.finish();
    }
}
