//! Hand-written traces in every format, and everything that can be wrong with one.

use std::io::Write;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_workload::trace::{Trace, TraceFormat};

/// A tar with one file.
fn tar(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 512];
    let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(124, &format!("{:011o}\0", contents.len()));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar  ");
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = vec![0; contents.len().next_multiple_of(512) - contents.len() + 1024];
    [&head, contents, &padding].concat()
}

fn read_all(trace: &mut Trace) -> Result<Vec<Request>, String> {
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.read(&mut batch).map_err(|error| error.to_string())? > 0 {
        all.extend_from_slice(&batch);
    }
    Ok(all)
}

fn open(options: &str, bytes: impl Into<Vec<u8>>) -> Result<Trace, String> {
    Trace::from_bytes("t", options, bytes.into()).map_err(|error| error.to_string())
}

fn requests(options: &str, bytes: impl Into<Vec<u8>>) -> Result<Vec<Request>, String> {
    read_all(&mut open(options, bytes)?)
}

/// What a request looks like in a few characters: time, operation, sector, sectors.
type Brief = (u64, char, u64, u64);

fn brief(request: &Request) -> Brief {
    let op = match request.op {
        Op::Read => 'R',
        Op::Write if request.fua => 'X',
        Op::Write => 'W',
        Op::Trim => 'T',
        Op::Flush => 'F',
        Op::WriteZeroes => 'Z',
    };
    (request.at.0, op, request.sector, request.sectors)
}

fn briefs(options: &str, bytes: impl Into<Vec<u8>>) -> Vec<Brief> {
    requests(options, bytes).unwrap_or_else(|error| panic!("{error}")).iter().map(brief).collect()
}

#[test]
fn one_line_of_every_text_format_is_recognised_and_means_what_it_says() {
    #[rustfmt::skip]
    let cases: [(&str, &str, Brief); 18] = [
        ("csv", "time_us,op,offset_bytes,length_bytes\n7,WF,4096,1024\n", (0, 'X', 8, 2)),
        ("ms-etw", "BeginHeader\n DiskRead, TimeStamp\nEndHeader\n FileIoRead, 1, p (1), 2\n DiskWrite, 12, p (1), 2, 0xff, 0x1000, 0x200, 3, 0, 0x1\n", (0, 'W', 8, 1)),
        ("msr", "128166372003061629,hm,0,Read,4096,512,100\n", (0, 'R', 8, 1)),
        ("spc", "0,20,1024,W,0.5\n", (0, 'W', 20, 2)),
        ("ssdsim", "5 0 8 2 1\n", (0, 'R', 8, 2)),
        ("tracetracker", "5\t0\t8\t2\t0\n", (0, 'W', 8, 2)),
        ("disksim", "5.25 0 8 16 1\n", (0, 'R', 8, 16)),
        ("disksim-pages", "5.250000\t0\t8\t1\t0\n", (0, 'W', 8, 8)),
        ("linnos", "5.25 0 4096 1024 0\n", (0, 'W', 8, 2)),
        ("flashnet", "0.0,120,1,4096,8192,0.5,4096\n", (0, 'R', 16, 8)),
        ("fiu", "5 1 a b c 8 2 W 6 0 88b93b628d84082186026d9da044f173\n", (0, 'W', 8, 2)),
        ("blkparse", "  8,16   5        2     0.000001850 18615  Q   R 8 + 2 [java]\n", (0, 'R', 8, 2)),
        ("fio-v2", "fio version 2 iolog\n/x add\n/x open\n/x trim 4096 1024\n/x close\n", (0, 'T', 8, 2)),
        ("fio-v3", "fio version 3 iolog\n0 /x add\n9 /x datasync\n9 /x close\n", (0, 'F', 0, 0)),
        ("systor17", "Timestamp,Response,IOType,LUN,Offset,Size\n1.5,,W,0,4096,1024\n", (0, 'W', 8, 2)),
        ("tencent", "1538323200,8,2,1,1058\n", (0, 'W', 8, 2)),
        ("alibaba", "0,R,4096,1024,1577808000000046\n", (0, 'R', 8, 2)),
        ("vscsi-csv", "version,time,op,size,lbn\n1,5633898,2a,1024,8\n", (0, 'W', 8, 2)),
    ];
    for (format, text, expected) in cases {
        for text in [text.to_string(), text.replace('\n', "\r\n"), text.trim_end().to_string(), format!("\n{text}\n")] {
            // A header has to be the first line.
            if text.starts_with('\n') && !matches!(format, "ssdsim" | "msr" | "spc" | "blkparse" | "tencent") {
                continue;
            }
            let mut trace = open("", text.clone()).unwrap_or_else(|error| panic!("{format}: {error}"));
            assert_eq!(trace.format().name(), format, "{text}");
            let all = read_all(&mut trace).unwrap_or_else(|error| panic!("{format}: {error}"));
            assert_eq!(all.iter().map(brief).collect::<Vec<_>>(), [expected], "{text}");
            // And again, forced.
            assert_eq!(briefs(&format!("format={format}"), text), [expected]);
        }
    }
    let text = "39949 D write 4096 1024 0.000000000 0 False\n0 C write 4096 1024 0.1 4.4648e-05 False\n";
    assert_eq!(open("", text).map(|trace| trace.format().name()), Ok("wiscsee"));
    assert_eq!(briefs("", text), [(0, 'W', 8, 2)]);
}

#[test]
fn names_and_aliases_of_formats_are_told_apart_and_listed() {
    for format in TraceFormat::all() {
        assert_eq!(TraceFormat::named(format.name()).ok(), Some(format));
    }
    assert_eq!(TraceFormat::named("mqsim").map(TraceFormat::name).ok(), Some("ssdsim"));
    assert_eq!(TraceFormat::named("ucare").map(TraceFormat::name).ok(), Some("disksim"));
    let error = TraceFormat::named("nope").expect_err("unknown").to_string();
    assert!(error.contains("msr") && error.contains("blktrace"), "{error}");
}

#[test]
fn a_malformed_line_is_an_error_with_its_place() {
    let good = "128166372003061629,hm,0,Read,4096,512,100\n";
    for (bad, word) in [
        ("128166372003061630,hm,0,Raed,4096,512,100\n", "Read|Write"),
        ("128166372003061630,hm,0,Read,4096\n", "Timestamp"),
        ("128166372003061630,hm,0,Read,-4096,512,1\n", "Offset"),
        ("128166372003061630,hm,0,Read,4096,0,1\n", "length 0"),
        ("128166372003061630,hm,0,Read,4096,99999999999,1\n", "1 GiB"),
        ("128166372003061630,hm,0,Read,18446744073709551615,512,1\n", "2^60"),
        ("99999999999999999999,hm,0,Read,4096,512,100\n", "column 1"),
        ("\u{fffd}\u{1}garbage\n", "garbage"),
    ] {
        let text = format!("{good}{good}{bad}{good}");
        let error = requests("", text.clone()).expect_err(bad);
        assert!(error.starts_with("t:3: found "), "{error}");
        assert!(error.contains(word), "{error}");
        assert!(error.contains("expected"), "{error}");
        let mut trace = open("skip_bad=yes", text).expect("opens");
        assert_eq!(read_all(&mut trace).expect("reads").len(), 3);
        assert_eq!(trace.counts().bad, 1);
        assert!(trace.notes().iter().any(|note| note.contains("1 malformed line was left out")));
    }
}

#[test]
fn a_trace_without_a_request_is_an_error_never_an_empty_run() {
    for (options, text, word) in [
        ("", "", "is empty"),
        ("", "\n\n\n", "found an empty first line"),
        ("", "time_us,op,offset_bytes,length_bytes\n\n", "no request in it"),
        ("", "# nothing yet\n", "no request in it"),
        ("", "hello\nworld\n", "trace format is not recognised: found the first line"),
        ("", "\u{1}\u{3}\u{4}\0\0\0\0", "no binary format"),
        ("format=msr", "\n", "no request found in 1 line read as msr"),
        ("format=csv", "time_us,op,offset_bytes,length_bytes\n", "no request found"),
        ("", "fio version 3 iolog\n0 /x add\n", "no request found"),
        ("", "  8,0 1 2 0.5 7  m   N cfq\n", "trace format is not recognised: found the first line"),
        ("format=blkparse", "  8,0 1 2 0.5 7  m   N cfq\n", "no request found"),
        ("format=blkparse,event=D", "  8,0 1 2 0.5 7  Q   R 8 + 2 [x]\n", "for event D"),
        ("format=spc,device=7", "0,20,1024,W,0.5\n3,20,1024,W,0.5\n", "no request is for device `7`"),
        ("skip_bad=yes,format=msr", "x\ny\n", "no request found"),
        ("format=blktrace", "", "no request found in 0 records"),
    ] {
        let error = requests(options, text).expect_err(text);
        assert!(error.contains(word), "{options} {text:?}: {error}");
    }
    let error = requests("format=spc,device=7", "0,20,1024,W,0.5\n3,20,1024,W,0.5\n").expect_err("no such device");
    assert!(error.ends_with("the devices in it are 0, 3"), "{error}");
}

#[test]
fn an_option_that_means_nothing_for_the_format_is_refused() {
    for (options, text, word) in [
        ("event=D", "0,20,1024,W,0.5\n", "event="),
        ("device=1", "0,R,0,512\n", "device="),
        ("format=fio-v2,time=ms", "fio version 2 iolog\n", "time="),
    ] {
        let error = requests(options, text).expect_err(options);
        assert!(error.contains(word) && error.contains("no meaning"), "{error}");
    }
}

const CSV: &str = "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n1.5,R,4096,512\n";
const CSV_BRIEF: [Brief; 2] = [(0, 'W', 0, 8), (1_500, 'R', 8, 1)];
/// `CSV`, packed by xz 5.4.
const CSV_XZ: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3e0003e003c5d003a1a49fae2eef4313c4dd289d3aabb65002e34d18d32afba7bf84c9abceb6cbc4448947d14f901151b606a64a1a74c29c8817e7fe8fcff1286cd84400054285f958592fc700001583f4a4f82e41fb6f37d010000000004595a";
/// A tar with a trace of MSR's, packed by xz 5.4.
const TAR_XZ: &str = "fd377a585a0000016922de360200210116000000742fe5a3e003ff00625d0032184b953e6e7273e652ef7da2bacda8cfccf024c15cc250431fc6bd2eb77b4d868255c9ce37042d6b274ca32f639b24cc9de0cf6242d3c994ae1d5031b2354c23defe5bf99e362e67dfca36ec3b1c1d86ab17287b86e1a034926c240644571acb00000000f653736400017a80080000000762be1d3e300d8b020000000001595a";

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_ref()).expect("memory");
    encoder.finish().expect("memory")
}

fn bzip2(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(text.as_ref()).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(text: impl AsRef<[u8]>) -> Vec<u8> {
    zstd::encode_all(text.as_ref(), 3).expect("memory")
}

#[test]
fn compressed_traces_are_told_by_content_and_several_members_are_one_file() {
    let (head, tail) = CSV.split_at(45);
    let packed: [(&str, Vec<u8>); 7] = [
        ("", CSV.into()),
        ("gzip", gzip(CSV)),
        ("gzip", [gzip(head), gzip(tail)].concat()),
        ("zstd", zstd(CSV)),
        ("zstd", [zstd(head), zstd(tail)].concat()),
        ("bzip2", [bzip2(head), bzip2(tail)].concat()),
        ("xz", unhex(CSV_XZ)),
    ];
    for (name, bytes) in packed {
        let trace = open("", bytes.clone()).expect(name);
        assert_eq!(trace.compression(), name);
        assert_eq!(briefs("", bytes), CSV_BRIEF, "{name}");
    }
    let twice = [unhex(CSV_XZ), unhex(CSV_XZ)].concat();
    let error = requests("", twice).expect_err("the second header is a malformed line");
    assert!(error.starts_with("t:4: found `time_us"), "{error}");
}

#[test]
fn truncated_or_damaged_compressed_data_is_an_error_that_names_the_file() {
    let long: String = CSV.to_string() + &"2,W,4096,512\n".repeat(20_000);
    for (name, packed) in [("gzip", gzip(&long)), ("zstd", zstd(&long)), ("bzip2", bzip2(&long)), ("xz", unhex(CSV_XZ))]
    {
        for keep in [packed.len() / 2, packed.len() - 1, packed.len() - 5] {
            let error = requests("", &packed[..keep]).expect_err(name);
            assert!(error.starts_with("t: the ") && error.contains(name), "{name} cut at {keep}: {error}");
        }
        let mut damaged = packed.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        let error = requests("", damaged).expect_err(name);
        assert!(error.starts_with("t"), "{error}");
    }
}

#[test]
fn times_never_decrease_and_what_was_clamped_is_counted() {
    let text = "5,R,0,512\n3,R,512,512\n4,R,1024,512\n9,R,0,512\n";
    let mut trace = open("", text).expect("opens");
    let times: Vec<u64> = read_all(&mut trace).expect("reads").iter().map(|request| request.at.0).collect();
    assert_eq!(times, [0, 0, 0, 4_000]);
    assert_eq!(trace.counts().clamped, 2);
    let sorted: Vec<_> = briefs("order=time", text);
    assert_eq!(sorted, [(0, 'R', 1, 1), (1_000, 'R', 2, 1), (2_000, 'R', 0, 1), (6_000, 'R', 0, 1)]);
    // A trace whose lines are in order of completion is sorted unless told not to.
    let systor = "1.3,0.1,R,0,0,512\n1.2,0.1,R,0,512,512\n";
    assert_eq!(briefs("", systor), [(0, 'R', 1, 1), (100_000_000, 'R', 0, 1)]);
    assert_eq!(briefs("order=file", systor), [(0, 'R', 0, 1), (0, 'R', 1, 1)]);
}

#[test]
fn a_wild_clock_is_left_out_but_a_gap_is_believed() {
    let line = |time: &str, sector: u64| format!("8,33 1 1 {time} 7 D W {sector} + 8 [x]\n");
    let wild = [line("0.5", 0), line("1266874889.7", 8), line("1266874889.8", 16), line("0.6", 24)].concat();
    let mut trace = open("", wild).expect("opens");
    let all: Vec<_> = read_all(&mut trace).expect("reads").iter().map(brief).collect();
    assert_eq!(all, [(0, 'W', 0, 8), (100_000_000, 'W', 24, 8)]);
    assert_eq!(trace.counts().wild_clocks, 2);
    let gap: String = (0..40).map(|n| line(&format!("{}", if n < 4 { n } else { 500_000 + n }), n * 8)).collect();
    let mut trace = open("", gap).expect("opens");
    let all = read_all(&mut trace).expect("reads");
    assert_eq!(all.len(), 40);
    assert_eq!(all[39].at, Nanos(500_039 * 1_000_000_000));
    assert_eq!(trace.counts().wild_clocks, 0);
    let absolute = [line("1266874889.7", 8), line("1266874890.7", 16)].concat();
    assert_eq!(briefs("", absolute), [(0, 'W', 8, 8), (1_000_000_000, 'W', 16, 8)]);
}

#[test]
fn devices_lie_behind_one_another_or_are_chosen() {
    let text = "3,0,512,w,0.1\n0,100,1024,w,0.2\n3,4096,512,r,0.3\n12,1,512,r,0.4\n";
    let mut trace = open("", text).expect("opens");
    let all: Vec<_> = read_all(&mut trace).expect("reads").iter().map(brief).collect();
    // Device 0 ends at 52 KiB and takes 1 MiB; device 3 ends just above 2 MiB and takes 3.
    assert_eq!(
        all,
        [
            (0, 'W', 2048, 1),
            (100_000_000, 'W', 100, 2),
            (200_000_000, 'R', 2048 + 4096, 1),
            (300_000_000, 'R', 8193, 1)
        ]
    );
    let names: Vec<&str> = trace.devices().iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["0", "3", "12"]);
    assert!(trace.notes()[0].contains("3 devices"), "{:?}", trace.notes());
    assert_eq!(briefs("device=3", text), [(0, 'W', 0, 1), (200_000_000, 'R', 4096, 1)]);
    assert_eq!(briefs("device=#2", text), [(0, 'R', 1, 1)]);
    let named = "10,web,1,Write,0,512,1\n20,usr,0,Write,512,512,1\n";
    assert_eq!(briefs("device=usr.0", named), [(0, 'W', 1, 1)]);
    let files = "fio version 3 iolog\n0 /a add\n5 /a write 0 512\n6 /b write 0 512\n7 /b sync 0 0\n";
    assert_eq!(briefs("", files), [(0, 'W', 0, 1), (1_000, 'W', 2048, 1), (2_000, 'F', 0, 0)]);
    let block = "8,16 1 1 0.1 7 Q W 8 + 8 [x]\n8,17 1 2 0.2 7 Q W 16 + 8 [x]\n";
    assert_eq!(briefs("device=8,17", block), [(0, 'W', 16, 8)]);
}

#[test]
fn offsets_inside_a_sector_are_rounded_outward_and_counted() {
    let mut trace = open("", "0,W,100,512\n1,W,512,512\n2,R,1000,30\n").expect("opens");
    let all: Vec<_> = read_all(&mut trace).expect("reads").iter().map(brief).collect();
    assert_eq!(all, [(0, 'W', 0, 2), (1_000, 'W', 1, 1), (2_000, 'R', 1, 2)]);
    assert_eq!(trace.counts().rounded, 2);
}

#[test]
fn blkparse_events_flushes_and_passthrough_commands_mean_what_the_block_layer_means() {
    let text = "\
  8,0 0 1 0.000000001 9 A WS 16 + 8 <- (8,1) 0
  8,0 0 2 0.000000002 9 Q FWFS 16 + 8 [jbd2]
  8,0 0 3 0.000000003 9 Q FWS [jbd2]
  8,0 0 4 0.000000004 9 Q D 32 + 64 [x]
  8,0 0 5 0.000000005 9 Q R 36 (12 00 00 00) [x]
  8,0 0 6 0.000000006 9 Q N 0 [x]
  8,0 0 7 0.000000007 9 UT N [x] 1
  8,0 0 0 0.000000008 0 m N cfq Q W 1 + 1
  8,0 0 8 0.000000009 9 D WFS 16 + 8 [jbd2]
CPU0 (8,0):
 Reads Queued:           0,        0KiB	 Writes Queued:           0,        0KiB
Total (8,0):
Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,0): 53755 entries
Skips: 0 forward (0 -   0.0%)
";
    let mut trace = open("", text).expect("opens");
    let all: Vec<_> = read_all(&mut trace).expect("reads").iter().map(brief).collect();
    assert_eq!(all, [(0, 'F', 0, 0), (0, 'X', 16, 8), (1, 'F', 0, 0), (2, 'T', 32, 64)]);
    assert_eq!(trace.counts().ignored, 2);
    assert_eq!(briefs("event=D", text), [(0, 'X', 16, 8)]);
    let error = requests("", format!("{text}what is this\n")).expect_err("a line of no kind");
    assert!(error.contains("t:16:"), "{error}");
}

/// A blktrace record with `pdu` bytes of data behind it.
fn blk_record(big: bool, time: u64, sector: u64, bytes: u32, action: u32, pdu: u16) -> Vec<u8> {
    let mut record = Vec::new();
    macro_rules! put {
        ($value:expr) => {
            record.extend_from_slice(&if big { $value.to_be_bytes() } else { $value.to_le_bytes() })
        };
    }
    put!(0x6561_7407_u32);
    put!(1_u32);
    put!(time);
    put!(sector);
    put!(bytes);
    put!(action);
    put!(77_u32);
    put!((8_u32 << 20) | 16);
    put!(0_u32);
    put!(0_u16);
    put!(pdu);
    record.resize(48 + usize::from(pdu), 0xee);
    record
}

#[test]
fn blktrace_is_read_in_both_byte_orders() {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    const FLUSH: u32 = 1 << 18;
    const NOTIFY: u32 = 1 << 26;
    const DISCARD: u32 = 1 << 29;
    const FUA: u32 = 1 << 31;
    for big in [false, true] {
        let file = [
            blk_record(big, 5_000, 0, 0, NOTIFY | 2, 13),
            blk_record(big, 5_100, 8, 4096, WRITE | FUA | 1, 0),
            blk_record(big, 5_050, 64, 512, READ | 1, 4),
            blk_record(big, 5_200, 0, 0, WRITE | FLUSH | 1, 0),
            blk_record(big, 5_300, 128, 1 << 20, WRITE | DISCARD | 1, 0),
            blk_record(big, 5_400, 8, 4096, WRITE | 7, 0),
        ]
        .concat();
        let mut trace = open("", file.clone()).expect("opens");
        assert_eq!(trace.format().name(), "blktrace");
        let all: Vec<_> = read_all(&mut trace).expect("reads").iter().map(brief).collect();
        assert_eq!(all, [(0, 'R', 64, 1), (50, 'X', 8, 8), (150, 'F', 0, 0), (250, 'T', 128, 2048)]);
        assert_eq!(trace.devices()[0].name, "8,16");
        assert_eq!(briefs("event=D", file.clone()), [(0, 'W', 8, 8)]);
        let only_d = blk_record(big, 5_400, 8, 4096, WRITE | 7, 0);
        assert_eq!(briefs("", only_d), [(0, 'W', 8, 8)]);

        let error = requests("", &file[..file.len() - 3]).expect_err("cut");
        assert!(error.contains("middle of record 6"), "{error}");
        let mut damaged = file.clone();
        damaged[48 + 13] = 0;
        damaged[48 + 13 + 3] = 0;
        let error = requests("", damaged).expect_err("no magic");
        assert!(error.starts_with("t: record 2 (byte 61): found the magic"), "{error}");
    }
}

#[test]
fn processors_files_put_behind_one_another_are_merged_by_time() {
    const WRITE: u32 = 1 << 17;
    let stream =
        |base: u64| (0..100).flat_map(|n| blk_record(false, base + n * 10, n * 8, 4096, WRITE | 1, 0)).collect();
    let streams: [Vec<u8>; 3] = [stream(1_000), stream(1_003), stream(1_006)];
    let mut trace = open("", streams.concat()).expect("opens");
    let all = read_all(&mut trace).expect("reads");
    assert_eq!(all.len(), 300);
    assert_eq!(trace.counts().clamped, 0);
    assert!(all.chunks(3).all(|three| three[0].sector == three[2].sector));
}

#[test]
fn vscsi_records_of_both_versions_are_read() {
    let mut first = Vec::new();
    for (command, block, time) in [(0x2a_u16, 8_u64, 100_u64), (0x12, 0, 101), (0x28, 16, 102), (0x35, 0, 103)] {
        for word in [1_u32, 1024, 1] {
            first.extend_from_slice(&word.to_le_bytes());
        }
        first.extend_from_slice(&command.to_le_bytes());
        first.extend_from_slice(&0x0100_u16.to_le_bytes());
        first.extend_from_slice(&block.to_le_bytes());
        first.extend_from_slice(&time.to_le_bytes());
    }
    let expected = [(0, 'W', 8, 2), (2_000, 'R', 16, 2), (3_000, 'F', 0, 0)];
    assert_eq!(briefs("", first.clone()), expected);
    let mut second = Vec::new();
    for (command, block, time) in [(0x2a_u16, 8_u64, 100_u64), (0x12, 0, 101), (0x28, 16, 102), (0x35, 0, 103)] {
        second.extend_from_slice(&command.to_le_bytes());
        second.extend_from_slice(&0x0200_u16.to_le_bytes());
        for word in [1_u32, 1024, 1] {
            second.extend_from_slice(&word.to_le_bytes());
        }
        for word in [block, time, 7] {
            second.extend_from_slice(&word.to_le_bytes());
        }
    }
    assert_eq!(briefs("", second), expected);
    first[32 + 15] = 9;
    let error = requests("format=vscsi", first).expect_err("another version");
    assert!(error.contains("record 2") && error.contains("version"), "{error}");
}

#[test]
fn a_row_of_our_csv_says_which_field_is_wrong() {
    const HEAD: &str = "time_us,op,offset_bytes,length_bytes\n";
    for (row, field, expected) in [
        ("nan,W,0,4096", "time_us `nan`", "a decimal number"),
        ("-1,W,0,4096", "time_us `-1`", "a decimal number"),
        ("99999999999999999,W,0,4096", "the time `99999999999999999` in column 1", "73 years"),
        ("0,X,0,4096", "op `X`", "one of R W WF T TF Z ZF F"),
        ("0,W,18446744073709551615,4096", "offset_bytes `18446744073709551615`", "19 digits"),
        ("0,W,-4096,4096", "offset_bytes `-4096`", "whole number"),
        ("0,W,,4096", "offset_bytes nothing", "whole number"),
        ("0,W,0,4k", "length_bytes `4k`", "whole number"),
        ("0,F,5,0", "offset_bytes and length_bytes `5,0`", "0,0"),
        ("0,W,0", "`0,W,0`", "`time_us,op,offset_bytes,length_bytes`, such as"),
        ("0,W,0,512,9", "`0,W,0,512,9`", "`time_us,op,offset_bytes,length_bytes`, such as"),
    ] {
        // Also where it is the first row, or every row: the head says what the file is.
        for (text, line) in [(format!("{HEAD}{row}\n{row}\n"), 2), (format!("# mine\n{HEAD}1,R,0,512\n{row}\n"), 4)] {
            let error = requests("", text.as_str()).expect_err(row);
            let place = format!("t:{line}: found {field}");
            assert!(error.starts_with(&place) && error.contains(expected), "{row}: {error}");
        }
    }
}

#[test]
fn waits_of_an_iolog_are_its_times() {
    let text =
        "fio version 2 iolog\n/x add\n/x open\n/x write 0 512\n/x wait 150 0\n/x read 0 512\n/x wait 50\n/x sync 0 0\n";
    assert_eq!(briefs("", text), [(0, 'W', 0, 1), (150_000, 'R', 0, 1), (200_000, 'F', 0, 0)]);
    let error =
        requests("", "fio version 3 iolog\n0 /x wait 5 0\n0 /x write 0 512\n").expect_err("no wait in version 3");
    assert!(error.starts_with("t:2:"), "{error}");
}

#[test]
fn where_a_trace_could_be_another_format_the_notes_say_so() {
    let notes = |text: &str| open("", text).expect("opens").notes().join("\n");
    assert!(notes("5\t0\t8\t2\t0\n").contains("could also be ssdsim"));
    assert!(notes("5.25\t0\t8\t1\t0\n").contains("could also be disksim"));
    assert!(notes("5.25 0 8 1 0\n").contains("could also be disksim-pages"));
    let fast: String = (0..50).map(|n| format!("{} 0 {} 8 1\n", n * 3, n * 8)).collect();
    assert!(notes(&fast).contains("time="), "{}", notes(&fast));
    assert!(open("time=ms", fast.clone()).expect("opens").notes().is_empty());
    assert_eq!(briefs("time=ms", fast)[1].0, 3_000_000);
}

/// The five-column formats do not say their unit of time: what was taken is said, whichever of them it is.
#[test]
fn a_unit_of_time_that_was_guessed_from_the_numbers_is_said() {
    let rows = |separator: &str, step: u64, fraction: &str, bytes: u64, length: u64| -> String {
        let row = |n: u64| {
            let columns = [format!("{}{fraction}", 7 + n * step), "0".into(), (n * 8 * bytes).to_string()];
            columns.join(separator) + separator + &(length * bytes).to_string() + separator + "1\n"
        };
        (0..50).map(row).collect()
    };
    let unit = |text: &str| {
        let trace = open("", text).expect("opens");
        let notes: Vec<String> = trace.notes().into_iter().filter(|note| note.contains("`time=`")).collect();
        let [note] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(note.contains("a guess from the numbers"), "{note}");
        let taken = note.split("taken as ").nth(1).and_then(|rest| rest.split(':').next()).expect("a unit");
        (trace.format().name(), taken.to_string())
    };
    let every = |unit: &str, time: &str| format!("{unit}, which gives a request every {time} at the start");
    assert_eq!(unit(&rows(" ", 20_000, "", 1, 8)), ("ssdsim", every("nanoseconds", "20.0 us")));
    assert_eq!(unit(&rows("\t", 20_000, "", 1, 8)), ("tracetracker", every("units of 100 ns", "2.00 ms")));
    assert_eq!(unit(&rows(" ", 3, ".25", 1, 8)), ("disksim", every("milliseconds", "3.00 ms")));
    assert_eq!(unit(&rows(" ", 3, ".25", 1, 7)), ("disksim", every("milliseconds", "3.00 ms")));
    assert_eq!(unit(&rows("\t", 3, ".25", 1, 7)), ("disksim-pages", every("milliseconds", "3.00 ms")));
    assert_eq!(unit(&rows(" ", 3, ".25", 512, 8)), ("linnos", every("milliseconds", "3.00 ms")));
    assert_eq!(unit("7 0 8 8 1\n"), ("ssdsim", "nanoseconds".to_string()), "one request has no interval");
    // Nanoseconds since 1970 are too many milliseconds for 64 bits.
    let since_1970 = "1456095145133076001 0 8 8 1\n1456095145133096001 0 16 8 0\n";
    assert_eq!(unit(since_1970), ("ssdsim", every("nanoseconds", "20.0 us")));
    // A unit or a format that is given is no guess.
    for options in ["time=us", "format=ssdsim", "format=ssdsim,time=ms"] {
        assert!(open(options, rows(" ", 20_000, "", 1, 8)).expect("opens").notes().is_empty(), "{options}");
    }
}

/// Public traces are downloaded as archives: each is named as one, with the command that unpacks it, however it is
/// compressed and whatever format is forced.
#[test]
fn an_archive_is_named_with_the_command_that_unpacks_it() {
    let rows = b"128166372003061629,host,0,Read,383496192,32768,113736\n".repeat(20);
    let tar = tar("day1.csv", &rows);
    let zip = [b"PK\x03\x04".as_slice(), &rows].concat();
    let (sevenzip, rar) =
        ([b"7z\xbc\xaf\x27\x1c\0\x04".as_slice(), &rows].concat(), [b"Rar!\x1a\x07\x01\0".as_slice(), &rows].concat());
    for (bytes, words) in [
        (tar.clone(), "t is a tar archive, expected a trace: unpack it, as in `tar xOf t | ssdlab trace stats -`"),
        (gzip(&tar), "t is a tar archive in gzip, expected a trace: unpack it, as in `tar xzOf t |"),
        (zstd(&tar), "t is a tar archive in zstd, expected a trace: unpack it, as in `tar --zstd -xOf t |"),
        (unhex(TAR_XZ), "t is a tar archive in xz, expected a trace: unpack it, as in `tar xJOf t |"),
        (bzip2(&tar), "t is a tar archive in bzip2, expected a trace: unpack it, as in `tar xjOf t |"),
        (zip.clone(), "t is a zip archive, expected a trace: unpack it, as in `unzip -p t | ssdlab trace stats -`"),
        (gzip(&zip), "`gzip -dc t > unpacked.zip; unzip -p unpacked.zip |"),
        (sevenzip, "t is a 7z archive, expected a trace: unpack it, as in `7z e -so t |"),
        (rar, "t is a rar archive, expected a trace: unpack it, as in `unrar p -inul t |"),
    ] {
        for options in ["", "format=msr", "format=vscsi"] {
            let error = open(options, bytes.clone()).map(|_| ()).expect_err("an archive").to_string();
            assert!(error.contains(words), "{options}: {error}");
        }
    }
}

#[test]
fn a_line_without_end_is_refused_in_constant_memory() {
    let error = requests("format=msr", vec![b'7'; 3 << 20]).expect_err("one endless line");
    assert!(error.contains("t:1: the line is longer than"), "{error}");
}

#[test]
fn what_is_not_a_file_is_refused_by_name() {
    let error = Trace::open("/definitely/not/there.csv").map(|_| ()).expect_err("missing").to_string();
    assert!(error.contains("/definitely/not/there.csv"), "{error}");
    let folder = std::env::temp_dir();
    let error = Trace::open(folder.to_str().expect("plain")).map(|_| ()).expect_err("a folder").to_string();
    assert!(error.ends_with("is a folder; expected a trace, which is a file"), "{error}");
    // A named pipe is refused before it is opened, which would wait for a writer.
    let pipe = std::env::temp_dir().join(format!("ssdlab-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let error = Trace::open(pipe.to_str().expect("plain")).map(|_| ()).expect_err("a pipe").to_string();
    std::fs::remove_file(&pipe).expect("the pipe goes");
    assert!(error.contains("not a regular file") && error.contains("`-` reads standard input"), "{error}");
}
