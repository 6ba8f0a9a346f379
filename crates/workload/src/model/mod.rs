//! Modelled traces: requests drawn to the published figures of a trace that cannot be had, or of an experiment.
//!
//! ```text
//! model:NAME,key=value -> Description (data, with the source of each number) -> Generator -> a Trace like any other
//! ```
//!
//! A model is a trace to everyone else: it is replayed, fitted, counted and converted by the same code.

mod arrivals;
mod description;
mod figure2;
mod generator;
mod text;

use std::sync::Arc;

use ssdlab_base::{Op, closest, parse_amount, parse_size};

pub use description::{Description, Stated};

use crate::WorkloadError;
use crate::trace::Trace;
use description::{open, shipped_names};
use figure2::Figure2;
use generator::Generator;
use text::Text;

/// What a workload's text begins with.
const PREFIX: &str = "model:";
/// The name of the experiment of WAFLASH's figure 2.
const FIGURE_2: &str = "figure2";
/// The most requests of a model.
const REQUESTS_MAX: u64 = 10_000_000_000;

/// Whether `text` names a model.
pub fn is_model(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The models that ship, by name, with one line on each.
pub fn shipped() -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> =
        description::shipped().map(|description| (description.name, description.summary)).collect();
    list.push((FIGURE_2.to_string(), figure2::SUMMARY.to_string()));
    list
}

/// A request as a model draws it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) at_ns: u64,
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What can be asked of a model, with all overrides.
#[derive(Clone, Debug)]
enum Kind {
    Described(Arc<Description>),
    Figure2(Arc<Figure2>),
}

/// A model, ready to be drawn from any number of times.
#[derive(Clone, Debug)]
pub struct Model {
    text: String,
    kind: Kind,
    requests: u64,
    seed: u64,
}

/// `requests=500k`: a number, with k or m for thousands and millions.
fn count(key: &str, value: &str) -> Result<u64, WorkloadError> {
    let (digits, scale) = match value.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => value.strip_suffix(['m', 'M']).map_or((value, 1), |digits| (digits, 1_000_000)),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    number.filter(|number| (1..=REQUESTS_MAX).contains(number)).ok_or_else(|| {
        flaw(key, value, &format!("a number from 1 to {REQUESTS_MAX}, such as 120000, 500k (thousands) or 2m"))
    })
}

fn percent(key: &str, value: &str) -> Result<f64, WorkloadError> {
    match parse_amount(value) {
        Ok(ssdlab_base::Amount::Percent(share)) if share <= 100.0 => Ok(share),
        _ => Err(flaw(key, value, "a share such as 50%")),
    }
}

fn size(key: &str, value: &str) -> Result<u64, WorkloadError> {
    match parse_size(value) {
        Ok(bytes) if bytes > 0 && bytes.is_multiple_of(512) => Ok(bytes),
        Err(why) if why.ambiguous => Err(WorkloadError(format!("{key}: {why}"))),
        _ => Err(flaw(key, value, "a size that is a multiple of 512, such as 8k")),
    }
}

fn flaw(key: &str, value: &str, expected: &str) -> WorkloadError {
    WorkloadError(format!("{key}: found '{value}', expected {expected}"))
}

impl Model {
    /// Reads `model:NAME,key=value,...`; `seed` counts where the text gives none.
    ///
    /// # Errors
    /// Names and keys that do not exist (with what was probably meant), values that a key does not take, files that
    /// cannot be read.
    pub fn parse(text: &str, seed: u64) -> Result<Model, WorkloadError> {
        let rest = text.strip_prefix(PREFIX).unwrap_or(text);
        let (name, settings) = rest.split_once(',').map_or((rest, ""), |(name, settings)| (name, settings));
        let failed = |error: WorkloadError| WorkloadError(format!("{text}: {error}"));
        if name == FIGURE_2 {
            let (figure, seed) = Figure2::parse(settings, seed).map_err(failed)?;
            let requests = figure.requests;
            return Ok(Model { text: text.to_string(), kind: Kind::Figure2(Arc::new(figure)), requests, seed });
        }
        let Some(mut description) = open(name).map_err(failed)? else {
            let known = || shipped_names().chain([FIGURE_2]);
            let meant = closest(name, known()).map_or(".".to_string(), |name| format!("; did you mean '{name}'?"));
            let list: Vec<&str> = known().collect();
            return Err(failed(WorkloadError(format!(
                "'{name}' is neither a file nor a model that ships{meant} These ship: {}",
                list.join(", ")
            ))));
        };
        let mut seed = seed;
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match key {
                "requests" => description.requests = count(key, value).map_err(failed)?,
                "seed" => {
                    seed = value.parse().map_err(|_| failed(flaw(key, value, "a whole number")))?;
                }
                "footprint" => description.footprint = size(key, value).map_err(failed)?,
                "rate" => {
                    let rate: Option<f64> = value.parse().ok();
                    let rate = rate.filter(|rate| (1e-6..=1e9).contains(rate));
                    description.arrivals.requests_per_second =
                        rate.ok_or_else(|| failed(flaw(key, value, "requests a second, such as 500")))?;
                }
                _ => return Err(failed(unknown(key, &["requests", "seed", "footprint", "rate"]))),
            }
        }
        description.check().map_err(failed)?;
        let requests = description.requests;
        Ok(Model { text: text.to_string(), kind: Kind::Described(Arc::new(description)), requests, seed })
    }

    /// This model with its requests drawn from `seed`.
    pub fn reseeded(&self, seed: u64) -> Model {
        Model { seed, ..self.clone() }
    }

    /// The seed of its draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Everything that its requests depend on, in a line.
    pub fn identity(&self) -> String {
        match &self.kind {
            Kind::Described(description) => format!("{description:?} seed {}", self.seed),
            Kind::Figure2(figure) => format!("{} seed {}", figure.identity(), self.seed),
        }
    }

    /// What is known of the trace that is modelled, and how close the model has to be.
    pub fn stated(&self) -> &[Stated] {
        match &self.kind {
            Kind::Described(description) => &description.stated,
            Kind::Figure2(_) => &[],
        }
    }

    /// The model as a trace.
    ///
    /// # Errors
    /// The text of the requests is refused for a reason for which [`Trace::open`] refuses a file.
    pub fn trace(&self) -> Result<Trace, WorkloadError> {
        let model = self.clone();
        Trace::generated(&self.text, Arc::new(move || Box::new(model.text())))
    }

    /// The requests as the text of a trace.
    fn text(&self) -> Text {
        let drawn: Box<dyn Iterator<Item = Drawn> + Send> = match &self.kind {
            Kind::Described(description) => Box::new(Generator::new(description, self.seed)),
            Kind::Figure2(figure) => Box::new(figure2::Requests::new(Arc::clone(figure), self.seed)),
        };
        Text::new(drawn.take(usize::try_from(self.requests).unwrap_or(usize::MAX)))
    }
}

/// The error of a key that a model does not take.
fn unknown(key: &str, known: &[&'static str]) -> WorkloadError {
    let meant = closest(key, known.iter().copied()).map_or(String::new(), |name| format!("; did you mean '{name}'?"));
    WorkloadError(format!("found the key '{key}', expected one of {}{meant}", known.join(", ")))
}
