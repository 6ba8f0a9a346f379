//! Settings that were changed although nothing of the drive reads them: those of a policy or design that it does not have.
//!
//! They are no errors, since drives that are compared share their settings, but whoever changes one expects a difference.

use std::collections::HashSet;

use toml::{Table, Value};

use super::controller::{CHOICES, low_watermark, version_chain};
use super::expanded;
use crate::buffer::POLICIES as BUFFERS;
use crate::ftl::DESIGNS;
use crate::gc::victim::POLICIES as VICTIMS;
use crate::{BufferPolicies, DestageConfig, DriveConfig, VersionsConfig};

/// Section, the key of it that names a policy or design, and every name there with the keys that it says it reads.
type Owners = (&'static str, &'static str, Vec<(&'static str, &'static [&'static str])>);

/// What reads which keys of its section beside those that everything reads. Of `[ftl]` only the keys of versions are ever
/// found different: no others are put back to their defaults.
fn owners(config: &DriveConfig) -> [Owners; 4] {
    let buffers = BUFFERS.iter().map(|(name, _, make)| (*name, make.map_or(&[][..], |make| make(config).keys())));
    let designs = DESIGNS.iter().map(|(name, _, design)| (*name, design.keys));
    let victims = VICTIMS.iter().map(|(name, _, make)| (*name, make(&config.gc).keys()));
    let destage: [(&str, &[&str]); 2] = [("on-demand", &[]), ("watermark", &["high_watermark", "low_watermark"])];
    [
        ("buffer", "policy", buffers.collect()),
        ("buffer", "destage", destage.to_vec()),
        ("ftl", "design", designs.collect()),
        ("gc", "victim", victims.collect()),
    ]
}

/// What differs from its default and is not read, a sentence each.
pub fn idle_settings(config: &DriveConfig) -> Vec<String> {
    // A design's own keys are written only where it is chosen.
    let mut all = config.clone();
    all.ftl.design = "mv".to_string();
    let mut plain = all.clone();
    // A default that follows another key is not what anybody wrote.
    let low_percent = low_watermark(config.buffer.destage.high_percent);
    plain.buffer.destage = DestageConfig { low_percent, ..DestageConfig::default() };
    plain.buffer.policies =
        BufferPolicies { block_pages: config.flash.geometry.pages_per_block, ..BufferPolicies::default() };
    plain.ftl.versions =
        VersionsConfig { chain: version_chain(config.ftl.versions.index), ..VersionsConfig::default() };
    plain.gc.choices = CHOICES;
    // Asked with every setting at its default: a wild one of another policy must not reach this policy's constructor.
    let owners = owners(&plain);
    let (own, all, plain) = (expanded(config), expanded(&all), expanded(&plain));
    let mut sentences = Vec::new();
    for (section, owner, known) in owners {
        let Some(chosen) = value(&own, section, owner).and_then(Value::as_str) else { continue };
        let read = known.iter().find(|(name, _)| *name == chosen).map_or(&[][..], |(_, keys)| keys);
        let mut keys: Vec<&str> = known.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        let mut seen = HashSet::new();
        keys.retain(|key| seen.insert(*key) && !read.contains(key));
        for key in keys {
            let found = value(&all, section, key);
            if let Some(found) = found.filter(|found| Some(*found) != value(&plain, section, key)) {
                let readers = known.iter().filter(|(_, keys)| keys.contains(&key));
                let readers: Vec<String> = readers.map(|(name, _)| format!("\"{name}\"")).collect();
                sentences.push(format!(
                    "{section}.{key} = {found} changes nothing: it is for {section}.{owner} = {}, and this drive's is \
                     \"{chosen}\"",
                    readers.join(" or ")
                ));
            }
        }
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
    use crate::description::FTL;

    fn drive(settings: &[&str]) -> DriveConfig {
        let text = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = 64\n\
                    pages_per_block = 48\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nover_provisioning = \"20%\"\n";
        let mut description = Description::parse(text, "drive.toml").expect("a description");
        settings.iter().for_each(|setting| description.set(setting).expect("a key"));
        description.resolve().expect("a drive")
    }

    #[test]
    fn a_setting_of_another_design_is_told_and_one_of_its_own_is_not() {
        assert_eq!(idle_settings(&drive(&[])), Vec::<String>::new());
        let told = idle_settings(&drive(&["ftl.compaction=true", "gc.choices=3", "buffer.mca_window=9"]));
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(
            told[1],
            "ftl.compaction = true changes nothing: it is for ftl.design = \"mv\", and this drive's is \"page\""
        );
        let own = ["ftl.design=mv", "ftl.compaction=true", "gc.victim=d-choices", "gc.choices=3"];
        assert_eq!(idle_settings(&drive(&own)), Vec::<String>::new());
        let buffer = ["buffer.policy=fab", "buffer.size=64k", "buffer.block_pages=32", "buffer.lirs_hir_permille=20"];
        let told = idle_settings(&drive(&buffer));
        assert!(told.len() == 1 && told[0].contains("\"lirs\" or \"pc-lirs\""), "{told:?}");
    }

    #[test]
    fn a_default_that_follows_from_another_key_is_not_told() {
        let on_demand = ["buffer.policy=lru", "buffer.size=64k", "buffer.destage=on-demand"];
        let with = |more: &[&str]| idle_settings(&drive(&[&on_demand, more].concat()));
        assert_eq!(with(&[]), Vec::<String>::new());
        let [high] = &with(&["buffer.high_watermark=60%"])[..] else { panic!("one sentence") };
        assert!(high.starts_with("buffer.high_watermark = \"60%\" changes nothing"), "{high}");
        let [low] = &with(&["buffer.low_watermark=60%"])[..] else { panic!("one sentence") };
        assert!(low.starts_with("buffer.low_watermark = \"60%\" changes nothing"), "{low}");
        assert_eq!(with(&["buffer.high_watermark=60%", "buffer.low_watermark=20%"]).len(), 2);
        // A direct index finds two versions of a page, so the chain's default is another one.
        let [index] = &idle_settings(&drive(&["ftl.version_index=direct"]))[..] else { panic!("one sentence") };
        assert!(index.starts_with("ftl.version_index = \"direct\" changes nothing"), "{index}");
    }

    #[test]
    fn every_owned_key_is_a_key() {
        let keys = crate::description::keys();
        let mut owned = 0;
        for (section, owner, known) in owners(&drive(&[])) {
            assert!(keys.contains(&format!("{section}.{owner}")), "{section}.{owner}");
            for key in known.iter().flat_map(|(_, keys)| keys.iter()) {
                assert!(keys.contains(&format!("{section}.{key}")), "{section}.{key}");
                owned += 1;
            }
        }
        assert!(owned > 6 + FTL.len(), "the policies that ship say what they read");
    }
}
