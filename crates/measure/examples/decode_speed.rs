//! Edges decoded in a second of CPU time: a VCD, as `--vcd` writes it, and a sigrok session of the same edges.
//!
//! `cargo run --release -p ssdlab-measure --example decode_speed -- 100000000`

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use ssdlab_base::Nanos;
use ssdlab_measure::capture::{Capture, Select};
use ssdlab_measure::classify::Survey;
use ssdlab_measure::vcd::VcdWriter;
use ssdlab_measure::{Edge, Levels};

const DIES: u32 = 16;

/// Edges of 16 dies: programs of 200 to 2200 us with gaps of 100 us, in order of time; a sequence that anybody can repeat.
fn edges(count: u64) -> impl Iterator<Item = Edge> {
    let mut next: Vec<(u64, bool)> = (0..DIES).map(|die| (u64::from(die) * 7_000, true)).collect();
    let mut state = 1_u64;
    (0..count).map(move |_| {
        let (die, (at, busy)) = next.iter().copied().enumerate().min_by_key(|(_, next)| next.0).expect("sixteen dies");
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let stays = if busy { 200_000 + (state >> 33) % 2_000_000 } else { 100_000 };
        next[die] = (at + stays, !busy);
        Edge { at: Nanos(at), die: die as u32, busy }
    })
}

fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("a Linux kernel with schedstat");
    let ns: u64 = text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("schedstat's first field");
    ns as f64 / 1e9
}

fn write_vcd(path: &Path, count: u64) {
    let levels = Levels { channels: 4, chips_per_channel: 2, dies_per_chip: 2, planes_per_die: 2, page_bytes: 4096 };
    let to = BufWriter::with_capacity(1 << 20, File::create(path).expect("room in the temporary directory"));
    let mut writer = VcdWriter::begin(to, &levels, "decode_speed").expect("written");
    edges(count).for_each(|edge| writer.edge(edge).expect("written"));
    writer.finish(Nanos::ZERO).expect("written");
}

/// Writes the edges as a sigrok session of 1 MHz, which is what a logic analyser needs for lows of 50 us and more.
fn write_sigrok(path: &Path, count: u64) {
    let mut archive = zip::ZipWriter::new(File::create(path).expect("room in the temporary directory"));
    let options = zip::write::SimpleFileOptions::default().compression_level(Some(1)).large_file(true);
    archive.start_file("metadata", options).expect("started");
    let probes: String = (1..=DIES).map(|probe| format!("probe{probe}=RB{probe}\n")).collect();
    write!(archive, "[device 1]\ncapturefile=logic-1\nsamplerate=1 MHz\n{probes}unitsize=2\n").expect("written");
    archive.start_file("logic-1-1", options).expect("started");
    let (mut levels, mut sample, mut buffer) = (u16::MAX, 0, Vec::new());
    for edge in edges(count) {
        while sample < edge.at.0 / 1000 {
            buffer.extend_from_slice(&levels.to_le_bytes());
            sample += 1;
        }
        if buffer.len() > 1 << 20 {
            archive.write_all(&buffer).expect("written");
            buffer.clear();
        }
        levels = if edge.busy { levels & !(1 << edge.die) } else { levels | 1 << edge.die };
    }
    archive.write_all(&buffer).expect("written");
    archive.finish().expect("written");
}

fn measure(name: &str, path: &Path) {
    let capture = Capture::open(path, &Select::default()).expect("the capture just written");
    let start = cpu_seconds();
    let decoded = capture.decode(|_| {}).expect("a good capture");
    let seconds = cpu_seconds() - start;
    let bytes = std::fs::metadata(path).expect("the capture just written").len();
    println!(
        "{name}: {:.1} million edges/s decoded ({} edges, {:.0} MB in {seconds:.2} s)",
        decoded.edges as f64 / seconds / 1e6,
        decoded.edges,
        bytes as f64 / 1e6
    );
    let capture = Capture::open(path, &Select::default()).expect("the capture just written");
    let mut survey = Survey::new(DIES as usize, None);
    let start = cpu_seconds();
    let mut take = |edge| {
        survey.edge(edge);
    };
    let edges = capture.decode(|edges| edges.iter().copied().for_each(&mut take)).expect("a good capture").edges;
    println!("{name}: {:.1} million edges/s decoded and surveyed", edges as f64 / (cpu_seconds() - start) / 1e6);
    let text = std::fs::read_to_string("/proc/self/status").expect("a Linux kernel");
    let peak = text.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("{name}: {}", peak.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000_000);
    let path = |extension: &str| -> PathBuf {
        std::env::temp_dir().join(format!("ssdlab-decode-{}.{extension}", std::process::id()))
    };
    let vcd = path("vcd");
    write_vcd(&vcd, count);
    measure("VCD", &vcd);
    // The files are ours alone; that they stay behind would be the only harm.
    let _ = std::fs::remove_file(&vcd);
    let sigrok = path("sr");
    write_sigrok(&sigrok, count.min(10_000_000));
    measure("sigrok session", &sigrok);
    let _ = std::fs::remove_file(&sigrok);
}
