//! Cuts the power of a drive behind two writes: what a flush covered is there afterwards.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Description, Drive, Options};
use ssdlab_flash::Contents;

/// Sends a request, waits for its completion and returns the data of a read.
fn run(drive: &mut Drive, op: Op, sector: u64, data: &[u8]) -> Vec<u8> {
    let request = Request { at: drive.now(), ..Request::new(op, sector, if op == Op::Flush { 0 } else { 8 }) };
    drive.submit_with(&request, Data::Bytes(data));
    assert!(drive.run_to_completion(Nanos::MAX), "the request completes");
    drive.completions().clear();
    drive.read_data().drain(..).flat_map(|(_, bytes)| bytes).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Description::load("devices/demo-tlc.toml".as_ref())?.resolve()?;
    let options = Options { seed: 1, contents: Contents::Bytes };
    let mut drive = Drive::new(&config, options)?;
    run(&mut drive, Op::Write, 0, &[1; 4096]);
    run(&mut drive, Op::Flush, 0, &[]);
    run(&mut drive, Op::Write, 8, &[2; 4096]);

    let (mut drive, recovery) = Drive::recover(&config, options, drive.power_cut())?;
    println!("recovery read {} pages in {}", recovery.pages_read, recovery.time);
    let flushed = run(&mut drive, Op::Read, 0, &[]);
    let unflushed = run(&mut drive, Op::Read, 8, &[]);
    println!("flushed before the cut: {}; not flushed: {}", flushed[0], unflushed[0]);
    assert_eq!(flushed, [1; 4096]);
    Ok(())
}
