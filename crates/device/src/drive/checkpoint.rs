//! A drive in the middle of its preconditioning as bytes, to go on from there later.
//!
//! ```text
//! magic | parts of the controller's state: count, then each with name, length, bytes | what `Drive::save` writes | magic
//! ```
//!
//! [`Drive::save`] is for a drive that came to its end: its buffer is flushed and its policies begin their random numbers
//! anew, whether it is restored or not. A checkpoint changes nothing, so the drive that is resumed from it does what the
//! original does, bit for bit: beside what is saved it holds what the controller has only in RAM, each as a part of its own
//! ([`Drive::parts`] and [`Drive::take_parts`], one line in each). Counters are not part of it; they begin at zero.

mod sections;

use std::io::{self, Read, Write};

use ssdlab_base::{RNG_BYTES, rng_at, rng_state};
use ssdlab_flash::{Faults, Lpn};

use super::state::read_u64;
use super::{Drive, Options};
use crate::DriveConfig;
use crate::buffer::{HeldUnit, HeldUnits};
use sections::Parts;

/// First and last bytes; the number changes with the layout, not with the parts.
const MAGIC: &[u8; 16] = b"ssdlab point 2\n\0";

impl Drive {
    /// Bytes of a checkpoint, without those of records of trims.
    pub fn checkpoint_bytes(&self) -> u64 {
        let buffered = self.stage.buffer.as_ref().map_or(0, |buffer| u64::from(buffer.units()) * 28);
        let map = self.ftl.memory().into_iter().find(|(name, _)| *name == "mapping_bytes");
        self.media.flash.oob.bytes() + map.map_or(0, |(_, bytes)| bytes) + buffered
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
        if self.media.flash.store.cell_bytes() > 0 {
            return Err(unsupported("the drive keeps contents"));
        }
        if self.media.flash.may_fail() {
            return Err(unsupported(&format!(
                "the drive's description has faults{}",
                faults_set(&self.config.flash.faults)
            )));
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
        let parts = self.parts()?;
        to.write_all(MAGIC)?;
        parts.write(to)?;
        self.save_flash(to)?;
        to.write_all(MAGIC)
    }

    /// The drive of a checkpoint, without time and with counters at zero. `config` and `options` are those of the original.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for bytes that are no checkpoint of this drive.
    pub fn resume(config: &DriveConfig, options: Options, from: &mut dyn Read) -> io::Result<Drive> {
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(bad("this is not a checkpoint of this version"));
        }
        let mut parts = Parts::read(from)?;
        let mut drive = Drive::restore(config, options, from)?;
        drive.set_timed(false);
        drive.take_parts(&mut parts)?;
        parts.end()?;
        from.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(bad("the checkpoint is damaged"));
        }
        Ok(drive)
    }

    /// What the controller has only in RAM.
    fn parts(&self) -> io::Result<Parts> {
        let mut parts = Parts::default();
        parts.add("random numbers", rng_state(&self.media.rng).to_vec());
        parts.add("write commands", self.commands.writes_dispatched.to_le_bytes().to_vec());
        parts.add("open host row", vec![u8::from(self.media.host_row_open)]);
        parts.add("full victims in a row", bytemuck::cast_slice(self.gc.full_in_a_row()).to_vec());
        if let Some(destager) = &self.stage.destager {
            parts.add("destaging", vec![u8::from(destager.is_on())]);
        }
        if let Some(buffer) = &self.stage.buffer {
            let Some(held) = buffer.held() else {
                return Err(unsupported("the write buffer's policy knows more of its units than their order"));
            };
            parts.add("write buffer", bytes_of(&held));
        }
        Ok(parts)
    }

    /// The way back, on a drive that has what is on flash and in the tables.
    fn take_parts(&mut self, parts: &mut Parts) -> io::Result<()> {
        self.media.rng = rng_at(parts.exactly::<RNG_BYTES>("random numbers")?);
        self.commands.writes_dispatched = u64::from_le_bytes(parts.exactly("write commands")?);
        self.media.host_row_open = parts.flag("open host row")?;
        let full_in_a_row = self.gc.full_in_a_row_mut();
        let bytes = parts.take("full victims in a row")?;
        if bytes.len() != size_of_val(full_in_a_row) {
            return Err(bad("it has other groups of blocks than the drive"));
        }
        bytemuck::cast_slice_mut(full_in_a_row).copy_from_slice(&bytes);
        if let Some(destager) = &mut self.stage.destager {
            destager.set_on(parts.flag("destaging")?);
        }
        if let Some(buffer) = &mut self.stage.buffer {
            let held = held_units(&parts.take("write buffer")?)?;
            let (user_units, commands) = (self.config.user_units(), self.commands.writes_dispatched);
            if held.units.iter().any(|unit| unit.lpn.0 >= user_units || unit.since > commands) {
                return Err(bad("a unit in the write buffer is behind the drive"));
            }
            if !buffer.refill(&held) {
                return Err(bad("the units in the write buffer do not agree with each other"));
            }
        }
        Ok(())
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
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

/// Bytes of a unit in the write buffer, beside its place in the order.
const UNIT_BYTES: usize = 24;

/// Bytes of its place.
const PLACE_BYTES: usize = 4;

/// Units and their order, little endian.
fn bytes_of(held: &HeldUnits) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(held.units.len() * (UNIT_BYTES + PLACE_BYTES));
    for HeldUnit { lpn, stream, mask, since } in &held.units {
        bytes.extend(lpn.0.to_le_bytes());
        bytes.extend(u32::from(*stream).to_le_bytes());
        bytes.extend(mask.to_le_bytes());
        bytes.extend(since.to_le_bytes());
    }
    bytes.extend(held.order.iter().flat_map(|place| place.to_le_bytes()));
    bytes
}

fn held_units(mut bytes: &[u8]) -> io::Result<HeldUnits> {
    let count = bytes.len() / (UNIT_BYTES + PLACE_BYTES);
    if count * (UNIT_BYTES + PLACE_BYTES) != bytes.len() {
        return Err(bad("the write buffer ends within a unit"));
    }
    let mut held = HeldUnits::default();
    for _ in 0..count {
        let first = read_u64(&mut bytes)?;
        let stream = u16::try_from(first >> 32).map_err(|_| bad("a unit has an unknown stream"))?;
        let (mask, since) = (read_u64(&mut bytes)?, read_u64(&mut bytes)?);
        held.units.push(HeldUnit { lpn: Lpn(first as u32), stream, mask, since });
    }
    for _ in 0..count {
        let mut place = [0; PLACE_BYTES];
        bytes.read_exact(&mut place)?;
        held.order.push(u32::from_le_bytes(place));
    }
    Ok(held)
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
