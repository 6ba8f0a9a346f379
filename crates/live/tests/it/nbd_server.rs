//! Where a server listens, and how it stops.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ssdlab_live::Target;
use ssdlab_live::nbd::{Endpoint, EndpointError, Limits, Server};

use crate::support::client::{Client, FLUSH, Outcome, READ, Reply, WRITE, pattern, request_bytes};
use crate::support::ram::Ram;
use crate::support::targets::Held;
use crate::support::{MIB, Serving, eventually, export};

fn start(endpoint: &Endpoint) -> Result<Server, String> {
    Server::start(endpoint, export(Arc::new(Ram::new(MIB))), Limits::default()).map_err(|error| error.to_string())
}

#[test]
fn endpoints_are_read_as_they_are_written() {
    for (text, written, uri) in [
        ("unix:/tmp/drive.sock", "unix:/tmp/drive.sock", "nbd+unix:///x?socket=/tmp/drive.sock"),
        ("unix:a b&c", "unix:a b&c", "nbd+unix:///x?socket=a%20b%26c"),
        ("tcp:10809", "tcp:127.0.0.1:10809", "nbd://127.0.0.1:10809/x"),
        ("tcp:127.0.0.1:1", "tcp:127.0.0.1:1", "nbd://127.0.0.1:1/x"),
        ("tcp:127.9.9.9:1", "tcp:127.9.9.9:1", "nbd://127.9.9.9:1/x"),
        ("tcp:localhost:2", "tcp:127.0.0.1:2", "nbd://127.0.0.1:2/x"),
        ("tcp:[::1]:3", "tcp:[::1]:3", "nbd://[::1]:3/x"),
    ] {
        let endpoint = Endpoint::parse(text, false).expect(text);
        assert_eq!(endpoint.to_string(), written);
        assert_eq!(endpoint.uri("x"), uri);
        assert_eq!(Endpoint::parse(&endpoint.to_string(), false).as_ref(), Ok(&endpoint));
    }
}

#[test]
fn what_is_no_endpoint_is_refused_with_a_sentence() {
    for (text, sentence) in [
        ("", "found '', expected unix:PATH or tcp:PORT or tcp:ADDRESS:PORT"),
        ("/tmp/x", "found '/tmp/x', expected unix:PATH or tcp:PORT or tcp:ADDRESS:PORT"),
        ("unix:", "'unix:' lacks the path of the socket, as in unix:/tmp/drive.sock"),
        ("tcp:", "found '', expected tcp:PORT, tcp:127.0.0.1:PORT or tcp:[::1]:PORT"),
        ("tcp:70000", "found '70000', expected tcp:PORT, tcp:127.0.0.1:PORT or tcp:[::1]:PORT"),
        ("tcp:::1", "found '::1', expected tcp:PORT, tcp:127.0.0.1:PORT or tcp:[::1]:PORT"),
        ("tcp:a.org:1", "found 'a.org:1', expected tcp:PORT, tcp:127.0.0.1:PORT or tcp:[::1]:PORT"),
    ] {
        assert_eq!(Endpoint::parse(text, true).expect_err(text).to_string(), sentence);
    }
    let long = format!("unix:/{}", "x".repeat(107));
    assert!(matches!(Endpoint::parse(&long, true), Err(EndpointError::LongPath(108, _))));
    assert!(Endpoint::parse(&long[..long.len() - 1], true).is_ok());
}

#[test]
fn a_socket_in_a_folder_that_is_not_there_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: &str| Endpoint::Unix(folder.path().join(path)).check();
    assert_eq!(at("drive.sock"), Ok(()));
    let missing = at("missing/drive.sock").expect_err("there is no such folder").to_string();
    assert!(missing.starts_with("there is no folder ") && missing.contains("missing"), "{missing}");
    assert_eq!(Endpoint::Unix("drive.sock".into()).check(), Ok(()));
}

#[test]
fn addresses_that_others_reach_need_to_be_allowed() {
    for text in ["tcp:0.0.0.0:1", "tcp:192.168.1.1:1", "tcp:[::]:1", "tcp:[fe80::1]:1"] {
        assert!(matches!(Endpoint::parse(text, false), Err(EndpointError::Remote(_))), "{text}");
        assert!(matches!(Endpoint::parse(text, true), Ok(Endpoint::Tcp(_))), "{text}");
    }
}

#[test]
fn tcp_serves_on_both_loopbacks() {
    for address in ["tcp:0", "tcp:[::1]:0"] {
        let server = match start(&Endpoint::parse(address, false).expect("an address")) {
            Ok(server) => server,
            Err(error) if address.contains("::1") => {
                eprintln!("SKIPPED: no IPv6 on this machine: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(!server.endpoint().to_string().ends_with(":0"), "the port that the system chose");
        let mut client = Client::connect(server.endpoint());
        client.handshake(true);
        let data = pattern(1, 1 << 19);
        client.write(512, &data);
        assert_eq!(client.read(512, 1 << 19), data);
        client.disconnect();
        let taken = start(server.endpoint()).err().expect("the port is taken");
        assert!(taken.starts_with(&format!("cannot serve on {}: ", server.endpoint())), "{taken}");
        server.stop();
    }
}

#[test]
fn a_unix_socket_is_its_owners_and_goes_with_the_server() {
    let serving = Serving::ram(MIB);
    let path = serving.directory.path().join("nbd.sock");
    assert_eq!(path.metadata().expect("the socket").permissions().mode() & 0o777, 0o600);
    assert_eq!(serving.server.uri(), format!("nbd+unix:///ssdlab?socket={}", path.display()));
    serving.serves_others();
    serving.server.stop();
    assert!(!path.exists());
}

#[test]
fn a_dead_servers_socket_is_replaced_and_a_live_ones_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("nbd.sock");
    drop(UnixListener::bind(&path).expect("a listener"));
    assert!(path.exists(), "a dead server leaves its socket");
    let endpoint = Endpoint::Unix(path.clone());
    let server = start(&endpoint).expect("a server");
    let refused = start(&endpoint).err().expect("a server is there");
    assert_eq!(refused, format!("cannot serve on {endpoint}: another server is listening on that socket"));
    let mut client = Client::connect(server.endpoint());
    client.handshake(true);
    client.disconnect();

    // A socket that took the place belongs to another server.
    std::fs::remove_file(&path).expect("a file");
    let other = UnixListener::bind(&path).expect("a listener");
    server.stop();
    assert!(path.exists());
    drop(other);
}

#[test]
fn of_servers_that_start_at_once_on_a_dead_socket_one_wins() {
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = Endpoint::Unix(directory.path().join("nbd.sock"));
    for _ in 0..20 {
        drop(UnixListener::bind(directory.path().join("nbd.sock")).expect("a listener"));
        let started: Vec<Server> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| start(&endpoint))).collect();
            starts.into_iter().filter_map(|start| start.join().expect("no panic").ok()).collect()
        });
        assert_eq!(started.len(), 1);
        let mut client = Client::connect(&endpoint);
        client.handshake(false);
        client.disconnect();
    }
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("precious");
    std::fs::write(&path, "data").expect("a file");
    let error = start(&Endpoint::Unix(path.clone())).err().expect("a file is there");
    assert!(error.ends_with("there is a file of that name, and it is no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "data");
    let nowhere: PathBuf = directory.path().join("no/such/directory");
    assert!(start(&Endpoint::Unix(nowhere)).is_err());
}

#[test]
fn a_stop_answers_what_is_outstanding_and_takes_no_more() {
    let target = Arc::new(Held::new(16 * MIB));
    let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>);
    let path = serving.directory.path().join("nbd.sock");
    let mut client = serving.client(true);
    for at in 0..30 {
        client.request(READ, 0, at * 65536, 65536, &[]);
    }
    eventually("all commands", || target.held() == 30);
    let Serving { server, directory } = serving;
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| server.stop());
        // The server stops reading; from then on the client cannot send.
        eventually("the stop", || client.try_send(&request_bytes(FLUSH, 0, 999, 0, 0)).is_err());
        assert!(!stop.is_finished(), "commands are still with the target");
        target.release();
        let mut data = 0;
        while data < 30 {
            match client.reply() {
                // What was sent before the stop, or refused by it.
                Reply { handle: 999, .. } => {}
                Reply { outcome: Outcome::Data { .. }, .. } => data += 1,
                reply => panic!("{reply:?}"),
            }
        }
        stop.join().expect("no panic");
    });
    assert!(!path.exists());
    drop(directory);
    assert_eq!(Arc::strong_count(&target), 1, "nothing of the server is left");
}

#[test]
fn a_stop_waits_for_no_client() {
    let limits = Limits { stopping: Duration::from_millis(50), ..Limits::default() };
    let target = Arc::new(Ram::new(64 * MIB));
    let serving = Serving::with(Arc::clone(&target) as Arc<dyn Target>, limits);
    let mut silent = serving.connect();
    silent.greet(3);
    let idle = serving.client(true);
    let mut half = serving.client(true);
    half.send_bytes(&request_bytes(WRITE, 0, 1, 0, 1 << 20));
    let mut never_reads = serving.client(true);
    for _ in 0..200 {
        never_reads.request(READ, 0, 0, 1 << 20, &[]);
    }
    serving.serves_others();
    drop(serving);
    assert_eq!(Arc::strong_count(&target), 1, "nothing of the server is left");
    drop((silent, idle, half, never_reads));
}
