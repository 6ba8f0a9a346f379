//! Cases as text: the drive's description with a table `[torture]` that lists the steps, one line each.
//!
//! ```text
//! write 0+8 fua depth=4     8 sectors from sector 0, forced, when fewer than 4 commands are in flight
//! read 3+1 queue=1          on queue 1; stream=1 likewise; `trim` and `zero` (write zeroes) look the same
//! flush
//! run 12                    12 events
//! pass 350us                time
//! fail program              the next program fails; `fail erase block=4` the next erase of block 4, `fail read` a read
//! fail die block=4          all operations on the die of block 4 fail from now on
//! drain                     all commands complete
//! cut                       the power goes, and comes back
//! cut after=5 10%           the same as soon as 5 events have run, 10 % of the way to the next
//! cut program recovery=40%    and again when recovery has looked at 40 % of the written pages
//! cut program recovery=erase:1  and again in recovery, in the second erase of a torn block
//! cut durable               as soon as a flush or a FUA write has completed
//! cut erase 40% unread      in the middle of an erase, 40 % of the way to the next event; nothing is read afterwards
//! ```

use std::fmt;
use std::str::FromStr;

use ssdlab_base::{Op, Request, parse_duration};
use ssdlab_device::{Description, DriveConfig, description};
use ssdlab_flash::{BlockId, FaultKind};
use toml::de::DeTable;
use toml::{Table, Value};

use crate::case::{Again, Case, Cut, Moment, Step};

/// The format's number in the text.
const FORMAT: i64 = 1;

/// What a drive may keep of its data, in cases of a command set.
const PAYLOADS: &str = "none, stamps or bytes";

/// Why a text is no case: a sentence that names the place, what was found, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(pub(crate) String);

const OPS: [(&str, Op); 5] =
    [("read", Op::Read), ("write", Op::Write), ("trim", Op::Trim), ("zero", Op::WriteZeroes), ("flush", Op::Flush)];

const MOMENTS: [(&str, Moment); 3] =
    [("program", Moment::Program), ("erase", Moment::Erase), ("durable", Moment::Durable)];

/// Operations that fail one at a time.
pub(crate) const FAULTS: [(&str, FaultKind); 3] =
    [("read", FaultKind::Read), ("program", FaultKind::Program), ("erase", FaultKind::Erase)];

/// A lost die, named by one of its blocks.
const DIE: (&str, FaultKind) = ("die", FaultKind::Die);

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Command { request, depth } => {
                let name = OPS.iter().find(|(_, op)| *op == request.op).map_or("?", |(name, _)| name);
                write!(to, "{name}")?;
                if request.op != Op::Flush {
                    write!(to, " {}+{}", request.sector, request.sectors)?;
                }
                if request.fua {
                    write!(to, " fua")?;
                }
                let numbers = [("queue", u32::from(request.queue), 0), ("stream", u32::from(request.stream), 0)];
                for (name, number, default) in numbers.into_iter().chain([("depth", *depth, 1)]) {
                    if number != default {
                        write!(to, " {name}={number}")?;
                    }
                }
                Ok(())
            }
            Step::Run(events) => write!(to, "run {events}"),
            Step::Pass(time) => write!(to, "pass {}ns", time.0),
            Step::Drain => write!(to, "drain"),
            Step::Fail { kind, block } => {
                let name = FAULTS.iter().chain([&DIE]).find(|(_, fault)| fault == kind).map(|(name, _)| name);
                write!(
                    to,
                    "fail {}",
                    name.expect("bad blocks of the factory are in the description, and are no step")
                )?;
                block.map_or(Ok(()), |block| write!(to, " block={block}"))
            }
            Step::Cut(Cut { at, percent, recovery, unread }) => {
                write!(to, "cut")?;
                if let Some((name, _)) = MOMENTS.iter().find(|(_, moment)| moment == at) {
                    write!(to, " {name}")?;
                } else if let Moment::After(events) = at {
                    write!(to, " after={events}")?;
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
                if *unread { write!(to, " unread") } else { Ok(()) }
            }
        }
    }
}

impl FromStr for Step {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Step, ScriptError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let expected = |what: &str| ScriptError(format!("found step '{text}', expected {what}"));
        let number =
            |word: Option<&str>, what: &str| word.and_then(|word| word.parse().ok()).ok_or_else(|| expected(what));
        let step = match first {
            "run" => Step::Run(number(words.next(), "run and a number of events")?),
            "pass" => {
                let time = words.next().ok_or_else(|| expected("pass and a time"))?;
                Step::Pass(parse_duration(time).map_err(|error| expected(&error.to_string()))?)
            }
            "drain" => Step::Drain,
            "fail" => {
                let what = "fail and read, program or erase, then block=N; or fail die and block=N, a block of it";
                let name = words.next().unwrap_or_default();
                let kind = FAULTS.iter().chain([&DIE]).find(|(known, _)| *known == name).map(|(_, kind)| *kind);
                let block = match words.next().map(|word| word.strip_prefix("block=").unwrap_or(word)) {
                    Some(word) => Some(number(Some(word), what)?),
                    None if kind == Some(FaultKind::Die) => return Err(expected(what)),
                    None => None,
                };
                Step::Fail { kind: kind.ok_or_else(|| expected(what))?, block: block.map(BlockId) }
            }
            "cut" => {
                let mut cut = Cut { at: Moment::Now, percent: 0, recovery: [None; 3], unread: false };
                for word in words.by_ref() {
                    if let Some((_, moment)) = MOMENTS.iter().find(|(name, _)| *name == word) {
                        cut.at = *moment;
                    } else if let Some(events) = word.strip_prefix("after=").and_then(|word| word.parse().ok()) {
                        cut.at = Moment::After(events);
                    } else if let Some(again) = word.strip_prefix("recovery=") {
                        let what = "at most three of recovery=PERCENT% or recovery=erase:BLOCKS";
                        let scan = again.strip_suffix('%').and_then(|percent| percent.parse().ok()).map(Again::Scan);
                        let erase = again.strip_prefix("erase:").and_then(|blocks| blocks.parse().ok());
                        let again = scan.or(erase.map(Again::Erase)).ok_or_else(|| expected(what))?;
                        let free = cut.recovery.iter_mut().find(|place| place.is_none());
                        *free.ok_or_else(|| expected(what))? = Some(again);
                    } else if let Some(percent) = word.strip_suffix('%').and_then(|word| word.parse().ok()) {
                        cut.percent = percent;
                    } else if word == "unread" {
                        cut.unread = true;
                    } else {
                        return Err(expected(
                            "cut, then program, erase, durable or after=EVENTS, a percentage, unread",
                        ));
                    }
                }
                if cut.percent > 99 {
                    return Err(expected("a percentage below 100"));
                }
                Step::Cut(cut)
            }
            _ => {
                let Some((_, op)) = OPS.iter().find(|(name, _)| *name == first) else {
                    return Err(expected("read, write, trim, zero, flush, run, pass, drain, fail or cut"));
                };
                let mut request = Request::new(*op, 0, 0);
                if *op != Op::Flush {
                    let range = words.next().and_then(|range| range.split_once('+'));
                    let range = range.and_then(|(sector, count)| Some((sector.parse().ok()?, count.parse().ok()?)));
                    (request.sector, request.sectors) = range.ok_or_else(|| expected("sectors such as 8+2"))?;
                }
                let mut depth = 1;
                for word in words.by_ref() {
                    let small = |word: &str| word.parse::<u16>().map_err(|_| expected("a number below 65536"));
                    match word.split_once('=') {
                        Some(("queue", word)) => request.queue = small(word)?,
                        Some(("stream", word)) => request.stream = small(word)?,
                        Some(("depth", word)) if word != "0" => depth = u32::from(small(word)?),
                        None if word == "fua" => request.fua = true,
                        _ => return Err(expected("fua, queue=N, stream=N or depth=N (at least 1) behind the sectors")),
                    }
                }
                Step::Command { request, depth }
            }
        };
        match words.next() {
            Some(word) => Err(expected(&format!("nothing behind '{}', where '{word}' stands", step))),
            None => Ok(step),
        }
    }
}

impl Case {
    /// The case as text that [`Case::parse`] reads; `comment` goes on top.
    pub fn to_text(&self, comment: &str) -> String {
        let (drive, steps) = (self.config.clone(), self.steps.clone());
        Script { seed: self.seed, host: None, command_set_case: None, steps, drive }.to_text(comment)
    }

    /// Reads what [`Case::to_text`] wrote; `file` is what messages call it.
    ///
    /// # Errors
    /// A sentence with the file, the place, what was found, and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Case, ScriptError> {
        let Script { seed, host, command_set_case, steps, drive } = Script::parse(text, file)?;
        if command_set_case.is_some() {
            let found = "found a case of a command set, expected one of block I/O";
            return Err(ScriptError(format!("{file}: torture.command_set: {found}")));
        }
        if host.is_some() {
            return Err(ScriptError(format!("{file}: torture.host: found a case of a stack, expected one of a drive")));
        }
        Ok(Case { seed, config: drive, steps })
    }
}

/// What a case of a command set has beside its drive and its steps.
pub(crate) struct CommandSetCase {
    /// The set's name.
    pub(crate) set: String,
    /// What the drive keeps of its data, by name.
    pub(crate) payload: String,
    /// Commands in flight at most.
    pub(crate) depth: i64,
}

/// What a case's text holds; `S` is a step.
pub(crate) struct Script<S> {
    pub(crate) seed: u64,
    /// The layers above the drive, of a case of a stack.
    pub(crate) host: Option<String>,
    /// Of a case of a command set.
    pub(crate) command_set_case: Option<CommandSetCase>,
    pub(crate) steps: Vec<S>,
    pub(crate) drive: DriveConfig,
}

impl<S: fmt::Display + FromStr<Err = ScriptError>> Script<S> {
    /// The text; `comment` goes on top.
    pub(crate) fn to_text(&self, comment: &str) -> String {
        let mut text: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        let mut drive = description::expanded(&self.drive);
        // Keys of the root stand before its tables.
        if let Some(name) = drive.remove("name") {
            text.push_str(&format!("name = {name}\n"));
        }
        text.push_str(&format!("\n[torture]\nformat = {FORMAT}\nseed = {}\n", self.seed as i64));
        if let Some(host) = &self.host {
            text.push_str(&format!("host = {}\n", Value::String(host.clone())));
        }
        if let Some(CommandSetCase { set, payload, depth }) = &self.command_set_case {
            let (set, payload) = (Value::String(set.clone()), Value::String(payload.clone()));
            text.push_str(&format!("command_set = {set}\npayload = {payload}\ndepth = {depth}\n"));
        }
        text.push_str("steps = [\n");
        for step in &self.steps {
            text.push_str(&format!("  \"{step}\",\n"));
        }
        text.push_str("]\n\n");
        text.push_str(&drive.to_string());
        text
    }

    /// Reads what [`Script::to_text`] wrote.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Script<S>, ScriptError> {
        let error = |reason: String| ScriptError(format!("{file}: {reason}"));
        let description = Description::parse(text, file).map_err(|cause| ScriptError(cause.to_string()))?;
        let mut table: Table = text.parse().map_err(|cause| error(format!("not TOML: {cause}")))?;
        let Some(Value::Table(mut torture)) = table.remove("torture") else {
            return Err(error("found no table [torture], expected a case that `ssdlab torture` wrote".to_string()));
        };
        let integer = |torture: &mut Table, key: &str| match torture.remove(key) {
            Some(Value::Integer(number)) => Ok(number),
            Some(other) => Err(error(format!("torture.{key}: found {other}, expected a whole number"))),
            None => Err(error(format!("torture.{key}: missing, expected a whole number"))),
        };
        let format = integer(&mut torture, "format")?;
        if format != FORMAT {
            return Err(error(format!("torture.format: found {format}, expected {FORMAT}")));
        }
        let seed = integer(&mut torture, "seed")? as u64;
        let depth = torture.contains_key("command_set").then(|| integer(&mut torture, "depth")).transpose()?;
        let mut string = |key: &str, expected: &str| match torture.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(error(format!("torture.{key}: found {other}, expected {expected}"))),
        };
        let host = string("host", "layers as text")?;
        let command_set_case = match (string("command_set", "the name of a command set")?, depth) {
            (Some(set), Some(depth)) => {
                let payload = string("payload", PAYLOADS)?;
                let payload = payload.ok_or_else(|| error(format!("torture.payload: missing, expected {PAYLOADS}")))?;
                Some(CommandSetCase { set, payload, depth })
            }
            _ => None,
        };
        let Some(Value::Array(list)) = torture.remove("steps") else {
            return Err(error("torture.steps: missing, expected a list of steps".to_string()));
        };
        if let Some(key) = torture.keys().next() {
            return Err(error(format!(
                "torture.{key}: found an unknown key, expected format, seed, host, command_set, payload, depth and steps"
            )));
        }
        let mut steps = Vec::with_capacity(list.len());
        for (index, step) in list.iter().enumerate() {
            let wrong = |reason: String| {
                let line = line_of_step(text, index).map_or(String::new(), |line| format!(":{line}"));
                ScriptError(format!("{file}{line}: torture.steps: {reason}"))
            };
            let step = step.as_str().ok_or_else(|| wrong(format!("found {step}, expected a step as text")))?;
            steps.push(step.parse().map_err(|cause| wrong(format!("{cause}")))?);
        }
        let drive = description.without("torture").resolve();
        Ok(Script {
            seed,
            host,
            command_set_case,
            steps,
            drive: drive.map_err(|cause| ScriptError(cause.to_string()))?,
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_back_as_they_were_printed() {
        let lines = [
            "write 0+8 fua depth=4",
            "read 3+1 queue=1",
            "trim 0+64 stream=2",
            "zero 5+0",
            "flush",
            "flush depth=32",
            "run 12",
            "pass 350000ns",
            "drain",
            "fail read",
            "fail erase block=4",
            "fail die block=4",
            "cut",
            "cut 7% unread",
            "cut erase 40%",
            "cut durable",
            "cut after=12 5%",
            "cut erase 3% recovery=40% recovery=erase:0 recovery=100% unread",
            "cut program 99% unread",
        ];
        for line in lines {
            let step: Step = line.parse().expect(line);
            assert_eq!(step.to_string(), line);
        }
    }

    #[test]
    fn what_is_no_step_is_refused_with_what_was_expected() {
        let wrong = [
            "",
            "wrote 0+8",
            "write",
            "write 8",
            "write 0+8 fua=1",
            "write 0+8 depth=0",
            "read 1+1 queue=70000",
            "run",
            "run x",
            "pass 5",
            "pass",
            "drain 1",
            "fail",
            "fail factory",
            "fail read block=x",
            "cut 100%",
            "cut now",
            "cut 5% 6% x",
            "cut recovery=5",
            "cut recovery=1% recovery=1% recovery=1% recovery=1%",
            "run 1 2",
        ];
        for line in wrong {
            let error = line.parse::<Step>().expect_err(line).to_string();
            assert!(error.contains(line) && error.contains("expected"), "{error}");
        }
    }
}
