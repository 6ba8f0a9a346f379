//! How fast requests are generated: nanoseconds of wall-clock time for each at a fixed depth, the best of many short parts,
//! so that a busy machine shows what the code can do.
//!
//! `cargo run --release -p ssdlab-workload --example fio_speed`

use std::time::Instant;

use ssdlab_base::Nanos;
use ssdlab_workload::fio::FioJob;
use ssdlab_workload::{Next, Workload};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (parts, requests) = (400, 50_000_u64);
    for spec in [
        "rw=randwrite,bs=4k,iodepth=32,norandommap,io_size=1p",
        "rw=randwrite,bs=4k,iodepth=32,io_size=1p",
        "rw=randwrite,bs=4k,iodepth=32,random_distribution=zipf:0.99,io_size=1p",
        "rw=randwrite,bs=4k,iodepth=32,random_distribution=zipf:1.2,io_size=1p",
        "rw=randwrite,bs=4k,iodepth=32,random_distribution=pareto:0.2,io_size=1p",
        "rw=randwrite,bs=4k,iodepth=32,random_distribution=zoned:80/20:20/80,io_size=1p",
        "rw=randrw,bssplit=4k/60:16k/30:64k/10,iodepth=32,norandommap,io_size=1p",
        "rw=write,bs=128k,iodepth=32,io_size=4p",
        "rw=randrw,rwmixread=70,bs=4k,iodepth=4,numjobs=8,fsync=32,norandommap,io_size=1p",
    ] {
        let mut workload = FioJob::parse_line(spec)?.generator(256 << 30, 1)?;
        let mut ring = Vec::with_capacity(64);
        let mut checksum = 0_u64;
        let mut best = f64::INFINITY;
        for part in 0..parts {
            let start = Instant::now();
            for step in part * requests..(part + 1) * requests {
                loop {
                    match workload.next(Nanos(step))? {
                        Next::Request(request) => {
                            checksum = checksum.wrapping_mul(31).wrapping_add(request.sector);
                            ring.push(request.tag);
                            break;
                        }
                        _ => workload.completed(Nanos(step), ring.swap_remove(0)),
                    }
                }
                if ring.len() >= 32 {
                    workload.completed(Nanos(step), ring.swap_remove(0));
                }
            }
            best = best.min(start.elapsed().as_nanos() as f64 / requests as f64);
        }
        println!("{best:6.1} ns  {spec}  (checksum {checksum:016x})");
    }
    Ok(())
}
