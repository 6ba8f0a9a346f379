//! The CSV that Saleae's Logic exports: a head with the channels' names, then a row for each change (Logic 2), or for
//! each change or sample with the number of the sample (Logic 1).

use super::super::input::Input;
use super::{CaptureError, Column, Format, Head, LINES_MAX, Select, Stamp, quote};

const EXPECTED: &str = "expected a head such as `Time [s],Channel 0,Channel 1`";

/// Whether a first row is that of Saleae's Logic, or of a program that writes as it does: a time in seconds, or samples.
pub(super) fn is_head(row: &str) -> bool {
    let first = row.split(',').next().unwrap_or_default().trim().trim_matches('"').to_ascii_lowercase();
    (first.starts_with("time") && first != "time") || first.starts_with("sample")
}

/// Takes the first row, which has this length.
pub(super) fn head(input: &mut Input, length: usize, row: &str, select: &Select) -> Result<Head, CaptureError> {
    let mut names = cells(row).map_err(|(cell, what)| {
        input.at(0, format!("the head's cell {cell} {what}; {EXPECTED}, names with commas in quotes"))
    })?;
    let first = names.remove(0);
    if names.is_empty() || names.len() > LINES_MAX {
        return Err(input.at(0, format!("the file begins with {}; {EXPECTED}, a VCD, or a .sr", quote(row.as_bytes()))));
    }
    let stamp = if first.to_ascii_lowercase().starts_with("time") {
        Stamp::Seconds
    } else {
        match select.sample_rate {
            Some(rate) if rate > 0 => Stamp::Samples(rate),
            _ => return Err(input.at(0, "the rows are numbered by sample: say how many a second with --sample-rate")),
        }
    };
    input.take(length);
    let columns = names.into_iter().map(|name| Column { name, wanted: true }).collect();
    Ok(Head { format: Format::SaleaeCsv, separator: b',', stamp, columns, notes: Vec::new() })
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

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn names_in_quotes_hold_commas_and_quotes() {
        let names = |head: &str| cells(head).expect("a good head").join("|");
        assert_eq!(names("Time [s],a,b"), "Time [s]|a|b");
        assert_eq!(names(r#""Time [s]","RB, die 0" , "say ""R/B""", plain"#), r#"Time [s]|RB, die 0|say "R/B"|plain"#);
        assert_eq!(names(r#"Time [s],"",5" bus,"#), r#"Time [s]||5" bus|"#);
        assert_eq!(cells(r#"Time [s],"RB, die 0"#), Err((2, "has a quote without end")));
        assert_eq!(cells(r#"Time [s],a,"b"c"#), Err((3, "goes on behind its closing quote")));
    }
}
