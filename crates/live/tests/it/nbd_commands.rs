//! Commands and their errors, with simple and with structured replies, on targets that answer at once and later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rand::Rng as _;
use ssdlab_base::{Op, rng};
use ssdlab_live::Target;

use crate::support::client::{
    BLOCK_STATUS, CACHE, Client, DF, DISC, EINVAL, EIO, ENOSPC, EOVERFLOW, EPERM, ESHUTDOWN, FAST_ZERO, FLUSH, FUA,
    NO_HOLE, Outcome, READ, REQ_ONE, TRIM, WRITE, WRITE_ZEROES, pattern, request_bytes,
};
use crate::support::ram::Ram;
use crate::support::targets::{Failing, Later};
use crate::support::{MIB, Serving};

fn targets(bytes: u64) -> [Arc<dyn Target>; 2] {
    [Arc::new(Ram::new(bytes)), Arc::new(Later::new(bytes, 3))]
}

/// Every kind of client on every kind of target.
fn everywhere(bytes: u64, test: impl Fn(&Serving, &mut Client)) {
    for target in targets(bytes) {
        let serving = Serving::new(target);
        for structured in [false, true] {
            test(&serving, &mut serving.client(structured));
        }
    }
}

#[test]
fn what_is_written_is_read_at_any_length_and_alignment_of_512() {
    everywhere(64 * MIB, |_, client| {
        for (offset, length) in [(0, 512), (512, 1536), (4096, 4096), (65536 - 512, 65536), (512, 65536 + 512)] {
            let data = pattern(length, length as usize);
            client.write(offset, &data);
            assert_eq!(client.read(offset, length as u32), data);
        }
        let longest = pattern(9, 32 << 20);
        client.write(512, &longest);
        assert_eq!(client.read(512, 32 << 20), longest);
        client.write(64 * MIB - 512, &[3; 512]);
        assert_eq!(client.read(64 * MIB - 1024, 1024)[512..], [3; 512]);
    });
}

#[test]
fn trims_and_zeroes_read_as_zeroes_and_may_be_longer_than_a_write() {
    everywhere(128 * MIB, |_, client| {
        for (kind, flags) in [
            (TRIM, 0),
            (TRIM, FUA),
            (WRITE_ZEROES, 0),
            (WRITE_ZEROES, FUA),
            (WRITE_ZEROES, NO_HOLE),
            (WRITE_ZEROES, FAST_ZERO),
            (WRITE_ZEROES, NO_HOLE | FAST_ZERO | FUA),
        ] {
            client.write(MIB, &[0xff; 8192]);
            assert_eq!(client.ask(kind, flags, MIB + 512, 4096, &[]), Outcome::Done);
            let data = client.read(MIB, 8192);
            assert_eq!(data[..512], [0xff; 512]);
            assert_eq!(data[512..4608], [0; 4096]);
            assert_eq!(data[4608..], [0xff; 3584]);
            assert_eq!(client.ask(kind, flags, 0, 128 << 20, &[]), Outcome::Done);
            assert_eq!(client.read(MIB, 8192), [0; 8192]);
        }
    });
}

#[test]
fn flush_and_cache_succeed_and_fua_is_taken_everywhere() {
    everywhere(MIB, |_, client| {
        assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), Outcome::Done);
        assert_eq!(client.ask(FLUSH, FUA, 0, 0, &[]), Outcome::Done);
        assert_eq!(client.ask(CACHE, 0, 0, 1 << 20, &[]), Outcome::Done);
        assert_eq!(client.ask(CACHE, FUA, 512, 512, &[]), Outcome::Done);
        assert_eq!(client.ask(WRITE, FUA, 0, 512, &[8; 512]), Outcome::Done);
        assert!(matches!(client.ask(READ, FUA, 0, 512, &[]), Outcome::Data { data, .. } if data == [8; 512]));
    });
}

#[test]
fn commands_reach_the_target_as_they_were_asked() {
    let target = Arc::new(Failing { asked: Mutex::new(Vec::new()) });
    let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>);
    let mut client = serving.client(true);
    let longest = u32::MAX - 511;
    for (kind, flags, offset, length, payload) in [
        (READ, FUA, 1 << 39, 512, 0),
        (WRITE, 0, 4096, 1024, 1024),
        (WRITE, FUA, 4096, 512, 512),
        (TRIM, 0, 4096, longest, 0),
        (TRIM, FUA, 8192, 512, 0),
        (WRITE_ZEROES, NO_HOLE, (1 << 40) - 512, 512, 0),
        (WRITE_ZEROES, FUA, 4096, longest, 0),
        (CACHE, 0, 4096, 512, 0),
    ] {
        client.request(kind, flags, offset, length, &vec![1; payload]);
        assert!(!matches!(client.reply().outcome, Outcome::Error { .. }));
    }
    let sectors = u64::from(longest) / 512;
    let expected = [
        (Op::Read, false, 1 << 30, 1),
        (Op::Write, false, 8, 2),
        (Op::Write, true, 8, 1),
        (Op::Trim, false, 8, sectors),
        (Op::Trim, true, 16, 1),
        (Op::WriteZeroes, false, (1 << 31) - 1, 1),
        (Op::WriteZeroes, true, 8, sectors),
    ];
    assert_eq!(*target.asked.lock().expect("no panic"), expected);
    let status = client.ask(BLOCK_STATUS, 0, 512, longest, &[]);
    assert_eq!(status, Outcome::Extents(vec![(longest, 0)]));
}

#[test]
fn block_status_tells_data_from_holes() {
    for target in targets(MIB) {
        let serving = Serving::new(target);
        let mut client = serving.client(true);
        assert_eq!(client.ask(BLOCK_STATUS, 0, 0, 1 << 20, &[]), Outcome::Extents(vec![(1 << 20, 3)]));
        client.write(4096, &[1; 4096]);
        client.write(16384, &[1; 512]);
        let rest = (1 << 20) - 16896;
        let runs = vec![(4096, 3), (4096, 0), (8192, 3), (512, 0), (rest, 3)];
        assert_eq!(client.ask(BLOCK_STATUS, 0, 0, 1 << 20, &[]), Outcome::Extents(runs));
        assert_eq!(client.ask(BLOCK_STATUS, REQ_ONE, 4608, 65536, &[]), Outcome::Extents(vec![(3584, 0)]));
        assert_eq!(client.ask(TRIM, 0, 0, 1 << 20, &[]), Outcome::Done);
        assert_eq!(client.ask(BLOCK_STATUS, FUA, 4096, 4096, &[]), Outcome::Extents(vec![(4096, 3)]));
    }
}

#[test]
fn block_status_of_a_shredded_drive_is_bounded_and_goes_on_where_it_stopped() {
    let serving = Serving::ram(16 * MIB);
    let mut client = serving.client(true);
    for at in (0..16 * MIB).step_by(1024) {
        client.request(WRITE, 0, at, 512, &[1; 512]);
    }
    for _ in 0..16 * 1024 {
        assert_eq!(client.reply().outcome, Outcome::Done);
    }
    let mut at = 0;
    while at < 16 * MIB {
        let Outcome::Extents(runs) = client.ask(BLOCK_STATUS, 0, at, (16 * MIB - at) as u32, &[]) else { panic!() };
        assert!(!runs.is_empty());
        assert!(runs.len() <= 4096, "{} descriptors", runs.len());
        for (length, flags) in runs {
            assert_eq!((length, flags), (512, if at % 1024 == 0 { 0 } else { 3 }));
            at += u64::from(length);
        }
    }
}

#[test]
fn errors_of_the_protocol_leave_the_connection_as_it_was() {
    everywhere(MIB, |serving, client| {
        let end = MIB;
        for kind in [READ, WRITE, TRIM, WRITE_ZEROES, CACHE] {
            let payload = |length: usize| if kind == WRITE { vec![1; length] } else { Vec::new() };
            let beyond = if matches!(kind, WRITE | WRITE_ZEROES) { ENOSPC } else { EINVAL };
            assert_eq!(client.error(kind, 0, 1, 512, &payload(512)), EINVAL, "unaligned offset, command {kind}");
            assert_eq!(client.error(kind, 0, 0, 513, &payload(513)), EINVAL, "unaligned length, command {kind}");
            assert_eq!(client.error(kind, 0, 0, 0, &[]), EINVAL, "no length, command {kind}");
            assert_eq!(client.error(kind, 0, end, 512, &payload(512)), beyond, "behind the end, command {kind}");
            assert_eq!(client.error(kind, 0, end - 512, 1024, &payload(1024)), beyond, "over the end, command {kind}");
            let last = u64::MAX - 511;
            assert_eq!(client.error(kind, 0, last, 1024, &payload(1024)), beyond, "around 2^64, command {kind}");
            assert_eq!(client.error(kind, 1 << 5, 0, 512, &payload(512)), EINVAL, "unknown flag, command {kind}");
            assert_eq!(client.error(kind, REQ_ONE, 0, 512, &payload(512)), EINVAL, "another's flag, command {kind}");
        }
        for kind in [8, 9, 255, u16::MAX] {
            assert_eq!(client.error(kind, 0, 0, 512, &[]), EINVAL, "unknown command {kind}");
        }
        assert_eq!(client.error(FLUSH, 0, 512, 0, &[]), EINVAL);
        assert_eq!(client.error(FLUSH, 0, 0, 512, &[]), EINVAL);
        assert_eq!(client.error(FLUSH, NO_HOLE, 0, 0, &[]), EINVAL);
        assert_eq!(client.error(TRIM, NO_HOLE, 0, 512, &[]), EINVAL);
        assert_eq!(client.error(BLOCK_STATUS, 0, 256, 512, &[]), EINVAL);
        assert_eq!(client.error(BLOCK_STATUS, 0, end, 512, &[]), EINVAL);
        client.write(0, &[5; 512]);
        assert_eq!(client.read(0, 512), [5; 512]);
        serving.serves_others();
    });
}

#[test]
fn do_not_fragment_is_for_structured_reads() {
    let serving = Serving::ram(MIB);
    let mut client = serving.client(true);
    assert!(matches!(client.ask(READ, DF, 0, 65536, &[]), Outcome::Data { data, .. } if data.len() == 65536));
    assert_eq!(client.error(READ, DF, 0, u32::MAX - 511, &[]), EOVERFLOW);
    assert_eq!(client.error(WRITE, DF, 0, 512, &[0; 512]), EINVAL);
    assert_eq!(serving.client(false).error(READ, DF, 0, 512, &[]), EINVAL);
}

#[test]
fn block_status_without_a_context_is_invalid() {
    let serving = Serving::ram(MIB);
    assert_eq!(serving.client(false).error(BLOCK_STATUS, 0, 0, 512, &[]), EINVAL);
}

#[test]
fn oversized_reads_fail_and_oversized_writes_are_skipped() {
    everywhere(64 * MIB, |_, client| {
        assert_eq!(client.error(READ, 0, 0, (32 << 20) + 512, &[]), EINVAL);
        assert_eq!(client.error(READ, 0, 0, u32::MAX - 511, &[]), EINVAL);
        let payload = vec![7; (32 << 20) + 512];
        assert_eq!(client.error(WRITE, 0, 0, payload.len() as u32, &payload), EINVAL);
        assert_eq!(client.read(0, 512), [0; 512]);
    });
}

#[test]
fn failures_of_the_target_are_the_protocols_errors() {
    for structured in [false, true] {
        let serving = Serving::new(Arc::new(Failing { asked: Mutex::new(Vec::new()) }));
        let mut client = serving.client(structured);
        for (sector, errno) in [EIO, ENOSPC, EPERM, EINVAL, ESHUTDOWN].into_iter().enumerate() {
            let offset = sector as u64 * 512;
            assert_eq!(client.error(READ, 0, offset, 512, &[]), errno);
            assert_eq!(client.error(WRITE, FUA, offset, 512, &[0; 512]), errno);
            assert_eq!(client.error(TRIM, 0, offset, 512, &[]), errno);
            assert_eq!(client.error(WRITE_ZEROES, 0, offset, 512, &[]), errno);
        }
        assert_eq!(client.error(FLUSH, 0, 0, 0, &[]), EIO);
        assert_eq!(client.read(8192, 512), [0; 512]);
    }
}

#[test]
fn a_disconnect_waits_for_what_is_outstanding() {
    for target in targets(64 * MIB) {
        let serving = Serving::new(target);
        let mut client = serving.client(true);
        let mut handles: Vec<u64> = (0..100).map(|at| client.request(READ, 0, at * 65536, 65536, &[])).collect();
        client.request(DISC, 0, 0, 0, &[]);
        for _ in 0..100 {
            let reply = client.reply();
            let at = handles.iter().position(|handle| *handle == reply.handle).expect("asked and not answered before");
            handles.swap_remove(at);
        }
        assert!(client.is_closed());
    }
}

#[test]
fn a_client_that_stops_sending_still_gets_its_answers() {
    for target in targets(64 * MIB) {
        let serving = Serving::new(target);
        let mut client = serving.client(false);
        for at in 0..50 {
            client.request(READ, 0, at * 65536, 65536, &[]);
        }
        client.stop_sending();
        for _ in 0..50 {
            assert!(matches!(client.reply().outcome, Outcome::Data { .. }));
        }
        assert!(client.is_closed());
    }
}

#[test]
fn handles_are_the_clients_own_even_when_it_repeats_them() {
    for target in targets(MIB) {
        let serving = Serving::new(target);
        let mut client = serving.client(true);
        for _ in 0..20 {
            client.send_bytes(&request_bytes(FLUSH, 0, u64::MAX, 0, 0));
        }
        for _ in 0..20 {
            assert_eq!(client.reply().handle, u64::MAX);
        }
    }
}

/// Random commands on a few clients of one drive, each in its own range, many at a time: every one is answered exactly
/// once, and reads bring what a plain array says.
#[test]
fn random_commands_in_flight_agree_with_a_model() {
    const RANGE: u64 = 2 * MIB;
    const SLOTS: u64 = 32;
    for (seed, target) in targets(4 * RANGE).into_iter().enumerate() {
        let serving = Serving::new(target);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let serving = &serving;
                scope.spawn(move || {
                    let mut random = rng(seed as u64 * 100 + number, "commands");
                    let mut client = serving.client(number % 2 == 0);
                    let mut model = vec![0_u8; RANGE as usize];
                    let mut in_flight: HashMap<u64, (u64, Option<Vec<u8>>)> = HashMap::new();
                    let mut busy = [false; SLOTS as usize];
                    for _ in 0..3000 {
                        let slot = random.next_u64() % SLOTS;
                        if busy[slot as usize] || in_flight.len() > 20 {
                            let reply = client.reply();
                            let (slot, expected) = in_flight.remove(&reply.handle).expect("asked once");
                            busy[slot as usize] = false;
                            match (reply.outcome, expected) {
                                (Outcome::Data { data, .. }, Some(expected)) => assert!(data == expected),
                                (outcome, expected) => {
                                    assert_eq!((outcome, expected), (Outcome::Done, None));
                                }
                            }
                            continue;
                        }
                        // One request at a time in each slot, so that their order is the model's.
                        let size = RANGE / SLOTS;
                        let sectors = 1 + random.next_u64() % (size / 512);
                        let first = random.next_u64() % (size / 512 - sectors + 1);
                        let start = slot * size + first * 512;
                        let length = sectors * 512;
                        let range = start as usize..(start + length) as usize;
                        let offset = number * RANGE + start;
                        let (handle, expected) = match random.next_u64() % 5 {
                            0 | 1 => {
                                let data = pattern(random.next_u64(), length as usize);
                                model[range].copy_from_slice(&data);
                                (client.request(WRITE, 0, offset, length as u32, &data), None)
                            }
                            2 | 3 => {
                                let handle = client.request(READ, 0, offset, length as u32, &[]);
                                (handle, Some(model[range].to_vec()))
                            }
                            _ => {
                                model[range].fill(0);
                                (client.request(TRIM, 0, offset, length as u32, &[]), None)
                            }
                        };
                        busy[slot as usize] = true;
                        in_flight.insert(handle, (slot, expected));
                    }
                    while !in_flight.is_empty() {
                        let reply = client.reply();
                        in_flight.remove(&reply.handle).expect("asked once");
                    }
                    assert!(client.read(number * RANGE, RANGE as u32) == model);
                    client.disconnect();
                });
            }
        });
    }
}
