//! Policies of the program in an experiment: drives that name them, their keys, the table, and the files of a run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ssdlab_base::Rng;
use ssdlab_device::description::{Default, Key, Kind};
use ssdlab_device::{
    BufferPolicy, Description, DriveConfig, Entry, PlacementPolicy, PoolView, RegisterError, Setting, Slot, Unit,
    VictimPolicy, View, WrittenUnit, register_buffer, register_placement, register_victim, registered,
};
use ssdlab_flash::Lpn;
use ssdlab_lab::{Control, DeviceUnderTest, Experiment, NoProgress, Preconditioning, SnapshotCache, run_into, table};

use crate::common::Random;

/// The fewest valid units among the oldest blocks.
struct Windowed(usize);

/// Blocks that are looked at.
const WINDOW: Key = Key::new("window", Kind::count("blocks", 1), Default::number(8), "Oldest blocks to choose from.");

impl VictimPolicy for Windowed {
    fn name(&self) -> &'static str {
        "windowed"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        let mut closed: Vec<u32> = (0..pool.blocks()).filter(|block| pool.is_closed(*block)).collect();
        closed.sort_unstable_by_key(|block| std::cmp::Reverse(pool.age(*block)));
        closed.into_iter().take(self.0).min_by_key(|block| pool.valid(*block))
    }
}

/// The unit that came in last leaves.
#[derive(Default)]
struct Stack(Vec<Slot>);

impl BufferPolicy for Stack {
    fn insert(&mut self, slot: Slot, _: &Unit) {
        self.0.push(slot);
    }

    fn touch(&mut self, _: Slot, _: &Unit) {}

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.0.retain(|other| *other != slot);
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        self.coming(wanted, out);
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.extend(self.0.iter().rev().take(wanted));
    }
}

/// Odd units apart from even ones.
struct Parity;

impl PlacementPolicy for Parity {
    fn name(&self) -> &'static str {
        "parity"
    }

    fn stream(&self, unit: &WrittenUnit) -> u16 {
        (unit.lpn.0 % 2) as u16
    }
}

fn drive(label: &str, sets: &[&str]) -> DeviceUnderTest {
    let text = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 32\npage_size = \"4k\"\ncell = \"slc\"\n\
                [capacity]\nover_provisioning = \"30%\"\n[buffer]\npolicy = \"lru\"\nsize = \"256k\"\n[ftl]\nstreams = 2\n";
    let mut description = Description::parse(text, "added.toml").expect("a description");
    sets.iter().for_each(|set| description.set(set).unwrap_or_else(|error| panic!("{error}")));
    let config: DriveConfig = description.resolve().unwrap_or_else(|error| panic!("{error}"));
    DeviceUnderTest { label: label.to_string(), config }
}

#[test]
fn a_run_compares_policies_of_the_program_with_those_of_the_tree() {
    register_victim(Entry {
        name: "windowed",
        summary: "the fewest valid units among the oldest blocks (gc.window)",
        keys: &[WINDOW],
        make: |config| Box::new(Windowed(config.own("gc.window").map_or(1, Setting::count) as usize)),
    })
    .expect("a new name");
    let again = register_victim(Entry {
        name: "again",
        summary: "a policy with a key that is taken",
        keys: &[WINDOW],
        make: |_| Box::new(Windowed(1)),
    });
    let taken = RegisterError::Key { kind: "gc.victim", name: "again", section: "gc", key: "window" };
    assert_eq!(again, Err(taken));
    let (summary, keys) = ("the unit that came in last leaves", &[][..]);
    register_buffer(Entry { name: "stack", summary, keys, make: |_| Box::new(Stack::default()) }).expect("a new name");
    let (summary, keys) = ("odd units apart", &[][..]);
    register_placement(Entry { name: "parity", summary, keys, make: |_| Box::new(Parity) }).expect("a new name");
    for (kind, name) in [("gc.victim", "windowed"), ("buffer.policy", "stack"), ("placement.policy", "parity")] {
        assert!(registered().iter().any(|entry| (entry.kind, entry.name) == (kind, name)), "{name} is listed");
    }

    let own = ["gc.victim=windowed", "gc.window=4", "buffer.policy=stack", "placement.policy=parity"];
    let drives = [drive("ours", &own), drive("theirs", &[])];
    let folder = tempfile::tempdir().expect("a folder");
    let cache = SnapshotCache::at(folder.path().join("cache")).worth_keeping(Duration::ZERO);
    let workload = Random::writes(20_000);
    let fill = Random::writes(8000);
    let stop = AtomicBool::new(false);
    let mut results = Vec::new();
    // The second time from snapshots: an added policy is the same in them.
    for out in ["first", "second"] {
        let experiment = Experiment {
            preconditioning: Preconditioning::Workload(&fill),
            snapshots: Some(&cache),
            ..Experiment::new(&drives, &workload)
        };
        let control = Control::new(&stop, &NoProgress);
        let outcome = run_into(&experiment, &folder.path().join(out), None, &control).expect("it runs");
        outcome.written.expect("its files are written");
        let text = table::render(&outcome.result);
        assert!(text.contains("ours") && text.contains("theirs"), "{text}");
        for device in &outcome.result.devices {
            assert!(device.checks.iter().all(|check| check.passed), "{:?}", device.checks);
        }
        let report = std::fs::read_to_string(folder.path().join(out).join("report.html")).expect("a report");
        assert!(["windowed", "stack", "parity"].iter().all(|name| report.contains(name)), "the report names them");
        results.push(outcome.result);
    }
    let [first, second] = [0, 1].map(|run: usize| {
        let device = &results[run].devices[0];
        let amplification = device.write_amplification.as_ref().expect("it was written");
        (device.virtual_time_ns, device.gc.victims(), amplification.total)
    });
    assert_eq!(first, second);
    assert!(first.1 > 100, "collection chose {} victims", first.1);
}
