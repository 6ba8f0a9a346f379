//! Random and sequential writes to the outer 8 GB of the disk of Getting Real, beside the disk's column of its Table 2.

use std::error::Error;
use std::path::Path;

use rand::RngExt as _;
use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::Data;
use ssdlab_disk::{Disk, DiskConfig};
use ssdlab_flash::Contents;

/// The partition, in sectors.
const PARTITION: u64 = (8 << 30) / SECTOR_BYTES;
/// Bytes that each row writes before the first one that counts, and then.
const WARM: u64 = 256 << 20;
const COUNTED: u64 = 256 << 20;

/// Writes `bytes` in requests of `sectors`, with `depth` of them at the disk, and says how long that took.
fn run(disk: &mut Disk, depth: u64, bytes: u64, sectors: u64, mut next: impl FnMut() -> u64) -> Nanos {
    let (begin, count) = (disk.now(), bytes / SECTOR_BYTES / sectors);
    let (mut sent, mut ended) = (0, 0);
    while ended < count {
        while sent < count && sent - ended < depth {
            let request = Request { at: disk.now(), ..Request::new(Op::Write, next(), sectors) };
            disk.submit(&request, Data::Nothing);
            sent += 1;
        }
        disk.run_to_completion(Nanos::HORIZON);
        ended += disk.completions().len() as u64;
        disk.completions().clear();
    }
    disk.now() - begin
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/wd1502faex.toml");
    let config = DiskConfig::load(&path)?;
    println!("| random write | ours, IO/s | Table 2, IO/s |\n| --- | ---: | ---: |");
    for (kib, published) in [(4, 1_497), (8, 826), (16, 563), (32, 419), (64, 288), (128, 212), (256, 149), (512, 98)] {
        let mut disk = Disk::new(&config, Contents::Nothing);
        let mut rng = ssdlab_base::rng(1, "random writes");
        let sectors = (kib << 10) / SECTOR_BYTES;
        let mut next = || rng.random_range(0..PARTITION / sectors) * sectors;
        run(&mut disk, 32, WARM, sectors, &mut next);
        let time = run(&mut disk, 32, COUNTED, sectors, &mut next);
        let rate = (COUNTED / SECTOR_BYTES / sectors) as f64 / time.as_secs_f64();
        println!("| {kib} KB | {rate:.0} | {published} |");
    }
    let mut disk = Disk::new(&config, Contents::Nothing);
    let mut sector = 0;
    let mut next = || {
        sector += 8;
        sector - 8
    };
    run(&mut disk, 32, WARM, 8, &mut next);
    let time = run(&mut disk, 32, COUNTED, 8, &mut next);
    println!("| sequential, 4 KB | {:.0} | 24,437 |", (COUNTED / SECTOR_BYTES / 8) as f64 / time.as_secs_f64());
    Ok(())
}
