//! A drive in the middle of its preconditioning as bytes, to go on from there later.
//!
//! ```text
//! magic | what the controller has only in RAM | what `Drive::save` writes | magic
//! ```
//!
//! [`Drive::save`] is for a drive that came to its end: its buffer is flushed and its policies begin their random numbers
//! anew, whether it is restored or not. A checkpoint changes nothing, so the drive that is resumed from it does what the
//! original does, bit for bit: beside what is saved it holds what the controller has only in RAM ([`InRam`]). Counters are not part
//! of it; they begin at zero.

use std::io::{self, Read, Write};

use ssdlab_base::{Rng, Saved, damaged, load_magic, rng, saved};
use ssdlab_flash::Faults;

use super::{Drive, Options};
use crate::DriveConfig;
use crate::buffer::HeldUnits;

/// First and last bytes; the number changes with the layout.
const MAGIC: &[u8; 16] = b"ssdlab point 4\n\0";

/// What the controller has only in RAM.
#[derive(Debug)]
struct InRam {
    rng: Rng,
    writes_dispatched: u64,
    /// Whether destaging has begun, where the drive destages.
    destaging: Option<bool>,
    /// The units of the write buffer, where the drive has one.
    buffered: Option<HeldUnits>,
}
saved!(InRam: rng, writes_dispatched, destaging, buffered);

impl Drive {
    /// Bytes of a checkpoint, without those of records of trims.
    pub fn checkpoint_bytes(&self) -> u64 {
        let buffered = self.stage.buffer.as_ref().map_or(0, |buffer| u64::from(buffer.units()) * 28);
        let map = self.ftl.memory().into_iter().find(|(name, _)| *name == "mapping_bytes");
        let ages = self.placement.as_ref().map_or(0, |placement| placement.bytes());
        self.media.flash.oob.bytes() + map.map_or(0, |(_, bytes)| bytes) + buffered + ages
    }

    /// Writes the whole state of a drive without time between two commands.
    ///
    /// # Errors
    /// Those of the writer, and [`io::ErrorKind::Unsupported`] where something has a state that no checkpoint holds: a drive
    /// that keeps contents, that may fail, or whose buffer's policy knows more of its units than an order. With
    /// [`io::ErrorKind::WouldBlock`] there is work in hand that later commands bring to an end.
    pub fn checkpoint(&self, to: &mut dyn Write) -> io::Result<()> {
        assert_eq!(self.commands.outstanding, 0, "a checkpoint lies between two commands");
        if self.media.flash.timed() || self.next_event().is_some() {
            return Err(not_now("the drive is at work"));
        }
        if self.media.flash.store.sector_data_bytes() > 0 {
            return Err(unsupported("the drive keeps contents"));
        }
        if self.media.flash.may_fail() {
            return Err(unsupported(&format!(
                "the drive's description has faults{}",
                faults_set(&self.config.flash.faults)
            )));
        }
        if self.media.lists_owners() {
            return Err(unsupported(
                "the drive's owners are listed (ftl.owners = \"summary\"), which open blocks still wait for",
            ));
        }
        let settled = self.waiting.stalled.is_empty()
            && self.failures.pending_rewrites.is_empty()
            && self.failures.retirements.is_empty()
            && self.media.wakes.erasable.is_empty()
            && self.media.wakes.groups.is_empty()
            && self.gc.is_idle();
        if !settled {
            return Err(not_now("garbage collection has a block in hand"));
        }
        let in_ram = self.in_ram()?;
        to.write_all(MAGIC)?;
        in_ram.save_to(to)?;
        self.save_flash(to)?;
        to.write_all(MAGIC)
    }

    /// The drive of a checkpoint, without time and with counters at zero. `config` and `options` are those of the original.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for bytes that are no checkpoint of this drive.
    pub fn resume(config: &DriveConfig, options: Options, from: &mut dyn Read) -> io::Result<Drive> {
        load_magic(MAGIC, from, "this is not a checkpoint of this version")?;
        let mut in_ram =
            InRam { rng: rng(options.seed, "checkpoint"), writes_dispatched: 0, destaging: None, buffered: None };
        in_ram.load_from(from)?;
        let mut drive = Drive::restore(config, options, from)?;
        load_magic(MAGIC, from, "the checkpoint is damaged")?;
        drive.set_timed(false);
        drive.take(in_ram)?;
        Ok(drive)
    }

    fn in_ram(&self) -> io::Result<InRam> {
        let buffered =
            match &self.stage.buffer {
                None => None,
                Some(buffer) => Some(buffer.held().ok_or_else(|| {
                    unsupported("the write buffer's policy knows more of its units than their order")
                })?),
            };
        Ok(InRam {
            rng: self.media.rng.clone(),
            writes_dispatched: self.commands.writes_dispatched,
            destaging: self.stage.destager.as_ref().map(|destager| destager.is_on()),
            buffered,
        })
    }

    /// Puts it back, on a drive that has what is on flash and in the tables.
    fn take(&mut self, in_ram: InRam) -> io::Result<()> {
        let InRam { rng, writes_dispatched, destaging, buffered } = in_ram;
        if destaging.is_some() != self.stage.destager.is_some() || buffered.is_some() != self.stage.buffer.is_some() {
            return Err(damaged("it has a write buffer or destaging that the drive has not, or lacks one"));
        }
        let logical_units = self.logical_units();
        self.media.rng = rng;
        self.commands.writes_dispatched = writes_dispatched;
        if let (Some(destager), Some(on)) = (&mut self.stage.destager, destaging) {
            destager.set_on(on);
        }
        if let (Some(buffer), Some(held)) = (&mut self.stage.buffer, buffered) {
            if held.units.iter().any(|unit| unit.lpn.0 >= logical_units || unit.since > writes_dispatched) {
                return Err(damaged("a unit in the write buffer is behind the drive"));
            }
            if !buffer.refill(&held) {
                return Err(damaged("the units in the write buffer do not agree with each other"));
            }
        }
        Ok(())
    }
}

/// The keys by which a drive may fail, for a sentence: an endurance is not thought of as one.
fn faults_set(faults: &Faults) -> String {
    let keys = [
        ("endurance", faults.endurance.is_some()),
        ("program_failure", faults.program_failure > 0.0),
        ("erase_failure", faults.erase_failure > 0.0),
        ("uncorrectable_read", faults.uncorrectable_read > 0.0),
        ("script", !faults.script.is_empty()),
    ];
    let set: Vec<String> =
        keys.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| format!("flash.faults.{key}")).collect();
    if set.is_empty() { String::new() } else { format!(" ({})", set.join(", ")) }
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_string())
}

fn not_now(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who stated an endurance was told that the description has faults, and found none in it.
    #[test]
    fn a_drive_that_no_checkpoint_holds_is_told_with_the_keys_of_its_faults() {
        assert_eq!(faults_set(&Faults { endurance: Some(3000), ..Faults::default() }), " (flash.faults.endurance)");
        let both = Faults { erase_failure: 0.1, program_failure: 0.1, ..Faults::default() };
        assert_eq!(faults_set(&both), " (flash.faults.program_failure, flash.faults.erase_failure)");
        assert_eq!(faults_set(&Faults::default()), "");
    }
}
