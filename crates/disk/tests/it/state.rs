//! Saved states: another disk goes on from one to the nanosecond, and no bytes make it panic.

use rand::RngExt as _;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Data;
use ssdlab_disk::{Disk, DiskConfig};
use ssdlab_flash::Contents;

use crate::support::{closed_loop, one, read, round, shipped, write};

fn used() -> (Disk, Vec<u8>) {
    let mut disk = Disk::new(&round(&["disk.read_cache.ahead=4k"]), Contents::Stamps);
    for index in 0..6 {
        let request = Request { at: disk.now(), ..write(index * 90, 5) };
        disk.submit(&request, Data::Stamp(index));
        assert!(disk.run_to_completion(Nanos::HORIZON));
        disk.completions().clear();
    }
    one(&mut disk, read(300, 4));
    disk.read_data().clear();
    let mut state = Vec::new();
    disk.save(&mut state).expect("memory takes it");
    (disk, state)
}

#[test]
fn a_disk_goes_on_from_a_saved_state_to_the_nanosecond() {
    let (mut first, state) = used();
    let mut second = Disk::load(first.config(), Contents::Stamps, &mut state.as_slice()).expect("it was saved");
    let run = |disk: &mut Disk| {
        let mut rng = ssdlab_base::rng(1, "state");
        let time = closed_loop(disk, 4, 500, || {
            let op = if rng.random_range(0..3) == 0 { Op::Read } else { Op::Write };
            Request { fua: rng.random_range(0..5) == 0, ..Request::new(op, rng.random_range(0..9_900), 8) }
        });
        (time, disk.counters(), std::mem::take(disk.read_data()))
    };
    assert_eq!(run(&mut first), run(&mut second));
}

#[test]
fn a_damaged_state_is_refused_or_a_disk_and_never_a_panic() {
    let (disk, state) = used();
    let load = |mut bytes: &[u8]| Disk::load(disk.config(), Contents::Stamps, &mut bytes).map(drop);
    for end in 0..state.len() {
        assert!(load(&state[..end]).is_err(), "cut at {end}");
    }
    let mut accepted = 0;
    for index in 0..state.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = state.clone();
            damaged[index] ^= flip;
            accepted += usize::from(load(&damaged).is_ok());
        }
    }
    assert!(accepted < state.len() * 3, "contents and counters may differ; a structure may not");
}

#[test]
fn a_state_of_another_disk_or_with_commands_is_refused() {
    let (mut disk, state) = used();
    let refused = |config: &DiskConfig, payload| {
        Disk::load(config, payload, &mut state.as_slice()).err().expect("refused").to_string()
    };
    let other = refused(&shipped(&[]), Contents::Stamps);
    assert!(
        other.contains("of a disk of 10000 sectors that keeps 8 bytes of each, and not 2930277168 and 8"),
        "{other}"
    );
    assert!(refused(disk.config(), Contents::Bytes).contains("and not 10000 and 512"));
    disk.submit(&Request { at: disk.now(), ..read(0, 1) }, Data::Nothing);
    let error = disk.save(&mut Vec::new()).expect_err("a command is outstanding");
    assert_eq!(error.to_string(), "the disk has 1 commands outstanding; it is saved without");
}
