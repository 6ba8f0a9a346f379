//! Cases for the command set `tags` from the bytes of a fuzzer: any bytes are a case.

use ssdlab_base::command_sets::tags::{ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, READ_TAGGED, SAVE_TRIMS, WRITE_TAGGED};
use ssdlab_base::{Op, Opcode, Request};
use ssdlab_flash::Contents;

use super::{Command, HostCommand, TagScope};
use crate::case::run;
use crate::cut::Cut;
use crate::draw;
use crate::step::Step;
use crate::totals::Totals;

/// Most steps of a case.
const STEPS_MOST: usize = 1000;

/// The bytes of an input, one after another; zeroes when they have run out.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: u64) -> u64 {
        (u64::from(self.byte()) << 8 | u64::from(self.byte())) % end.max(1)
    }

    /// A small number, or any.
    fn word(&mut self) -> u64 {
        match self.byte() {
            255 => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            small => u64::from(small % 8),
        }
    }
}

/// Runs the case that the bytes describe.
///
/// # Panics
/// When the drive differs from the model.
pub fn command_set(bytes: &[u8]) {
    let mut input = Input(bytes);
    let seed = input.below(1 << 16);
    let Ok(mut case) = draw(seed, &TagScope { commands: 0 }) else { return };
    case.subject.depth = 1 + input.below(16);
    case.subject.contents = [Contents::Stamps, Contents::Bytes, Contents::Nothing][input.below(3) as usize];
    let unit = u64::from(case.drive.ftl.mapping_unit) / 512;
    let units = case.drive.user_bytes / u64::from(case.drive.ftl.mapping_unit);
    while !input.0.is_empty() && case.steps.len() < STEPS_MOST {
        let step = step(&mut input, unit, units);
        case.steps.push(step);
    }
    if let Err(finding) = run(&case, &mut Totals::default()) {
        panic!("{finding:?}");
    }
}

fn step(input: &mut Input<'_>, unit: u64, units: u64) -> Step<HostCommand> {
    let kind = input.byte();
    let (sector, sectors) = match input.byte() {
        // As the set wants it.
        0..240 => (input.below(units) * unit, (1 + input.below(4)) * unit),
        // Any sectors near the drive's.
        240..250 => (input.below(units * unit + 4), input.below(3 * unit)),
        _ => (input.word(), input.word()),
    };
    let words = |input: &mut Input<'_>| {
        let count = match input.byte() {
            0..250 => sectors / unit,
            count => u64::from(count) - 250,
        };
        (0..count.min(300)).map(|_| input.word()).collect::<Vec<_>>()
    };
    Step::Command(HostCommand::Send(match kind {
        0..80 => Command::of_set(WRITE_TAGGED, sector, sectors, &words(input)),
        80..120 => Command::of_set(READ_TAGGED, sector, sectors, &[]),
        120..130 => Command::of_set(FIND_TAG, sector, sectors, &[input.word()]),
        130..135 => Command::of_set(CLEAR_TAGS, 0, 0, &[]),
        135..145 => return Step::Command(HostCommand::Acknowledge),
        145..150 => Command::of_set(ACKNOWLEDGE, 0, 0, &[u64::MAX]),
        150..155 => Command::of_set(SAVE_TRIMS, 0, 0, &[]),
        155..170 => {
            let op = [Op::Read, Op::Write, Op::Flush][input.below(3) as usize];
            let request = Request { opcode: Opcode(1 + input.byte() % 200), ..Request::new(op, sector, sectors) };
            // No number up to the last event's: the host might acknowledge an event that it sees on the way.
            let words = words(input).into_iter().map(|word| if word < 1 << 32 { 0 } else { word }).collect();
            Command { request, words }
        }
        170..190 => Command::block(Op::Trim, sector, sectors),
        190..200 => Command::block(Op::Flush, 0, 0),
        200..215 => Command::block(Op::Read, sector, sectors),
        215..240 => Command::block(Op::Write, sector, sectors),
        240..245 => return Step::Drain,
        245..250 => return Step::Command(HostCommand::Restart),
        _ => return Step::Cut(Cut::NOW),
    }))
}
