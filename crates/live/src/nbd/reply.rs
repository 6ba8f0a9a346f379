//! Replies of the transmission phase, ready to be sent.

use super::request::Refusal;
use super::wire::{MAGIC_SIMPLE_REPLY, MAGIC_STRUCTURED_REPLY, REPLY_FLAG_DONE, chunk, state};
use crate::Extent;

/// The id under which `base:allocation` is selected.
pub(super) const CONTEXT_ALLOCATION: u32 = 1;

/// The longest header: a structured one and the offset of its data.
const HEAD_BYTES: usize = 28;

/// One reply: a short header, and a body that is sent from where the target left it.
pub(super) struct Reply {
    head: [u8; HEAD_BYTES],
    head_bytes: u8,
    body: Vec<u8>,
    /// What the reply counts against its connection's limit until it has been sent.
    pub(super) cost: u64,
}

impl Reply {
    fn start(cost: u64, body: Vec<u8>) -> Reply {
        Reply { head: [0; HEAD_BYTES], head_bytes: 0, body, cost }
    }

    fn put<const N: usize>(mut self, bytes: [u8; N]) -> Reply {
        let at = usize::from(self.head_bytes);
        self.head[at..at + N].copy_from_slice(&bytes);
        self.head_bytes += N as u8;
        self
    }

    fn chunk(cost: u64, kind: u16, handle: u64, extra: u32, body: Vec<u8>) -> Reply {
        let length = body.len() as u32 + extra;
        Reply::start(cost, body)
            .put(MAGIC_STRUCTURED_REPLY.to_be_bytes())
            .put(REPLY_FLAG_DONE.to_be_bytes())
            .put(kind.to_be_bytes())
            .put(handle.to_be_bytes())
            .put(length.to_be_bytes())
    }

    fn simple(cost: u64, errno: u32, handle: u64, body: Vec<u8>) -> Reply {
        Reply::start(cost, body)
            .put(MAGIC_SIMPLE_REPLY.to_be_bytes())
            .put(errno.to_be_bytes())
            .put(handle.to_be_bytes())
    }

    /// Done, and there is nothing to hand back.
    pub(super) fn done(cost: u64, handle: u64) -> Reply {
        Reply::simple(cost, 0, handle, Vec::new())
    }

    /// What was read; a client that negotiated structured replies gets it in one chunk.
    pub(super) fn data(cost: u64, handle: u64, structured: bool, offset: u64, data: Vec<u8>) -> Reply {
        if structured {
            Reply::chunk(cost, chunk::OFFSET_DATA, handle, 8, data).put(offset.to_be_bytes())
        } else {
            Reply::simple(cost, 0, handle, data)
        }
    }

    /// An error, with its message where the client can take one.
    pub(super) fn refused(cost: u64, handle: u64, structured: bool, refusal: &Refusal) -> Reply {
        let errno = refusal.errno as u32;
        if !structured {
            return Reply::simple(cost, errno, handle, Vec::new());
        }
        let message = refusal.message.as_bytes();
        Reply::chunk(cost, chunk::ERROR, handle, 6, message.to_vec())
            .put(errno.to_be_bytes())
            .put((message.len() as u16).to_be_bytes())
    }

    /// What is mapped, for `base:allocation`: neighbours that are alike are one descriptor. `zeroes` says how holes read.
    pub(super) fn status(cost: u64, handle: u64, length: u32, extents: &[Extent], zeroes: bool) -> Reply {
        let hole = if zeroes { state::HOLE | state::ZERO } else { state::HOLE };
        let mut runs: Vec<(u32, u32)> = Vec::with_capacity(extents.len());
        let mut left = length;
        for extent in extents {
            let bytes = u32::try_from(extent.bytes).map_or(left, |bytes| bytes.min(left));
            let flags = if extent.mapped { 0 } else { hole };
            left -= bytes;
            match runs.last_mut() {
                _ if bytes == 0 => {}
                Some(last) if last.1 == flags => last.0 += bytes,
                _ => runs.push((bytes, flags)),
            }
        }
        if runs.is_empty() {
            // The protocol wants one descriptor at least, and "allocated" is never wrong.
            runs.push((length, 0));
        }
        let body = runs.iter().flat_map(|run| [run.0.to_be_bytes(), run.1.to_be_bytes()]).flatten().collect();
        Reply::chunk(cost, chunk::BLOCK_STATUS, handle, 4, body).put(CONTEXT_ALLOCATION.to_be_bytes())
    }

    /// Header and body, in the order they are sent.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.head[..usize::from(self.head_bytes)], &self.body]
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.head_bytes) + self.body.len()
    }
}
