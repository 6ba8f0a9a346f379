//! What can happen to a system, as data and as text: commands of its kind, and what happens to all kinds.
//!
//! ```text
//! write 0+8 fua depth=4     8 sectors from sector 0, FUA, when fewer than 4 commands are in flight
//! read 3+1 queue=1          on queue 1; stream=1 likewise; `trim` and `zero` (write zeroes) look the same
//! flush
//! run 12                    12 events
//! pass 350us                time
//! fail program              the next program fails; `fail erase block=4` the next erase of block 4, `fail read` a read
//! fail die block=4          all operations on the die of block 4 fail from now on
//! fail program drive=2      of a stack: the next program of drive 2 fails; taken modulo the number of drives
//! drain                     all commands complete
//! cut                       the power goes, and comes back: see `crate::cut`
//! ```

use std::fmt;
use std::str::{FromStr, SplitWhitespace};

use ssdlab_base::{Nanos, Op, Request, parse_duration};
use ssdlab_flash::{BlockId, FaultKind};

use crate::case::Subject;
use crate::cut::Cut;
use crate::script::ScriptError;

/// One thing that happens; `C` is a command to the kind of system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<C> {
    /// The host sends a command.
    Command(C),
    /// Events run, so many, or until there are no more.
    Run(u32),
    /// Time passes, and whatever happens in it.
    Pass(Nanos),
    /// All commands complete.
    Drain,
    /// The next operation of a kind fails: a read, a program or an erase; or all operations of a die from now on.
    Fail(FaultKind, Place),
    /// The power goes, and comes back.
    Cut(Cut),
}

/// Where an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Wherever the next one is.
    Any,
    /// On a block only, or on the die of this block.
    Block(BlockId),
    /// On a drive of a stack, by its place modulo their number.
    Drive(usize),
}

impl Place {
    /// On a block, or on any.
    pub(crate) fn of(block: Option<BlockId>) -> Place {
        block.map_or(Place::Any, Place::Block)
    }

    /// The block, where one is named.
    pub(crate) fn block(self) -> Option<BlockId> {
        if let Place::Block(block) = self { Some(block) } else { None }
    }
}

/// A command to a kind of system.
pub trait Command: Clone + fmt::Debug + PartialEq + Send + Sync + fmt::Display {
    /// Reads a command whose text begins with the word `first`; `None` if no command does.
    ///
    /// # Errors
    /// The words behind it are wrong.
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<Self>, ScriptError>;

    /// Plainer forms, the plainest first.
    fn plainer(&self) -> Vec<Self>;
}

/// A command of block I/O, which arrives as soon as fewer than `depth` are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCommand {
    /// What is asked. Its tag and its stamp come from its place.
    pub request: Request,
    /// How many may be in flight, this one included.
    pub depth: u32,
}

impl BlockCommand {
    /// A command of a host that waits for each.
    pub(crate) const fn alone(request: Request) -> BlockCommand {
        BlockCommand { request, depth: 1 }
    }

    /// Reads a command of a host that waits for each: of no queue or stream, and no write of zeroes.
    pub(crate) fn parse_alone(first: &str, words: &mut Words<'_>) -> Result<Option<Request>, ScriptError> {
        let is_plain = |BlockCommand { request, depth }: &BlockCommand| {
            (request.queue, request.stream, *depth) == (0, 0, 1) && request.op != Op::WriteZeroes
        };
        Ok(BlockCommand::parse(first, words)?.filter(is_plain).map(|command| command.request))
    }

    /// Plainer forms of a command of a host that waits for each, the plainest first.
    pub(crate) fn plainer_alone(request: Request) -> impl Iterator<Item = Request> {
        BlockCommand::alone(request).plainer().into_iter().map(|plain| plain.request)
    }
}

impl<C: Command> Step<C> {
    /// The kind of operation that the step lets fail, and where.
    pub(crate) fn failure(&self) -> Option<(FaultKind, Place)> {
        if let Step::Fail(kind, place) = self { Some((*kind, *place)) } else { None }
    }

    /// Plainer forms, the plainest first.
    pub(crate) fn plainer(&self) -> Vec<Step<C>> {
        match self {
            Step::Command(command) => command.plainer().into_iter().map(Step::Command).collect(),
            Step::Run(events) => {
                vec![Step::Run(1), Step::Run(events / 2), Step::Run(events.saturating_sub(1)), Step::Drain]
            }
            Step::Pass(time) => vec![Step::Drain, Step::Pass(Nanos(time.0 / 2))],
            // A die is named by a block.
            Step::Drain | Step::Fail(FaultKind::Die, _) => Vec::new(),
            Step::Fail(kind, Place::Drive(_)) => vec![Step::Fail(*kind, Place::Drive(0))],
            Step::Fail(kind, _) => vec![Step::Fail(*kind, Place::Any)],
            Step::Cut(cut) => cut.plainer().into_iter().map(Step::Cut).collect(),
        }
    }
}

impl<C> Step<C> {
    /// Reads a step of a subject.
    ///
    /// # Errors
    /// A sentence with what was found, and what was expected.
    pub fn parse<S: Subject<Command = C>>(text: &str) -> Result<Step<C>, ScriptError>
    where
        C: Command,
    {
        let mut words = Words { text, left: text.split_whitespace() };
        let step = match words.next().unwrap_or_default() {
            "run" => Step::Run(words.number("run and a number of events")?),
            "pass" => {
                let time = words.next().ok_or_else(|| words.expected("pass and a time"))?;
                Step::Pass(parse_duration(time).map_err(|error| words.expected(&error.to_string()))?)
            }
            "drain" => Step::Drain,
            "fail" => {
                let what = "fail and read, program or erase, then block=N; or fail die and block=N, a block of it";
                let name = words.next().unwrap_or_default();
                let kind = FAULTS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
                let place = match words.next().map(|word| word.split_once('=').unwrap_or(("block", word))) {
                    Some(("block", number)) => number.parse().ok().map(|number| Place::Block(BlockId(number))),
                    Some(("drive", number)) => number.parse().ok().map(Place::Drive),
                    Some(_) => None,
                    None => Some(Place::Any).filter(|_| kind != Some(FaultKind::Die)),
                };
                let (kind, place) = kind.zip(place).ok_or_else(|| words.expected(what))?;
                Step::Fail(kind, place)
            }
            first @ ("cut" | "crash") => Step::Cut(Cut::parse(first, &mut words)?),
            first => Step::Command(C::parse(first, &mut words)?.ok_or_else(|| words.expected(S::STEPS))?),
        };
        if let Some(word) = words.next() {
            return Err(words.expected(&format!("nothing behind '{step}', where '{word}' stands")));
        }
        if S::takes(&step) { Ok(step) } else { Err(words.expected(S::STEPS)) }
    }
}

/// The words of a step that is read.
pub struct Words<'a> {
    text: &'a str,
    left: SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    /// The next word.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        self.left.next()
    }

    /// Says that something else was expected.
    pub(crate) fn expected(&self, what: &str) -> ScriptError {
        ScriptError(format!("found step '{}', expected {what}", self.text))
    }

    /// The next word as a number.
    pub(crate) fn number<T: FromStr>(&mut self, what: &str) -> Result<T, ScriptError> {
        self.next().and_then(|word| word.parse().ok()).ok_or_else(|| self.expected(what))
    }

    /// The next word as a first place and a count: `8+2`.
    pub(crate) fn range(&mut self, what: &str) -> Result<(u64, u64), ScriptError> {
        let range = self.next().and_then(|range| range.split_once('+'));
        let range = range.and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?)));
        range.ok_or_else(|| self.expected(what))
    }
}

const OPS: [(&str, Op); 5] =
    [("read", Op::Read), ("write", Op::Write), ("trim", Op::Trim), ("zero", Op::WriteZeroes), ("flush", Op::Flush)];

/// Operations that fail one at a time, and a lost die, named by one of its blocks.
const FAULTS: [(&str, FaultKind); 4] =
    [("read", FaultKind::Read), ("program", FaultKind::Program), ("erase", FaultKind::Erase), ("die", FaultKind::Die)];

/// The name of what has another name in its text.
pub(crate) fn name_of<T: PartialEq>(names: &[(&'static str, T)], of: &T) -> &'static str {
    names.iter().find(|(_, known)| known == of).map_or("?", |(name, _)| name)
}

impl<C: fmt::Display> fmt::Display for Step<C> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Command(command) => command.fmt(to),
            Step::Run(events) => write!(to, "run {events}"),
            Step::Pass(time) => write!(to, "pass {}ns", time.0),
            Step::Drain => write!(to, "drain"),
            Step::Fail(kind, place) => {
                write!(to, "fail {}", name_of(&FAULTS, kind))?;
                match place {
                    Place::Any => Ok(()),
                    Place::Block(block) => write!(to, " block={block}"),
                    Place::Drive(drive) => write!(to, " drive={drive}"),
                }
            }
            Step::Cut(cut) => cut.fmt(to),
        }
    }
}

impl fmt::Display for BlockCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockCommand { request, depth } = self;
        write!(to, "{}", name_of(&OPS, &request.op))?;
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
}

impl Command for BlockCommand {
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<BlockCommand>, ScriptError> {
        let Some((_, op)) = OPS.iter().find(|(name, _)| *name == first) else { return Ok(None) };
        let mut request = Request::new(*op, 0, 0);
        if *op != Op::Flush {
            (request.sector, request.sectors) = words.range("sectors such as 8+2")?;
        }
        let mut depth = 1;
        while let Some(word) = words.next() {
            let small = |number: &str| number.parse::<u16>().map_err(|_| words.expected("a number below 65536"));
            match word.split_once('=') {
                Some(("queue", number)) => request.queue = small(number)?,
                Some(("stream", number)) => request.stream = small(number)?,
                Some(("depth", number)) if number != "0" => depth = u32::from(small(number)?),
                None if word == "fua" => request.fua = true,
                _ => return Err(words.expected("fua, queue=N, stream=N or depth=N (at least 1) behind the sectors")),
            }
        }
        Ok(Some(BlockCommand { request, depth }))
    }

    fn plainer(&self) -> Vec<BlockCommand> {
        let BlockCommand { request, depth } = *self;
        let mut forms = vec![BlockCommand { request, depth: 1 }];
        let mut with = |request| forms.push(BlockCommand { request, depth });
        with(Request { queue: 0, ..request });
        with(Request { stream: 0, ..request });
        with(Request { fua: false, ..request });
        if request.op != Op::Flush {
            with(Request { sectors: request.sectors.min(1), ..request });
            with(Request { sectors: request.sectors / 2, ..request });
            with(Request { sector: 0, ..request });
            with(Request { sector: request.sector / 2, ..request });
        }
        forms
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::campaign::{Draw, draw};
    use crate::case::Case;
    use crate::single_drive::{Scope, SingleDrive};
    use crate::stacks::{Stack, StackScope};

    /// Steps that are no `wrong` ones are read as they were printed, and wrong ones are refused with what was expected.
    pub(crate) fn check_text<S: Subject>(right: &[&str], wrong: &[&str]) {
        for line in right {
            assert_eq!(Step::parse::<S>(line).expect(line).to_string(), *line);
        }
        for line in wrong {
            let error = Step::parse::<S>(line).expect_err(line).to_string();
            assert!(error.contains(line) && error.contains("expected"), "{error}");
        }
    }

    /// Drawn cases are read as they were written, but not as cases of single drives, unless they are.
    pub(crate) fn check_files<D: Draw>(seeds: std::ops::Range<u64>, scope: impl Fn(u64) -> D, single: bool) {
        for seed in seeds {
            let case = draw(seed, &scope(seed)).expect("a case is drawn");
            let text = case.to_text("a comment");
            let back = Case::parse(&text, "case.toml").expect("it was written");
            assert_eq!((&back, back.to_text("a comment")), (&case, text.clone()));
            assert_eq!(<Case>::parse(&text, "case.toml").is_ok(), single, "{text}");
        }
    }

    #[test]
    fn steps_of_a_drive_are_text() {
        let right = [
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
            "fail die",
            "fail read block=x",
            "fail read drive=1",
            "cut 100%",
            "cut now",
            "cut all",
            "cut compare",
            "crash",
            "cut 5% 6% x",
            "cut recovery=5",
            "cut recovery=101%",
            "cut recovery=1% recovery=1% recovery=1% recovery=1%",
            "run 1 2",
        ];
        check_text::<SingleDrive>(&right, &wrong);
        check_files(1..40, |_| Scope::everything(30), true);
    }

    #[test]
    fn steps_of_a_stack_are_text() {
        let right = [
            "crash",
            "crash 99% compare",
            "cut all",
            "cut drive=63 7% recovery=100% compare",
            "fail erase drive=2",
            "write 0+8 fua depth=4",
            "flush queue=3",
            "run 12",
            "drain",
        ];
        let wrong = [
            "cut",
            "cut 5%",
            "cut drive=x",
            "cut all 100%",
            "cut all unread",
            "crash 5% x",
            "cut all recovery=101%",
            "fail read",
            "pass 5us",
            "fail program block=3",
            "fail factory drive=1",
            "fail read drive=1 2",
            "cut program",
            "cut all program",
            "",
        ];
        check_text::<Stack>(&right, &wrong);
        let scope = |seed: u64| StackScope {
            host: None,
            drive: None,
            commands: 50,
            drivers: seed.is_multiple_of(3),
            faults: true,
        };
        check_files(0..40, scope, false);
    }
}
