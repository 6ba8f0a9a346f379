//! sigrok sessions (`.sr`): a zip archive with `metadata`, an ini file, and the samples in members `logic-1-1`,
//! `logic-1-2`..., each sample `unitsize` bytes, the first probe in the lowest bit.

use std::io::Read;

use ssdlab_base::Nanos;
use ssdlab_workload::Archive;
use zip::ZipArchive;

use super::input::read_full;
use super::{BATCH, Body as AnyBody, Capture, CaptureError, Decoded, Format, Place, ReadSeek, Select, Sink, choose};
use crate::Edge;

/// The longest metadata that is read.
const METADATA_MAX: u64 = 1 << 20;
/// The widest sample: 64 probes.
const UNIT_MAX: usize = 8;
/// Bytes of samples looked at together; a multiple of every unit size.
const BUFFER: usize = 840 << 10;

/// The samples.
pub(super) struct Body {
    name: String,
    archive: ZipArchive<Box<dyn ReadSeek>>,
    /// Members with samples, in order.
    members: Vec<String>,
    unit: usize,
    rate: u64,
    /// For each bit of a sample, the line it is.
    bits: Vec<Option<u32>>,
    invert: bool,
}

/// What `metadata` says.
#[derive(Default)]
struct Metadata {
    capture_file: Option<String>,
    rate: Option<u64>,
    unit: Option<usize>,
    probes: Vec<(usize, String)>,
}

pub(super) fn open(name: String, source: Box<dyn ReadSeek>, select: &Select) -> Result<Capture, CaptureError> {
    let fail = |what: String| CaptureError { name: name.clone(), place: Place::Whole, what };
    let mut archive = ZipArchive::new(source).map_err(|error| {
        let hint = "a file that was cut off has lost its list of members, which is at its end";
        fail(format!("the zip archive is damaged: {error} ({hint})"))
    })?;
    if archive.index_for_name("metadata").is_none() {
        let hint = if archive.index_for_name("meta.json").is_some() {
            "this is a project of Saleae Logic: export it as CSV or VCD (File, Export Raw Data)".to_string()
        } else {
            format!(
                "this is a zip archive without a member `metadata`; expected a sigrok session, or a capture of another kind: \
                 unpack that, as in `{} > CAPTURE`; if there are several files in it, name the one that is meant behind the \
                 archive's name",
                Archive::Zip.unpack(None, Some(&name))
            )
        };
        return Err(fail(hint));
    }
    let text = {
        let member = archive.by_name("metadata").map_err(|error| fail(format!("metadata: {error}")))?;
        let mut text = Vec::new();
        member.take(METADATA_MAX + 1).read_to_end(&mut text).map_err(|error| fail(format!("metadata: {error}")))?;
        if text.len() as u64 > METADATA_MAX {
            return Err(fail(format!("its metadata are longer than {METADATA_MAX} bytes; expected a sigrok session")));
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let metadata = metadata(&text).map_err(|(line, what)| fail(format!("line {line} of its metadata: {what}")))?;
    let missing = |key: &str| fail(format!("its metadata have no {key}; expected a session with logic samples"));
    let file = metadata.capture_file.ok_or_else(|| missing("capturefile"))?;
    let rate = metadata.rate.ok_or_else(|| missing("samplerate"))?;
    let unit = metadata.unit.unwrap_or(1);
    let (places, names): (Vec<usize>, Vec<String>) = metadata.probes.into_iter().unzip();
    if names.is_empty() {
        return Err(missing("probe1"));
    }
    if let Some(place) = places.iter().find(|&&place| place > unit * 8) {
        return Err(fail(format!("its metadata have a probe{place}, and a sample has {} bits", unit * 8)));
    }
    let chosen = if select.lines.is_empty() {
        (0..names.len()).collect()
    } else {
        choose(&names, &select.lines).map_err(|error| fail(error.to_string()))?
    };
    let mut bits = vec![None; unit * 8];
    for (line, &index) in chosen.iter().enumerate() {
        bits[places[index] - 1] = Some(line as u32);
    }
    let lines = chosen.iter().map(|&index| names[index].clone()).collect();
    let members = members(&archive, &file).map_err(&fail)?;
    let resolution = Some(Nanos((1_000_000_000 / rate).max(1)));
    let body = Body { name, archive, members, unit, rate, bits, invert: select.invert };
    Ok(Capture { format: Format::Sigrok, lines, resolution, notes: Vec::new(), body: AnyBody::Sigrok(body) })
}

/// The members with samples: `FILE`, or `FILE-1`, `FILE-2`..., none left out.
fn members(archive: &ZipArchive<Box<dyn ReadSeek>>, file: &str) -> Result<Vec<String>, String> {
    if archive.index_for_name(file).is_some() {
        return Ok(vec![file.to_string()]);
    }
    let part = |name: &[u8]| {
        let number = name.strip_prefix(file.as_bytes())?.strip_prefix(b"-")?;
        std::str::from_utf8(number).ok()?.parse::<u32>().ok()
    };
    let last = archive.file_names_raw().filter_map(part).max();
    let last = last.ok_or_else(|| format!("it has no samples: expected a member {file}-1"))?;
    let names = (1..=last).map(|part| format!("{file}-{part}"));
    names
        .map(|name| match archive.index_for_name(&name) {
            Some(_) => Ok(name),
            None => Err(format!("the samples have a gap: it has a member {file}-{last} and no {name}")),
        })
        .collect()
}

/// Reads the first device of the ini file; errors have their line.
fn metadata(text: &str) -> Result<Metadata, (usize, String)> {
    let mut metadata = Metadata::default();
    let mut device = 0;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let line = line.trim();
        if line.starts_with("[device") {
            device += 1;
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| device == 1) else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "capturefile" => metadata.capture_file = Some(value.to_string()),
            "samplerate" => {
                let rate = rate(value).ok_or_else(|| {
                    (
                        line_number,
                        format!("'{}' is not a sample rate; expected one such as 24 MHz", super::shorten(value)),
                    )
                })?;
                metadata.rate = Some(rate);
            }
            "unitsize" => {
                let unit = value.parse().ok().filter(|unit| (1..=UNIT_MAX).contains(unit));
                let unit = unit.ok_or_else(|| {
                    let found = super::shorten(value);
                    (line_number, format!("'{found}' is not a unit size; expected 1 to {UNIT_MAX} bytes a sample"))
                })?;
                metadata.unit = Some(unit);
            }
            _ => {
                let place = key.strip_prefix("probe").and_then(|place| place.parse().ok());
                if let Some(place) = place {
                    if !(1..=UNIT_MAX * 8).contains(&place) || metadata.probes.iter().any(|(other, _)| *other == place)
                    {
                        return Err((line_number, format!("probe{place} is there twice, or not from 1 to 64")));
                    }
                    metadata.probes.push((place, value.to_string()));
                }
            }
        }
    }
    Ok(metadata)
}

/// `24 MHz`, `200 kHz`, `1000000`: samples a second.
pub(super) fn rate(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let scale: u64 = match text[end..].trim() {
        "" | "Hz" => 1,
        "kHz" => 1_000,
        "MHz" => 1_000_000,
        "GHz" => 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    let mut rate = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut digit_scale = scale;
    for digit in fraction.bytes() {
        digit_scale /= 10;
        rate = rate.checked_add(u64::from(digit.wrapping_sub(b'0').min(9)) * digit_scale)?;
    }
    (rate > 0).then_some(rate)
}

/// Where the samples stand.
struct State {
    /// The number of the next sample.
    sample: u64,
    /// The sample before it.
    last: Option<u64>,
    edges: Vec<Edge>,
    decoded: Decoded,
}

impl Body {
    pub(super) fn decode(mut self, sink: Sink<'_>) -> Result<Decoded, CaptureError> {
        let mut state = State { sample: 0, last: None, edges: Vec::with_capacity(BATCH), decoded: Decoded::default() };
        let end = self.members(&mut state, sink);
        // Also those before damage.
        sink(&state.edges);
        end?;
        state.decoded.edges += state.edges.len() as u64;
        state.decoded.end = Nanos(time(state.sample.saturating_sub(1), self.rate).unwrap_or(u64::MAX));
        Ok(state.decoded)
    }

    /// Takes everything to the end.
    fn members(&mut self, state: &mut State, sink: Sink<'_>) -> Result<(), CaptureError> {
        let mut buffer = vec![0; BUFFER];
        let mut carried = 0;
        for name in std::mem::take(&mut self.members) {
            let fail = |byte: u64, what: String| CaptureError {
                name: self.name.clone(),
                place: Place::Member(name.clone(), byte),
                what,
            };
            let mut member = self.archive.by_name(&name).map_err(|error| fail(0, error.to_string()))?;
            let mut at = 0;
            loop {
                let (got, read) = read_full(&mut member, &mut buffer[carried..]);
                at += got as u64;
                let filled = carried + got;
                let whole = filled - filled % self.unit;
                samples(&self.bits, self.unit, self.invert, self.rate, &buffer[..whole], state, sink)
                    .ok_or_else(|| fail(at, "the time is beyond 584 years".to_string()))?;
                buffer.copy_within(whole..filled, 0);
                carried = filled - whole;
                read.map_err(|error| fail(at, format!("the samples cannot be unpacked behind this: {error}")))?;
                if got == 0 {
                    break;
                }
            }
        }
        if carried > 0 {
            return Err(CaptureError {
                name: self.name.clone(),
                place: Place::Whole,
                what: format!("the samples end in the middle of one: {carried} bytes are left of {}", self.unit),
            });
        }
        Ok(())
    }
}

#[inline]
fn time(sample: u64, rate: u64) -> Option<u64> {
    u64::try_from(u128::from(sample) * 1_000_000_000 / u128::from(rate)).ok()
}

/// Takes whole samples; nothing when time overflows.
fn samples(
    bits: &[Option<u32>],
    unit: usize,
    invert: bool,
    rate: u64,
    bytes: &[u8],
    state: &mut State,
    sink: Sink<'_>,
) -> Option<()> {
    let mask = bits.iter().enumerate().fold(0_u64, |mask, (bit, line)| mask | u64::from(line.is_some()) << bit);
    // Eight bytes at a time while nothing changes, where samples fill them evenly.
    let even = 8_usize.is_multiple_of(unit);
    let spread = |value: u64| (0..8 / unit).fold(0_u64, |word, place| word | value << (place * unit * 8));
    let wide_mask = if even { spread(mask) } else { 0 };
    let mut at = 0;
    while at < bytes.len() {
        let last = match state.last {
            Some(last) => last,
            None => *state.last.insert(sample(&bytes[..unit]) & mask),
        };
        if even {
            let same = spread(last);
            let from = at;
            for word in bytes[at..].chunks_exact(8) {
                if (sample(word) ^ same) & wide_mask != 0 {
                    break;
                }
                at += 8;
            }
            state.sample += ((at - from) / unit) as u64;
        }
        // Then one by one to the change, and over it.
        while at < bytes.len() {
            let value = sample(&bytes[at..at + unit]) & mask;
            at += unit;
            state.sample += 1;
            let mut changed = value ^ last;
            if changed == 0 {
                continue;
            }
            let now = Nanos(time(state.sample - 1, rate)?);
            while changed != 0 {
                let bit = changed.trailing_zeros() as usize;
                changed &= changed - 1;
                if let Some(line) = bits[bit] {
                    let high = (value >> bit & 1 == 1) != invert;
                    state.edges.push(Edge { at: now, die: line, busy: !high });
                }
            }
            state.last = Some(value);
            break;
        }
        if state.edges.len() >= BATCH {
            state.decoded.edges += state.edges.len() as u64;
            sink(&state.edges);
            state.edges.clear();
        }
    }
    Some(())
}

/// A sample of at most eight bytes, little-endian.
#[inline]
fn sample(bytes: &[u8]) -> u64 {
    match bytes {
        [one] => u64::from(*one),
        bytes if bytes.len() == 8 => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        bytes => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rates_are_read_as_sigrok_writes_them() {
        assert_eq!(rate("1 MHz"), Some(1_000_000));
        assert_eq!(rate("24 MHz"), Some(24_000_000));
        assert_eq!(rate("12.5 MHz"), Some(12_500_000));
        assert_eq!(rate("200kHz"), Some(200_000));
        assert_eq!(rate("500000"), Some(500_000));
        for bad in ["", "0", "MHz", "1 parsec", "99999999999 GHz"] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }
}
