//! The engine: answers come when the model says, once each, and the same requests replayed do the same on flash.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Drive, DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_host::Member;
use ssdlab_live::engine::Tap;
use ssdlab_live::{Answer, Command, Engine, Failure, Pace, Sink, Target};
use ssdlab_torture::configs;

const OPTIONS: Options = Options { seed: 5, contents: Contents::Bytes };

/// A cookie, what became of the command, and when.
type Received = (u64, Result<Vec<u8>, Failure>, Instant);

/// Keeps answers and when they came.
#[derive(Default)]
struct Inbox {
    answers: Mutex<Vec<Received>>,
    came: Condvar,
}

impl Sink for Inbox {
    fn answers(&self, answers: &mut Vec<Answer>) {
        let now = Instant::now();
        let mut kept = self.answers.lock().expect("the test holds");
        kept.extend(answers.drain(..).map(|answer| (answer.cookie, answer.result, now)));
        self.came.notify_all();
    }
}

impl Inbox {
    fn wait_for(&self, count: usize) {
        let answers = self.answers.lock().expect("the test holds");
        let (answers, _) = self
            .came
            .wait_timeout_while(answers, Duration::from_secs(60), |answers| answers.len() < count)
            .expect("the test holds");
        assert_eq!(answers.len(), count, "answers are missing");
    }
}

struct Listener(Arc<Mutex<Vec<Request>>>);

impl Tap for Listener {
    fn request(&mut self, request: &Request, _: &[u64]) {
        self.0.lock().expect("the test holds").push(*request);
    }
}

fn config() -> DriveConfig {
    let mut config = configs::handful();
    config.flash.geometry.channels = 2;
    config.flash.geometry.blocks_per_plane = 24;
    config.user_bytes = 16 * 4096;
    config
}

fn command(inbox: &Arc<Inbox>, cookie: u64, request: Request, data: Vec<u8>) -> Command {
    Command { request, data, cookie, sink: Arc::clone(inbox) as Arc<dyn Sink> }
}

fn random_commands(inbox: &Arc<Inbox>, seed: u64, count: u64, sectors: u64) -> Vec<Command> {
    let mut rng = rng(seed, "engine");
    (0..count)
        .map(|cookie| {
            let first = rng.random_range(0..sectors);
            let length = rng.random_range(1..=(sectors - first).min(16));
            let fua = rng.random_bool(0.2);
            let (op, data) = match rng.random_range(0..10) {
                0 => (Op::Trim, 0),
                1 => (Op::WriteZeroes, 0),
                2 => (Op::Flush, 0),
                3 | 4 => (Op::Read, 0),
                _ => (Op::Write, length as usize * 512),
            };
            let (first, length) = if op == Op::Flush { (0, 0) } else { (first, length) };
            let fua = fua && matches!(op, Op::Write | Op::Trim | Op::WriteZeroes);
            command(inbox, cookie, Request { fua, ..Request::new(op, first, length) }, vec![cookie as u8; data])
        })
        .collect()
}

/// A drive of a design behind a buffer.
fn config_of(design: &str, buffer: &str) -> DriveConfig {
    let mut config = config();
    config.ftl.design = design.to_string();
    config.buffer.policy = buffer.to_string();
    config.buffer.bytes = 8192;
    ssdlab_device::handful_for_design(&mut config, false);
    // A design may take a block of one data page for each unit, and some for itself.
    config.flash.geometry.blocks_per_plane += 24;
    config
}

#[test]
fn the_requests_that_were_served_do_the_same_on_flash_when_they_are_replayed() {
    for design in configs::names("ftl.design") {
        for buffer in configs::names("buffer.policy") {
            serve_and_replay(&config_of(design, buffer), Pace::None);
        }
        serve_and_replay(&config_of(design, "none"), Pace::Model { slower: 0.2 });
    }
}

/// Serves random commands, and submits what the drive was asked for to another one.
fn serve_and_replay(config: &DriveConfig, pace: Pace) {
    let name = format!("{}, {}", config.ftl.design, config.buffer.policy);
    let drive = Drive::new(config, OPTIONS).expect("a drive");
    let sectors = drive.user_sectors();
    let engine = Engine::new(Member::alone(drive, OPTIONS), pace).expect("an engine");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let tap = engine.add_tap(|_| Box::new(Listener(Arc::clone(&heard))));
    let inbox = Arc::new(Inbox::default());
    let mut commands = random_commands(&inbox, 1, 600, sectors);
    let mut sent = 0;
    while !commands.is_empty() {
        let mut batch: Vec<Command> = commands.drain(..commands.len().min(7)).collect();
        sent += batch.len();
        engine.submit(&mut batch);
        inbox.wait_for(sent);
    }
    engine.remove_tap(tap);
    let mut again = Drive::new(config, OPTIONS).expect("a drive");
    for request in heard.lock().expect("the test holds").iter() {
        // As a replay does: what arrives at one instant arrives before anything else happens at it.
        if request.at > again.now() {
            again.run_until(request.at);
        }
        again.submit_with(request, Data::Nothing);
    }
    while again.outstanding() > 0 {
        again.run_to_completion(Nanos::MAX);
        again.completions().clear();
    }
    // Erases may still be in flight at the last answer, and end while no command is outstanding.
    let at_last = format!("{:?}", again.counters().flash);
    while let Some(at) = again.next_event() {
        again.run_until(at);
    }
    let at_rest = format!("{:?}", again.counters().flash);
    let patience = Instant::now() + Duration::from_secs(20);
    let served = loop {
        let served = engine.figures(false).counters;
        let found = format!("{:?}", served.flash);
        if found == at_last || found == at_rest {
            break served;
        }
        let late = Instant::now() > patience;
        assert!(!late, "{pace:?}, {name}: {found} served, {at_last} to {at_rest} replayed");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(served.flash.total(ssdlab_flash::OpKind::Erase) > 0, "{name}: nothing was erased: too little was asked");
}

#[test]
fn no_answer_comes_before_the_model_says_and_each_comes_once() {
    for slower in [1.0, 3.0] {
        let drive = Drive::new(&config(), OPTIONS).expect("a drive");
        let sectors = drive.user_sectors();
        let engine = Engine::new(Member::alone(drive, OPTIONS), Pace::Model { slower }).expect("an engine");
        let inbox = Arc::new(Inbox::default());
        let program = config().flash.timing.program[0].min;
        let sent = Instant::now();
        let write = Request { fua: true, ..Request::new(Op::Write, 0, sectors.min(2)) };
        engine.submit(&mut vec![command(&inbox, 9, write, vec![1; 1024])]);
        inbox.wait_for(1);
        let took = inbox.answers.lock().expect("the test holds")[0].2 - sent;
        assert!(took.as_nanos() as f64 >= program.0 as f64 * slower, "a write of {program} took {took:?}");

        let mut commands = random_commands(&inbox, 2, 300, sectors);
        engine.submit(&mut commands);
        inbox.wait_for(301);
        let mut cookies: Vec<u64> =
            inbox.answers.lock().expect("the test holds")[1..].iter().map(|(cookie, ..)| *cookie).collect();
        cookies.sort_unstable();
        assert_eq!(cookies, (0..300).collect::<Vec<u64>>());
        let figures = engine.figures(false);
        assert_eq!(figures.outstanding, 0);
        assert_eq!(figures.lateness.count, 301);
    }
}

#[test]
fn a_stopped_engine_has_answered_all_and_refuses_the_rest() {
    let drive = Drive::new(&config(), OPTIONS).expect("a drive");
    let sectors = drive.user_sectors();
    // A clock so slow that nothing would be answered while anybody waits.
    let engine = Engine::new(Member::alone(drive, OPTIONS), Pace::Model { slower: 1e6 }).expect("an engine");
    let inbox = Arc::new(Inbox::default());
    engine.submit(&mut random_commands(&inbox, 3, 50, sectors));
    assert_eq!(engine.stop(), Ok(()), "it is flushed");
    inbox.wait_for(50);
    assert!(inbox.answers.lock().expect("the test holds").iter().all(|(_, result, _)| result.is_ok()));
    engine.submit(&mut vec![command(&inbox, 77, Request::new(Op::Read, 0, 1), Vec::new())]);
    inbox.wait_for(51);
    let last = inbox.answers.lock().expect("the test holds").pop().expect("an answer");
    assert_eq!((last.0, last.1), (77, Err(Failure::Shutdown)));
}

#[test]
fn what_is_mapped_is_told_by_the_unit() {
    let drive = Drive::new(&config(), OPTIONS).expect("a drive");
    let engine = Engine::new(Member::alone(drive, OPTIONS), Pace::None).expect("an engine");
    let unit = u64::from(engine.preferred_bytes());
    let inbox = Arc::new(Inbox::default());
    let request = Request::new(Op::Write, 2 * unit / 512, 2 * unit / 512);
    engine.submit(&mut vec![command(&inbox, 0, request, vec![7; 2 * unit as usize])]);
    let all: Vec<(u64, bool)> =
        engine.extents(0, engine.bytes(), 99).iter().map(|extent| (extent.bytes, extent.mapped)).collect();
    assert_eq!(all, [(2 * unit, false), (2 * unit, true), (engine.bytes() - 4 * unit, false)]);
    assert_eq!(engine.extents(0, engine.bytes(), 1).len(), 1);
    let part = engine.extents(3 * unit, unit + 512, 9);
    assert_eq!(part.iter().map(|extent| extent.bytes).collect::<Vec<_>>(), [unit, 512]);
}
