//! What every layer gets from the engine, seen at the template and at layers that act at times of their own.

use std::collections::VecDeque;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::Contents;

use super::template::{LAYER, PassThroughConfig};
use super::{Array, Ended, Io, Layer, Turn};
use crate::layers::LayerConfig as _;
use crate::{BlockDevice as _, Device, LayerKind, LayerMetrics, Loss, Member};

fn config() -> DriveConfig {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 8\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\n\
                user = \"2m\"\n[buffer]\npolicy = \"lru\"\nsize = \"64k\"\n";
    let config = Description::parse(text, "small.toml").and_then(|description| description.resolve());
    config.expect("a drive")
}

fn member() -> Box<dyn Device> {
    let options = Options { seed: 1, contents: Contents::Bytes };
    Box::new(Member::new("small", &config(), options).expect("a drive"))
}

/// By tag: what was read.
type Read = Vec<(u32, Vec<u8>)>;
/// By tag: how a command ended, and when.
type Completed = Vec<(u32, Status, Nanos)>;

/// Commands at random times; what was read, and when each completed.
fn work(device: &mut dyn Device, count: u32) -> (Read, Completed) {
    let mut rng = rng(7, "layer engine");
    let (mut read, mut completed) = (Vec::new(), Vec::new());
    let mut collect = |device: &mut dyn Device| {
        read.append(device.read_data());
        let all = device.completions().drain(..);
        completed.extend(all.map(|completion| (completion.tag, completion.status, completion.at)));
    };
    for tag in 0..count {
        let at = Nanos(device.now().0 + rng.random_range(0..400_000));
        let op = [Op::Write, Op::Write, Op::Read, Op::Trim, Op::Flush][rng.random_range(0..5)];
        let sectors = if op == Op::Flush { 0 } else { rng.random_range(1..=32) };
        let request = Request { at, tag, ..Request::new(op, u64::from(tag % 64) * 64, sectors) };
        let bytes: Vec<u8> = (0..sectors * 512).map(|_| rng.random()).collect();
        device.run_until(at);
        device.submit(&request, if op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing });
        while device.outstanding() > 16 {
            assert!(device.run_to_completion(Nanos::MAX), "a command completes");
        }
        collect(device);
    }
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(Nanos::MAX), "a command completes");
        collect(device);
    }
    (read, completed)
}

#[test]
fn a_layer_that_passes_everything_through_costs_no_time_and_changes_nothing() {
    let mut layer = PassThroughConfig.make(vec![member()]).expect("a layer");
    let mut bare = member();
    assert_eq!(layer.sectors(), bare.sectors());
    assert_eq!(work(&mut *layer, 600), work(&mut *bare, 600));
    assert_eq!(layer.now(), bare.now());
    let metrics = layer.layers().remove(0);
    assert_eq!((metrics.kind.as_str(), metrics.taken.requests), (LAYER.name, bare.taken().requests));
    assert_eq!((metrics.sent, metrics.below), (metrics.taken, metrics.taken));
    assert_eq!(layer.cut(0, &mut |_| None), Loss::Unflushed);
    let behind = Request { at: layer.now(), ..Request::new(Op::Read, layer.sectors(), 1) };
    layer.submit(&behind, Data::Nothing);
    assert_eq!(layer.completions().pop().map(|completion| completion.status), Some(Status::OutOfRange));
}

const DELAY: Nanos = Nanos(1_000_000);

/// Holds each command for [`DELAY`].
struct Delay {
    io: Io<u32, ()>,
    held: VecDeque<(Nanos, u32)>,
    /// When it was woken, and what had ended below by then.
    woken: Vec<(Nanos, u64)>,
    ended: u64,
}

impl Delay {
    fn above(below: Box<dyn Device>) -> Delay {
        Delay { io: Io::new(Array::new(vec![below]), &LAYER), held: VecDeque::new(), woken: Vec::new(), ended: 0 }
    }
}

impl Layer for Delay {
    const KIND: LayerKind = LayerKind { name: "delay", ..LAYER };
    type Purpose = u32;
    type State = ();

    fn io(&self) -> &Io<u32, ()> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<u32, ()> {
        &mut self.io
    }

    fn start(&mut self, slot: u32, _: Turn) {
        self.held.push_back((Nanos(self.io.array.now().0 + DELAY.0), slot));
    }

    fn ended(&mut self, part: Ended<u32>) {
        self.ended += 1;
        self.io.command(part.purpose).cells = part.cells.unwrap_or_default();
        self.io.answer(part.purpose, part.status);
    }

    fn wakes_at(&self) -> Option<Nanos> {
        self.held.front().map(|(at, _)| *at)
    }

    fn wake(&mut self) {
        let (at, slot) = self.held.pop_front().expect("it has a time to wake at");
        assert_eq!(at, self.io.array.now(), "it is woken at its time");
        self.woken.push((at, self.ended));
        self.io.take_effect(slot);
        let command = self.io.command(slot);
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        self.io.array.send(0, request, &cells, slot);
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics::default()
    }
}

#[test]
fn a_layer_acts_at_its_own_time_and_after_what_the_devices_do_at_that_time() {
    let write = |device: &mut dyn Device, at: Nanos, tag| {
        let request = Request { at, tag, fua: true, ..Request::new(Op::Write, u64::from(tag) * 64, 8) };
        device.submit(&request, Data::Bytes(&[1; 4096]));
    };
    let end = |device: &mut dyn Device| {
        assert!(device.run_to_completion(Nanos::MAX), "a command completes");
        device.completions().clear();
        device.now()
    };
    // The second write is sent when the first one ends.
    let mut bare = member();
    write(&mut *bare, Nanos::ZERO, 0);
    let first = end(&mut *bare);
    assert!(first > Nanos::ZERO);
    write(&mut *bare, first, 1);
    let second = end(&mut *bare);
    let mut layer = Delay::above(member());
    write(&mut layer, Nanos::ZERO, 0);
    assert_eq!(layer.next_event(), Some(DELAY));
    write(&mut layer, first, 1);
    let later = |at: Nanos| Nanos(at.0 + DELAY.0);
    layer.run_until(Nanos(DELAY.0 - 1));
    assert_eq!((layer.woken.len(), layer.outstanding(), layer.now().0), (0, 2, DELAY.0 - 1));
    layer.run_until(later(first));
    assert_eq!(layer.woken, [(DELAY, 0), (later(first), 1)]);
    assert_eq!((layer.completions().len(), layer.outstanding()), (1, 1));
    layer.completions().clear();
    assert_eq!(end(&mut layer), later(second));
    assert_eq!(layer.outstanding(), 0);
}

#[test]
fn times_of_its_own_are_the_same_in_every_run_and_under_other_layers() {
    let run = |device: &mut dyn Device| work(device, 300).1;
    let once = run(&mut Delay::above(member()));
    assert_eq!(once, run(&mut Delay::above(member())));
    // The layer above runs the device below up to its next event, whose time is that of the layer there.
    let below: Box<dyn Device> = Box::new(Delay::above(member()));
    assert_eq!(once, run(&mut *PassThroughConfig.make(vec![below]).expect("a layer")));
}
