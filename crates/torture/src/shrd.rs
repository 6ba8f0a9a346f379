//! The drive of SHRD without a driver: what a host that knows the command set sends, and what each unit must hold after it and
//! after power cuts. It knows the number of units, of those in the log, and nothing else of the drive.
//!
//! Of all copies of a unit the one that the host wrote last counts. What completed in the log is durable; other writes and
//! trims are after a flush, or with FUA.

use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::command_sets::shrd::{
    BLOCK_WORDS, Pairs, READ_LOG, REMAP, RESTORE, SHRD, TRIM_LOG, TWRITE_DATA, TWRITE_HEADER, TwriteHeader,
    VENDOR_REMAP, VENDOR_TRIM_LOG, VENDOR_TWRITE_HEADER,
};
use ssdlab_base::{Op, Opcode, Request, Rng, rng};
use ssdlab_device::{Data, Drive, DriveConfig, Options, Payload, Status, design_with, draw_design, stamp_cell};
use ssdlab_flash::{Cause, Contents, OpCounts, OpKind};

use crate::configs::{self, names};
use crate::hosts::{Stop, recover_after};
use crate::panic_capture::catch;
use crate::{Finding, Totals};

/// A host that sends one command after the other, and knows what each unit must hold.
pub struct LogHost {
    config: DriveConfig,
    drive: Option<Drive>,
    /// Sectors of a unit.
    pub per_unit: u64,
    /// Units of the user.
    pub user_units: u32,
    /// Units of the log.
    pub log_units: u32,
    /// Headers, remaps and trims go as vendor commands.
    pub vendor: bool,
    /// Programs fail, or one block is kept in reserve: the drive may end read-only.
    pub may_end_read_only: bool,
    /// By unit: stamps of all that was written, the oldest first; 0 is a trim. Those before `durable` cannot come back.
    written: BTreeMap<u32, (Vec<u32>, usize)>,
    /// By unit: the tLPN that has it.
    pub table: BTreeMap<u32, u32>,
    /// By tLPN: the unit that was written there, current or not.
    pub log: BTreeMap<u32, u32>,
    next_stamp: u32,
    next_tlpn: u32,
    /// A unit in the log was replaced at its own address, and no flush came since: the copy in the log is needed.
    needs_flush: bool,
    /// Events until the power goes.
    pub events_left: Option<u32>,
}

impl LogHost {
    /// A host of a new drive.
    ///
    /// # Panics
    /// The drive is refused.
    pub fn new(config: &DriveConfig, seed: u64) -> LogHost {
        let drive = Drive::new(config, Options { seed, contents: Contents::Stamps }).expect("an accepted drive");
        let per_unit = u64::from(config.ftl.mapping_unit) / 512;
        LogHost {
            config: config.clone(),
            per_unit,
            user_units: (drive.user_sectors() / per_unit) as u32,
            log_units: (drive.reserved_sectors() / per_unit) as u32,
            drive: Some(drive),
            vendor: false,
            may_end_read_only: false,
            written: BTreeMap::new(),
            table: BTreeMap::new(),
            log: BTreeMap::new(),
            next_stamp: 0,
            next_tlpn: 0,
            needs_flush: false,
            events_left: None,
        }
    }

    /// The drive.
    ///
    /// # Panics
    /// It has no power.
    pub fn drive(&mut self) -> &mut Drive {
        self.drive.as_mut().expect("a drive with power")
    }

    /// Runs one command; what it read, if the power stays.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn run(&mut self, request: Request, words: &[u64], stamp: u32) -> Result<(Status, Vec<u64>), Stop> {
        let mut left = self.events_left.take();
        let drive = self.drive();
        let request = Request { at: drive.now(), tag: 1, ..request };
        drive.submit_command(&request, Payload { data: Data::Stamp(stamp.into()), words });
        while drive.completions().is_empty() {
            if left == Some(0) {
                return Err(Stop::Cut);
            }
            left = left.map(|left| left - 1);
            match drive.next_event() {
                Some(at) => drive.run_until(at),
                None => {
                    let now = drive.now();
                    drive.run_until(now);
                    let goes_on = drive.next_event().is_some() || !drive.completions().is_empty();
                    assert!(goes_on, "{request:?} never completes");
                }
            }
        }
        let done = drive.completions().pop().expect("one command");
        let cells = drive.read_data().pop().map(|(_, cells)| cells).unwrap_or_default();
        let cells = cells.chunks_exact(8).map(|cell| u64::from_le_bytes(cell.try_into().expect("8 bytes"))).collect();
        self.events_left = left;
        if done.status == Status::ReadOnly && self.may_end_read_only {
            return Err(Stop::ReadOnly);
        }
        Ok((done.status, cells))
    }

    /// Runs a command of the set on `units` units of the log from `first` on, and gives back its status.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn of_set(
        &mut self,
        opcode: Opcode,
        first: u32,
        units: u32,
        words: &[u64],
        stamp: u32,
    ) -> Result<Status, Stop> {
        let opcode = match opcode {
            TWRITE_HEADER if self.vendor => VENDOR_TWRITE_HEADER,
            REMAP if self.vendor => VENDOR_REMAP,
            TRIM_LOG if self.vendor => VENDOR_TRIM_LOG,
            other => other,
        };
        let spec = SHRD.command(opcode).expect("of the set");
        let at = if spec.address.is_addressed() { u64::from(self.user_units + first) * self.per_unit } else { 0 };
        let request = Request::of_set(spec, at, u64::from(units) * self.per_unit);
        Ok(self.run(request, words, stamp)?.0)
    }

    fn stamp(&mut self) -> u32 {
        self.next_stamp += 1;
        self.next_stamp
    }

    fn note(&mut self, unit: u32, stamp: u32) {
        self.written.entry(unit).or_insert_with(|| (vec![0], 0)).0.push(stamp);
    }

    fn is_durable(&mut self, unit: u32) {
        let (stamps, durable) = self.written.get_mut(&unit).expect("it was written");
        *durable = stamps.len() - 1;
    }

    fn all_durable(&mut self) {
        self.written.values_mut().for_each(|(stamps, durable)| *durable = stamps.len() - 1);
    }

    /// Units go to the log.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn twrite(&mut self, units: &[u32]) -> Result<(), Stop> {
        let count = units.len() as u32;
        if self.next_tlpn + count > self.log_units {
            self.next_tlpn = 0;
        }
        let first = self.next_tlpn;
        // What is there gets its own name back first.
        let held: Vec<u32> = (first..first + count).filter(|tlpn| self.is_live(*tlpn)).collect();
        if !held.is_empty() {
            let all: Vec<u32> = (0..self.log_units).filter(|tlpn| self.is_live(*tlpn)).collect();
            self.remap(&all)?;
        }
        self.flush_replaced()?;
        let header = TwriteHeader { first, units: units.to_vec() };
        assert_eq!(self.of_set(TWRITE_HEADER, 0, 0, &header.encode(), 0)?, Status::Success, "{header:?}");
        let stamp = self.stamp();
        for (tlpn, unit) in (first..).zip(units) {
            self.note(*unit, stamp);
            self.log.insert(tlpn, *unit);
        }
        self.next_tlpn = first + count;
        let status = self.of_set(TWRITE_DATA, first, count, &[], stamp)?;
        assert_eq!(status, Status::Success, "data of {header:?}");
        for (tlpn, unit) in (first..).zip(units) {
            self.table.insert(*unit, tlpn);
            self.is_durable(*unit);
        }
        Ok(())
    }

    fn is_live(&self, tlpn: u32) -> bool {
        self.log.get(&tlpn).is_some_and(|unit| self.table.get(unit) == Some(&tlpn))
    }

    /// Live tLPNs get their own names back.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn remap(&mut self, tlpns: &[u32]) -> Result<(), Stop> {
        let mut pairs: Vec<(u32, u32)> = tlpns.iter().map(|tlpn| (*tlpn, self.log[tlpn])).collect();
        pairs.sort_by_key(|(_, unit)| *unit);
        for pairs in pairs.chunks(128) {
            let status = self.of_set(REMAP, 0, 0, &Pairs(pairs.to_vec()).encode(), 0)?;
            assert_eq!(status, Status::Success, "{pairs:?}");
            for (tlpn, unit) in pairs {
                self.table.remove(unit);
                self.log.remove(tlpn);
            }
        }
        Ok(())
    }

    /// tLPNs that are not live are trimmed.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn trim_dead(&mut self) -> Result<(), Stop> {
        let dead: Vec<(u32, u32)> =
            self.log.keys().copied().filter(|tlpn| !self.is_live(*tlpn)).map(|tlpn| (tlpn, 1)).collect();
        self.flush_replaced()?;
        for runs in dead.chunks(500) {
            assert_eq!(self.of_set(TRIM_LOG, 0, 0, &Pairs(runs.to_vec()).encode(), 0)?, Status::Success, "{runs:?}");
            for (tlpn, _) in runs {
                self.log.remove(tlpn);
            }
        }
        Ok(())
    }

    /// Writes or trims units of the user.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn block(&mut self, op: Op, first: u32, units: u32, fua: bool) -> Result<(), Stop> {
        let stamp = if op == Op::Write { self.stamp() } else { 0 };
        for unit in first..first + units {
            self.note(unit, stamp);
        }
        let (sector, sectors) = (u64::from(first) * self.per_unit, u64::from(units) * self.per_unit);
        let (status, _) = self.run(Request { fua, ..Request::new(op, sector, sectors) }, &[], stamp)?;
        assert_eq!(status, Status::Success);
        for unit in first..first + units {
            self.needs_flush |= self.table.remove(&unit).is_some() && !fua;
            if fua {
                self.is_durable(unit);
            }
        }
        Ok(())
    }

    fn flush_replaced(&mut self) -> Result<(), Stop> {
        if self.needs_flush { self.flush() } else { Ok(()) }
    }

    /// Flushes.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn flush(&mut self) -> Result<(), Stop> {
        let (status, _) = self.run(Request::new(Op::Flush, 0, 0), &[], 0)?;
        assert_eq!(status, Status::Success);
        self.needs_flush = false;
        self.all_durable();
        Ok(())
    }

    /// The stamp of a unit, where the host knows it to be.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn read(&mut self, unit: u32) -> Result<u32, Stop> {
        let per_unit = self.per_unit;
        let (at, request) = match self.table.get(&unit) {
            Some(tlpn) => {
                let at = u64::from(self.user_units + tlpn);
                (at, Request::of_set(SHRD.command(READ_LOG).expect("of the set"), at * per_unit, per_unit))
            }
            None => (u64::from(unit), Request::new(Op::Read, u64::from(unit) * per_unit, per_unit)),
        };
        let (status, cells) = self.run(request, &[], 0)?;
        assert_eq!(status, Status::Success, "unit {unit}");
        let candidates = self.written.get(&unit).map_or(&[0][..], |(stamps, _)| stamps);
        // In the log a sector has the stamp of where it was written; with the name of its unit it keeps that.
        let places: Vec<u64> = std::iter::once(at)
            .chain((0..self.log_units).map(|tlpn| u64::from(self.user_units + tlpn)))
            .chain([u64::from(unit)])
            .collect();
        let fits = |stamp: u32| {
            let is = |place: u64| {
                (0..per_unit)
                    .all(|sector| cells[sector as usize] == stamp_cell(stamp.into(), place * per_unit + sector))
            };
            if stamp == 0 { cells.iter().all(|cell| *cell == 0) } else { places.iter().any(|place| is(*place)) }
        };
        let stamp = candidates.iter().rev().find(|stamp| fits(**stamp));
        Ok(*stamp.unwrap_or_else(|| panic!("unit {unit} holds {cells:x?}, of {candidates:?} none")))
    }

    /// Every unit holds what was written last.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn compare(&mut self) -> Result<(), Stop> {
        for unit in 0..self.user_units {
            let expected = self.written.get(&unit).map_or(0, |(stamps, _)| stamps[stamps.len() - 1]);
            let found = self.read(unit)?;
            assert_eq!(found, expected, "unit {unit}, in the log at {:?}", self.table.get(&unit));
        }
        self.check();
        Ok(())
    }

    /// Asks the drive for its own checks.
    pub fn check(&mut self) {
        for check in self.drive().check() {
            assert!(check.held, "{}: {}", check.name, check.detail);
        }
    }

    /// The power goes and comes back, several times in a row if `again`; the table is lost.
    pub fn cut(&mut self, again: &[u64], seed: u64) {
        let flash = self.drive.take().expect("a drive").power_cut();
        let options = Options { seed, contents: Contents::Stamps };
        self.drive = Some(recover_after(&self.config, options, flash, again));
        self.table.clear();
        self.log.clear();
        self.needs_flush = false;
        self.events_left = None;
        for unit in 0..self.user_units {
            let Ok(found) = self.read(unit) else { unreachable!("no cut is due") };
            let Some((stamps, durable)) = self.written.get_mut(&unit) else { continue };
            let place = stamps.iter().rposition(|stamp| *stamp == found).expect("it was written");
            assert!(
                stamps[*durable..].contains(&found),
                "unit {unit} holds {found} after a power cut, number {place} of {stamps:?}, of which {durable} is durable"
            );
            // What is there is what counts from now on; whether it survives the next cut is open until a flush.
            stamps.truncate(stamps.iter().rposition(|stamp| *stamp == found).expect("it was there") + 1);
        }
        self.check();
    }

    /// A step at random.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn step(&mut self, rng: &mut Rng) -> Result<(), Stop> {
        let unit = |rng: &mut Rng, units: u32| rng.random_range(0..units);
        match rng.random_range(0..100) {
            0..50 => {
                let most = self.log_units.min(self.user_units).min(12);
                let mut units: Vec<u32> = (0..rng.random_range(1..=most)).map(|_| unit(rng, self.user_units)).collect();
                units.sort_unstable();
                units.dedup();
                self.twrite(&units)
            }
            50..58 => {
                let live: Vec<u32> = (0..self.log_units).filter(|tlpn| self.is_live(*tlpn)).collect();
                let some: Vec<u32> = live.into_iter().filter(|_| rng.random_bool(0.7)).collect();
                self.remap(&some)
            }
            58..62 => self.trim_dead(),
            62..78 => {
                let first = unit(rng, self.user_units);
                let units = rng.random_range(1..=(self.user_units - first).min(9));
                self.block(Op::Write, first, units, rng.random_bool(0.1))
            }
            78..84 => {
                let first = unit(rng, self.user_units);
                let units = rng.random_range(1..=(self.user_units - first).min(40));
                self.block(Op::Trim, first, units, rng.random_bool(0.1))
            }
            84..92 => self.flush(),
            92..93 => {
                assert_eq!(self.of_set(RESTORE, 0, 0, &[], 0)?, Status::Success);
                self.table.clear();
                self.log.clear();
                Ok(())
            }
            _ => {
                let unit = unit(rng, self.user_units);
                let expected = self.written.get(&unit).map_or(0, |(stamps, _)| stamps[stamps.len() - 1]);
                assert_eq!(self.read(unit)?, expected, "unit {unit}");
                Ok(())
            }
        }
    }
}

/// A case: a drive, and what a host does to it, from a seed.
#[derive(Clone, Debug)]
pub struct LogCase {
    seed: u64,
    config: DriveConfig,
}

impl LogCase {
    /// The case of a seed; `None` where the drawn drive is too small for the design.
    pub fn draw(seed: u64) -> Option<LogCase> {
        let mut rng = rng(seed, "log case");
        let mut config = configs::draw(&mut rng);
        config.buffer.policy = configs::one_of(&mut rng, &names("buffer.policy")).to_string();
        draw_design(&mut config, design_with(&SHRD)?, &mut rng);
        config.timed = rng.random_bool(0.9);
        config.flash.faults.program_failure = configs::one_of(&mut rng, &[0.0, 0.0, 0.003]);
        let units = configs::most_user_units(&config)?;
        config.user_bytes = units.min(300) * u64::from(config.ftl.mapping_unit);
        Some(LogCase { seed, config })
    }

    /// The drive.
    pub const fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Runs it.
    ///
    /// # Errors
    /// What was found wrong.
    pub fn run(&self, totals: &mut Totals) -> Result<(), Finding> {
        let mut step = 0;
        let found = catch(|| self.run_steps(totals, &mut step));
        totals.cases += 1;
        found.map_err(|caught| Finding { message: caught.message, place: caught.place, step })
    }

    fn run_steps(&self, totals: &mut Totals, done: &mut usize) {
        let mut rng = rng(self.seed, "log host");
        let mut host = LogHost::new(&self.config, self.seed);
        host.vendor = rng.random_bool(0.2);
        host.may_end_read_only = self.config.gc.free_blocks < 3 || self.config.flash.faults.program_failure > 0.0;
        let mut lives = rng.random_range(2..8);
        while lives > 0 {
            lives -= 1;
            let steps = rng.random_range(0..40);
            for number in 0..steps + 10 {
                if number == steps {
                    host.events_left = Some(rng.random_range(0..60));
                }
                *done += 1;
                totals.commands += 1;
                match host.step(&mut rng) {
                    Ok(()) => {}
                    Err(Stop::Cut) => break,
                    Err(Stop::ReadOnly) => {
                        totals.read_only += 1;
                        lives = 0;
                        break;
                    }
                }
            }
            let again: Vec<u64> = (0..rng.random_range(0..3)).map(|_| rng.random_range(0..60)).collect();
            totals.cuts += 1 + again.len() as u64;
            host.cut(&again, self.seed);
        }
        let compared = host.compare();
        assert!(compared.is_ok(), "the host stopped, and nothing was to stop it: {compared:?}");
    }
}

/// Commands that bytes make up, well-formed or not, on a small drive: each ends with a status that the set allows, a refused one
/// programs nothing, and the drive's own checks hold. A fuzz target, and a test, give it bytes.
///
/// # Panics
/// The drive does something else.
pub fn commands_from_bytes(bytes: &[u8]) {
    let mut rest = bytes.iter().copied();
    let mut config = configs::handful();
    config.flash.geometry.blocks_per_plane = 24;
    config.gc.free_blocks = 3;
    config.user_bytes = 16 * 1024;
    let Some(design) = design_with(&SHRD) else { return };
    draw_design(&mut config, design, &mut rng(u64::from(rest.next().unwrap_or(0)), "commands from bytes"));
    let mut host = LogHost::new(&config, 1);
    host.may_end_read_only = true;
    while let Some(opcode) = rest.next() {
        let mut word = |most: u64| {
            let bytes: Vec<u8> = rest.by_ref().take(2).collect();
            let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            // Mostly numbers that mean something, and some of any size.
            if number >> 15 != 0 { number << (number % 48) } else { number % most.max(1) }
        };
        let opcode = Opcode(opcode % (SHRD.commands.len() as u8 + 1));
        let (first, units) = (word(u64::from(host.log_units) + 2), word(6));
        let mut words = vec![0; BLOCK_WORDS];
        let log = u64::from(host.log_units) + 1;
        let user = u64::from(host.user_units) + 1;
        match opcode {
            TWRITE_HEADER | VENDOR_TWRITE_HEADER => {
                words[0] = first & 0xffff_ffff | units << 32;
                for index in 0..3 {
                    words[1 + index] = word(user) & 0xffff_ffff | word(user) << 32;
                }
            }
            _ => {
                words[0] = units;
                for index in 0..5 {
                    let (a, b) = (word(log), word(user));
                    words[1 + index] = if (index as u64) < units { a & 0xffff_ffff | b << 32 } else { 0 };
                }
            }
        }
        if word(16) == 7 {
            words[BLOCK_WORDS - 1] = 1;
        }
        let request = match SHRD.command(opcode) {
            None => Request::new(Op::Write, first % user * host.per_unit, units % 4 * host.per_unit),
            Some(spec) => {
                let at = u64::from(host.user_units).saturating_add(first).saturating_mul(host.per_unit);
                if spec.words_in.most() == 0 {
                    words.clear();
                }
                Request::of_set(spec, at, units.saturating_mul(host.per_unit))
            }
        };
        if opcode.is_block() {
            words.clear();
        }
        let before = host.drive().counters().flash;
        match host.run(request, &words, 1) {
            Ok((Status::Refused(_) | Status::OutOfRange | Status::Invalid, _)) => {
                let after = host.drive().counters().flash;
                let programs = |counts: &OpCounts| counts.get(OpKind::Program, Cause::Host);
                assert_eq!(programs(&before), programs(&after), "{request:?} is refused, and programs data");
            }
            Ok((Status::Success | Status::Absent, _)) => {}
            Ok((status, _)) => panic!("{request:?} ends with {status:?}"),
            Err(Stop::ReadOnly | Stop::Cut) => break,
        }
    }
    host.check();
}
