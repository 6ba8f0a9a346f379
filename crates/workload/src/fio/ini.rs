//! The text of a job file or of a one-line specification, as jobs with settings that remember where they were written.

use crate::WorkloadError;

use super::keys::{self, Key, Support};
use super::variables::{Used, Variables};

/// Where something was written, for messages: `jobs.fio:7` or `workload 'rw=randwrite,...'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: String,
    /// From one; zero where there are no lines.
    pub(crate) line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.source),
            line => write!(f, "{}:{line}", self.source),
        }
    }
}

/// One `key=value`, the key known to fio.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static Key,
    /// The key as it was written, which may be an alias.
    pub(crate) written: String,
    /// `None` for a bare key such as `time_based`.
    pub(crate) value: Option<String>,
    pub(crate) place: Place,
}

impl Setting {
    /// An error about this setting's value.
    pub(crate) fn error(&self, expected: &str) -> WorkloadError {
        let found = match &self.value {
            Some(value) => format!("found '{value}'"),
            None => "found no value".to_string(),
        };
        WorkloadError(format!("{}: key '{}': {found}, expected {expected}", self.place, self.written))
    }
}

/// One `[section]` with the `[global]` settings before it merged in, in the order they were written.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) settings: Vec<Setting>,
}

/// Reads a job file, with values for its variables; those that it takes are added to `used`. `source` names it in messages.
pub(crate) fn parse_file(
    text: &str,
    source: &str,
    variables: &Variables,
    used: &mut Vec<Used>,
) -> Result<Vec<Section>, WorkloadError> {
    let mut globals: Vec<Setting> = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    // None before the first section, then whether the current section is global.
    let mut in_global: Option<bool> = None;
    for (index, line) in text.lines().enumerate() {
        let place = Place { source: source.to_string(), line: u32::try_from(index + 1).unwrap_or(u32::MAX) };
        // fio cuts a line at ';' or '#' wherever they stand.
        let line = line.split([';', '#']).next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty()) else {
                return Err(WorkloadError(format!(
                    "{place}: found '{line}', expected a section such as [global] or [job1]"
                )));
            };
            // fio takes every name that begins with "global".
            let global = name.starts_with("global");
            in_global = Some(global);
            if !global {
                sections.push(Section { name: name.to_string(), place, settings: globals.clone() });
            }
            continue;
        }
        if line == "include" || line.starts_with("include ") {
            return Err(WorkloadError(format!(
                "{place}: 'include' is known to fio, not supported by ssdlab: put the jobs into one file"
            )));
        }
        let Some(global) = in_global else {
            return Err(WorkloadError(format!(
                "{place}: found '{line}' before any section, expected [global] or the name of a job in brackets"
            )));
        };
        let settings = match (global, sections.last_mut()) {
            (false, Some(section)) => &mut section.settings,
            _ => &mut globals,
        };
        let line = variables.substitute(line, used).map_err(|why| WorkloadError(format!("{place}: {why}")))?;
        settings.extend(setting(line.trim(), place)?);
    }
    if sections.is_empty() {
        return Err(WorkloadError(format!(
            "{source}: found no job, expected at least one section such as [job1] besides [global]"
        )));
    }
    Ok(sections)
}

/// Reads a one-line specification: keys separated by commas, where a comma followed by a number goes on with the
/// value before it (`bs=4k,8k,iodepth=4`).
pub(crate) fn parse_line(text: &str, variables: &Variables, used: &mut Vec<Used>) -> Result<Section, WorkloadError> {
    let shown: String = text.trim().chars().take(60).collect();
    let dots = if text.trim().chars().count() > 60 { "..." } else { "" };
    let place = Place { source: format!("workload '{shown}{dots}'"), line: 0 };
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.trim().split(',') {
        let continues = !piece.contains('=')
            && (piece.trim().is_empty() || piece.trim().starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        match pieces.last_mut() {
            Some(last) if continues && last.contains('=') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => pieces.push(piece.trim().to_string()),
        }
    }
    let mut section = Section { name: "job".to_string(), place: place.clone(), settings: Vec::new() };
    for piece in pieces {
        if piece.is_empty() {
            return Err(WorkloadError(format!("{place}: found an empty place between commas, expected key=value")));
        }
        // A trailing comma after a key that takes no triple, such as `rw=read,`, is left to the key's own reader.
        let piece = variables.substitute(&piece, used).map_err(|why| WorkloadError(format!("{place}: {why}")))?;
        section.settings.extend(setting(&piece, place.clone())?);
    }
    if let Some(name) = section.settings.iter().rev().find(|s| s.key.name == "name").and_then(|s| s.value.clone()) {
        section.name = name;
    }
    Ok(section)
}

/// One line `key=value` or `key`; nothing for a key that is refused but asks for what happens anyway.
fn setting(line: &str, place: Place) -> Result<Option<Setting>, WorkloadError> {
    let (written, value) = match line.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (line, None),
    };
    // fio reads keys in any case only through its shell; the table is lower case and so are job files.
    let Some(key) = keys::find(written) else {
        if keys::is_newer(written) {
            return Err(WorkloadError(format!(
                "{place}: found '{written}', a key of a later fio than 3.33, whose keys ssdlab knows"
            )));
        }
        let hint = match keys::nearest(written) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "see docs/workloads.md for the keys".to_string(),
        };
        return Err(WorkloadError(format!("{place}: found '{written}', which is no key of fio; {hint}")));
    };
    if let Support::Unsupported { neutral, reason } = key.support {
        if value.is_some_and(|value| neutral.contains(&value)) {
            return Ok(None);
        }
        let shown = value.map_or(written.to_string(), |value| format!("{written}={value}"));
        return Err(WorkloadError(format!("{place}: '{shown}' is known to fio, not supported by ssdlab: {reason}")));
    }
    if let Some(value) = value {
        let of_machine = [
            ("$pagesize", "the size of a page of memory"),
            ("$mb_memory", "the megabytes of memory"),
            ("$ncpus", "the number of processors"),
        ];
        if let Some((word, meaning)) = of_machine.into_iter().find(|(word, _)| value.contains(word)) {
            return Err(WorkloadError(format!(
                "{place}: key '{written}': found '{value}', but fio puts {meaning} of the machine for {word}, and here the same \
                 job gives the same requests on every machine: write the number, or a variable such as ${{{}}}",
                word[1..].to_uppercase()
            )));
        }
        if matches!(key.support, Support::Works(_)) && value.starts_with('(') {
            return Err(WorkloadError(format!(
                "{place}: key '{written}': found '{value}', but arithmetic is known to fio, not supported by ssdlab: \
                 write the result"
            )));
        }
    }
    Ok(Some(Setting { key, written: written.to_string(), value: value.map(str::to_string), place }))
}
