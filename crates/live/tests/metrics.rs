//! Metrics for Prometheus: idle connections keep no scrape out.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ssdlab_device::{Drive, Options};
use ssdlab_flash::Contents;
use ssdlab_host::Member;
use ssdlab_live::control::serve_metrics;
use ssdlab_live::{Engine, Pace};
use ssdlab_torture::configs;

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

#[test]
fn idle_connections_do_not_block_scrapes_however_many_there_are() {
    let options = Options { seed: 1, contents: Contents::Bytes };
    let drive = Drive::new(&configs::handful(), options).expect("a drive");
    let engine = Arc::new(Engine::new(Member::alone(drive, options), Pace::None).expect("an engine"));
    let address = serve_metrics("127.0.0.1:0".parse().expect("an address"), &engine).expect("a listener");
    let began = Instant::now();
    let mut idle = Vec::new();
    for count in [1, 20, 100] {
        while idle.len() < count {
            let mut stream = TcpStream::connect(address).expect("a connection");
            // Some say the beginning of a request, and no more.
            let _ = stream.write_all(b"GET /metr");
            idle.push(stream);
        }
        let answer = scrape(address);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{count} idle connections: {answer}");
        assert!(answer.contains("ssdlab_commands_total{command=\"read\"} 0"), "{answer}");
    }
    // A silent asker is waited for for 10 s: nobody waited for one.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}
