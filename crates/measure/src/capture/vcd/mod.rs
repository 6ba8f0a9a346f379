//! VCD, read: a header of definitions, then times and values. The body is parsed by hand, since captures have hundreds of
//! millions of them.
//!
//! Values are those of IEEE 1364 (0, 1, x, z) and the nine of VHDL's `std_ulogic` (IEEE 1164: U, X, 0, 1, Z, W, L, H, -),
//! which GHDL, NVC and fst2vcd write as they are, in either case.

mod header;

use std::collections::BTreeMap;

use ssdlab_base::Nanos;

use super::input::Input;
use super::{BATCH, CaptureError, Decoded, Sink, quote};
use crate::Edge;
pub(super) use header::open;

/// A code that no variable has.
const NO_VARIABLE: u32 = u32::MAX;
/// A variable that is not decoded.
const UNWANTED: u32 = u32::MAX - 1;

/// A line's level is not known, or not yet.
const UNKNOWN: u8 = 2;
/// A character that is no value of a bit.
const NO_VALUE: u8 = 3;

/// By character: 0 for low, 1 for high, [`UNKNOWN`] or [`NO_VALUE`].
const LEVELS: [u8; 256] = {
    let mut levels = [NO_VALUE; 256];
    let of_level: [(&[u8], u8); 3] = [(b"0lL", 0), (b"1hHzZ", 1), (b"xXuUwW-", UNKNOWN)];
    let mut level = 0;
    while level < of_level.len() {
        let (characters, value) = of_level[level];
        let mut at = 0;
        while at < characters.len() {
            levels[characters[at] as usize] = value;
            at += 1;
        }
        level += 1;
    }
    levels
};

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
        Codes { short: vec![NO_VARIABLE; PRINTABLE * PRINTABLE], long: BTreeMap::new() }
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
            None => self.long.get(code).copied().unwrap_or(NO_VARIABLE),
        }
    }
}

/// Where the body's words stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A time, a value or a keyword.
    Anything,
    /// The code of a vector or a real number whose value has passed; a vector's lowest bit, else [`NO_VALUE`].
    Code(u8),
    /// The rest of a line with a text, which may have blanks; whether the word before is a code.
    Text(bool),
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

impl State {
    /// Hands a full batch of edges on.
    #[inline]
    fn hand_on(&mut self, sink: Sink<'_>) {
        if self.edges.len() >= BATCH {
            self.decoded.edges += self.edges.len() as u64;
            sink(&self.edges);
            self.edges.clear();
        }
    }
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
            Expect::Anything | Expect::Text(true) => None,
            Expect::Code(_) | Expect::Text(false) => {
                Some("the file ends behind a value: it was cut off; expected the code of its variable")
            }
            Expect::End => Some("the file ends inside a comment or a section: it was cut off; expected $end"),
        };
        missing.map_or(Ok(()), |missing| Err(self.input.at(0, missing)))
    }

    /// Takes the words in the first `whole` bytes.
    fn words(&self, state: &mut State, whole: usize, sink: Sink<'_>) -> Result<(), CaptureError> {
        let bytes = &self.input.bytes()[..whole];
        let mut at = 0;
        while at < bytes.len() {
            let first = bytes[at];
            if first <= b' ' {
                if matches!(state.expect, Expect::Text(_)) && first == b'\n' {
                    self.text_ends(state, at)?;
                }
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
                state.hand_on(sink);
                at = end;
                continue;
            }
            match first {
                b'#' => self.time(state, word, at)?,
                _ if LEVELS[usize::from(first)] != NO_VALUE => {
                    self.value(state, LEVELS[usize::from(first)], &word[1..], at)?;
                    state.hand_on(sink);
                }
                b'b' | b'B' => {
                    let lowest = word[1..].last().map_or(NO_VALUE, |&bit| LEVELS[usize::from(bit)]);
                    state.expect = Expect::Code(lowest);
                }
                b'r' | b'R' => state.expect = Expect::Code(NO_VALUE),
                b's' | b'S' => state.expect = Expect::Text(false),
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
            // The blank behind the word, where it cannot end a line with a text.
            at = end + usize::from(state.expect == Expect::Anything);
        }
        Ok(())
    }

    /// Takes a value of the variable with this code.
    #[inline(always)]
    fn value(&self, state: &mut State, value: u8, code: &[u8], at: usize) -> Result<(), CaptureError> {
        let line = self.codes.get(code);
        if line >= UNWANTED || value > 1 {
            return self.no_level(state, line, value, code, at);
        }
        let level = value ^ u8::from(self.invert);
        let old = &mut state.levels[line as usize];
        if *old != level {
            if *old != UNKNOWN {
                state.edges.push(Edge { at: Nanos(state.now), die: line, busy: level == 0 });
            }
            *old = level;
        }
        Ok(())
    }

    /// Takes a value that sets no line low or high.
    #[cold]
    fn no_level(&self, state: &mut State, line: u32, value: u8, code: &[u8], at: usize) -> Result<(), CaptureError> {
        if line == NO_VARIABLE {
            let what = format!("no variable has the code {}; expected one of $var", quote(code));
            return Err(self.input.at(at, what));
        }
        if line != UNWANTED && value == NO_VALUE {
            let what = format!("the value of {}, a line of one bit, is no bit; expected one such as b0", quote(code));
            return Err(self.input.at(at, what));
        }
        state.decoded.unknown += u64::from(line != UNWANTED);
        Ok(())
    }

    #[inline(never)]
    fn expected(&self, state: &mut State, word: &[u8], at: usize) -> Result<(), CaptureError> {
        match state.expect {
            Expect::Code(value) => {
                self.value(state, value, word, at)?;
                state.expect = Expect::Anything;
            }
            Expect::Text(_) => state.expect = Expect::Text(self.codes.get(word) != NO_VARIABLE),
            Expect::Anything => {}
            Expect::End => {
                if word == b"$end" {
                    state.expect = Expect::Anything;
                }
            }
        }
        Ok(())
    }

    /// The line with a text ends: its last word is the code.
    fn text_ends(&self, state: &mut State, at: usize) -> Result<(), CaptureError> {
        if state.expect == Expect::Text(false) {
            return Err(self.input.at(at, "the line with a text does not end with the code of a variable".to_string()));
        }
        state.expect = Expect::Anything;
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
