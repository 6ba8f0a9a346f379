//! Commands of the set `shrd` from the bytes of a fuzzer: any bytes are commands.

use ssdlab_base::command_sets::shrd::{BLOCK_WORDS, SHRD, TWRITE_HEADER, VENDOR_TWRITE_HEADER};
use ssdlab_base::{Op, Opcode, Request, rng};
use ssdlab_device::{Status, design_with, draw_design};
use ssdlab_flash::{Cause, OpCounts, OpKind};

use super::LogHost;
use crate::configs;
use crate::cut::Stop;

/// Commands that bytes make up, well-formed or not, on a small drive: each ends with a status that the set allows, a
/// refused one programs nothing, and the drive's own checks hold. A fuzz target, and a test, give it bytes.
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
    host.serial.may_end_read_only = true;
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
    host.serial.power.check();
}
