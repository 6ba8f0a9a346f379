//! The layer `append`: write amplification of its cleaning beside theory.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member};
use ssdlab_lab::theory;

/// A drive of 1,024 segments of 64 pages, without time.
fn stack(keys: &str) -> Box<dyn Device> {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 1040\npages_per_block = 32\npage_size = \"4k\"\ntiming = \"none\"\n[capacity]\nuser = \"256m\"\n\
                [buffer]\npolicy = \"none\"\n[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\n";
    let config = Description::parse(text, "small.toml").and_then(|description| description.resolve()).expect("a drive");
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
    for percent in [8, 15, 28] {
        let mut device = stack(&format!("over_provisioning = \"{percent}%\"\n"));
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
            "{percent} %: {found:.4}, {expected:.4} in theory, {:+.2} %; with the log {:.4}",
            off * 100.0,
            figure(&*device, "write_amplification")
        );
        assert!(off.abs() < 0.01, "{percent} %: {found} against {expected}");
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
