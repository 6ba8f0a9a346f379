//! A drive in the middle of its preconditioning as bytes, to go on from there later.
//!
//! [`Drive::save`] is for a drive that came to its end: its buffer is flushed and its policies begin their random numbers
//! anew, whether it is restored or not. A checkpoint changes nothing, so the drive that is resumed from it does what the
//! original does, bit for bit: beside what is saved it holds the units in the write buffer, in the policy's order, where
//! the policies are in their random numbers, whether the buffer is being destaged, and how many full victims each group
//! had in a row. Counters are not part of it; they begin at zero.

use std::io::{self, Read, Write};

use ssdlab_base::{RNG_BYTES, rng_at, rng_state};

use super::state::read_u64;
use super::{Drive, Options};
use crate::DriveConfig;
use crate::buffer::{HeldUnit, HeldUnits};

/// First and last bytes; the number changes with the layout.
const MAGIC: &[u8; 16] = b"ssdlab point 1\n\0";

/// Most units that a buffer is believed to hold.
const UNITS_MAX: u64 = 1 << 28;

impl Drive {
    /// Bytes of a checkpoint, without those of records of trims.
    pub fn checkpoint_bytes(&self) -> u64 {
        let buffered = self.buffer.as_ref().map_or(0, |buffer| u64::from(buffer.units()) * 28);
        let map = self.ftl.memory().into_iter().find(|(name, _)| *name == "mapping_bytes");
        self.media.flash.oob.bytes() + map.map_or(0, |(_, bytes)| bytes) + buffered
    }

    /// Writes the whole state of a drive without time between two commands.
    ///
    /// # Errors
    /// Those of the writer, and [`io::ErrorKind::Unsupported`] where something has a state that no checkpoint holds: a drive
    /// that keeps contents, that may fail, or whose buffer's policy knows more of its units than an order.
    pub fn checkpoint(&self, to: &mut dyn Write) -> io::Result<()> {
        let unsupported = |what: &str| Err(io::Error::new(io::ErrorKind::Unsupported, what.to_string()));
        assert_eq!(self.outstanding, 0, "a checkpoint lies between two commands");
        if self.media.flash.timed() || self.next_event().is_some() {
            return unsupported("the drive is at work");
        }
        if self.media.flash.store.cell_bytes() > 0 {
            return unsupported("the drive keeps contents");
        }
        if self.media.flash.may_fail() {
            return unsupported("the drive's description has faults");
        }
        let settled = self.stalled.is_empty()
            && self.orphans.is_empty()
            && self.holds.is_empty()
            && self.media.unpinned.is_empty()
            && self.media.opened.is_empty()
            && self.gc.is_idle();
        if !settled {
            return unsupported("garbage collection has a block in hand");
        }
        let held = match &self.buffer {
            None => HeldUnits::default(),
            Some(buffer) => match buffer.held() {
                Some(held) => held,
                None => return unsupported("the write buffer's policy knows more of its units than their order"),
            },
        };
        to.write_all(MAGIC)?;
        to.write_all(&rng_state(&self.media.rng))?;
        to.write_all(&self.writes_dispatched.to_le_bytes())?;
        let destaging = self.destager.is_some_and(|destager| destager.is_on());
        to.write_all(&[u8::from(destaging), u8::from(self.media.host_row_open)])?;
        to.write_all(bytemuck::cast_slice(self.gc.full_in_a_row()))?;
        to.write_all(&(held.units.len() as u64).to_le_bytes())?;
        for HeldUnit { lpn, stream, mask, since } in &held.units {
            to.write_all(&lpn.to_le_bytes())?;
            to.write_all(&u32::from(*stream).to_le_bytes())?;
            to.write_all(&mask.to_le_bytes())?;
            to.write_all(&since.to_le_bytes())?;
        }
        to.write_all(bytemuck::cast_slice(&held.order))?;
        self.save_flash(to)?;
        to.write_all(MAGIC)
    }

    /// The drive of a checkpoint, without time and with counters at zero. `config` and `options` are those of the original.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for bytes that are no checkpoint of this drive.
    pub fn resume(config: &DriveConfig, options: Options, from: &mut dyn Read) -> io::Result<Drive> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(bad("this is not a checkpoint of this version"));
        }
        let mut rng = [0; RNG_BYTES];
        from.read_exact(&mut rng)?;
        let writes_dispatched = read_u64(from)?;
        let mut flags = [0; 2];
        from.read_exact(&mut flags)?;
        let [destaging, host_row_open] = flags.map(|flag| flag != 0);
        let groups = config.flash.geometry.planes() / config.ftl.superblock.planes(&config.flash.geometry);
        let mut full_in_a_row = vec![0_u32; groups as usize];
        from.read_exact(bytemuck::cast_slice_mut(&mut full_in_a_row))?;
        let count = read_u64(from)?;
        if count > UNITS_MAX.min(config.buffer.bytes / 512) {
            return Err(bad("the write buffer holds more units than it has sectors"));
        }
        let mut held = HeldUnits::default();
        for _ in 0..count {
            let first = read_u64(from)?;
            let stream = u16::try_from(first >> 32).map_err(|_| bad("a unit has an unknown stream"))?;
            let (mask, since) = (read_u64(from)?, read_u64(from)?);
            let lpn = first as u32;
            if lpn >= config.user_units() || since > writes_dispatched {
                return Err(bad("a unit in the write buffer is behind the drive"));
            }
            held.units.push(HeldUnit { lpn, stream, mask, since });
        }
        held.order = vec![0; held.units.len()];
        from.read_exact(bytemuck::cast_slice_mut(&mut held.order))?;
        let mut drive = Drive::restore(config, options, from)?;
        drive.set_timed(false);
        match &mut drive.buffer {
            Some(buffer) => {
                if !buffer.refill(&held) {
                    return Err(bad("the units in the write buffer do not agree with each other"));
                }
            }
            None if held.units.is_empty() => {}
            None => return Err(bad("it has units for a write buffer, and the drive has none")),
        }
        drive.media.rng = rng_at(rng);
        drive.writes_dispatched = writes_dispatched;
        drive.media.host_row_open = host_row_open;
        drive.gc.full_in_a_row_mut().copy_from_slice(&full_in_a_row);
        if let Some(destager) = &mut drive.destager {
            destager.set_on(destaging);
        }
        from.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(bad("the checkpoint is damaged"));
        }
        Ok(drive)
    }
}
