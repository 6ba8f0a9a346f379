//! VCD, read: a header of definitions, then times and values. The body is parsed by hand, since captures have hundreds of
//! millions of them.

use std::collections::BTreeMap;

use ssdlab_base::Nanos;

use super::input::Input;
use super::{
    BATCH, Body as AnyBody, Capture, CaptureError, Decoded, Format, LINES_MAX, Select, Sink, choose, list, quote,
};
use crate::Edge;

/// A code that no variable has.
const NOBODY: u32 = u32::MAX;
/// A variable that nobody wants.
const UNWANTED: u32 = u32::MAX - 1;

/// A longer name is none of a line's.
const NAME_MAX: usize = 1024;

/// A line's level is not known yet.
const UNKNOWN: u8 = 2;

struct Variable {
    name: String,
    code: Vec<u8>,
    bits: u64,
}

/// What follows the definitions.
pub(super) struct Body {
    input: Input,
    codes: Codes,
    lines: usize,
    invert: bool,
    scale: Scale,
}

/// Ticks to nanoseconds, rounded down.
#[derive(Clone, Copy)]
struct Scale {
    times: u64,
    by: u64,
}

impl Scale {
    #[inline]
    fn ns(self, ticks: u64) -> Option<u64> {
        if self.by == 1 { ticks.checked_mul(self.times) } else { Some(ticks / self.by) }
    }
}

/// From identifier codes to lines. Codes of one and two characters, which most are, are looked up in a table.
struct Codes {
    short: Vec<u32>,
    long: BTreeMap<Vec<u8>, u32>,
}

const PRINTABLE: usize = 95;

#[inline]
fn short(code: &[u8]) -> Option<usize> {
    let digit = |byte: u8| match byte {
        b'!'..=b'~' => Some(usize::from(byte - b' ')),
        _ => None,
    };
    match code {
        [one] => Some(digit(*one)? * PRINTABLE),
        [one, two] => Some(digit(*one)? * PRINTABLE + digit(*two)?),
        _ => None,
    }
}

impl Codes {
    fn new() -> Codes {
        Codes { short: vec![NOBODY; PRINTABLE * PRINTABLE], long: BTreeMap::new() }
    }

    fn set(&mut self, code: &[u8], line: u32) {
        match short(code) {
            Some(place) => self.short[place] = line,
            None => drop(self.long.insert(code.to_vec(), line)),
        }
    }

    #[inline]
    fn get(&self, code: &[u8]) -> u32 {
        match short(code) {
            Some(place) => self.short[place],
            None => self.long.get(code).copied().unwrap_or(NOBODY),
        }
    }
}

pub(super) fn open(mut input: Input, select: &Select) -> Result<Capture, CaptureError> {
    let mut scopes: Vec<String> = Vec::new();
    let mut variables: Vec<Variable> = Vec::new();
    let mut scale = None;
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    loop {
        let Some(word) = input.word()? else {
            return Err(input.at(0, "the file ends in its header; expected $enddefinitions $end"));
        };
        let here = input.word_place();
        match word.as_slice() {
            b"$scope" => {
                let words = section(&mut input, "$scope")?;
                scopes.push(words.get(1).map(|name| text(name)).unwrap_or_default());
            }
            b"$upscope" => {
                section(&mut input, "$upscope")?;
                scopes.pop();
            }
            b"$timescale" => {
                let words = section(&mut input, "$timescale")?;
                scale = Some(timescale(&words.concat()).ok_or_else(|| {
                    let found = quote(&words.join(&b' '));
                    let expected = "expected 1, 10 or 100 and s, ms, us, ns, ps or fs";
                    input.in_place(here, format!("{found} is not a time scale; {expected}"))
                })?);
            }
            b"$var" => {
                let words = section(&mut input, "$var")?;
                let [kind, bits, code, name, rest @ ..] = words.as_slice() else {
                    return Err(input.in_place(here, "a $var is cut short; expected `$var wire 1 CODE NAME $end`"));
                };
                if variables.len() == LINES_MAX {
                    let what = format!("more than {LINES_MAX} variables; expected Ready/Busy lines");
                    return Err(input.in_place(here, what));
                }
                let bits = std::str::from_utf8(bits).ok().and_then(|bits| bits.parse().ok());
                let bits: u64 = bits.filter(|&bits| bits > 0).ok_or_else(|| {
                    let what = format!("the variable {} has no number of bits; expected one such as 1", quote(name));
                    input.in_place(here.clone(), what)
                })?;
                let length: usize = scopes.iter().map(String::len).sum::<usize>()
                    + name.len()
                    + rest.iter().map(Vec::len).sum::<usize>();
                if length > NAME_MAX {
                    let what =
                        format!("a variable's name has {length} bytes with its scopes; expected at most {NAME_MAX}");
                    return Err(input.in_place(here, what));
                }
                let logic = !matches!(kind.as_slice(), b"real" | b"realtime" | b"event" | b"string");
                let mut full: Vec<String> = scopes.iter().filter(|scope| !scope.is_empty()).cloned().collect();
                full.push(text(name).trim_start_matches('\\').to_string() + &text(&rest.concat()));
                variables.push(Variable {
                    name: full.join("."),
                    code: code.clone(),
                    bits: if logic { bits } else { 0 },
                });
            }
            b"$enddefinitions" => {
                section(&mut input, "$enddefinitions")?;
                break;
            }
            [b'$', ..] if word != b"$end" => drop(section(&mut input, &text(&word))?),
            _ => {
                let what = format!("{} in the header; expected a definition such as $var", quote(&word));
                return Err(input.in_place(here, what));
            }
        }
    }
    let Some(scale) = scale else {
        return Err(input.whole("the header has no $timescale; expected one such as `$timescale 1 ns $end`"));
    };
    finish(input, variables, scale, select)
}

/// The words up to `$end`.
fn section(input: &mut Input, name: &str) -> Result<Vec<Vec<u8>>, CaptureError> {
    /// Only the first words of a comment are kept.
    const KEPT: usize = 64;
    let mut words = Vec::new();
    loop {
        match input.word()? {
            Some(word) if word == b"$end" => return Ok(words),
            Some(word) if words.len() < KEPT => words.push(word),
            Some(_) => {}
            None => return Err(input.at(0, format!("the file ends inside {}; expected $end", super::shorten(name)))),
        }
    }
}

fn timescale(text: &[u8]) -> Option<Scale> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = match &text[..digits] {
        b"" | b"1" => 1,
        b"10" => 10,
        b"100" => 100,
        _ => return None,
    };
    Some(match &text[digits..] {
        b"s" => Scale { times: number * 1_000_000_000, by: 1 },
        b"ms" => Scale { times: number * 1_000_000, by: 1 },
        b"us" => Scale { times: number * 1000, by: 1 },
        b"ns" => Scale { times: number, by: 1 },
        b"ps" => Scale { times: 1, by: 1000 / number },
        b"fs" => Scale { times: 1, by: 1_000_000 / number },
        _ => return None,
    })
}

fn finish(input: Input, variables: Vec<Variable>, scale: Scale, select: &Select) -> Result<Capture, CaptureError> {
    let names: Vec<String> = variables.iter().map(|variable| variable.name.clone()).collect();
    let mut codes = Codes::new();
    variables.iter().for_each(|variable| codes.set(&variable.code, UNWANTED));
    let (chosen, mut notes) = if select.lines.is_empty() {
        default_lines(&variables)
    } else {
        (choose(&names, &select.lines).map_err(|what| input.whole(what))?, Vec::new())
    };
    if chosen.is_empty() {
        return Err(input.whole("it has no variable of one bit; expected a wire for each Ready/Busy line"));
    }
    for (line, &place) in chosen.iter().enumerate() {
        let Variable { name, code, bits } = &variables[place];
        if *bits != 1 {
            let what = if *bits == 0 { "no logic level".to_string() } else { format!("{bits} bits") };
            return Err(input.whole(format!("the variable '{name}' has {what}; a Ready/Busy line is one bit")));
        }
        if codes.get(code) != UNWANTED {
            return Err(input.whole(format!("'{name}' is another name of a line that is chosen already")));
        }
        codes.set(code, line as u32);
    }
    if scale.by > 1 {
        notes.push("times finer than a nanosecond are rounded down".to_string());
    }
    let lines: Vec<String> = chosen.iter().map(|&place| names[place].clone()).collect();
    let resolution = scale.ns(1).filter(|&ns| ns > 0).map(Nanos);
    let body = Body { input, codes, lines: lines.len(), invert: select.invert, scale };
    Ok(Capture { format: Format::Vcd, lines, resolution, notes, body: AnyBody::Vcd(body) })
}

/// All variables of one bit, and what was left out.
fn default_lines(variables: &[Variable]) -> (Vec<usize>, Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    let (mut chosen, mut left, mut aliases) = (Vec::new(), Vec::new(), Vec::new());
    for (place, variable) in variables.iter().enumerate() {
        if variable.bits != 1 {
            left.push(variable.name.clone());
        } else if seen.insert(&variable.code) {
            chosen.push(place);
        } else {
            aliases.push(variable.name.clone());
        }
    }
    let mut notes = Vec::new();
    if !left.is_empty() {
        notes.push(format!("not one bit, left out: {}", list(&left)));
    }
    if !aliases.is_empty() {
        notes.push(format!("other names of lines that are there already, left out: {}", list(&aliases)));
    }
    (chosen, notes)
}

/// Where the body's words stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A time, a value or a keyword.
    Anything,
    /// The code of a vector or a real number whose value has passed.
    Code,
    /// Words of a comment.
    End,
}

/// The decoder's state, beside the bytes.
struct State {
    levels: Vec<u8>,
    now: u64,
    ticks: u64,
    started: bool,
    expect: Expect,
    decoded: Decoded,
    edges: Vec<Edge>,
}

impl Body {
    pub(super) fn decode(mut self, sink: Sink<'_>) -> Result<Decoded, CaptureError> {
        let mut state = State {
            levels: vec![UNKNOWN; self.lines],
            now: 0,
            ticks: 0,
            started: false,
            expect: Expect::Anything,
            decoded: Decoded::default(),
            edges: Vec::with_capacity(BATCH),
        };
        let end = self.body(&mut state, sink);
        // Also those before damage.
        sink(&state.edges);
        end?;
        state.decoded.edges += state.edges.len() as u64;
        state.decoded.end = Nanos(state.now);
        Ok(state.decoded)
    }

    /// Takes everything to the end.
    fn body(&mut self, state: &mut State, sink: Sink<'_>) -> Result<(), CaptureError> {
        loop {
            // Only whole words: the last may go on behind what has been read.
            let last = self.input.bytes().iter().rposition(|&byte| byte <= b' ');
            let whole = last.map_or(0, |last| last + 1);
            self.words(state, whole, sink)?;
            self.input.take(whole);
            if self.input.ended() {
                break;
            }
            if !self.input.fill()? && !self.input.ended() {
                return Err(self.input.at(0, "a word has no end; expected a value and a code, such as `0!`"));
            }
        }
        let rest = self.input.bytes().len();
        if rest > 0 {
            self.words(state, rest, sink).map_err(|error| self.input.cut_off(error))?;
            state.decoded.unfinished = Some(self.input.line_and_byte(rest));
            self.input.take(rest);
        }
        let missing = match state.expect {
            Expect::Anything => None,
            Expect::Code => Some("the file ends behind a value: it was cut off; expected the code of its variable"),
            Expect::End => Some("the file ends inside a comment or a section: it was cut off; expected $end"),
        };
        missing.map_or(Ok(()), |missing| Err(self.input.at(0, missing)))
    }

    /// Takes the words in the first `whole` bytes.
    fn words(&self, state: &mut State, whole: usize, sink: Sink<'_>) -> Result<(), CaptureError> {
        let bytes = &self.input.bytes()[..whole];
        let high = 1 ^ u8::from(self.invert);
        let mut at = 0;
        while at < bytes.len() {
            let first = bytes[at];
            if first <= b' ' {
                at += 1;
                continue;
            }
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] > b' ' {
                end += 1;
            }
            let word = &bytes[at..end];
            if state.expect != Expect::Anything {
                self.expected(state, word, at)?;
                at = end;
                continue;
            }
            match first {
                b'#' => self.time(state, word, at)?,
                b'0' | b'1' | b'z' | b'Z' | b'x' | b'X' => {
                    let line = self.codes.get(&word[1..]);
                    if line < UNWANTED {
                        // An open drain that nobody pulls is high.
                        let level = if first == b'0' { 1 ^ high } else { high };
                        let old = &mut state.levels[line as usize];
                        if first | 0x20 == b'x' {
                            state.decoded.unknown += 1;
                        } else if *old != level {
                            if *old != UNKNOWN {
                                state.edges.push(Edge { at: Nanos(state.now), die: line, busy: level == 0 });
                            }
                            *old = level;
                        }
                    } else if line == NOBODY {
                        let code = quote(&word[1..]);
                        return Err(self
                            .input
                            .at(at, format!("no variable has the code {code}; expected one of $var")));
                    }
                    if state.edges.len() == BATCH {
                        state.decoded.edges += BATCH as u64;
                        sink(&state.edges);
                        state.edges.clear();
                    }
                }
                b'b' | b'B' | b'r' | b'R' | b's' | b'S' => state.expect = Expect::Code,
                b'$' => match word {
                    b"$dumpvars" | b"$dumpall" | b"$dumpon" | b"$dumpoff" | b"$end" => {}
                    _ => state.expect = Expect::End,
                },
                _ => {
                    let found = quote(word);
                    return Err(self
                        .input
                        .at(at, format!("{found}; expected a time such as #100, or a value such as 0!")));
                }
            }
            at = end;
        }
        Ok(())
    }

    fn expected(&self, state: &mut State, word: &[u8], at: usize) -> Result<(), CaptureError> {
        if state.expect == Expect::Code {
            if self.codes.get(word) == NOBODY {
                let code = quote(word);
                return Err(self.input.at(at, format!("no variable has the code {code}; expected one of $var")));
            }
            state.expect = Expect::Anything;
        } else if word == b"$end" {
            state.expect = Expect::Anything;
        }
        Ok(())
    }

    #[inline]
    fn time(&self, state: &mut State, word: &[u8], at: usize) -> Result<(), CaptureError> {
        let mut ticks: Option<u64> = (word.len() > 1).then_some(0);
        if word.len() <= 19 {
            // Eighteen digits cannot overflow; what is none of them may, and is refused below.
            let mut value = 0_u64;
            let mut wrong = word.len() == 1;
            for &byte in &word[1..] {
                let digit = byte.wrapping_sub(b'0');
                wrong |= digit > 9;
                value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            }
            ticks = (!wrong).then_some(value);
        } else {
            for &byte in &word[1..] {
                let digit = Some(u64::from(byte.wrapping_sub(b'0'))).filter(|&digit| digit <= 9);
                ticks = ticks.and_then(|ticks| ticks.checked_mul(10)?.checked_add(digit?));
            }
        }
        let found = || quote(word);
        let Some((ticks, now)) = ticks.and_then(|ticks| Some((ticks, self.scale.ns(ticks)?))) else {
            let what = format!("{} is not a time; expected # and a number of at most 64 bits of nanoseconds", found());
            return Err(self.input.at(at, what));
        };
        if ticks < state.ticks {
            let what =
                format!("the time {} is before the one above it, #{}; expected times to go up", found(), state.ticks);
            return Err(self.input.at(at, what));
        }
        if !state.started {
            state.started = true;
            state.decoded.start = Nanos(now);
        }
        (state.ticks, state.now) = (ticks, now);
        Ok(())
    }
}
