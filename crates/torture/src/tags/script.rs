//! Cases of a command set as text: as those of single drives (`crate::script`), with the set in `torture.command_set` and its
//! commands as steps.
//!
//! ```text
//! tags:write-tagged 0+8 words=7,9     a command of the set with its words; as soon as fewer than `torture.depth` are in flight
//! tags:#12 0+8 carrier=write          by its opcode, and carried by something else than the set says
//! write 0+8                           block I/O, as for a drive
//! acknowledge                         the host acknowledges all events that it has seen
//! fail program                        the next program fails; `erase` likewise
//! restart                             the host starts anew above the running drive
//! drain, cut                          as for a drive
//! ```

use std::fmt;
use std::str::FromStr;

use ssdlab_base::command_sets::tags::TAGS;
use ssdlab_base::{Op, Opcode, Request};
use ssdlab_flash::{Contents, FaultKind};

use super::{Command, Step, TagCase};
use crate::case;
use crate::script::{CommandSetCase, FAULTS, Script, ScriptError};

/// What a command of the set may be carried by.
const CARRIERS: [(&str, Op); 3] = [("read", Op::Read), ("write", Op::Write), ("flush", Op::Flush)];

const PAYLOADS: [(&str, Contents); 3] =
    [("none", Contents::Nothing), ("stamps", Contents::Stamps), ("bytes", Contents::Bytes)];

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Command(Command { request, words }) if request.opcode.is_block() => {
                debug_assert!(words.is_empty(), "block I/O has no words: {words:?}");
                case::Step::Command { request: *request, depth: 1 }.fmt(to)
            }
            Step::Command(Command { request, words }) => {
                let spec = TAGS.command(request.opcode);
                match spec {
                    Some(spec) => write!(to, "{}:{}", TAGS.name, spec.name)?,
                    None => write!(to, "{}:#{}", TAGS.name, request.opcode.0)?,
                }
                write!(to, " {}+{}", request.sector, request.sectors)?;
                if spec.map_or(Op::Read, |spec| spec.carrier) != request.op {
                    let carrier = CARRIERS.iter().find(|(_, op)| *op == request.op).map_or("?", |(name, _)| name);
                    write!(to, " carrier={carrier}")?;
                }
                if !words.is_empty() {
                    let words: Vec<String> = words.iter().map(u64::to_string).collect();
                    write!(to, " words={}", words.join(","))?;
                }
                Ok(())
            }
            Step::Acknowledge => write!(to, "acknowledge"),
            Step::Drain => write!(to, "drain"),
            Step::RestartHost => write!(to, "restart"),
            Step::Cut => write!(to, "cut"),
            Step::Fail(kind) => {
                write!(to, "fail {}", FAULTS.iter().find(|(_, fault)| fault == kind).map_or("?", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Step {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Step, ScriptError> {
        let expected = |what: &str| ScriptError(format!("found step '{text}', expected {what}"));
        match text {
            "acknowledge" => return Ok(Step::Acknowledge),
            "drain" => return Ok(Step::Drain),
            "restart" => return Ok(Step::RestartHost),
            "cut" => return Ok(Step::Cut),
            "fail program" => return Ok(Step::Fail(FaultKind::Program)),
            "fail erase" => return Ok(Step::Fail(FaultKind::Erase)),
            _ => {}
        }
        let command_set_case = text.split_once(':').filter(|(set, _)| *set == TAGS.name);
        let Some((_, command)) = command_set_case else {
            return match text.parse() {
                Ok(case::Step::Command { request, depth: 1 }) => {
                    Ok(Step::Command(Command { request, words: Vec::new() }))
                }
                _ => Err(expected(
                    "tags:COMMAND, read, write, trim, zero, flush, acknowledge, drain, restart, cut, fail program or \
                     fail erase; without depth=",
                )),
            };
        };
        let mut words = command.split_whitespace();
        let name = words.next().unwrap_or_default();
        let opcode = match name.strip_prefix('#') {
            // Opcode 0 is block I/O.
            Some(number) => number.parse().ok().filter(|number| *number > 0).map(Opcode),
            None => TAGS.find(name).map(|spec| spec.opcode),
        };
        let known = || TAGS.commands.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        let opcode = opcode.ok_or_else(|| expected(&format!("one of {} or #OPCODE behind 'tags:'", known())))?;
        let range = words.next().and_then(|range| range.split_once('+'));
        let range = range.and_then(|(sector, count)| Some((sector.parse().ok()?, count.parse().ok()?)));
        let (sector, sectors) = range.ok_or_else(|| expected("sectors such as 8+2 behind the command"))?;
        let carrier = TAGS.command(opcode).map_or(Op::Read, |spec| spec.carrier);
        let mut request = Request { opcode, ..Request::new(carrier, sector, sectors) };
        let mut given = Vec::new();
        for word in words {
            let wrong = || expected("carrier=read, write or flush, or words=N,N,... behind the sectors");
            match word.split_once('=') {
                Some(("carrier", name)) => {
                    request.op = CARRIERS.iter().find(|(known, _)| *known == name).ok_or_else(wrong)?.1;
                }
                Some(("words", list)) => {
                    let numbers: Result<_, _> = list.split(',').map(str::parse).collect();
                    given = numbers.map_err(|_| wrong())?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(Step::Command(Command { request, words: given }))
    }
}

impl TagCase {
    /// The case as text that [`TagCase::parse`] reads; `comment` goes on top.
    pub fn to_text(&self, comment: &str) -> String {
        let payload = PAYLOADS.iter().find(|(_, contents)| *contents == self.contents).map_or("?", |(name, _)| name);
        let command_set_case = CommandSetCase {
            set: TAGS.name.to_string(),
            payload: payload.to_string(),
            depth: self.depth.min(1 << 16) as i64,
        };
        let (steps, drive) = (self.steps.clone(), self.config.clone());
        Script { seed: self.seed, host: None, command_set_case: Some(command_set_case), steps, drive }.to_text(comment)
    }

    /// Reads what [`TagCase::to_text`] wrote; `file` is what messages call it.
    ///
    /// # Errors
    /// A sentence with the file, the place, what was found, and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<TagCase, ScriptError> {
        let error = |key: &str, found: &str, expected: &str| {
            ScriptError(format!("{file}: torture.{key}: found {found}, expected {expected}"))
        };
        let Script { seed, host, command_set_case, steps, drive } = Script::parse(text, file)?;
        if host.is_some() {
            return Err(error("host", "layers", "none above a drive with a command set"));
        }
        let missing = || ScriptError(format!("{file}: torture.command_set: missing, expected \"{}\"", TAGS.name));
        let CommandSetCase { set, payload, depth } = command_set_case.ok_or_else(missing)?;
        if set != TAGS.name {
            return Err(error("command_set", &format!("\"{set}\""), &format!("\"{}\"", TAGS.name)));
        }
        let contents = PAYLOADS.iter().find(|(name, _)| *name == payload).map(|(_, contents)| *contents);
        let contents = contents.ok_or_else(|| error("payload", &format!("\"{payload}\""), "none, stamps or bytes"))?;
        let depth = u64::try_from(depth).ok().filter(|depth| (1..=1 << 16).contains(depth));
        let depth = depth.ok_or_else(|| error("depth", "a number out of its range", "1 to 65536"))?;
        Ok(TagCase { seed, config: drive, contents, depth, steps })
    }

    /// Whether a text is meant as the case of a command set.
    pub fn is_meant(text: &str) -> bool {
        text.parse::<toml::Table>()
            .is_ok_and(|table| table.get("torture").and_then(|torture| torture.get("command_set")).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::ScriptError;

    #[test]
    fn cases_read_back_as_they_were_written() {
        let lines = [
            "tags:write-tagged 0+8 words=7,9",
            "tags:find-tag 0+0 words=18446744073709551615",
            "tags:#200 3+1 carrier=flush",
            "tags:read-tagged 8+16 carrier=write words=0",
            "write 0+8",
            "flush",
            "acknowledge",
            "drain",
            "restart",
            "cut",
            "fail program",
            "fail erase",
        ];
        for line in lines {
            assert_eq!(line.parse::<Step>().expect(line).to_string(), line);
        }
        let mut cases = 0;
        for seed in 0..60 {
            let Some(case) = TagCase::draw(seed, 60) else { continue };
            let text = case.to_text("a comment");
            assert!(TagCase::is_meant(&text) && case::Case::parse(&text, "case.toml").is_err());
            assert_eq!(TagCase::parse(&text, "case.toml").expect("it was written"), case);
            cases += 1;
        }
        assert!(cases > 30, "{cases} cases");
    }

    #[test]
    fn what_is_no_step_is_refused_with_what_was_expected() {
        let wrong = [
            "",
            "tags:",
            "tags:write-taged 0+8",
            "tags:#0 0+8",
            "tags:#256 0+8",
            "tags:write-tagged",
            "tags:write-tagged 0+8 words=x",
            "tags:write-tagged 0+8 carrier=trim",
            "tags:write-tagged 0+8 fua",
            "write 0+8 depth=4",
            "fail read",
            "cut 5%",
        ];
        for line in wrong {
            let error = line.parse::<Step>().expect_err(line).to_string();
            assert!(error.contains(line) && error.contains("expected"), "{error}");
        }
        let case = TagCase::draw(1, 3).or_else(|| TagCase::draw(2, 3)).expect("a case").to_text("");
        for (line, other) in [("command_set = \"tags\"", "command_set = \"tog\""), ("\ndepth = ", "\ndepth = -")] {
            assert!(case.contains(line), "{case}");
            let error: ScriptError = TagCase::parse(&case.replace(line, other), "case.toml").expect_err(other);
            assert!(error.to_string().starts_with("case.toml: torture."), "{error}");
        }
    }
}
