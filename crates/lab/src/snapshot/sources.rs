//! What the state of a preconditioned drive depends on in the sources, as digests: build.rs takes them, and a snapshot's
//! name has those that its drive uses.
//!
//! A design or policy that nothing else names is a module of its own: changing it leaves snapshots of other drives valid.
//! Everything else of the crates below counts for every drive.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folders below `crates` whose sources decide a drive's state. What only writes results stands in [`AFTERWARDS`].
pub(crate) const SOURCES: [&str; 5] = ["base/src", "flash/src", "device/src", "workload/src", "lab/src"];

/// Files and folders of the above that run after preconditioning, or never beside it.
const AFTERWARDS: [&str; 17] = [
    "device/src/fuzzing",
    "device/src/description/schema.rs",
    "lab/src/breakdown",
    "lab/src/checks.rs",
    "lab/src/conclusions.rs",
    "lab/src/datasheet",
    "lab/src/headline.rs",
    "lab/src/output",
    "lab/src/output.rs",
    "lab/src/perfetto.rs",
    "lab/src/ready_busy",
    "lab/src/report",
    "lab/src/smart.rs",
    "lab/src/table.rs",
    "lab/src/text.rs",
    "lab/src/theory.rs",
    "lab/src/variants.rs",
];

/// Folders with a registry in `mod.rs` and a module for each design or policy, and the key that chooses one.
const REGISTRIES: [(&str, &str); 4] = [
    ("device/src/ftl", "ftl.design"),
    ("device/src/gc/victim", "gc.victim"),
    ("device/src/buffer", "buffer.policy"),
    ("device/src/placement", "placement.policy"),
];

/// A design's or policy's module that no other file names.
pub(crate) struct Own {
    /// The key that chooses it, as in [`REGISTRIES`].
    pub(crate) key: &'static str,
    /// The strings in its sources that may be names, those of descriptions among them.
    pub(crate) names: Vec<String>,
    /// The digest of its sources, in hexadecimal digits.
    pub(crate) digest: String,
}

/// The digests of a tree.
pub(crate) struct Digests {
    /// Of what counts for every drive.
    pub(crate) shared: String,
    /// Of each design and policy that stands alone.
    pub(crate) own: Vec<Own>,
}

struct Source {
    /// From `crates`, with slashes.
    path: String,
    code: String,
}

/// The digests of the sources below the folder `crates`.
///
/// # Errors
/// A folder or file cannot be read.
pub(crate) fn digests(crates: &Path) -> io::Result<Digests> {
    let mut sources = Vec::new();
    for folder in SOURCES {
        collect(crates, &crates.join(folder), &mut sources)?;
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    let mut own = Vec::new();
    for (registry, key) in REGISTRIES {
        for module in modules(&sources, registry) {
            // Modules of a registry are private to its crate.
            let of_crate = sources.iter().filter(|source| source.path.starts_with("device/"));
            let (inside, outside): (Vec<&Source>, Vec<&Source>) =
                of_crate.partition(|source| is_in(&source.path, registry, &module));
            let registered = format!("{registry}/mod.rs");
            let is_named = |source: &Source| {
                let mut lines = source.code.lines().filter(|line| names_module(line, &module));
                lines.any(|line| source.path != registered || !is_registration(line, &module))
            };
            if outside.iter().any(|source| is_named(source)) {
                continue;
            }
            let mut names: Vec<String> = inside.iter().flat_map(|source| names(&source.code)).collect();
            names.sort();
            names.dedup();
            own.push((registry, module, Own { key, names, digest: digest(&inside) }));
        }
    }
    for source in &mut sources {
        for (registry, module, ..) in &own {
            if source.path == format!("{registry}/mod.rs") {
                let lines = source.code.lines().filter(|line| !is_registration(line, module));
                source.code = lines.collect::<Vec<_>>().join("\n");
            }
        }
    }
    let is_own = |source: &&Source| own.iter().any(|(registry, module, ..)| is_in(&source.path, registry, module));
    let shared: Vec<&Source> = sources.iter().filter(|source| !is_own(source)).collect();
    Ok(Digests { shared: digest(&shared), own: own.into_iter().map(|(.., own)| own).collect() })
}

/// Adds the sources below `folder`, without tests, comments and indentation.
fn collect(crates: &Path, folder: &Path, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let file: PathBuf = entry?.path();
        let path = file.strip_prefix(crates).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        if AFTERWARDS.contains(&path.as_str()) || path.ends_with("/tests.rs") || path.ends_with("/tests") {
            continue;
        }
        if file.is_dir() {
            collect(crates, &file, sources)?;
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(&file)?;
            let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
            sources.push(Source { path, code: lines.collect::<Vec<_>>().join("\n") });
        }
    }
    Ok(())
}

fn is_in(path: &str, registry: &str, module: &str) -> bool {
    let inside = path.strip_prefix(registry).and_then(|rest| rest.strip_prefix('/')?.strip_prefix(module));
    inside.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The modules of a registry: the files and folders beside its `mod.rs`.
fn modules(sources: &[Source], registry: &str) -> Vec<String> {
    let beside = sources.iter().filter_map(|source| source.path.strip_prefix(registry)?.strip_prefix('/'));
    let mut modules: Vec<String> = beside
        .filter_map(|rest| rest.split('/').next())
        .map(|first| first.trim_end_matches(".rs").to_string())
        .filter(|module| module != "mod")
        .collect();
    modules.dedup();
    modules
}

/// Whether a line names a module: before `::`, in a `use`, or in its declaration.
fn names_module(line: &str, module: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(module).any(|(at, _)| {
        let after = &line[at + module.len()..];
        let whole = !line[..at].ends_with(is_word) && !after.starts_with(is_word);
        whole && (after.starts_with("::") || line.contains("use ") || line.contains("mod "))
    })
}

/// Whether a line of a registry's `mod.rs` does no more than declare or register a module: `mod greedy;`, `greedy::POLICY,`.
fn is_registration(line: &str, module: &str) -> bool {
    let entry = line.strip_prefix(module).and_then(|rest| rest.strip_prefix("::")?.strip_suffix(','));
    let is_entry = entry.is_some_and(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    is_entry || line.trim_start_matches("pub(crate) ") == format!("mod {module};")
}

/// The strings in code that may be names of a description.
fn names(code: &str) -> impl Iterator<Item = String> {
    let is_name = |text: &&str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    code.split('"').skip(1).step_by(2).filter(is_name).map(str::to_string)
}

fn digest(sources: &[&Source]) -> String {
    let mut hasher = blake3::Hasher::new();
    for source in sources {
        for text in [&source.path, &source.code] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// A copy of the sources that can be edited.
    fn copied() -> tempfile::TempDir {
        fn copy(from: &Path, to: &Path) {
            fs::create_dir_all(to).expect("a readable source");
            for entry in fs::read_dir(from).expect("a readable source") {
                let from = entry.expect("a readable source").path();
                let to = to.join(from.file_name().expect("a readable source"));
                if from.is_dir() {
                    copy(&from, &to);
                } else {
                    fs::copy(&from, &to).expect("a readable source");
                }
            }
        }
        let copied = tempfile::tempdir().expect("a readable source");
        for folder in SOURCES {
            copy(&crates().join(folder), &copied.path().join(folder));
        }
        copied
    }

    /// The digest of each design and policy that stands alone, by its name.
    fn own(digests: &Digests) -> Vec<(&str, &str)> {
        let with_names = |own| -> Vec<(&str, &str)> {
            let Own { names, digest, .. }: &Own = own;
            names.iter().map(|name| (name.as_str(), digest.as_str())).collect()
        };
        digests.own.iter().flat_map(with_names).collect()
    }

    #[test]
    fn every_name_is_in_the_tree() {
        for path in SOURCES.iter().chain(REGISTRIES.iter().map(|(folder, _)| folder)).chain(&AFTERWARDS) {
            assert!(crates().join(path).exists(), "{path}");
        }
    }

    #[test]
    fn what_others_use_counts_for_every_drive() {
        let digests = digests(&crates()).expect("a readable source");
        assert!(digests.own.iter().all(|own| REGISTRIES.iter().any(|(_, key)| *key == own.key)));
        let own: Vec<&str> = own(&digests).into_iter().map(|(name, _)| name).collect();
        for name in ["greedy", "d-choices", "mvftl", "dftl", "shrd", "bast", "block-mapped", "cflru", "lirs", "recency"]
        {
            assert!(own.contains(&name), "{name} stands alone: {own:?}");
        }
    }

    #[test]
    fn an_edit_changes_the_digests_of_what_it_is_part_of() {
        let copied = copied();
        let before = digests(copied.path()).expect("a readable source");
        let edit = |file: &str, from: &str, to: &str| {
            let path = copied.path().join(file);
            let text = fs::read_to_string(&path).expect("a readable source");
            assert!(text.contains(from), "{file} has no {from:?}");
            fs::write(&path, text.replacen(from, to, 1)).expect("a readable source");
            let after = digests(copied.path()).expect("a readable source");
            fs::write(&path, text).expect("a readable source");
            let changed = |name: &str| {
                let of = |digests| -> Option<String> {
                    own(digests).into_iter().find(|(found, _)| *found == name).map(|(_, digest)| digest.to_string())
                };
                of(&before) != of(&after)
            };
            let designs = ["greedy", "fifo", "page", "mvftl", "dftl", "bast", "fast", "lirs"];
            (before.shared != after.shared, designs.into_iter().filter(|name| changed(name)).collect::<Vec<_>>())
        };
        let nothing = (false, vec![]);
        assert_eq!(edit("device/src/gc/victim/greedy.rs", "fn choose", "fn chosen"), (false, vec!["greedy"]));
        assert_eq!(edit("device/src/ftl/log_block/merge.rs", "fn ", "fn a"), (false, vec!["bast", "fast"]));
        assert_eq!(edit("device/src/ftl/page/mod.rs", "fn ", "fn a"), (true, vec![]));
        assert_eq!(edit("device/src/drive/dispatch.rs", "fn ", "fn a"), (true, vec![]));
        assert_eq!(edit("lab/src/precondition.rs", "fn ", "fn a"), (true, vec![]));
        assert_eq!(edit("lab/src/table.rs", "fn ", "fn a"), nothing);
        assert_eq!(edit("device/src/drive/dispatch.rs", "//! ", "//! A comment, "), nothing);
        assert_eq!(edit("device/src/gc/victim/mod.rs", "    greedy::POLICY,", ""), nothing);
        assert_eq!(edit("device/src/gc/victim/mod.rs", "fn choose", "fn chosen"), (true, vec![]));
    }

    #[test]
    fn a_module_that_another_names_no_longer_stands_alone() {
        let copied = copied();
        let path = copied.path().join("device/src/gc/choice.rs");
        let text = fs::read_to_string(&path).expect("a readable source");
        fs::write(&path, format!("use crate::gc::victim::{{greedy, fifo}};\n{text}")).expect("a readable source");
        let digests = digests(copied.path()).expect("a readable source");
        let own: Vec<&str> = own(&digests).into_iter().map(|(name, _)| name).collect();
        assert!(!own.contains(&"greedy") && own.contains(&"d-choices"), "{own:?}");
    }
}
