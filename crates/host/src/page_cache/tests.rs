//! Lists of pages beside plain lists, and how long runs are that go down.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::description::{Section, Tree};
use ssdlab_device::{Data, Description, Drive, Options};
use ssdlab_flash::Contents;

use super::pages::{DIRTY, Pages, long, short};
use super::{PageCache, PageCacheConfig};
use crate::scheduler::LAYER as SCHEDULER;
use crate::{Administration as _, BlockDevice as _, Device, Member};

fn config(ram: u64) -> PageCacheConfig {
    PageCacheConfig {
        ram,
        read_ahead: 128 << 10,
        dirty: 100,
        background: 100,
        expire: Nanos(30_000_000_000),
        period: Nanos(5_000_000_000),
        write_size: 16 << 20,
        writes: 128,
        copy_time: Nanos(1_000),
    }
}

const SMALL: &str = "name = \"small\"\n[flash]\nchannels = 4\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                     blocks_per_plane = 128\npages_per_block = 64\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\n\
                     user = \"96m\"\n";

fn small_drive() -> Box<dyn Device> {
    drive(SMALL, Contents::Nothing)
}

fn drive(text: &str, contents: Contents) -> Box<dyn Device> {
    let drive = Description::parse(text, "small.toml").and_then(|description| description.resolve()).expect("a drive");
    let options = Options { seed: 1, contents };
    Member::alone(Drive::new(&drive, options).expect("a drive"), options)
}

fn cache(ram: u64) -> PageCache {
    PageCache::new(small_drive(), config(ram))
}

fn run_out(cache: &mut PageCache) {
    while cache.outstanding() > 0 {
        assert!(cache.run_to_completion(Nanos::MAX), "a command completes");
        cache.completions().clear();
    }
    cache.completions().clear();
}

/// With a share d of the blocks dirty, each of them alike, a run ends behind a block with the probability 1 - d.
#[test]
fn runs_of_uniform_writes_are_as_long_as_the_dirty_share_says() {
    for percent in [5_u32, 11, 20, 50] {
        let (mut blocks, mut requests, mut share) = (0.0, 0.0, 0.0);
        const ROUNDS: u64 = 8;
        for seed in 0..ROUNDS {
            let mut cache = cache(128 << 20);
            let all = cache.sectors() / 8;
            let mut rng = rng(seed, "uniform writes");
            while u64::from(cache.pages.dirty()) < all * u64::from(percent) / 100 {
                let request = Request::new(Op::Write, rng.random_range(0..all) * 8, 8);
                cache.submit(&Request { at: cache.now(), ..request }, Data::Nothing);
                run_out(&mut cache);
            }
            share += f64::from(cache.pages.dirty()) / all as f64 / ROUNDS as f64;
            cache.submit(&Request { at: cache.now(), ..Request::new(Op::Flush, 0, 0) }, Data::Nothing);
            run_out(&mut cache);
            let figures = &cache.layers()[0].figures;
            assert_eq!(figures["dirty"], 0.0, "a flush leaves nothing dirty");
            blocks += figures["written_back_flush"];
            requests += figures["write_back_requests"];
        }
        let (found, expected) = (blocks / requests, 1.0 / (1.0 - share));
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{percent} % dirty: {found:.4} blocks a run, {expected:.4} expected"
        );
    }
}

/// Two lists of recency as vectors.
#[derive(Default)]
struct Lists {
    inactive: Vec<(u32, bool)>,
    active: Vec<u32>,
    dirty: Vec<u32>,
}

impl Lists {
    fn evict(&mut self) {
        while self.active.len() > self.inactive.len() {
            let block = self.active.remove(0);
            self.inactive.push((block, false));
        }
        let clean = self.inactive.iter().position(|(block, _)| !self.dirty.contains(block));
        match clean {
            Some(at) => {
                // Those that cannot leave have had their turn.
                self.inactive.rotate_left(at);
                self.inactive.remove(0);
            }
            None => {
                let at = self.active.iter().position(|block| !self.dirty.contains(block)).expect("one is clean");
                let stay: Vec<u32> = self.active.drain(..=at).take(at).collect();
                self.inactive.extend(stay.into_iter().map(|block| (block, false)));
            }
        }
    }

    fn touch(&mut self, block: u32) {
        let Some(at) = self.inactive.iter().position(|(other, _)| *other == block) else { return };
        if self.inactive[at].1 {
            self.inactive.remove(at);
            self.active.push(block);
        } else {
            self.inactive[at].1 = true;
        }
    }
}

#[test]
fn blocks_leave_as_two_plain_lists_say() {
    let mut rng = rng(4, "two lists");
    const MOST: usize = 24;
    let (mut pages, mut lists) = (Pages::new(MOST as u32, 0), Lists::default());
    let mut evicted = 0;
    for step in 0..60_000 {
        let block = rng.random_range(0..40);
        match pages.find(block) {
            None => {
                let is_full = lists.inactive.len() + lists.active.len() == MOST;
                if is_full && lists.dirty.len() == MOST {
                    assert!(!pages.has_space() && pages.insert(block).is_none(), "nothing can leave");
                    let page = pages.find(lists.dirty.remove(0)).expect("a dirty block is cached");
                    pages.clean(page);
                    continue;
                }
                if is_full {
                    lists.evict();
                    evicted += 1;
                }
                lists.inactive.push((block, false));
                assert!(pages.insert(block).is_some(), "step {step}");
            }
            Some(page) if rng.random_bool(0.2) => match lists.dirty.iter().position(|other| *other == block) {
                Some(at) => {
                    lists.dirty.remove(at);
                    pages.clean(page);
                }
                None => {
                    lists.dirty.push(block);
                    pages.make_dirty(page, Nanos(step));
                }
            },
            Some(page) => {
                lists.touch(block);
                pages.touch(page);
            }
        }
        let known = lists.inactive.iter().map(|(block, _)| block).chain(&lists.active);
        assert!(known.clone().all(|block| pages.find(*block).is_some()), "step {step}");
        assert_eq!((pages.len() as usize, pages.dirty() as usize), (known.count(), lists.dirty.len()), "step {step}");
        let mut dirty = lists.dirty.clone();
        dirty.sort_unstable();
        assert_eq!(pages.dirty_since(Nanos::MAX), dirty);
        assert!(dirty.iter().all(|block| pages.has(pages.find(*block).expect("it is cached"), DIRTY)));
    }
    assert!(evicted > 3000, "only {evicted} blocks left: this test tests nothing");
}

/// A page cache above a scheduler: how long a block and its flush take.
fn flush_time(unplug: &str) -> u64 {
    let tree = Tree::parse(&format!("policy = \"noop\"\n{unplug}"), "test.toml").expect("a text");
    let below = (SCHEDULER.read)(&Section::root(&tree, SCHEDULER.keys)).expect("keys that it takes");
    let mut cache = PageCache::new(below.make(vec![small_drive()]).expect("a layer"), config(8 << 20));
    for request in [Request::new(Op::Write, 8, 8), Request::new(Op::Flush, 0, 0)] {
        cache.submit(&Request { at: cache.now(), ..request }, Data::Nothing);
        run_out(&mut cache);
    }
    let below = &cache.layers()[1].figures;
    assert_eq!((below["unplugged_by_time"], below["plugs"]), (0.0, below["unplugged_by_waiter"]));
    cache.now().0
}

#[test]
fn a_flush_does_not_wait_for_a_plug() {
    assert_eq!(flush_time("unplug_time = \"50ms\"\n"), flush_time("unplug_requests = 1\n"));
}

/// A dirty block is written back at the first multiple of `period` at which it has expired, and no look before takes a step: there would be
/// 30 billion of them.
#[test]
fn looks_that_can_find_nothing_take_no_step() {
    let period = Nanos(1);
    let mut cache = PageCache::new(small_drive(), PageCacheConfig { period, ..config(8 << 20) });
    cache.submit(&Request::new(Op::Write, 8, 8), Data::Nothing);
    run_out(&mut cache);
    let (written, mut steps) = (cache.now(), 0);
    while let Some(at) = cache.next_event() {
        cache.run_until(at);
        steps += 1;
        assert!(steps < 100, "step {steps} at {at}");
    }
    let figures = &cache.layers()[0].figures;
    assert_eq!((figures["dirty"], figures["written_back_expiry"]), (0.0, 1.0));
    assert!(cache.now() >= Nanos(30_000_000_000) && cache.now() < written + Nanos(30_010_000_000));
}

/// A block is written while it is read ahead, and read together with a neighbour that is still on its way: what was written is read, and not
/// what the fetch brings (tests/systems, seed 540072400241016083).
#[test]
fn a_read_takes_of_a_fetch_only_what_it_waits_for() {
    let text = format!("{SMALL}[interface]\nbandwidth = \"16m\"\n");
    for changes in [Request::new(Op::Write, 16, 8), Request { fua: true, ..Request::new(Op::Write, 16, 8) }] {
        let mut cache = PageCache::new(drive(&text, Contents::Bytes), config(8 << 20));
        // It reads blocks 0 to 3, and after the change the next four.
        cache.submit(&Request { tag: 1, ..Request::new(Op::Read, 0, 8) }, Data::Nothing);
        cache.submit(&Request { tag: 2, ..changes }, Data::Bytes(&[7; 4096]));
        while !cache.completions().iter().any(|completion| completion.tag == 2) {
            let at = cache.next_event().expect("a write ends");
            cache.run_until(at);
        }
        cache.submit(&Request { at: cache.now(), tag: 3, ..Request::new(Op::Read, 8, 16) }, Data::Nothing);
        run_out(&mut cache);
        let read = cache.read_data().iter().find(|(tag, _)| *tag == 3).expect("it was read").1.clone();
        assert!(read[..4096].iter().all(|byte| *byte == 0), "block 1 was never written");
        assert!(read[4096..].iter().all(|byte| *byte == 7), "block 2 was written, {changes:?}");
    }
}

/// A run may last for centuries where a firmware takes a day for a command (tests/systems, seed 364080870470010505).
#[test]
fn every_time_has_room_in_a_page_and_times_keep_their_order() {
    let mut rng = rng(5, "times of pages");
    let mut times: Vec<u64> = (0..10_000).map(|_| rng.random::<u64>() >> rng.random_range(0..64)).collect();
    times.extend([0, (1 << 55) - 1, 1 << 55, (1 << 55) + 511, (1 << 55) + 512, u64::MAX]);
    times.sort_unstable();
    for time in &times {
        assert!(short(*time) < 1 << 56, "{time}");
        let kept = long(short(*time));
        assert!(kept <= *time && time - kept < 512 && (kept == *time || *time >= 1 << 55), "{time} is kept as {kept}");
    }
    assert!(times.windows(2).all(|pair| long(short(pair[0])) <= long(short(pair[1]))));
}
