//! What an answer promises: one table for every kind of command, for a drive and for a stack of several.
//!
//! **One drive.** Its image's files are a moment of its chips, perhaps a little before now; the files go from one such moment to
//! the next, never back. What an answer promises by [`PROMISES`] is in the files before the answer leaves the process. A layer
//! above one drive may act on an answer at once: what it sends to the drive then is in the files later than what the answer
//! promised, if at all.
//!
//! **Several drives.** Each image is at a moment of its own, and a killed process leaves them so. A layer that acts on an answer of
//! one drive sends commands to another, whose effect may get into its image first. Therefore a layer above several devices keeps
//! this rule, in one place (`layer/array.rs`): *before it looks at an answer that promises something, the images below that device
//! have what it promises.* If they cannot take it, the command ends with [`StorageFull`](ssdlab_device::Status::StorageFull) for
//! the layer. So what a layer has seen done is done in every image that a kill leaves, on whichever drive; an answer that promises
//! nothing may be lost on each drive by itself, as with its power.
//!
//! A stack's own answers promise by the same table. A stack has a write buffer if a drive has one, or a layer keeps in memory what
//! a flush has to write ([`Identity`](crate::Identity)). The engine of a served drive puts all images into their files before such
//! an answer leaves, and answers with no space where it cannot.

use ssdlab_base::{Op, Request};

/// What is there again when the server is killed right after it has answered a command well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Nothing of the command: each of its sectors holds what it held before, or what the command left there.
    Nothing,
    /// What the command left there.
    Itself,
    /// What every write, trim and write zeroes left there that was answered before the command was sent.
    AllAnswered,
}

/// A kind of command, and what its answer promises on a drive with a write buffer and on one without.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What clients call it.
    pub name: &'static str,
    /// Its operation.
    pub op: Op,
    /// Sent with FUA.
    pub fua: bool,
    /// On a drive with a write buffer.
    pub buffered: Promise,
    /// On a drive without.
    pub unbuffered: Promise,
}

const fn kind(name: &'static str, op: Op, fua: bool, buffered: Promise, unbuffered: Promise) -> Kind {
    Kind { name, op, fua, buffered, unbuffered }
}

/// All kinds of commands. `docs/serving.md` has the same table.
///
/// A trim and a write zeroes change the mapping, which is in RAM until a flush or FUA, whether or not data is buffered.
pub const PROMISES: [Kind; 10] = {
    use Promise::{AllAnswered, Itself, Nothing};
    [
        kind("read", Op::Read, false, Nothing, Nothing),
        kind("read with FUA", Op::Read, true, Nothing, Nothing),
        kind("write", Op::Write, false, Nothing, Itself),
        kind("write with FUA", Op::Write, true, Itself, Itself),
        kind("trim", Op::Trim, false, Nothing, Nothing),
        kind("trim with FUA", Op::Trim, true, Itself, Itself),
        kind("write zeroes", Op::WriteZeroes, false, Nothing, Nothing),
        kind("write zeroes with FUA", Op::WriteZeroes, true, Itself, Itself),
        kind("flush", Op::Flush, false, AllAnswered, AllAnswered),
        kind("flush with FUA", Op::Flush, true, AllAnswered, AllAnswered),
    ]
};

impl Promise {
    /// What the answer to a command promises.
    pub fn of(op: Op, fua: bool, buffered: bool) -> Promise {
        let kind = PROMISES.iter().find(|kind| kind.op == op && kind.fua == fua);
        kind.map_or(Promise::AllAnswered, |kind| if buffered { kind.buffered } else { kind.unbuffered })
    }

    /// What the answer to a request promises; a command set says itself what its commands do, and the files have all that is on
    /// flash before the answer leaves.
    pub fn of_request(request: &Request, buffered: bool) -> Promise {
        match request.opcode.is_block() {
            true => Promise::of(request.op, request.fua, buffered),
            false => Promise::Itself,
        }
    }

    /// Whether the image's files must have it before the answer leaves.
    pub const fn is_any(self) -> bool {
        !matches!(self, Promise::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_the_table_once_and_fua_is_never_promised_less() {
        for op in [Op::Read, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush] {
            for fua in [false, true] {
                let count = PROMISES.iter().filter(|kind| kind.op == op && kind.fua == fua).count();
                assert_eq!(count, 1, "{op:?}, FUA {fua}");
                if fua && op != Op::Read {
                    assert!(Promise::of(op, true, true).is_any() && Promise::of(op, true, false).is_any(), "{op:?}");
                }
            }
            // A drive without a write buffer has no less on flash.
            assert!(!Promise::of(op, false, true).is_any() || Promise::of(op, false, false).is_any(), "{op:?}");
        }
    }

    #[test]
    fn the_table_in_the_docs_is_this_one() {
        let docs = include_str!("../../../docs/serving.md");
        let words = |promise: Promise| match promise {
            Promise::Nothing => "nothing",
            Promise::Itself => "its own effect",
            Promise::AllAnswered => "every command answered before it was sent",
        };
        for kind in PROMISES {
            let row = format!("| {} | {} | {} |", kind.name, words(kind.buffered), words(kind.unbuffered));
            assert!(docs.contains(&row), "docs/serving.md lacks the row: {row}");
        }
    }
}
