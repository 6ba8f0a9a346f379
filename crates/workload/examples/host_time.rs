//! Measures the host's time of calls on a file system in memory: the defaults of `--host-time` of `ssdlab files`.
//!
//!     cargo run --release --locked -p ssdlab-workload --example host_time -- /dev/shm
//!
//! For each kind of call it makes 21 batches and prints the median of their means. `call` is the mean over the kinds of
//! calls, `copy` that of reading and overwriting 4 KB, found from calls of 1 MB less those of 1 byte. /dev/shm is tmpfs.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

const BATCHES: usize = 21;
const CALLS: usize = 2000;
const LARGE: usize = 1 << 20;
const LARGE_CALLS: usize = 100;

/// The median over batches of the mean time of `calls` calls, in nanoseconds.
fn measure(calls: usize, mut call: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let mut means = Vec::new();
    for _ in 0..BATCHES {
        let began = Instant::now();
        for number in 0..calls {
            call(number)?;
        }
        means.push(began.elapsed().as_nanos() as f64 / calls as f64);
    }
    means.sort_by(f64::total_cmp);
    Ok(means[BATCHES / 2])
}

/// Creates and then removes many files, and gives the medians of both.
fn create_and_unlink(folder: &Path) -> Result<[f64; 2]> {
    let path = |number: usize| folder.join(format!("new-{number}"));
    let (mut create, mut unlink) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        let began = Instant::now();
        let files: Vec<File> = (0..CALLS / 4).map(|number| File::create_new(path(number))).collect::<Result<_>>()?;
        create.push(began.elapsed().as_nanos() as f64 / (CALLS / 4) as f64);
        drop(files);
        let began = Instant::now();
        (0..CALLS / 4).try_for_each(|number| fs::remove_file(path(number)))?;
        unlink.push(began.elapsed().as_nanos() as f64 / (CALLS / 4) as f64);
    }
    Ok([create, unlink].map(|mut means| {
        means.sort_by(f64::total_cmp);
        means[BATCHES / 2]
    }))
}

fn run(folder: &Path) -> Result<()> {
    let path = folder.join("file");
    fs::write(&path, vec![1; LARGE])?;
    let file = OpenOptions::new().read(true).write(true).open(&path)?;
    let mut bytes = vec![0; LARGE];
    let open_close = measure(CALLS, |_| File::open(&path).map(drop))?;
    let [create, unlink] = create_and_unlink(folder)?;
    let stat = measure(CALLS, |_| black_box(fs::symlink_metadata(&path)).map(|_| ()))?;
    let read = measure(CALLS, |number| file.read_exact_at(&mut bytes[..1], number as u64))?;
    let write = measure(CALLS, |number| file.write_all_at(&[2], number as u64))?;
    let fsync = measure(CALLS, |_| file.sync_all())?;
    let read_large = measure(LARGE_CALLS, |_| file.read_exact_at(&mut bytes, 0))?;
    let write_large = measure(LARGE_CALLS, |_| file.write_all_at(&bytes, 0))?;
    let calls = [
        ("open and close, each", open_close / 2.0),
        ("create", create),
        ("unlink", unlink),
        ("stat", stat),
        ("read 1 byte", read),
        ("write 1 byte", write),
        ("fsync", fsync),
    ];
    for (name, time) in calls {
        println!("{name:<24}{time:8.0} ns");
    }
    let blocks = (LARGE / 4096) as f64;
    let copies =
        [("read 4 KB of 1 MB", (read_large - read) / blocks), ("write 4 KB of 1 MB", (write_large - write) / blocks)];
    for (name, time) in copies {
        println!("{name:<24}{time:8.0} ns");
    }
    let mean = |times: &[(&str, f64)]| times.iter().map(|(_, time)| time).sum::<f64>() / times.len() as f64;
    println!("call={:.0}ns copy={:.0}ns", mean(&calls), mean(&copies));
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder =
        folder.ok_or_else(|| Error::other("found no argument, expected a folder in memory, such as /dev/shm"))?;
    let folder = folder.join(format!("host-time-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let result = run(&folder);
    fs::remove_dir_all(&folder)?;
    result
}
