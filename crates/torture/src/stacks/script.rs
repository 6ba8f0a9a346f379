//! Cases of stacks as text: as those of single drives (`script`), with the layers in `torture.host` and other cuts.
//!
//! ```text
//! write 0+8 fua depth=4              as for a drive; likewise read, trim, zero, flush, run 12, drain
//! fail program drive=2               the next program of drive 2 fails; `erase` and `read` likewise
//! crash 40% compare                  the host alone crashes 40 % of the way to the next event; all sectors are compared
//! cut drive=1 recovery=30% compare   drive 1 loses its power, and again when recovery has looked at 30 % of the pages
//! cut all                            everything loses its power
//! ```
//!
//! A drive's number is taken modulo the number of drives.

use std::fmt;
use std::str::FromStr;

use super::{Cut, StackCase, Step};
use crate::case;
use crate::script::{FAULTS, Script, ScriptError};

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Command { request, depth } => case::Step::Command { request: *request, depth: *depth }.fmt(to),
            Step::Run(events) => write!(to, "run {events}"),
            Step::Drain => write!(to, "drain"),
            Step::Fail { kind, drive } => {
                let name = FAULTS.iter().find(|(_, fault)| fault == kind).map_or("?", |(name, _)| name);
                write!(to, "fail {name} drive={drive}")
            }
            Step::Cut { what, percent, again, compare } => {
                match what {
                    Cut::Host => write!(to, "crash")?,
                    Cut::Drive(drive) => write!(to, "cut drive={drive}")?,
                    Cut::All => write!(to, "cut all")?,
                }
                if *percent > 0 {
                    write!(to, " {percent}%")?;
                }
                again.map_or(Ok(()), |again| write!(to, " recovery={again}%"))?;
                if *compare { write!(to, " compare") } else { Ok(()) }
            }
        }
    }
}

impl FromStr for Step {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Step, ScriptError> {
        let expected = |what: &str| ScriptError(format!("found step '{text}', expected {what}"));
        let mut words = text.split_whitespace();
        let drive_of = |word: Option<&str>| word.and_then(|word| word.strip_prefix("drive=")?.parse::<usize>().ok());
        let what = match words.next().unwrap_or_default() {
            "crash" => Cut::Host,
            "cut" => match words.next() {
                Some("all") => Cut::All,
                word => Cut::Drive(drive_of(word).ok_or_else(|| expected("cut all or cut drive=N"))?),
            },
            "fail" => {
                let what = "fail and read, program or erase, then drive=N";
                let kind = words.next().and_then(|name| FAULTS.iter().find(|(known, _)| *known == name));
                let (kind, drive) = kind.zip(drive_of(words.next())).ok_or_else(|| expected(what))?;
                if words.next().is_some() {
                    return Err(expected(what));
                }
                return Ok(Step::Fail { kind: kind.1, drive });
            }
            _ => {
                return match text.parse()? {
                    case::Step::Command { request, depth } => Ok(Step::Command { request, depth }),
                    case::Step::Run(events) => Ok(Step::Run(events)),
                    case::Step::Drain => Ok(Step::Drain),
                    case::Step::Pass(_) | case::Step::Fail { .. } | case::Step::Cut(_) => {
                        Err(expected("read, write, trim, zero, flush, run, drain, fail, crash or cut"))
                    }
                };
            }
        };
        let (mut percent, mut again, mut compare) = (0, None, false);
        for word in words {
            let part = |word: &str, most| word.strip_suffix('%')?.parse::<u8>().ok().filter(|part| *part <= most);
            if word == "compare" {
                compare = true;
            } else if let Some(word) = word.strip_prefix("recovery=") {
                again = Some(part(word, 100).ok_or_else(|| expected("recovery=PERCENT%, at most 100"))?);
            } else {
                percent =
                    part(word, 99).ok_or_else(|| expected("a percentage below 100, recovery=PERCENT%, compare"))?;
            }
        }
        Ok(Step::Cut { what, percent, again, compare })
    }
}

impl StackCase {
    /// The case as text that [`StackCase::parse`] reads; `comment` goes on top.
    pub fn to_text(&self, comment: &str) -> String {
        let (drive, steps) = (self.drive.clone(), self.steps.clone());
        Script { seed: self.seed, host: Some(self.host.clone()), command_set_case: None, steps, drive }.to_text(comment)
    }

    /// Reads what [`StackCase::to_text`] wrote; `file` is what messages call it.
    ///
    /// # Errors
    /// A sentence with the file, the place, what was found, and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<StackCase, ScriptError> {
        let Script { seed, host, steps, drive, .. } = Script::parse(text, file)?;
        let host =
            host.ok_or_else(|| ScriptError(format!("{file}: torture.host: missing, expected layers as text")))?;
        Ok(StackCase { seed, host, drive, steps })
    }

    /// Whether a text is meant as the case of a stack, and not of a single drive.
    pub fn is_meant(text: &str) -> bool {
        text.parse::<toml::Table>()
            .is_ok_and(|table| table.get("torture").and_then(|torture| torture.get("host")).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::{StackScope, draw};

    #[test]
    fn cases_read_back_as_they_were_written() {
        let lines =
            ["crash", "crash 99% compare", "cut all", "cut drive=63 7% recovery=100% compare", "fail erase drive=2"];
        for line in lines.into_iter().chain(["write 0+8 fua depth=4", "flush queue=3", "run 12", "drain"]) {
            assert_eq!(line.parse::<Step>().expect(line).to_string(), line);
        }
        for seed in 0..40 {
            let scope = StackScope { host: None, drive: None, commands: 50, drivers: seed % 3 == 0, faults: true };
            let (case, _) = draw(seed, &scope).expect("a case is drawn");
            let text = case.to_text("a comment");
            let back = StackCase::parse(&text, "case.toml").expect("it was written");
            assert!(StackCase::is_meant(&text) && case::Case::parse(&text, "case.toml").is_err());
            assert_eq!((back.seed, &back.host, back.to_text("a comment")), (seed, &case.host, text));
            assert_eq!((back.steps, back.drive), (case.steps, case.drive));
        }
    }

    #[test]
    fn what_is_no_step_is_refused_with_what_was_expected() {
        let wrong = [
            "cut",
            "cut 5%",
            "cut drive=x",
            "cut all 100%",
            "crash 5% x",
            "cut all recovery=101%",
            "fail read",
            "pass 5us",
            "fail program block=3",
            "fail factory drive=1",
            "fail read drive=1 2",
            "cut program",
            "",
        ];
        for line in wrong {
            let error = line.parse::<Step>().expect_err(line).to_string();
            assert!(error.contains(line) && error.contains("expected"), "{error}");
        }
    }
}
