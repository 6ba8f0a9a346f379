//! A model as data: arrivals, classes of requests, and the published figures that they have to meet.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use ssdlab_base::{Op, SECTOR_BYTES, parse_size, read_text};

use super::arrivals::Arrivals;
use crate::WorkloadError;

/// Name and text of each model that ships.
const SHIPPED: [(&str, &str); 8] = [
    ("cfs", include_str!("../../models/cfs.toml")),
    ("dtr", include_str!("../../models/dtr.toml")),
    ("ex", include_str!("../../models/ex.toml")),
    ("financial1", include_str!("../../models/financial1.toml")),
    ("financial2", include_str!("../../models/financial2.toml")),
    ("msnfs", include_str!("../../models/msnfs.toml")),
    ("ra", include_str!("../../models/ra.toml")),
    ("web", include_str!("../../models/web.toml")),
];

/// The longest file, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;

/// A figure that is known of the trace, and how far the model may be from it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// `write_percent`, `unaligned_4k_percent` (or 8k, 16k), `read_bytes_mean`, `write_bytes_mean`,
    /// `sequential_write_percent` or `requests_per_second`, as `trace stats` counts them.
    pub figure: String,
    /// What was published.
    pub value: f64,
    /// How far a model of a million requests may be from it.
    pub within: f64,
    /// Where it was published, or that it is ours.
    pub source: String,
}

/// Lengths with their shares; a range is uniform over its multiples of 512.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// Up to this share of the draws, from 0 to 1.
    pub(super) up_to: f64,
    pub(super) low_sectors: u64,
    pub(super) high_sectors: u64,
}

/// One kind of request.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Up to this share of the requests, from 0 to 1.
    pub(super) up_to: f64,
    pub(super) op: Op,
    pub(super) lengths: Vec<Length>,
    pub(super) align: u64,
    pub(super) offset: u64,
    /// Front and end of its part of the footprint, as shares.
    pub(super) region: (f64, f64),
    pub(super) theta: f64,
    /// The chance that a request goes on where the last of its class ended.
    pub(super) goes_on: f64,
}

/// A model, read and checked.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// One line on what it models.
    pub summary: String,
    /// Where its numbers come from, over all.
    pub source: String,
    /// Requests, unless another number is asked for.
    pub requests: u64,
    /// Bytes that its addresses span.
    pub footprint: u64,
    /// When requests come.
    pub arrivals: Arrivals,
    /// What it has to meet.
    pub stated: Vec<Stated>,
    pub(super) classes: Vec<Class>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OpText {
    Read,
    Write,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassText {
    name: String,
    op: OpText,
    percent: f64,
    sizes: BTreeMap<String, f64>,
    align: String,
    #[serde(default)]
    offset: Option<String>,
    #[serde(default)]
    region: Option<[f64; 2]>,
    #[serde(default)]
    theta: f64,
    #[serde(default = "one")]
    run: f64,
    source: String,
}

fn one() -> f64 {
    1.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    name: String,
    summary: String,
    source: String,
    requests: u64,
    footprint: String,
    arrivals: Arrivals,
    class: Vec<ClassText>,
    #[serde(default)]
    stated: Vec<Stated>,
}

/// The models that ship.
pub(super) fn shipped() -> impl Iterator<Item = Description> {
    SHIPPED
        .iter()
        .map(|(name, text)| Description::parse(text, &format!("{name}.toml")).expect("what ships is read by a test"))
}

/// Their names.
pub(super) fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The model of a name or in a file; nothing if there is neither.
pub(super) fn open(text: &str) -> Result<Option<Description>, WorkloadError> {
    if let Some((name, content)) = SHIPPED.iter().find(|(name, _)| *name == text) {
        return Description::parse(content, &format!("{name}.toml")).map(Some);
    }
    let path = Path::new(text);
    if !text.contains(['/', '\\']) && path.extension().is_none() && !path.is_file() {
        return Ok(None);
    }
    let failed = |why: String| WorkloadError(format!("{text}: {why}"));
    let content = read_text(path, LONGEST_TEXT, "a model").map_err(|error| failed(error.to_string()))?;
    Description::parse(&content, text).map(Some)
}

fn sectors(key: &str, text: &str) -> Result<u64, WorkloadError> {
    match parse_size(text) {
        Ok(bytes) if bytes.is_multiple_of(SECTOR_BYTES) && bytes <= 1 << 60 => Ok(bytes / SECTOR_BYTES),
        Err(why) if why.ambiguous => Err(WorkloadError(format!("{key}: {why}"))),
        _ => Err(WorkloadError(format!("{key}: found '{text}', expected a multiple of 512 bytes, such as 8k"))),
    }
}

impl Description {
    /// Reads a model from TOML; `file` is what messages call it.
    ///
    /// # Errors
    /// Text that is no TOML, unknown keys, values out of range, classes that are not all requests together.
    pub fn parse(text: &str, file: &str) -> Result<Description, WorkloadError> {
        let failed = |why: String| WorkloadError(format!("{file}: {why}"));
        let read: FileText = toml::from_str(text).map_err(|error| failed(error.to_string().trim_end().to_string()))?;
        let total: f64 = read.class.iter().map(|class| class.percent).sum();
        if !(99.99..100.01).contains(&total) {
            return Err(failed(format!("[[class]] percent: found {total} in all, expected 100")));
        }
        let mut up_to = 0.0;
        let mut classes = Vec::with_capacity(read.class.len());
        for class in &read.class {
            up_to += class.percent / total;
            let place = |error: WorkloadError| failed(format!("[[class]] '{}' {error}", class.name));
            classes.push(read_class(class, up_to).map_err(place)?);
        }
        if let Some(last) = classes.last_mut() {
            last.up_to = 1.0;
        }
        let description = Description {
            name: read.name,
            summary: read.summary,
            source: read.source,
            requests: read.requests,
            footprint: sectors("footprint", &read.footprint).map_err(|error| failed(error.0))? * SECTOR_BYTES,
            arrivals: read.arrivals,
            stated: read.stated,
            classes,
        };
        description.check().map_err(|error| failed(error.0))?;
        Ok(description)
    }

    /// Whether everything fits together, behind all overrides.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        self.arrivals.check()?;
        if self.requests == 0 {
            return Err(WorkloadError("requests: found 0, expected at least 1".into()));
        }
        for class in &self.classes {
            if class.places(self.footprint / SECTOR_BYTES) == 0 {
                return Err(WorkloadError(format!(
                    "footprint: found {} bytes, which leaves no room for a request of {} sectors in {} to {} % of it",
                    self.footprint,
                    class.longest(),
                    class.region.0 * 100.0,
                    class.region.1 * 100.0
                )));
            }
        }
        Ok(())
    }
}

fn read_class(text: &ClassText, up_to: f64) -> Result<Class, WorkloadError> {
    let refused =
        |key: &str, found: f64, expected: &str| WorkloadError(format!("{key}: found {found}, expected {expected}"));
    if text.source.trim().is_empty() {
        return Err(WorkloadError("source: found nothing, expected where the numbers come from".into()));
    }
    if !(0.0..=100.0).contains(&text.percent) {
        return Err(refused("percent", text.percent, "a share of all requests from 0 to 100"));
    }
    if !(0.0..=10.0).contains(&text.theta) {
        return Err(refused("theta", text.theta, "0 (uniform) to 10"));
    }
    if !(1.0..=1e12).contains(&text.run) {
        return Err(refused("run", text.run, "a mean number of requests from 1"));
    }
    let [from, to] = text.region.unwrap_or([0.0, 100.0]);
    if !(0.0 <= from && from < to && to <= 100.0) {
        return Err(WorkloadError(format!("region: found [{from}, {to}], expected [from, to] in percent")));
    }
    let align = sectors("align", &text.align)?;
    if align == 0 {
        return Err(WorkloadError("align: found 0, expected at least 512".into()));
    }
    let offset = text.offset.as_ref().map_or(Ok(0), |offset| sectors("offset", offset))?;
    let total: f64 = text.sizes.values().sum();
    let mut share = 0.0;
    let mut lengths = Vec::with_capacity(text.sizes.len());
    for (size, &weight) in &text.sizes {
        let (low, high) = size.split_once('-').unwrap_or((size, size));
        let (low, high) = (sectors("sizes", low)?, sectors("sizes", high)?);
        if low == 0 || high < low || high > 1 << 21 {
            return Err(WorkloadError(format!("sizes: found '{size}', expected 512 or more, at most 1g")));
        }
        if !(0.0..=1e9).contains(&weight) {
            return Err(refused("sizes", weight, "a share of 0 or more"));
        }
        if text.run > 1.0 && align > 1 && (!low.is_multiple_of(align) || !high.is_multiple_of(align)) {
            return Err(WorkloadError(format!(
                "sizes: found '{size}', expected multiples of align where run is above 1"
            )));
        }
        share += weight / total;
        lengths.push(Length { up_to: share, low_sectors: low, high_sectors: high });
    }
    match lengths.last_mut() {
        Some(last) if total > 0.0 => last.up_to = 1.0,
        _ => return Err(WorkloadError("sizes: found none, expected some, such as { \"8k\" = 100 }".into())),
    }
    Ok(Class {
        up_to,
        op: match text.op {
            OpText::Read => Op::Read,
            OpText::Write => Op::Write,
        },
        lengths,
        align,
        offset,
        region: (from / 100.0, to / 100.0),
        theta: text.theta,
        goes_on: 1.0 - 1.0 / text.run,
    })
}

impl Class {
    /// The longest request, in sectors.
    pub(super) fn longest(&self) -> u64 {
        self.lengths.iter().map(|length| length.high_sectors).max().unwrap_or(0)
    }

    /// The first and the last sector of its region.
    pub(super) fn bounds(&self, footprint_sectors: u64) -> (u64, u64) {
        let at = |share: f64| (footprint_sectors as f64 * share) as u64 / self.align * self.align;
        (at(self.region.0), at(self.region.1))
    }

    /// Places where its requests can begin.
    pub(super) fn places(&self, footprint_sectors: u64) -> u64 {
        let (from, to) = self.bounds(footprint_sectors);
        let needed = from + self.offset + self.longest();
        if to < needed { 0 } else { (to - needed) / self.align + 1 }
    }
}
