//! Takes the digests of the sources that decide a preconditioned drive's state, for the names of snapshots.

#[path = "src/snapshot/sources.rs"]
mod sources;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let crates = Path::new(&here).join("..");
    let lock = crates.join("../Cargo.lock");
    // A crate alone, as a registry has it, lacks the others' sources: snapshots are then of one build of the program.
    let digests = if lock.is_file() { sources::digests(&crates).ok() } else { None };
    let mut text = "SourceDigests { shared: None, own: &[] }\n".to_string();
    if let Some(digests) = digests {
        for folder in sources::SOURCES {
            println!("cargo::rerun-if-changed=../{folder}");
        }
        println!("cargo::rerun-if-changed=../../Cargo.lock");
        // Another compiler has other sorts and hash tables in its library, and other crates other random numbers.
        let compiler = Command::new(env::var("RUSTC").unwrap_or_default()).arg("-V").output();
        let compiler = compiler.map(|output| output.stdout).unwrap_or_default();
        let outside = blake3::Hasher::new().update(&compiler).update(&fs::read(lock).unwrap_or_default()).finalize();
        let shared = format!("{} {}", digests.shared, outside.to_hex());
        let own = digests.own.iter().map(|own| format!("({:?}, &{:?}, {:?}),\n", own.key, own.names, own.digest));
        text = format!("SourceDigests {{ shared: Some({shared:?}), own: &[\n{}] }}\n", own.collect::<String>());
    }
    let to = Path::new(&env::var("OUT_DIR").expect("cargo names a folder for what is made")).join("sources.rs");
    fs::write(to, text).expect("a file in cargo's own folder");
}
