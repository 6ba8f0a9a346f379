//! Cases as text: the drive's description with a table `[torture]` that has the seed, what else the subject is, and the
//! steps, one line each.

use std::fmt;

use ssdlab_device::{Description, DriveConfig, description};
use ssdlab_host::{Names, UnknownDrive};
use toml::de::DeTable;
use toml::{Table, Value};

use crate::cache::{Cache, CacheScope};
use crate::campaign::Draw;
use crate::case::{Case, Subject};
use crate::files::Files;
use crate::segments::{SegmentScope, Segments};
use crate::shrd::{Log, LogScope};
use crate::single_drive::SingleDrive;
use crate::stacks::Stack;
use crate::step::Step;
use crate::tags::{TagScope, Tags};

/// The format's number in the text.
const FORMAT: i64 = 1;

/// Why a text is no case: a sentence that names the place, what was found, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(pub(crate) String);

/// The table `[torture]` of a case that is read.
pub struct Keys<'a> {
    file: &'a str,
    table: Table,
    drives: &'a dyn Names,
}

impl<'a> Keys<'a> {
    /// Finds the description of a drive by the name that layers give it.
    pub(crate) const fn drives(&self) -> &'a dyn Names {
        self.drives
    }

    /// The case, as messages call it.
    pub(crate) const fn file(&self) -> &'a str {
        self.file
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Says that a key has something else than was expected.
    pub(crate) fn wrong(&self, key: &str, found: impl fmt::Display, expected: &str) -> ScriptError {
        ScriptError(format!("{}: torture.{key}: found {found}, expected {expected}", self.file))
    }

    /// The value of a key.
    fn take(&mut self, key: &str, expected: &str) -> Result<Value, ScriptError> {
        let missing = || ScriptError(format!("{}: torture.{key}: missing, expected {expected}", self.file));
        self.table.remove(key).ok_or_else(missing)
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, key: &str) -> Result<i64, ScriptError> {
        let expected = "a whole number";
        match self.take(key, expected)? {
            Value::Integer(number) => Ok(number),
            other => Err(self.wrong(key, other, expected)),
        }
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &str, expected: &str) -> Result<String, ScriptError> {
        match self.take(key, expected)? {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(key, other, expected)),
        }
    }

    /// True or false.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, ScriptError> {
        let expected = "true or false";
        match self.take(key, expected)? {
            Value::Boolean(flag) => Ok(flag),
            other => Err(self.wrong(key, other, expected)),
        }
    }

    /// A command set, one of `known`.
    pub(crate) fn command_set(&mut self, known: &[&str]) -> Result<(), ScriptError> {
        let expected = known.join(" or ");
        let set = self.text("command_set", &expected)?;
        if known.contains(&set.as_str()) {
            Ok(())
        } else {
            Err(self.wrong("command_set", format!("\"{set}\""), &expected))
        }
    }
}

impl<S: Subject> Case<S> {
    /// The case as text that [`Case::parse`] reads; `comment` goes on top.
    pub fn to_text(&self, comment: &str) -> String {
        let mut text: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        let mut drive = description::expanded(&self.drive);
        // Keys of the root stand before its tables.
        if let Some(name) = drive.remove("name") {
            text.push_str(&format!("name = {name}\n"));
        }
        text.push_str(&format!("\n[torture]\nformat = {FORMAT}\nseed = {}\n", self.seed as i64));
        for (key, value) in self.subject.keys(&self.drive) {
            text.push_str(&format!("{key} = {value}\n"));
        }
        text.push_str("steps = [\n");
        for step in &self.steps {
            text.push_str(&format!("  \"{step}\",\n"));
        }
        text.push_str("]\n\n");
        text.push_str(&drive.to_string());
        text
    }

    /// Reads what [`Case::to_text`] wrote; `file` is what messages call it.
    ///
    /// # Errors
    /// A sentence with the file, the place, what was found, and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Case<S>, ScriptError> {
        Case::parse_with(text, file, &|name: &str| {
            Err(UnknownDrive(format!("'{name}' is no drive that is known here")))
        })
    }

    /// Reads a case as [`Case::parse`] does, where `drives` finds drives that layers name.
    ///
    /// # Errors
    /// A sentence with the file, the place, what was found, and what was expected.
    pub fn parse_with(text: &str, file: &str, drives: &dyn Names) -> Result<Case<S>, ScriptError> {
        let error = |reason: String| ScriptError(format!("{file}: {reason}"));
        let description = Description::parse(text, file).map_err(|cause| ScriptError(cause.to_string()))?;
        let mut table: Table = text.parse().map_err(|cause| error(format!("not TOML: {cause}")))?;
        let Some(Value::Table(table)) = table.remove("torture") else {
            return Err(error("found no table [torture], expected a case that `ssdlab torture` wrote".to_string()));
        };
        let mut keys = Keys { file, table, drives };
        let format = keys.integer("format")?;
        if format != FORMAT {
            return Err(keys.wrong("format", format, &FORMAT.to_string()));
        }
        let seed = keys.integer("seed")? as u64;
        let Value::Array(list) = keys.take("steps", "a list of steps")? else {
            return Err(error("torture.steps: missing, expected a list of steps".to_string()));
        };
        let drive = description.without("torture").resolve().map_err(|cause| ScriptError(cause.to_string()))?;
        let subject = S::read(&mut keys)?;
        if let Some(key) = keys.table.keys().next() {
            let known: Vec<&str> = subject.keys(&drive).into_iter().map(|(key, _)| key).collect();
            let known = ["format", "seed"].into_iter().chain(known).collect::<Vec<_>>().join(", ");
            return Err(error(format!("torture.{key}: found an unknown key, expected {known} and steps")));
        }
        let mut steps = Vec::with_capacity(list.len());
        for (index, step) in list.iter().enumerate() {
            let wrong = |reason: String| {
                let line = line_of_step(text, index).map_or(String::new(), |line| format!(":{line}"));
                ScriptError(format!("{file}{line}: torture.steps: {reason}"))
            };
            let step = step.as_str().ok_or_else(|| wrong(format!("found {step}, expected a step as text")))?;
            steps.push(Step::parse::<S>(step).map_err(|cause| wrong(format!("{cause}")))?);
        }
        Ok(Case { seed, drive, subject, steps })
    }
}

/// Something that is done with a case of any subject.
pub trait WithCase {
    /// What comes of it.
    type Result;

    /// Does it.
    fn with<S: Subject>(self, case: Case<S>) -> Self::Result;
}

/// Reads a case of any subject, whose keys say which it is, and does something with it. `file` is what messages call
/// it, and `drives` finds drives that layers name.
///
/// # Errors
/// A sentence with the file, the place, what was found, and what was expected.
pub fn with_case<W: WithCase>(text: &str, file: &str, drives: &dyn Names, then: W) -> Result<W::Result, ScriptError> {
    let torture = text.parse::<Table>().ok().and_then(|mut table| table.remove("torture"));
    let torture = torture.unwrap_or(Value::Boolean(false));
    let set = torture.get("command_set").map(|set| set.as_str().unwrap_or_default());
    let has = |sets: &[&str]| set.is_some_and(|set| sets.contains(&set));
    Ok(if torture.get("file_system").is_some() {
        then.with(Case::<Files>::parse_with(text, file, drives)?)
    } else if torture.get("host").is_some() {
        then.with(Case::<Stack>::parse_with(text, file, drives)?)
    } else if set.is_none() {
        then.with(Case::<SingleDrive>::parse_with(text, file, drives)?)
    } else if has(Segments::SETS) {
        then.with(Case::<Segments>::parse_with(text, file, drives)?)
    } else if has(Log::SETS) {
        then.with(Case::<Log>::parse_with(text, file, drives)?)
    } else if has(Cache::SETS) {
        then.with(Case::<Cache>::parse_with(text, file, drives)?)
    } else if has(Tags::SETS) {
        then.with(Case::<Tags>::parse_with(text, file, drives)?)
    } else {
        let known = [Tags::SETS, Segments::SETS, Log::SETS, Cache::SETS].concat().join(", ");
        let found = set.unwrap_or_default();
        return Err(ScriptError(format!("{file}: torture.command_set: found \"{found}\", expected one of {known}")));
    })
}

/// Names of command sets that have campaigns of their own.
pub const SETS: [&str; 4] = ["cache", "segments", "shrd", "tags"];

/// What is done with the scope of a command set's campaign, whatever its cases are of.
pub trait WithScope {
    /// What comes of it.
    type Result;

    /// Does it.
    fn with<D: Draw>(self, scope: D) -> Self::Result;
}

/// Gives the campaign of a command set to `then`, with cases of so many commands where cases have no length of their own; `None` unless
/// it is one of [`SETS`].
pub fn with_scope<W: WithScope>(set: &str, commands: u64, then: W) -> Option<W::Result> {
    Some(if Tags::SETS.contains(&set) {
        then.with(TagScope { commands })
    } else if Segments::SETS.contains(&set) {
        then.with(SegmentScope)
    } else if Log::SETS.contains(&set) {
        then.with(LogScope)
    } else if Cache::SETS.contains(&set) {
        then.with(CacheScope)
    } else {
        return None;
    })
}

/// The line of the text on which a step begins; lines count from 1, steps from 0.
fn line_of_step(text: &str, index: usize) -> Option<usize> {
    let table = DeTable::parse(text).ok()?.into_inner();
    let steps = table.get("torture")?.get_ref().get("steps")?.get_ref();
    let start = steps.as_array()?.get(index)?.span().start;
    Some(text.get(..start)?.matches('\n').count() + 1)
}

/// A drive as its description says it: what a description cannot say takes the nearest that it can.
pub fn describable(config: &DriveConfig) -> Option<DriveConfig> {
    let mut config = config.clone();
    config.gc.copyback &= config.flash.copyback;
    if config.gc.background_free_blocks <= config.gc.free_blocks {
        config.gc.background_free_blocks = 0;
    }
    config.gc.background_free_blocks = config.gc.background_free_blocks.min(config.flash.geometry.blocks_per_plane - 1);
    if config.buffer.policy != "none" {
        config.buffer.bytes = config.buffer.bytes.max(u64::from(config.flash.geometry.page_bytes));
    }
    let text = description::to_toml(&config);
    Description::parse(&text, "drawn").and_then(|description| description.resolve()).ok()
}
