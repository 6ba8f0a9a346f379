//! What the NBD tests share: a client of their own and targets that behave in ways a drive may.

pub(crate) mod client;
pub(crate) mod machine;
pub(crate) mod ram;
pub(crate) mod script;
pub(crate) mod targets;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ssdlab_live::Target;
use ssdlab_live::nbd::{Endpoint, Export, Limits, Server};
use tempfile::TempDir;

use client::Client;

pub(crate) const MIB: u64 = 1 << 20;

/// A server on a Unix socket in a directory that goes with it.
pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(crate) directory: TempDir,
}

impl Serving {
    pub(crate) fn new(target: Arc<dyn Target>) -> Serving {
        Serving::with(target, Limits::default())
    }

    pub(crate) fn with(target: Arc<dyn Target>, limits: Limits) -> Serving {
        let directory = TempDir::new().expect("a directory");
        let endpoint = Endpoint::Unix(directory.path().join("nbd.sock"));
        let server = Server::start(&endpoint, export(target), limits).expect("a server");
        Serving { server, directory }
    }

    pub(crate) fn ram(bytes: u64) -> Serving {
        Serving::new(Arc::new(ram::Ram::new(bytes)))
    }

    /// A connection that has sent and received nothing.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.server.endpoint())
    }

    /// A client in transmission, with structured replies and `base:allocation` or with neither.
    pub(crate) fn client(&self, structured: bool) -> Client {
        let mut client = self.connect();
        client.handshake(structured);
        client
    }

    /// Others are served: a fresh client writes and reads back.
    pub(crate) fn serves_others(&self) {
        let mut client = self.client(true);
        let data = client::pattern(7, 4096);
        client.write(0, &data);
        assert_eq!(client.read(0, 4096), data);
        client.disconnect();
    }
}

pub(crate) fn export(target: Arc<dyn Target>) -> Export {
    Export { target, name: "ssdlab".to_owned() }
}

/// Waits for something that another thread brings about; it takes as long as it takes, up to a bound no machine needs.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
