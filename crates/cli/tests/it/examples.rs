//! The examples of the API under `examples/` run from the root of the repository, print what they promise, and are short.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An example may have so many lines.
const LINES_MAX: usize = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where `cargo test` has put the examples: beside the folder of the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.parent().and_then(Path::parent).expect("it is in target/PROFILE/deps").join("examples").join(name)
}

fn shows(name: &str, expected: &[&str]) {
    let source = std::fs::read_to_string(root().join("examples").join(format!("{name}.rs"))).expect("the example");
    let lines = source.lines().count();
    assert!(lines <= LINES_MAX, "examples/{name}.rs has {lines} lines, not {LINES_MAX} at most");
    let program = program(name);
    assert!(program.exists(), "{} is not built: cargo test -p ssdlab-cli without --test builds it", program.display());
    let output = Command::new(program).current_dir(root()).output().expect("the example starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} ended with {}:\n{stdout}{stderr}", output.status);
    for text in expected {
        assert!(stdout.contains(text), "{name} does not print '{text}':\n{stdout}");
    }
}

#[test]
fn an_experiment_prints_its_table() {
    shows("run_an_experiment", &["demo-slc", "write amplification"]);
}

#[test]
fn a_policy_of_ones_own_stands_beside_greedy() {
    shows("write_a_policy", &["greedy", "among-the-oldest", "write amplification"]);
}

#[test]
fn a_placement_of_ones_own_stands_beside_stream_hint() {
    shows("place_writes", &["stream-hint", "journal", "write amplification"]);
}

#[test]
fn a_drive_comes_back_after_a_power_cut() {
    shows("cut_the_power", &["recovery read ", "flushed before the cut: 1; not flushed: "]);
}
