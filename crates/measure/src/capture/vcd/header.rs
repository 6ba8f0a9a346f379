//! The definitions at the head of a VCD: scopes, variables, the time scale.

use ssdlab_base::Nanos;

use super::super::input::Input;
use super::super::{Body as AnyBody, Capture, CaptureError, Format, LINES_MAX, Select, choose, list, quote, shorten};
use super::{Body, Codes, Scale, UNWANTED};

/// A longer name is none of a line's.
const NAME_MAX: usize = 1024;

struct Variable {
    name: String,
    code: Vec<u8>,
    bits: Bits,
}

/// How wide a variable is.
#[derive(Clone, PartialEq, Eq)]
enum Bits {
    One,
    /// A vector, or an empty one: so many bits, as the file has the number.
    Other(String),
    /// A real number, a text, an event.
    NoLogic,
}

/// A `$var`'s number of bits. Tools write 0 or less for what has none, such as a text or an empty range.
fn width(text: &[u8]) -> Option<Bits> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let one = text.iter().skip_while(|&&digit| digit == b'0').eq(b"1");
    number.then(|| if one { Bits::One } else { Bits::Other(String::from_utf8_lossy(text).into_owned()) })
}

pub(in crate::capture) fn open(mut input: Input, select: &Select) -> Result<Capture, CaptureError> {
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
                let bits = width(bits).ok_or_else(|| {
                    let what = format!(
                        "the variable {} has {} for its number of bits; expected one such as 1",
                        quote(name),
                        quote(bits)
                    );
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
                let logic = !matches!(
                    kind.as_slice(),
                    b"real" | b"realtime" | b"real_parameter" | b"shortreal" | b"event" | b"string"
                );
                let mut full: Vec<String> = scopes.iter().filter(|scope| !scope.is_empty()).cloned().collect();
                full.push(text(name).trim_start_matches('\\').to_string() + &text(&rest.concat()));
                variables.push(Variable {
                    name: full.join("."),
                    code: code.clone(),
                    bits: if logic { bits } else { Bits::NoLogic },
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
            None => return Err(input.at(0, format!("the file ends inside {}; expected $end", shorten(name)))),
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
        (choose(&names, &select.lines).map_err(|error| input.whole(error.to_string()))?, Vec::new())
    };
    if chosen.is_empty() {
        return Err(input.whole("it has no variable of one bit; expected a wire for each Ready/Busy line"));
    }
    for (line, &place) in chosen.iter().enumerate() {
        let Variable { name, code, bits } = &variables[place];
        if *bits != Bits::One {
            let what = match bits {
                Bits::Other(bits) => format!("{} bits", shorten(bits)),
                _ => "no logic level".to_string(),
            };
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
        if variable.bits != Bits::One {
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
