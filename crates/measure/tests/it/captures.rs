//! Captures: what is written is read, what others write is read, and what is broken is an error that says where.

use std::io::Write as _;

use proptest::prelude::*;
use ssdlab_base::Nanos;
use ssdlab_flash::DieId;
use ssdlab_measure::capture::{Capture, CaptureError, Decoded, Format, Place, Select};
use ssdlab_measure::vcd::{VcdRecording, VcdWriter};
use ssdlab_measure::{Edge, Levels};

fn levels(channels: u32) -> Levels {
    Levels { channels, chips_per_channel: 2, dies_per_chip: 3, planes_per_die: 1, page_bytes: 4096 }
}

/// Alternating edges of each die, in order of time.
fn edges(dies: u32, steps: &[(u32, u32)]) -> Vec<Edge> {
    let mut busy = vec![false; dies as usize];
    let mut at = 0;
    steps
        .iter()
        .map(|&(die, gap)| {
            let die = die % dies;
            at += u64::from(gap);
            busy[die as usize] = !busy[die as usize];
            Edge { at: Nanos(at), die, busy: busy[die as usize] }
        })
        .collect()
}

fn vcd(levels: &Levels, edges: &[Edge]) -> Vec<u8> {
    let mut writer = VcdWriter::begin(Vec::new(), levels, "a test").expect("a vector takes everything");
    edges.iter().for_each(|&edge| writer.edge(edge).expect("in order"));
    writer.finish(Nanos(0)).expect("a vector takes everything")
}

fn read(bytes: Vec<u8>, select: &Select) -> Result<(Vec<Edge>, Vec<String>), CaptureError> {
    let capture = Capture::from_bytes("test", bytes, select)?;
    let lines = capture.lines().to_vec();
    let mut all = Vec::new();
    let decoded = capture.decode(|edges| all.extend_from_slice(edges))?;
    assert_eq!(decoded.edges, all.len() as u64);
    assert!(all.is_sorted_by_key(|edge| edge.at));
    Ok((all, lines))
}

fn read_all(bytes: Vec<u8>) -> Vec<Edge> {
    read(bytes, &Select::default()).expect("a good capture").0
}

fn error(text: &str) -> CaptureError {
    match read(text.as_bytes().to_vec(), &Select::default()) {
        Ok((edges, _)) => panic!("{text:?} was read as {} edges", edges.len()),
        Err(error) => error,
    }
}

proptest! {
    #[test]
    fn a_vcd_written_and_read_back_has_the_same_edges(
        channels in 1_u32..40,
        steps in prop::collection::vec((any::<u32>(), prop_oneof![Just(0_u32), 1..10_u32, any::<u32>()]), 0..300),
    ) {
        let levels = levels(channels);
        let edges = edges(levels.dies() as u32, &steps);
        prop_assert_eq!(read_all(vcd(&levels, &edges)), edges);
    }

    /// The drive's observer is told of falling edges before they happen.
    #[test]
    fn a_recording_puts_edges_in_order(steps in prop::collection::vec((any::<u32>(), 1_u32..1000, 1_u32..1000), 1..100)) {
        let levels = levels(1);
        let recording = VcdRecording::new(VcdWriter::begin(Vec::new(), &levels, "").expect("a vector"));
        let mut observer = recording.observer();
        // Each die's lows one after the other; each low is told when the die before it rises, as the flash does.
        let mut lows: Vec<(u64, u64, u32)> = Vec::new();
        let mut free = vec![0_u64; levels.dies() as usize];
        for (die, gap, length) in steps {
            let die = die % levels.dies() as u32;
            let start = free[die as usize] + u64::from(gap);
            let end = start + u64::from(length);
            free[die as usize] = end;
            lows.push((start, end, die));
        }
        // (told at, low): told when the die's last low ended, risen when it ends.
        let mut events: Vec<(u64, u64, u32, bool)> = Vec::new();
        let mut ended = vec![0_u64; levels.dies() as usize];
        for &(start, end, die) in &lows {
            events.push((ended[die as usize], start, die, true));
            events.push((end, end, die, false));
            ended[die as usize] = end;
        }
        events.sort_by_key(|&(told, _, die, busy)| (told, die, busy));
        for (_, at, die, busy) in &events {
            observer.ready_busy(DieId(*die), Nanos(*at), *busy);
        }
        drop(observer);
        let (bytes, written) = recording.finish(Nanos(0)).expect("a vector takes everything");
        prop_assert_eq!(written, 2 * lows.len() as u64);
        let read = read_all(bytes);
        for die in 0..levels.dies() as u32 {
            let of_die = |edges: &[Edge]| -> Vec<u64> {
                edges.iter().filter(|edge| edge.die == die).map(|edge| edge.at.0).collect()
            };
            let expected: Vec<u64> =
                lows.iter().filter(|low| low.2 == die).flat_map(|low| [low.0, low.1]).collect();
            prop_assert_eq!(of_die(&read), expected);
        }
    }

    /// A capture that this project did not write: an independent library did.
    #[test]
    fn what_the_vcd_crate_writes_is_read(steps in prop::collection::vec((any::<u32>(), 0_u32..2000), 1..200)) {
        const LINES: u32 = 200;
        let edges = edges(LINES, &steps);
        let mut writer = vcd::Writer::new(Vec::new());
        writer.timescale(10, vcd::TimescaleUnit::PS).expect("written");
        writer.add_module("board").expect("written");
        let wires: Vec<vcd::IdCode> =
            (0..LINES).map(|line| writer.add_wire(1, &format!("rb{line}")).expect("written")).collect();
        let bus = writer.add_wire(8, "bus").expect("written");
        writer.upscope().expect("written");
        writer.enddefinitions().expect("written");
        writer.timestamp(0).expect("written");
        writer.begin(vcd::SimulationCommand::Dumpvars).expect("written");
        wires.iter().for_each(|&wire| writer.change_scalar(wire, vcd::Value::V1).expect("written"));
        writer.change_vector(bus, [vcd::Value::X; 8]).expect("written");
        writer.end().expect("written");
        for edge in &edges {
            writer.timestamp(edge.at.0 * 100).expect("written");
            writer.change_vector(bus, [vcd::Value::V0; 8]).expect("written");
            let value = if edge.busy { vcd::Value::V0 } else { vcd::Value::V1 };
            writer.change_scalar(wires[edge.die as usize], value).expect("written");
        }
        writer.flush().expect("flushed");
        let bytes = into_bytes(writer);
        let (read, lines) = read(bytes, &Select::default()).expect("a good capture");
        prop_assert_eq!(read, edges);
        prop_assert_eq!(&lines[7], "board.rb7");
        prop_assert_eq!(lines.len(), LINES as usize);
    }

    /// The independent library reads what we write.
    #[test]
    fn the_vcd_crate_reads_what_is_written(steps in prop::collection::vec((any::<u32>(), 0_u32..2000), 0..100)) {
        let levels = levels(3);
        let edges = edges(levels.dies() as u32, &steps);
        let bytes = vcd(&levels, &edges);
        let mut parser = vcd::Parser::new(bytes.as_slice());
        let header = parser.parse_header().expect("a header");
        prop_assert_eq!(header.timescale, Some((1, vcd::TimescaleUnit::NS)));
        let codes: Vec<vcd::IdCode> = (0..levels.dies() as u32)
            .map(|die| {
                header.find_var(&[levels.line_name(die)]).expect("a wire for each die").code
            })
            .collect();
        let (mut now, mut read, mut dumping) = (0, Vec::new(), false);
        for command in parser {
            match command.expect("a command") {
                vcd::Command::Timestamp(at) => now = at,
                vcd::Command::Begin(_) => dumping = true,
                vcd::Command::End(_) => dumping = false,
                vcd::Command::ChangeScalar(code, value) if !dumping => {
                    let die = codes.iter().position(|&known| known == code).expect("a known code") as u32;
                    read.push(Edge { at: Nanos(now), die, busy: value == vcd::Value::V0 });
                }
                _ => {}
            }
        }
        prop_assert_eq!(read, edges);
    }

    /// A sigrok session has the same edges, to the sample.
    #[test]
    fn a_sigrok_session_is_read_to_the_sample(
        unit in 1_usize..=8,
        steps in prop::collection::vec((any::<u32>(), 1_u32..400), 1..200),
        chunk in 1_usize..3000,
    ) {
        let lines = unit as u32 * 8;
        let edges = edges(lines, &steps);
        let archive = sigrok(&edges, unit, lines, chunk);
        let expected: Vec<Edge> = edges.iter().map(|edge| Edge { at: Nanos(edge.at.0 * 500), ..*edge }).collect();
        let (read, names) = read(archive, &Select::default()).expect("a good capture");
        prop_assert_eq!(read, expected);
        prop_assert_eq!(&names[0], "RB0");
    }

    #[test]
    fn a_csv_of_changes_is_read(steps in prop::collection::vec((any::<u32>(), 0_u32..2_000_000), 1..200), before in 0_i64..5_000_000) {
        let edges = edges(5, &steps);
        let mut levels = [1_u8; 5];
        let mut text = String::from("Time [s],Channel 0,Channel 1,Channel 2,Channel 3,Channel 4\r\n");
        let stamp = |at: i64| format!("{}{}.{:09}", if at < 0 { "-" } else { "" }, at.abs() / 1_000_000_000, at.abs() % 1_000_000_000);
        text += &format!("{},1,1,1,1,1\r\n", stamp(-before));
        for edge in &edges {
            levels[edge.die as usize] = u8::from(!edge.busy);
            let [a, b, c, d, e] = levels;
            text += &format!("{},{a},{b},{c},{d},{e}\r\n", stamp(edge.at.0 as i64));
        }
        // Times are counted from the first row.
        let expected: Vec<Edge> =
            edges.iter().map(|edge| Edge { at: Nanos(edge.at.0 + before as u64), ..*edge }).collect();
        prop_assert_eq!(read_all(text.into_bytes()), expected);
    }

    /// Arbitrary bytes are refused or read, and never cause a panic.
    #[test]
    fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0..4) {
        let head: &[u8] = match kind {
            0 => b"$timescale 1 ns $end $var wire 1 ! a $end $enddefinitions $end ",
            1 => b"Time [s],Channel 0\n",
            2 => b"PK\x03\x04",
            _ => b"",
        };
        let bytes: Vec<u8> = head.iter().chain(&bytes).copied().collect();
        let _ = read(bytes, &Select { sample_rate: Some(1), ..Select::default() });
    }
}

/// The crate's writer gives its bytes back only through a reference.
fn into_bytes(mut writer: vcd::Writer<Vec<u8>>) -> Vec<u8> {
    std::mem::take(writer.writer())
}

/// A session as sigrok writes it, at 2 MHz.
fn sigrok(edges: &[Edge], unit: usize, lines: u32, chunk: usize) -> Vec<u8> {
    let mut samples = Vec::new();
    let mut value = u64::MAX;
    let mut next = 0;
    for edge in edges {
        for _ in next..edge.at.0 {
            samples.extend_from_slice(&value.to_le_bytes()[..unit]);
        }
        next = edge.at.0;
        value = if edge.busy { value & !(1 << edge.die) } else { value | 1 << edge.die };
    }
    samples.extend_from_slice(&value.to_le_bytes()[..unit]);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let mut member = |name: &str, bytes: &[u8]| {
        archive.start_file(name, options).expect("started");
        archive.write_all(bytes).expect("written");
    };
    member("version", b"2");
    let probes: String = (0..lines).map(|line| format!("probe{}=RB{line}\n", line + 1)).collect();
    let metadata = format!(
        "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes={lines}\nsamplerate=2 MHz\n\
         total analog=0\n{probes}unitsize={unit}\n"
    );
    member("metadata", metadata.as_bytes());
    for (part, bytes) in samples.chunks(chunk).enumerate() {
        member(&format!("logic-1-{}", part + 1), bytes);
    }
    archive.finish().expect("finished").into_inner()
}

#[test]
fn captures_of_other_programs_are_read() {
    // Written by pyvcd and by sigrok-cli: see tests/samples/README.md. Three dies, three lows each.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/");
    let open = |name: &str| {
        let path = format!("{folder}{name}");
        Capture::open(path.as_ref(), &Select::default()).unwrap_or_else(|error| panic!("{error}"))
    };
    let decode = |capture: Capture| {
        let mut all = Vec::new();
        capture.decode(|edges| all.extend_from_slice(edges)).expect("a good capture");
        all
    };
    let capture = open("pyvcd.vcd");
    assert_eq!((capture.format(), capture.lines().len()), (Format::Vcd, 3));
    assert_eq!(capture.lines()[1], "probe.rb1");
    let expected = decode(capture);
    assert_eq!(expected.len(), 18);
    assert_eq!(expected[0], Edge { at: Nanos(10_000), die: 0, busy: true });
    let names = ["sigrok.sr", "sigrok.vcd", "sigrok-read.vcd", "pyvcd.vcd.gz", "sigrok.csv.gz", "sigrok-changes.csv"];
    for name in names {
        assert_eq!(decode(open(name)), expected, "{name}");
    }
    let changes = open("sigrok-changes.csv");
    assert_eq!((changes.format(), changes.resolution()), (Format::SigrokCsv, Some(Nanos(1000))));
    assert_eq!(changes.lines(), ["rb0", "rb1", "rb2"]);
    assert_eq!(changes.notes(), ["left out: Trigger"]);
    assert_eq!(open("sigrok.csv.gz").lines(), ["rb0", "rb1", "rb2"], "their names are in a comment");
}

#[test]
fn lines_are_chosen_by_name_in_the_order_asked_for() {
    let levels = levels(2);
    let edges = [
        Edge { at: Nanos(5), die: 7, busy: true },
        Edge { at: Nanos(6), die: 3, busy: true },
        Edge { at: Nanos(7), die: 7, busy: false },
    ];
    let select = |lines: &[&str], invert| Select {
        lines: lines.iter().map(ToString::to_string).collect(),
        invert,
        sample_rate: None,
    };
    let (read_edges, lines) =
        read(vcd(&levels, &edges), &select(&["ch1.chip0.die1", "ch0.chip1.die0"], false)).expect("two lines");
    assert_eq!(lines, ["ch1.chip0.die1", "ch0.chip1.die0"]);
    assert_eq!(read_edges.iter().map(|edge| edge.die).collect::<Vec<_>>(), [0, 1, 0]);
    let (inverted, _) = read(vcd(&levels, &edges), &select(&["ch1.chip0.die1"], true)).expect("a line");
    assert_eq!(inverted.iter().map(|edge| edge.busy).collect::<Vec<_>>(), [false, true]);
    let wrong = |lines: &[&str]| read(vcd(&levels, &edges), &select(lines, false)).expect_err("no such lines").what;
    assert!(wrong(&["ch0.chip0.dei0"]).contains("did you mean 'ch0.chip0.die0'"));
    assert!(wrong(&["die0"]).contains("several lines"));
    assert!(wrong(&["ch0.chip0.die0", "ch0.chip0.die0"]).contains("twice"));
}

const HEAD: &str = "$timescale 1 ns $end\n$var wire 1 ! a $end\n$var real 64 r temp $end\n$enddefinitions $end\n";

#[test]
fn errors_say_where_and_what_was_expected() {
    let byte = |text: &str| match error(text) {
        CaptureError { place: Place::Text { line, byte, packed: false }, what, .. } => {
            // Line and byte are of the same place.
            assert_eq!(line as usize, 1 + text[..byte as usize].matches('\n').count(), "{what}");
            (text[byte as usize..].to_string(), what)
        }
        other => panic!("{other}"),
    };
    let (at, what) = byte(&format!("{HEAD}#0\n1!\n#10\n0?\n"));
    assert!(at.starts_with("0?") && what.contains("no variable has the code '?'"), "{at}: {what}");
    let (at, what) = byte(&format!("{HEAD}#10\n1!\n#9\n0!\n"));
    assert!(at.starts_with("#9") && what.contains("before"), "{at}: {what}");
    let (at, what) = byte(&format!("{HEAD}#10\n1!\ngarbage\n"));
    assert!(at.starts_with("garbage") && what.contains("expected a time"), "{at}: {what}");
    let (at, _) = byte(&format!("{HEAD}#99999999999999999999999\n"));
    assert!(at.starts_with("#999"), "{at}");
    let (at, _) = byte(&format!("{HEAD}#\n"));
    assert!(at.starts_with('#'), "{at}");
    let (at, _) = byte("$timescale 1 ns $end oops");
    assert!(at.starts_with("oops"), "{at}");
    let line = |text: &str| match error(text) {
        CaptureError { place: Place::Text { line, byte, .. }, what, .. } => {
            assert_eq!(line as usize, 1 + text[..byte as usize].matches('\n').count(), "{what}");
            (line, what)
        }
        other => panic!("{other}"),
    };
    assert_eq!(line("Time [s],Channel 0\n0.0,1\n0.1,2\n").0, 3);
    assert_eq!(line("Time [s],Channel 0\n0.0,1\n0.1\n").0, 3);
    assert_eq!(line("Time [s],Channel 0\n0.2,1\n0.1,0\n").0, 3);
    assert_eq!(line("Time [s],Channel 0\n0.2,1,1\n").0, 2);
    assert_eq!(line("Time [s],Channel 0\nabc,1\n").0, 2);
    assert!(line("Sample,Channel 0\n1,1\n").1.contains("--sample-rate"));
    assert!(error("\u{1}\u{2}").what.contains("expected a VCD"));
    assert!(error("").what.contains("empty"));
    let (at, _) = byte("$date today $end\n $timescale 3 ns $end");
    assert!(at.starts_with("$timescale"), "{at}");
    let (at, what) = byte(&format!("{HEAD}#0\n$comment this has no end\n#5\n"));
    assert!(at.is_empty() && what.contains("expected $end"), "{what}");
    assert!(error("$timescale 3 ns $end").what.contains("not a time scale"));
    assert!(error("$var wire 1 ! a $end $enddefinitions $end").what.contains("$timescale"));
    assert!(error("$timescale 1 ns $end $enddefinitions $end").what.contains("no variable of one bit"));
}

#[test]
fn damaged_archives_are_errors() {
    let mut archive = sigrok(&edges(8, &[(0, 50), (0, 500), (1, 70)]), 1, 8, 100);
    let half = archive.len() / 2;
    archive.truncate(half);
    assert!(read(archive, &Select::default()).expect_err("truncated").what.contains("damaged"));
    let two = sigrok(&edges(16, &[(0, 50), (0, 51)]), 2, 16, 33);
    assert!(read(two, &Select::default()).is_ok(), "a sample may lie across two members");
}

#[test]
fn what_a_line_was_before_its_first_value_makes_no_edge() {
    let text = format!("{HEAD}#5\n0!\n#9\n1!\n#12\nx!\n#14\nr1.5 r\n#20\n0!\n$comment 0! 1! $end\n#30\nz!\n#31\n");
    let capture = Capture::from_bytes("test", text.into_bytes(), &Select::default()).expect("a good header");
    assert!(capture.notes().iter().any(|note| note.contains("temp")));
    let mut all = Vec::new();
    let decoded = capture.decode(|edges| all.extend_from_slice(edges)).expect("a good capture");
    let edge = |at, busy| Edge { at: Nanos(at), die: 0, busy };
    assert_eq!(all, [edge(9, false), edge(20, true), edge(30, false)]);
    assert_eq!((decoded.start, decoded.end, decoded.unknown), (Nanos(5), Nanos(31), 1));
}

/// VHDL's nine values: H and L are levels, U, X, W and - are not. A vector of one bit is a line, too.
#[test]
fn what_a_vhdl_simulator_writes_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/ghdl.vcd");
    let capture = Capture::open(path.as_ref(), &Select::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(capture.lines(), ["probe.rb_n", "probe.rb1_n", "probe.one[0:0]"]);
    assert!(capture.notes().iter().any(|note| note.contains("probe.bus8[7:0]") && note.contains("probe.volts")));
    let mut edges = Vec::new();
    let decoded = capture.decode(|more| edges.extend(more.iter().map(|edge| (edge.at.0 / 1000, edge.die, edge.busy))));
    let expected = [
        (210, 0, false),
        (210, 1, true),
        (210, 2, true),
        (220, 0, true),
        (320, 0, false),
        (320, 1, false),
        (320, 2, false),
    ];
    assert_eq!(edges, expected);
    // U three times at the start, then a W, an X in the vector, and a -.
    assert_eq!(decoded.expect("a good capture").unknown, 6);
}

/// Variables of another width than one bit are passed over: none, as texts of some tools have, empty ranges, and more
/// bits than a number holds.
#[test]
fn variables_of_any_width_are_passed_over() {
    let head = |variable: &str| {
        format!("$timescale 1 ns $end\n{variable}$var wire 1 ! rb_n $end\n$enddefinitions $end\n#0\n1!\n")
    };
    let low = "#1000\n0!\n#201000\n1!\n";
    let alone = read_all((head("") + low).into_bytes());
    assert_eq!(alone.len(), 2);
    for (variable, value) in [
        ("$var string 0 % state $end\n", "sIDLE %\n"),
        ("$var string 0 % state $end\n", "s %\n"),
        ("$var string 1 % state $end\n", "sSEVERAL WORDS ! AND CODES %\n"),
        ("$var wire 0 % unused $end\n", "b %\n"),
        ("$var wire 0 % unused[0:1] $end\n", "x%\n"),
        ("$var reg -1 % none[-2:0] $end\n", "bUZ %\n"),
        ("$var real 0 % volts $end\n", "r3.3 %\n"),
        ("$var real 1 % volts $end\n", "r3.3 %\n"),
        ("$var integer 32 % number $end\n", "b111 %\n"),
        ("$var parameter 99999999999999999999 % WIDE $end\n", "bHLW- %\n"),
        ("$var reg 2 % a $end\n$var reg 8 %% b $end\n", "bL1 %\nb10 %%\n"),
    ] {
        let text = head(variable) + value + low + value;
        assert_eq!(read_all(text.into_bytes()), alone, "{variable}{value}");
    }
    let what = |text: String| error(&text).what;
    assert!(what(head("$var wire x % unused $end\n")).contains("'unused' has 'x' for its number of bits"));
    assert!(what(head("") + "r1.5 !\n").contains("is no bit"));
    assert!(what(head("$var string 0 % state $end\n") + "sNO CODE\n#5\n").contains("does not end with the code"));
}

/// A line of one bit may be written as a vector.
#[test]
fn a_vector_of_one_bit_is_a_line() {
    let text = format!("{HEAD}#5\nb0 !\n#9\nb1 !\n#12\nbx !\n#20\nb0000 !\n");
    let edge = |at, busy| Edge { at: Nanos(at), die: 0, busy };
    assert_eq!(read_all(text.into_bytes()), [edge(9, false), edge(20, true)]);
    // More edges than are handed out at once.
    let many: String = (0..20_000).map(|at| format!("#{at}\nb{} !\n", at % 2)).collect();
    assert_eq!(read_all(format!("{HEAD}{many}").into_bytes()).len(), 19_999);
}

/// sigrok's CSV with each of its options: comments or none, names of channels, of units or none, a time or none.
#[test]
fn every_kind_of_sigrok_csv_is_read() {
    let comments = "; CSV generated by libsigrok 0.6.0\n; from Demo driver on Wed Nov 25 18:39:57 2026\n\
                    ; Channels (2/13): D0, D1\n; Samplerate: 24 MHz\n";
    let levels: [[u8; 2]; 6] = [[1, 1], [1, 1], [0, 1], [0, 0], [1, 0], [1, 1]];
    let rows = |time: &dyn Fn(u64) -> String, behind: &str| -> String {
        (0..6).map(|at| format!("{}{},{}{behind}\n", time(at as u64), levels[at][0], levels[at][1])).collect()
    };
    let none = |_: u64| String::new();
    // As libsigrok counts since 0.6, and up to 0.5.2.
    let exact = |at: u64| format!("{},", at * 1_000_000_000 / 24_000_000);
    let periods = |at: u64| format!("{},", (at + 1) * 41);
    let at = |sample: u64| Nanos(sample * 1_000_000_000 / 24_000_000);
    let edge = |sample, die, busy| Edge { at: at(sample), die, busy };
    let expected = [edge(2, 0, true), edge(3, 1, true), edge(4, 0, false), edge(5, 1, false)];
    let with_rate = Select { sample_rate: Some(24_000_000), ..Select::default() };
    let good = |text: &str, select: &Select, names: &[&str]| {
        let (edges, lines) = read(text.as_bytes().to_vec(), select).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(edges, expected, "{text}");
        assert_eq!(lines, names, "{text}");
    };
    let channels = ["D0", "D1"];
    for text in [
        format!("{comments}logic,logic\n{}", rows(&none, "")),
        format!("{comments}D0,D1\n{}", rows(&none, "")),
        format!("{comments}{}", rows(&none, "")),
        format!("{comments}nanoseconds,logic,logic\n{}", rows(&exact, "")),
        format!("{comments}nanoseconds,logic,logic\n{}", rows(&periods, "")),
        format!("{comments}Time,D0,D1\n{}", rows(&exact, "")),
        format!("{comments}Time,D0,D1,Trigger\n{}", rows(&periods, ",0")),
        format!("{comments}{}", rows(&exact, ",0")),
        // Analogue channels have units, and a blank line is the end of a frame.
        format!("{comments}logic,logic,V DC\n\n{}", rows(&none, ",3.3"))
            .replace("(2/13): D0, D1", "(3/13): D0, D1, A0"),
        format!("{comments}logic,logic\n{}", rows(&none, "")).replace(',', "\t").replace("D0\t", "D0,"),
        format!("{comments}logic,logic\n{}", rows(&none, "")).replace("; ", "# "),
        format!("\u{feff}{comments}D0,D1\n{}", rows(&none, "")).replace('\n', "\r\n"),
    ] {
        good(&text, &Select::default(), &channels);
    }
    good(&format!("D0,D1\n{}", rows(&none, "")), &with_rate, &channels);
    good(&format!("Time,D0,D1\n{}", rows(&exact, "")), &with_rate, &channels);
    good(&format!("logic,logic\n{}", rows(&none, "")), &with_rate, &["column 1", "column 2"]);
    good(&rows(&none, ""), &with_rate, &["column 1", "column 2"]);
    let dview = comments
        .replace("CSV generated", "CSV, generated")
        .replace(": D0, D1", "")
        .replace("Samplerate", "Sample rate");
    let seconds = |at: u64| format!("0.{:09},", at * 1_000_000_000 / 24_000_000);
    good(
        &format!("{dview}; Sample count: 6 Samples\nTime(s), D0, D1\n{}", rows(&seconds, "")),
        &Select::default(),
        &channels,
    );
    // A channel by its name, and the levels upside down.
    let select = Select { lines: vec!["D1".to_string()], invert: true, ..Select::default() };
    let (edges, _) = read(format!("{comments}logic,logic\n{}", rows(&none, "")).into_bytes(), &select).expect("a line");
    assert_eq!(edges.iter().map(|edge| (edge.at, edge.busy)).collect::<Vec<_>>(), [(at(3), false), (at(5), true)]);

    let wrong = |text: String| error(&text).to_string();
    let is = |text: String, line: usize, part: &str| {
        let error = wrong(text);
        assert!(error.starts_with(&format!("test:{line}: ")) && error.contains(part), "{error}");
    };
    is(format!("{comments}logic,logic\n1,1\n1,2\n"), 7, "'2' is not a level");
    is(format!("{comments}logic,logic\n1,1\n1\n"), 7, "the row has 1 cells; expected 2");
    is(format!("{comments}logic,logic\n1,1,1\n"), 6, "more cells");
    is(format!("{comments}nanoseconds,logic,logic\nx,1,1\n"), 6, "'x' is not a time");
    is(format!("{comments}nanoseconds,logic,logic\n41,1,1\n83,1,0\n"), 7, "no multiple of 41");
    is(comments.replace("24 MHz", "fast"), 4, "'fast' is not a sample rate");
    is(format!("{comments}{}", rows(&none, ",0")), 5, "a cell more than the channels");
    is(format!("Time,D0,D1\n{}", rows(&exact, "")), 1, "--sample-rate");
    is(format!("D0,D1\n{}", rows(&none, "")), 1, "--sample-rate");
    is(comments.to_string(), 5, "the file ends in its head");
    is(format!("{comments}V DC,V DC\n1.0,1.0\n"), 6, "'1.0' is not a level");
}

/// Archives and compressions that are not read are named, with the command that unpacks them.
#[test]
fn an_archive_is_named_with_the_command_that_unpacks_it() {
    let text = vcd(&levels(2), &edges(12, &[(3, 900), (90, 40)]));
    let mut tar = vec![0; 512];
    tar[..6].copy_from_slice(b"rb.vcd");
    tar[257..262].copy_from_slice(b"ustar");
    tar.extend(&text);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&tar).expect("a vector takes everything");
    let tgz = packer.finish().expect("a vector takes everything");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("rb.vcd", zip::write::SimpleFileOptions::default()).expect("a member");
    zip.write_all(&text).expect("a member");
    let zip = zip.finish().expect("finished").into_inner();
    let with = |magic: &[u8]| [magic, &text].concat();
    for (bytes, words) in [
        (tar, "this is a tar archive; expected a capture: unpack it, as in `tar xOf test > CAPTURE`"),
        (tgz, "this is a tar archive in gzip; expected a capture: unpack it, as in `tar xzOf test > CAPTURE`"),
        (zip, "unpack that, as in `unzip -p test > CAPTURE`"),
        (with(b"7z\xbc\xaf\x27\x1c"), "this is a 7z archive; expected a capture: unpack it, as in `7z e -so test > "),
        (
            with(b"Rar!\x1a\x07\x00"),
            "this is a rar archive; expected a capture: unpack it, as in `unrar p -inul test >",
        ),
        (
            with(b"\x28\xb5\x2f\xfd\0"),
            "compressed with zstd; expected a capture, plain or gzip: unpack it, as in `zstd -dc",
        ),
        (with(b"\xfd7zXZ\0"), "compressed with xz; expected a capture, plain or gzip: unpack it, as in `xz -dc test >"),
        (with(b"BZh9"), "compressed with bzip2; expected a capture, plain or gzip: unpack it, as in `bzip2 -dc test >"),
    ] {
        let what = read(bytes, &Select::default()).expect_err("no capture").to_string();
        assert!(what.contains(words), "{what}");
    }
}

#[test]
fn a_name_in_quotes_may_hold_a_comma() {
    let text = "Time [s],\"RB, die 0\",\"RB, die 1\"\n0.0,1,1\n0.1,0,1\n0.2,0,0\n";
    let select = Select { lines: vec!["RB, die 1".to_string()], ..Select::default() };
    let (edges, lines) = read(text.as_bytes().to_vec(), &select).expect("a good capture");
    assert_eq!(
        (lines, edges),
        (vec!["RB, die 1".to_string()], vec![Edge { at: Nanos(200_000_000), die: 0, busy: true }])
    );
    assert_eq!(read_all(text.as_bytes().to_vec()).len(), 2);
    let open = error("Time [s],\"RB, die 0\n0.0,1\n");
    assert!(open.to_string().starts_with("test:1: byte 0: the head's cell 2 has a quote without end"), "{open}");
}

#[test]
fn samples_by_number_need_a_rate() {
    let text = "Sample,RB\n0, 1\n100, 0\n300, 1\n";
    let select = Select { sample_rate: Some(1_000_000), ..Select::default() };
    let (edges, lines) = read(text.as_bytes().to_vec(), &select).expect("a good capture");
    assert_eq!(lines, ["RB"]);
    assert_eq!(edges.iter().map(|edge| edge.at.0).collect::<Vec<_>>(), [100_000, 300_000]);
}

/// The edges that were handed out, and what came of it in the end.
fn decoded(bytes: Vec<u8>) -> (Vec<Edge>, Result<Decoded, CaptureError>) {
    let mut all = Vec::new();
    let decoded = Capture::from_bytes("test", bytes, &Select::default())
        .and_then(|capture| capture.decode(|edges| all.extend_from_slice(edges)));
    (all, decoded)
}

/// A capture that stops anywhere is never taken for a whole one, but where it stops at the end of a line.
#[test]
fn a_text_that_is_cut_off_in_a_line_says_so() {
    let edges = edges(12, &[(3, 900), (90, 40), (3, 1), (7, 120_000), (90, 3), (7, 88_000_000)]);
    let mut csv = String::from("Time [s],Channel 0,Channel 1\n");
    (0..9).for_each(|row| csv += &format!("0.00{row}5,1,{}\n", row % 2));
    for (text, head) in [(vcd(&levels(2), &edges), "$enddefinitions $end\n"), (csv.into_bytes(), "Channel 1\n")] {
        let body = String::from_utf8_lossy(&text).find(head).expect("a head") + head.len();
        assert_eq!(decoded(text.clone()).1.expect("it is whole").unfinished, None);
        for cut in body..text.len() {
            let whole_line = text[..cut].ends_with(b"\n");
            let line = 1 + text[..cut].iter().filter(|&&byte| byte == b'\n').count() as u64;
            match decoded(text[..cut].to_vec()).1 {
                Ok(decoded) => {
                    assert_eq!(decoded.unfinished, (!whole_line).then_some((line, cut as u64)), "cut at {cut}");
                }
                Err(error) => {
                    assert!(!whole_line && error.what.contains("cut off"), "cut at {cut}: {error}");
                    assert!(matches!(error.place, Place::Text { line: at, .. } if at == line), "cut at {cut}: {error}");
                }
            }
        }
        // In the head: what is missing is said.
        for cut in 1..body - 1 {
            assert!(decoded(text[..cut].to_vec()).1.is_err() || !text.starts_with(b"$"), "cut at {cut}");
        }
    }
}

#[test]
fn a_gzip_that_is_cut_off_says_how_far_it_could_be_unpacked() {
    let steps: Vec<(u32, u32)> =
        (0..4000_u32).map(|step| (step * 7919, step.wrapping_mul(2_654_435_761) % 90_001)).collect();
    let edges = edges(12, &steps);
    let text = vcd(&levels(2), &edges);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&text).expect("a vector takes everything");
    let mut packed = packer.finish().expect("a vector takes everything");
    assert_eq!(decoded(packed.clone()).0, edges);
    packed.truncate(packed.len() * 2 / 3);
    let (seen, error) = decoded(packed);
    let error = error.expect_err("it was cut off");
    let Place::Text { line, byte, packed: true } = error.place else { panic!("{error}") };
    // About two thirds of the text, in some line of it; and the edges up to there.
    assert!(byte > text.len() as u64 / 3 && byte < text.len() as u64, "{error}");
    let lines = text[..byte as usize].iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(line as usize, lines + 1);
    assert!(error.what.contains("cut off") && error.to_string().contains("of the unpacked data"), "{error}");
    assert!(seen.len() > edges.len() / 3 && edges.starts_with(&seen), "{} of {}", seen.len(), edges.len());
}

#[test]
fn a_session_with_a_gap_in_its_samples_is_no_shorter_session() {
    let rename = |from: &str, to: &str| {
        let mut archive = sigrok(&edges(8, &[(0, 50), (0, 500), (1, 70)]), 1, 8, 100);
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let places: Vec<usize> =
            (0..archive.len() - from.len()).filter(|&at| archive[at..].starts_with(from)).collect();
        assert_eq!(places.len(), 2, "a name is in front of the member, and in the list");
        places.iter().for_each(|&at| archive[at..at + to.len()].copy_from_slice(to));
        read(archive, &Select::default()).expect_err("a gap").what
    };
    let what = rename("logic-1-2", "logic-x-2");
    assert!(what.contains("no logic-1-2") && what.contains("logic-1-7"), "{what}");
}

/// Names and scopes are kept: a small file shall not make a large memory of them.
#[test]
fn names_that_no_line_has_are_refused() {
    let text = format!("$scope module {} $end\n$var wire 1 ! a $end\n$enddefinitions $end\n", "m".repeat(5000));
    let error = error(&text);
    assert!(error.what.contains("5001 bytes") && error.to_string().starts_with("test:2: byte "), "{error}");
}
