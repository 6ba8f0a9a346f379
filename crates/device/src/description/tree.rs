//! A description's text as a tree of values that remember where they were written, with overrides laid over it.
//!
//! Nothing here knows what a key means: the tables of keys say which an override takes away, and which has a short form.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{DescriptionError, Place, shown};
use super::key::{Key, Kind};

/// Where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// At this byte of the file.
    File(usize),
    /// In the override of this index.
    Set(usize),
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// `None` when it does not fit 128 bits.
    Integer(Option<i128>),
    Float(f64),
    Boolean(bool),
    Time,
    List(Vec<Node>),
    Table(Table),
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// Where the value's key stands (the value itself in a list).
    pub(super) key_origin: Origin,
    /// The text of a number or truth value that an override gave without quotes: it may be meant as text.
    pub(super) written: Option<String>,
}

/// The option that gave an override, and its text.
type Override = (&'static str, String);

/// Keys and their values.
pub(super) type Table = BTreeMap<String, Node>;

/// The text, its overrides and the tree they make.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(super) file: String,
    text: String,
    sets: Vec<Override>,
    pub(super) root: Table,
}

impl Tree {
    /// Reads TOML; `file` is what errors call it.
    ///
    /// # Errors
    /// What is no TOML, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Tree, DescriptionError> {
        let mut tree = Tree { file: file.to_string(), text: text.to_string(), sets: Vec::new(), root: Table::new() };
        match DeTable::parse(text) {
            Ok(table) => {
                tree.root = from_table(table.into_inner(), &Origin::File);
                Ok(tree)
            }
            Err(error) => Err(DescriptionError {
                place: match error.span() {
                    Some(span) => tree.place(Origin::File(span.start)),
                    None => Place::Whole { file: tree.file },
                },
                key: String::new(),
                reason: format!("not TOML: {}", shown(error.message())),
                others: Vec::new(),
            }),
        }
    }

    /// Overrides `key=value` alone, which `option` gave, of a description with these keys.
    ///
    /// # Errors
    /// What is no override of a key.
    pub fn of_overrides(
        overrides: &[String],
        option: &'static str,
        keys: &'static [Key],
    ) -> Result<Tree, DescriptionError> {
        let mut tree = Tree { file: option.to_string(), text: String::new(), sets: Vec::new(), root: Table::new() };
        overrides.iter().try_for_each(|one| tree.set(option, one, keys))?;
        Ok(tree)
    }

    /// Lays `key=value`, which `option` gave, over the tree, whose keys these are.
    ///
    /// # Errors
    /// What is no override of a key.
    pub fn set(&mut self, option: &'static str, text: &str, keys: &'static [Key]) -> Result<(), DescriptionError> {
        let origin = Origin::Set(self.sets.len());
        let error = |key: &str, reason: String| DescriptionError {
            place: Place::Set { option, text: text.to_string() },
            key: key.to_string(),
            reason,
            others: Vec::new(),
        };
        let Some((key, written)) = text.split_once('=') else {
            return Err(error("", "found no '=', expected key=value, such as gc.victim=fifo".to_string()));
        };
        let (key, written) = (key.trim(), written.trim());
        let plain =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if key.len() > 100 || !key.split('.').all(plain) {
            let reason = format!("found the key '{}', expected a dotted key such as flash.page_size", shown(key));
            return Err(error("", reason));
        }
        if written.is_empty() {
            return Err(error(key, "found no value after '='".to_string()));
        }
        let path: Vec<&str> = key.split('.').collect();
        for excluded in Key::find(keys, &path).map_or(&[][..], |known| known.replaces) {
            remove(&mut self.root, excluded);
        }
        let node = from_override(written, origin);
        let Some((last, parents)) = path.split_last() else {
            return Err(error("", "found no key".to_string()));
        };
        let mut table = &mut self.root;
        for (depth, part) in parents.iter().enumerate() {
            let entry = table.entry((*part).to_string()).or_insert_with(|| Node {
                value: Value::Table(Table::new()),
                origin,
                key_origin: origin,
                written: None,
            });
            if let Some(Kind::TableOrWord(_, short, _)) = Key::find(keys, &path[..=depth]).map(|known| known.kind) {
                spell_out(entry, short);
            }
            let Value::Table(inner) = &mut entry.value else {
                return Err(error(key, format!("'{}' is not a table of keys", path[..=depth].join("."))));
            };
            table = inner;
        }
        table.insert((*last).to_string(), node);
        self.sets.push((option, text.to_string()));
        Ok(())
    }

    /// Where a place stands among others: the file's from its beginning, overrides in their order, and the file as a whole.
    pub(super) fn order_of(&self, place: &Place) -> (u8, usize, usize) {
        match place {
            Place::File { line, column, .. } => (0, *line, *column),
            Place::Set { option, text } => {
                let is_it = |(by, set): &Override| by == option && set == text;
                (1, self.sets.iter().position(is_it).unwrap_or(self.sets.len()), 0)
            }
            Place::Whole { .. } => (2, 0, 0),
        }
    }

    /// The place of an origin, for people.
    pub(super) fn place(&self, origin: Origin) -> Place {
        match origin {
            Origin::Set(index) => {
                let (option, text) = self.sets.get(index).cloned().unwrap_or(("--set", String::new()));
                Place::Set { option, text }
            }
            Origin::File(offset) => {
                let mut end = offset.min(self.text.len());
                while !self.text.is_char_boundary(end) {
                    end -= 1;
                }
                let before = &self.text[..end];
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                Place::File {
                    file: self.file.clone(),
                    line: before.matches('\n').count() + 1,
                    column: before[line_start..].chars().count() + 1,
                }
            }
        }
    }
}

/// `timing = "tlc"` becomes `timing = { preset = "tlc" }`, so that an override can change one latency of it.
fn spell_out(node: &mut Node, key: &str) {
    if let Value::Text(_) = node.value {
        node.value = Value::Table(Table::from([(key.to_string(), node.clone())]));
    }
}

fn remove(root: &mut Table, key: &str) {
    let mut table = root;
    let mut rest = key;
    while let Some((part, below)) = rest.split_once('.') {
        match table.get_mut(part).map(|node| &mut node.value) {
            Some(Value::Table(inner)) => table = inner,
            _ => return,
        }
        rest = below;
    }
    table.remove(rest);
}

/// A TOML value, or else the text itself: `4k`, `nvme`, `1.5ms`.
fn from_override(written: &str, origin: Origin) -> Node {
    let parsed = DeValue::parse(written).ok().map(Spanned::into_inner);
    let value = match parsed {
        Some(value) => from_value(value, &|_| origin),
        None => Value::Text(written.to_string()),
    };
    let may_be_text = matches!(value, Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Time);
    Node { value, origin, key_origin: origin, written: may_be_text.then(|| written.to_string()) }
}

fn from_table(table: DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Table {
    table
        .into_iter()
        .map(|(key, value)| {
            let key_origin = origin(key.span().start);
            let mut node = from_spanned(value, origin);
            node.key_origin = key_origin;
            (key.into_inner().into_owned(), node)
        })
        .collect()
}

fn from_spanned(value: Spanned<DeValue<'_>>, origin: &dyn Fn(usize) -> Origin) -> Node {
    let place = origin(value.span().start);
    Node { value: from_value(value.into_inner(), origin), origin: place, key_origin: place, written: None }
}

fn from_value(value: DeValue<'_>, origin: &dyn Fn(usize) -> Origin) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => Value::Integer(i128::from_str_radix(integer.as_str(), integer.radix()).ok()),
        // What the parser took for a float but Rust does not read is not a number.
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Value::Boolean(boolean),
        DeValue::Datetime(_) => Value::Time,
        DeValue::Array(list) => Value::List(list.into_iter().map(|node| from_spanned(node, origin)).collect()),
        DeValue::Table(table) => Value::Table(from_table(table, origin)),
    }
}
