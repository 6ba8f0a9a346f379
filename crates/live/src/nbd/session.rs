//! What a session with one client is made of: the stream, what is served over it, its limits, and how it can end.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use crate::Target;

/// A two-way stream of bytes with one client.
pub trait Stream: Send + Sync + 'static {
    /// Waits for bytes and reads some; 0 at the end of the stream.
    ///
    /// # Errors
    /// What the operating system says; after [`Stream::set_timeout`], `WouldBlock` or `TimedOut` when the time is up.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Appends exactly so many bytes to a vector.
    ///
    /// # Errors
    /// What the operating system says; after [`Stream::set_timeout`], `WouldBlock` or `TimedOut` when the time is up;
    /// `UnexpectedEof` if the stream ends before.
    fn receive_exact(&self, into: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
        let mut filled = into.len();
        into.resize(filled + bytes, 0);
        while filled < into.len() {
            match self.receive(&mut into[filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// Sends from the slices, in order, and says how many bytes went. Unless it is told to wait it never blocks.
    ///
    /// # Errors
    /// What the operating system says; `WouldBlock` if nothing can be sent without waiting.
    fn send(&self, slices: &[IoSlice<'_>], wait: bool) -> io::Result<usize>;

    /// Bounds how long one [`Stream::receive`] or waiting [`Stream::send`] takes; `None` lifts the bound.
    ///
    /// # Errors
    /// What the operating system says.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Ends the stream in both directions: blocked calls return, later ones fail or say that it is at its end.
    fn shutdown(&self);
}

/// A target under its name.
#[derive(Clone)]
pub struct Export {
    /// What is served.
    pub target: Arc<dyn Target>,
    /// The name that clients ask for; the empty one means the same.
    pub name: String,
}

/// What a server spends on its clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; a client above it hears so when it negotiates.
    pub connections: usize,
    /// Bytes that one connection may have unanswered or unsent before nothing more is read from it. One request is
    /// always taken.
    pub pending_bytes: u64,
    /// Bytes that all connections may have unanswered or unsent together, each beyond its first 128 KiB: who asks for more
    /// waits. One request is always taken.
    pub total_bytes: u64,
    /// While others wait for memory, how long a client may take to send or to accept a sixteenth of what it holds.
    pub patience: Duration,
    /// How long the handshake may take.
    pub handshake: Duration,
    /// How long a stopping server waits for clients to take their answers.
    pub stopping: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 64,
            pending_bytes: 64 << 20,
            total_bytes: 256 << 20,
            patience: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            stopping: Duration::from_secs(5),
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client said goodbye: `NBD_CMD_DISC`, `NBD_OPT_ABORT`.
    Disconnected,
    /// The client closed the connection, or went away in the middle of something.
    HungUp,
    /// The client sent what is no option or no request, or asked for an export that is not here in the only way that
    /// has no answer to it.
    Garbage,
    /// The handshake took too long.
    TimedOut,
    /// The server has as many connections as it takes.
    TurnedAway,
    /// The server is stopping.
    Stopped,
    /// There is no thread for the connection.
    NoThread,
}
