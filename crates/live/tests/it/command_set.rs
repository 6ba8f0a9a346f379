//! A served drive takes the commands of its set from a host in the same process, and sends it events; clients of block
//! transports go on beside it.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ssdlab_base::command_sets::tags::{
    ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, NOT_A_TAG_PER_UNIT, READ_TAGGED, TAG_REPLACED, TAGS, TAGS_CLEARED, WRITE_TAGGED,
    ZERO_TAG,
};
use ssdlab_base::{Op, Opcode, Request};
use ssdlab_device::{Drive, DriveConfig, Options, Status};
use ssdlab_flash::Contents;
use ssdlab_host::Member;
use ssdlab_live::record::Recorder;
use ssdlab_live::{Answer, Command, Engine, Executed, Failure, Pace, Sink, Target, image};
use ssdlab_torture::configs;

const OPTIONS: Options = Options { seed: 5, contents: Contents::Bytes };

fn config(design: &str) -> DriveConfig {
    let mut config = configs::handful();
    config.flash.geometry.channels = 2;
    config.flash.geometry.blocks_per_plane = 24;
    config.user_bytes = 16 * 4096;
    config.ftl.design = design.to_string();
    config
}

fn serve(design: &str, pace: Pace) -> Engine {
    let drive = Drive::new(&config(design), OPTIONS).expect("a drive");
    Engine::new(Member::alone(drive, OPTIONS), pace).expect("an engine")
}

/// A command of the set on units of the drive.
fn of_set(engine: &Engine, opcode: Opcode, units: (u64, u64), words: &[u64], data: &[u8]) -> Result<Executed, Failure> {
    let carrier = TAGS.command(opcode).map_or(Op::Read, |spec| spec.carrier);
    let sectors = u64::from(engine.preferred_bytes()) / 512;
    let request = Request { opcode, ..Request::new(carrier, units.0 * sectors, units.1 * sectors) };
    engine.execute(&request, words, data)
}

fn status(result: &Result<Executed, Failure>) -> Status {
    result.as_ref().expect("the drive executes it").status
}

/// Numbers, kinds and words of the events that the engine has.
fn events(engine: &Engine) -> Vec<(u64, u8, [u64; 3])> {
    engine.take_events().iter().map(|event| (event.number, event.kind.0, event.words)).collect()
}

fn for_both_paces(test: impl Fn(Pace)) {
    test(Pace::None);
    test(Pace::Model { slower: 0.2 });
}

#[test]
fn parameters_words_bytes_and_refusals_cross_the_engine() {
    for_both_paces(|pace| {
        let engine = serve("tagged", pace);
        assert_eq!(engine.command_set().map(|set| set.name), Some("tags"));
        let unit = engine.preferred_bytes() as usize;
        let data: Vec<u8> = (0..2 * unit).map(|byte| (byte % 251) as u8).collect();
        assert_eq!(status(&of_set(&engine, WRITE_TAGGED, (3, 2), &[7, 9], &data)), Status::Success);
        let read = of_set(&engine, READ_TAGGED, (2, 3), &[], &[]).expect("the drive executes it");
        assert_eq!((read.status, read.words), (Status::Success, vec![0, 7, 9]));
        assert_eq!(read.data, [vec![0; unit], data.clone()].concat());
        let found = of_set(&engine, FIND_TAG, (0, 0), &[9], &[]).expect("the drive executes it");
        assert_eq!((found.status, found.words, found.bytes), (Status::Success, vec![1], 4_u64.to_le_bytes().to_vec()));
        assert_eq!(status(&of_set(&engine, FIND_TAG, (0, 0), &[8], &[])), Status::Absent);
        // Refused: nothing changes.
        let other = vec![1; 2 * unit];
        let refused = of_set(&engine, WRITE_TAGGED, (3, 2), &[1, 0], &other);
        assert_eq!(status(&refused), Status::Refused(ZERO_TAG));
        let refused = of_set(&engine, WRITE_TAGGED, (3, 2), &[1], &other);
        assert_eq!(status(&refused), Status::Refused(NOT_A_TAG_PER_UNIT));
        assert_eq!(status(&of_set(&engine, FIND_TAG, (0, 0), &[1, 2], &[])), Status::Invalid);
        assert_eq!(status(&of_set(&engine, READ_TAGGED, (1 << 40, 1), &[], &[])), Status::OutOfRange);
        assert_eq!(status(&of_set(&engine, Opcode(99), (0, 1), &[], &[])), Status::Unsupported);
        assert_eq!(of_set(&engine, WRITE_TAGGED, (3, 2), &[1, 1], &[0; 7]), Err(Failure::Invalid));
        let read = of_set(&engine, READ_TAGGED, (3, 2), &[], &[]).expect("the drive executes it");
        assert_eq!((read.words, read.data), (vec![7, 9], data));
        assert_eq!(engine.stop(), Ok(()), "an idle drive is flushed");
        assert_eq!(of_set(&engine, FIND_TAG, (0, 0), &[9], &[]), Err(Failure::Shutdown));
    });
}

#[test]
fn events_come_in_order_and_again_until_they_are_acknowledged() {
    for_both_paces(|pace| {
        let engine = serve("tagged", pace);
        engine.attach_host();
        for tag in 1..=3 {
            assert_eq!(status(&of_set(&engine, WRITE_TAGGED, (5, 1), &[tag], &[])), Status::Success);
        }
        assert_eq!(status(&of_set(&engine, CLEAR_TAGS, (0, 0), &[], &[])), Status::Success);
        let replaced = |number, old| (number, TAG_REPLACED.0, [5, old, old + 1]);
        assert_eq!(events(&engine), [replaced(1, 1), replaced(2, 2), (3, TAGS_CLEARED.0, [1, 0, 0])]);
        assert_eq!(events(&engine), []);
        // A host starts anew: the second event was not acknowledged, the third need not be.
        assert_eq!(status(&of_set(&engine, ACKNOWLEDGE, (0, 0), &[1], &[])), Status::Success);
        engine.attach_host();
        assert_eq!(events(&engine), [replaced(2, 2)]);
        assert_eq!(status(&of_set(&engine, ACKNOWLEDGE, (0, 0), &[4], &[])), Status::Invalid);
        assert_eq!(status(&of_set(&engine, ACKNOWLEDGE, (0, 0), &[3], &[])), Status::Success);
        engine.attach_host();
        assert_eq!(events(&engine), []);
    });
}

/// Tells a test of each answer.
struct Client(Mutex<Sender<Result<Vec<u8>, Failure>>>);

impl Sink for Client {
    fn answers(&self, answers: &mut Vec<Answer>) {
        let sender = self.0.lock().expect("the test holds");
        answers.drain(..).for_each(|answer| sender.send(answer.result).expect("the test listens"));
    }
}

#[test]
fn block_clients_are_served_although_nobody_takes_the_events() {
    for_both_paces(|pace| {
        let engine = serve("tagged", pace);
        let (to, from) = channel();
        let sink: Arc<dyn Sink> = Arc::new(Client(Mutex::new(to)));
        for tag in 1..=50 {
            assert_eq!(status(&of_set(&engine, WRITE_TAGGED, (5, 1), &[tag], &[])), Status::Success);
            let request = if tag % 2 == 0 { Request::new(Op::Write, 0, 1) } else { Request::new(Op::Flush, 0, 0) };
            let data = vec![tag as u8; request.sectors as usize * 512];
            engine.submit(&mut vec![Command { request, data, cookie: tag, sink: Arc::clone(&sink) }]);
            let answer = from.recv_timeout(Duration::from_secs(60)).expect("the client is answered");
            assert_eq!(answer, Ok(Vec::new()));
        }
        assert_eq!(status(&of_set(&engine, CLEAR_TAGS, (0, 0), &[], &[])), Status::Success);
        // Without a host the events are dropped; one that comes now hears of those that must be acknowledged.
        assert_eq!(events(&engine), []);
        engine.attach_host();
        let numbers: Vec<u64> = events(&engine).iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, (1..50).collect::<Vec<_>>());
    });
}

#[test]
fn after_a_power_cut_the_sectors_are_there_and_events_are_numbered_from_one() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let open = || {
        let opened = image::open(directory.path(), &config("tagged"), 5).expect("an image");
        Engine::new(opened.into_device(), Pace::None).expect("an engine")
    };
    let engine = open();
    engine.attach_host();
    let data = vec![3; engine.preferred_bytes() as usize];
    for tag in [1, 2] {
        assert_eq!(status(&of_set(&engine, WRITE_TAGGED, (5, 1), &[tag], &data)), Status::Success);
    }
    let flush = engine.execute(&Request::new(Op::Flush, 0, 0), &[], &[]);
    assert_eq!(status(&flush), Status::Success);
    engine.cut();
    drop(engine);
    let engine = open();
    engine.attach_host();
    // The event that no host acknowledged was in RAM, and so were the tags.
    assert_eq!(events(&engine), []);
    assert_eq!(status(&of_set(&engine, READ_TAGGED, (5, 1), &[], &[])), Status::Absent);
    let sectors = data.len() as u64 / 512;
    let read = engine.execute(&Request::new(Op::Read, 5 * sectors, sectors), &[], &[]).expect("a read");
    assert_eq!(read.data, data);
    for tag in [4, 6] {
        assert_eq!(status(&of_set(&engine, WRITE_TAGGED, (5, 1), &[tag], &[])), Status::Success);
    }
    assert_eq!(events(&engine), [(1, TAG_REPLACED.0, [5, 4, 6])]);
}

#[test]
fn a_drive_without_a_set_does_not_support_its_commands() {
    let engine = serve("page", Pace::None);
    assert!(engine.command_set().is_none());
    assert_eq!(status(&of_set(&engine, FIND_TAG, (0, 0), &[9], &[])), Status::Unsupported);
    assert_eq!(status(&of_set(&engine, WRITE_TAGGED, (0, 1), &[9], &[])), Status::Unsupported);
}

/// What a recorder wrote.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("the test holds").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_recording_has_the_commands_with_their_words() {
    let engine = serve("tagged", Pace::None);
    let written = Written::default();
    let recorder = Recorder::start(&engine, Box::new(written.clone()), Box::new(|_| ())).expect("a recorder");
    let _ = of_set(&engine, WRITE_TAGGED, (1, 2), &[7, 9], &[]);
    let _ = of_set(&engine, FIND_TAG, (0, 0), &[9, 9], &[]);
    let _ = of_set(&engine, FIND_TAG, (0, 0), &[9], &[]);
    assert_eq!(recorder.finish(&engine).expect("a trace"), 2, "what the drive turned away is left out");
    let text = String::from_utf8(written.0.lock().expect("the test holds").clone()).expect("text");
    let unit = engine.preferred_bytes();
    assert!(text.contains(&format!(",tags:write-tagged,{unit},{},7 9\n", 2 * unit)), "{text}");
    assert!(text.contains(",tags:find-tag,0,0,9\n"), "{text}");
}
