//! Streams of the operating system: Unix and TCP sockets.

use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::session::Stream;

/// A connected socket.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Socket {
    /// Ends the reading side: the reader gets what has arrived, and then the end of the stream.
    pub(super) fn stop_reading(&self) {
        self.end(Shutdown::Read);
    }

    fn end(&self, how: Shutdown) {
        // Fails only where the peer has ended it already.
        let _ = match self {
            Socket::Unix(stream) => stream.shutdown(how),
            Socket::Tcp(stream) => stream.shutdown(how),
        };
    }
}

fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        let result = match socket {
            Socket::Unix(stream) => (&*stream).read(buffer),
            Socket::Tcp(stream) => (&*stream).read(buffer),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Stream for Socket {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read(self, buffer)
    }

    fn receive_exact(&self, into: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
        // Reads into the vector's spare room, which need not be cleared before.
        let count = match self {
            Socket::Unix(stream) => stream.take(bytes as u64).read_to_end(into)?,
            Socket::Tcp(stream) => stream.take(bytes as u64).read_to_end(into)?,
        };
        if count == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn send(&self, slices: &[IoSlice<'_>], wait: bool) -> io::Result<usize> {
        let flags = if wait { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT };
        loop {
            match sendmsg(self, slices, &mut SendAncillaryBuffer::default(), flags) {
                Err(rustix::io::Errno::INTR) => {}
                result => return result.map_err(io::Error::from),
            }
        }
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Socket::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    fn shutdown(&self) {
        self.end(Shutdown::Both);
    }
}
