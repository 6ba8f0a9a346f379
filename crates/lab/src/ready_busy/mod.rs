//! A run watched from outside: the paper's recorder on one die's Ready/Busy line, and every line for the classifiers.
//!
//! ```text
//!   flash --edges--> lows --+-- recorders on the watched die (one for each sampling interval)
//!         |                 +-- survey of all dies --> estimates
//!         +--spans--> Truth: programs by die and cause, to hold the estimates against
//! ```
//!
//! What the recorder and the classifiers say comes from edges alone. What was really programmed comes from the chips'
//! operations in the same time, so that the two are of the same moment.

mod result;
mod text;
mod truth;

use std::sync::{Arc, Mutex, PoisonError};

use ssdlab_base::Nanos;
use ssdlab_device::DriveConfig;
use ssdlab_flash::{DieId, Observer, Span};
use ssdlab_measure::classify::{Expected, Fit, ProgramWindow, Survey, estimates};
use ssdlab_measure::model::{percentage_error, write_amplification};
use ssdlab_measure::recorder::{Recorder, Report, Settings};
use ssdlab_measure::{Edge, Model};

pub use result::{Estimated, LevelFactors, ReadyBusy, Real, Recorded, SubtestCount, TestCount};
pub(crate) use text::render;
use truth::Truth;

/// Of the planes that the model pairs, the least share that has to be paired. The run has a warning if it is less.
const PAIRED: f64 = 0.9;

/// Sampling intervals at which the watched line is recorded side by side. The first is the one that stands for the
/// paper's recorder, which does not say its own; a slower loop sees less, a faster one more.
pub const SAMPLINGS: [Nanos; 5] =
    [Nanos::from_us(1), Nanos(100), Nanos::from_us(10), Nanos::from_us(50), Nanos::from_us(100)];

/// Which die's line the recorder is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recording {
    /// The die.
    pub die: DieId,
}

/// Why the Ready/Busy lines of a drive cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The drive takes no time.
    #[error("flash.timing = \"none\": no Ready/Busy line ever changes, so there is nothing to record")]
    Untimed,
    /// The drive does not have the die.
    #[error("--rb-probe: found die {die}, expected 0 to {last} ({first_line} to {last_line})")]
    NoDie {
        /// The die that was asked for.
        die: DieId,
        /// The last die of the drive.
        last: u64,
        /// The name of the first die's line.
        first_line: String,
        /// The name of the last die's line.
        last_line: String,
    },
    /// A window cannot be chosen.
    #[error("--rb-probe: the description has no program time to take for a window")]
    NoWindow,
}

/// What watches a drive. [`Watch::observer`] goes to the drive, the watch stays.
pub(crate) struct Watch(Arc<Mutex<Lines>>);

struct Lines {
    recording: Recording,
    model: Model,
    expected: Expected,
    decided: ProgramWindow,
    settings: Vec<Settings>,
    recorders: Vec<Recorder>,
    survey: Survey,
    truth: Truth,
}

impl Watch {
    /// For a drive of this kind.
    ///
    /// # Errors
    /// A drive whose lines never change, and a die that it does not have.
    pub(crate) fn new(config: &DriveConfig, recording: Recording) -> Result<Watch, WatchError> {
        if !config.timed {
            return Err(WatchError::Untimed);
        }
        let model = Model::of(&config.flash);
        let dies = model.levels.dies();
        if u64::from(recording.die.0) >= dies {
            let (last, levels) = (dies - 1, &model.levels);
            return Err(WatchError::NoDie {
                die: recording.die,
                last,
                first_line: levels.line_name(0),
                last_line: levels.line_name(u32::try_from(last).unwrap_or(u32::MAX)),
            });
        }
        let expected = Expected::of(&config.flash);
        let Some(decided) = ProgramWindow::of(&config.flash.timing) else {
            return Err(WatchError::NoWindow);
        };
        let window = decided.window;
        let settings: Vec<Settings> =
            SAMPLINGS.iter().map(|&interval| Settings { interval, ..Settings::with_window(window) }).collect();
        let lines = Lines {
            recording,
            model,
            expected,
            decided,
            recorders: settings.iter().map(|&settings| Recorder::new(settings)).collect(),
            survey: Survey::new(dies as usize, Some(window)),
            truth: Truth::new(dies as usize, settings[0].quiet),
            settings,
        };
        Ok(Watch(Arc::new(Mutex::new(lines))))
    }

    /// What the drive is to be observed by.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(Watch(Arc::clone(&self.0)))
    }

    /// What misleads in what the recorders say.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut warnings = lines.decided.notes.clone();
        let slow = SAMPLINGS.iter().filter(|&&interval| lines.decided.is_narrow_for(interval));
        let slow: Vec<String> = slow.map(ToString::to_string).collect();
        if !slow.is_empty() {
            warnings.push(format!(
                "the recorder with a sample each {} is too slow for the window {}: sampling adds to a duration or takes \
                 off it by up to an interval, so programs may leave the window and other operations get into it",
                slow.join(", "),
                lines.decided.window
            ));
        }
        let (assumed, together) = (lines.model.pages_per_low(), lines.truth.total().pages_a_program());
        if let Some(together) = together.filter(|together| *together < f64::from(assumed) * PAIRED) {
            warnings.push(format!(
                "the model takes each low for {assumed} pages (M_p), but {together:.2} were programmed together: whatever \
                 counts lows is {:.0} % too high, and nothing on the lines shows it",
                (f64::from(assumed) / together - 1.0) * 100.0
            ));
        }
        warnings.iter().map(|warning| format!("ready/busy: {warning}")).collect()
    }

    /// What was recorded while the host wrote so many bytes.
    pub(crate) fn result(&self, host_bytes: u64) -> ReadyBusy {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).result(host_bytes)
    }
}

impl Observer for Watch {
    fn ready_busy(&mut self, die: DieId, at: Nanos, busy: bool) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(low) = lines.survey.edge(Edge { at, die: die.0, busy }) else { return };
        if die == lines.recording.die {
            lines.recorders.iter_mut().for_each(|recorder| recorder.low(low));
        }
    }

    fn span(&mut self, span: Span) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).truth.span(&span);
    }
}

impl Lines {
    fn result(&self, host_bytes: u64) -> ReadyBusy {
        let Lines { recording, model, expected, survey, .. } = self;
        let window = self.settings[0].window;
        let real = self.truth.total();
        let page_bytes = f64::from(model.levels.page_bytes);
        let amplification = |pages: f64| write_amplification(pages * page_bytes, host_bytes);
        let reports: Vec<Report> = self.recorders.iter().map(|recorder| recorder.clone().finish()).collect();
        let recorders = self.settings.iter().zip(&reports).map(|(settings, report)| {
            let pages = model.pages(report.programs() as f64);
            Recorded {
                sampling_ns: settings.interval.0,
                programs: report.programs(),
                pages,
                write_amplification: amplification(pages),
                percentage_error: percentage_error(pages, real.pages()),
                lows_missed: report.unnoticed.missed,
                lows_merged: report.unnoticed.merged,
            }
        });
        let fit = Fit::new(&survey.all(), expected);
        let estimates = estimates(survey, model, window, recording.die.index(), expected, fit.as_ref());
        let estimates = estimates.iter().map(|estimate| Estimated {
            method: estimate.method.key().to_string(),
            lines: estimate.lines as u64,
            programs_a_line: estimate.lows,
            pages: estimate.pages,
            pages_interval: [estimate.pages_interval.0, estimate.pages_interval.1],
            write_amplification: amplification(estimate.pages),
            percentage_error: percentage_error(estimate.pages, real.pages()),
        });
        let inside = survey.inside(window).get(recording.die.index()).copied().unwrap_or(0.0);
        let counted = reports.first().map_or(0, Report::programs);
        ReadyBusy {
            line: model.levels.line_name(recording.die.0),
            die: recording.die.0,
            geometry: model.levels.to_string(),
            program_model: model.program.key().to_string(),
            pages_per_low: model.pages_per_low(),
            window_ns: [window.above.0, window.below.0],
            recorders: recorders.collect(),
            estimates: estimates.collect(),
            levels: LevelFactors::of(model, *recording, counted, inside, real),
            real: Real {
                pages: real.pages(),
                write_amplification: amplification(real.pages() as f64),
                pages_by_die: real.pages_by_die.clone(),
                programs_by_die: real.programs_by_die.clone(),
                by_cause: real.by_cause(),
            },
            tests: self.tests(&reports),
        }
    }

    /// The tests that quiet divides: as the recorder counted them, and what was really programmed in them.
    fn tests(&self, reports: &[Report]) -> Vec<TestCount> {
        let counted = reports.first().map_or(&[][..], |report| &report.tests);
        let tests = self.truth.tests().iter().enumerate().map(|(index, real)| {
            // The watched line may be quiet through a test of few programs: tests are told apart by their times.
            let programs = match counted.len() == self.truth.tests().len() {
                true => counted.get(index).map(|test| test.programs),
                false => {
                    let within = counted.iter().filter(|test| test.begun >= real.begun && test.begun <= real.ended);
                    Some(within.map(|test| test.programs).sum())
                }
            };
            let programs = programs.unwrap_or(0);
            TestCount {
                programs,
                pages: self.model.pages(programs as f64),
                real_pages: real.pages(),
                by_cause: real.by_cause(),
                begun_ns: real.begun.0,
                ended_ns: real.ended.0,
            }
        });
        tests.collect()
    }
}
