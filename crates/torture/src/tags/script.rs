//! What a host of the command set `tags` does, as text.
//!
//! ```text
//! tags:write-tagged 0+8 words=7,9     a command of the set with its words; as soon as fewer than `torture.depth` are in flight
//! tags:#12 0+8 carrier=write          by its opcode, and carried by something else than the set says
//! write 0+8                           block I/O, as for a drive
//! acknowledge                         the host acknowledges all events that it has seen
//! restart                             the host starts anew above the running drive
//! ```

use std::fmt;

use ssdlab_base::command_sets::tags::TAGS;
use ssdlab_base::{Op, Opcode, Request};

use super::{Command, HostCommand};
use crate::script::ScriptError;
use crate::step::{self, BlockCommand, Words, name_of};

/// What a command of the set may be carried by.
const CARRIERS: [(&str, Op); 3] = [("read", Op::Read), ("write", Op::Write), ("flush", Op::Flush)];

impl fmt::Display for HostCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Command { request, words } = match self {
            HostCommand::Send(command) => command,
            HostCommand::Acknowledge => return write!(to, "acknowledge"),
            HostCommand::Restart => return write!(to, "restart"),
        };
        if request.opcode.is_block() {
            debug_assert!(words.is_empty(), "block I/O has no words: {words:?}");
            return BlockCommand { request: *request, depth: 1 }.fmt(to);
        }
        let spec = TAGS.command(request.opcode);
        match spec {
            Some(spec) => write!(to, "{}:{}", TAGS.name, spec.name)?,
            None => write!(to, "{}:#{}", TAGS.name, request.opcode.0)?,
        }
        write!(to, " {}+{}", request.sector, request.sectors)?;
        if spec.map_or(Op::Read, |spec| spec.carrier) != request.op {
            write!(to, " carrier={}", name_of(&CARRIERS, &request.op))?;
        }
        if !words.is_empty() {
            let words: Vec<String> = words.iter().map(u64::to_string).collect();
            write!(to, " words={}", words.join(","))?;
        }
        Ok(())
    }
}

impl step::Command for HostCommand {
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<HostCommand>, ScriptError> {
        let Some(name) = first.strip_prefix(TAGS.name).and_then(|name| name.strip_prefix(':')) else {
            return Ok(match first {
                "acknowledge" => Some(HostCommand::Acknowledge),
                "restart" => Some(HostCommand::Restart),
                // Of another depth than 1 there is none.
                _ => BlockCommand::parse(first, words)?
                    .filter(|command| command.depth == 1)
                    .map(|command| HostCommand::Send(Command { request: command.request, words: Vec::new() })),
            });
        };
        let opcode = match name.strip_prefix('#') {
            // Opcode 0 is block I/O.
            Some(number) => number.parse().ok().filter(|number| *number > 0).map(Opcode),
            None => TAGS.find(name).map(|spec| spec.opcode),
        };
        let known = || TAGS.commands.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        let opcode = opcode.ok_or_else(|| words.expected(&format!("one of {} or #OPCODE behind 'tags:'", known())))?;
        let (sector, sectors) = words.range("sectors such as 8+2 behind the command")?;
        let carrier = TAGS.command(opcode).map_or(Op::Read, |spec| spec.carrier);
        let mut request = Request { opcode, ..Request::new(carrier, sector, sectors) };
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            let wrong = || words.expected("carrier=read, write or flush, or words=N,N,... behind the sectors");
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
        Ok(Some(HostCommand::Send(Command { request, words: given })))
    }

    fn plainer(&self) -> Vec<HostCommand> {
        let HostCommand::Send(Command { request, words }) = self else { return Vec::new() };
        if request.opcode.is_block() {
            let plainer = BlockCommand { request: *request, depth: 1 }.plainer().into_iter();
            return plainer
                .map(|plain| HostCommand::Send(Command { request: plain.request, words: Vec::new() }))
                .collect();
        }
        let with = |words: &[u64]| HostCommand::Send(Command { request: *request, words: words.to_vec() });
        vec![with(&[]), with(&words[..words.len().min(1)]), with(&vec![1; words.len()])]
    }
}

#[cfg(test)]
mod tests {
    use crate::campaign::draw;
    use crate::case::Case;
    use crate::step::tests::{check_files, check_text};
    use crate::tags::{TagScope, Tags};

    #[test]
    fn steps_are_text() {
        let right = [
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
        check_text::<Tags>(&right, &wrong);
        check_files(0..60, |_| TagScope { commands: 60 }, false);
        let case = draw(1, &TagScope { commands: 3 }).expect("a case").to_text("");
        for (line, other) in [("command_set = \"tags\"", "command_set = \"tog\""), ("\ndepth = ", "\ndepth = -")] {
            assert!(case.contains(line), "{case}");
            let error = Case::<Tags>::parse(&case.replace(line, other), "case.toml").expect_err(other);
            assert!(error.to_string().starts_with("case.toml: torture."), "{error}");
        }
    }
}
