//! Captures as CSV: a head of the program that wrote it ([`saleae`], [`sigrok`]), then rows of a time and levels.

mod saleae;
mod sigrok;

use ssdlab_base::Nanos;

use super::input::Input;
use super::{
    BATCH, Body as AnyBody, Capture, CaptureError, Decoded, Format, LINES_MAX, Select, Sink, choose, list, quote,
};
use crate::Edge;

/// What the first column counts, or what stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// Seconds, with a fraction; negative before the trigger.
    Seconds,
    /// Samples, of which there are so many a second.
    Samples(u64),
    /// There is no such column: each row is a sample, of which there are so many a second.
    Row(u64),
    /// Whole units of time, of which there are so many a second, and perhaps the samples a second.
    Units(u64, Option<u64>),
}

/// A column with levels.
struct Column {
    name: String,
    /// Whether it is decoded where no line is named.
    wanted: bool,
}

/// What the head says.
struct Head {
    format: Format,
    separator: u8,
    stamp: Stamp,
    columns: Vec<Column>,
    notes: Vec<String>,
}

/// The rows.
pub(super) struct Body {
    input: Input,
    separator: u8,
    stamp: Stamp,
    /// For each column with levels, the line it is.
    columns: Vec<Option<u32>>,
    lines: usize,
    invert: bool,
}

/// Whether these first bytes are a comment of sigrok's.
pub(super) fn is_commented(first: &[u8]) -> bool {
    let end = memchr::memchr(b'\n', first).unwrap_or(first.len());
    sigrok::comment(&first[..end]).is_some()
}

/// Opens a CSV.
pub(super) fn open(mut input: Input, select: &Select) -> Result<Capture, CaptureError> {
    let Some(length) = input.next_line()? else { return Err(input.whole("the file is empty")) };
    let head = if sigrok::comment(input.line(length)).is_some() {
        sigrok::with_comments(&mut input, select)?
    } else {
        let row = String::from_utf8_lossy(input.line(length)).into_owned();
        if saleae::is_head(&row) {
            saleae::head(&mut input, length, &row, select)?
        } else {
            sigrok::without_comments(&mut input, select)?
        }
    };
    let Head { format, separator, stamp, columns, mut notes } = head;
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let chosen = if select.lines.is_empty() {
        columns.iter().enumerate().filter(|(_, column)| column.wanted).map(|(place, _)| place).collect()
    } else {
        choose(&names, &select.lines).map_err(|error| input.at(0, error.to_string()))?
    };
    if chosen.is_empty() {
        return Err(input.at(0, format!("no column has levels of 0 and 1; it has {}", list(&names))));
    }
    let mut lines_of = vec![None; names.len()];
    for (line, &place) in chosen.iter().enumerate() {
        lines_of[place] = Some(line as u32);
    }
    let left: Vec<String> =
        names.iter().zip(&lines_of).filter(|(_, line)| line.is_none()).map(|(name, _)| name.clone()).collect();
    if !left.is_empty() {
        notes.push(format!("left out: {}", list(&left)));
    }
    let period = |rate: u64| Some(Nanos((1_000_000_000 / rate).max(1)));
    let resolution = match stamp {
        Stamp::Seconds => None,
        Stamp::Samples(rate) | Stamp::Row(rate) | Stamp::Units(_, Some(rate)) | Stamp::Units(rate, None) => {
            period(rate)
        }
    };
    let lines: Vec<String> = chosen.iter().map(|&place| names[place].clone()).collect();
    let body = Body { input, separator, stamp, columns: lines_of, lines: lines.len(), invert: select.invert };
    Ok(Capture { format, lines, resolution, notes, body: AnyBody::Csv(body) })
}

/// The first cell of a row, and the rest of it; `row` is nothing behind the last.
#[inline]
fn next_cell<'r>(row: &mut Option<&'r [u8]>, separator: u8) -> Option<&'r [u8]> {
    let rest = (*row)?;
    Some(match memchr::memchr(separator, rest) {
        Some(end) => {
            *row = Some(&rest[end + 1..]);
            rest[..end].trim_ascii()
        }
        None => {
            *row = None;
            rest.trim_ascii()
        }
    })
}

/// Where the rows stand.
struct State {
    levels: Vec<Option<bool>>,
    /// Rows so far.
    rows: u64,
    /// Times before the trigger are negative: everything is counted from the first row, if that is.
    origin: Option<i128>,
    last: i128,
    /// Whether the units count whole periods of a sample, each rounded down (libsigrok up to 0.5.2), once a row was seen.
    periods: Option<bool>,
    decoded: Decoded,
    edges: Vec<Edge>,
}

impl Body {
    pub(super) fn decode(mut self, sink: Sink<'_>) -> Result<Decoded, CaptureError> {
        let mut state = State {
            levels: vec![None; self.lines],
            rows: 0,
            origin: None,
            last: i128::MIN,
            periods: None,
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
        let mut rest = Some(row);
        let time = if let Stamp::Row(rate) = self.stamp {
            i128::from(state.rows) * 1_000_000_000 / i128::from(rate)
        } else {
            let stamp = next_cell(&mut rest, self.separator).unwrap_or_default();
            self.time(stamp, state)?
                .ok_or_else(|| format!("{} is not a time; expected {}", quote(stamp), self.expected_time()))?
        };
        state.rows += 1;
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
        for (place, line) in self.columns.iter().enumerate() {
            let Some(cell) = next_cell(&mut rest, self.separator) else {
                return Err(format!("the row has {} cells; expected {}", place + self.stamps(), self.cells()));
            };
            let Some(line) = line else { continue };
            let high = match cell {
                b"1" => !self.invert,
                b"0" => self.invert,
                other => return Err(format!("{} is not a level; expected 0 or 1", quote(other))),
            };
            let old = state.levels[*line as usize].replace(high);
            if old.is_some_and(|old| old != high) {
                state.edges.push(Edge { at: Nanos(at), die: *line, busy: !high });
            }
        }
        if rest.is_some() {
            return Err(format!("the row has more cells than the head, which has {}", self.cells()));
        }
        Ok(())
    }

    /// Columns with the time.
    fn stamps(&self) -> usize {
        usize::from(!matches!(self.stamp, Stamp::Row(_)))
    }

    fn cells(&self) -> usize {
        self.columns.len() + self.stamps()
    }

    fn expected_time(&self) -> &'static str {
        match self.stamp {
            Stamp::Seconds => "seconds such as 0.000001500 (export without ISO 8601 time stamps)",
            Stamp::Samples(_) | Stamp::Row(_) => "the number of a sample",
            Stamp::Units(..) => "a whole number",
        }
    }

    /// A row's time in nanoseconds; nothing where it is no such number.
    fn time(&self, text: &[u8], state: &mut State) -> Result<Option<i128>, String> {
        let whole = || std::str::from_utf8(text).ok()?.parse::<u64>().ok();
        let of_sample = |sample: u128, rate: u64| (sample * 1_000_000_000 / u128::from(rate)) as i128;
        Ok(match self.stamp {
            Stamp::Seconds => seconds(text),
            Stamp::Samples(rate) | Stamp::Row(rate) => whole().map(|sample| of_sample(sample.into(), rate)),
            Stamp::Units(scale, None) => whole().map(|units| of_sample(units.into(), scale)),
            Stamp::Units(scale, Some(rate)) => {
                let Some(units) = whole() else { return Ok(None) };
                let period = scale / rate;
                // Rows of libsigrok up to 0.5.2 begin with one period, those of later versions with 0.
                let sample = if *state.periods.get_or_insert(units != 0 && units.is_multiple_of(period)) {
                    if !units.is_multiple_of(period) {
                        return Err(format!(
                            "the time {units} is no multiple of {period}, as those above are: at {rate} samples a second, \
                             libsigrok up to 0.5.2 counts {period} for each sample"
                        ));
                    }
                    u128::from((units / period).saturating_sub(1))
                } else {
                    (u128::from(units) * u128::from(rate)).div_ceil(scale.into())
                };
                Some(of_sample(sample, rate))
            }
        })
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
    use super::seconds;

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
