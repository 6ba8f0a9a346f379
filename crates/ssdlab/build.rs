//! Puts the descriptions under `devices/` into the library, so that a program has them wherever it runs.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let devices = Path::new(&root).join("../../devices");
    println!("cargo::rerun-if-changed={}", devices.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&devices)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    // By name: with the ending, `a-b` would come before `a`.
    files.sort_by_key(|path| path.with_extension(""));
    let (mut drives, mut disks) = (String::from("&[\n"), String::from("&[\n"));
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let is_disk = fs::read_to_string(&file)?.lines().any(|line| line.trim_end() == "[disk]");
        let list = if is_disk { &mut disks } else { &mut drives };
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        list.push_str(&format!(
            "    Shipped {{ name: {name:?}, text: include_str!({:?}) }},\n",
            file.display().to_string()
        ));
    }
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("drives.rs"), drives + "]")?;
    fs::write(Path::new(&out).join("disks.rs"), disks + "]")
}
