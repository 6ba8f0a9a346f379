//! Inputs: where the requests of a reproduction come from, and which of them this machine has.

use std::path::{Path, PathBuf};

use serde::Serialize;
use ssdlab_device::DriveConfig;
use ssdlab_workload::WorkloadKind;
use ssdlab_workload::replay::Fit;

use super::ReproduceError;
use super::experiment::{InputText, Phase};
use super::input_stats::Survey;
use ssdlab_lab::source::{ReplayOptions, TextSource, WorkloadSource as _};

/// What kind of thing an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// A published trace, or an excerpt of one, from a folder that the user names.
    Trace,
    /// A block trace that this project recorded.
    Recording,
    /// A generator that matches what is published about a trace, or fio's options.
    Model,
}

/// An input, found or missing.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// What tables call it.
    pub name: String,
    /// Which of the paper's workloads it stands for; may be empty.
    pub stands_for: String,
    /// What figures choose by.
    pub group: String,
    /// What kind of thing it is.
    pub kind: InputKind,
    /// What it is, and where it comes from.
    pub about: String,
    /// The workload's text, with full paths.
    pub text: String,
    /// The workload's text as a report names it: of paths the last part.
    pub shown: String,
    /// The file that it takes from the folders of traces, if any.
    #[serde(skip)]
    pub file: Option<String>,
    /// Where its requests go.
    #[serde(skip)]
    pub fit: Fit,
    /// At most so many requests.
    pub limit: Option<u64>,
    /// Its phases, as far as its requests go.
    #[serde(skip)]
    pub phases: Vec<Phase>,
    /// The workload's text that warms up for it, with full paths.
    #[serde(skip)]
    pub warm_up: Option<String>,
    /// What it looks like; nothing if it is missing.
    pub survey: Option<Survey>,
    /// Why it is missing.
    pub missing: Option<String>,
}

/// The folders in which traces and recordings are looked for, in this order.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The folders.
    pub folders: Vec<PathBuf>,
}

impl Library {
    /// The first folder's file of this name.
    fn find(&self, file: &str) -> Option<PathBuf> {
        self.folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file())
    }
}

fn is_fio(stated: &InputText) -> bool {
    let text = stated.workload.as_deref().unwrap_or_default();
    text.starts_with("micro:") || matches!(WorkloadKind::of(text), WorkloadKind::Specification | WorkloadKind::JobFile)
}

/// The phases of an input of so many requests; with a limit, those that lie within it.
fn phases(stated: &InputText, requests: u64, limit: Option<u64>) -> Result<Vec<Phase>, ReproduceError> {
    let mut before = 0;
    let mut within = Vec::new();
    for phase in &stated.phase {
        let wrong = |found: String, expected: &str| {
            let of = format!("input '{}', phase '{}'", stated.name, phase.name);
            ReproduceError::new(format!("{of}: found {found}, expected {expected}"))
        };
        let [first, .., end] = phase.parts[..] else {
            return Err(wrong(
                format!("{} numbers in `parts`", phase.parts.len()),
                "at least 2: a beginning and an end",
            ));
        };
        if phase.bytes == Some(0) {
            return Err(wrong("0 bytes".to_string(), "what the program read or wrote"));
        }
        if let Some(pair) = phase.parts.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(wrong(format!("part {} before {}", pair[0], pair[1]), "rising numbers of requests"));
        }
        if first < before {
            return Err(wrong(
                format!("its beginning at {first}"),
                &format!("{before} or more, where the one before ends"),
            ));
        }
        before = end;
        if end <= requests {
            within.push(phase.clone());
        } else if limit.is_none() {
            return Err(wrong(format!("its end at {end}"), &format!("at most {requests}, the input's requests")));
        }
    }
    Ok(within)
}

impl Input {
    /// Finds an input and walks through it as it would run on `drive`. An input that this machine does not have is no
    /// error: it says so itself.
    ///
    /// # Errors
    /// A file of traces that is there and cannot be understood, and an experiment that is wrong.
    pub(super) fn open(
        stated: &InputText,
        library: &Library,
        drive: &DriveConfig,
        limit: Option<u64>,
        fit: Option<Fit>,
    ) -> Result<Input, ReproduceError> {
        let stated_fit = match stated.fit.as_deref() {
            None | Some("exact") => Fit::Exact,
            Some("fit") => Fit::Dense,
            Some("wrap") => Fit::Wrap,
            Some(other) => {
                let sentence = format!("input '{}': fit: found '{other}', expected exact, fit or wrap", stated.name);
                return Err(ReproduceError::new(sentence));
            }
        };
        let kind = match (&stated.workload, stated.group.as_str()) {
            (Some(_), _) => InputKind::Model,
            (None, "recording" | "filebench" | "filebench-direct" | "file systems") => InputKind::Recording,
            (None, _) => InputKind::Trace,
        };
        let mut input = Input {
            name: stated.name.clone(),
            stands_for: stated.stands_for.clone(),
            group: stated.group.clone(),
            kind,
            about: stated.about.clone(),
            text: String::new(),
            shown: stated.file.clone().or_else(|| stated.workload.clone()).unwrap_or_default(),
            file: stated.file.clone(),
            // fio's options are sized by the drive; a model is a trace like any other.
            fit: match (is_fio(stated), &stated.fit, fit) {
                (true, ..) => Fit::Exact,
                (false, None, Some(fit)) => fit,
                _ => stated_fit,
            },
            limit: [limit, stated.limit].into_iter().flatten().min(),
            phases: Vec::new(),
            warm_up: None,
            survey: None,
            missing: None,
        };
        let path = match &stated.file {
            None => None,
            Some(file) => match library.find(file) {
                Some(path) => Some(path.display().to_string()),
                None => {
                    input.missing = Some(format!("{file} is in none of the folders that were searched"));
                    return Ok(input);
                }
            },
        };
        input.text = match (&stated.workload, &path) {
            (Some(workload), path) => {
                let name = stated.file.as_deref().unwrap_or_default();
                input.shown = workload.replace("{file}", name);
                workload.replace("{file}", path.as_deref().unwrap_or_default())
            }
            (None, Some(path)) => path.clone(),
            (None, None) => {
                let sentence =
                    format!("input '{}': found neither workload nor file, expected one of them", stated.name);
                return Err(ReproduceError::new(sentence));
            }
        };
        input.warm_up = stated.warm_up.as_ref().map(|text| text.replace("{file}", path.as_deref().unwrap_or_default()));
        let opened = input.source(None, 1).map_err(|error| error.to_string());
        let surveyed = opened.and_then(|source| {
            let mut workload = source.open(drive, 0).map_err(|error| error.to_string())?;
            Survey::of(&mut *workload, stated.look).map_err(|error| error.to_string())
        });
        match surveyed {
            Ok(survey) => {
                input.phases = phases(stated, survey.requests, input.limit)?;
                input.survey = Some(survey);
            }
            Err(reason) => input.missing = Some(reason),
        }
        Ok(input)
    }

    /// The input as a workload, sent as `replay` says: `timed`, `timed*K`, `closed:QD`, or nothing for its own way.
    pub(crate) fn source(&self, replay: Option<&str>, seed: u64) -> Result<TextSource, ReproduceError> {
        let discipline = match replay {
            Some(text) => Some(text.parse().map_err(ReproduceError::new)?),
            None => None,
        };
        let replay = ReplayOptions { discipline, fit: self.fit, limit: self.limit };
        TextSource::open(&self.text, replay, seed).map_err(ReproduceError::new)
    }

    /// The workload that warms up for it, as a command line has it.
    pub(super) fn spoken_warm_up(&self) -> Option<String> {
        let text = self.warm_up.as_ref()?;
        Some(if *text == self.text { self.spoken() } else { text.clone() })
    }

    /// Whether it can be run.
    pub fn is_there(&self) -> bool {
        self.missing.is_none()
    }

    /// The workload's text as a command line has it, wherever the traces lie.
    pub fn spoken(&self) -> String {
        match Path::new(&self.text).file_name() {
            Some(name) if self.kind != InputKind::Model => format!("TRACES/{}", name.to_string_lossy()),
            _ => match &self.file {
                // A model that takes something from a trace.
                Some(file) => self.shown.replace(file.as_str(), &format!("TRACES/{file}")),
                None => self.shown.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input whose phases are these.
    fn stated(phases: &str) -> InputText {
        let text = format!("name = 'x'\ngroup = 'recording'\nfile = 'x.csv'\nabout = 'x'\n{phases}");
        toml::from_str(&text).expect("an input")
    }

    const TWO: &str =
        "[[phase]]\nname = 'a'\nbytes = 8\nparts = [0, 5, 10]\n[[phase]]\nname = 'b'\nbytes = 8\nparts = [12, 20]";

    #[test]
    fn phases_are_those_that_lie_within_the_requests() {
        let names = |requests, limit| -> Vec<String> {
            let phases = phases(&stated(TWO), requests, limit).expect("they are right");
            phases.into_iter().map(|phase| phase.name).collect()
        };
        assert_eq!(names(20, None), ["a", "b"]);
        assert_eq!(names(15, Some(15)), ["a"]);
        assert!(names(5, Some(5)).is_empty());
    }

    #[test]
    fn a_wrong_phase_is_refused_with_what_was_found_and_expected() {
        let refused = |text: &str| phases(&stated(text), 15, None).expect_err("it is wrong").sentence;
        let of = "input 'x', phase 'b': found";
        assert_eq!(refused(TWO), format!("{of} its end at 20, expected at most 15, the input's requests"));
        assert_eq!(
            refused(&TWO.replace("[12, 20]", "[8, 15]")),
            format!("{of} its beginning at 8, expected 10 or more, where the one before ends")
        );
        assert_eq!(
            refused(&TWO.replace("[12, 20]", "[12, 12]")),
            format!("{of} part 12 before 12, expected rising numbers of requests")
        );
        assert_eq!(
            refused(&TWO.replace("[12, 20]", "[12]")),
            format!("{of} 1 numbers in `parts`, expected at least 2: a beginning and an end")
        );
        let without = TWO.replacen("bytes = 8", "bytes = 0", 1);
        assert_eq!(refused(&without), "input 'x', phase 'a': found 0 bytes, expected what the program read or wrote");
    }
}
