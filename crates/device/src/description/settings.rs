//! What a description says to single policies and designs: values of the keys that are theirs alone.
//!
//! A section of the configuration carries one [`Settings`]. Only values that differ from their default are in it, so
//! nothing outside a policy knows which keys it has, and what is there but not read is easily told.

use std::collections::BTreeMap;

use super::key::{Default, Key, Words, of_word};
use super::quantity::BILLION;
use ssdlab_flash::Geometry;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// True or false.
    Flag(bool),
    /// A count, bytes, or percent.
    Number(u64),
    /// A share of a whole, in billionths of a percent.
    Share(u64),
    /// A word of the key's.
    Word(&'static str),
}

impl Setting {
    /// The flag that it is.
    pub(super) fn flag(self) -> bool {
        match self {
            Setting::Flag(flag) => flag,
            other => panic!("{other:?} is no flag"),
        }
    }

    /// The number that it is.
    pub(super) fn number(self) -> u64 {
        match self {
            Setting::Number(number) => number,
            other => panic!("{other:?} is no number"),
        }
    }

    /// The count that it is; one beyond 32 bits is the most.
    pub fn count(self) -> u32 {
        self.number().try_into().unwrap_or(u32::MAX)
    }

    /// The word that it is.
    pub(super) fn word(self) -> &'static str {
        match self {
            Setting::Word(word) => word,
            other => panic!("{other:?} is no word"),
        }
    }
}

impl From<bool> for Setting {
    fn from(flag: bool) -> Setting {
        Setting::Flag(flag)
    }
}

impl From<u32> for Setting {
    fn from(number: u32) -> Setting {
        Setting::Number(number.into())
    }
}

impl From<u64> for Setting {
    fn from(number: u64) -> Setting {
        Setting::Number(number)
    }
}

impl From<&'static str> for Setting {
    fn from(word: &'static str) -> Setting {
        Setting::Word(word)
    }
}

/// The values that differ from their default, by the name of their key.
///
/// ```
/// use ssdlab_device::Settings;
/// let mut own = Settings::default();
/// own.set("choices", 3_u32);
/// assert_eq!(own, Settings::default().with("choices", 3_u32));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, std::default::Default)]
pub struct Settings(BTreeMap<&'static str, Setting>);

impl Settings {
    /// Sets the value of a key, whatever its range and default.
    pub fn set(&mut self, key: &'static str, value: impl Into<Setting>) {
        self.0.insert(key, value.into());
    }

    /// These settings with one value more.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Setting>) -> Settings {
        self.set(key, value);
        self
    }

    /// Whether the key has a value of its own.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Keeps the values that differ from the defaults of `keys`.
    pub(super) fn drop_defaults(&mut self, keys: &[&'static Key], geometry: &Geometry) {
        let all = self.clone();
        self.0.retain(|name, value| {
            let key = keys.iter().find(|key| key.name == *name);
            key.is_none_or(|key| default(key, geometry, &all) != Some(*value))
        });
    }

    /// The value of a key, or its default; `None` where nothing is the default.
    pub(super) fn value(&self, key: &Key, geometry: &Geometry) -> Option<Setting> {
        self.0.get(key.name).copied().or_else(|| default(key, geometry, self))
    }

    fn need(&self, key: &Key, geometry: &Geometry) -> Setting {
        self.value(key, geometry).unwrap_or_else(|| panic!("{} has neither value nor default", key.name))
    }

    /// A flag's value.
    pub(crate) fn flag(&self, key: &Key, geometry: &Geometry) -> bool {
        self.need(key, geometry).flag()
    }

    /// Bytes, percent or a count.
    pub(crate) fn number(&self, key: &Key, geometry: &Geometry) -> u64 {
        self.need(key, geometry).number()
    }

    /// Bytes, as they are or as a share of `whole`, rounded down.
    pub(crate) fn bytes_of(&self, key: &Key, geometry: &Geometry, whole: u64) -> u64 {
        match self.need(key, geometry) {
            Setting::Share(share) => {
                assert!(share <= 100 * BILLION, "{} is {share} billionths of a percent", key.name);
                let bytes = u128::from(whole) * u128::from(share) / u128::from(100 * BILLION);
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
            bytes => bytes.number(),
        }
    }

    /// A count's value.
    pub(crate) fn count(&self, key: &Key, geometry: &Geometry) -> u32 {
        self.need(key, geometry).count()
    }

    /// A count's value, where nothing is the default.
    pub(crate) fn some_count(&self, key: &Key, geometry: &Geometry) -> Option<u32> {
        self.value(key, geometry).map(Setting::count)
    }

    /// Bytes, percent or a count, where nothing is the default.
    pub(crate) fn some_number(&self, key: &Key, geometry: &Geometry) -> Option<u64> {
        self.value(key, geometry).map(Setting::number)
    }

    /// The value of a word.
    pub(crate) fn choice<T: Words>(&self, key: &Key, geometry: &Geometry) -> T {
        of_word(self.need(key, geometry).word())
    }
}

/// What a key without a value means.
fn default(key: &Key, geometry: &Geometry, all: &Settings) -> Option<Setting> {
    match key.default {
        Default::Follows(_, default) => Some(default(geometry, all)),
        Default::Is(setting) => Some(setting),
        Default::Required(_) | Default::Means(_) => None,
    }
}
