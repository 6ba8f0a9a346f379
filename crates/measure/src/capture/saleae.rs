//! The CSV that Saleae's Logic exports: a head with the channels' names, then a row for each change (Logic 2), or for
//! each change or sample with the number of the sample (Logic 1).

use ssdlab_base::Nanos;

use super::input::Input;
use super::{
    BATCH, Body as AnyBody, Capture, CaptureError, Decoded, Format, LINES_MAX, Select, Sink, choose, list, quote,
};
use crate::Edge;

/// What the first column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// Seconds, with a fraction; negative before the trigger.
    Seconds,
    /// Samples, of which there are so many a second.
    Samples(u64),
}

/// The rows.
pub(super) struct Body {
    input: Input,
    stamp: Stamp,
    /// For each column behind the first, the line it is.
    columns: Vec<Option<u32>>,
    lines: usize,
    invert: bool,
}

const EXPECTED: &str = "expected a head such as `Time [s],Channel 0,Channel 1`";

pub(super) fn open(mut input: Input, select: &Select) -> Result<Capture, CaptureError> {
    let Some(length) = input.next_line()? else { return Err(input.whole("the file is empty")) };
    let head = String::from_utf8_lossy(input.line(length)).into_owned();
    let mut names = cells(&head).map_err(|(cell, what)| {
        input.at(0, format!("the head's cell {cell} {what}; {EXPECTED}, names with commas in quotes"))
    })?;
    let first = names.remove(0);
    let lower = first.to_ascii_lowercase();
    if names.is_empty() || names.len() > LINES_MAX || !(lower.starts_with("time") || lower.starts_with("sample")) {
        return Err(
            input.at(0, format!("the file begins with {}; {EXPECTED}, a VCD, or a .sr", quote(head.as_bytes())))
        );
    }
    let stamp = if lower.starts_with("time") {
        Stamp::Seconds
    } else {
        match select.sample_rate {
            Some(rate) if rate > 0 => Stamp::Samples(rate),
            _ => return Err(input.at(0, "the rows are numbered by sample: say how many a second with --sample-rate")),
        }
    };
    let chosen = if select.lines.is_empty() {
        (0..names.len()).collect()
    } else {
        choose(&names, &select.lines).map_err(|error| input.at(0, error.to_string()))?
    };
    let mut columns = vec![None; names.len()];
    for (line, &place) in chosen.iter().enumerate() {
        columns[place] = Some(line as u32);
    }
    let lines: Vec<String> = chosen.iter().map(|&place| names[place].clone()).collect();
    let resolution = match stamp {
        Stamp::Seconds => None,
        Stamp::Samples(rate) => Some(Nanos((1_000_000_000 / rate).max(1))),
    };
    let left: Vec<String> =
        names.iter().zip(&columns).filter(|(_, line)| line.is_none()).map(|(name, _)| name.clone()).collect();
    let notes = if left.is_empty() { Vec::new() } else { vec![format!("left out: {}", list(&left))] };
    input.take(length);
    let body = Body { input, stamp, columns, lines: lines.len(), invert: select.invert };
    Ok(Capture { format: Format::SaleaeCsv, lines, resolution, notes, body: AnyBody::Saleae(body) })
}

/// The cells of a head: those in quotes may hold commas, and quotes written twice. An error is the number of the cell,
/// from 1, and what it has.
fn cells(head: &str) -> Result<Vec<String>, (usize, &'static str)> {
    let mut cells = Vec::new();
    let mut rest = head;
    loop {
        let number = cells.len() + 1;
        let (cell, behind) = if let Some(mut quoted) = rest.trim_start().strip_prefix('"') {
            let mut cell = String::new();
            loop {
                let Some((part, behind)) = quoted.split_once('"') else {
                    return Err((number, "has a quote without end"));
                };
                cell.push_str(part);
                match behind.strip_prefix('"') {
                    Some(more) => {
                        cell.push('"');
                        quoted = more;
                    }
                    None => break (cell, behind.trim_start()),
                }
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].to_string(), &rest[end..])
        };
        cells.push(cell.trim().to_string());
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None if behind.is_empty() => return Ok(cells),
            None => return Err((number, "goes on behind its closing quote")),
        }
    }
}

/// Where the rows stand.
struct State {
    levels: Vec<Option<bool>>,
    /// Times before the trigger are negative: everything is counted from the first row, if that is.
    origin: Option<i128>,
    last: i128,
    decoded: Decoded,
    edges: Vec<Edge>,
}

impl Body {
    pub(super) fn decode(mut self, sink: Sink<'_>) -> Result<Decoded, CaptureError> {
        let mut state = State {
            levels: vec![None; self.lines],
            origin: None,
            last: i128::MIN,
            decoded: Decoded::default(),
            edges: Vec::with_capacity(BATCH),
        };
        let end = self.rows(&mut state, sink);
        // Also those before damage.
        sink(&state.edges);
        end?;
        state.decoded.edges += state.edges.len() as u64;
        Ok(state.decoded)
    }

    /// Takes everything to the end.
    fn rows(&mut self, state: &mut State, sink: Sink<'_>) -> Result<(), CaptureError> {
        while let Some(length) = self.input.next_line()? {
            let unfinished = self.input.unfinished(length);
            self.row(self.input.line(length), state).map_err(|what| {
                let error = self.input.at(0, what);
                if unfinished { self.input.cut_off(error) } else { error }
            })?;
            if unfinished {
                let (line, byte) = self.input.line_and_byte(length);
                state.decoded.unfinished = Some((line, byte));
            }
            self.input.take(length);
            if state.edges.len() >= BATCH {
                state.decoded.edges += state.edges.len() as u64;
                sink(&state.edges);
                state.edges.clear();
            }
        }
        Ok(())
    }

    /// Takes a row, or says what is wrong with it.
    fn row(&self, row: &[u8], state: &mut State) -> Result<(), String> {
        if row.is_empty() {
            return Ok(());
        }
        let cut = memchr::memchr(b',', row).unwrap_or(row.len());
        let Some(time) = self.time(row[..cut].trim_ascii()) else {
            let found = quote(row[..cut].trim_ascii());
            return Err(format!("{found} is not a time; expected {}", self.expected_time()));
        };
        if time < state.last {
            return Err("the time is before that of the row above; expected times to go up".to_string());
        }
        state.last = time;
        let first = state.origin.is_none();
        let origin = *state.origin.get_or_insert(time.min(0));
        let Ok(at) = u64::try_from(time - origin) else {
            return Err("the time is beyond 584 years; expected 64 bits of nanoseconds".to_string());
        };
        if first {
            state.decoded.start = Nanos(at);
        }
        state.decoded.end = Nanos(at);
        let mut from = cut;
        for (place, line) in self.columns.iter().enumerate() {
            if from >= row.len() {
                let (found, expected) = (place + 1, self.columns.len() + 1);
                return Err(format!("the row has {found} cells; expected {expected}"));
            }
            let rest = &row[from + 1..];
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            from += 1 + end;
            let Some(line) = line else { continue };
            let high = match rest[..end].trim_ascii() {
                b"1" => !self.invert,
                b"0" => self.invert,
                other => return Err(format!("{} is not a level; expected 0 or 1", quote(other))),
            };
            let old = state.levels[*line as usize].replace(high);
            if old.is_some_and(|old| old != high) {
                state.edges.push(Edge { at: Nanos(at), die: *line, busy: !high });
            }
        }
        if from < row.len() {
            return Err(format!("the row has more cells than the head, which has {}", self.columns.len() + 1));
        }
        Ok(())
    }

    fn expected_time(&self) -> &'static str {
        match self.stamp {
            Stamp::Seconds => "seconds such as 0.000001500 (export without ISO 8601 time stamps)",
            Stamp::Samples(_) => "the number of a sample",
        }
    }

    /// A row's time in nanoseconds.
    fn time(&self, text: &[u8]) -> Option<i128> {
        match self.stamp {
            Stamp::Seconds => seconds(text),
            Stamp::Samples(rate) => {
                let sample: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
                Some(i128::from(sample) * 1_000_000_000 / i128::from(rate))
            }
        }
    }
}

/// Decimal seconds, with an exponent perhaps, in nanoseconds, exactly; digits below a nanosecond are cut off.
fn seconds(text: &[u8]) -> Option<i128> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mark = text.iter().position(|byte| byte | 0x20 == b'e');
    let (mantissa, exponent) = match mark {
        Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (mut value, mut decimals, mut digits, mut point) = (0_i128, 0_i32, 0, false);
    for &byte in mantissa {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' if digits < 30 => {
                value = value * 10 + i128::from(byte - b'0');
                digits += 1;
                decimals += i32::from(point);
            }
            _ => return None,
        }
    }
    if digits == 0 || !(-60..=20).contains(&exponent) {
        return None;
    }
    let shift = 9 + exponent - decimals;
    let value = if shift >= 0 {
        value.checked_mul(10_i128.checked_pow(shift as u32)?)?
    } else {
        // Cutting off towards the past keeps the order of times before and after the trigger.
        let value = if negative { -value } else { value };
        return Some(
            10_i128.checked_pow(shift.unsigned_abs()).map_or(if value < 0 { -1 } else { 0 }, |by| value.div_euclid(by)),
        );
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::{cells, seconds};

    #[test]
    fn names_in_quotes_hold_commas_and_quotes() {
        let names = |head: &str| cells(head).expect("a good head").join("|");
        assert_eq!(names("Time [s],a,b"), "Time [s]|a|b");
        assert_eq!(names(r#""Time [s]","RB, die 0" , "say ""R/B""", plain"#), r#"Time [s]|RB, die 0|say "R/B"|plain"#);
        assert_eq!(names(r#"Time [s],"",5" bus,"#), r#"Time [s]||5" bus|"#);
        assert_eq!(cells(r#"Time [s],"RB, die 0"#), Err((2, "has a quote without end")));
        assert_eq!(cells(r#"Time [s],a,"b"c"#), Err((3, "goes on behind its closing quote")));
    }

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        assert_eq!(seconds(b"0.000000001"), Some(1));
        assert_eq!(seconds(b"12"), Some(12_000_000_000));
        assert_eq!(seconds(b"1456095145.133076001"), Some(1_456_095_145_133_076_001));
        assert_eq!(seconds(b"-0.5"), Some(-500_000_000));
        assert_eq!(seconds(b"1.5e-06"), Some(1500));
        assert_eq!(seconds(b"0.0000000019"), Some(1));
        assert_eq!(seconds(b"-0.0000000019"), Some(-2));
        for bad in ["", "-", ".", "1.2.3", "e5", "1e", "1e99", "nan", "1 2", "2021-01-01T00:00:00"] {
            assert_eq!(seconds(bad.as_bytes()), None, "{bad}");
        }
    }
}
