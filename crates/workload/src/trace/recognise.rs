//! Which format a trace is in, told by its first bytes and lines.
//!
//! Binary formats have magic numbers. For text, the first lines (up to 1,000, within 256 KiB) are given to every
//! format's decoder; the one that takes the most of them wins, and one that takes fewer than half of them, or finds no
//! request, is out. A malformed line is therefore an error at that line later on, not a trace of no known format.
//! The five-column formats, which no single line tells apart, have rules of their own.

use ssdlab_base::other_encoding;

use super::format::{CSV_HEADER, Told, TraceFormat, is_blktrace, recognise_five_columns, vscsi_version};
use super::options::{Event, Options};
use super::record::{Decoded, quote};
use super::source::Source;
use crate::WorkloadError;

const BYTES: usize = 256 << 10;
const LINES: usize = 1_000;

/// The format, and what to tell the user about the choice.
pub(super) fn recognise(source: &mut Source, name: &str) -> Result<(TraceFormat, Vec<String>), WorkloadError> {
    let shown = source.peek(BYTES)?;
    let head = shown.to_vec();
    let whole = source.peeked_all(head.len());
    if head.is_empty() {
        return Err(WorkloadError(format!("{name} is empty; expected a trace with at least one request")));
    }
    if is_blktrace(&head) {
        return Ok((TraceFormat::BLKTRACE, Vec::new()));
    }
    if vscsi_version(&head).is_some() {
        return Ok((TraceFormat::VSCSI, Vec::new()));
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    if let Some(encoding) = other_encoding(&head) {
        return Err(WorkloadError(format!("{name}: found text in {encoding}, expected a trace in UTF-8")));
    }
    if let Some(at) = memchr::memchr(0, text) {
        return Err(WorkloadError(format!(
            "{name} is in no binary format known here: it begins with {}, and byte {at} is zero, so it is no text; {}",
            bytes_shown(&head),
            known()
        )));
    }
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').take(LINES + 1).collect();
    // The last piece is a line of its own only where the file ends there.
    if lines.len() > 1 && (!whole || lines.len() > LINES) {
        lines.pop();
    }
    let lines: Vec<&[u8]> = lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty())
        .collect();
    if lines.first().is_some_and(|line| line.starts_with(b"fio version 2 iolog")) {
        return Ok((TraceFormat::FIO_V2, Vec::new()));
    }
    if lines.first().is_some_and(|line| line.starts_with(b"fio version 3 iolog")) {
        return Ok((TraceFormat::FIO_V3, Vec::new()));
    }
    if lines.first().is_some_and(|line| line.trim_ascii() == b"BeginHeader") {
        return Ok((TraceFormat::MS_ETW, Vec::new()));
    }
    // A head that only our CSV has: what is wrong with a row below it is told at the row.
    let mut rows = lines.iter().filter(|line| !line.starts_with(b"#"));
    if rows.next().is_some_and(|line| line.trim_ascii() == CSV_HEADER.as_bytes()) && rows.next().is_some() {
        return Ok((TraceFormat::CSV, Vec::new()));
    }
    if let Some(found) = recognise_five_columns(&lines) {
        return Ok(found);
    }
    let mut best: Option<(u64, TraceFormat)> = None;
    let mut equals = Vec::new();
    for format in TraceFormat::all() {
        if format.spec().told != Told::ByLines {
            continue;
        }
        let Some(taken) = score(format, &lines) else { continue };
        match best {
            Some((most, _)) if taken < most => {}
            Some((most, _)) if taken == most => equals.push(format),
            _ => {
                best = Some((taken, format));
                equals.clear();
            }
        }
    }
    match best {
        Some((_, format)) if equals.is_empty() => Ok((format, Vec::new())),
        Some((_, format)) => {
            let others: Vec<&str> = equals.iter().map(|other| other.name()).collect();
            let note = format!(
                "recognised as {format}; it could also be {}, say `format=` before the path if so",
                others.join(" or ")
            );
            Ok((format, vec![note]))
        }
        None => {
            let first = lines.first().copied().unwrap_or_default();
            let is_request = |line: &&[u8]| !line.starts_with(b"#") && line.trim_ascii() != CSV_HEADER.as_bytes();
            if whole && !lines.is_empty() && !lines.iter().any(is_request) {
                return Err(WorkloadError(format!(
                    "{name} has no request in it, only the header of a CSV or comments; expected lines such as \
                     `12.5,W,4096,8192` below `{CSV_HEADER}`"
                )));
            }
            let found = match first.trim_ascii().is_empty() {
                true => "an empty first line".to_string(),
                false => format!("the first line {}", quote(first)),
            };
            Err(WorkloadError(format!("{name}: the trace format is not recognised: found {found}, {}", known())))
        }
    }
}

/// Lines the format takes, if it could be it at all.
fn score(format: TraceFormat, lines: &[&[u8]]) -> Option<u64> {
    // Any event will do to recognise a format by.
    let events: &[Option<Event>] =
        if format.spec().events { &[Some(Event::Queue), Some(Event::Dispatch)] } else { &[None] };
    let mut best = None;
    for &event in events {
        let options = Options { event, ..Options::default() };
        let mut decoder = format.decoder(&options);
        let (mut taken, mut requests) = (0_u64, 0_u64);
        for line in lines {
            match decoder.decode(line) {
                Ok(Decoded::One(_) | Decoded::Two(..) | Decoded::Command(_)) => {
                    taken += 1;
                    requests += 1;
                }
                Ok(_) => taken += 1,
                Err(_) => {}
            }
        }
        if requests > 0 && taken * 2 >= lines.len() as u64 {
            best = best.max(Some(taken));
        }
    }
    best
}

fn known() -> String {
    let names = TraceFormat::all().map(TraceFormat::name).collect::<Vec<_>>().join(", ");
    format!("expected one of {names} (plain, gzip, zstd, xz or bzip2), or `format=NAME:PATH` to force one")
}

fn bytes_shown(head: &[u8]) -> String {
    let bytes: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}
