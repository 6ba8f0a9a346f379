//! A way to precondition from text, as `--precondition` has it.

use std::path::Path;

use ssdlab_base::closest;
use ssdlab_workload::fio::Variables;

use super::Preconditioning;
use crate::source::{ReplayOptions, SourceError, TextSource};

/// The ways that have a name.
const NAMED: [&str; 4] = ["none", "fill", "footprint", "steady"];

/// What may be written.
const EXPECTED: &str =
    "none, fill, footprint, steady, steady:WORKLOAD, fill+WORKLOAD, or a workload as --workload takes it";

/// The prefix of a workload whose steady state it is.
const STEADY_UNDER: &str = "steady:";

/// The prefix of a workload that is sent to a filled drive.
const FILLED_THEN: &str = "fill+";

/// A way to precondition as it was written, with the workload of its own that it may have.
pub struct TextPreconditioning {
    text: String,
    workload: Option<TextSource>,
}

impl TextPreconditioning {
    /// Reads the text, and its workload with the replay options of the measured one ([`TextSource::open_beside`]).
    ///
    /// # Errors
    /// Text that is no way to precondition, with what was probably meant, and a workload that cannot be read.
    pub fn open(
        text: &str,
        replay: ReplayOptions,
        seed: u64,
        variables: &Variables,
    ) -> Result<TextPreconditioning, SourceError> {
        let workload = workload_of(text).map(|own| TextSource::open_beside(own, replay, seed, variables));
        let workload = workload.transpose().map_err(|error| refused(text, error))?;
        Ok(TextPreconditioning { text: text.to_string(), workload })
    }

    /// The state that it asks for.
    pub fn preconditioning(&self) -> Preconditioning<'_> {
        match (self.text.as_str(), &self.workload) {
            (text, Some(source)) if text.starts_with(STEADY_UNDER) => Preconditioning::SteadyUnder(source),
            (text, Some(source)) if text.starts_with(FILLED_THEN) => Preconditioning::FilledThen(source),
            (_, Some(source)) => Preconditioning::Workload(source),
            ("fill", _) => Preconditioning::Fill,
            ("footprint", _) => Preconditioning::Footprint,
            ("steady", _) => Preconditioning::Steady,
            _ => Preconditioning::None,
        }
    }
}

/// The text of the workload that a way to precondition has of its own; nothing for the ways that have a name.
pub fn workload_of(text: &str) -> Option<&str> {
    let own = text.strip_prefix(STEADY_UNDER).or(text.strip_prefix(FILLED_THEN)).unwrap_or(text);
    (!NAMED.contains(&text)).then_some(own)
}

/// Why a text is no way to precondition.
fn refused(text: &str, error: SourceError) -> SourceError {
    // What looks like the name of a file or like options was meant as a workload.
    if text.contains(['/', '.', '=', ':']) || Path::new(text).exists() {
        return SourceError { hint: Some(format!("--precondition takes {EXPECTED}").into()), ..error };
    }
    SourceError {
        sentence: format!("--precondition: found '{text}', expected {EXPECTED}"),
        hint: closest(text, NAMED).map(|word| format!("did you mean '{word}'?").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<TextPreconditioning, SourceError> {
        TextPreconditioning::open(text, ReplayOptions::default(), 1, &Variables::default())
    }

    #[test]
    fn each_way_to_precondition_is_read() {
        let job = "rw=randwrite,bs=4k";
        type Expected = fn(&Preconditioning<'_>) -> bool;
        let ways: [(String, Expected); 7] = [
            ("none".to_string(), |way| matches!(way, Preconditioning::None)),
            ("fill".to_string(), |way| matches!(way, Preconditioning::Fill)),
            ("footprint".to_string(), |way| matches!(way, Preconditioning::Footprint)),
            ("steady".to_string(), |way| matches!(way, Preconditioning::Steady)),
            (job.to_string(), |way| matches!(way, Preconditioning::Workload(_))),
            (format!("steady:{job}"), |way| matches!(way, Preconditioning::SteadyUnder(_))),
            (format!("fill+{job}"), |way| matches!(way, Preconditioning::FilledThen(_))),
        ];
        for (text, is_expected) in &ways {
            let opened = open(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(is_expected(&opened.preconditioning()), "{text}");
            assert_eq!(workload_of(text), text.contains("rw=").then_some(job), "{text}");
        }
    }

    #[test]
    fn what_is_no_way_to_precondition_is_told_with_what_there_is() {
        let refused = |text: &str| open(text).err().unwrap_or_else(|| panic!("{text} is taken"));
        let misspelt = refused("stedy");
        assert_eq!(misspelt.sentence, format!("--precondition: found 'stedy', expected {EXPECTED}"));
        assert_eq!(misspelt.hint.as_deref(), Some("did you mean 'steady'?"));
        let missing = refused("steady:no/such/trace.csv");
        assert!(missing.sentence.contains("no/such/trace.csv"), "{}", missing.sentence);
        assert_eq!(missing.hint.as_deref(), Some(format!("--precondition takes {EXPECTED}").as_str()));
        let with_hint = misspelt.with_hint();
        assert_eq!(with_hint, format!("{}; did you mean 'steady'?", misspelt.sentence));
    }
}
