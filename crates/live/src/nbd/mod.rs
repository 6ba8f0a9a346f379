//! Network block device: a [`Target`](crate::Target) on a socket.
//!
//! The server speaks fixed newstyle negotiation with structured replies and `base:allocation`, as the NBD protocol
//! (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>) describes them; names such as `NBD_OPT_GO` in
//! these pages are that text's.
//!
//! ```text
//! client ── socket ── Input ── negotiation, then requests ──> Target::submit   (reader thread of the connection)
//!              ^                                                   │
//!              └────── Outbox <────────── Sink::answers <──────────┘           (whichever thread has the answers)
//! ```
//!
//! Each connection has a thread that reads; it hands all requests that have arrived to the target in one batch. Answers
//! are sent by the thread that brings them, without ever blocking; what a slow client does not take is sent by a second
//! thread of the connection. A client that never reads stalls its own connection only: nothing more is read from it
//! while [`Limits::pending_bytes`] are unanswered or unsent.
//!
//! A request that breaks the rules is answered with the protocol's error and the connection goes on; only what loses
//! the framing (a wrong magic) ends it.

mod budget;
mod connection;
mod endpoint;
mod input;
mod negotiation;
mod outbox;
mod reply;
mod request;
mod server;
mod session;
mod socket;
mod wire;

pub use connection::serve_stream;
pub use endpoint::{Endpoint, EndpointError};
pub use server::{ServeError, Server};
pub use session::{Ending, Export, Limits, Stream};

/// Most bytes of one read or write, as `NBD_INFO_BLOCK_SIZE` says it to clients.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;
