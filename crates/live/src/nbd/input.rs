//! What a client sends, buffered: as much as has arrived is taken from the socket at once.

use std::io;

use super::budget::Share;
use super::session::Stream;

/// Room for what arrives. More than [`PAYLOAD_BUFFERED_MAX`] and a header, so that these always fit whole.
const BUFFER_BYTES: usize = 256 << 10;

/// A write's payload up to this length waits in the buffer until it is whole, and what follows it is read along with
/// it; a longer one is read straight to where it goes.
pub(super) const PAYLOAD_BUFFERED_MAX: usize = 64 << 10;

/// A long payload is counted as it comes in pieces of this length.
const PIECE_BYTES: usize = 1 << 20;

/// The reading side of a stream.
pub(super) struct Input<'a, S: Stream> {
    stream: &'a S,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<'a, S: Stream> Input<'a, S> {
    pub(super) fn new(stream: &'a S) -> Input<'a, S> {
        Input { stream, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// What has arrived and was not taken yet.
    pub(super) fn arrived(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes bytes that have arrived.
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        assert!(bytes <= self.end - self.start, "{bytes} bytes taken of {}", self.end - self.start);
        let from = self.start;
        self.start += bytes;
        &self.buffer[from..from + bytes]
    }

    /// Waits for more to arrive. At the end of the stream the error is `UnexpectedEof`.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.start < PAYLOAD_BUFFERED_MAX * 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match self.stream.receive(&mut self.buffer[self.end..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }

    /// Takes so many bytes as they come and forgets them.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        loop {
            let arrived = self.end - self.start;
            let now = usize::try_from(left).map_or(arrived, |left| left.min(arrived));
            self.start += now;
            left -= now as u64;
            if left == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Takes so many bytes as they come; what has not arrived yet does not pass through the buffer.
    pub(super) fn take_long(&mut self, bytes: usize, share: &Share) -> io::Result<Vec<u8>> {
        let mut taken = Vec::with_capacity(bytes);
        let arrived = bytes.min(self.end - self.start);
        taken.extend_from_slice(self.take(arrived));
        share.waiting_for_client(|| {
            while taken.len() < bytes {
                let piece = (bytes - taken.len()).min(PIECE_BYTES);
                self.stream.receive_exact(&mut taken, piece)?;
                share.moved(piece);
            }
            Ok(taken)
        })
    }
}
