//! Commands of the drive's own set: checked against what the set says of them, and carried out by the design.

use std::cell::Cell;

use ssdlab_base::command_set::{AddressSpace, DataPhase, Role};
use ssdlab_base::command_sets::cache::MISS_STAMP;
use ssdlab_base::command_sets::segments::MOST_REPORTED;
use ssdlab_base::{Answer, CommandSet, CommandSpec, Event, Op, Opcode, Request, SECTOR_BYTES};
use ssdlab_flash::Lpn;

use super::Drive;
use super::data::{Data, Payload};
use super::dispatch::Stall;
use crate::Status;
use crate::command_sets::Effect;
use crate::ftl::{CannotYet, Commands, Ftl, NoSpace, Outcome, SetCommand, TrimTarget};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// Bytes of a word on the link.
pub(super) const WORD_BYTES: u64 = 8;

/// What a command of the drive's own set has beyond a block command.
#[derive(Clone, Debug)]
pub(super) struct SetCommandState {
    /// `None` where the drive does not know it.
    spec: Option<&'static CommandSpec>,
    words: Vec<u64>,
    answer: Answer,
    /// The design has carried out its part; what is left is block I/O on the range.
    carried_out: bool,
    /// Units that it was through with when it had to wait, at most.
    furthest: Cell<u32>,
    /// Nothing of its range was read, so that no data of it goes back.
    reads_nothing: bool,
    /// Units whose bits are set in the answer's words have a pattern in their data, and the words do not travel.
    absent_in_data: bool,
    /// As the host sent them.
    sectors: u64,
    /// What is to be done, of an action that the set's rules took.
    effect: Option<Effect>,
}

impl SetCommandState {
    /// Units that it is through with, of a command that waits.
    pub(super) fn furthest(&self) -> u64 {
        u64::from(self.furthest.get())
    }

    /// Bytes that it brings over the link.
    #[cold]
    pub(super) fn bytes_in(&self, request: &Request) -> u64 {
        let data = if self.brings_data(request) { request.bytes() } else { 0 };
        data + self.words.len() as u64 * WORD_BYTES
    }

    /// Bytes that go back.
    #[cold]
    pub(super) fn bytes_out(&self, request: &Request) -> u64 {
        let data = match self.spec.map_or(DataPhase::Nothing, |spec| spec.data) {
            DataPhase::Range if request.op == Op::Read && !self.reads_nothing => request.bytes(),
            DataPhase::Answer => self.answer.bytes.len() as u64,
            _ => 0,
        };
        let words = if self.absent_in_data { 0 } else { self.answer.words.len() };
        data + words as u64 * WORD_BYTES
    }

    /// Puts the pattern in place of what units hold that are absent.
    #[cold]
    pub(super) fn tell_absent(&self, request: &Request, sectors_per_unit: u64, sector_data: &mut [u8]) {
        if !self.absent_in_data {
            return;
        }
        let per_sector = sector_data.len() / request.sectors as usize;
        let pattern = Data::Stamp(MISS_STAMP).sector_data(request, per_sector);
        let first = request.sector / sectors_per_unit;
        for (index, (data, pattern)) in
            sector_data.chunks_exact_mut(per_sector).zip(pattern.chunks_exact(per_sector)).enumerate()
        {
            let unit = (request.sector + index as u64) / sectors_per_unit - first;
            if self.answer.words[unit as usize / 64] >> (unit % 64) & 1 != 0 {
                data.copy_from_slice(pattern);
            }
        }
    }

    /// Whether the sectors of its range come with it.
    pub(super) fn brings_data(&self, request: &Request) -> bool {
        request.op == Op::Write && self.spec.is_some_and(|spec| spec.data == DataPhase::Range)
    }

    /// Sectors of its range; those that a sender gives to a command without addresses mean nothing.
    pub(super) fn addressed_sectors(&self) -> u64 {
        if self.space().is_addressed() { self.sectors } else { 0 }
    }

    pub(super) fn space(&self) -> AddressSpace {
        self.spec.map_or(AddressSpace::Nothing, |spec| spec.address)
    }

    /// The answer, if there is one.
    fn answer(self, tag: u32) -> Option<Answer> {
        let told = !(self.answer.words.is_empty() && self.answer.bytes.is_empty());
        told.then_some(Answer { tag, ..self.answer })
    }
}

/// How often a command of the drive's own set ended, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCount {
    /// Those that ended.
    pub completed: u64,
    /// Commands that ended refused.
    pub refused: u64,
    /// Commands that ended with another status than success, refused ones included.
    pub failed: u64,
}

/// Who executes the commands of the drive's set: what stands beside the mapping, or the mapping.
fn set_commands<'a>(
    beside: &'a mut Option<Box<dyn Commands>>,
    ftl: &'a mut dyn Ftl,
) -> Option<&'a mut (dyn Commands + 'a)> {
    match beside {
        Some(beside) => Some(&mut **beside),
        None => ftl.commands(),
    }
}

impl Drive {
    /// The commands and events that the drive knows beyond block I/O.
    pub fn command_set(&self) -> Option<&'static CommandSet> {
        self.host.set
    }

    /// How often each command of the drive's own set ended, in the order of the set.
    pub fn command_counts(&self) -> &[CommandCount] {
        &self.host.command_counts
    }

    /// Answers of completed commands; the caller clears it.
    pub fn answers(&mut self) -> &mut Vec<Answer> {
        &mut self.host.answers
    }

    /// Events that the host was not told of, in order; afterwards it was.
    pub fn take_events(&mut self, to: &mut Vec<Event>) {
        self.media.events.deliver(to);
    }

    /// A host begins anew above a drive that kept its power: it is told again of what was not acknowledged.
    pub fn host_restarted(&mut self) {
        self.media.events.deliver_again();
    }

    /// Events sent, and of these the ones that still wait for their acknowledgement.
    pub fn event_counts(&self) -> (u64, u64) {
        (self.media.events.sent(), self.media.events.kept())
    }

    /// Takes a command of any set, with its payload, at `request.at`; events before that time must have run. Of a
    /// command that the drive does not know the completion says so.
    ///
    /// # Panics
    ///
    /// When `request.at` is before the drive's virtual time, as for [`Drive::submit`].
    pub fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        if request.opcode.is_block() {
            return self.submit_with(request, payload.data);
        }
        let spec = self.host.set.and_then(|set| set.command(request.opcode));
        let mut set_state = SetCommandState {
            spec,
            words: payload.words.to_vec(),
            answer: Answer::default(),
            carried_out: false,
            furthest: Cell::new(0),
            reads_nothing: false,
            absent_in_data: false,
            sectors: request.sectors,
            effect: None,
        };
        let mut placed = *request;
        let taken = match (self.refuses(request, &set_state), spec.map(|spec| spec.role)) {
            (Some(status), _) => Err(status),
            (None, Some(Role::Zone(action))) => self.admit(request, Some(action)).map(|admitted| {
                placed.sector = admitted.address;
                set_state.answer.words = admitted.answer;
                set_state.effect = admitted.effect;
                Some(admitted.sectors)
            }),
            (None, _) => Ok(None),
        };
        self.arrives(&placed, payload.data, Some(Box::new(set_state)), taken);
    }

    /// Why a command of the set cannot even be looked at.
    fn refuses(&self, request: &Request, set_state: &SetCommandState) -> Option<Status> {
        let Some(spec) = set_state.spec else { return Some(Status::Unsupported) };
        if spec.carrier != request.op || !spec.words_in.allow(set_state.words.len()) {
            return Some(Status::Invalid);
        }
        let sectors = match spec.address {
            AddressSpace::Logical => 0..self.user_sectors(),
            AddressSpace::Physical => 0..self.media.flash.geometry().bytes() / SECTOR_BYTES,
            AddressSpace::Reserved => self.user_sectors()..self.user_sectors() + self.reserved_sectors(),
            AddressSpace::Nothing | AddressSpace::Everything => return None,
        };
        let end = request.sector.checked_add(request.sectors);
        let fits = request.sector >= sectors.start && end.is_some_and(|end| end <= sectors.end);
        (!fits).then_some(Status::OutOfRange)
    }

    /// Lets a command of the set take effect: the design's part first, then block I/O on its range where the design says so.
    #[inline(never)]
    pub(super) fn command_of_set(&mut self, command: u32) -> Result<(), Stall> {
        let state = &mut self.commands[command];
        let request = state.request;
        let mut set_state = state.set_state.take().expect("a command of a set");
        let result = self.carry_out(command, &request, &mut set_state);
        self.commands[command].set_state = Some(set_state);
        result?;
        self.commit_effect(command);
        Ok(())
    }

    fn carry_out(&mut self, command: u32, request: &Request, set_state: &mut SetCommandState) -> Result<(), Stall> {
        let spec = set_state.spec.expect("an unknown command does not enter the drive");
        let writes = request.op == Op::Write || set_state.effect.is_some();
        if self.failures.read_only && writes && !self.has_begun(command) {
            self.commands[command].status = Status::ReadOnly;
            self.never_written(request, set_state);
            return Ok(());
        }
        if spec.role == Role::Acknowledge {
            if !self.media.events.acknowledge(set_state.words[0]) {
                self.commands[command].status = Status::Invalid;
            }
            return Ok(());
        }
        if spec.role == Role::Report {
            self.commands[command].status = self.report_segments(set_state);
            return Ok(());
        }
        if let Some(effect) = &set_state.effect {
            return self.apply(command, effect);
        }
        if !set_state.carried_out {
            let waiter = Waiter::Command(command);
            let (none, read_only, words) = (&[][..], self.failures.read_only, &set_state.words[..]);
            let (buffered, expendable) = (none, none);
            let takes_room = request.op == Op::Write && self.keeps(request.opcode);
            let has_room = !takes_room || self.finds_room(command)?;
            let opcode = request.opcode;
            let furthest = &set_state.furthest;
            let asked =
                SetCommand { opcode, request, words, buffered, expendable, read_only, has_room, waiter, furthest };
            let outcome = match self.execute(asked) {
                // A drive that became read-only has no more space later: what the command needs does not come.
                Err(Stall::NoSpace) if self.failures.read_only => {
                    self.commands[command].status = Status::ReadOnly;
                    return Ok(());
                }
                outcome => outcome?,
            };
            set_state.answer.words = outcome.words;
            set_state.answer.bytes = outcome.bytes;
            set_state.carried_out = !seeded(Bug::ExecutedTwice);
            set_state.reads_nothing = !outcome.block_io;
            set_state.absent_in_data = outcome.absent_in_data;
            // What it did in RAM is seen from now on; commands to its sectors wait until they are read or written.
            self.commands.number(command);
            self.commands[command].status = outcome.status;
            self.commands[command].expendable = outcome.expendable;
            self.commands[command].request.fua |= outcome.write_through;
            if outcome.awaits_records {
                self.await_metadata(command);
            }
            if !outcome.block_io {
                return Ok(());
            }
            if takes_room {
                self.is_let_in(command);
            }
        }
        match request.op {
            Op::Read => self.read(command)?,
            Op::Write => self.write(command)?,
            Op::Trim | Op::WriteZeroes | Op::Flush => unreachable!("{} moves no sectors", spec.name),
        }
        self.leaves_room(command);
        Ok(())
    }

    /// The turn of a command that the set's rules took has come.
    fn apply(&mut self, command: u32, effect: &Effect) -> Result<(), Stall> {
        match effect {
            Effect::Write if self.follows_a_gap(command) => Ok(()),
            Effect::Write => self.write(command),
            Effect::Zeroes(sectors) => self.fill_with_zeroes(command, sectors),
            Effect::Trim => self.trim(command),
            Effect::Nothing => Ok(()),
        }
    }

    /// Answers with the segments from the number in the first word on, as many as the second says.
    fn report_segments(&self, set_state: &mut SetCommandState) -> Status {
        let (first, count) = (set_state.words[0], set_state.words[1]);
        let Some(rules) = self.rules() else { return Status::Unsupported };
        let end = first.checked_add(count).filter(|end| *end <= rules.count() && count <= MOST_REPORTED);
        let Some(end) = end else { return Status::OutOfRange };
        set_state.answer.words = rules.report_words();
        set_state.answer.bytes = (first..end).flat_map(|number| rules.report_of(number)).collect();
        Status::Success
    }

    /// Whether the design has done a part of a command of the set: the rest follows, in RAM where flash takes no more.
    pub(super) fn has_begun(&mut self, command: u32) -> bool {
        let commands = set_commands(&mut self.beside, &mut *self.ftl);
        commands.is_some_and(|commands| commands.has_begun(Waiter::Command(command)))
    }

    /// A command of the set ends that was executed and has not written all of its units: the design hears which.
    pub(super) fn never_written(&mut self, request: &Request, set_state: &SetCommandState) {
        if !set_state.carried_out || !set_state.brings_data(request) {
            return;
        }
        let units =
            (request.sector / self.sectors_per_unit) as u32..request.end().div_ceil(self.sectors_per_unit) as u32;
        let buffer = self.stage.buffer.as_ref();
        let is_buffered = |lpn: &Lpn| buffer.is_some_and(|buffer| buffer.find(*lpn).is_some());
        let lpns: Vec<Lpn> = units.map(Lpn).filter(|lpn| !is_buffered(lpn)).collect();
        if let Some(commands) = set_commands(&mut self.beside, &mut *self.ftl) {
            commands.never_written(&self.media, &lpns);
        }
    }

    /// The design executes a command, after what it needs on flash has left the write buffer.
    fn execute(&mut self, asked: SetCommand<'_>) -> Result<Outcome, Stall> {
        if self.stage.buffer.as_ref().is_some_and(|buffer| !buffer.is_empty()) {
            let (buffered, expendable) = self.buffered_of(asked.request);
            self.empty_buffer_for(&SetCommand { buffered: &buffered, expendable: &expendable, ..asked })?;
        }
        let (buffered, expendable) = self.buffered_of(asked.request);
        // A program for it may have failed, and taken the last spare block.
        let read_only = self.failures.read_only;
        loop {
            let asked = SetCommand { buffered: &buffered, expendable: &expendable, read_only, ..asked };
            let commands = set_commands(&mut self.beside, &mut *self.ftl).expect("a design with a set has commands");
            match commands.execute(&mut self.media, asked) {
                Ok(outcome) if outcome.saves_trims => return self.save_trims_for(outcome),
                Ok(outcome) => return Ok(outcome),
                // Without time a map block is erased as soon as a command waits for it.
                Err(CannotYet::Map) if !self.media.flash.timed() && !self.media.wakes.erasable.is_empty() => {
                    self.erase_emptied_superblocks();
                }
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Units of a command's range with data of the host in the write buffer, and those of them that are expendable.
    fn buffered_of(&self, request: &Request) -> (Vec<Lpn>, Vec<Lpn>) {
        let spec = self.host.set.and_then(|set| set.command(request.opcode));
        let is_logical = spec.is_some_and(|spec| spec.address == AddressSpace::Logical) && request.sectors > 0;
        let Some(buffer) = self.stage.buffer.as_ref().filter(|_| is_logical) else { return Default::default() };
        let end = request.end().div_ceil(self.sectors_per_unit);
        let units = Lpn::each(Lpn((request.sector / self.sectors_per_unit) as u32)..Lpn(end as u32));
        let of_host =
            units.filter_map(|lpn| buffer.find(lpn)).map(|slot| buffer.entry(slot)).filter(|entry| entry.dirty() != 0);
        let expendable = of_host.clone().filter(|entry| entry.expendable).map(|entry| entry.lpn).collect();
        (of_host.map(|entry| entry.lpn).collect(), expendable)
    }

    /// Starts the records of all trims for a command that asks for them, and answers how many programs these are.
    #[cold]
    fn save_trims_for(&mut self, outcome: Outcome) -> Result<Outcome, Stall> {
        assert_eq!(outcome.status, Status::Success, "a command that did not succeed asks for records of trims");
        assert!(outcome.words.is_empty(), "the answer is the number of programs, not {:?}", outcome.words);
        let started = self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None);
        let programs = started.map_err(|NoSpace| CannotYet::Space)?;
        self.save_map();
        Ok(Outcome { words: vec![u64::from(programs)], ..outcome })
    }

    #[cold]
    fn empty_buffer_for(&mut self, asked: &SetCommand<'_>) -> Result<(), Stall> {
        let Some(commands) = set_commands(&mut self.beside, &mut *self.ftl) else { return Ok(()) };
        for lpn in commands.leaves_buffer(&self.media, asked) {
            let Some(buffer) = &self.stage.buffer else { return Ok(()) };
            let Some(slot) = buffer.find(lpn) else { continue };
            // A drive that takes no more writes keeps what it has in the buffer, which is newer than what is on flash.
            if self.failures.read_only && buffer.entry(slot).dirty() != 0 {
                continue;
            }
            self.evict(&[slot], None)?;
        }
        Ok(())
    }

    /// Counts a command of the set that ends, and gives its answer to the host; true if there is one.
    #[cold]
    pub(super) fn answer(&mut self, command: u32) -> bool {
        let state = &mut self.commands[command];
        let (Opcode(opcode), tag, status) = (state.request.opcode, state.request.tag, state.status);
        if let Some(count) = self.host.command_counts.get_mut(usize::from(opcode) - 1) {
            count.completed += 1;
            count.refused += u64::from(matches!(status, Status::Refused(_)));
            count.failed += u64::from(status != Status::Success);
        }
        let answer = state.set_state.take().and_then(|set_state| set_state.answer(tag));
        let told = answer.is_some();
        self.host.answers.extend(answer);
        told
    }
}
