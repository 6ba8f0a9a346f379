//! Where a server listens: `unix:PATH` or `tcp:ADDRESS`.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, chmodat, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

use super::socket::Socket;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket, which its owner alone may open.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

/// Why a text is no endpoint.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Neither kind of address.
    #[error("found '{0}', expected unix:PATH or tcp:PORT or tcp:ADDRESS:PORT")]
    Kind(String),
    /// `unix:` and nothing behind it.
    #[error("'unix:' lacks the path of the socket, as in unix:/tmp/drive.sock")]
    NoPath,
    /// A Unix socket's path has few bytes.
    #[error("the socket's path has {0} bytes, and the system takes at most 107: {1}")]
    LongPath(usize, String),
    /// A Unix socket is made in a folder that is there.
    #[error("there is no folder {0} for the socket")]
    NoFolder(String),
    /// Something else than a socket is in its place.
    #[error("found {0}, which is not a socket, expected a free path or a socket that is not in use")]
    NotASocket(String),
    /// Another server listens there.
    #[error("another server is listening there")]
    InUse,
    /// Not an address and a port.
    #[error("found '{0}', expected tcp:PORT, tcp:127.0.0.1:PORT or tcp:[::1]:PORT")]
    Address(String),
    /// Not this machine alone.
    #[error("{0} can be reached from other machines, and NBD has neither passwords nor encryption")]
    Remote(SocketAddr),
}

impl Endpoint {
    /// Reads `unix:PATH`, `tcp:PORT` (on 127.0.0.1) or `tcp:ADDRESS:PORT`; port 0 lets the system choose.
    ///
    /// # Errors
    /// A sentence that says what was expected; [`EndpointError::Remote`] for an address other machines can reach,
    /// unless `allow_remote`.
    pub fn parse(text: &str, allow_remote: bool) -> Result<Endpoint, EndpointError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.len() {
                0 => Err(EndpointError::NoPath),
                bytes if bytes > 107 => Err(EndpointError::LongPath(bytes, path.to_owned())),
                _ => Ok(Endpoint::Unix(PathBuf::from(path))),
            };
        }
        let address = text.strip_prefix("tcp:").ok_or_else(|| EndpointError::Kind(text.to_owned()))?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let parsed = match address.strip_prefix("localhost:").unwrap_or(address).parse() {
            Ok(port) => SocketAddr::new(loopback, port),
            Err(_) => address.parse().map_err(|_| EndpointError::Address(address.to_owned()))?,
        };
        if !allow_remote && !parsed.ip().is_loopback() {
            return Err(EndpointError::Remote(parsed));
        }
        Ok(Endpoint::Tcp(parsed))
    }

    /// Finds what would be in the way of listening before anything else is begun.
    ///
    /// # Errors
    /// The folder of a Unix socket that is not there, a file in the socket's place, or another server.
    pub fn check(&self) -> Result<(), EndpointError> {
        match self {
            Endpoint::Unix(path) => match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                Some(folder) if !folder.is_dir() => Err(EndpointError::NoFolder(folder.display().to_string())),
                _ => match std::fs::symlink_metadata(path) {
                    Ok(found) if !found.file_type().is_socket() => {
                        Err(EndpointError::NotASocket(path.display().to_string()))
                    }
                    Ok(_) if is_served(path) => Err(EndpointError::InUse),
                    _ => Ok(()),
                },
            },
            // Port 0 is any that is free. What else is wrong with an address shows when it is listened on.
            Endpoint::Tcp(address) => match TcpListener::bind(address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(EndpointError::InUse),
                _ => Ok(()),
            },
        }
    }

    /// The endpoint as clients write it: an NBD URI.
    #[must_use]
    pub fn uri(&self, export: &str) -> String {
        let export: String = export.bytes().map(escaped).collect();
        match self {
            Endpoint::Unix(path) => {
                let path: String = path.as_os_str().as_encoded_bytes().iter().map(|byte| escaped(*byte)).collect();
                format!("nbd+unix:///{export}?socket={path}")
            }
            Endpoint::Tcp(address) => format!("nbd://{address}/{export}"),
        }
    }
}

/// A byte of a URI: as it is, or by its number.
fn escaped(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Endpoint::Tcp(address) => write!(formatter, "tcp:{address}"),
        }
    }
}

/// A socket that accepts connections.
pub(super) enum Listener {
    Unix {
        listener: UnixListener,
        path: PathBuf,
        /// Device and inode of the socket file, to remove no other.
        inode: (u64, u64),
    },
    Tcp(TcpListener),
}

impl Listener {
    /// Listens. A Unix socket's file is made with mode 0600; one that a dead server left behind is replaced.
    pub(super) fn open(endpoint: &Endpoint) -> io::Result<Listener> {
        match endpoint {
            Endpoint::Unix(path) => open_unix(path),
            Endpoint::Tcp(address) => TcpListener::bind(address).map(Listener::Tcp),
        }
    }

    /// Where it listens, with the port that the system chose.
    pub(super) fn endpoint(&self) -> io::Result<Endpoint> {
        Ok(match self {
            Listener::Unix { path, .. } => Endpoint::Unix(path.clone()),
            Listener::Tcp(listener) => Endpoint::Tcp(listener.local_addr()?),
        })
    }

    pub(super) fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Unix { listener, .. } => listener.accept().map(|(stream, _)| Socket::Unix(stream)),
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }

    /// Wakes the thread that accepts: Linux ends a listening socket's `accept` when it is shut down.
    pub(super) fn stop(&self) {
        let descriptor = match self {
            Listener::Unix { listener, .. } => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        };
        // Fails only where it has been done before.
        let _ = rustix::net::shutdown(descriptor, rustix::net::Shutdown::Both);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Listener::Unix { path, inode, .. } = self else { return };
        if inode_of(path).is_ok_and(|now| now == *inode) {
            // No caller is there to be told of a failure, and the next server replaces what is left.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn inode_of(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn stream_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)?)
}

fn open_unix(path: &Path) -> io::Result<Listener> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Two servers that start at once must not each take the other's socket for a dead one's.
    let directory = std::fs::File::open(parent)?;
    flock(&directory, FlockOperation::LockExclusive)?;
    let address = SocketAddrUnix::new(path)?;
    remove_dead(path, &address)?;

    let socket = stream_socket(SocketFlags::empty())?;
    bind(&socket, &address)?;
    // No client can connect before `listen`, so none gets in before the mode is set.
    let prepared = chmodat(CWD, path, Mode::RUSR | Mode::WUSR, rustix::fs::AtFlags::empty())
        .and_then(|()| listen(&socket, BACKLOG))
        .map_err(io::Error::from)
        .and_then(|()| inode_of(path));
    match prepared {
        Ok(inode) => Ok(Listener::Unix { listener: UnixListener::from(socket), path: path.to_owned(), inode }),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// Whether a server listens on a socket's file.
fn is_served(path: &Path) -> bool {
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    stream_socket(SocketFlags::NONBLOCK).is_ok_and(|socket| is_there(connect(&socket, &address)))
}

/// Whether a server is there, by how a connection to it went: it may be full of clients that wait to be accepted.
const fn is_there(connected: Result<(), Errno>) -> bool {
    matches!(connected, Ok(()) | Err(Errno::AGAIN))
}

/// Removes a socket on which no server listens; anything else in the way is an error.
fn remove_dead(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file of that name, and it is no socket"));
    }
    match connect(&stream_socket(SocketFlags::NONBLOCK)?, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        Err(Errno::NOENT) => Ok(()),
        connected if is_there(connected) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "another server is listening on that socket"))
        }
        connected => Ok(connected?),
    }
}
