//! Every key of a drive with its value, and whether it was written: what a reader of a short description cannot see.

use toml::{Table, Value as Toml};

use super::expand::with_all_keys;
use super::key::{Default, Key, Kind};
use super::list::{Group, groups};
use super::tree::{Node, Origin, Value};
use super::{Description, keys};
use crate::DriveConfig;

/// A key of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Its dotted name.
    pub key: String,
    /// Its value, in its canonical form.
    pub value: Toml,
    /// Where the value is from.
    pub from: Source,
}

/// Where the value of a key is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The description says it.
    Description,
    /// An override says it.
    Override,
    /// It follows from another key that the description or an override gives.
    Key(String),
    /// It is the default of its key.
    Default,
}

impl Description {
    /// Every key of the drive that it describes, in the order of the tables of keys. Those of policies and designs that are
    /// not chosen are left out, unless they are written.
    pub fn filled(&self, config: &DriveConfig) -> Vec<Filled> {
        let all = with_all_keys(config);
        let groups = groups(keys::ROOT);
        let mut filled = Vec::new();
        for group in &groups {
            for key in &group.keys {
                let path = dotted(group, key);
                let Some(value) = find(&all, &path).filter(|value| !value.is_table()) else { continue };
                let from = self.source_of(&groups, &path, key);
                if from != Source::Default || is_read(group, &all) {
                    filled.push(Filled { key: path, value: value.clone(), from });
                }
            }
        }
        filled
    }

    fn source_of(&self, groups: &[Group], path: &str, key: &Key) -> Source {
        match self.written(path) {
            Some(Node { origin: Origin::Set(_), .. }) => return Source::Override,
            Some(_) => return Source::Description,
            None => {}
        }
        // What a preset does not give is none of its doing.
        let of_preset = |default: Default| !matches!(default, Default::Means(text) if !text.contains("preset"));
        let others = || groups.iter().flat_map(|group| group.keys.iter().map(move |key| (dotted(group, key), *key)));
        // Another way to say the same comes before a preset.
        let mut same = others().filter(|(_, known)| known.replaces.contains(&path));
        if let Some((other, _)) = same.find(|(other, _)| self.written(other).is_some()) {
            return Source::Key(other);
        }
        for (other, known) in others() {
            let stands_for_it = match known.kind {
                // A table's short form, and the key that it is short for, give what the table does not.
                Kind::TableOrWord(_, short, _) => {
                    let preset = format!("{other}.{short}");
                    let of_table = is_below(path, &other) && of_preset(key.default);
                    if of_table && self.written(&preset).is_some() {
                        return Source::Key(preset);
                    }
                    of_table
                }
                _ => {
                    let is_preset = |replaced: &&str| is_below(path, replaced) && of_preset(key.default);
                    known.replaces.iter().any(is_preset)
                }
            };
            if stands_for_it && self.written(&other).is_some_and(|node| !matches!(node.value, Value::Table(_))) {
                return Source::Key(other);
            }
        }
        Source::Default
    }

    /// What is written at a dotted key.
    fn written(&self, path: &str) -> Option<&Node> {
        let mut table = &self.tree.root;
        let (sections, name) = path.rsplit_once('.').unwrap_or(("", path));
        for section in sections.split('.').filter(|section| !section.is_empty()) {
            let Value::Table(below) = &table.get(section)?.value else { return None };
            table = below;
        }
        table.get(name)
    }
}

/// Whether the drive reads the keys of a group.
fn is_read(group: &Group, all: &Table) -> bool {
    group
        .owners
        .as_ref()
        .is_none_or(|(key, names)| find(all, key).and_then(Toml::as_str).is_some_and(|chosen| names.contains(&chosen)))
}

fn dotted(group: &Group, key: &Key) -> String {
    if group.section.is_empty() { key.name.to_string() } else { format!("{}.{}", group.section, key.name) }
}

fn is_below(path: &str, section: &str) -> bool {
    path.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Toml> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let value = table.get(first)?;
    if rest.is_empty() { Some(value) } else { find(value.as_table()?, rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\npages_per_block = 64\n\
                         page_size = \"4k\"\ndie_capacity = \"256Mb\"\n[capacity]\nover_provisioning = \"20%\"\n";

    fn sources(text: &str, sets: &[&str]) -> Vec<(String, Source)> {
        let mut description = Description::parse(&format!("{SMALL}{text}"), "drive.toml").expect("a description");
        sets.iter().for_each(|set| description.set(set).expect("a key"));
        let config = description.resolve().expect("a drive");
        description.filled(&config).into_iter().map(|filled| (filled.key, filled.from)).collect()
    }

    fn source(key: &str, text: &str, sets: &[&str]) -> Option<Source> {
        sources(text, sets).into_iter().find(|(name, _)| name == key).map(|(_, from)| from)
    }

    #[test]
    fn every_key_says_who_gave_its_value() {
        let of = |key| source(key, "", &["flash.cell=tlc", "flash.timing.erase=3ms", "gc.victim=fifo"]);
        let preset = |key: &str| Some(Source::Key(key.to_string()));
        // An override of a preset's latency spells the preset out.
        assert_eq!(of("flash.channels"), Some(Source::Description));
        assert_eq!(of("flash.blocks_per_plane"), preset("flash.die_capacity"));
        assert_eq!(of("capacity.user"), preset("capacity.over_provisioning"));
        assert_eq!(of("flash.timing.read"), preset("flash.cell"));
        assert_eq!(of("flash.timing.erase"), Some(Source::Override));
        assert_eq!(of("flash.timing.suspend"), Some(Source::Default));
        assert_eq!(of("gc.victim"), Some(Source::Override));
        assert_eq!(of("gc.free_blocks"), Some(Source::Default));
        assert_eq!(of("interface.read_overhead"), Some(Source::Default));
        assert_eq!(of("gc.choices"), None, "no policy of the drive reads it");
        assert_eq!(source("gc.choices", "", &["flash.cell=tlc", "gc.choices=3"]), Some(Source::Override));
        assert_eq!(source("flash.timing.read", "", &["flash.timing=mlc"]), preset("flash.timing"));
        let table = "[flash.timing]\npreset = \"slc\"\nchannel_bandwidth = \"800MB/s\"\n";
        assert_eq!(source("flash.timing.read", table, &[]), preset("flash.timing.preset"));
        assert_eq!(source("flash.timing.transfer", table, &[]), preset("flash.timing.channel_bandwidth"));
        assert_eq!(source("flash.timing", "", &["flash.timing=none"]), Some(Source::Override));
    }
}
