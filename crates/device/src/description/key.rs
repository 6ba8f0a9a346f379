//! One key of a description as plain data: its name, what it holds, its default, and a sentence on what it means.
//!
//! A table of these is all there is to know of a section. The reader, `--set`, warnings of settings without effect,
//! `ssdlab list --keys`, the tables in docs/description.md and the JSON Schema all go by it.

use std::fmt;

use ssdlab_base::Nanos;
use ssdlab_flash::Geometry;

use super::error::listed;
use super::quantity;
use super::settings::{Setting, Settings};

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name within the section.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What a description without it means.
    pub default: Default,
    /// A sentence or several, in Markdown.
    pub meaning: &'static str,
    /// Dotted keys that an override of this one takes away: other ways to say the same thing.
    pub replaces: &'static [&'static str],
    /// A key of the same section that cannot be there beside this one.
    pub instead_of: Option<&'static str>,
    /// A key of the same section, and the word it must have for this key to change anything.
    pub only_with: Option<(&'static str, &'static str)>,
}

/// What a key holds: type, unit and range.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Any text.
    Text,
    /// A name of this many characters at most, without `/`, `\` or control characters.
    Name(usize),
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Count {
        /// What is counted.
        unit: &'static str,
        /// The smallest.
        least: u32,
        /// The largest; `u32::MAX` is no limit of its own.
        most: u32,
    },
    /// Bytes.
    Size {
        /// The smallest.
        least: u64,
        /// The largest; `u64::MAX` is no limit of its own.
        most: u64,
        /// What it is a multiple of.
        step: u64,
    },
    /// Bytes, at least this many, or an exact percentage above 0 and up to 100 of a whole that the key's sentence names.
    SizeOrShare {
        /// The fewest bytes.
        least: u64,
    },
    /// Bytes of whole pages, at least one.
    Pages,
    /// The capacity of a die in bits.
    Bits,
    /// Bytes a second: at least this many, and `0` too if that means no limit.
    Bandwidth {
        /// The slowest.
        least: u64,
        /// Whether `0` is allowed.
        zero: bool,
    },
    /// Cycles a second, in this range.
    Frequency {
        /// The slowest.
        least: u64,
        /// The fastest.
        most: u64,
    },
    /// `true`, `false` or one of these words.
    BooleanOrWord(fn() -> Vec<&'static str>),
    /// A span of time up to this.
    Time(Nanos),
    /// A span of time up to this, or a range that every operation draws from.
    Latency(Nanos),
    /// One of these, or a list of them by page position in the wordline.
    Latencies(Nanos),
    /// 0 to 1.
    Probability,
    /// An exact percentage.
    Share,
    /// Whole percent from this to 100.
    Percent(u32),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// How host pages spread over the planes.
    Allocation,
    /// A section.
    Table(&'static [Key]),
    /// A section, and keys in it that belong to what is chosen by name there.
    Chosen(&'static [Key], &'static Family),
    /// A section, or one of these words, which stands for the key of this name in it.
    TableOrWord(&'static [Key], &'static str, fn() -> Vec<&'static str>),
    /// A list of tables, which may have keys that belong to what is chosen by name in each.
    Tables(&'static [Key], Option<&'static Family>),
}

/// What a description without the key means.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// It is refused; the text is what the message expects.
    Required(&'static str),
    /// As if this stood there.
    Is(Setting),
    /// What the words say; the code that reads the section works it out.
    Means(&'static str),
    /// What the words say, from the geometry and the other settings of the section.
    Follows(&'static str, fn(&Geometry, &Settings) -> Setting),
}

/// The policies or designs of one kind, with the keys that are theirs.
pub struct Family {
    /// The key that names the one that is chosen.
    pub key: &'static str,
    /// All of them: the name and the table of its own keys.
    pub members: fn() -> Vec<(&'static str, &'static [Key])>,
    /// Whether an expanded description has the keys of those that are not chosen, too.
    pub expands_all: bool,
}

/// A type whose values have words in a description.
pub trait Words: Copy + PartialEq + 'static {
    /// Every value with its word.
    const WORDS: &'static [(&'static str, Self)];
}

/// The words of a type.
pub fn words<T: Words>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// The word of a value.
pub fn word<T: Words>(value: T) -> &'static str {
    T::WORDS.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

/// The value of a word, which is one of the type's.
pub(super) fn of_word<T: Words>(word: &str) -> T {
    let found = T::WORDS.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).unwrap_or_else(|| panic!("'{word}' is not one of {:?}", words::<T>()))
}

impl Key {
    /// A key.
    pub const fn new(name: &'static str, kind: Kind, default: Default, meaning: &'static str) -> Key {
        Key { name, kind, default, meaning, replaces: &[], instead_of: None, only_with: None }
    }

    /// A section of the description.
    pub const fn section(name: &'static str, kind: Kind) -> Key {
        Key::new(name, kind, Default::Means(""), "")
    }

    /// Makes the key required: it has to be there. `expected` is what the message of a refusal expects.
    pub const fn required(self, expected: &'static str) -> Key {
        Key { default: Default::Required(expected), ..self }
    }

    /// Sets the dotted keys that an override of the key takes away.
    pub const fn replacing(self, replaces: &'static [&'static str]) -> Key {
        Key { replaces, ..self }
    }

    /// Sets another key of the section that this one cannot stand beside.
    pub const fn instead_of(self, key: &'static str) -> Key {
        Key { instead_of: Some(key), ..self }
    }

    /// Makes the key one that is read only where another key of the section has this word.
    pub const fn only_with(self, key: &'static str, word: &'static str) -> Key {
        Key { only_with: Some((key, word)), ..self }
    }

    /// The key at a path.
    pub(crate) fn find(keys: &'static [Key], path: &[&str]) -> Option<&'static Key> {
        let (first, rest) = path.split_first()?;
        let mut key = keys.iter().find(|key| key.name == *first)?;
        for name in rest {
            key = key.keys().into_iter().find(|key| key.name == *name)?;
        }
        Some(key)
    }

    /// The keys below it, if it is a section or a list of them: its own, and those of the members of a family, each once.
    pub fn keys(&self) -> Vec<&'static Key> {
        match self.kind {
            Kind::Table(keys) | Kind::TableOrWord(keys, ..) | Kind::Tables(keys, None) => keys.iter().collect(),
            Kind::Chosen(keys, family) | Kind::Tables(keys, Some(family)) => keys.iter().chain(family.keys()).collect(),
            _ => Vec::new(),
        }
    }
}

impl Default {
    /// The default is this count, size, time in nanoseconds, or percentage.
    pub const fn number(number: u64) -> Default {
        Default::Is(Setting::Number(number))
    }

    /// The default is this word.
    pub const fn word(word: &'static str) -> Default {
        Default::Is(Setting::Word(word))
    }

    /// False, unless the description says otherwise.
    pub const OFF: Default = Default::Is(Setting::Flag(false));
    /// True, unless the description says otherwise.
    pub const ON: Default = Default::Is(Setting::Flag(true));
}

impl Family {
    /// The keys of all members, each once.
    pub fn keys(&self) -> Vec<&'static Key> {
        let mut all: Vec<&'static Key> = Vec::new();
        for (_, keys) in (self.members)() {
            all.extend(keys.iter().filter(|key| !all.iter().any(|known| known.name == key.name)).collect::<Vec<_>>());
        }
        all
    }

    /// The keys of one member.
    pub fn keys_of(&self, member: &str) -> &'static [Key] {
        (self.members)().into_iter().find(|(name, _)| *name == member).map_or(&[], |(_, keys)| keys)
    }

    /// The members that have a key.
    pub fn owners(&self, key: &str) -> Vec<&'static str> {
        let has = |keys: &[Key]| keys.iter().any(|owned| owned.name == key);
        (self.members)().into_iter().filter(|(_, keys)| has(keys)).map(|(name, _)| name).collect()
    }
}

impl Kind {
    /// A count of at least so many.
    pub const fn count(unit: &'static str, least: u32) -> Kind {
        Kind::Count { unit, least, most: u32::MAX }
    }

    /// Any number of bytes.
    pub const ANY_SIZE: Kind = Kind::Size { least: 0, most: u64::MAX, step: 1 };

    /// A value of such a key in TOML, in its canonical form.
    pub fn toml(&self, setting: Setting) -> toml::Value {
        match (setting, self) {
            (Setting::Flag(flag), _) => toml::Value::Boolean(flag),
            (Setting::Word(word), _) => toml::Value::String(word.to_string()),
            (Setting::Share(share), _) => quantity::share(share),
            (Setting::Number(bytes), Kind::Size { .. } | Kind::SizeOrShare { .. } | Kind::Pages) => {
                quantity::size(bytes)
            }
            (Setting::Number(bits), Kind::Bits) => quantity::bits(bits),
            (Setting::Number(bytes), Kind::Bandwidth { .. }) => quantity::bandwidth(bytes),
            (Setting::Number(hertz), Kind::Frequency { .. }) => quantity::frequency(hertz),
            (Setting::Number(ns), Kind::Time(_)) => quantity::span(Nanos(ns)),
            (Setting::Number(percent), Kind::Percent(_)) => toml::Value::String(format!("{percent}%")),
            (Setting::Number(number), _) => quantity::plain(number),
        }
    }

    /// The unit that its values are counted in, if any.
    pub fn unit(&self) -> Option<&'static str> {
        match self {
            Kind::Count { unit, .. } => Some(unit),
            Kind::Size { .. } | Kind::SizeOrShare { .. } | Kind::Pages => Some("bytes"),
            Kind::Bits => Some("bits"),
            Kind::Bandwidth { .. } => Some("bytes a second"),
            Kind::Frequency { .. } => Some("Hz"),
            Kind::Time(_) | Kind::Latency(_) | Kind::Latencies(_) => Some("ns"),
            Kind::Share | Kind::Percent(_) => Some("%"),
            _ => None,
        }
    }

    /// The type in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Text | Kind::Name(_) => "text",
            Kind::Boolean => "bool",
            Kind::Count { .. } => "count",
            Kind::Size { .. } | Kind::Pages => "size",
            Kind::SizeOrShare { .. } => "size or percentage",
            Kind::Bits => "bits",
            Kind::Bandwidth { .. } => "bandwidth",
            Kind::Frequency { .. } => "frequency",
            Kind::BooleanOrWord(_) => "bool or word",
            Kind::Time(_) => "time",
            Kind::Latency(_) => "time or range",
            Kind::Latencies(_) => "time, range or list",
            Kind::Probability => "probability",
            Kind::Share | Kind::Percent(_) => "percentage",
            Kind::Word(_) => "word",
            Kind::Allocation => "allocation",
            Kind::Table(_) | Kind::Chosen(..) => "table",
            Kind::TableOrWord(..) => "table or word",
            Kind::Tables(..) => "list of tables",
        }
    }

    /// What values it takes, in words; empty where the type says it all.
    pub fn range(&self) -> String {
        match *self {
            Kind::Name(most) => format!("1 to {most} characters"),
            Kind::Count { least, most: u32::MAX, .. } => format!("{least} or more"),
            Kind::Count { least, most, .. } => format!("{least} to {most}"),
            Kind::Size { least: 0, most: u64::MAX, step: 1 } => String::new(),
            Kind::Size { least, most, step } => {
                let from = if least <= step { String::new() } else { format!(" from {}", bytes(least)) };
                let to = if most == u64::MAX { String::new() } else { format!(" up to {}", bytes(most)) };
                format!("multiples of {step}{from}{to}")
            }
            Kind::SizeOrShare { least } => format!("from {}, or up to 100%", bytes(least)),
            Kind::Pages => "whole pages".to_string(),
            Kind::Bandwidth { least, zero } => {
                format!("{}at least {}/s", if zero { "0, or " } else { "" }, bytes(least))
            }
            Kind::Frequency { least, most } => format!("{} to {}", hertz(least), hertz(most)),
            Kind::BooleanOrWord(words) => listed(&[&["true", "false"], &words()[..]].concat()),
            Kind::Time(most) | Kind::Latency(most) | Kind::Latencies(most) => format!("up to {}", span(most)),
            Kind::Probability => "0 to 1".to_string(),
            Kind::Percent(least) => format!("{least}% to 100%"),
            Kind::Word(words) | Kind::TableOrWord(_, _, words) => listed(&words()),
            _ => String::new(),
        }
    }
}

fn bytes(bytes: u64) -> String {
    ssdlab_base::format_size(bytes)
}

/// A frequency, as messages have it.
pub(super) fn hertz(hertz: u64) -> String {
    quantity::frequency(hertz).as_str().map_or_else(|| format!("{hertz} Hz"), str::to_string)
}

/// A limit of times, which are round figures.
fn span(most: Nanos) -> String {
    match most.0 / 1_000_000_000 {
        hours if hours >= 3600 => format!("{} h", hours / 3600),
        minutes if minutes >= 60 => format!("{} min", minutes / 60),
        _ => most.to_string(),
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.range())
    }
}
