//! The path of a host's I/O: what a request costs in the block layer by policy, and in the page cache.

use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{BlockDevice, Device, Host, Member};

use crate::{Figure, closed_loop, config, cpu_seconds, drive, fill, random};

/// Requests that the drive holds, and those that wait.
const DEPTH: u64 = 32;
const WAITING: [u64; 2] = [100, 10_000];

/// Policies, and what each is called with so many waiting.
const POLICIES: [(&str, [&str; 2]); 3] = [
    ("fifo", ["scheduler: fifo, 100 waiting", "scheduler: fifo, 10,000 waiting"]),
    ("noop", ["scheduler: noop, 100 waiting", "scheduler: noop, 10,000 waiting"]),
    ("deadline", ["scheduler: deadline, 100 waiting", "scheduler: deadline, 10,000 waiting"]),
];

/// A full drive under layers.
fn above(text: &str) -> Box<dyn Device> {
    let mut drive = drive(&config("bench-32g", &[]));
    fill(&mut drive);
    let host = Host::parse(text, "bench").expect("a host");
    let options = Options { seed: 1, contents: Contents::Nothing };
    let mut stack = host.build(vec![Member::of("bench", drive, options)]).expect("a stack");
    stack.set_timed(true);
    stack.reset_statistics();
    stack
}

/// CPU time of a request in nanoseconds, the better of some rounds.
pub(crate) fn nanoseconds(
    device: &mut dyn Device,
    depth: u64,
    count: u64,
    mut next: impl FnMut(u64) -> Request,
) -> f64 {
    let rounds = (0..3).map(|_| {
        let start = cpu_seconds();
        closed_loop(device, depth, count, &mut next);
        (cpu_seconds() - start) * 1e9 / count as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Policies in turns, then hits of a page cache beside reads of a drive.
pub(crate) fn layer_figures() -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut of_fifo = 0.0;
    for (policy, names) in POLICIES {
        let limit = if policy == "fifo" { "" } else { "requests = 20000\n" };
        let text = format!("[[layer]]\nkind = \"scheduler\"\ndepth = {DEPTH}\npolicy = \"{policy}\"\n{limit}");
        let mut stack = above(&text);
        let pages = stack.sectors() / 8;
        let mut few = 0.0;
        for (waiting, name) in WAITING.into_iter().zip(names) {
            let mut requests = rng(51, "layers");
            let value = nanoseconds(&mut *stack, DEPTH + waiting, 300_000, |_| random(&mut requests, Op::Read, pages));
            if waiting == WAITING[0] {
                few = value;
                of_fifo = if policy == "fifo" { value } else { of_fifo };
            }
            let detail = format!("{:.2} times fifo's, {:.2} times its own with 100", value / of_fifo, value / few);
            figures.push(Figure { name, value, unit: "ns", detail });
        }
    }
    figures.push(hits());
    figures
}

/// Reads of cached blocks beside reads of the drive below.
fn hits() -> Figure {
    let mut stack = above("[[layer]]\nkind = \"page-cache\"\nram = \"256m\"\nread_ahead = 0\n");
    let cached = 32_768;
    for block in 0..cached {
        stack.submit(&Request { at: stack.now(), ..Request::new(Op::Read, block * 8, 8) }, Data::Nothing);
        while stack.outstanding() > 0 {
            assert!(stack.run_to_completion(Nanos::MAX), "a read completes");
        }
        stack.completions().clear();
    }
    let mut requests = rng(52, "layers");
    let value = nanoseconds(&mut *stack, DEPTH, 1_000_000, |_| random(&mut requests, Op::Read, cached));
    let figures = &stack.layers()[0].figures;
    assert_eq!(figures["misses"], cached as f64, "every later read hits");
    let mut bare = above("[[layer]]\nkind = \"scheduler\"\n").into_members().pop().expect("a drive");
    let pages = bare.sectors() / 8;
    let of_drive = nanoseconds(&mut bare, DEPTH, 1_000_000, |_| random(&mut requests, Op::Read, pages));
    let detail = format!("{:.2} times a read of the drive, which takes {of_drive:.0} ns", value / of_drive);
    Figure { name: "page-cache: a hit", value, unit: "ns", detail }
}
