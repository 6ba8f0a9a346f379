//! Published values: a CSV file a figure, with the place in the paper that each comes from.
//!
//! ```text
//! figure,workload,page_size,setting,series,value,unit,where
//! figure08,all,8k,any,WAFLASH,13.7..31.3,%,"section 5.2.1: improved by 13.7-31.3 % for 8 KB"
//! ```
//!
//! A value is a number, or a range as the paper gives it: `a..b`, `..b` (up to), `a..` (at least). `workload` is one of
//! the paper's, `all` (each of them lies in the range), `best`, `least` or `mean`. What stands only in the bars of a figure is not here.

use std::fmt;

use serde::Serialize;

/// The columns.
const HEADER: &str = "figure,workload,page_size,setting,series,value,unit,where";

/// A value or a range, as the paper gives it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The least; none where the paper says "up to".
    pub low: Option<f64>,
    /// The most; none where it says "at least".
    pub high: Option<f64>,
}

impl Span {
    /// Whether `value` lies in it: in a range to half a tenth, for that is how papers print; a single value if ours is
    /// the same at the precision in which it is printed.
    pub fn holds(&self, value: f64) -> bool {
        let slack = match (self.low, self.high) {
            (Some(low), Some(high)) if low == high => {
                let decimals = low.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
                0.5 * 0.1_f64.powi(decimals as i32)
            }
            _ => 0.05,
        };
        self.low.is_none_or(|low| value >= low - slack) && self.high.is_none_or(|high| value <= high + slack)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low, self.high) {
            (Some(low), Some(high)) if low == high => write!(f, "{low}"),
            (Some(low), Some(high)) => write!(f, "{low} to {high}"),
            (None, Some(high)) => write!(f, "up to {high}"),
            (Some(low), None) => write!(f, "at least {low}"),
            (None, None) => f.write_str("any"),
        }
    }
}

/// One published value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The figure's name, as [`super::Figure::id`].
    pub figure: String,
    /// The paper's workload, or `all`, `best`, `least`, `mean`.
    pub workload: String,
    /// The page size as in `8k`, or `any`.
    pub page_size: String,
    /// As a point's setting, or `any`.
    pub setting: String,
    /// The figure's column.
    pub series: String,
    /// What the paper says.
    pub value: Span,
    /// Its unit.
    pub unit: String,
    /// Where the paper says it, or "read off the figure".
    #[serde(rename = "where")]
    pub place: String,
}

/// What is wrong with a file of published values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {reason}")]
pub struct PublishedError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub reason: String,
}

/// Reads a file; empty lines and lines that begin with `#` are passed.
///
/// # Errors
/// The first line that is not understood.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Published>, PublishedError> {
    let failed = |line: usize, reason: String| PublishedError { file: file.to_string(), line, reason };
    let mut published = Vec::new();
    let mut headed = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if !headed {
            if line != HEADER {
                return Err(failed(index + 1, format!("found '{line}', expected the header '{HEADER}'")));
            }
            headed = true;
            continue;
        }
        published.push(record(line).map_err(|reason| failed(index + 1, reason))?);
    }
    if headed { Ok(published) } else { Err(failed(1, format!("found no line, expected the header '{HEADER}'"))) }
}

fn record(line: &str) -> Result<Published, String> {
    let fields = fields(line)?;
    let count = fields.len();
    let [figure, workload, page_size, setting, series, value, unit, place] =
        <[String; 8]>::try_from(fields).map_err(|_| format!("found {count} fields, expected 8: {HEADER}"))?;
    for (name, field) in [("figure", &figure), ("workload", &workload), ("series", &series), ("where", &place)] {
        if field.is_empty() {
            return Err(format!("{name}: found nothing, expected a name (or, for where, a place in the paper)"));
        }
    }
    let value = span(&value)?;
    Ok(Published { figure, workload, page_size, setting, series, value, unit, place })
}

fn span(text: &str) -> Result<Span, String> {
    let refused = || format!("value: found '{text}', expected a number, or a range such as 4.5..10.6, ..39.5 or 8..");
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).ok().filter(|n: &Option<f64>| n.is_some_and(f64::is_finite)).ok_or_else(refused),
    };
    let span = match text.split_once("..") {
        Some((low, high)) => Span { low: number(low)?, high: number(high)? },
        None => Span { low: number(text)?, high: number(text)? },
    };
    match (span.low, span.high) {
        (None, None) => Err(refused()),
        (Some(low), Some(high)) if low > high => {
            Err(format!("value: found '{text}', expected the lesser end of the range first"))
        }
        _ => Ok(span),
    }
}

/// The fields of a line (RFC 4180, without line breaks in a field).
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars().peekable();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        let begun = fields.last().is_some_and(|field| !field.is_empty());
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                push(&mut fields, '"');
            }
            '"' if quoted || !begun => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => push(&mut fields, letter),
        }
    }
    if quoted { Err("found a quote that is not closed".to_string()) } else { Ok(fields) }
}

fn push(fields: &mut [String], letter: char) {
    if let Some(field) = fields.last_mut() {
        field.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: &str) -> Result<Span, String> {
        parse("f.csv", &format!("# a remark\n{HEADER}\n\nfigure01,all,8k,any,s,{value},%,\"here, \"\"there\"\"\"\n"))
            .map(|published| published[0].value)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_numbers_or_ranges_and_print_as_the_paper_says_them() {
        for (text, shown) in
            [("8", "8"), ("8..15.1", "8 to 15.1"), ("..39.5", "up to 39.5"), ("-4.5..", "at least -4.5")]
        {
            assert_eq!(one(text).expect("a value").to_string(), shown);
        }
        let range = one("8..15.1").expect("a range");
        assert!(range.holds(8.0) && range.holds(15.1) && range.holds(15.14) && !range.holds(15.2) && !range.holds(7.9));
        assert!(one("..39.5").expect("a range").holds(-100.0));
        let (printed, whole) = (one("99.1").expect("a value"), one("18").expect("a value"));
        assert!(printed.holds(99.14) && !printed.holds(98.9) && whole.holds(18.4) && !whole.holds(18.6));
        assert!(!one("..1").expect("a range").holds(1.1), "below one is not rounded");
    }

    #[test]
    fn what_is_wrong_is_named_with_file_and_line() {
        assert!(one("8..x").is_err_and(|error| error.starts_with("f.csv, line 4: value: found '8..x'")));
        assert!(one("15..8").is_err_and(|error| error.contains("lesser end")));
        assert!(one("..").is_err());
        assert!(one("inf").is_err());
        assert!(one("NaN").is_err());
        let error = |text: &str| parse("g.csv", text).expect_err("it is wrong").to_string();
        assert_eq!(error("a,b\n"), format!("g.csv, line 1: found 'a,b', expected the header '{HEADER}'"));
        assert!(error("").contains("found no line"));
        assert!(error(&format!("{HEADER}\na,b,c\n")).starts_with("g.csv, line 2: found 3 fields, expected 8"));
        assert!(error(&format!("{HEADER}\na,,c,d,e,1,f,g\n")).contains("workload: found nothing"));
        assert!(error(&format!("{HEADER}\na,b,c,d,e,1,f,\"g\n")).contains("not closed"));
    }

    #[test]
    fn quotes_and_commas_in_a_field_survive() {
        let text = format!("{HEADER}\nfigure01,all,8k,any,s,1,%,\"here, \"\"there\"\"\"\n");
        assert_eq!(parse("f.csv", &text).expect("it is right")[0].place, "here, \"there\"");
    }
}
