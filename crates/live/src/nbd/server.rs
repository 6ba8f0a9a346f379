//! A server: takes connections, each on a thread of its own, until it is stopped.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::budget::Budget;
use super::connection::{refuse_stream, serve_within};
use super::endpoint::{Endpoint, Listener};
use super::session::{Ending, Export, Limits, Stream};
use super::socket::Socket;

/// How long to leave the system alone that has no descriptor or no thread for another connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Clients above the limit that are told so at a time; those above this one are closed at once.
const REFUSALS_MAX: usize = 8;

/// How long a client above the limit may take to hear that.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot serve on {endpoint}: {source}")]
    Listen {
        /// The address.
        endpoint: Endpoint,
        /// What the operating system says.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot start a thread that takes connections: {0}")]
    Thread(io::Error),
}

/// A running server of one export.
///
/// Dropping it stops it as [`Server::stop`] does.
pub struct Server {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    export: Export,
    limits: Limits,
    /// What the connections hold together.
    budget: Arc<Budget>,
    listener: Listener,
    stopping: AtomicBool,
    peers: Mutex<Vec<Peer>>,
    served: AtomicU64,
    /// Clients that are being told that they are one too many.
    refusals: Arc<AtomicUsize>,
}

struct Peer {
    socket: Weak<Socket>,
    thread: JoinHandle<Ending>,
}

impl Server {
    /// Listens, and serves the clients that connect from now on.
    ///
    /// # Errors
    /// The address cannot be had (another server listens there, no such directory, no right), or there is no thread.
    pub fn start(endpoint: &Endpoint, export: Export, limits: Limits) -> Result<Server, ServeError> {
        let listen = |source| ServeError::Listen { endpoint: endpoint.clone(), source };
        let listener = Listener::open(endpoint).map_err(listen)?;
        let endpoint = listener.endpoint().map_err(listen)?;
        let shared = Arc::new(Shared {
            export,
            limits,
            budget: Budget::new(limits.total_bytes, limits.patience),
            listener,
            stopping: AtomicBool::new(false),
            peers: Mutex::new(Vec::new()),
            served: AtomicU64::new(0),
            refusals: Arc::default(),
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("nbd-accept".to_owned()).spawn(move || shared.accept())
        };
        Ok(Server { endpoint, shared, acceptor: Some(acceptor.map_err(ServeError::Thread)?) })
    }

    /// Where the server listens, with the port that the system chose.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What a client is told to connect to.
    #[must_use]
    pub fn uri(&self) -> String {
        self.endpoint.uri(&self.shared.export.name)
    }

    /// Connections at this moment.
    #[must_use]
    pub fn connections(&self) -> usize {
        let mut peers = self.shared.peers();
        peers.retain(|peer| !peer.thread.is_finished());
        peers.len()
    }

    /// Connections taken since the start, those above the limit not counted.
    #[must_use]
    pub fn connections_served(&self) -> u64 {
        self.shared.served.load(Ordering::Relaxed)
    }

    /// Stops: takes no more connections and no more commands, waits until the target has answered what it has and the
    /// clients have taken it, for [`Limits::stopping`] at most, and joins all threads. Unanswered commands are waited
    /// for without limit, because the target promises to answer. A Unix socket's file is removed.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.listener.stop();
        // A thread's panic has been reported where it happened, and its connection is gone.
        let _ = acceptor.join();
        let peers: Vec<Peer> = self.shared.peers().drain(..).collect();
        for socket in peers.iter().filter_map(|peer| peer.socket.upgrade()) {
            socket.stop_reading();
        }
        let until = Instant::now() + self.shared.limits.stopping;
        while Instant::now() < until && peers.iter().any(|peer| !peer.thread.is_finished()) {
            thread::sleep(Duration::from_millis(1));
        }
        for peer in peers {
            if let Some(socket) = peer.socket.upgrade() {
                socket.shutdown();
            }
            let _ = peer.thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn peers(&self) -> MutexGuard<'_, Vec<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Shared>) {
        loop {
            let accepted = self.listener.accept();
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            match accepted {
                Ok(socket) => self.take(socket),
                // The client went before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => thread::sleep(EXHAUSTED_PAUSE),
            }
        }
    }

    fn take(self: &Arc<Shared>, socket: Socket) {
        let mut peers = self.peers();
        peers.retain(|peer| !peer.thread.is_finished());
        if peers.len() >= self.limits.connections {
            drop(peers);
            self.refuse(socket);
            return;
        }
        let socket = Arc::new(socket);
        let weak = Arc::downgrade(&socket);
        let shared = Arc::clone(self);
        let serve = move || serve_within(&socket, &shared.export, &shared.limits, &shared.budget, &shared.stopping);
        match thread::Builder::new().name("nbd-reader".to_owned()).spawn(serve) {
            Ok(thread) => {
                self.served.fetch_add(1, Ordering::Relaxed);
                peers.push(Peer { socket: weak, thread });
            }
            Err(_) => {
                drop(peers);
                thread::sleep(EXHAUSTED_PAUSE);
            }
        }
    }

    /// Tells a client that there is no place for it. Its thread ends by itself, soon.
    fn refuse(&self, socket: Socket) {
        let refusals = Arc::clone(&self.refusals);
        if refusals.fetch_add(1, Ordering::Relaxed) >= REFUSALS_MAX {
            refusals.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let export = self.export.clone();
        let (count, time) = (self.limits.connections, self.limits.handshake.min(REFUSAL_TIME));
        let ended = Arc::clone(&refusals);
        let refuse = move || {
            let why = format!("the server has {count} connections, which is its limit: close one, or try again later");
            refuse_stream(&socket, &export, time, &why);
            ended.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("nbd-refuse".to_owned()).spawn(refuse).is_err() {
            refusals.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
