//! Recordings of served drives: only of control sockets, never over an earlier one, and with a word when the disk is full.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use crate::support::{Bench, done};

/// A server that is killed with its test.
struct Served(Child);

impl Served {
    /// Serves `tiny.toml`, until it listens.
    fn start(bench: &Bench, more: &[&str]) -> Served {
        let serve = ["serve", "-d", "tiny.toml", "--image", "image", "--nbd", "unix:nbd.sock", "--time-scale", "none"];
        let mut child = bench
            .command(&[&serve[..], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ssdlab starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.starts_with("NBD: "))), "it does not serve");
        // What it says later fits the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Served(child)
    }

    /// Cuts the power; what was said on standard error.
    fn kill(mut self) -> String {
        self.0.kill().expect("it ran");
        let child = std::mem::replace(&mut self.0, std::process::Command::new("true").spawn().expect("a process"));
        done(child.wait_with_output().expect("it ends")).stderr
    }

    /// Stops it; status and what was said on standard error.
    fn stop(mut self, bench: &Bench) -> (i32, String) {
        let mut control = std::os::unix::net::UnixStream::connect(bench.path("image/control.sock")).expect("a socket");
        control.write_all(b"stop\n").expect("it listens");
        let child = std::mem::replace(&mut self.0, std::process::Command::new("true").spawn().expect("a process"));
        let ended = done(child.wait_with_output().expect("it ends"));
        (ended.status, ended.stderr)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_socket_that_is_no_control_socket_is_refused() {
    let bench = Bench::new();
    let served = Served::start(&bench, &[]);
    let expected = ["nbd.sock: it answered 'NBDMAGIC", "expected the control socket"];
    bench.refuses(&["record", "--seconds", "1", "-o", "out.csv", "nbd.sock"], &expected);
    assert!(!bench.path("out.csv").exists());
    bench.refuses(&["stat", "-n", "1", "nbd.sock"], &expected);
    bench.refuses(&["stat", "--smart", "nbd.sock"], &expected);
    drop(served);
    // One that hangs up at once.
    let listener = UnixListener::bind(bench.path("other.sock")).expect("a socket");
    let other = std::thread::spawn(move || drop(listener.accept()));
    let ended = bench.ssdlab(&["record", "--seconds", "1", "-o", "out.csv", "other.sock"]);
    assert_eq!((ended.status, bench.path("out.csv").exists()), (1, false), "{}", ended.stderr);
    other.join().expect("no panic");
}

#[test]
fn a_restart_records_beside_what_was_recorded_before() {
    let bench = Bench::new();
    Served::start(&bench, &["--record", "r.csv"]).kill();
    bench.write("r.csv", "time_us,op,offset_bytes,length_bytes\n0.000,W,0,4096\n");
    let told = Served::start(&bench, &["--record", "r.csv"]).kill();
    assert!(told.contains("note: r.csv holds an earlier recording; this one is r-2.csv"), "{told}");
    assert!(bench.read("r.csv").contains("0.000,W,0,4096"));
    assert!(bench.path("r-2.csv").exists());
    let served = Served::start(&bench, &[]);
    let record = ["record", "--seconds", "0.2", "-o", "r.csv", "image"];
    bench.refuses(&record, &["--out r.csv", "is there already", "never written over"]);
    let told = bench.succeeds(&["record", "--seconds", "0.2", "-o", "new.csv", "image"]);
    assert_eq!(told.stdout, "recorded 0 requests: new.csv\n");
    assert_eq!(bench.read("new.csv"), "time_us,op,offset_bytes,length_bytes\n");
    drop(served);
}

#[test]
fn a_full_disk_is_told_while_the_drive_is_served() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--record", "/dev/full"]);
    // It is served on: the control socket answers.
    bench.succeeds(&["stat", "-n", "1", "--json", "image"]);
    let (status, told) = served.stop(&bench);
    assert!(told.starts_with("warning: --record /dev/full: "), "{told}");
    assert!(told.contains("the recording ends here, incomplete, and the drive is served on"), "{told}");
    assert_eq!(status, 1, "{told}");
    let served = Served::start(&bench, &[]);
    let ended = bench.ssdlab(&["record", "--seconds", "60", "-o", "/dev/full", "image"]);
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("--out /dev/full: "), "{}", ended.stderr);
    drop(served);
}
