//! A sigrok session whose metadata and samples are any bytes, in an archive that is sound.
#![no_main]

use std::io::{Cursor, Write as _};

use libfuzzer_sys::fuzz_target;
use ssdlab_base::Nanos;
use ssdlab_measure::capture::{Capture, Select};
use zip::write::SimpleFileOptions;

fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (said, samples) = data.split_at(cut);
    let good = b"[device 1]\ncapturefile=logic-1\nsamplerate=3 MHz\nprobe1=a\nprobe11=b\nunitsize=2\n";
    for metadata in [said, good] {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let half = samples.len() / 2;
        for (name, bytes) in [("metadata", metadata), ("logic-1-1", &samples[..half]), ("logic-1-2", &samples[half..])] {
            archive.start_file(name, stored).expect("a vector takes everything");
            archive.write_all(bytes).expect("a vector takes everything");
        }
        let bytes = archive.finish().expect("a vector takes everything").into_inner();
        let Ok(capture) = Capture::from_bytes("fuzz", bytes, &Select::default()) else { continue };
        let lines = capture.lines().len();
        let mut last = Nanos::ZERO;
        let _ = capture.decode(|edges| {
            for edge in edges {
                assert!(edge.at >= last && (edge.die as usize) < lines);
                last = edge.at;
            }
        });
    }
});
