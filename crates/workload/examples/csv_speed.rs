//! How fast plain CSV is parsed: `cargo run --release -p ssdlab-workload --example csv_speed [LINES]`.
//!
//! Writes a trace of LINES requests (10 million unless said) to a temporary file, reads it three times and prints the
//! best rate of one core.

use std::io::{BufWriter, Write};
use std::time::Instant;

use ssdlab_workload::trace::Trace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines: u64 = std::env::args().nth(1).map_or(Ok(10_000_000), |text| text.parse())?;
    let path = std::env::temp_dir().join(format!("ssdlab-csv-speed-{}.csv", std::process::id()));
    let mut out = BufWriter::new(std::fs::File::create(&path)?);
    writeln!(out, "time_us,op,offset_bytes,length_bytes")?;
    let mut state = 1_u64;
    for line in 0..lines {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let op = if state >> 62 == 0 { 'R' } else { 'W' };
        let (page, pages) = (state >> 40 & 0x1f_ffff, (state >> 33 & 7) + 1);
        writeln!(out, "{}.{:03},{op},{},{}", line * 14, line % 1000, page * 4096, pages * 4096)?;
    }
    out.flush()?;
    let bytes = std::fs::metadata(&path)?.len();
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let mut trace = Trace::open(&path.display().to_string())?;
        let (mut batch, mut total, mut sectors) = (Vec::new(), 0_u64, 0_u64);
        loop {
            let got = trace.read(&mut batch)?;
            if got == 0 {
                break;
            }
            total += got as u64;
            sectors += batch.iter().map(|request| request.sectors).sum::<u64>();
        }
        assert_eq!(total, lines);
        best = best.min(start.elapsed().as_secs_f64());
        std::hint::black_box(sectors);
    }
    std::fs::remove_file(&path)?;
    println!(
        "{lines} lines, {:.0} MB: {:.2} million lines a second, {:.0} MB/s",
        bytes as f64 / 1e6,
        lines as f64 / best / 1e6,
        bytes as f64 / best / 1e6
    );
    Ok(())
}
