//! Damaged and arbitrary bytes for a saved drive or a checkpoint: each input is refused, or is a drive that works.
//!
//! The first byte of an input chooses a drive, the second says whether a checkpoint is read and whether arbitrary bytes follow its magic.
//! The others are the bytes, or damage: three bytes of place, one of kind, one of value.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, Options};
use ssdlab_flash::Contents;

use crate::configs;
use crate::driver::{assert_checks, run_out, submit};

/// Drives to choose from.
const DRIVES: u8 = 64;

/// Bytes of the magic.
const MAGIC: usize = 16;

/// A drive's description, its saved state and, where there is one, a checkpoint.
type Kept = (DriveConfig, Vec<u8>, Option<Vec<u8>>);

thread_local! {
    static KEPT: RefCell<BTreeMap<u8, Kept>> = const { RefCell::new(BTreeMap::new()) };
}

fn send(drive: &mut Drive, rng: &mut Rng, requests: u32) {
    let sectors = drive.user_sectors();
    for tag in 0..requests {
        let sector = rng.random_range(0..sectors);
        let length = rng.random_range(1..=(sectors - sector).min(20));
        let op = match rng.random_range(0..12) {
            0 => Op::Trim,
            1 => Op::Read,
            2 => Op::Flush,
            _ => Op::Write,
        };
        submit(drive, &Request { tag, ..Request::new(op, sector, length) }, 0);
        run_out(drive);
    }
}

fn options(seed: u8) -> Options {
    Options { seed: seed.into(), contents: Contents::Nothing }
}

fn kept(seed: u8) -> Kept {
    let mut rng = rng(seed.into(), "snapshot target");
    let mut config = configs::random(&mut rng);
    config.timed = false;
    if rng.random_bool(0.5) {
        config.buffer.policy = "lru".to_string();
        config.buffer.bytes = config.buffer.bytes.max(64 << 10);
    }
    let mut drive = Drive::new(&config, options(seed)).or_else(|_| {
        config.buffer.policy = "none".to_string();
        Drive::new(&config, options(seed))
    });
    let drive = drive.as_mut().expect("an accepted drive");
    drive.set_timed(false);
    send(drive, &mut rng, 600);
    let mut checkpoint = Vec::new();
    let has_checkpoint = drive.checkpoint(&mut checkpoint).is_ok();
    drive.submit(&Request::new(Op::Flush, 0, 0));
    run_out(drive);
    let mut saved = Vec::new();
    // A tiny drive may be full of records of trims, with units left in its buffer.
    let _ = drive.save(&mut saved);
    (config, saved, has_checkpoint.then_some(checkpoint))
}

/// Reads what an input makes of a saved state, and uses the drive if it is taken.
///
/// # Panics
/// The drive that was taken breaks an invariant, or the reader does not return.
pub fn damaged_state(bytes: &[u8]) {
    let [seed, kind, rest @ ..] = bytes else { return };
    let seed = seed % DRIVES;
    KEPT.with_borrow_mut(|all| {
        let (config, saved, checkpoint) = all.entry(seed).or_insert_with(|| kept(seed));
        let is_checkpoint = kind & 1 != 0;
        let Some(whole) = (if is_checkpoint { checkpoint.as_ref() } else { Some(&*saved) }) else { return };
        if whole.len() < MAGIC {
            return;
        }
        let mut read = whole.clone();
        if kind & 2 != 0 {
            read.truncate(MAGIC);
            read.extend(rest);
        } else {
            for edit in rest.chunks_exact(5) {
                let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize % read.len();
                match edit[3] % 8 {
                    0..=3 => read[at] = edit[4],
                    4..=6 => read[at] ^= 1 << (edit[4] % 8),
                    _ => read.truncate(at.max(MAGIC)),
                }
            }
        }
        let restored = if is_checkpoint {
            Drive::resume(config, options(seed), &mut read.as_slice())
        } else {
            Drive::restore(config, options(seed), &mut read.as_slice())
        };
        if let Ok(mut drive) = restored {
            assert_checks(&drive);
            send(&mut drive, &mut rng(1, "after"), 60);
            assert_checks(&drive);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_refused_or_leaves_a_drive_that_works() {
        crate::seeds::campaign("damaged_state", "damage_is_refused_or_leaves_a_drive_that_works", 200, |seed| {
            let mut rng = rng(seed, "damaged state");
            let input: Vec<u8> = (0..2 + 5 * rng.random_range(1..4)).map(|_| rng.random()).collect();
            damaged_state(&input);
        });
    }
}
