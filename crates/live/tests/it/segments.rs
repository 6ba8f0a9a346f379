//! A served drive with append-only segments: what it keeps wherever the process ends, and what NBD says of it.

use std::sync::Arc;

use rand::RngExt;
use ssdlab_base::command_sets::segments::{Segment, SegmentState};
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Description, DriveConfig};
use ssdlab_live::engine::SetFigures;
use ssdlab_live::mount::{self, FileSystem, MountError, Options as MountOptions};
use ssdlab_live::{Engine, Failure, Pace, Target};

use crate::power::{Inbox, open};
use crate::support::Serving;
use crate::support::client::{BLOCK_STATUS, Client, EINVAL, Outcome, READ, TRIM, WRITE};

const SECTOR: u64 = 512;
const UNIT: u64 = 8;

/// A drive of segments of `pages` pages of 4 KiB on each of its dies.
fn drive(dies: u32, pages: u32, segments: u64) -> DriveConfig {
    let user = u64::from(dies * pages * 4096) * segments;
    let blocks = segments * 2 + 8;
    let text = format!(
        "name = \"small\"\n[flash]\nchannels = {dies}\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
         blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nuser = \"{user}\"\n\
         [buffer]\npolicy = \"none\"\n[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\n[gc]\npacing = \"off\"\n"
    );
    Description::parse(&text, "small.toml").and_then(|small| small.resolve()).expect("a drive")
}

/// A segment from one trim to the next: stamps of its units, 0 where one is missing, and whether they were answered.
type Life = Vec<(u64, bool)>;

/// A segment: its lives, and how many ended with a trim that was answered, that is durable.
#[derive(Clone, Default)]
struct Modelled {
    lives: Vec<Life>,
    trimmed: usize,
    durable: usize,
    closed: bool,
}

struct Subject {
    directory: tempfile::TempDir,
    config: DriveConfig,
    units: u64,
    segments: Vec<Modelled>,
    stamps: u64,
}

/// What an answer changes in the model.
enum Sent {
    Append { segment: usize, life: usize, units: std::ops::Range<usize> },
    Trim { segment: usize, life: usize, fua: bool },
    Flush(Vec<usize>),
}

fn contents(unit: u64, stamp: u64) -> Vec<u8> {
    [unit.to_le_bytes(), stamp.to_le_bytes()].concat().repeat((UNIT * SECTOR) as usize / 16)
}

impl Subject {
    fn draw(rng: &mut Rng) -> Subject {
        let (dies, pages, segments) = (rng.random_range(1..=4), rng.random_range(2..=6), rng.random_range(2..=8));
        let mut config = drive(dies, pages, segments);
        config.timed = rng.random_bool(0.7);
        let segments = vec![Modelled { lives: vec![Vec::new()], ..Modelled::default() }; segments as usize];
        let directory = tempfile::tempdir().expect("a directory");
        Subject { directory, config, units: u64::from(dies * pages), segments, stamps: 0 }
    }

    /// One random command, and what its answer changes; nothing where the segment drawn takes none.
    fn command(&mut self, rng: &mut Rng) -> Option<((Request, Vec<u8>), Sent)> {
        let number = rng.random_range(0..self.segments.len());
        let (units, at) = (self.units as usize, number as u64 * self.units * UNIT);
        let segment = &mut self.segments[number];
        let life = segment.lives.len() - 1;
        let written = segment.lives[life].len();
        match rng.random_range(0..10) {
            0..7 if written < units && !segment.closed => {
                let count = rng.random_range(1..=(units - written).min(5));
                self.stamps += 1;
                segment.lives[life].extend(vec![(self.stamps, false); count]);
                let first = number as u64 * self.units + written as u64;
                let data = (first..first + count as u64).flat_map(|unit| contents(unit, self.stamps)).collect();
                let request = Request::new(Op::Write, first * UNIT, count as u64 * UNIT);
                Some(((request, data), Sent::Append { segment: number, life, units: written..written + count }))
            }
            0..9 if written > 0 => {
                segment.lives.push(Life::new());
                segment.closed = false;
                let fua = rng.random_bool(0.2);
                let request = Request { fua, ..Request::new(Op::Trim, at, self.units * UNIT) };
                Some(((request, Vec::new()), Sent::Trim { segment: number, life: life + 1, fua }))
            }
            9 => {
                let covers = self.segments.iter().map(|segment| segment.trimmed).collect();
                Some(((Request::new(Op::Flush, 0, 0), Vec::new()), Sent::Flush(covers)))
            }
            _ => None,
        }
    }

    fn answered(&mut self, sent: &Sent) {
        match sent {
            Sent::Append { segment, life, units } => {
                self.segments[*segment].lives[*life][units.clone()].iter_mut().for_each(|unit| unit.1 = true);
            }
            Sent::Trim { segment, life, fua } => {
                let segment = &mut self.segments[*segment];
                segment.trimmed = segment.trimmed.max(*life);
                if *fua {
                    segment.durable = segment.durable.max(*life);
                }
            }
            Sent::Flush(covers) => {
                for (segment, covered) in self.segments.iter_mut().zip(covers) {
                    segment.durable = segment.durable.max(*covered);
                }
            }
        }
    }

    /// Serves the drive until the process ends in one of the next writes to its files; every segment is looked at first.
    fn serve(&mut self, rng: &mut Rng) -> u64 {
        let opened = open(self.directory.path(), &self.config).expect("a whole image");
        let inbox = Inbox::new(opened.drive.image().expect("it stands on an image").lifeline());
        let pace = if rng.random_bool(0.2) { Pace::Model { slower: 1e-3 } } else { Pace::None };
        let engine = Engine::new(opened.into_device(), pace).expect("an engine");
        self.look(&engine, &inbox);
        let closed = self.segments.iter().filter(|segment| segment.closed).count() as u64;
        let writes = 1 << rng.random_range(0..6);
        inbox.lifeline.end_after(rng.random_range(0..writes));
        for _ in 0..10 {
            if !inbox.lifeline.is_alive() {
                break;
            }
            let drawn = (0..rng.random_range(1..8)).filter_map(|_| self.command(rng));
            let (commands, sent): (Vec<_>, Vec<_>) = drawn.unzip();
            inbox.submit(&engine, commands);
            for answer in inbox.wait(sent.len()) {
                assert_eq!(answer.result.err(), None, "a command that breaks no rule");
                self.answered(&sent[answer.cookie as usize]);
            }
        }
        engine.cut();
        closed
    }

    /// Every segment is one of its lives, with all that was answered; the model goes on from there.
    fn look(&mut self, engine: &Engine, inbox: &Arc<Inbox>) {
        for number in 0..self.segments.len() {
            let first = number as u64 * self.units;
            let reads = (first..first + self.units).map(|unit| (Request::new(Op::Read, unit * UNIT, UNIT), Vec::new()));
            inbox.submit(engine, reads.collect());
            let mut found = vec![None; self.units as usize];
            for answer in inbox.wait(self.units as usize) {
                match answer.result {
                    Ok(data) => found[answer.cookie as usize] = Some(data),
                    Err(failure) => assert_eq!(failure, Failure::Refused("unwritten")),
                }
            }
            let Modelled { lives, durable, .. } = &self.segments[number];
            let has_answered = |life: &Life| life.iter().any(|unit| unit.1);
            let low = lives.iter().rposition(has_answered).unwrap_or(0).max(*durable);
            let fits = |life: &Life| {
                (0..).zip(&found).all(|(index, found)| match (life.get(index), found) {
                    (None, found) => found.is_none(),
                    (Some((_, answered)), None) => !answered,
                    (Some((stamp, _)), Some(data)) => *stamp > 0 && contents(first + index as u64, *stamp) == *data,
                })
            };
            let readable: Vec<bool> = found.iter().map(Option::is_some).collect();
            let index = (low..lives.len()).rev().find(|index| fits(&lives[*index]));
            let index =
                index.unwrap_or_else(|| panic!("segment {number} has {readable:?}; lives from {low}: {lives:?}"));
            let last = readable.iter().rposition(|is| *is).map_or(0, |last| last + 1);
            let [Segment { state, written }] = engine.segments(number as u64, 1)[..] else { panic!("a segment") };
            assert_eq!(written, last as u64 * UNIT, "segment {number} is {state:?} and has {readable:?}");
            let closed = state == SegmentState::Closed;
            assert!(closed || readable[..last].iter().all(|is| *is), "segment {number} has a hole and is {state:?}");
            let life = (0..last).map(|unit| if readable[unit] { (lives[index][unit].0, true) } else { (0, false) });
            self.segments[number] = Modelled { lives: vec![life.collect()], closed, trimmed: 0, durable: 0 };
        }
    }
}

#[test]
fn a_process_that_ends_in_any_write_leaves_the_segments_that_were_answered() {
    let mut rng = rng(1, "segments that are served");
    let mut closed = 0;
    for _ in 0..30 {
        let mut subject = Subject::draw(&mut rng);
        for _ in 0..50 {
            closed += subject.serve(&mut rng);
        }
    }
    assert!(closed > 0, "no segment was closed by any cut: {closed}");
}

/// The figures of the only drive.
fn only(engine: &Engine) -> SetFigures {
    let mut sets = engine.figures(false).sets;
    assert_eq!(sets.len(), 1, "{sets:?}");
    sets.remove(0)
}

#[test]
fn nbd_names_the_rule_that_a_request_breaks_and_tells_holes_that_cannot_be_read() {
    const BYTES: u64 = 8 * 4096;
    for zeroes in [false, true] {
        let mut config = drive(2, 4, 4);
        if zeroes {
            config.interface.read_unwritten = ssdlab_device::ReadUnwritten::Zeroes;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let opened = open(directory.path(), &config).expect("a new image");
        let engine = Arc::new(Engine::new(opened.into_device(), Pace::None).expect("an engine"));
        let serving = Serving::new(Arc::clone(&engine) as Arc<dyn Target>);
        let mut client = serving.client(true);
        let refused = |client: &mut Client, kind, offset, length: u32, reason: &str| {
            let payload = if kind == WRITE { vec![7; length as usize] } else { Vec::new() };
            match client.ask(kind, 0, offset, length, &payload) {
                Outcome::Error { errno, message } => assert_eq!((errno, message.as_str()), (EINVAL, reason)),
                other => panic!("{reason}: {other:?}"),
            }
        };
        client.write(0, &[1; 8192]);
        let breaks = [
            (WRITE, 0, 4096, "overwrite"),
            (WRITE, 12288, 4096, "gap"),
            (WRITE, BYTES - 4096, 8192, "crosses-segments"),
            (WRITE, 8192, 512, "part-of-write-unit"),
            (WRITE, 8192, 100, "part-of-write-unit"),
            (TRIM, 0, 4096, "part-of-segment"),
            (TRIM, 1, BYTES as u32, "part-of-segment"),
        ];
        let before = engine.segments(0, 4);
        for (kind, offset, length, reason) in breaks {
            refused(&mut client, kind, offset, length, reason);
        }
        if zeroes {
            assert_eq!(client.read(8192, 4096), [0; 4096]);
        } else {
            refused(&mut client, READ, 8192, 4096, "unwritten");
        }
        assert_eq!(engine.segments(0, 4), before, "a refused command changes nothing");
        assert_eq!(client.read(0, 8192), [1; 8192]);
        let counted: Vec<_> = only(&engine).refused.into_iter().filter(|(_, count)| *count > 0).collect();
        let mut wanted = vec![
            ("overwrite", 1),
            ("gap", 1),
            ("crosses-segments", 1),
            ("part-of-write-unit", 2),
            ("part-of-segment", 2),
        ];
        wanted.extend((!zeroes).then_some(("unwritten", 1)));
        assert_eq!(counted, wanted);
        assert_eq!(only(&engine).segments.expect("segments").states, [3, 1, 0, 0]);
        // A hole; one that reads as zeroes says so.
        let hole = if zeroes { 3 } else { 1 };
        let status = client.ask(BLOCK_STATUS, 0, 0, 4 * BYTES as u32, &[]);
        assert_eq!(status, Outcome::Extents(vec![(8192, 0), (4 * BYTES as u32 - 8192, hole)]));
        client.disconnect();
    }
}

#[test]
fn a_mount_that_wants_more_than_the_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mountpoint = directory.path().join("mountpoint");
    std::fs::create_dir(&mountpoint).expect("a mountpoint");
    let opened = open(&directory.path().join("image"), &drive(2, 4, 4)).expect("a new image");
    let engine = Arc::new(Engine::new(opened.into_device(), Pace::None).expect("an engine"));
    for (file_only, file_system) in [(false, None), (false, Some(FileSystem::Ext4)), (true, Some(FileSystem::Ext4))] {
        let options = MountOptions { file_only, file_system, ..MountOptions::new(&mountpoint) };
        let refused = mount::mount(&options, Arc::clone(&engine) as Arc<dyn Target>).err();
        assert!(matches!(refused, Some(MountError::AppendsOnly)), "{file_only}, {file_system:?}: {refused:?}");
    }
}
