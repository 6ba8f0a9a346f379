//! How a solid-state cache tells of blocks that it does not have: by words, by a pattern in the data, by an error.

use ssdlab_base::command_sets::cache::{CACHE, MISS_STAMP, Miss, READ, WRITE_CLEAN};
use ssdlab_base::{Answer, Nanos, Op, Request};
use ssdlab_device::{Data, Description, Drive, Options, Payload, Status};
use ssdlab_flash::Contents;

fn cache(contents: Contents) -> Drive {
    let text = "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = 16\n\
                pages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[interface]\nkind = \"sata\"\nbandwidth = \"300MB/s\"\n[ftl]\ndesign = \"ssc\"\n\
                mapping_unit = \"4k\"\n[gc]\nfree_blocks = 3\n[capacity]\nuser = \"1m\"\n";
    let config = Description::parse(text, "cache").and_then(|description| description.resolve()).expect("a drive");
    Drive::new(&config, Options { seed: 1, contents }).expect("a drive")
}

/// How a command ends: its status, its answer, what it read, and how long it took.
fn ended(drive: &mut Drive, request: Request, data: Data<'_>, words: &[u64]) -> (Status, Answer, Vec<u8>, Nanos) {
    let request = Request { at: drive.now(), ..request };
    drive.submit_command(&request, Payload { data, words });
    assert!(drive.run_to_completion(Nanos::MAX), "{request:?} ends");
    let completion = drive.completions().pop().expect("it has ended");
    let answer = drive.answers().pop().unwrap_or_default();
    let read = drive.read_data().pop().map_or(Vec::new(), |(_, data)| data);
    (completion.status, answer, read, Nanos(completion.at.0 - request.at.0))
}

fn of_set(opcode: ssdlab_base::Opcode, sector: u64, sectors: u64) -> Request {
    Request::of_set(CACHE.command(opcode).expect("of the set"), sector, sectors)
}

/// The first of two blocks is absent. The read begins and ends within a block.
#[test]
fn absent_blocks_are_told_by_bits_a_pattern_or_an_error() {
    let mut drive = cache(Contents::Bytes);
    let block = vec![0xff; 4096];
    assert_eq!(ended(&mut drive, of_set(WRITE_CLEAN, 16, 8), Data::Bytes(&block), &[]).0, Status::Success);
    let read = of_set(READ, 12, 10);
    let pattern = Data::Stamp(MISS_STAMP).sector_data(&read, 512);
    let with = |absent: &[u8]| [&absent[..4 * 512], &block[..6 * 512]].concat();

    let (status, answer, data, _) = ended(&mut drive, read, Data::Nothing, Miss::Words.words());
    assert_eq!((status, answer.words, data), (Status::Absent, vec![1], with(&[0; 4096])));
    let (status, answer, data, _) = ended(&mut drive, read, Data::Nothing, Miss::Pattern.words());
    assert_eq!((status, answer.words), (Status::Success, vec![1]));
    assert!(data == with(&pattern), "the pattern of each sector has its address");
    let (status, answer, data, _) = ended(&mut drive, read, Data::Nothing, Miss::Error.words());
    assert_eq!((status, answer.words, data), (Status::UncorrectableRead, Vec::new(), Vec::new()));
    assert_eq!(ended(&mut drive, read, Data::Nothing, &[3]).0, Status::Invalid);

    // Where nothing is missing the three are alike.
    let read = of_set(READ, 18, 6);
    for miss in [Miss::Words, Miss::Pattern, Miss::Error] {
        let (status, answer, data, _) = ended(&mut drive, read, Data::Nothing, miss.words());
        assert_eq!((status, answer.words, data), (Status::Success, Vec::new(), vec![0xff; 6 * 512]), "{miss:?}");
    }
    // Block I/O knows no pattern.
    let (status, _, data, _) = ended(&mut drive, Request::new(Op::Read, 0, 8), Data::Nothing, &[]);
    assert_eq!((status, data), (Status::Success, vec![0; 4096]));
}

/// A pattern crosses the link as data does; words alone are quick.
#[test]
fn a_pattern_costs_a_transfer() {
    for contents in [Contents::Nothing, Contents::Stamps, Contents::Bytes] {
        let mut drive = cache(contents);
        let [words, pattern, error] = [Miss::Words, Miss::Pattern, Miss::Error].map(|miss| {
            let (.., time) = ended(&mut drive, of_set(READ, 0, 256), Data::Nothing, miss.words());
            time.0
        });
        assert!(error <= words, "{error} and {words} ns");
        // 128 KB at 300 MB/s take 437 us.
        assert!(pattern > words + 430_000, "{words} and {pattern} ns, {contents:?}");
    }
}
