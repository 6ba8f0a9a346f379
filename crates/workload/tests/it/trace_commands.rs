//! Commands of a set in a trace: read with their words, written again, replayed where they are, and refused with reasons.

use std::num::NonZeroU32;

use ssdlab_base::command_sets::tags::{FIND_TAG, TAGS, WRITE_TAGGED};
use ssdlab_base::{Nanos, Op, Opcode, Request};
use ssdlab_workload::replay::{Discipline, Fit, ReplaySettings, TraceReplay};
use ssdlab_workload::trace::{Target, Trace, TraceWriter, convert};
use ssdlab_workload::{Next, Workload};

const TEXT: &str = "time_us,op,offset_bytes,length_bytes\n\
    0.000,W,0,4096\n\
    1.500,tags:write-tagged,4096,8192,7 9\n\
    2.000,tags:write-tagged!,0,4096,18446744073709551615\n\
    2.000,tags:find-tag,0,0,9\n\
    3.250,tags:clear-tags,0,0,\n\
    4.000,F,0,0\n";

fn trace(text: &str) -> Trace {
    Trace::from_bytes("example", "format=csv", text.as_bytes().to_vec()).expect("a trace")
}

#[test]
fn commands_come_with_their_words() {
    let mut trace = trace(TEXT);
    let mut requests = Vec::new();
    assert_eq!(trace.read(&mut requests).expect("requests"), 6);
    assert_eq!(trace.command_set(), Some("tags"));
    let told: Vec<_> =
        requests.iter().map(|r| (r.at.0, r.op, r.opcode, r.fua, r.sector, r.sectors, trace.words(r))).collect();
    assert_eq!(told[0], (0, Op::Write, Opcode::BLOCK, false, 0, 8, &[][..]));
    assert_eq!(told[1], (1_500, Op::Write, WRITE_TAGGED, false, 8, 16, &[7, 9][..]));
    assert_eq!(told[2], (2_000, Op::Write, WRITE_TAGGED, true, 0, 8, &[u64::MAX][..]));
    assert_eq!(told[3], (2_000, Op::Read, FIND_TAG, false, 0, 0, &[9][..]));
    assert_eq!((told[4].1, told[4].6), (Op::Flush, &[][..]));
    assert_eq!(told[5].2, Opcode::BLOCK);
}

#[test]
fn what_is_written_reads_back_and_converts_to_the_same_bytes() {
    let mut once = Vec::new();
    convert(&mut trace(TEXT), &Target::Csv, &mut once).expect("CSV holds all of it");
    let text = String::from_utf8(once.clone()).expect("text");
    assert_eq!(text, TEXT);
    let fio = Target::FioV3 { file: "drive".to_string() };
    let error = convert(&mut trace(TEXT), &fio, Vec::new()).expect_err("a log has none").to_string();
    assert!(error.contains("fio iolog cannot hold 'write-tagged'"), "{error}");
    let mut writer = TraceWriter::new(Target::Csv, Vec::new()).expect("a header");
    let unknown = Request { opcode: Opcode(99), ..Request::new(Op::Write, 0, 8) };
    assert!(writer.write_command(&unknown, &TAGS, &[]).is_err());
}

#[test]
fn a_replay_sends_commands_where_they_are_with_their_words() {
    let settings = ReplaySettings { discipline: Discipline::Closed { depth: NonZeroU32::MIN }, ..Default::default() };
    let mut replay = TraceReplay::new(trace(TEXT), settings, 1 << 20).expect("it fits");
    assert_eq!(replay.command_set(), Some("tags"));
    for _ in 0..2 {
        let mut words = Vec::new();
        while let Next::Request(request) = replay.next(Nanos::ZERO).expect("a request") {
            if !request.opcode.is_block() {
                words.push(replay.words().to_vec());
            }
            replay.completed(Nanos::ZERO, request.tag);
        }
        assert_eq!(words, [vec![7, 9], vec![u64::MAX], vec![9], vec![]]);
        replay.rewind().expect("again");
    }
    for fit in [Fit::Wrap, Fit::Dense] {
        let settings = ReplaySettings { fit, ..settings };
        let error =
            TraceReplay::new(trace(TEXT), settings, 1 << 20).map(|_| ()).expect_err("addresses stay").to_string();
        assert!(error.contains("'tags'") && error.contains(&format!("--{fit}")), "{error}");
    }
}

#[test]
fn a_line_that_is_no_command_is_refused_with_what_is_wrong() {
    let wrong = [
        ("1,tagz:write-tagged,0,4096,1", "the command set 'tagz'"),
        ("1,tags:write,0,4096,1", "one of write-tagged, read-tagged"),
        ("1,tags:write-tagged,0,4096,1,2", "in a fifth column"),
        ("1,tags:write-tagged,0", "in a fifth column"),
        ("x,tags:write-tagged,0,4096,1", "time_us"),
        ("1,tags:write-tagged,100,4096,1", "offset_bytes"),
        ("1,tags:write-tagged,0,-1,1", "length_bytes"),
        ("1,tags:write-tagged,0,4096,1 x", "whole numbers"),
        ("1,tags:find-tag,0,0", "1 whole numbers"),
        ("1,tags:find-tag,0,0,1 2", "1 whole numbers"),
        ("1,tags:clear-tags,0,0,1", "0 whole numbers"),
    ];
    for (line, expected) in wrong {
        let mut trace = trace(&format!("0,W,0,4096\n{line}\n"));
        let error = trace.read(&mut Vec::new()).expect_err(line).to_string();
        assert!(error.contains("example:2") && error.contains(expected), "{line}: {error}");
    }
    let text = b"0,tags:clear-tags,0,0\n".to_vec();
    let error = Trace::from_bytes("example", "format=csv,order=time", text)
        .and_then(|mut trace| trace.read(&mut Vec::new()))
        .expect_err("order")
        .to_string();
    assert!(error.contains("order=time"), "{error}");
}
