//! A trace as a user names it: a path, perhaps with options before it.
//!
//! `fin1.spc`, `format=msr:/traces/hm_0.csv.gz`, `format=blkparse,event=D,device=8,16:run.txt`. The part before the
//! first colon is options when every `key=` in it is a known one; a file whose name looks like that is written `./name`.

use ssdlab_base::{SECTOR_BYTES, closest, parse_size};

use super::format::TraceFormat;
use super::reorder;
use crate::WorkloadError;

/// Which point of a request's life in the block layer counts as its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Q: the program's request reaches the block layer.
    Queue,
    /// G: a request structure was found for it.
    Get,
    /// I: inserted in the I/O scheduler's queue.
    Insert,
    /// D: sent to the drive.
    Dispatch,
    /// C: completed.
    Complete,
}

impl Event {
    /// In the order in which one is looked for when none was named.
    pub(super) const ALL: [Event; 5] = [Event::Queue, Event::Dispatch, Event::Insert, Event::Get, Event::Complete];

    pub(super) fn letter(self) -> char {
        match self {
            Event::Queue => 'Q',
            Event::Get => 'G',
            Event::Insert => 'I',
            Event::Dispatch => 'D',
            Event::Complete => 'C',
        }
    }
}

/// The order requests are sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As the file has them.
    File,
    /// By their stamps, within a window.
    Time,
}

/// Everything that can stand before a trace's path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(super) format: Option<TraceFormat>,
    /// Nanoseconds in a unit of the trace's stamps.
    pub(super) time_unit: Option<u64>,
    pub(super) device: Option<String>,
    pub(super) event: Option<Event>,
    pub(super) order: Option<Order>,
    pub(super) skip_bad: bool,
    /// Bytes of the groups that are sorted by address.
    pub(super) reorder: Option<u64>,
    /// Bytes that are added to every address.
    pub(super) shift: i64,
}

/// What an address can be shifted by, in bytes.
const SHIFT: std::ops::RangeInclusive<u64> = 0..=1 << 40;

/// The keys.
const NAMES: [&str; 8] = ["format", "device", "event", "time", "order", "skip_bad", "reorder", "shift"];

/// The keys, with what each takes, for messages.
const KEYS: &str = "format=NAME, device=NAME or device=#N, event=Q|G|I|D|C, time=ns|100ns|us|ms|s, order=file|time, \
                    skip_bad=yes|no, reorder=SIZE, shift=SIZE";

impl Options {
    /// Splits options and path; the whole text is a path if it does not begin with options.
    pub(super) fn split(spec: &str) -> Result<(Options, &str), WorkloadError> {
        let known = |part: &str| part.split_once('=').is_some_and(|(key, _)| NAMES.contains(&key));
        match spec.split_once(':') {
            Some((head, path)) if head.split(',').next().is_some_and(known) => {
                if path.is_empty() {
                    return Err(WorkloadError(format!("`{spec}` has options but no path after the colon")));
                }
                Ok((Options::parse(head)?, path))
            }
            None if spec.split(',').next().is_some_and(known) => Err(WorkloadError(format!(
                "`{spec}` has options but no path; expected `{spec}:PATH` (a file of that name is written `./{spec}`)"
            ))),
            _ => Ok((Options::default(), spec)),
        }
    }

    /// The options alone, such as `format=spc,device=0`.
    pub(super) fn parse(text: &str) -> Result<Options, WorkloadError> {
        let mut options = Options::default();
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match (part.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key, value.to_string())),
                // A device of a block trace is `8,16`: its second half has no key.
                (None, Some(("device", value))) => {
                    value.push(',');
                    value.push_str(part);
                }
                (None, _) => return Err(unknown(part, "an option")),
            }
        }
        for (position, (key, value)) in pairs.iter().enumerate() {
            if pairs[..position].iter().any(|(earlier, _)| earlier == key) {
                return Err(WorkloadError(format!("the option `{key}` is given twice before the trace's path")));
            }
            options.set(key, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        match key {
            "format" => self.format = Some(TraceFormat::named(value)?),
            "device" if value.is_empty() => return Err(WorkloadError("`device=` names no device".into())),
            "device" => self.device = Some(value.to_string()),
            "event" => {
                let found = Event::ALL
                    .into_iter()
                    .find(|event| value.eq_ignore_ascii_case(event.letter().encode_utf8(&mut [0; 4])));
                self.event = Some(found.ok_or_else(|| unknown(value, "an event"))?);
            }
            "time" => {
                self.time_unit = Some(match value {
                    "ns" => 1,
                    "100ns" => 100,
                    "us" => 1_000,
                    "ms" => 1_000_000,
                    "s" => 1_000_000_000,
                    _ => return Err(unknown(value, "a unit of time")),
                });
            }
            "order" => {
                self.order = Some(match value {
                    "file" => Order::File,
                    "time" => Order::Time,
                    _ => return Err(unknown(value, "an order")),
                });
            }
            "reorder" => {
                let bytes = parse_size(value).map_err(|error| WorkloadError(format!("`reorder={value}`: {error}")))?;
                if !reorder::BYTES.contains(&bytes) {
                    return Err(WorkloadError(format!("`reorder={value}`: expected 512 to 1g")));
                }
                self.reorder = Some(bytes);
            }
            "shift" => {
                let (sign, size) = value.strip_prefix('-').map_or((1, value), |size| (-1, size));
                let bytes = parse_size(size).map_err(|error| WorkloadError(format!("`shift={value}`: {error}")))?;
                if !SHIFT.contains(&bytes) || bytes % SECTOR_BYTES != 0 {
                    return Err(WorkloadError(format!(
                        "`shift={value}`: expected a multiple of 512 from -1t to 1t, such as 512 or -31.5k"
                    )));
                }
                self.shift = sign * bytes as i64;
            }
            "skip_bad" => {
                self.skip_bad = match value {
                    "yes" | "true" | "1" => true,
                    "no" | "false" | "0" => false,
                    _ => return Err(unknown(value, "yes or no")),
                };
            }
            _ => {
                let meant = closest(key, NAMES).map_or(String::new(), |name| format!("; did you mean '{name}='?"));
                return Err(WorkloadError(format!("{}{meant}", unknown(key, "an option"))));
            }
        }
        Ok(())
    }

    /// What to write instead of `spec`, which is no file: options after the path, or a misspelt one.
    pub(super) fn meant(spec: &str) -> Option<String> {
        let head = spec.split_once(':').map_or(spec, |(head, _)| head);
        let keys = head.split(',').filter_map(|part| part.split_once('=')).map(|(key, _)| key);
        let (key, name) = keys.filter_map(|key| closest(key, NAMES).map(|name| (key, name))).next()?;
        Some(if key == name {
            format!("options stand before a trace's path, as in '{name}=...:PATH'")
        } else {
            format!(
                "found '{key}=', expected before a trace's path some of {KEYS}; did you mean '{name}=', as in \
                 '{name}=...:PATH'?"
            )
        })
    }
}

#[cold]
fn unknown(found: &str, kind: &str) -> WorkloadError {
    WorkloadError(format!("`{found}` before a trace's path is not {kind}; expected some of {KEYS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_a_path_even_with_colons_and_equals_signs_in_it() {
        for path in ["a.csv", "/x/a:b.csv", "./format=csv:x", "dir/time=3.csv", "run-a=b:c", "x=1,device=2:y"] {
            let (options, rest) = Options::split(path).expect(path);
            assert_eq!(rest, path);
            assert!(options.format.is_none());
        }
    }

    #[test]
    fn options_stand_before_the_first_colon() {
        let (options, path) =
            Options::split("format=blkparse,event=d,device=8,16,order=file:/x/run:1.txt").expect("ok");
        assert_eq!(path, "/x/run:1.txt");
        assert_eq!(options.format.map(TraceFormat::name), Some("blkparse"));
        assert_eq!(options.event, Some(Event::Dispatch));
        assert_eq!(options.device.as_deref(), Some("8,16"));
        assert_eq!(options.order, Some(Order::File));
    }

    #[test]
    fn unknown_options_and_values_list_the_known_ones() {
        for (bad, word) in [
            ("format=msrr:x", "msr"),
            ("format=msr,evnt=Q:x", "did you mean 'event='?"),
            ("time=min:x", "100ns"),
            ("event=Z:x", "Q|G|I|D|C"),
            ("format=msr,format=spc:x", "twice"),
            ("format=msr:", "no path"),
            ("format=msr", "no path"),
            ("device=:x", "names no device"),
            ("reorder=0:x", "512 to 1g"),
            ("reorder=2g:x", "512 to 1g"),
            ("reorder=much:x", "reorder=much"),
            ("skip_bad=perhaps:x", "yes|no"),
        ] {
            let error = Options::split(bad).expect_err(bad).to_string();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}
