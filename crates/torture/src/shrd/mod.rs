//! The drive of SHRD without a driver: what a host that knows the command set sends, and what each unit must hold after
//! it and after power cuts. It knows the number of units, of those in the log, and nothing else of the drive.
//!
//! Of all copies of a unit the one that the host wrote last counts. What completed in the log is durable; other writes
//! and trims are after a flush, or with FUA.

mod case;
mod fuzzing;
mod script;

pub use case::{Log, LogScope};
pub use fuzzing::commands_from_bytes;
pub use script::LogCommand;

use std::collections::BTreeMap;

use ssdlab_base::command_sets::shrd::{
    Pairs, READ_LOG, REMAP, RESTORE, SHRD, TRIM_LOG, TWRITE_DATA, TWRITE_HEADER, TwriteHeader, VENDOR_REMAP,
    VENDOR_TRIM_LOG, VENDOR_TWRITE_HEADER,
};
use ssdlab_base::{Op, Opcode, Request};
use ssdlab_device::{Drive, DriveConfig, DriveError, Status, sector_stamp};

use crate::cut::Stop;
use crate::serial_host::SerialDrive;
use crate::totals::Totals;

/// A host that sends one command after the other, and knows what each unit must hold.
pub struct LogHost {
    serial: SerialDrive,
    /// Sectors of a unit.
    pub per_unit: u64,
    /// Units of the user.
    pub user_units: u32,
    /// Units of the log.
    pub log_units: u32,
    /// Headers, remaps and trims go as vendor commands.
    pub vendor: bool,
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
}

impl LogHost {
    /// A host of a new drive.
    ///
    /// # Panics
    /// The drive is refused.
    pub fn new(config: &DriveConfig, seed: u64) -> LogHost {
        LogHost::build(config, seed).expect("an accepted drive")
    }

    /// A host of a new drive.
    ///
    /// # Errors
    /// The drive is refused.
    fn build(config: &DriveConfig, seed: u64) -> Result<LogHost, DriveError> {
        let mut serial = SerialDrive::new(config, seed)?;
        let per_unit = u64::from(config.ftl.mapping_unit) / 512;
        Ok(LogHost {
            per_unit,
            user_units: (serial.power.get().user_sectors() / per_unit) as u32,
            log_units: (serial.power.get().reserved_sectors() / per_unit) as u32,
            serial,
            vendor: false,
            written: BTreeMap::new(),
            table: BTreeMap::new(),
            log: BTreeMap::new(),
            next_stamp: 0,
            next_tlpn: 0,
            needs_flush: false,
        })
    }

    /// The drive.
    ///
    /// # Panics
    /// It has no power.
    pub fn drive(&mut self) -> &mut Drive {
        self.serial.power.get()
    }

    /// Runs one command; what it read, if the power stays.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn run(&mut self, request: Request, words: &[u64], stamp: u32) -> Result<(Status, Vec<u64>), Stop> {
        let back = self.serial.run(request, words, stamp)?;
        Ok((back.status, back.stamps))
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
        assert!((1..=self.log_units).contains(&count), "{count} units go to a log of {}", self.log_units);
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
        self.serial.completed_durable += 1;
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
        assert!(tlpns.iter().all(|tlpn| self.is_live(*tlpn)), "only live ones of {tlpns:?} have names to get back");
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
        assert!(matches!(op, Op::Write | Op::Trim), "{op:?} changes nothing");
        assert!(first + units <= self.user_units, "{units} units from {first} on of {}", self.user_units);
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
        self.serial.completed_durable += u64::from(fua);
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
        self.serial.completed_durable += 1;
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
                    .all(|sector| cells[sector as usize] == sector_stamp(stamp.into(), place * per_unit + sector))
            };
            if stamp == 0 { cells.iter().all(|cell| *cell == 0) } else { places.iter().any(|place| is(*place)) }
        };
        let stamp = candidates.iter().rev().find(|stamp| fits(**stamp));
        Ok(*stamp.unwrap_or_else(|| panic!("unit {unit} holds {cells:x?}, of {candidates:?} none")))
    }

    /// The drive forgets its log, and so does the host.
    fn restore(&mut self) -> Result<(), Stop> {
        assert_eq!(self.of_set(RESTORE, 0, 0, &[], 0)?, Status::Success);
        self.table.clear();
        self.log.clear();
        Ok(())
    }

    /// A unit holds what was written last.
    fn compare_unit(&mut self, unit: u32) -> Result<(), Stop> {
        let expected = self.written.get(&unit).map_or(0, |(stamps, _)| stamps[stamps.len() - 1]);
        let found = self.read(unit)?;
        assert_eq!(found, expected, "unit {unit}, in the log at {:?}", self.table.get(&unit));
        Ok(())
    }

    /// Every unit holds what was written last.
    ///
    /// # Errors
    /// The host has to stop.
    pub fn compare(&mut self) -> Result<(), Stop> {
        (0..self.user_units).try_for_each(|unit| self.compare_unit(unit))?;
        self.serial.power.check();
        Ok(())
    }

    /// The power goes, by the cut that waits or at once, and comes back; the table is lost.
    fn cut_and_compare(&mut self, totals: &mut Totals) {
        self.serial.cut(totals);
        self.table.clear();
        self.log.clear();
        self.needs_flush = false;
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
        self.serial.power.check();
    }
}
