//! One connection over a stream in memory, which splits what it carries as it likes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::Rng as _;
use ssdlab_base::rng;
use ssdlab_live::Target;
use ssdlab_live::nbd::{Ending, Limits, serve_stream};

use crate::support::client::{
    BLOCK_STATUS, DISC, ESHUTDOWN, FLUSH, READ, TRIM, WRITE, go_data, pattern, request_bytes,
};
use crate::support::ram::Ram;
use crate::support::script::Script;
use crate::support::targets::Later;
use crate::support::{MIB, export};

/// A handshake that ends with `NBD_OPT_GO`, without waiting for what the server says.
fn handshake() -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    let data = go_data("", &[]);
    bytes.extend_from_slice(b"IHAVEOPT");
    bytes.extend_from_slice(&7_u32.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&data);
    bytes
}

/// The bytes of the server's side of [`handshake`]: greeting, export, block sizes, acknowledgement.
const HANDSHAKE_REPLY_BYTES: usize = 18 + (20 + 12) + (20 + 14) + 20;

/// Simple replies by handle, in the order they came; `reads` says how long those to reads are.
fn replies(mut bytes: &[u8], reads: &BTreeMap<u64, usize>) -> BTreeMap<u64, Vec<(u32, Vec<u8>)>> {
    let mut all: BTreeMap<u64, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..4], 0x6744_6698_u32.to_be_bytes());
        let errno = u32::from_be_bytes(bytes[4..8].try_into().expect("4"));
        let handle = u64::from_be_bytes(bytes[8..16].try_into().expect("8"));
        let length = if errno == 0 { reads.get(&handle).copied().unwrap_or(0) } else { 0 };
        all.entry(handle).or_default().push((errno, bytes[16..16 + length].to_vec()));
        bytes = &bytes[16 + length..];
    }
    all
}

#[test]
fn however_the_stream_is_cut_every_request_is_answered_once_and_alike() {
    for seed in 0..60 {
        let mut random = rng(seed, "requests");
        let mut sends = handshake();
        let mut reads = BTreeMap::new();
        let mut handles = 0;
        let mut model = vec![0_u8; MIB as usize];
        let mut expected = BTreeMap::new();
        for handle in 0..200_u64 {
            // Each request has its own place, so that their order does not matter; the first half writes.
            let (length, offset) = (512 * (1 + random.next_u64() % 200), handle % 100 * 8192);
            let length = length.min(if handle % 100 == 99 { 1 << 17 } else { 8192 });
            let range = offset as usize..(offset + length) as usize;
            if handle < 100 {
                let data = pattern(handle, length as usize);
                sends.extend_from_slice(&request_bytes(WRITE, 0, handle, offset, length as u32));
                sends.extend_from_slice(&data);
                model[range].copy_from_slice(&data);
                expected.insert(handle, vec![(0, Vec::new())]);
            } else {
                sends.extend_from_slice(&request_bytes(READ, 0, handle, offset, length as u32));
                reads.insert(handle, length as usize);
                expected.insert(handle, vec![(0, model[range].to_vec())]);
            }
            handles = handle;
        }
        sends.extend_from_slice(&request_bytes(FLUSH, 0, handles + 1, 0, 0));
        expected.insert(handles + 1, vec![(0, Vec::new())]);
        sends.extend_from_slice(&request_bytes(BLOCK_STATUS, 0, handles + 2, 0, 512));
        expected.insert(handles + 2, vec![(22, Vec::new())]);
        sends.extend_from_slice(&request_bytes(DISC, 0, 0, 0, 0));
        sends.extend_from_slice(&request_bytes(TRIM, 0, handles + 3, 0, 512));

        let targets: [Arc<dyn Target>; 2] = [Arc::new(Ram::new(MIB)), Arc::new(Later::new(MIB, seed))];
        for target in targets {
            let script = Arc::new(Script::new(sends.clone(), Some(seed)));
            // The narrow limit makes the reader wait for room again and again.
            let limits = Limits { pending_bytes: if seed % 2 == 0 { 40_000 } else { 64 << 20 }, ..Limits::default() };
            let ending = serve_stream(&script, &export(target), &limits, &AtomicBool::new(false));
            assert_eq!(ending, Ending::Disconnected);
            let got = replies(&script.got()[HANDSHAKE_REPLY_BYTES..], &reads);
            assert!(got == expected, "seed {seed}");
        }
    }
}

#[test]
fn a_stopping_server_refuses_what_it_still_reads() {
    let mut sends = handshake();
    sends.extend_from_slice(&request_bytes(READ, 0, 1, 0, 4096));
    sends.extend_from_slice(&request_bytes(WRITE, 0, 2, 0, 512));
    sends.extend_from_slice(&[1; 512]);
    sends.extend_from_slice(&request_bytes(FLUSH, 0, 3, 0, 0));
    let target = Arc::new(Ram::new(MIB));
    let script = Arc::new(Script::new(sends, None));
    let stopping = AtomicBool::new(true);
    let ending = serve_stream(&script, &export(Arc::clone(&target) as Arc<dyn Target>), &Limits::default(), &stopping);
    assert_eq!(ending, Ending::Stopped);
    let got = replies(&script.got()[HANDSHAKE_REPLY_BYTES..], &BTreeMap::new());
    let refused = vec![(ESHUTDOWN, Vec::new())];
    assert_eq!(got, BTreeMap::from([(1, refused.clone()), (2, refused.clone()), (3, refused)]));
    assert!(!target.extents(0, MIB, 9)[0].mapped, "the write was not done");
}

#[test]
fn the_endings_say_what_happened() {
    let end = |sends: Vec<u8>| {
        let script = Arc::new(Script::new(sends, None));
        serve_stream(&script, &export(Arc::new(Ram::new(MIB))), &Limits::default(), &AtomicBool::new(false))
    };
    let abort = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &2_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
    assert_eq!(end(abort), Ending::Disconnected);
    assert_eq!(end(Vec::new()), Ending::HungUp);
    assert_eq!(end(handshake()), Ending::HungUp);
    assert_eq!(end(vec![255; 4]), Ending::Garbage);
    assert_eq!(end([&handshake()[..], &[1; 28]].concat()), Ending::Garbage);
    assert_eq!(end([&handshake()[..], &request_bytes(DISC, 0, 0, 0, 0)].concat()), Ending::Disconnected);
}
