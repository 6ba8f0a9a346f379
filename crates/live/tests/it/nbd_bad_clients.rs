//! Clients that break the rules: each gets the protocol's error or is shut out, frees what it held, and costs the
//! others nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::Rng as _;
use ssdlab_base::rng;
use ssdlab_live::nbd::Limits;
use ssdlab_live::{Command, Extent, Target};

use crate::support::client::{
    Client, DISC, EINVAL, FLUSH, OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPT_STRUCTURED_REPLY, Outcome,
    READ, REP_ACK, REP_ERR_POLICY, TRIM, WRITE, pattern, request_bytes,
};
use crate::support::targets::{Held, Later};
use crate::support::{self, MIB, Serving, eventually};

/// All connections are gone, and what they held.
fn all_freed(serving: &Serving) {
    eventually("the connections' end", || serving.server.connections() == 0);
}

#[test]
fn unknown_client_flags_and_a_wrong_option_magic_end_the_session() {
    let serving = Serving::ram(MIB);
    for flags in [4, 0x8000_0003, u32::MAX] {
        let mut client = serving.connect();
        client.greet(flags);
        assert!(client.is_closed());
    }
    let mut client = serving.connect();
    client.greet(3);
    client.send_bytes(b"IHAVEOPS\0\0\0\x07\0\0\0\0");
    assert!(client.is_closed());
    serving.serves_others();
    all_freed(&serving);
}

#[test]
fn garbage_in_the_handshake_and_in_transmission_disturbs_nobody() {
    let serving = Serving::ram(MIB);
    let mut witness = serving.client(true);
    let mut random = rng(1, "garbage");
    for round in 0..200 {
        let mut client = if round % 2 == 0 { serving.connect() } else { serving.client(round % 4 == 1) };
        let mut garbage = vec![0; 1 + (random.next_u64() % 5000) as usize];
        random.fill_bytes(&mut garbage);
        // The server may have closed the connection before it is all sent.
        let _ = client.try_send(&garbage);
        drop(client);
        witness.write(0, &[round as u8; 512]);
        assert_eq!(witness.read(0, 512), [round as u8; 512]);
    }
    witness.disconnect();
    serving.serves_others();
    all_freed(&serving);
}

#[test]
fn a_wrong_magic_ends_the_connection_when_what_came_before_is_answered() {
    for target in [Arc::new(Later::new(16 * MIB, 5)) as Arc<dyn Target>, Arc::new(support::ram::Ram::new(16 * MIB))] {
        let serving = Serving::new(target);
        let mut client = serving.client(true);
        for at in 0..20 {
            client.request(READ, 0, at * 65536, 65536, &[]);
        }
        client.send_bytes(&[0x25; 28]);
        for _ in 0..20 {
            assert!(matches!(client.reply().outcome, Outcome::Data { .. }));
        }
        assert!(client.is_closed());
        serving.serves_others();
    }
}

#[test]
fn the_handshake_has_a_time_limit_even_for_a_client_that_drips() {
    let limits = Limits { handshake: Duration::from_millis(100), ..Limits::default() };
    let serving = Serving::with(Arc::new(support::ram::Ram::new(MIB)), limits);
    let mut silent = serving.connect();
    let mut dripping = serving.connect();
    silent.greet(3);
    dripping.greet(3);
    eventually("the end of a client that drips", || {
        std::thread::sleep(Duration::from_millis(2));
        dripping.try_send(b"I").is_err()
    });
    assert!(silent.is_closed());
    all_freed(&serving);
    // In transmission a client may be silent as long as it likes.
    let mut idle = serving.client(true);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(idle.read(0, 512), [0; 512]);
}

#[test]
fn half_sent_requests_cost_nobody_else_anything() {
    let serving = Serving::ram(64 * MIB);
    let halves = [
        request_bytes(READ, 0, 1, 0, 512)[..27].to_vec(),
        request_bytes(WRITE, 0, 1, 0, 512),
        [&request_bytes(WRITE, 0, 1, 0, 512)[..], &[1; 511]].concat(),
        [&request_bytes(WRITE, 0, 1, 0, 32 << 20)[..], &[1; 1 << 20]].concat(),
        // Too long, out of range, and not aligned: to be skipped.
        [&request_bytes(WRITE, 0, 1, 0, u32::MAX)[..], &[1; 1 << 20]].concat(),
    ];
    let clients: Vec<Client> = halves
        .iter()
        .map(|half| {
            let mut client = serving.client(true);
            client.send_bytes(half);
            client
        })
        .collect();
    serving.serves_others();
    drop(clients);
    all_freed(&serving);
    serving.serves_others();
    let mut client = serving.client(false);
    assert_eq!(client.read(512 * 1024, 512), [0; 512], "half a write is no write");
}

#[test]
fn what_follows_a_half_sent_request_is_taken_when_the_rest_comes() {
    let serving = Serving::ram(64 * MIB);
    let mut client = serving.client(true);
    for length in [512, 65536, 65536 + 512, 8 << 20] {
        let data = pattern(length as u64, length);
        client.send_bytes(&request_bytes(WRITE, 0, 77, 4096, length as u32));
        client.send_bytes(&data[..length / 3]);
        serving.serves_others();
        client.send_bytes(&data[length / 3..]);
        assert_eq!(client.reply().outcome, Outcome::Done);
        assert_eq!(client.read(4096, length as u32), data);
    }
}

/// A client that asks for far more than it reads is not read from any more; when it reads at last it gets everything.
#[test]
fn a_client_that_never_reads_stalls_itself_alone() {
    let limits = Limits { pending_bytes: 4 << 20, ..Limits::default() };
    let target = Arc::new(Held::new(16 * MIB));
    target.release();
    let serving = Serving::with(Arc::clone(&target) as Arc<dyn Target>, limits);
    let mut client = serving.client(true);
    let mut requests = Vec::new();
    for handle in 0..1000 {
        requests.extend_from_slice(&request_bytes(READ, 0, handle, 0, 65536));
    }
    client.send_bytes(&requests);
    eventually("the limit", || target.submitted.load(Ordering::SeqCst) >= 64);
    serving.serves_others();
    // 4 MiB are 64 requests; a socket takes a few more replies than none.
    let submitted = target.submitted.load(Ordering::SeqCst);
    assert!(submitted < 200, "{submitted} commands for a client that does not read");
    client.raw_reads(1000, 65536);
    for _ in 0..1000 {
        assert!(matches!(client.reply().outcome, Outcome::Data { data, .. } if data.len() == 65536));
    }
    client.disconnect();
    all_freed(&serving);
}

/// Clients that send all of a long write but its last byte hold what the server allows them all, and hold up an honest one
/// only for as long as they are waited for.
#[test]
fn half_sent_writes_are_bounded_together_and_hold_up_nobody_for_ever() {
    const CLIENTS: u64 = 8;
    const LENGTH: usize = 16 << 20;
    let limits = Limits { total_bytes: 2 * LENGTH as u64, patience: Duration::from_millis(150), ..Limits::default() };
    let serving = Serving::with(Arc::new(support::ram::Ram::new(64 * MIB)), limits);
    let taken = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    let mut senders = Vec::new();
    for handle in 0..CLIENTS {
        let client = serving.client(true);
        let (mut writer, taken) = (client.writer(), Arc::clone(&taken));
        senders.push(std::thread::spawn(move || {
            let mut half = request_bytes(WRITE, 0, handle, 0, LENGTH as u32);
            half.resize(half.len() + LENGTH - 1, 7);
            for piece in half.chunks(1 << 16) {
                // Some time it is hung up on.
                if writer.write_all(piece).is_err() {
                    return;
                }
                taken.fetch_add(piece.len() as u64, Ordering::SeqCst);
            }
        }));
        clients.push(client);
    }
    eventually("two half-sent writes", || taken.load(Ordering::SeqCst) > 2 * LENGTH as u64 - (1 << 17));
    std::thread::sleep(Duration::from_millis(30));
    let taken = taken.load(Ordering::SeqCst);
    // What is in sockets and in each connection's buffer comes on top.
    assert!(taken < 2 * LENGTH as u64 + CLIENTS * MIB, "{taken} bytes were taken");
    // Small requests need no turn.
    serving.serves_others();
    let mut honest = serving.client(true);
    let data = pattern(3, LENGTH);
    honest.write(0, &data);
    assert_eq!(honest.read(0, LENGTH as u32), data);
    honest.disconnect();
    for client in &mut clients {
        client.stop_sending();
    }
    senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
    drop(clients);
    all_freed(&serving);
}

/// Requests without data and requests that are refused cost memory too, and count.
#[test]
fn replies_without_data_are_bounded_as_well() {
    let limits = Limits { pending_bytes: 1 << 20, ..Limits::default() };
    let target = Arc::new(Held::new(16 * MIB));
    let serving = Serving::with(Arc::clone(&target) as Arc<dyn Target>, limits);
    let mut client = serving.client(true);
    let mut requests = Vec::new();
    for handle in 0..2000 {
        requests.extend_from_slice(&request_bytes(FLUSH, 0, handle, 0, 0));
    }
    client.send_bytes(&requests);
    eventually("the limit", || target.held() == 256);
    let other = serving.client(true);
    assert_eq!(target.held(), 256, "1 MiB at 4 KiB each");
    drop(other);
    target.release();
    for _ in 0..2000 {
        assert_eq!(client.reply().outcome, Outcome::Done);
    }
    // The client does not read the answers to these at first; they are not the target's.
    let garbage: Vec<u8> = (0..60_000).flat_map(|handle| request_bytes(99, 0, handle, 0, 0)).collect();
    let mut writer = client.writer();
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || writer.write_all(&garbage).expect("the server reads"));
        serving.serves_others();
        assert!(!sender.is_finished(), "more than a server takes from a client that does not read");
        for _ in 0..60_000 {
            assert!(matches!(client.reply().outcome, Outcome::Error { errno: EINVAL, .. }));
        }
        sender.join().expect("no panic");
    });
}

#[test]
fn unanswered_bytes_are_bounded_and_a_single_request_always_fits() {
    let limits = Limits { pending_bytes: 1 << 20, ..Limits::default() };
    let target = Arc::new(Held::new(64 * MIB));
    let serving = Serving::with(Arc::clone(&target) as Arc<dyn Target>, limits);
    let mut client = serving.client(true);
    let long = client.request(READ, 0, 0, 8 << 20, &[]);
    for _ in 0..100 {
        client.request(READ, 0, 0, 65536, &[]);
    }
    eventually("the first command", || target.held() == 1);
    let mut other = serving.client(true);
    other.request(FLUSH, 0, 0, 0, &[]);
    eventually("the other's command", || target.held() == 2);
    assert_eq!(target.bytes_held(), 8 << 20);
    target.release();
    assert_eq!(client.reply().handle, long);
    for _ in 0..100 {
        assert!(matches!(client.reply().outcome, Outcome::Data { .. }));
    }
    assert_eq!(other.reply().outcome, Outcome::Done);
}

#[test]
fn a_client_that_vanishes_with_requests_in_flight_frees_what_it_held() {
    let target = Arc::new(Held::new(64 * MIB));
    let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>);
    for structured in [false, true] {
        let mut client = serving.client(structured);
        for at in 0..50 {
            client.request(READ, 0, at * MIB, 1 << 20, &[]);
            client.request(WRITE, 0, at * MIB, 512, &[1; 512]);
            client.request(TRIM, 0, at * MIB, 4096, &[]);
        }
    }
    eventually("all commands", || target.held() > 0);
    assert_eq!(serving.server.connections(), 2, "commands are still with the target");
    target.release();
    all_freed(&serving);
    serving.serves_others();
}

#[test]
fn a_client_that_vanishes_while_answers_are_sent_frees_what_it_held() {
    let serving = Serving::new(Arc::new(Later::new(64 * MIB, 11)));
    for round in 0..30 {
        let mut client = serving.client(round % 2 == 0);
        for at in 0..20 {
            client.request(READ, 0, at * MIB, 1 << 20, &[]);
        }
        for _ in 0..round % 4 {
            client.reply();
        }
        if round % 3 == 0 {
            client.request(DISC, 0, 0, 0, &[]);
        }
        drop(client);
        serving.serves_others();
    }
    all_freed(&serving);
}

#[test]
fn connections_above_the_limit_hear_why_and_their_places_come_back() {
    let limits = Limits { connections: 2, handshake: Duration::from_secs(1), ..Limits::default() };
    let serving = Serving::with(Arc::new(support::ram::Ram::new(MIB)), limits);
    let mut first = serving.client(true);
    let second = serving.client(true);
    let mut third = serving.connect();
    third.greet(3);
    for option in [OPT_STRUCTURED_REPLY, OPT_LIST, OPT_INFO, OPT_GO] {
        let data = if option == OPT_GO || option == OPT_INFO { &[0; 6][..] } else { &[] };
        let replies = third.option(option, data);
        let (kind, why) = &replies[0];
        assert_eq!((replies.len(), *kind), (1, REP_ERR_POLICY), "option {option}");
        assert!(String::from_utf8_lossy(why).starts_with("the server has 2 connections, which is its limit"));
    }
    assert_eq!(third.option(OPT_ABORT, &[]), [(REP_ACK, Vec::new())]);
    assert!(third.is_closed());
    let mut oldest_way = serving.connect();
    oldest_way.greet(3);
    oldest_way.send_option(OPT_EXPORT_NAME, &[]);
    assert!(oldest_way.is_closed(), "that option has no answer but the export");
    // Those who say nothing are told nothing, and keep no thread for long.
    let mut silent: Vec<Client> = (0..20).map(|_| serving.connect()).collect();
    for client in &mut silent {
        let mut rest = vec![0; 18];
        while client.try_receive(&mut rest).is_ok() {}
    }
    assert_eq!(first.read(0, 512), [0; 512]);
    second.disconnect();
    eventually("a free place", || serving.server.connections() == 1);
    serving.serves_others();
    assert_eq!(serving.server.connections_served(), 3);
}

/// A target that breaks its own rules takes down the connection that it happens to, and no other.
struct Panicking(support::ram::Ram);

impl Target for Panicking {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn preferred_bytes(&self) -> u32 {
        512
    }

    fn description(&self) -> String {
        "a disk with a bug".to_owned()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        assert!(commands.iter().all(|command| command.request.sector != 13), "the bug");
        self.0.submit(commands);
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        self.0.extents(offset, bytes, limit)
    }
}

#[test]
fn a_panic_of_the_target_ends_one_connection() {
    let serving = Serving::new(Arc::new(Panicking(support::ram::Ram::new(MIB))));
    let mut client = serving.client(true);
    client.request(READ, 0, 13 * 512, 512, &[]);
    assert!(client.is_closed());
    serving.serves_others();
    all_freed(&serving);
}
