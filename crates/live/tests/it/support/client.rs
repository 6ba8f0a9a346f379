//! An NBD client that sends what it is told, right or wrong, and reads replies strictly.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ssdlab_live::nbd::Endpoint;

pub(crate) const OPT_EXPORT_NAME: u32 = 1;
pub(crate) const OPT_ABORT: u32 = 2;
pub(crate) const OPT_LIST: u32 = 3;
pub(crate) const OPT_STARTTLS: u32 = 5;
pub(crate) const OPT_INFO: u32 = 6;
pub(crate) const OPT_GO: u32 = 7;
pub(crate) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(crate) const OPT_LIST_META_CONTEXT: u32 = 9;
pub(crate) const OPT_SET_META_CONTEXT: u32 = 10;

pub(crate) const REP_ACK: u32 = 1;
pub(crate) const REP_SERVER: u32 = 2;
pub(crate) const REP_INFO: u32 = 3;
pub(crate) const REP_META_CONTEXT: u32 = 4;
pub(crate) const REP_ERR_UNSUP: u32 = 0x8000_0001;
pub(crate) const REP_ERR_POLICY: u32 = 0x8000_0002;
pub(crate) const REP_ERR_INVALID: u32 = 0x8000_0003;
pub(crate) const REP_ERR_UNKNOWN: u32 = 0x8000_0006;
pub(crate) const REP_ERR_TOO_BIG: u32 = 0x8000_0009;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const CACHE: u16 = 5;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;

pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const DF: u16 = 4;
pub(crate) const REQ_ONE: u16 = 8;
pub(crate) const FAST_ZERO: u16 = 16;

pub(crate) const EPERM: u32 = 1;
pub(crate) const EIO: u32 = 5;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;
pub(crate) const EOVERFLOW: u32 = 75;
pub(crate) const ESHUTDOWN: u32 = 108;

const IHAVEOPT: &[u8; 8] = b"IHAVEOPT";

/// Bytes that are told apart by their seed and position.
pub(crate) fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(0x9e37_79b9)) as u8).collect()
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// What the server made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Data { offset: Option<u64>, data: Vec<u8> },
    Extents(Vec<(u32, u32)>),
    Error { errno: u32, message: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) handle: u64,
    pub(crate) outcome: Outcome,
}

pub(crate) struct Client {
    socket: Socket,
    structured: bool,
    pub(crate) bytes: u64,
    pub(crate) flags: u16,
    next_handle: u64,
    /// Lengths of reads on their way, which alone say how long a simple reply is.
    reads: Vec<(u64, usize)>,
}

impl Client {
    pub(crate) fn connect(endpoint: &Endpoint) -> Client {
        let socket = match endpoint {
            Endpoint::Unix(path) => Socket::Unix(UnixStream::connect(path).expect("a connection")),
            Endpoint::Tcp(address) => Socket::Tcp(TcpStream::connect(address).expect("a connection")),
        };
        // A server that owes an answer fails the test and does not hang it.
        let patience = Some(Duration::from_secs(60));
        match &socket {
            Socket::Unix(stream) => stream.set_read_timeout(patience).expect("a timeout"),
            Socket::Tcp(stream) => stream.set_read_timeout(patience).expect("a timeout"),
        }
        Client { socket, structured: false, bytes: 0, flags: 0, next_handle: 1, reads: Vec::new() }
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Unix(stream) => stream.write_all(bytes),
            Socket::Tcp(stream) => stream.write_all(bytes),
        }
    }

    /// The sending side, for another thread.
    pub(crate) fn writer(&self) -> Box<dyn Write + Send> {
        match &self.socket {
            Socket::Unix(stream) => Box::new(stream.try_clone().expect("a descriptor")),
            Socket::Tcp(stream) => Box::new(stream.try_clone().expect("a descriptor")),
        }
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("the server reads");
    }

    pub(crate) fn try_receive(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Unix(stream) => stream.read_exact(buffer),
            Socket::Tcp(stream) => stream.read_exact(buffer),
        }
    }

    pub(crate) fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        self.try_receive(&mut buffer).expect("the server answers");
        buffer
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.receive(2).try_into().expect("2 bytes"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.receive(4).try_into().expect("4 bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.receive(8).try_into().expect("8 bytes"))
    }

    /// The server has closed the connection and sent nothing more.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.try_receive(&mut byte) {
            Ok(()) => false,
            Err(error) => {
                assert!(!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "still open");
                true
            }
        }
    }

    /// Ends the sending side only.
    pub(crate) fn stop_sending(&mut self) {
        match &self.socket {
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write).expect("open"),
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write).expect("open"),
        }
    }

    pub(crate) fn greet(&mut self, flags: u32) {
        assert_eq!(self.receive(8), b"NBDMAGIC");
        assert_eq!(self.receive(8), IHAVEOPT);
        assert_eq!(self.u16(), 3, "fixed newstyle, no zeroes");
        self.send_bytes(&flags.to_be_bytes());
    }

    pub(crate) fn send_option(&mut self, option: u32, data: &[u8]) {
        let mut message = IHAVEOPT.to_vec();
        message.extend_from_slice(&option.to_be_bytes());
        message.extend_from_slice(&(data.len() as u32).to_be_bytes());
        message.extend_from_slice(data);
        self.send_bytes(&message);
    }

    /// Replies to an option, up to the last one.
    pub(crate) fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send_option(option, data);
        self.option_replies(option)
    }

    pub(crate) fn option_replies(&mut self, option: u32) -> Vec<(u32, Vec<u8>)> {
        let mut replies = Vec::new();
        loop {
            assert_eq!(self.u64(), 0x3_e889_0455_65a9);
            assert_eq!(self.u32(), option);
            let kind = self.u32();
            let length = self.u32() as usize;
            let data = self.receive(length);
            replies.push((kind, data));
            if kind == REP_ACK || kind & 0x8000_0000 != 0 {
                return replies;
            }
        }
    }

    /// The one reply to an option, its kind.
    pub(crate) fn option_answer(&mut self, option: u32, data: &[u8]) -> u32 {
        let replies = self.option(option, data);
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies[0].0
    }

    pub(crate) fn structured(&mut self) {
        assert_eq!(self.option_answer(OPT_STRUCTURED_REPLY, &[]), REP_ACK);
        self.structured = true;
    }

    pub(crate) fn go(&mut self, name: &str) {
        let replies = self.option(OPT_GO, &go_data(name, &[]));
        assert_eq!(replies.last().expect("a reply").0, REP_ACK, "{replies:?}");
        let export = &replies.iter().find(|reply| reply.1[..2] == [0, 0]).expect("NBD_INFO_EXPORT").1;
        self.bytes = u64::from_be_bytes(export[2..10].try_into().expect("8 bytes"));
        self.flags = u16::from_be_bytes(export[10..12].try_into().expect("2 bytes"));
    }

    pub(crate) fn handshake(&mut self, structured: bool) {
        self.greet(3);
        if structured {
            self.structured();
            let replies = self.option(OPT_SET_META_CONTEXT, &context_data("", &["base:allocation"]));
            assert_eq!(replies.len(), 2, "{replies:?}");
        }
        self.go("");
    }

    pub(crate) fn request(&mut self, kind: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        if kind == READ {
            self.reads.push((handle, length as usize));
        }
        let mut message = request_bytes(kind, flags, handle, offset, length);
        message.extend_from_slice(payload);
        self.send_bytes(&message);
        handle
    }

    pub(crate) fn reply(&mut self) -> Reply {
        let magic = self.u32();
        let structured_data = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4"));
        if magic == 0x6744_6698 {
            let errno = self.u32();
            let handle = self.u64();
            let read = self.take_read(handle);
            let outcome = match (errno, read) {
                (0, Some(_)) if self.structured => panic!("a simple reply to a read"),
                (0, Some(length)) => Outcome::Data { offset: None, data: self.receive(length) },
                (0, None) => Outcome::Done,
                (errno, _) => Outcome::Error { errno, message: String::new() },
            };
            return Reply { handle, outcome };
        }
        assert_eq!(magic, 0x668e_33ef, "a reply");
        assert!(self.structured, "a structured reply that was not negotiated");
        let (flags, kind) = (self.u16(), self.u16());
        assert_eq!(flags, 1, "one chunk, the last");
        let handle = self.u64();
        let length = self.u32() as usize;
        let body = self.receive(length);
        let read = self.take_read(handle);
        let outcome = match kind {
            1 => {
                assert_eq!(read, Some(length - 8));
                let offset = u64::from_be_bytes(body[..8].try_into().expect("8"));
                Outcome::Data { offset: Some(offset), data: body[8..].to_vec() }
            }
            5 => {
                assert_eq!(structured_data(&body, 0), 1, "the context that was selected");
                let runs = body[4..].chunks_exact(8).map(|run| (structured_data(run, 0), structured_data(run, 4)));
                Outcome::Extents(runs.collect())
            }
            0x8001 => {
                let message = String::from_utf8(body[6..].to_vec()).expect("UTF-8");
                assert_eq!(usize::from(u16::from_be_bytes([body[4], body[5]])), message.len());
                Outcome::Error { errno: structured_data(&body, 0), message }
            }
            other => panic!("a chunk of type {other}"),
        };
        Reply { handle, outcome }
    }

    fn take_read(&mut self, handle: u64) -> Option<usize> {
        let at = self.reads.iter().position(|read| read.0 == handle)?;
        Some(self.reads.swap_remove(at).1)
    }

    /// Reads with handles from 0 that were sent as plain bytes.
    pub(crate) fn raw_reads(&mut self, count: u64, length: usize) {
        self.reads.extend((0..count).map(|handle| (handle, length)));
    }

    /// Sends a request and gives the outcome, with nothing else on its way.
    pub(crate) fn ask(&mut self, kind: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> Outcome {
        let handle = self.request(kind, flags, offset, length, payload);
        let reply = self.reply();
        assert_eq!(reply.handle, handle);
        reply.outcome
    }

    /// The error of a request that must fail.
    pub(crate) fn error(&mut self, kind: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        match self.ask(kind, flags, offset, length, payload) {
            Outcome::Error { errno, message } => {
                assert_eq!(message.is_empty(), !self.structured, "{message}");
                errno
            }
            other => panic!("expected an error: {other:?}"),
        }
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        match self.ask(READ, 0, offset, length, &[]) {
            Outcome::Data { offset: at, data } => {
                assert!(at.is_none_or(|at| at == offset));
                data
            }
            other => panic!("expected data: {other:?}"),
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        assert_eq!(self.ask(WRITE, 0, offset, data.len() as u32, data), Outcome::Done);
    }

    pub(crate) fn disconnect(mut self) {
        self.request(DISC, 0, 0, 0, &[]);
        assert!(self.is_closed());
    }
}

pub(crate) fn request_bytes(kind: u16, flags: u16, handle: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut message = 0x2560_9513_u32.to_be_bytes().to_vec();
    message.extend_from_slice(&flags.to_be_bytes());
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&handle.to_be_bytes());
    message.extend_from_slice(&offset.to_be_bytes());
    message.extend_from_slice(&length.to_be_bytes());
    message
}

/// The data of `NBD_OPT_GO` and `NBD_OPT_INFO`.
pub(crate) fn go_data(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&(wanted.len() as u16).to_be_bytes());
    data.extend(wanted.iter().flat_map(|one| one.to_be_bytes()));
    data
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
pub(crate) fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    for query in queries {
        data.extend_from_slice(&(query.len() as u32).to_be_bytes());
        data.extend_from_slice(query.as_bytes());
    }
    data
}
