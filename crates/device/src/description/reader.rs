//! Typed access to the tree by the tables of keys: every value is read through here, so every refusal names its place, its
//! key, what was found and what was expected. Descriptions of hosts are read in the same way.

use std::path::Path;

use ssdlab_base::{Nanos, QuantityError, closest, is_negative, parse_duration, parse_size};
use ssdlab_flash::Latency;

use super::controller::allocation;
use super::error::{DescriptionError, Place, listed, shown};
use super::errors::{Errors, MOST_ERRORS};
use super::key::{Default, Key, Kind, Words, hertz, of_word};
use super::quantity::{BILLION, parse_bandwidth, parse_bits, parse_frequency, parse_share};
use super::settings::Setting;
use super::tree::{Node, Origin, Table, Tree, Value};

/// A table of the description and the keys it may hold. A table that is not there reads as an empty one.
#[derive(Clone)]
pub struct Section<'t> {
    tree: &'t Tree,
    path: String,
    table: Option<&'t Table>,
    origin: Option<Origin>,
    known: Vec<&'static Key>,
}

/// One value of it.
#[derive(Clone)]
pub struct Field<'t> {
    tree: &'t Tree,
    path: String,
    node: &'t Node,
    key: &'static Key,
}

fn names(keys: &[&'static Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

impl<'t> Section<'t> {
    /// The whole description.
    pub fn root(tree: &'t Tree, keys: &'static [Key]) -> Section<'t> {
        Section { tree, path: String::new(), table: Some(&tree.root), origin: None, known: keys.iter().collect() }
    }

    /// The table under `key`.
    pub fn section(&self, key: &'static str) -> Result<Section<'t>, DescriptionError> {
        match self.get(key) {
            Some(field) => field.section(),
            None => Ok(Section {
                tree: self.tree,
                path: joined(&self.path, key),
                table: None,
                origin: None,
                known: self.key(key).keys(),
            }),
        }
    }

    /// The name of what the whole description describes: its key `name`, or else the stem of its file.
    ///
    /// # Errors
    /// The key, or the stem, is no name.
    pub fn described_name(&self) -> Result<String, DescriptionError> {
        if let Some(field) = self.get("name") {
            return field.own_name().map(str::to_string);
        }
        let most = super::keys::LONGEST_NAME;
        let stem = Path::new(&self.tree.file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        stem.filter(|name| super::is_name(name, most))
            .ok_or_else(|| self.error("name", format!("missing, expected {}", super::name_expected(most))))
    }

    /// Tells what is wrong with the keys of this table and of those below it, each by itself: unknown and missing ones, wrong
    /// types and values, two that exclude each other. Lists of tables are left to who reads them.
    pub fn check(&self, errors: &mut Errors) {
        if errors.is_full() {
            return;
        }
        self.check_names(errors);
        for key in &self.known {
            let field = self.get(key.name);
            match (&field, key.kind) {
                (None, Kind::Table(_) | Kind::Chosen(..)) => {
                    if let Some(section) = errors.keep(self.section(key.name)) {
                        section.check(errors);
                    }
                }
                (Some(field), _) => field.check(errors),
                (None, _) => {
                    if let Default::Required(expected) = key.default {
                        errors.missing(self.missing(key.name, expected));
                    }
                }
            }
        }
        errors.keep(self.refuse_both());
    }

    /// Tells of the keys in this table that it may not hold.
    pub fn check_names(&self, errors: &mut Errors) {
        let names = names(&self.known);
        let nodes = self.table.into_iter().flatten();
        let mut unknown: Vec<(&String, &Node)> = nodes.filter(|(key, _)| !names.contains(&key.as_str())).collect();
        unknown.sort_by_key(|(_, node)| node.key_origin);
        for (key, node) in unknown.into_iter().take(MOST_ERRORS) {
            let meant = closest(key, names.iter().copied());
            let elsewhere = if meant.is_none() { self.elsewhere(key) } else { None };
            let hint = meant.map(str::to_string).or(elsewhere);
            let hint = hint.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
            let is_absent = |name: &&str| self.table.is_none_or(|table| !table.contains_key(*name));
            let one_of = if names.len() > 1 { "one of " } else { "" };
            let error = DescriptionError {
                place: self.tree.place(node.key_origin),
                key: joined(&self.path, &shown(key)),
                reason: format!("found an unknown key, expected {one_of}{}{hint}", listed(&names)),
                others: Vec::new(),
            };
            errors.unknown(error, meant.filter(is_absent).map(|name| joined(&self.path, name)));
        }
    }

    /// The key of that name in another table of a drive's description, if there is one alone: first among those below.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let section = self.path.split('.').next().filter(|section| !section.is_empty())?;
        let is_drives = super::keys::ROOT.iter().any(|key| key.name == section && !key.keys().is_empty());
        let named = |path: &&String| path.rsplit_once('.').is_some_and(|(_, last)| last == name);
        let all = if is_drives { super::keys() } else { Vec::new() };
        let only = |found: Vec<&String>| if let [only] = found[..] { Some(only.clone()) } else { None };
        let below = |path: &&String| named(path) && path.starts_with(&format!("{}.", self.path));
        only(all.iter().filter(below).collect()).or_else(|| only(all.iter().filter(named).collect()))
    }

    fn key(&self, name: &str) -> &'static Key {
        self.known.iter().find(|key| key.name == name).unwrap_or_else(|| panic!("no table of keys has '{name}'"))
    }

    /// The value under `key`, if there is one.
    pub fn get(&self, key: &'static str) -> Option<Field<'t>> {
        debug_assert!(self.known.iter().any(|known| known.name == key), "no table of keys has '{key}'");
        let node = self.table?.get(key)?;
        Some(Field { tree: self.tree, path: joined(&self.path, key), node, key: self.key(key) })
    }

    /// The value under `key`, which must be there.
    pub fn require(&self, key: &'static str) -> Result<Field<'t>, DescriptionError> {
        self.get(key).ok_or_else(|| match self.key(key).default {
            Default::Required(expected) => self.missing(key, expected),
            _ => unreachable!("'{key}' need not be there"),
        })
    }

    /// The value under `key`, or its default.
    fn setting(&self, key: &'static str) -> Result<Setting, DescriptionError> {
        match (self.get(key), self.key(key).default) {
            (None, Default::Is(setting)) => Ok(setting),
            (Some(field), _) => field.setting(),
            (None, _) => self.require(key)?.setting(),
        }
    }

    /// Refuses two keys that cannot stand beside each other.
    fn refuse_both(&self) -> Result<(), DescriptionError> {
        for key in &self.known {
            if let (Some(field), Some(other)) = (self.get(key.name), key.instead_of)
                && self.get(other).is_some()
            {
                return Err(field.error(format!("found beside {other}, expected one of them")));
            }
        }
        Ok(())
    }

    /// Whether `key` is true, by itself or by default.
    pub fn flag(&self, key: &'static str) -> Result<bool, DescriptionError> {
        self.setting(key).map(Setting::flag)
    }

    /// The number under `key`, or its default.
    pub fn number(&self, key: &'static str) -> Result<u64, DescriptionError> {
        self.setting(key).map(Setting::number)
    }

    /// The count under `key`, or its default.
    pub fn count(&self, key: &'static str) -> Result<u32, DescriptionError> {
        self.setting(key).map(Setting::count)
    }

    /// The span of time under `key`, or its default.
    pub fn time(&self, key: &'static str) -> Result<Nanos, DescriptionError> {
        self.number(key).map(Nanos)
    }

    /// The word under `key`, or its default.
    pub(super) fn word(&self, key: &'static str) -> Result<&'static str, DescriptionError> {
        self.setting(key).map(Setting::word)
    }

    /// The value of the word under `key`, or of its default.
    pub fn choice<T: Words>(&self, key: &'static str) -> Result<T, DescriptionError> {
        self.word(key).map(of_word)
    }

    /// `key` is not there.
    pub fn missing(&self, key: &str, expected: &str) -> DescriptionError {
        self.error(key, format!("missing, expected {expected}"))
    }

    /// A problem of this table, or of what `key` in it should be.
    pub fn error(&self, key: &str, reason: String) -> DescriptionError {
        let origin = self.table.and_then(|table| table.get(key)).map(|node| node.origin).or(self.origin);
        DescriptionError {
            place: match origin {
                Some(origin) => self.tree.place(origin),
                None => Place::Whole { file: self.tree.file.clone() },
            },
            key: if key.is_empty() { self.path.clone() } else { joined(&self.path, key) },
            reason,
            others: Vec::new(),
        }
    }
}

impl<'t> Field<'t> {
    /// Where the value stands.
    pub(super) fn place(&self) -> Place {
        self.tree.place(self.node.origin)
    }

    /// A problem of this value.
    pub fn error(&self, reason: String) -> DescriptionError {
        DescriptionError {
            place: self.tree.place(self.node.origin),
            key: self.path.clone(),
            reason,
            others: Vec::new(),
        }
    }

    /// `found X, expected Y`.
    pub fn expected(&self, expected: &str) -> DescriptionError {
        let found = match &self.node.value {
            Value::Text(text) => format!("\"{}\"", shown(text)),
            Value::Integer(Some(integer)) => integer.to_string(),
            Value::Integer(None) => "a number beyond 128 bits".to_string(),
            Value::Float(float) => float.to_string(),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::Time => "a date or time of day".to_string(),
            Value::List(list) => format!("a list of {}", list.len()),
            Value::Table(_) => "a table".to_string(),
        };
        let is_negative = match &self.node.value {
            Value::Text(text) => is_negative(text),
            Value::Integer(integer) => integer.is_some_and(|integer| integer < 0),
            Value::Float(float) => *float < 0.0,
            _ => false,
        };
        let is_told = expected.contains("at least") || expected.contains("from");
        let at_least = if is_negative && !is_told { "at least 0: " } else { "" };
        self.error(format!("found {found}, expected {at_least}{expected}"))
    }

    /// A table with the keys that its own table of keys names.
    pub fn section(&self) -> Result<Section<'t>, DescriptionError> {
        self.section_of(self.key.keys())
    }

    /// A table with these keys.
    pub fn section_of(&self, known: Vec<&'static Key>) -> Result<Section<'t>, DescriptionError> {
        let Value::Table(table) = &self.node.value else {
            return Err(self.expected(&format!("a table with the keys {}", listed(&names(&known)))));
        };
        let origin = Some(self.node.origin);
        Ok(Section { tree: self.tree, path: self.path.clone(), table: Some(table), origin, known })
    }

    /// Tells what is wrong with the value by itself, and with what is below it if it is a table.
    fn check(&self, errors: &mut Errors) {
        let read = match (self.key.kind, &self.node.value) {
            (Kind::Table(_) | Kind::Chosen(..), _) => self.section().map(|section| section.check(errors)),
            (Kind::TableOrWord(..), _) if self.as_text().is_none() => {
                self.section().map(|section| section.check(errors))
            }
            (Kind::Tables(..), _) => Ok(()),
            (Kind::Latencies(_), Value::List(list)) => {
                for latency in self.items(list) {
                    errors.keep(latency.latency());
                }
                Ok(())
            }
            (Kind::Latency(_) | Kind::Latencies(_), _) => self.latency().map(drop),
            (Kind::Text, _) => self.text("text").map(drop),
            (Kind::Name(_), _) => self.own_name().map(drop),
            (Kind::Probability, _) => self.probability().map(drop),
            (Kind::Share, _) => self.share().map(drop),
            (Kind::Allocation, _) => allocation(self).map(drop),
            _ => self.setting().map(drop),
        };
        errors.keep(read);
    }

    /// A value that one word or number says, within the range of its key.
    pub(super) fn setting(&self) -> Result<Setting, DescriptionError> {
        Ok(match self.key.kind {
            Kind::Boolean => Setting::Flag(self.boolean()?),
            Kind::Count { least, most, .. } => Setting::Number(self.count(least, most)?.into()),
            Kind::Size { least, most, step } => Setting::Number(self.size_within(least, most, step)?),
            Kind::SizeOrShare { least } => self.size_or_share(least)?,
            Kind::Pages => Setting::Number(self.size()?),
            Kind::Bits => Setting::Number(self.bits()?),
            Kind::Bandwidth { least, zero } => Setting::Number(self.bandwidth(least, zero)?),
            Kind::Frequency { least, most } => Setting::Number(self.frequency(least, most)?),
            Kind::BooleanOrWord(words) => match self.node.value {
                Value::Boolean(boolean) => Setting::Flag(boolean),
                _ => Setting::Word(self.flag_or_name(&words())?),
            },
            Kind::Time(most) => Setting::Number(self.duration(most)?.0),
            Kind::Percent(least) => Setting::Number(self.whole_percent(least)?),
            Kind::Word(words) | Kind::TableOrWord(_, _, words) => Setting::Word(self.name(&words())?),
            kind => unreachable!("'{}' is no word or number but {kind:?}", self.key.name),
        })
    }

    /// The values of a list.
    pub fn list(&self, expected: &str) -> Result<Vec<Field<'t>>, DescriptionError> {
        let Value::List(list) = &self.node.value else {
            return Err(self.expected(expected));
        };
        Ok(self.items(list))
    }

    fn items(&self, list: &'t [Node]) -> Vec<Field<'t>> {
        list.iter()
            .enumerate()
            .map(|(index, node)| Field { node, path: format!("{}[{index}]", self.path), ..self.clone() })
            .collect()
    }

    /// The value under `key` of a table, whatever else may be in it.
    pub fn entry(&self, key: &str) -> Option<Field<'t>> {
        let Value::Table(table) = &self.node.value else { return None };
        table.get(key).map(|node| Field { node, path: joined(&self.path, key), ..self.clone() })
    }

    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&'t str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => self.node.written.as_deref(),
        }
    }

    /// The name that it is.
    pub(super) fn own_name(&self) -> Result<&'t str, DescriptionError> {
        let Kind::Name(most) = self.key.kind else { unreachable!("'{}' is no name", self.key.name) };
        let expected = super::name_expected(most);
        match self.text(&expected)? {
            name if super::is_name(name, most) => Ok(name),
            _ => Err(self.expected(&expected)),
        }
    }

    /// The text, which it must be.
    pub fn text(&self, expected: &str) -> Result<&'t str, DescriptionError> {
        self.as_text().ok_or_else(|| self.expected(expected))
    }

    fn boolean(&self) -> Result<bool, DescriptionError> {
        match self.node.value {
            Value::Boolean(boolean) => Ok(boolean),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number in `min..=max`.
    pub fn count(&self, min: u32, max: u32) -> Result<u32, DescriptionError> {
        let count = match self.node.value {
            Value::Integer(integer) => integer.and_then(|integer| u32::try_from(integer).ok()),
            _ => None,
        };
        count.filter(|count| (min..=max).contains(count)).ok_or_else(|| {
            self.expected(&if max == u32::MAX {
                format!("a whole number of at least {min}")
            } else {
                format!("a whole number from {min} to {max}")
            })
        })
    }

    /// Bytes: a plain number, or text with a unit.
    pub fn size(&self) -> Result<u64, DescriptionError> {
        let expected = "a size such as 4096, \"4k\", \"16m\", \"1.5g\" (powers of 1024, also KiB MiB GiB TiB) or \
                        \"960GB\" (powers of 1000: kB MB GB TB)";
        self.bytes(parse_size, expected)
    }

    /// Bytes, in the forms that [`Field::size`] reads: a multiple of `step` from `least` to `most`.
    fn size_within(&self, least: u64, most: u64, step: u64) -> Result<u64, DescriptionError> {
        let bytes = self.size()?;
        if (least..=most).contains(&bytes) && bytes.is_multiple_of(step) {
            return Ok(bytes);
        }
        Err(self.expected(&match least {
            0 => format!("a multiple of {step} bytes of at most {most} bytes"),
            _ if most == u64::MAX => format!("a multiple of {step} bytes, at least {least}"),
            _ => format!("a multiple of {step} bytes from {least} to {most}"),
        }))
    }

    /// Bytes, at least `least`, or a percentage above 0 and up to 100.
    fn size_or_share(&self, least: u64) -> Result<Setting, DescriptionError> {
        let expected = format!(
            "a size of at least {least} bytes such as \"1m\", or a percentage above 0 and up to 100 such as \"20%\""
        );
        if let Some(text) = self.as_text().filter(|text| text.trim().ends_with('%')) {
            let share = parse_share(text).filter(|share| (1..=100 * BILLION).contains(share));
            return share.map(Setting::Share).ok_or_else(|| self.expected(&expected));
        }
        let bytes = self.bytes(parse_size, &expected)?;
        if bytes < least {
            return Err(self.expected(&expected));
        }
        Ok(Setting::Number(bytes))
    }

    /// The capacity of a die, at least one bit.
    fn bits(&self) -> Result<u64, DescriptionError> {
        let expected = "a capacity in bits such as \"128Gb\", \"1.33Tb\" or \"512Mb\" (powers of 1024)";
        let bits = self.text(expected)?;
        parse_bits(bits).filter(|bits| *bits > 0).ok_or_else(|| self.expected(expected))
    }

    /// Bytes a second: as a size, or with the unit a datasheet uses; at least `least`, or 0 where that is allowed.
    fn bandwidth(&self, least: u64, zero: bool) -> Result<u64, DescriptionError> {
        let expected = "bytes a second: \"560MB/s\" (powers of 1000), \"534MiB/s\", \"534m\" (powers of 1024) or a \
                        plain number";
        let bandwidth = self.bytes(parse_bandwidth, expected)?;
        if bandwidth >= least || zero && bandwidth == 0 {
            return Ok(bandwidth);
        }
        let or = if zero { ", or 0 for a link that takes no time" } else { "" };
        Err(self.expected(&format!("at least {least} bytes a second{or}")))
    }

    /// Cycles a second: a text with its unit, or a plain number.
    fn frequency(&self, least: u64, most: u64) -> Result<u64, DescriptionError> {
        let found = match &self.node.value {
            Value::Integer(integer) => integer.and_then(|integer| u64::try_from(integer).ok()),
            _ => self.as_text().and_then(parse_frequency),
        };
        found.filter(|hertz| (least..=most).contains(hertz)).ok_or_else(|| {
            self.expected(&format!("cycles a second such as \"87.5MHz\", from {} to {}", hertz(least), hertz(most)))
        })
    }

    /// One of `names`, where true and false stand beside them.
    fn flag_or_name<'n>(&self, names: &[&'n str]) -> Result<&'n str, DescriptionError> {
        let found = self.as_text().and_then(|text| names.iter().find(|name| **name == text.trim()));
        found.copied().ok_or_else(|| self.expected(&listed(&[&["true", "false"], names].concat())))
    }

    /// Whole percent from `least` to 100.
    fn whole_percent(&self, least: u32) -> Result<u64, DescriptionError> {
        let expected = format!("whole percent from \"{least}%\" to \"100%\"");
        let percent = self.text(&expected)?.trim().strip_suffix('%').and_then(|percent| percent.trim().parse().ok());
        percent.filter(|percent| (u64::from(least)..=100).contains(percent)).ok_or_else(|| self.expected(&expected))
    }

    /// A plain number of bytes, or text that `parse` reads.
    fn bytes(
        &self,
        parse: impl Fn(&str) -> Result<u64, QuantityError>,
        expected: &str,
    ) -> Result<u64, DescriptionError> {
        match &self.node.value {
            Value::Text(text) => parse(text).map_err(|why| {
                let both = || format!("{} (the unit has two readings)", why.expected);
                self.expected(&if why.ambiguous { both() } else { expected.to_string() })
            }),
            Value::Integer(integer) => {
                integer.and_then(|integer| u64::try_from(integer).ok()).ok_or_else(|| self.expected(expected))
            }
            _ => Err(self.expected(expected)),
        }
    }

    /// A span of time up to `max`, with its unit; 0 needs none.
    fn duration(&self, max: Nanos) -> Result<Nanos, DescriptionError> {
        let latency = self.latency_up_to(max)?;
        if latency.min != latency.max {
            return Err(self.expected("one time, not a range"));
        }
        Ok(latency.min)
    }

    /// A span of time or a range of them, of a key that holds one.
    pub(super) fn latency(&self) -> Result<Latency, DescriptionError> {
        match self.key.kind {
            Kind::Latency(most) | Kind::Latencies(most) => self.latency_up_to(most),
            kind => unreachable!("'{}' is no latency but {kind:?}", self.key.name),
        }
    }

    fn latency_up_to(&self, max: Nanos) -> Result<Latency, DescriptionError> {
        let expected =
            || self.expected("a time with its unit, such as \"20us\" or \"1.5ms\", or a range \"400us..600us\"");
        let latency = match &self.node.value {
            Value::Integer(Some(0)) => Latency { min: Nanos::ZERO, max: Nanos::ZERO },
            Value::Text(text) => {
                let (from, to) = text.split_once("..").unwrap_or((text, text));
                let (Ok(min), Ok(max)) = (parse_duration(from), parse_duration(to)) else {
                    return Err(expected());
                };
                Latency { min, max }
            }
            _ => return Err(expected()),
        };
        if latency.min > latency.max {
            return Err(self.expected("a range from its shortest to its longest time"));
        }
        if latency.max > max {
            return Err(self.expected(&format!("at most {max}")));
        }
        Ok(latency)
    }

    /// One latency, or a list of them by page position in the wordline.
    pub(super) fn latencies(&self, most: u32) -> Result<Vec<Latency>, DescriptionError> {
        let Value::List(list) = &self.node.value else {
            return Ok(vec![self.latency()?]);
        };
        if list.is_empty() || list.len() > most as usize {
            let expected =
                format!("from 1 to {most} times, by page position in the wordline (at most a block's pages)");
            return Err(self.expected(&expected));
        }
        self.items(list).iter().map(Field::latency).collect()
    }

    /// A probability: 0 to 1, or a percentage.
    pub(super) fn probability(&self) -> Result<f64, DescriptionError> {
        match &self.node.value {
            Value::Float(float) => Some(*float),
            Value::Integer(Some(0)) => Some(0.0),
            Value::Integer(Some(1)) => Some(1.0),
            Value::Text(text) => text
                .trim()
                .strip_suffix('%')
                .and_then(|number| number.trim().parse::<f64>().ok())
                .map(|percent| percent / 100.0),
            _ => None,
        }
        .filter(|share| (0.0..=1.0).contains(share))
        // Minus zero is zero.
        .map(|share| share.abs())
        .ok_or_else(|| self.expected("a probability from 0 to 1, such as 0.001 or \"0.1%\""))
    }

    /// A percentage, in billionths of a percent.
    pub(super) fn share(&self) -> Result<u64, DescriptionError> {
        match &self.node.value {
            Value::Text(text) => parse_share(text),
            _ => None,
        }
        .ok_or_else(|| self.expected("a percentage such as \"7%\", at most nine digits after the point"))
    }

    /// One of the names.
    pub fn name<'n>(&self, names: &[&'n str]) -> Result<&'n str, DescriptionError> {
        let expected = listed(names);
        let text = self.text(&expected)?;
        if let Some(name) = names.iter().find(|name| **name == text) {
            return Ok(name);
        }
        Err(self.expected(&match closest(text, names.iter().copied()) {
            Some(name) => format!("{expected}; did you mean '{name}'?"),
            None => expected,
        }))
    }
}
