//! Settings that were changed although nothing of the drive reads them: those of a policy or design that it does not have.
//!
//! They are no errors, since drives that are compared share their settings, but a user who changes one expects a
//! difference.

use toml::{Table, Value};

use super::controller::low_watermark;
use super::expand::with_all_keys;
use super::key::{Key, Kind};
use super::keys;
use crate::{DestageConfig, DriveConfig, PlacementConfig};

/// A key that says what reads others, and every key that only some of what it can name reads, with their names.
type Readers = (&'static str, Vec<(&'static Key, Vec<&'static str>)>);

/// What of a section is not read whatever the drive.
fn readers(section: &'static Key) -> Vec<Readers> {
    let mut all: Vec<Readers> = Vec::new();
    if let Kind::Chosen(_, family) = section.kind {
        all.push((family.key, family.keys().into_iter().map(|key| (key, family.owners(key.name))).collect()));
    }
    for key in section.keys() {
        let Some((owner, word)) = key.only_with else { continue };
        match all.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, keys)) => keys.push((key, vec![word])),
            None => all.push((owner, vec![(key, vec![word])])),
        }
    }
    all
}

/// What differs from its default and is not read, a sentence each. `collects_by_policy` is what the drive says of itself
/// ([`Drive::collects_by_policy`](crate::Drive::collects_by_policy)).
pub fn idle_settings(config: &DriveConfig, collects_by_policy: bool) -> Vec<String> {
    let (destage, mut plain) = (&config.buffer.destage, config.clone());
    // A default that follows another key is not what anybody wrote.
    plain.buffer.destage =
        DestageConfig { low_percent: low_watermark(destage.high_percent), ..DestageConfig::default() };
    let (found, plain) = (with_all_keys(config), with_all_keys(&plain));
    let mut sentences = Vec::new();
    for section in keys::ROOT {
        for (owner, keys) in readers(section) {
            let Some(chosen) = value(&found, section.name, owner).and_then(Value::as_str) else { continue };
            for (key, readers) in keys {
                let Some(set) = value(&found, section.name, key.name) else { continue };
                let own = config.own_settings(section.name).is_some_and(|own| own.has(key.name));
                let changed = own || Some(set) != value(&plain, section.name, key.name);
                if changed && !readers.contains(&chosen) {
                    let readers: Vec<String> = readers.iter().map(|name| format!("\"{name}\"")).collect();
                    sentences.push(format!(
                        "{section}.{key} = {set} changes nothing: it is for {section}.{owner} = {}, and this drive's is \
                         \"{chosen}\"",
                        readers.join(" or "),
                        section = section.name,
                        key = key.name,
                    ));
                }
            }
        }
    }
    if !collects_by_policy && config.gc.victim != keys::DEFAULT_VICTIM {
        sentences.push(format!(
            "gc.victim = \"{}\" changes nothing: ftl.design = \"{}\" uses no victim policy",
            config.gc.victim, config.ftl.design
        ));
    }
    if !collects_by_policy && config.placement.policy != PlacementConfig::default().policy {
        sentences.push(format!(
            "placement.policy = \"{}\" changes nothing: ftl.design = \"{}\" has no streams",
            config.placement.policy, config.ftl.design
        ));
    }
    sentences
}

fn value<'a>(table: &'a Table, section: &str, key: &str) -> Option<&'a Value> {
    table.get(section)?.get(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Description;

    fn drive(settings: &[&str]) -> DriveConfig {
        let text = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = 64\n\
                    pages_per_block = 48\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nover_provisioning = \"20%\"\n";
        let mut description = Description::parse(text, "drive.toml").expect("a description");
        settings.iter().for_each(|setting| description.set(setting).expect("a key"));
        description.resolve().expect("a drive")
    }

    #[test]
    fn a_setting_of_another_design_is_told_and_one_of_its_own_is_not() {
        assert_eq!(idle_settings(&drive(&[]), true), Vec::<String>::new());
        let told = idle_settings(&drive(&["ftl.compaction=true", "gc.choices=3", "buffer.mca_window=9"]), true);
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(
            told[1],
            "ftl.compaction = true changes nothing: it is for ftl.design = \"mvftl\", and this drive's is \"page\""
        );
        let own = ["ftl.design=mvftl", "ftl.compaction=true", "gc.victim=d-choices", "gc.choices=3"];
        assert_eq!(idle_settings(&drive(&own), true), Vec::<String>::new());
        // No victim policy is asked where the design chooses.
        let told = idle_settings(&drive(&["gc.victim=fifo"]), false);
        assert_eq!(told, ["gc.victim = \"fifo\" changes nothing: ftl.design = \"page\" uses no victim policy"]);
        assert_eq!(idle_settings(&drive(&["gc.victim=fifo"]), true), Vec::<String>::new());
        assert_eq!(idle_settings(&drive(&[]), false), Vec::<String>::new());
        let buffer = ["buffer.policy=fab", "buffer.size=64k", "buffer.block_pages=32", "buffer.lirs_hir_permille=20"];
        let told = idle_settings(&drive(&buffer), true);
        assert!(told.len() == 1 && told[0].contains("\"lirs\" or \"pc-lirs\""), "{told:?}");
    }

    #[test]
    fn a_default_that_follows_from_another_key_is_not_told() {
        let on_demand = ["buffer.policy=lru", "buffer.size=64k", "buffer.destage=on-demand"];
        let with = |more: &[&str]| idle_settings(&drive(&[&on_demand, more].concat()), true);
        assert_eq!(with(&[]), Vec::<String>::new());
        let [high] = &with(&["buffer.high_watermark=60%"])[..] else { panic!("one sentence") };
        assert!(high.starts_with("buffer.high_watermark = \"60%\" changes nothing"), "{high}");
        let [low] = &with(&["buffer.low_watermark=60%"])[..] else { panic!("one sentence") };
        assert!(low.starts_with("buffer.low_watermark = \"60%\" changes nothing"), "{low}");
        assert_eq!(with(&["buffer.high_watermark=60%", "buffer.low_watermark=20%"]).len(), 2);
        // A direct index finds two versions of a page, so the chain's default is another one.
        let [index] = &idle_settings(&drive(&["ftl.version_index=direct"]), true)[..] else { panic!("one sentence") };
        assert!(index.starts_with("ftl.version_index = \"direct\" changes nothing"), "{index}");
    }
}
