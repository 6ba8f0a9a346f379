//! The layer `append`: write amplification of its cleaning beside theory.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member};
use ssdlab_lab::theory;

/// A drive of 1,024 segments of 64 pages, without time.
fn stack(keys: &str) -> Box<dyn Device> {
    stack_of(1024, 32, "timing = \"none\"", keys)
}

/// A drive of so many segments, with so many pages of each of two dies.
fn stack_of(segments: u32, pages: u32, timing: &str, keys: &str) -> Box<dyn Device> {
    let blocks = segments + 16;
    let text = format!(
        "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
         blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = \"4k\"\n{timing}\n[capacity]\n\
         user = \"{}k\"\n[buffer]\npolicy = \"none\"\n[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\n",
        segments * pages * 2 * 4
    );
    let config =
        Description::parse(&text, "small.toml").and_then(|description| description.resolve()).expect("a drive");
    let member = Member::new("small", &config, Options { seed: 1, contents: Contents::Nothing }).expect("a drive");
    let host = Host::parse(&format!("[[layer]]\nkind = \"append\"\n{keys}"), "host.toml").expect("a host");
    host.build(vec![member]).expect("a stack")
}

fn figure(device: &dyn Device, name: &str) -> f64 {
    device.layers()[0].figures[name]
}

fn write(device: &mut dyn Device, unit: u64) {
    let at = device.now();
    device.submit(&Request { at, ..Request::new(Op::Write, unit * 8, 8) }, Data::Nothing);
    assert!(device.wait_for_completion(Nanos::MAX));
    device.completions().clear();
}

/// Greedy cleaning of uniform overwrites has the amplification of theory, at the space that data really has: all segments but those
/// that are free, as they are counted on the way, and half of each of the two that are open.
#[test]
fn cleaning_of_uniform_overwrites_costs_what_theory_says() {
    for (percent, pacing) in [8, 15, 28].into_iter().flat_map(|percent| [(percent, "off"), (percent, "proportional")]) {
        let mut device = stack(&format!("over_provisioning = \"{percent}%\"\npacing = \"{pacing}\"\n"));
        let units = device.sectors() / 8;
        (0..units).for_each(|unit| write(&mut *device, unit));
        let mut rng = rng(percent, "overwrites");
        (0..8 * units).for_each(|_| write(&mut *device, rng.random_range(0..units)));
        device.reset_statistics();
        let (mut free, mut samples) = (0.0, 0.0);
        for number in 0..5 * units {
            write(&mut *device, rng.random_range(0..units));
            if number % 64 == 0 {
                free += figure(&*device, "free_segments");
                samples += 1.0;
            }
        }
        let for_data = figure(&*device, "data_segments") - free / samples - 1.0;
        let segment = figure(&*device, "segment_units");
        let found = figure(&*device, "write_amplification_data");
        let expected = theory::greedy(for_data * segment / units as f64, segment as u32).expect("more than it needs");
        let off = found / expected - 1.0;
        println!(
            "{percent} %, pacing {pacing}: {found:.4}, {expected:.4} in theory, {:+.2} %; with the log {:.4}",
            off * 100.0,
            figure(&*device, "write_amplification")
        );
        assert!(off.abs() < 0.01, "{percent} %, pacing {pacing}: {found} against {expected}");
    }
}

/// Of a hot and a cold part, cost-benefit cleaning copies less than greedy (Rosenblum and Ousterhout, 1992, section 3.5).
#[test]
fn cost_benefit_copies_less_of_a_hot_and_a_cold_part() {
    let copied = |cleaning: &str| {
        let mut device = stack(&format!("over_provisioning = \"25%\"\ncleaning = \"{cleaning}\"\n"));
        let units = device.sectors() / 8;
        (0..units).for_each(|unit| write(&mut *device, unit));
        let mut rng = rng(1, "hot and cold");
        let mut skewed = |device: &mut dyn Device| {
            let hot = rng.random_bool(0.9);
            let unit = if hot { rng.random_range(0..units / 10) } else { rng.random_range(units / 10..units) };
            write(device, unit);
        };
        (0..6 * units).for_each(|_| skewed(&mut *device));
        device.reset_statistics();
        (0..4 * units).for_each(|_| skewed(&mut *device));
        figure(&*device, "write_amplification_data")
    };
    let (greedy, cost_benefit) = (copied("greedy"), copied("cost-benefit"));
    println!("greedy {greedy:.3}, cost-benefit {cost_benefit:.3}");
    assert!(cost_benefit < 0.9 * greedy, "cost-benefit {cost_benefit}, greedy {greedy}");
}

/// The slowest writes of uniform overwrites, eight at a time.
fn slowest_writes(pacing: &str) -> (Nanos, f64) {
    let keys = format!("over_provisioning = \"15%\"\ncopies = 4\ncopy_size = \"16k\"\npacing = \"{pacing}\"\n");
    let mut device = stack_of(256, 256, "cell = \"slc\"", &keys);
    let units = device.sectors() / 8;
    let mut rng = rng(1, "overwrites");
    device.set_timed(false);
    (0..units).for_each(|unit| write(&mut *device, unit));
    (0..6 * units).for_each(|_| write(&mut *device, rng.random_range(0..units)));
    device.reset_statistics();
    device.set_timed(true);
    let mut latencies = Vec::new();
    for number in 0..2 * units {
        let at = device.now();
        let request = Request::new(Op::Write, rng.random_range(0..units) * 8, 8);
        device.submit(&Request { at, tag: number as u32, ..request }, Data::Nothing);
        while device.outstanding() >= 8 {
            assert!(device.wait_for_completion(Nanos::MAX));
            latencies.extend(device.completions().drain(..).map(|one| one.at - one.submitted));
        }
    }
    latencies.sort_unstable();
    (latencies[latencies.len() * 999 / 1000], figure(&*device, "write_amplification_data"))
}

/// Without pacing some writes wait until a segment is cleaned. With it none does, and the segment more that is kept empty costs little.
#[test]
fn paced_cleaning_keeps_writes_from_waiting_for_a_segment() {
    let ((off, off_wa), (on, on_wa)) = (slowest_writes("off"), slowest_writes("proportional"));
    println!("p99.9 {off} without pacing, {on} with it; write amplification {off_wa:.3} and {on_wa:.3}");
    assert!(on.0 * 5 < off.0, "p99.9 is {on} with pacing, {off} without");
    assert!(on_wa < 1.05 * off_wa, "write amplification is {on_wa} with pacing, {off_wa} without");
}
