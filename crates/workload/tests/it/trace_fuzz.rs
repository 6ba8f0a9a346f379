//! No bytes make a trace parser panic, loop or break its promises.
//!
//! The fuzz targets of the `fuzz` folder do the same for as long as one likes.

use proptest::prelude::*;
use ssdlab_base::{Nanos, Op};
use ssdlab_workload::stats::TraceStats;
use ssdlab_workload::trace::{Trace, TraceFormat};

/// Reads to the end or the first error, and checks what every trace promises.
fn exercise(options: &str, bytes: &[u8]) {
    let Ok(mut trace) = Trace::from_bytes("t", options, bytes) else { return };
    let mut batch = Vec::new();
    let (mut last, mut total) = (Nanos::ZERO, 0_u64);
    loop {
        match trace.read(&mut batch) {
            Err(error) => {
                assert!(error.to_string().starts_with('t'), "{error}");
                break;
            }
            Ok(0) => {
                assert!(total > 0, "an empty run");
                let stats = TraceStats::of(&mut trace).expect("it was read a moment ago");
                assert_eq!(stats.requests, total);
                assert!(!stats.to_string().is_empty());
                break;
            }
            Ok(_) => {
                if total == 0 {
                    assert_eq!(batch[0].at, Nanos::ZERO);
                }
                total += batch.len() as u64;
                for request in &batch {
                    assert!(request.at >= last);
                    assert!(request.at < Nanos::HORIZON);
                    last = request.at;
                    assert_eq!(request.sectors == 0, request.op == Op::Flush);
                    assert!(request.end() <= 1 << 52);
                }
            }
        }
    }
    let _ = trace.notes();
}

fn exercise_all(bytes: &[u8]) {
    exercise("", bytes);
    for format in TraceFormat::all() {
        exercise(&format!("format={format}"), bytes);
        exercise(&format!("format={format},skip_bad=yes"), bytes);
    }
}

/// Lines of every text format, and words that are hard on number parsers.
const LINES: [&str; 24] = [
    "time_us,op,offset_bytes,length_bytes",
    "1.5,W,4096,8192",
    "BeginHeader",
    "EndHeader",
    "DiskRead, 12, p (1), 2, 0xff, 0x1000, 0x200, 3, 0, 0x1",
    "128166372003061629,hm,0,Read,4096,512,100",
    "0,20,1024,W,0.5",
    "5 0 8 2 1",
    "5\t0\t8\t2\t0",
    "5.25 0 8 16 1",
    "0.0,120,1,4096,8192,0.5,4096",
    "5 1 nfsd 8 2 W 6 0 88b93b628d84082186026d9da044f173",
    "  8,16   5        2     0.000001850 18615  Q   R 8 + 2 [java]",
    "  8,16   5        2     9000000.000001850 18615  D   FWFS 8 + 2 [java]",
    "fio version 2 iolog",
    "/x write 4096 512",
    "/x wait 18446744073709551615 0",
    "fio version 3 iolog",
    "9 /x trim 0 1024",
    "1.5,,W,0,4096,1024",
    "1538323200,8,2,1,1058",
    "0,R,4096,1024,1577808000000046",
    "1,5633898,2a,1024,8",
    "39949 D write 4096 1024 0.000000000 0 False",
];
const WORDS: [&str; 16] = [
    "",
    "0",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "1.",
    ".1",
    "1e9",
    "0x",
    "0xffffffffffffffff",
    "NaN",
    "\u{e9}",
    "\0",
    "1152921504606846976",
    "36028797018963967",
];

/// A line with one of its columns replaced.
fn mutated(line: &str, column: usize, word: &str) -> String {
    let split = |c: char| c == ',' || c.is_ascii_whitespace();
    let parts: Vec<&str> = line.split_inclusive(split).collect();
    let at = column % parts.len();
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index == at {
            text += word;
            text.extend(part.chars().next_back().filter(|&last| split(last)));
        } else {
            text += part;
        }
    }
    text
}

fn any_line() -> impl Strategy<Value = String> {
    let valid = prop::sample::select(LINES.as_slice());
    prop_oneof![
        4 => valid.clone().prop_map(str::to_string),
        4 => (valid, 0..12_usize, prop::sample::select(WORDS.as_slice()))
            .prop_map(|(line, column, word)| mutated(line, column, word)),
        1 => "[ -~\\t]{0,60}",
    ]
}

/// A blktrace or vscsi file with some fields as they should be.
fn any_records() -> impl Strategy<Value = Vec<u8>> {
    let record =
        (any::<bool>(), prop::collection::vec(any::<u8>(), 48), 0..4_u8).prop_map(|(big, mut record, kind)| {
            match kind {
                0 => record[..4].copy_from_slice(&if big {
                    0x6561_7407_u32.to_be_bytes()
                } else {
                    0x6561_7407_u32.to_le_bytes()
                }),
                1 => {
                    record[..4].copy_from_slice(&0x6561_7407_u32.to_le_bytes());
                    // A queued write of a few sectors with little data behind.
                    record[16..24].copy_from_slice(&77_u64.to_le_bytes());
                    record[28..32].copy_from_slice(&0x0002_0001_u32.to_le_bytes());
                    record[46..48].copy_from_slice(&0_u16.to_le_bytes());
                }
                2 => {
                    record.truncate(32);
                    record[14..16].copy_from_slice(&0x0100_u16.to_le_bytes());
                    record[12..14].copy_from_slice(&0x2a_u16.to_le_bytes());
                }
                _ => {
                    record.truncate(40);
                    record[2..4].copy_from_slice(&0x0200_u16.to_le_bytes());
                }
            }
            record
        });
    prop_oneof![
        prop::collection::vec(record.clone(), 1..12).prop_map(|records| records.concat()),
        (record, 1..12_usize).prop_map(|(record, times)| record.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise_all(&bytes);
    }

    #[test]
    fn lines_with_wrong_columns_are_a_trace_or_an_error(
        lines in prop::collection::vec(any_line(), 1..20),
        ends in prop::sample::select(&["\n", "\r\n", "\n\n"][..]),
    ) {
        exercise_all(lines.join(ends).as_bytes());
    }

    #[test]
    fn one_line_of_a_format_many_times_with_one_column_wrong(
        line in prop::sample::select(LINES.as_slice()),
        column in 0..12_usize,
        word in prop::sample::select(WORDS.as_slice()),
        before in 1..6_usize,
    ) {
        let text = format!("{}{}\n{line}\n", format!("{line}\n").repeat(before), mutated(line, column, word));
        exercise_all(text.as_bytes());
    }

    #[test]
    fn records_with_wrong_fields_are_a_trace_or_an_error(bytes in any_records(), cut in 0..48_usize) {
        exercise_all(&bytes);
        exercise_all(&bytes[..bytes.len().saturating_sub(cut)]);
    }

    #[test]
    fn compressed_data_with_wrong_bytes_are_a_trace_or_an_error(
        kind in 0..2_usize,
        at in 0..200_usize,
        byte in any::<u8>(),
    ) {
        let text = "0,W,0,4096\n1.5,R,4096,512\n".repeat(20);
        let mut packed = if kind == 0 {
            zstd::encode_all(text.as_bytes(), 3).expect("memory")
        } else {
            let mut encoder = flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::default());
            let mut packed = Vec::new();
            std::io::Read::read_to_end(&mut encoder, &mut packed).expect("memory");
            packed
        };
        let at = at % packed.len();
        packed[at] = byte;
        exercise("", &packed);
        exercise("", &packed[..at]);
    }

    #[test]
    fn any_option_text_is_options_or_an_error(text in "[a-z=,#:0-9]{0,30}|(format|device|event|time|order|skip_bad)=[a-zQD0-9,#]{0,8}") {
        let _ = Trace::from_bytes("t", &text, b"0,W,0,512\n".to_vec());
        let _ = Trace::open(&format!("{text}:/no/such/file"));
    }
}
