//! Blocks read before a file system is at work: by mount, and by check, which has nothing else of it.

use ssdlab_base::command_sets::segments::{Segment, SegmentShape};
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::Device;
use ssdlab_host::standing::Unused;

use crate::error::MountError;
use crate::format::{BLOCK, BLOCK_SECTORS, Bytes, block_of};

/// Most blocks of a read command.
const MOST_BLOCKS: u32 = 128;

/// Most commands that are in the device at a time.
const MOST_TOGETHER: usize = 64;

/// Attempts to read a block that cannot be read.
const READS: u32 = 3;

/// A device whose blocks are read.
pub(crate) struct Reader {
    pub(crate) below: Unused,
    pub(crate) cell: usize,
    /// Block 0, where it was looked at before who reads it.
    first: Option<Result<Box<Bytes>, MountError>>,
}

impl Reader {
    pub(crate) fn new(device: Box<dyn Device>) -> Reader {
        let cell = device.sector_data_bytes();
        Reader { below: Unused::new(device), cell, first: None }
    }

    /// Whether block 0 has a magic number. Who reads it next gets what was read here.
    pub(crate) fn begins_with(&mut self, magic: [u8; 4]) -> bool {
        let first = match self.first.take() {
            Some(first) => first,
            None => self.block(0),
        };
        let is_one = first.as_ref().is_ok_and(|block| block[8..12] == magic);
        self.first = Some(first);
        is_one
    }

    /// The segments of the device.
    pub(crate) fn report(&mut self) -> Result<(SegmentShape, Vec<Segment>), MountError> {
        self.below.report().map_err(|status| match status {
            Status::Unsupported => {
                let identity = self.below.device().identify();
                let hidden = self.below.device().drives().iter().any(|part| part.device.segments().is_some());
                let found = if hidden {
                    format!("layers that hide the segments of {}", identity.name)
                } else {
                    format!("{} of the design {}", identity.name, identity.design)
                };
                MountError::NoSegments { found }
            }
            status => MountError::DeviceFailed(status),
        })
    }

    /// Reads metadata from a block on: each block, or how its read ended.
    pub(crate) fn blocks(&mut self, first: u32, count: u32) -> Result<Vec<Result<Box<Bytes>, Status>>, MountError> {
        let mut all = Vec::new();
        while (all.len() as u32) < count {
            let at = first + all.len() as u32;
            let part = MOST_BLOCKS.min(count - all.len() as u32);
            let read = self.command(at, part)?;
            match read {
                Ok(cells) => (0..part).for_each(|index| all.push(Ok(self.metadata(at + index, index, &cells)))),
                Err(status) if part == 1 => all.push(Err(status)),
                Err(_) => {
                    for block in at..at + part {
                        let read = self.command(block, 1)?;
                        all.push(read.map(|cells| self.metadata(block, 0, &cells)));
                    }
                }
            }
        }
        Ok(all)
    }

    /// Reads one block of metadata.
    pub(crate) fn block(&mut self, block: u32) -> Result<Box<Bytes>, MountError> {
        if block == 0
            && let Some(first) = self.first.take()
        {
            return first;
        }
        let mut read = self.blocks(block, 1)?;
        read.pop().unwrap_or(Err(Status::Invalid)).map_err(|status| MountError::Unreadable { block, status })
    }

    /// Reads blocks of metadata side by side, in the order of `blocks`.
    pub(crate) fn each(&mut self, blocks: &[u32]) -> Result<Vec<Box<Bytes>>, MountError> {
        let mut all = Vec::with_capacity(blocks.len());
        for part in blocks.chunks(MOST_TOGETHER) {
            let mut distinct = part.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            let requests: Vec<Request> = distinct.iter().map(|block| read_of(*block, 1)).collect();
            let mut ended = self.below.together(&requests).map_err(|_| MountError::Silent)?;
            ended.sort_unstable_by_key(|done| done.request.sector);
            for block in part {
                let at = distinct.binary_search(block).unwrap_or_default();
                all.push(match &ended[at] {
                    done if done.status == Status::Success => {
                        self.metadata(*block, 0, done.cells.as_deref().unwrap_or(&[]))
                    }
                    // It is tried again alone.
                    _ => self.block(*block)?,
                });
            }
        }
        Ok(all)
    }

    fn metadata(&self, block: u32, index: u32, cells: &[u8]) -> Box<Bytes> {
        if self.cell == 512 {
            let at = index as usize * BLOCK;
            return block_of(cells.get(at..at + BLOCK).unwrap_or(&[]));
        }
        block_of(self.below.record(u64::from(block) * BLOCK_SECTORS).unwrap_or(&[]))
    }

    /// Whether what the device completes may be lost until it is flushed.
    pub(crate) fn has_write_cache(&self) -> bool {
        self.below.device().identify().may_lose_completed()
    }

    /// Flushes the device. A host that crashed has left data in its cache: what a mount shows must not be lost with the power.
    pub(crate) fn flush(&mut self) -> Result<(), MountError> {
        self.send(Request::new(Op::Flush, 0, 0), &[])
    }

    /// Sends a write or a flush, and waits for its end.
    pub(crate) fn send(&mut self, request: Request, cells: &[u8]) -> Result<(), MountError> {
        match self.below.alone(request, cells, &[]).map_err(|_| MountError::Silent)?.status {
            Status::Success => Ok(()),
            status => Err(MountError::DeviceFailed(status)),
        }
    }

    fn command(&mut self, first: u32, count: u32) -> Result<Result<Vec<u8>, Status>, MountError> {
        let request = read_of(first, count);
        let mut attempts = 0;
        loop {
            let done = self.below.alone(request, &[], &[]).map_err(|_| MountError::Silent)?;
            attempts += 1;
            match done.status {
                Status::Success => return Ok(Ok(done.cells.unwrap_or_default())),
                status if attempts == READS => return Ok(Err(status)),
                _ => {}
            }
        }
    }
}

fn read_of(first: u32, count: u32) -> Request {
    Request::new(Op::Read, u64::from(first) * BLOCK_SECTORS, u64::from(count) * BLOCK_SECTORS)
}
