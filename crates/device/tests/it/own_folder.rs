//! A design owns itself: outside its folder and one registry line no source file names an FTL design or a key of one.
//!
//! Tests may name designs, and so may what reproduces a paper's own systems. In comments and in test modules names are free.

use std::path::{Path, PathBuf};

use ssdlab_base::COMMAND_SETS;
use ssdlab_device::description::{Group, KEYS, groups};
use ssdlab_device::registered;

/// Folders and files below `crates` that may: the designs, the fuzz target of one, papers' systems, and names of the past.
const MAY_NAME: [&str; 5] =
    ["device/src/ftl/", "device/src/fuzzing/", "papers/src/", "cli/src/figure17", "base/src/renamed.rs"];

/// Layers have tables of their own keys, and fio has keys, some with the name of a design's.
const HAS_OTHER_KEYS: [&str; 2] = ["host/", "workload/src/fio/"];

fn designs() -> Vec<&'static str> {
    registered().into_iter().filter(|entry| entry.kind == "ftl.design").map(|entry| entry.name).collect()
}

/// Keys that one design alone has.
fn own_keys() -> Vec<&'static str> {
    let of_designs = |group: &Group| group.owners.as_ref().is_some_and(|(key, _)| key == "ftl.design");
    let groups = groups(KEYS).into_iter().filter(of_designs);
    groups.flat_map(|group| group.keys).map(|key| key.name).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What a line of a source names of a design, if anything. A key counts with its section, and if `bare` without it as well.
fn named(line: &str, designs: &[&str], keys: &[&str], bare: bool) -> Option<String> {
    let code = line.split("//").next().unwrap_or_default();
    let quoted = |word: &str| code.contains(&format!("\"{word}\""));
    let module = |word: &str| {
        let path = format!("{}::", word.replace('-', "_"));
        code.match_indices(&path).any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    // A name that is a word of storage as well, or that of a command set and of the layer that sends it, counts where designs are
    // spoken of.
    let is_shared = |name: &str| name == "page" || COMMAND_SETS.iter().any(|set| set.name == name);
    let is_named = |name: &&&str| {
        quoted(name) && (!is_shared(name) || code.contains("design"))
            || module(name) && (!is_shared(name) || **name == "page")
    };
    let key = keys.iter().find(|key| bare && quoted(key) || quoted(&format!("ftl.{key}")));
    designs.iter().find(is_named).or(key).map(|word| (*word).to_string())
}

#[test]
fn no_file_outside_its_folder_names_a_design_or_a_key_of_one() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (designs, keys) = (designs(), own_keys());
    assert!(designs.len() >= 4 && keys.len() >= 10, "{designs:?} with the keys {keys:?}");
    let mut files = Vec::new();
    for one in std::fs::read_dir(&crates).expect("the crates").flatten() {
        if one.path().join("src").is_dir() {
            sources(&one.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "{} files of sources", files.len());
    let mut leaks = Vec::new();
    for file in files {
        let name = file.strip_prefix(&crates).expect("a file below the crates").to_string_lossy().into_owned();
        if MAY_NAME.iter().any(|allowed| name.starts_with(allowed)) || name.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if let Some(word) =
                named(line, &designs, &keys, !HAS_OTHER_KEYS.iter().any(|other| name.starts_with(other)))
            {
                leaks.push(format!("crates/{name}:{}: '{word}' in {}", number + 1, line.trim()));
            }
        }
    }
    assert!(leaks.is_empty(), "files that know what only a design should:\n{}", leaks.join("\n"));
}

#[test]
fn a_leak_is_seen() {
    let (designs, keys) = (designs(), own_keys());
    let leak = |line: &str| named(line, &designs, &keys, true);
    assert_eq!(leak("if config.ftl.design == \"mvftl\" {"), Some("mvftl".to_string()));
    assert_eq!(leak("config.ftl.design = \"page\".to_string();"), Some("page".to_string()));
    assert_eq!(leak("use crate::ftl::block_mapped::BlockFtl;"), Some("block-mapped".to_string()));
    assert_eq!(leak("own.set(\"version_bits\", 3);"), Some("version_bits".to_string()));
    assert_eq!(named("(\"region\", \"ftl.region\")", &designs, &keys, false), Some("region".to_string()));
    assert_eq!(named("keys.get(\"region\")", &designs, &keys, false), None);
    assert_eq!(leak("Parity::Page => \"page\","), None);
    assert_eq!(leak("// as \"mvftl\" does"), None);
}
