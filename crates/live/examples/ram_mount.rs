//! A disk in memory, mounted: what FUSE and loop themselves can do.
//!
//! ```text
//! cargo run --release -p ssdlab-live --example ram_mount -- 1G /mnt/drive ext4|xfs|btrfs|file
//! ```

use std::io::Read;
use std::sync::Arc;

use ssdlab_live::mount::{Options, mount, protect_process};

#[path = "../tests/it/support/ram.rs"]
mod ram;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, mountpoint, kind] = arguments.as_slice() else {
        return Err("usage: ram_mount SIZE MOUNTPOINT ext4|xfs|btrfs|file; it ends when its standard input does".into());
    };
    if let Some(note) = protect_process().note() {
        println!("{note}");
    }
    let mut options = Options::new(mountpoint);
    if kind == "file" {
        options.file_only = true;
    } else {
        options.file_system = Some(kind.parse()?);
    }
    let mut mounted = mount(&options, Arc::new(ram::Ram::new(ssdlab_base::parse_size(size)?)))?;
    println!("{:#?}", mounted.report());
    let stopper = mounted.stopper().ok_or("it is served")?;
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopper.stop();
    });
    mounted.wait();
    mounted.take_down()?;
    Ok(())
}
