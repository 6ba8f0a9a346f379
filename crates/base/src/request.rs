//! What a host asks of a drive.

use crate::{CommandSpec, Nanos, Opcode};

/// Bytes in a logical sector, the unit of every host address.
pub const SECTOR_BYTES: u64 = 512;

/// The commands a drive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Deallocate sectors: they read as zeroes from then on.
    Trim,
    /// Make every write and trim completed so far survive a power cut.
    Flush,
    /// Write zeroes without sending them; the drive may deallocate instead.
    WriteZeroes,
}

impl Op {
    /// Its place among counters by kind: reads, writes, trims (write zeroes among them), flushes.
    #[inline]
    pub const fn class(self) -> usize {
        match self {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim | Op::WriteZeroes => 2,
            Op::Flush => 3,
        }
    }
}

/// One request on its way down to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Arrival in virtual time.
    pub at: Nanos,
    /// What is asked; of a command of the drive's own set, what carries it.
    pub op: Op,
    /// Which command of the drive's own set it is; [`Opcode::BLOCK`] for block I/O.
    pub opcode: Opcode,
    /// Force unit access: complete only when the data is on flash.
    pub fua: bool,
    /// Host queue the request arrives on.
    pub queue: u16,
    /// Write stream, 0 where the host gives none.
    pub stream: u16,
    /// Given back with the completion; the sender's own.
    pub tag: u32,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// How many sectors; 0 for a flush.
    pub sectors: u64,
}

// A replay keeps many of them in its caches.
const _: () = assert!(size_of::<Request>() == 40);

impl Request {
    /// A request of `sectors` sectors from `sector`, arriving at time zero on queue 0.
    pub const fn new(op: Op, sector: u64, sectors: u64) -> Request {
        let (at, opcode) = (Nanos::ZERO, Opcode::BLOCK);
        Request { at, op, opcode, fua: false, queue: 0, stream: 0, tag: 0, sector, sectors }
    }

    /// A command of the drive's own set, as [`Request::new`].
    pub const fn of_set(command: &CommandSpec, sector: u64, sectors: u64) -> Request {
        Request { opcode: command.opcode, ..Request::new(command.carrier, sector, sectors) }
    }

    /// The first sector behind the request.
    pub const fn end(&self) -> u64 {
        self.sector + self.sectors
    }

    /// The request's length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES
    }
}
