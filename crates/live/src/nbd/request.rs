//! A request of the transmission phase, and what the protocol has to say against it.

use ssdlab_base::command_sets::segments::{PART_OF_SEGMENT, PART_OF_WRITE_UNIT, SEGMENTS};
use ssdlab_base::{Op, Refusal as Reason, Request, SECTOR_BYTES};

use super::REQUEST_BYTES_MAX;
use super::wire::{Fields, MAGIC_REQUEST, REQUEST_BYTES, command, command_flag};
use crate::{Appends, Failure};

/// A request's header as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) flags: u16,
    pub(super) kind: u16,
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl Header {
    /// Reads a header; `None` if the magic is wrong, which loses the framing.
    pub(super) fn parse(bytes: &[u8]) -> Option<Header> {
        debug_assert!(bytes.len() >= REQUEST_BYTES);
        let mut fields = Fields(bytes);
        if fields.u32()? != MAGIC_REQUEST {
            return None;
        }
        Some(Header {
            flags: fields.u16()?,
            kind: fields.u16()?,
            handle: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }

    /// How many bytes follow the header, whether or not the request is good.
    pub(super) fn payload(&self) -> u32 {
        if self.kind == command::WRITE { self.length } else { 0 }
    }
}

/// What was negotiated, as far as requests depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Capacity in bytes.
    pub(super) bytes: u64,
    /// Structured replies.
    pub(super) structured: bool,
    /// `base:allocation` was selected.
    pub(super) status: bool,
    /// The rules of a target that takes appends alone.
    pub(super) appends: Option<Appends>,
}

impl Terms {
    /// The rule that a request breaks which is not whole sectors, if the target has one.
    fn rule_of_parts(&self, kind: u16) -> Option<Reason> {
        self.appends?;
        match kind {
            command::WRITE => Some(PART_OF_WRITE_UNIT),
            command::TRIM => Some(PART_OF_SEGMENT),
            _ => None,
        }
    }
}

/// What a good request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A command for the target.
    Command(Request),
    /// `NBD_CMD_BLOCK_STATUS`.
    Status {
        /// No more than one extent is wanted.
        one: bool,
    },
    /// `NBD_CMD_CACHE`, a hint: nothing is to be done.
    Nothing,
    /// `NBD_CMD_DISC`.
    Disconnect,
}

/// An error value of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Errno {
    Perm = 1,
    Io = 5,
    Inval = 22,
    NoSpc = 28,
    Overflow = 75,
    Shutdown = 108,
}

/// An error and, for people, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: Errno,
    pub(super) message: &'static str,
    /// The rule of the target that the request broke, and that the target does not hear of.
    pub(super) reason: Option<Reason>,
}

const fn refusal(errno: Errno, message: &'static str) -> Refusal {
    Refusal { errno, message, reason: None }
}

impl Refusal {
    pub(super) const SHUTDOWN: Refusal = refusal(Errno::Shutdown, "the server is shutting down");
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        match failure {
            Failure::Io => refusal(Errno::Io, "input/output error"),
            Failure::NoSpace => refusal(Errno::NoSpc, "no space left for the image"),
            Failure::ReadOnly => refusal(Errno::Perm, "the drive is read-only"),
            Failure::Invalid => refusal(Errno::Inval, "invalid request"),
            Failure::Refused(reason) => refusal(Errno::Inval, reason),
            // The protocol keeps ENOTSUP for one kind of write zeroes.
            Failure::Unsupported => refusal(Errno::Inval, "not supported"),
            Failure::Shutdown => Refusal::SHUTDOWN,
        }
    }
}

/// Says what a request asks, or what is wrong with it.
pub(super) fn check(header: &Header, terms: &Terms) -> Result<Action, Refusal> {
    let allowed = command_flag::FUA
        | match header.kind {
            command::READ if terms.structured => command_flag::DF,
            command::WRITE_ZEROES => command_flag::NO_HOLE | command_flag::FAST_ZERO,
            command::BLOCK_STATUS => command_flag::REQ_ONE,
            command::READ | command::WRITE | command::FLUSH | command::TRIM | command::CACHE => 0,
            command::DISC => return Ok(Action::Disconnect),
            _ => return Err(refusal(Errno::Inval, "unknown command")),
        };
    if header.flags & !allowed != 0 {
        return Err(refusal(Errno::Inval, "a flag that this command does not have"));
    }
    if header.kind == command::FLUSH {
        if header.offset != 0 || header.length != 0 {
            return Err(refusal(Errno::Inval, "a flush has no offset and no length"));
        }
        return Ok(Action::Command(Request::new(Op::Flush, 0, 0)));
    }
    check_range(header, terms)?;
    let op = match header.kind {
        command::READ => Op::Read,
        command::WRITE => Op::Write,
        command::TRIM => Op::Trim,
        command::WRITE_ZEROES => Op::WriteZeroes,
        command::BLOCK_STATUS if terms.status => {
            return Ok(Action::Status { one: header.flags & command_flag::REQ_ONE != 0 });
        }
        command::BLOCK_STATUS => return Err(refusal(Errno::Inval, "no metadata context was negotiated")),
        _ => return Ok(Action::Nothing),
    };
    let mut request = Request::new(op, header.offset / SECTOR_BYTES, u64::from(header.length) / SECTOR_BYTES);
    // The protocol lets clients set FUA on anything; a read has nothing to persist.
    request.fua = header.flags & command_flag::FUA != 0 && op != Op::Read;
    Ok(Action::Command(request))
}

fn check_range(header: &Header, terms: &Terms) -> Result<(), Refusal> {
    let length = u64::from(header.length);
    if length == 0 {
        return Err(refusal(Errno::Inval, "the length is zero"));
    }
    if !header.offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES) {
        let reason = terms.rule_of_parts(header.kind);
        let message = reason.and_then(|reason| SEGMENTS.refusal(reason));
        let message = message.unwrap_or("offset or length is not a multiple of 512 bytes");
        return Err(Refusal { reason, ..refusal(Errno::Inval, message) });
    }
    if matches!(header.kind, command::READ | command::WRITE) && header.length > REQUEST_BYTES_MAX {
        let whole = header.flags & command_flag::DF != 0;
        return Err(refusal(if whole { Errno::Overflow } else { Errno::Inval }, "longer than 32 MiB"));
    }
    if header.offset.checked_add(length).is_none_or(|end| end > terms.bytes) {
        let writes = matches!(header.kind, command::WRITE | command::WRITE_ZEROES);
        return Err(refusal(if writes { Errno::NoSpc } else { Errno::Inval }, "beyond the end of the drive"));
    }
    Ok(())
}
