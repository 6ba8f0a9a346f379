//! The tables of keys: what is printed of them, what is written of them, and that they say what the reader does.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use ssdlab_device::description::{Default, KEYS, Key, Kind, groups, keys, schema, with_tables};
use ssdlab_device::{Description, DriveConfig, Setting};

const GOOD: &str = r#"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 64
pages_per_block = 32
page_size = "4k"
cell = "slc"
[capacity]
over_provisioning = "20%"
"#;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn resolve(text: &str) -> Result<DriveConfig, String> {
    let description = Description::parse(text, "d.toml").map_err(|error| error.to_string())?;
    description.resolve().map_err(|error| error.to_string())
}

fn validator() -> Validator {
    let schema = schema("a drive", KEYS);
    jsonschema::meta::validate(&schema).expect("the schema is one");
    jsonschema::validator_for(&schema).expect("the schema can be used")
}

fn is_valid(validator: &Validator, text: &str) -> Result<(), String> {
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let value = serde_json::to_value(&table).expect("a table is JSON");
    validator.validate(&value).map_err(|error| format!("{}: {error}", error.instance_path()))
}

/// `GOOD` with one key set to TOML text.
fn with(key: &str, value: &str) -> Option<String> {
    let mut table: toml::Table = GOOD.parse().expect("TOML");
    let value: toml::Table = format!("value = {value}").parse().ok()?;
    let (sections, name) = match key.rsplit_once('.') {
        Some((sections, name)) => (sections.split('.').collect(), name),
        None => (Vec::new(), key),
    };
    let mut at = &mut table;
    for section in sections {
        let below = at.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = below.as_table_mut().expect("a section");
    }
    at.insert(name.to_string(), value["value"].clone());
    Some(table.to_string())
}

#[test]
fn the_tables_of_the_documentation_are_the_tables_of_keys() {
    let path = repository().join("docs/description.md");
    let page = std::fs::read_to_string(&path).expect("docs/description.md ships");
    let right = with_tables(&page, KEYS).unwrap_or_else(|error| panic!("docs/description.md: {error}"));
    if std::env::var_os("SSDLAB_WRITE_DOCS").is_some() {
        return std::fs::write(&path, right).expect("docs/description.md can be written");
    }
    let differs = page.lines().zip(right.lines()).find(|(page, right)| page != right);
    assert!(
        page == right,
        "docs/description.md does not show the keys as they are, first here:\n{differs:?}\n\
         write its tables with: SSDLAB_WRITE_DOCS=1 cargo test -p ssdlab-device --test it description_keys::"
    );
    let sections = page.lines().filter(|line| line.starts_with("<!-- keys of ")).count();
    let mut all: Vec<String> = groups(KEYS).into_iter().map(|group| group.section).collect();
    all.dedup();
    assert_eq!(sections, all.len(), "every section has its table: {all:?}");
}

#[test]
fn a_page_that_names_no_section_or_does_not_end_its_table_is_refused() {
    let refused = |page: &str| with_tables(page, KEYS).expect_err("it is wrong").to_string();
    assert_eq!(refused("<!-- keys of gcc -->\n<!-- end -->\n"), "'<!-- keys of gcc -->': there is no section gcc");
    assert!(refused("<!-- keys of gc -->\n| a |\n").contains("found no '<!-- end -->'"));
}

#[test]
fn a_default_that_is_written_down_changes_nothing() {
    let plain = resolve(GOOD).expect("a drive");
    let mut written = 0;
    for group in groups(KEYS) {
        for key in group.keys {
            let Default::Is(setting) = key.default else { continue };
            let name = format!("{}.{}", group.section, key.name);
            if name == "flash.faults.script.nth" {
                continue;
            }
            let text = with(&name, &key.kind.toml(setting).to_string()).expect("a default is TOML");
            assert_eq!(resolve(&text).as_ref(), Ok(&plain), "{name}");
            written += 1;
        }
    }
    assert!(written > 40, "only {written} keys have a default of their own");
}

#[test]
fn both_ends_of_a_range_are_taken_and_what_is_beyond_is_refused() {
    let (mut taken, mut refused) = (0, 0);
    for group in groups(KEYS) {
        for key in &group.keys {
            let name = format!("{}.{}", group.section, key.name);
            let (ends, beyond) = match key.kind {
                Kind::Count { least, most, .. } => {
                    let lower = i64::from(least) - 1;
                    (
                        vec![least.to_string(), most.to_string()],
                        vec![lower.to_string(), (i64::from(most) + 1).to_string()],
                    )
                }
                Kind::Percent(least) => {
                    (vec![format!("\"{least}%\""), "\"100%\"".into()], vec!["\"101%\"".into(), "\"-1%\"".into()])
                }
                Kind::Time(most) => {
                    (vec!["0".into(), format!("\"{}ns\"", most.0)], vec![format!("\"{}ns\"", most.0 + 1)])
                }
                Kind::Word(words) => {
                    (words().iter().map(|word| format!("\"{word}\"")).collect(), vec!["\"nonsense\"".into()])
                }
                Kind::Boolean => (vec!["true".into(), "false".into()], vec!["1".into(), "\"true\"".into()]),
                _ => continue,
            };
            // An end may be wrong for this drive, but then the message is not that of the range.
            let of_range = |text: &str, value: &str| {
                let Some(text) = with(&name, value) else { panic!("{name} = {text}") };
                resolve(&text).err().filter(|message| message.contains(&format!("{name}: found {value}, expected")))
            };
            if name.starts_with("flash.faults.script") {
                continue;
            }
            for value in beyond {
                assert!(of_range("beyond", &value).is_some(), "{name} = {value} is beyond the range");
                refused += 1;
            }
            for value in ends {
                if let Some(message) = of_range("an end", &value) {
                    let own = ["of at least", "from", "at most", "expected true or false"];
                    assert!(
                        !own.iter().any(|words| message.contains(&format!("expected a whole number {words}"))),
                        "{message}"
                    );
                }
                taken += 1;
            }
        }
    }
    assert!(taken > 80 && refused > 60, "{taken} ends, {refused} beyond");
}

#[test]
fn what_one_policy_or_design_reads_is_told_with_its_name_and_nowhere_else() {
    let owners = |name: &str| {
        let mut of: Vec<String> = Vec::new();
        for group in groups(KEYS) {
            if group.keys.iter().any(|key| key.name == name) {
                of.push(group.title());
            }
        }
        of
    };
    assert_eq!(owners("choices"), ["gc, read with gc.victim = \"d-choices\""]);
    assert_eq!(owners("block_pages"), ["buffer, read with buffer.policy = \"fab\" or \"bplru\""]);
    assert_eq!(owners("compaction").len(), 1);
    assert_eq!(owners("victim"), ["gc"]);
    let mut names = keys();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "no key is told twice");
    let told: usize = groups(KEYS).iter().map(|group| group.keys.len()).sum();
    assert_eq!(told, all, "every key is in one group");
    let empty: Vec<&str> = groups(KEYS)
        .iter()
        .flat_map(|group| group.keys.clone())
        .filter(|key: &&Key| key.meaning.is_empty())
        .map(|key| key.name)
        .collect();
    assert_eq!(empty, Vec::<&str>::new(), "every key has its sentence");
}

/// A key that single policies or designs read is named in their files alone; tests may set it.
#[test]
fn no_file_of_the_controller_names_a_key_of_one_policy_or_design() {
    let own: Vec<String> = groups(KEYS)
        .into_iter()
        .filter(|group| group.owners.is_some())
        .flat_map(|group| group.keys.into_iter().map(move |key| format!("{}.{}", group.section, key.name)))
        .collect();
    assert!(own.len() >= 17, "{own:?}");
    let source = repository().join("crates/device/src");
    let sections = ["buffer", "ftl", "gc/victim", "placement"].map(|folder| source.join(folder));
    let (mut folders, mut files) = (vec![source.clone()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                folders.extend((!sections.contains(&path)).then_some(path));
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source can be read");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                for key in &own {
                    let (_, name) = key.split_once('.').expect("a dotted key");
                    let named = line.contains(key.as_str()) || line.contains(&format!("\"{name}\""));
                    assert!(!named, "{} names {key}: {}", path.display(), line.trim());
                }
            }
            files += 1;
        }
    }
    assert!(files > 30, "only {files} files were looked at");
}

#[test]
fn every_shipped_drive_is_valid_by_the_schema() {
    let validator = validator();
    let mut shipped = 0;
    for entry in std::fs::read_dir(repository().join("devices")).expect("devices/ ships with the sources") {
        let path = entry.expect("devices/ can be listed").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("a description can be read");
            // Disks have keys of their own.
            if text.contains("\n[disk]\n") {
                continue;
            }
            assert_eq!(is_valid(&validator, &text), Ok(()), "{}", path.display());
            let config = resolve(&text).expect("it resolves");
            let expanded = ssdlab_device::description::to_toml(&config);
            assert_eq!(is_valid(&validator, &expanded), Ok(()), "{} expanded", path.display());
            shipped += 1;
        }
    }
    assert!(shipped >= 15, "only {shipped} drives ship");
}

#[test]
fn the_schema_refuses_what_is_wrong_with_one_key() {
    let validator = validator();
    assert_eq!(is_valid(&validator, GOOD), Ok(()));
    for (key, value) in [
        ("chanels", "2"),
        ("flash.chanels", "2"),
        ("flash.channels", "0"),
        ("flash.channels", "\"two\""),
        ("flash.page_size", "1000"),
        ("flash.page_size", "\"4 kilos\""),
        ("flash.page_size", "\"4KB\""),
        ("flash.die_capacity", "\"128GB\""),
        ("flash.die_capacity", "128"),
        ("flash.die_capacity", "\"128Mb\""),
        ("flash.cell", "\"slk\""),
        ("flash.timing", "\"fast\""),
        ("flash.timing.read", "20"),
        ("flash.timing.read", "[]"),
        ("flash.timing.read", "[\"20us\", 5]"),
        ("flash.timing.tR", "\"20us\""),
        ("flash.faults.program_failure", "1.5"),
        ("flash.faults.script", "[{ kind = \"burn\", block = 5 }]"),
        ("flash.faults.script", "[{ kind = \"read\" }]"),
        ("capacity.user", "\"1g\""),
        ("capacity.over_provisioning", "\"20\""),
        ("interface.kind", "\"scsi\""),
        ("interface.bandwidth", "\"fast\""),
        ("interface.bandwidth", "-1"),
        ("buffer.policy", "\"mru\""),
        ("buffer.high_watermark", "\"0%\""),
        ("buffer.low_watermark", "\"101%\""),
        ("ftl.allocation", "\"ccdp\""),
        ("ftl.separate_gc_frontier", "\"yes\""),
        ("ftl.version_chain", "1"),
        ("ftl.map_cache", "\"101%\""),
        ("ftl.map_cache", "15"),
        ("gc.choices", "0"),
        ("gc.idle_after", "100"),
        ("name", "\"a/b\""),
    ] {
        let text = with(key, value).expect("TOML");
        assert!(is_valid(&validator, &text).is_err(), "{key} = {value} is no error");
        assert!(resolve(&text).is_err(), "{key} = {value} is no error to ssdlab");
    }
    assert!(is_valid(&validator, &GOOD.replace("channels = 2", "")).is_err(), "a required key is missing");
    assert!(is_valid(&validator, &GOOD.replace("over_provisioning = \"20%\"", "")).is_err(), "there is no capacity");
}

/// What the schema refuses is refused. The other way round does not hold: keys ask things of each other.
#[test]
fn what_is_read_the_schema_takes() {
    let validator = validator();
    let values = [
        "0",
        "1",
        "2",
        "3",
        "512",
        "513",
        "65536",
        "4294967295",
        "1.0",
        "0.5",
        "-0.0",
        "true",
        "false",
        "\"\"",
        "\"0\"",
        "\"4k\"",
        "\"4 KiB\"",
        "\"8_192\"",
        "\"1.5m\"",
        "\"64kB\"",
        "\"2Mb\"",
        "\"128Gb\"",
        "\"1GB/s\"",
        "\"800 MiB/s\"",
        "\"0%\"",
        "\"7%\"",
        "\" 7.5 %\"",
        "\"100%\"",
        "\"+007%\"",
        "\"0.1%\"",
        "\"1e-3%\"",
        "\"20us\"",
        "\"1.5 ms\"",
        "\"1h\"",
        "\"1ns..60s\"",
        "[\"20us\", \"30us..40us\"]",
        "[0]",
        "[]",
        "\"slc\"",
        "\"none\"",
        "\"tlc\"",
        "\"lru\"",
        "\"mvftl\"",
        "\"pdwc\"",
        "\"round-robin:dpcw\"",
        "\"dynamic\"",
        "\"d-choices\"",
        "\"host-first\"",
        "\"drive\"",
        "\"sata\"",
        "\"oob\"",
        "{ preset = \"mlc\", read = \"1us\" }",
        "[{ kind = \"die\", block = 3 }]",
    ];
    let mut read = 0;
    for key in keys() {
        for value in values {
            let Some(text) = with(&key, value) else { continue };
            if let Ok(config) = resolve(&text) {
                assert_eq!(is_valid(&validator, &text), Ok(()), "{key} = {value}");
                let expanded = ssdlab_device::description::to_toml(&config);
                assert_eq!(is_valid(&validator, &expanded), Ok(()), "{key} = {value}, expanded");
                read += 1;
            }
        }
    }
    assert!(read > 250, "only {read} are read");
}

#[test]
fn a_setting_of_a_design_is_asked_for_by_its_key() {
    let config = resolve(&with("gc.choices", "3").expect("TOML")).expect("a drive");
    assert_eq!(config.own("gc.choices"), Some(Setting::Number(3)));
    assert_eq!(config.own("buffer.block_pages"), Some(Setting::Number(32)), "as many as a block of flash");
    let direct = resolve(&with("ftl.version_index", "\"direct\"").expect("TOML")).expect("a drive");
    assert_eq!(direct.own("ftl.version_chain"), Some(Setting::Number(2)));
    assert_eq!(config.own("ftl.version_chain"), Some(Setting::Number(4)));
    assert_eq!((config.own("ftl.version_bits"), config.own("gc.nonsense"), config.own("choices")), (None, None, None));
}
