//! What a disk holds, against a reference model: reads return the newest data, and a power cut loses nothing that a flush or a
//! FUA write covered, and invents nothing. A sector is old or new, never torn.

use std::collections::BTreeMap;

use rand::RngExt as _;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Completion, Data, Status};
use ssdlab_disk::{Disk, DiskConfig};
use ssdlab_flash::Contents;

use crate::support::round;

const SECTORS: u64 = 96;
const BYTES: usize = 512;

/// A command, as the host knows it.
struct Sent {
    request: Request,
    /// What a write brings: a value of its own in every word of every sector.
    value: u64,
}

/// A sector's values since the last one that must survive, which is the first: value and order of each.
type Versions = Vec<(u64, u64)>;

struct Host {
    disk: Disk,
    config: DiskConfig,
    sent: BTreeMap<u32, Sent>,
    ended: Vec<Completion>,
    returned: BTreeMap<u32, Vec<u8>>,
    sectors: Vec<Versions>,
    tags: u32,
}

fn value_of(bytes: &[u8]) -> Result<u64, String> {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    match words.iter().all(|word| *word == words[0]) {
        true => Ok(words[0]),
        false => Err(format!("a sector is torn between {} and {}", words[0], words[words.len() - 1])),
    }
}

impl Host {
    fn send(&mut self, request: Request) {
        self.tags += 1;
        let (tag, value) = (self.tags, u64::from(self.tags));
        let request = Request { at: self.disk.now(), tag, ..request };
        let bytes = value.to_le_bytes().repeat(request.sectors as usize * BYTES / 8);
        let data = if request.op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing };
        self.disk.submit(&request, data);
        self.sent.insert(tag, Sent { request, value });
    }

    fn take(&mut self) {
        self.ended.append(self.disk.completions());
        self.returned.extend(std::mem::take(self.disk.read_data()));
    }

    /// Lets the model go through what ended, in the order in which it took effect.
    fn judge(&mut self) -> Result<(), String> {
        self.take();
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|completion| completion.order);
        if ended.windows(2).any(|pair| pair[0].order == pair[1].order) {
            return Err("two commands have one place in the order".to_string());
        }
        for completion in ended {
            let sent = self.sent.remove(&completion.tag).ok_or("a command ends twice")?;
            let range = sent.request.sector..sent.request.end();
            let is_whole = completion.status == Status::Success;
            if matches!(completion.status, Status::Unsupported | Status::OutOfRange) {
                let is_right = matches!(sent.request.op, Op::Trim) || sent.request.end() > SECTORS;
                if !is_right {
                    return Err(format!("{:?} ends as {:?}", sent.request, completion.status));
                }
                continue;
            }
            match sent.request.op {
                Op::Write => {
                    for sector in range {
                        let versions = &mut self.sectors[sector as usize];
                        if sent.request.fua && is_whole {
                            versions.clear();
                        }
                        versions.push((sent.value, completion.order));
                    }
                }
                Op::Read if is_whole => {
                    let data = self.returned.remove(&completion.tag).ok_or("a read returns nothing")?;
                    for (sector, bytes) in range.zip(data.chunks_exact(BYTES)) {
                        let (found, newest) =
                            (value_of(bytes)?, self.sectors[sector as usize].last().map(|(value, _)| *value));
                        if Some(found) != newest {
                            return Err(format!("a read of sector {sector} returns {found} and not {newest:?}"));
                        }
                    }
                }
                Op::Flush if is_whole => {
                    for versions in &mut self.sectors {
                        let newest = versions.pop();
                        versions.clear();
                        versions.extend(newest);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn cut(&mut self) -> Result<(), String> {
        self.disk.cut_power();
        self.judge()?;
        if !self.sent.is_empty() {
            return Err(format!("{} commands do not end with the power", self.sent.len()));
        }
        let medium = self.disk.on_medium(&(0..SECTORS));
        for (sector, (versions, bytes)) in self.sectors.iter_mut().zip(medium.chunks_exact(BYTES)).enumerate() {
            let found = value_of(bytes)?;
            if !versions.iter().any(|(value, _)| *value == found) {
                return Err(format!("sector {sector} holds {found} after a power cut, expected one of {versions:?}"));
            }
            *versions = vec![(found, 0)];
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        match self.disk.check().into_iter().find(|check| !check.passed) {
            Some(failed) => Err(format!("{}: {}", failed.name, failed.detail)),
            None => Ok(()),
        }
    }

    /// The disk is saved, and another one goes on from there.
    fn save_and_load(&mut self) -> Result<(), String> {
        let mut state = Vec::new();
        self.disk.save(&mut state).map_err(|error| error.to_string())?;
        let mut from = state.as_slice();
        self.disk = Disk::load(&self.config, Contents::Bytes, &mut from).map_err(|error| error.to_string())?;
        match from.is_empty() {
            true => Ok(()),
            false => Err(format!("{} bytes of the state are not read", from.len())),
        }
    }
}

/// Some 100 commands, power cuts and saved states, from a seed.
fn scenario(seed: u64) -> Result<(), String> {
    let mut rng = rng(seed, "disk contents");
    let enabled = format!("disk.write_cache.enabled={}", rng.random_range(0..4) > 0);
    let idle = format!("disk.write_cache.idle={}ms", [0, 1, 20][rng.random_range(0..3)]);
    let depth = format!("disk.queue.depth={}", [1, 2, 8, 32][rng.random_range(0..4)]);
    let ahead = format!("disk.read_cache.ahead={}", [0, 4096][rng.random_range(0..2)]);
    let sets = [
        "disk.zones=[{ cylinders = 2, sectors = 12 }, { cylinders = 3, sectors = 8 }]",
        "disk.capacity=48k",
        "disk.seek.knee_cylinders=2",
        "disk.write_cache.bytes=8k",
        &enabled,
        &idle,
        &depth,
        &ahead,
    ];
    let config = round(&sets);
    let disk = Disk::new(&config, Contents::Bytes);
    assert_eq!(disk.sectors(), SECTORS);
    let sectors = vec![vec![(0, 0)]; SECTORS as usize];
    let (sent, returned) = (BTreeMap::new(), BTreeMap::new());
    let mut host = Host { disk, config, sent, ended: Vec::new(), returned, sectors, tags: 0 };
    for _ in 0..100 {
        let sector = rng.random_range(0..SECTORS - 8);
        let length = rng.random_range(1..=8);
        match rng.random_range(0..100) {
            0..=39 => host.send(Request::new(Op::Write, sector, length)),
            40..=49 => host.send(Request { fua: true, ..Request::new(Op::Write, sector, length) }),
            50..=79 => host.send(Request::new(Op::Read, sector, length)),
            80..=87 => host.send(Request::new(Op::Flush, 0, 0)),
            88 => host.send(Request::new(Op::Trim, sector, length)),
            89 => host.send(Request::new(Op::Write, SECTORS - 1, 2)),
            90..=93 => host.cut()?,
            94..=95 => {
                while host.disk.outstanding() > 0 && host.disk.run_to_completion(Nanos::HORIZON) {
                    host.take();
                }
                host.save_and_load()?;
            }
            _ => host.disk.run_until(host.disk.now() + Nanos::from_ms(30)),
        }
        // Often at once, sometimes in the middle of something.
        let pause = [0, 0, rng.random_range(0..200_000), rng.random_range(0..4_000_000)][rng.random_range(0..4)];
        host.disk.run_until(host.disk.now() + Nanos(pause));
        host.take();
        host.check()?;
    }
    host.send(Request::new(Op::Flush, 0, 0));
    host.disk.run_until(host.disk.now() + Nanos::from_ms(60_000));
    host.judge()?;
    match host.disk.outstanding() {
        0 => host.cut(),
        left => Err(format!("{left} commands do not end")),
    }
}

#[test]
fn reads_return_the_newest_data_and_cuts_keep_what_was_promised() {
    for seed in 0..3_000 {
        scenario(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Every seeded bug is found, by a wrong answer or by an assertion, within so many seeds.
#[cfg(feature = "seeded-bugs")]
#[test]
fn every_seeded_bug_is_found() {
    use ssdlab_disk::seeded::{DiskBug, seed};
    let mut not_found = Vec::new();
    for bug in DiskBug::ALL {
        seed(Some(bug));
        let found = (0..500).find(|number| !matches!(std::panic::catch_unwind(|| scenario(*number)), Ok(Ok(()))));
        seed(None);
        match found {
            Some(number) => println!("{bug:?}: seed {number}, {}", bug.story()),
            None => not_found.push(bug),
        }
    }
    assert!(not_found.is_empty(), "not found: {not_found:?}");
}

#[test]
fn mapped_runs_are_those_of_the_medium_the_cache_and_the_heads_together() {
    let config = round(&["disk.write_cache.idle=0"]);
    let mut disk = Disk::new(&config, Contents::Nothing);
    let mut rng = rng(2, "mapped runs");
    let mut model = vec![false; 2_000];
    for _ in 0..200 {
        let (sector, length) = (rng.random_range(0..1_900), rng.random_range(1..=20));
        disk.submit(&Request { at: disk.now(), ..Request::new(Op::Write, sector, length) }, Data::Nothing);
        model[sector as usize..(sector + length) as usize].fill(true);
        disk.run_until(disk.now() + Nanos::from_us(rng.random_range(0..3_000)));
        let (mut from, mut found) = (0, Vec::new());
        while from < 2_000 {
            let (mapped, to) = disk.mapped_run(from, 2_000);
            assert!(to > from && found.last() != Some(&mapped), "runs from {from} to {to}");
            found.extend((from..to).map(|_| mapped));
            from = to;
        }
        assert_eq!(found, model);
    }
}
