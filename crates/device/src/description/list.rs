//! The tables of keys as people and programs read them: `ssdlab list --keys`, and the tables in docs/description.md.

use serde_json::{Value, json};

use super::key::{Default, Family, Key, Kind};
use super::quantity;
use super::settings::Setting;

/// Keys of one section that all drives have, or that belong to the same policies or designs.
pub struct Group {
    /// The section, dotted; empty for the top level.
    pub section: String,
    /// The key that names what they belong to, dotted, and the names; nothing for what all drives have.
    pub owners: Option<(String, Vec<&'static str>)>,
    /// The keys, without sections below.
    pub keys: Vec<&'static Key>,
}

/// All groups of a table of keys, in its order.
pub fn groups(keys: &'static [Key]) -> Vec<Group> {
    let mut groups = Vec::new();
    add(keys, None, "", &mut groups);
    groups
}

fn add(keys: &'static [Key], family: Option<&'static Family>, section: &str, groups: &mut Vec<Group>) {
    let own = keys.iter().filter(|key| !matches!(key.kind, Kind::Table(_) | Kind::Chosen(..)));
    let own: Vec<&'static Key> = own.collect();
    if !own.is_empty() {
        groups.push(Group { section: section.to_string(), owners: None, keys: own });
    }
    for key in family.into_iter().flat_map(Family::keys) {
        let owners = Some((
            dotted(section, family.map_or("", |family| family.key)),
            family.map_or(Vec::new(), |family| family.owners(key.name)),
        ));
        match groups.iter_mut().find(|group| group.section == section && group.owners == owners) {
            Some(group) => group.keys.push(key),
            None => groups.push(Group { section: section.to_string(), owners, keys: vec![key] }),
        }
    }
    for key in keys {
        let section = dotted(section, key.name);
        match key.kind {
            Kind::Table(keys) | Kind::TableOrWord(keys, ..) => add(keys, None, &section, groups),
            Kind::Chosen(keys, family) => add(keys, Some(family), &section, groups),
            Kind::Tables(keys, family) => add(keys, family, &section, groups),
            _ => {}
        }
    }
}

fn dotted(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_string() } else { format!("{section}.{key}") }
}

/// The groups as tables in Markdown, one for each section.
pub fn tables(groups: &[Group]) -> Vec<String> {
    groups.chunk_by(|one, other| one.section == other.section).map(table).collect()
}

fn table(groups: &[Group]) -> String {
    format!("{HEAD}{}", groups.iter().map(Group::markdown).collect::<String>())
}

const HEAD: &str = "| key | takes | default | meaning |\n| --- | --- | --- | --- |\n";

impl Group {
    /// Puts the group's section below another one.
    pub fn below(mut self, section: &str) -> Group {
        self.section = dotted(section, &self.section).trim_end_matches('.').to_string();
        self.owners = self.owners.map(|(key, names)| (dotted(section, &key), names));
        self
    }

    /// A line above it.
    pub fn title(&self) -> String {
        let section = if self.section.is_empty() { "top level" } else { &self.section };
        match &self.owners {
            None => section.to_string(),
            Some((key, names)) => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                format!("{section}, read with {key} = {}", names.join(" or "))
            }
        }
    }

    /// The keys as lines of text: a heading, then each key with its type, its default and its sentence, in lines of at
    /// most `width` characters where words allow.
    pub fn text(&self, width: usize) -> String {
        let mut text = format!("{}\n", self.title());
        for key in &self.keys {
            text.push_str(&format!("  {}\n", dotted(&self.section, key.name)));
            let default = match key.default {
                Default::Required(_) => "required".to_string(),
                _ => format!("default: {}", plain(&key.default_text())),
            };
            for paragraph in [format!("{}; {default}", key.kind.takes()), plain(key.meaning)] {
                wrap(&paragraph, "      ", width, &mut text);
            }
        }
        text
    }

    /// The keys as rows of a table in Markdown, those of single policies or designs with the names in front.
    fn markdown(&self) -> String {
        let owners = self.owners.as_ref().map_or(String::new(), |(_, names)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} only. ", names.join(" and "))
        });
        let row = |key: &&Key| {
            let name = dotted(&self.section, key.name);
            format!("| `{name}` | {} | {} | {owners}{} |\n", key.kind.takes(), key.default_text(), key.meaning)
        };
        self.keys.iter().map(row).collect()
    }

    /// The keys for programs.
    pub fn json(&self) -> Vec<Value> {
        let row = |key: &&Key| {
            json!({
                "key": dotted(&self.section, key.name),
                "section": self.section,
                "owner": self.owners.as_ref().map(|(key, names)| json!({ "key": key, "names": names })),
                "type": key.kind.name(),
                "unit": key.kind.unit(),
                "range": key.kind.range(),
                "values": key.kind.values(),
                "instead_of": key.instead_of.map(|other| dotted(&self.section, other)),
                "only_with": key.only_with.map(|(other, word)| json!({ "key": dotted(&self.section, other), "word": word })),
                "required": matches!(key.default, Default::Required(_)),
                "default": match key.default {
                    Default::Is(setting) => json!(key.default_toml(setting)),
                    _ => Value::Null,
                },
                "default_text": key.default_text(),
                "meaning": key.meaning,
            })
        };
        self.keys.iter().map(row).collect()
    }
}

impl Key {
    fn default_toml(&self, setting: Setting) -> toml::Value {
        match (self.kind, setting) {
            (Kind::Time(_), Setting::Number(0)) => quantity::plain(0),
            (kind, setting) => kind.toml(setting),
        }
    }

    /// What a description without it means, in Markdown.
    fn default_text(&self) -> String {
        match self.default {
            Default::Required(_) => "required".to_string(),
            Default::Is(setting) => format!("`{}`", self.default_toml(setting)),
            Default::Means(text) | Default::Follows(text, _) => text.to_string(),
        }
    }
}

impl Kind {
    /// What values it takes, for programs: the least and the most, what all are multiples of, whether zero is allowed below the
    /// least, and words. Each is `null` where there is none. Times are in nanoseconds, sizes in bytes.
    fn values(&self) -> Value {
        let (mut least, mut most, mut step, mut zero, mut words) = (None, None, None, None, None);
        match *self {
            Kind::Name(characters) => (least, most) = (Some(1), Some(characters as u64)),
            Kind::Count { least: fewest, most: largest, .. } => {
                (least, most) = (Some(fewest.into()), Some(largest).filter(|most| *most < u32::MAX).map(u64::from));
            }
            Kind::Size { least: fewest, most: largest, step: multiple } => {
                (least, most, step) = (Some(fewest), Some(largest).filter(|most| *most < u64::MAX), Some(multiple));
            }
            Kind::SizeOrShare { least: fewest } => least = Some(fewest),
            Kind::Bandwidth { least: slowest, zero: allowed } => (least, zero) = (Some(slowest), Some(allowed)),
            Kind::Time(longest) | Kind::Latency(longest) | Kind::Latencies(longest) => {
                (least, most) = (Some(0), Some(longest.0));
            }
            Kind::Frequency { least: slowest, most: fastest } => (least, most) = (Some(slowest), Some(fastest)),
            Kind::Percent(fewest) => (least, most) = (Some(fewest.into()), Some(100)),
            Kind::BooleanOrWord(known) | Kind::Word(known) | Kind::TableOrWord(_, _, known) => words = Some(known()),
            Kind::Text
            | Kind::Boolean
            | Kind::Pages
            | Kind::Bits
            | Kind::Probability
            | Kind::Share
            | Kind::Allocation => {}
            Kind::Table(_) | Kind::Chosen(..) | Kind::Tables(..) => {}
        }
        json!({ "least": least, "most": most, "step": step, "zero": zero, "words": words })
    }

    /// Type, unit and range in a few words.
    fn takes(&self) -> String {
        match *self {
            Kind::Boolean => "true or false".to_string(),
            Kind::Count { unit, .. } => format!("{unit}, {}", self.range()),
            Kind::Word(_) | Kind::BooleanOrWord(_) => self.range(),
            Kind::TableOrWord(..) => format!("table, {}", self.range()),
            _ if self.range().is_empty() => self.name().to_string(),
            _ => format!("{}, {}", self.name(), self.range()),
        }
    }
}

/// Markdown as plain text: links are their words, and code has no marks.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        let parts = link.split_once("](").and_then(|(words, after)| Some((words, after.split_once(')')?.1)));
        text.push_str(before);
        match parts {
            Some((words, after)) if !words.contains(['[', ']']) => {
                text.push_str(words);
                rest = after;
            }
            _ => {
                text.push('[');
                rest = link;
            }
        }
    }
    (text + rest).replace('`', "")
}

fn wrap(paragraph: &str, indent: &str, width: usize, to: &mut String) {
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() > width {
            to.push_str(&format!("{indent}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    to.push_str(&format!("{indent}{line}\n"));
}

const BEGIN: &str = "<!-- keys of ";
const END: &str = "<!-- end -->";

/// Why the tables of a page cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TablesError {
    /// A table of a section that no description has.
    #[error("'{line}': there is no section {section}")]
    NoSection {
        /// The line that begins the table.
        line: String,
        /// What it names.
        section: String,
    },
    /// A table without an end.
    #[error("'{line}': found no '{END}' behind it")]
    NoEnd {
        /// The line that begins the table.
        line: String,
    },
}

/// A page whose tables of keys are written anew: what stands between a line `<!-- keys of SECTION -->` and the next
/// `<!-- end -->`, where SECTION is dotted, or `/` for the top level.
///
/// # Errors
/// A section that is not there, or a table without an end.
pub fn with_tables(page: &str, keys: &'static [Key]) -> Result<String, TablesError> {
    let groups = groups(keys);
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(&format!("{line}\n"));
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let section = if name == "/" { "" } else { name };
        let mut sections = groups.chunk_by(|one, other| one.section == other.section);
        let Some(found) = sections.find(|groups| groups[0].section == section) else {
            return Err(TablesError::NoSection { line: line.to_string(), section: name.to_string() });
        };
        if !lines.any(|line| line == END) {
            return Err(TablesError::NoEnd { line: line.to_string() });
        }
        text.push_str(&format!("\n{}\n{END}\n", table(found)));
    }
    Ok(text)
}
