//! A personality: a published file-level workload as data.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use ssdlab_base::{closest, read_text};
use toml::Value;

use super::flowop::{self, Flowop, FlowopText};
use super::parameters::{COMMON_KEYS, Parameters, unknown};
use crate::WorkloadError;

/// Name and text of each personality that ships.
const SHIPPED: [(&str, &str); 9] = [
    ("dfsio", include_str!("../../personalities/dfsio.toml")),
    ("fileserver", include_str!("../../personalities/fileserver.toml")),
    ("postmark", include_str!("../../personalities/postmark.toml")),
    ("randomwrite", include_str!("../../personalities/randomwrite.toml")),
    ("terasort", include_str!("../../personalities/terasort.toml")),
    ("varmail", include_str!("../../personalities/varmail.toml")),
    ("webproxy", include_str!("../../personalities/webproxy.toml")),
    ("webserver", include_str!("../../personalities/webserver.toml")),
    ("wordcount", include_str!("../../personalities/wordcount.toml")),
];

/// The longest file, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;

/// What a thread does.
#[derive(Clone, Debug, PartialEq)]
pub enum Script {
    /// These operations, over and over.
    Loop(Vec<Flowop>),
    /// Postmark's transactions.
    Postmark,
}

/// A file-level workload with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Personality {
    /// Its name.
    pub name: String,
    /// One line on what it is.
    pub summary: String,
    /// Where its numbers come from.
    pub source: String,
    /// What a thread does.
    pub script: Script,
    /// The numbers.
    pub parameters: Parameters,
    keys: Vec<String>,
    variants: BTreeMap<String, Variant>,
}

/// Other numbers for the same loop, as a paper used them.
#[derive(Clone, Debug, PartialEq)]
struct Variant {
    source: String,
    settings: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindText {
    Loop,
    Postmark,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    name: String,
    summary: String,
    source: String,
    kind: KindText,
    parameters: toml::Table,
    #[serde(default, rename = "loop")]
    flowops: Vec<FlowopText>,
    #[serde(default)]
    variants: BTreeMap<String, toml::Table>,
}

/// The personalities that ship, in the order of their names.
pub fn shipped() -> impl Iterator<Item = Personality> {
    SHIPPED
        .iter()
        .map(|(name, text)| Personality::parse(text, &format!("{name}.toml")).expect("what ships is read by a test"))
}

impl Personality {
    /// Transactions after which it ends by itself; `None` for a loop, and for Postmark without end.
    pub fn transactions(&self) -> Option<u64> {
        let transactions = self.parameters.transactions;
        (self.script == Script::Postmark && transactions > 0).then_some(transactions)
    }

    /// The personality that `text` names: one that ships, or a file.
    ///
    /// # Errors
    /// A name that does not ship (with the one that was probably meant), a file that cannot be read or understood.
    pub fn open(text: &str) -> Result<Personality, WorkloadError> {
        if let Some((name, content)) = SHIPPED.iter().find(|(name, _)| *name == text) {
            return Personality::parse(content, &format!("{name}.toml"));
        }
        let path = Path::new(text);
        if !text.contains(['/', '\\']) && path.extension().is_none() && !path.is_file() {
            let names = SHIPPED.iter().map(|(name, _)| *name);
            let meant =
                closest(text, names.clone()).map_or(".".to_string(), |name| format!("; did you mean '{name}'?"));
            let names: Vec<&str> = names.collect();
            return Err(WorkloadError(format!(
                "'{text}' is neither a file nor a personality that ships{meant} These ship: {}",
                names.join(", ")
            )));
        }
        let failed = |why: String| WorkloadError(format!("{text}: {why}"));
        let content = read_text(path, LONGEST_TEXT, "a personality").map_err(|error| failed(error.to_string()))?;
        if let Some((line, word)) = filebench(&content) {
            let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let same = stem.and_then(|stem| names.iter().find(|name| **name == stem));
            let meant = same.map_or(".".to_string(), |name| format!("; did you mean '{name}'?"));
            return Err(failed(format!(
                "line {line} begins with '{word}': this is in Filebench's own language, which is not read{meant} Filebench's \
                 workloads ship as personalities ({}), and others are written in TOML (docs/files.md)",
                names.join(", ")
            )));
        }
        Personality::parse(&content, text)
    }

    /// Reads a personality from TOML; `file` is what messages call it.
    ///
    /// # Errors
    /// Text that is no TOML, unknown keys, values out of range, operations that do not fit together.
    pub fn parse(text: &str, file: &str) -> Result<Personality, WorkloadError> {
        let failed = |why: String| WorkloadError(format!("{file}: {why}"));
        let read: FileText = toml::from_str(text).map_err(|error| failed(error.to_string().trim_end().to_string()))?;
        let mut parameters = Parameters::default();
        let mut keys = Vec::new();
        for (key, value) in settings(&read.parameters) {
            parameters.set(&key, &value).map_err(|error| failed(format!("[parameters] {error}")))?;
            keys.push(key);
        }
        let script = match read.kind {
            KindText::Loop => Script::Loop(flowop::compile(&read.flowops).map_err(|error| failed(error.0))?),
            KindText::Postmark if read.flowops.is_empty() => Script::Postmark,
            KindText::Postmark => return Err(failed("found [[loop]], expected none with kind = \"postmark\"".into())),
        };
        let mut variants = BTreeMap::new();
        for (name, table) in read.variants {
            let place = |why: String| failed(format!("[variants.{name}] {why}"));
            let mut settings = settings(&table);
            let source = settings.iter().position(|(key, _)| key == "source").map(|at| settings.remove(at).1);
            let source =
                source.ok_or_else(|| place("source is missing, expected where the numbers come from".into()))?;
            variants.insert(name, Variant { source, settings });
        }
        let mut personality = Personality {
            name: read.name,
            summary: read.summary,
            source: read.source,
            script,
            parameters,
            keys,
            variants,
        };
        personality.check().map_err(|error| failed(error.0))?;
        for name in personality.variants.keys().cloned().collect::<Vec<_>>() {
            let mut varied = personality.clone();
            varied.vary(&name).map_err(|error| failed(format!("[variants.{name}] {error}")))?;
        }
        personality.keys.extend(COMMON_KEYS.iter().map(|key| (*key).to_string()));
        personality.keys.sort();
        personality.keys.dedup();
        Ok(personality)
    }

    /// Lays `key=value` over the parameters; `paper=NAME` takes a named variant's.
    ///
    /// # Errors
    /// Keys that this personality does not have, and values that a key does not take.
    pub fn set(&mut self, assignment: &str) -> Result<(), WorkloadError> {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(WorkloadError(format!("'{assignment}' sets nothing, expected key=value")));
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "paper" {
            return self.vary(value);
        }
        if !self.keys.iter().any(|known| known == key) {
            let known: Vec<&str> = self.keys.iter().map(String::as_str).chain(["paper"]).collect();
            return Err(WorkloadError(format!("{}: {}", self.name, unknown(key, known))));
        }
        self.parameters.set(key, value).map_err(|error| WorkloadError(format!("{}: {error}", self.name)))
    }

    /// Takes a variant's numbers.
    fn vary(&mut self, name: &str) -> Result<(), WorkloadError> {
        let Some(variant) = self.variants.get(name) else {
            let names: Vec<&str> = self.variants.keys().map(String::as_str).collect();
            let meant =
                closest(name, names.clone()).map_or(".".to_string(), |name| format!("; did you mean '{name}'?"));
            let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            return Err(WorkloadError(format!(
                "{}: there is no variant '{name}'{meant} The papers with one of {}: {known}",
                self.name, self.name
            )));
        };
        for (key, value) in variant.settings.clone() {
            self.parameters.set(&key, &value)?;
        }
        Ok(())
    }

    /// Whether parameters and script fit together; called before a run, behind all overrides.
    ///
    /// # Errors
    /// What does not fit, with the numbers.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.parameters.check()?;
        if let Script::Loop(flowops) = &self.script {
            flowop::check(flowops, &self.parameters)?;
        }
        Ok(())
    }

    /// The names of the variants, each with its source.
    pub fn variants(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variants.iter().map(|(name, variant)| (name.as_str(), variant.source.as_str()))
    }

    /// The keys that can be set.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }
}

/// The first statement, and its line, of a text in Filebench's language, the Workload Model Language of its `.f` files.
///
/// No line of TOML begins with one of these words and a blank, unless it is a key: then `=` follows.
fn filebench(text: &str) -> Option<(usize, &str)> {
    const STATEMENTS: [&str; 14] = [
        "set", "define", "create", "run", "psrun", "debug", "echo", "usage", "eventgen", "enable", "system", "load",
        "shutdown", "version",
    ];
    let statement = |line: &'_ str| {
        let end = line.find(|c: char| c.is_whitespace()).unwrap_or(line.len());
        let rest = line[end..].trim_start();
        (STATEMENTS.contains(&&line[..end]) && !rest.starts_with('=')).then_some(end)
    };
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let (number, line) = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    statement(line).map(|end| (number, &line[..end]))
}

/// A table's values as text, so that a file and an override are read by the same words.
fn settings(table: &toml::Table) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    table.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}
