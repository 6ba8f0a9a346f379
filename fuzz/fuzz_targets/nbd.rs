//! One NBD connection, from its first byte to its end: whatever a client sends, the server returns, keeps to its limit,
//! and answers every well-formed request exactly once.
#![no_main]

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use ssdlab_base::Op;
use ssdlab_live::nbd::{Export, Limits, Stream, serve_stream};
use ssdlab_live::{Answer, Command, Extent, Failure, Target};

const CAPACITY: u64 = 160 << 10;
const PENDING_BYTES: u64 = 256 << 10;
const REQUEST_MAGIC: [u8; 4] = 0x2560_9513_u32.to_be_bytes();
const WRITE: u16 = 1;
const DISC: u16 = 2;

/// Small numbers from a seed, for where the stream is cut.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

struct Script {
    sends: Vec<u8>,
    state: Mutex<(usize, Vec<u8>, Dice)>,
    cut: bool,
}

impl Stream for Script {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap();
        let (sent, _, dice) = &mut *state;
        let mut count = buffer.len().min(self.sends.len() - *sent);
        if self.cut && count > 0 {
            count = 1 + dice.roll(count.min(600));
        }
        buffer[..count].copy_from_slice(&self.sends[*sent..*sent + count]);
        *sent += count;
        Ok(count)
    }

    fn send(&self, slices: &[IoSlice<'_>], wait: bool) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap();
        let (_, got, dice) = &mut *state;
        if self.cut && !wait && dice.roll(4) == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let whole: usize = slices.iter().map(|slice| slice.len()).sum();
        assert!(whole > 0);
        let count = if self.cut { 1 + dice.roll(whole) } else { whole };
        let mut left = count;
        for slice in slices {
            let now = left.min(slice.len());
            got.extend_from_slice(&slice[..now]);
            left -= now;
        }
        Ok(count)
    }

    fn set_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn shutdown(&self) {}
}

/// Checks what reaches it; answers each batch backwards, in pieces, some with an error.
struct Drive;

impl Target for Drive {
    fn bytes(&self) -> u64 {
        CAPACITY
    }

    fn preferred_bytes(&self) -> u32 {
        4096
    }

    fn description(&self) -> String {
        "fuzzed".to_owned()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        let moved = |command: &Command| {
            let moves = matches!(command.request.op, Op::Read | Op::Write);
            if moves { command.request.bytes() } else { 0 }
        };
        assert!(!commands.is_empty());
        assert!(commands.iter().map(moved).sum::<u64>() <= PENDING_BYTES, "more than the limit allows");
        let mut answers = Vec::new();
        for command in commands.iter().rev() {
            let request = &command.request;
            assert!(request.end() * 512 <= CAPACITY);
            assert_eq!(request.op == Op::Flush, request.sectors == 0);
            assert_eq!(command.data.len() as u64, if request.op == Op::Write { request.bytes() } else { 0 });
            let result = match request.op {
                _ if request.sector % 16 == 15 => Err(Failure::Io),
                Op::Read => Ok(vec![0x5a; request.bytes() as usize]),
                _ => Ok(Vec::new()),
            };
            answers.push(Answer { cookie: command.cookie, result });
            if request.sector % 3 == 0 {
                command.sink.answers(&mut answers);
                assert!(answers.is_empty());
            }
        }
        commands[0].sink.answers(&mut answers);
        commands.clear();
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        assert!(offset + bytes <= CAPACITY);
        (0..bytes / 512).take(limit).map(|at| Extent { bytes: 512, mapped: at % 3 == 0 }).collect()
    }
}

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &kind.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

fn handshake(structured: bool) -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    if structured {
        bytes.extend(option(8, &[]));
        bytes.extend(option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation"));
    }
    bytes.extend(option(7, &[0; 6]));
    bytes
}

/// Requests that are mostly good ones, eight bytes of input each.
fn requests(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in data.as_chunks::<8>().0 {
        let [kind, flags, offset, low, high, odd, repeat, fill] = *piece;
        let length = u32::from(low) * 512 + if high > 250 { u32::from(high) << 16 } else { 0 } + u32::from(odd == 255);
        bytes.extend_from_slice(&REQUEST_MAGIC);
        bytes.extend_from_slice(&u16::from(if flags > 40 { flags % 2 } else { flags }).to_be_bytes());
        bytes.extend_from_slice(&u16::from(kind % 9).to_be_bytes());
        bytes.extend_from_slice(&[repeat; 8]);
        bytes.extend_from_slice(&(u64::from(offset) * 512 + u64::from(odd == 254)).to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        if u16::from(kind % 9) == WRITE && length < 1 << 20 {
            bytes.resize(bytes.len() + length as usize, fill);
        }
    }
    bytes
}

/// Gives each request that arrives whole, up to the end of the conversation, a handle of its own, and says how long
/// its data would be if it was a read.
fn number(bytes: &mut [u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + 28) {
        let kind = u16::from_be_bytes([header[6], header[7]]);
        let length = u32::from_be_bytes([header[24], header[25], header[26], header[27]]) as usize;
        if header[..4] != REQUEST_MAGIC || kind == DISC {
            break;
        }
        header[8..16].copy_from_slice(&(lengths.len() as u64).to_be_bytes());
        at += 28 + if kind == WRITE { length } else { 0 };
        if at > bytes.len() {
            break;
        }
        lengths.push(if kind == 0 { length } else { 0 });
    }
    lengths
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (front, rest) = bytes.split_at(count);
    *bytes = rest;
    front
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

/// How often each handle was answered; the replies must have no loose ends.
fn answered(mut bytes: &[u8], structured: bool, lengths: &[usize]) -> HashMap<u64, usize> {
    let bytes = &mut bytes;
    assert_eq!(take(bytes, 18).len(), 18);
    loop {
        let head = take(bytes, 20);
        assert_eq!(head[..8], 0x3_e889_0455_65a9_u64.to_be_bytes());
        let (kind, reply) = (u32_of(&head[8..]), u32_of(&head[12..]));
        take(bytes, u32_of(&head[16..]) as usize);
        assert!(reply < 5);
        if (kind, reply) == (7, 1) {
            break;
        }
    }
    let mut count = HashMap::new();
    while !bytes.is_empty() {
        let head = take(bytes, 16);
        let handle = u64::from_be_bytes(head[8..].try_into().unwrap());
        match u32_of(head) {
            0x6744_6698 => {
                if u32_of(&head[4..]) == 0 {
                    let length = lengths[handle as usize];
                    assert!(length == 0 || !structured);
                    take(bytes, length);
                }
            }
            0x668e_33ef => {
                assert!(structured);
                assert_eq!(head[4..6], [0, 1]);
                let length = u32_of(take(bytes, 4)) as usize;
                take(bytes, length);
            }
            other => panic!("{other:#x} is no reply"),
        }
        *count.entry(handle).or_default() += 1;
    }
    count
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, data)) = data.split_first() else { return };
    let (shaken, structured, built, cut) = (mode & 1 != 0, mode & 2 != 0, mode & 4 != 0, mode & 8 != 0);
    let mut transmission = if built { requests(data) } else { data.to_vec() };
    let lengths = number(&mut transmission);
    let mut sends = if shaken { handshake(structured) } else { Vec::new() };
    sends.append(&mut transmission);
    let dice = Dice(u64::from(mode) << 20 | data.len() as u64 | 1 << 40);
    let stream = Arc::new(Script { sends, state: Mutex::new((0, Vec::new(), dice)), cut });
    let export = Export { target: Arc::new(Drive), name: "fuzz".to_owned() };
    let limits = Limits { pending_bytes: PENDING_BYTES, ..Limits::default() };
    serve_stream(&stream, &export, &limits, &AtomicBool::new(false));
    if shaken {
        let got = &stream.state.lock().unwrap().1;
        let answered = answered(got, structured, &lengths);
        let expected: HashMap<u64, usize> = (0..lengths.len() as u64).map(|handle| (handle, 1)).collect();
        assert_eq!(answered, expected);
    }
});
