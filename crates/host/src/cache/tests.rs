//! The manager beside a plain array of contents, and what it counts.

use rand::RngExt;
use ssdlab_base::command_sets::cache::{MISS_STAMP, Miss};
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Data, Description, Drive, Options, Status};
use ssdlab_flash::Contents;

use super::config::{CacheConfig, DropClean, MissCheck, Mode};
use super::{CacheManager, DISK, SSC};
use crate::ata::{Ata, AtaConfig};
use crate::{Administration as _, BlockDevice as _, Device, LayerError, Member, Power as _};

const BOARD: &str = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                     blocks_per_plane = 24\npages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[capacity]\nuser = \"3m\"\n\
                     [ftl]\nmapping_unit = \"4k\"\n[gc]\nfree_blocks = 3\n";

fn drive(name: &str, set: &[&str]) -> Box<dyn Device> {
    let mut description = Description::parse(BOARD, "small.toml").expect("a description");
    set.iter().for_each(|assignment| description.set(assignment).expect("a key of it"));
    let config = description.resolve().expect("a drive");
    let options = Options { seed: 1, contents: Contents::Bytes };
    Box::new(Member::of(name, Drive::new(&config, options).expect("a drive"), options))
}

fn ssc() -> Box<dyn Device> {
    drive("cache", &["ftl.design=ssc"])
}

fn config() -> CacheConfig {
    CacheConfig {
        mode: Mode::WriteBack,
        dirty_limit: 20,
        clean_size: 64 << 10,
        clean_batch: 128 << 10,
        copies: 2,
        sequential: 64 << 10,
        streams: 4,
        miss: Miss::Pattern,
        miss_check: MissCheck::DirtyTable,
        drop_clean: DropClean::Regions,
        region: 256 << 10,
        cache_flush: 32 << 10,
        identity: 0,
    }
}

/// The devices of a manager, which have done what they had taken, under another host.
fn parted(manager: CacheManager) -> Vec<Box<dyn Device>> {
    let rest = |mut member: Member| {
        while member.outstanding() > 0 {
            assert!(member.wait_for_completion(Nanos::MAX), "a drive does what it has taken");
            member.completions().clear();
        }
        member.completions().clear();
        member.read_data().clear();
        member.take_answers(&mut Vec::new());
        Box::new(member.for_a_new_host()) as Box<dyn Device>
    };
    Box::new(manager).into_members().into_iter().map(rest).collect()
}

/// What the model says of a sector that holds the pattern of a miss.
const PATTERN: u8 = 0xa5;

/// The pattern of a miss in the sectors of a request.
fn pattern(request: &Request) -> Vec<u8> {
    Data::Stamp(MISS_STAMP).sector_data(request, 512)
}

/// A stack, and what its sectors hold. Some writes bring the pattern of a miss.
struct Checked {
    manager: CacheManager,
    config: CacheConfig,
    model: Vec<u8>,
    tag: u32,
}

impl Checked {
    fn new(devices: Vec<Box<dyn Device>>, config: CacheConfig) -> Checked {
        let manager = CacheManager::new(devices, config).expect("a pair");
        let model = vec![0; manager.sectors() as usize];
        Checked { manager, config, model, tag: 0 }
    }

    fn ask(&mut self, request: Request) {
        self.tag += 1;
        let fill = if self.tag.is_multiple_of(5) { PATTERN } else { self.tag as u8 };
        let data = if fill == PATTERN { pattern(&request) } else { vec![fill; request.sectors as usize * 512] };
        let request = Request { at: self.manager.now(), tag: self.tag, ..request };
        let data = if request.op == Op::Write { Data::Bytes(&data) } else { Data::Nothing };
        self.manager.submit(&request, data);
        while self.manager.outstanding() > 0 {
            assert!(self.manager.run_to_completion(Nanos::MAX), "{request:?} never ends");
        }
        let status = self.manager.completions().pop().expect("it has ended").status;
        assert_eq!(status, Status::Success, "{request:?}");
        let range = request.sector as usize..request.end() as usize;
        match request.op {
            Op::Write => self.model[range].fill(fill),
            Op::Trim | Op::WriteZeroes => self.model[range].fill(0),
            Op::Read if request.sectors > 0 => {
                let (_, read) = self.manager.read_data().pop().expect("it brings data");
                let pattern = pattern(&request);
                let cells = read.chunks_exact(512).zip(pattern.chunks_exact(512));
                for (sector, ((cells, pattern), expected)) in
                    range.zip(cells.zip(&self.model[request.sector as usize..]))
                {
                    let is_expected = match *expected {
                        PATTERN => cells == pattern,
                        expected => cells.iter().all(|byte| *byte == expected),
                    };
                    assert!(is_expected, "sector {sector}: {} and not {expected}", cells[0]);
                }
            }
            Op::Read | Op::Flush => {}
        }
    }

    fn random(&mut self, rng: &mut Rng) -> Request {
        let op =
            [Op::Read, Op::Read, Op::Write, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush][rng.random_range(0..7)];
        if op == Op::Flush {
            return Request::new(op, 0, 0);
        }
        let sectors = [0, 1, 8, 8, 8, 16, 40][rng.random_range(0..7)];
        let all = self.model.len() as u64;
        let mut sector = rng.random_range(0..=all - sectors);
        if rng.random_bool(0.6) {
            sector = sector / 8 * 8;
        }
        // Most go to few blocks, so that these meet.
        let sector = if rng.random_bool(0.7) { sector % 512 } else { sector };
        Request { fua: rng.random_bool(0.1), ..Request::new(op, sector, sectors) }
    }

    /// The host stops, in good order or not, and another one begins.
    fn again(&mut self, closes: bool) {
        if closes {
            self.manager.close();
        }
        let other = CacheManager::new(vec![ssc(), drive("disk", &[])], config()).expect("a pair");
        let devices = parted(std::mem::replace(&mut self.manager, other));
        self.manager = CacheManager::new(devices, self.config).expect("the pair");
    }

    fn read_all(&mut self) {
        for sector in (0..self.model.len() as u64).step_by(512) {
            let sectors = 512.min(self.model.len() as u64 - sector);
            self.ask(Request::new(Op::Read, sector, sectors));
        }
    }

    fn figure(&self, name: &str) -> u64 {
        self.manager.layers()[0].figures[name] as u64
    }
}

#[test]
fn contents_are_those_of_a_plain_array() {
    for (seed, mode, limit, drop_clean, buffer, miss) in [
        (1, Mode::WriteBack, 20, DropClean::Regions, false, Miss::Pattern),
        (2, Mode::WriteBack, 0, DropClean::All, true, Miss::Pattern),
        (3, Mode::WriteBack, 100, DropClean::None, true, Miss::Words),
        (4, Mode::WriteThrough, 20, DropClean::Regions, false, Miss::Pattern),
        (5, Mode::WriteThrough, 20, DropClean::All, true, Miss::Error),
        (6, Mode::WriteBack, 0, DropClean::Regions, false, Miss::Error),
    ] {
        let mut rng = rng(seed, "cache manager");
        let buffer = if buffer { &["buffer.policy=fifo", "buffer.size=64k"][..] } else { &[] };
        // Half of the disk has room.
        let cache = drive("cache", &[buffer, &["ftl.design=ssc", "capacity.user=2m", "ftl.addresses=4m"]].concat());
        let config = CacheConfig { mode, dirty_limit: limit, drop_clean, miss, ..config() };
        let mut stack = Checked::new(vec![cache, drive("disk", &[buffer, &["capacity.user=4m"]].concat())], config);
        for number in 0..3000 {
            let request = stack.random(&mut rng);
            stack.ask(request);
            if number % 500 == 250 {
                stack.again(number % 1000 == 250);
            }
        }
        stack.read_all();
        let counted: Vec<u64> =
            ["read_hits", "misses_absent", "fills", "blocks_evicted"].iter().map(|name| stack.figure(name)).collect();
        // Of a read with an absent block an error tells nothing: all of it comes from the disk.
        let least = if miss == Miss::Error { 10 } else { 50 };
        assert!(counted.iter().all(|count| *count > least), "{miss:?}: {counted:?}");
        let cleaned = stack.figure("blocks_cleaned");
        assert!(limit == 100 || mode == Mode::WriteThrough || cleaned > 20, "seed {seed}: {cleaned} blocks");
        let of_pattern = ["misses_needless", "pattern_looked_up"].map(|name| stack.figure(name));
        assert_eq!(of_pattern.map(|count| count > 0), [miss == Miss::Pattern; 2], "{miss:?}: {of_pattern:?}");
    }
}

/// A device above which another host stood, with these bytes in its first block.
fn holding(device: Box<dyn Device>, block: &[u8]) -> Box<dyn Device> {
    let mut device = device;
    device.submit(&Request { fua: true, ..Request::new(Op::Write, 0, 8) }, Data::Bytes(block));
    device.run_until(Nanos(1_000_000_000));
    device.completions().clear();
    Box::new(device.into_members().remove(0).for_a_new_host())
}

/// A write of a block with these bytes, and then reads of it.
fn written_and_read(manager: &mut CacheManager, block: &[u8], reads: u32) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for tag in 0..=reads {
        let op = if tag == 0 { Op::Write } else { Op::Read };
        let request = Request { at: manager.now(), tag, ..Request::new(op, 0, 8) };
        manager.submit(&request, if tag == 0 { Data::Bytes(block) } else { Data::Nothing });
        // Cleaning and fills as well.
        while let Some(at) = manager.next_event() {
            manager.run_until(at);
        }
        let status = manager.completions().pop().map(|completion| completion.status);
        assert_eq!(status, Some(Status::Success), "{request:?}");
        found.extend(manager.read_data().pop().map(|(_, data)| data));
    }
    found
}

/// The published form loses a dirty block that holds the pattern of a miss, and reads a clean one from the disk. The table of dirty
/// blocks makes the first impossible; the second costs a read of the disk, and is counted. Erased flash is no pattern.
#[test]
fn a_block_that_holds_the_pattern_is_read_from_the_disk_where_it_is_clean_and_never_where_it_is_dirty() {
    let (older, pattern) = (vec![1; 4096], pattern(&Request::new(Op::Write, 0, 8)));
    assert!(pattern.iter().any(|byte| *byte != 0xff) && pattern.chunks_exact(512).all(|sector| sector[..8] != [0; 8]));
    let figures = ["read_hits", "misses_absent", "misses_needless", "pattern_looked_up", "pattern_dirty"];
    for (block, check, dirty_limit, expected, counted) in [
        (&pattern, MissCheck::DirtyTable, 100, &pattern, [2, 0, 0, 2, 2]),
        (&pattern, MissCheck::DirtyTable, 0, &pattern, [0, 2, 2, 2, 0]),
        // What was written is lost: the first fill takes its place.
        (&pattern, MissCheck::None, 100, &older, [1, 1, 0, 0, 0]),
        (&pattern, MissCheck::None, 0, &pattern, [0, 2, 2, 0, 0]),
        (&vec![0xff; 4096], MissCheck::DirtyTable, 0, &vec![0xff; 4096], [2, 0, 0, 0, 0]),
        (&vec![0; 4096], MissCheck::DirtyTable, 0, &vec![0; 4096], [2, 0, 0, 0, 0]),
    ] {
        let config = CacheConfig { miss_check: check, dirty_limit, ..config() };
        let devices = vec![ssc(), holding(drive("disk", &[]), &older)];
        let mut manager = CacheManager::new(devices, config).expect("a pair");
        let found = written_and_read(&mut manager, block, 2);
        let context = format!("{check:?}, dirty limit {dirty_limit}, {:#x}", block[0]);
        assert_eq!(found.len(), 2, "{context}");
        assert!(found.iter().all(|found| found == expected), "{context}");
        let all = &manager.layers()[0].figures;
        assert_eq!(figures.map(|name| all[name] as u64), counted, "{context}: {figures:?}");
    }
}

/// The board of Getting Real with the error handling of ATA above the cache. Nothing was written, so that reads miss, and what stands for
/// the disk has nothing to read.
fn jasmine(miss: Miss) -> CacheManager {
    let board = |name: &str, set: &[&str]| {
        let text = include_str!("../../../../devices/jasmine-8g.toml");
        let mut description = Description::parse(text, "jasmine-8g.toml").expect("a description");
        set.iter().for_each(|assignment| description.set(assignment).expect("a key of it"));
        let options = Options { seed: 1, contents: Contents::Nothing };
        let drive = Drive::new(&description.resolve().expect("a drive"), options).expect("a drive");
        Box::new(Member::of(name, drive, options)) as Box<dyn Device>
    };
    let cache = board("cache", &["ftl.design=ssc", "gc.free_blocks=3", "ftl.mapping_unit=4k", "capacity.user=7g"]);
    let ata = AtaConfig {
        tags: 31,
        retries: 5,
        timeout: Nanos(30_000_000_000),
        error_time: Nanos(0),
        reset_time: Nanos(150_000_000),
    };
    let devices: Vec<Box<dyn Device>> = vec![Box::new(Ata::new(cache, ata)), board("disk", &["capacity.user=6g"])];
    CacheManager::new(devices, CacheConfig { miss, ..config() }).expect("a pair")
}

/// Latencies of reads of blocks that arrive a millisecond apart.
fn latencies(manager: &mut CacheManager, blocks: &[u64]) -> Vec<u64> {
    let mut at = manager.now();
    for (tag, block) in (0..).zip(blocks) {
        manager.submit(&Request { at, tag, ..Request::new(Op::Read, block * 8, 8) }, Data::Nothing);
        at = Nanos(at.0 + 1_000_000);
    }
    while let Some(next) = manager.next_event() {
        manager.run_until(next);
    }
    let mut ended = std::mem::take(manager.completions());
    ended.sort_by_key(|completion| completion.tag);
    assert!(ended.iter().all(|completion| completion.status == Status::Success), "{ended:?}");
    ended.iter().map(|completion| completion.at.0 - completion.submitted.0).collect()
}

/// Words cost least; a pattern, the transfer of useless data; an error, a reset of the link after all retries, and everything else that is in
/// flight then.
#[test]
fn a_miss_costs_a_transfer_or_a_reset_by_the_way_in_which_it_is_told() {
    let [words, pattern, error] = [Miss::Words, Miss::Pattern, Miss::Error].map(|miss| {
        let mut manager = jasmine(miss);
        manager.reset_statistics();
        let alone: Vec<u64> = (1..11).flat_map(|read| latencies(&mut manager, &[1000 * read])).collect();
        // What was read is cached now: a hit that comes after a miss.
        let beside = latencies(&mut manager, &[77_777, 1000])[1];
        let figures = manager.layers()[1].figures.clone();
        (alone.iter().sum::<u64>() / alone.len() as u64, beside, ["errors", "resets"].map(|name| figures[name] as u64))
    });
    let (of_words, of_pattern, of_error) = (words.0, pattern.0, error.0);
    let transfer = of_pattern - of_words;
    println!("a miss: {of_words} ns by words, {of_pattern} ns by a pattern, {of_error} ns by an error");
    println!("a hit 1 ms after a miss: {} ns, {} ns, {} ns", words.1, pattern.1, error.1);
    // 4 KB at 300 MB/s.
    assert!((13_653..14_000).contains(&transfer), "{of_words} ns by words, {of_pattern} ns by a pattern");
    assert!((150_000_000..160_000_000).contains(&of_error), "{of_error} ns by an error");
    assert_eq!((words.2, pattern.2, error.2), ([0, 0], [0, 0], [11 * 6, 11]));
    assert!(words.1 < 5_000_000 && pattern.1 < 5_000_000, "a hit after a miss: {} and {} ns", words.1, pattern.1);
    assert!(error.1 > 140_000_000, "a hit after an error: {} ns", error.1);
}

/// Words carry what no data can: a drive that keeps no contents misses as one that keeps bytes.
#[test]
fn a_run_without_contents_misses_as_often() {
    let misses = |contents: Contents, miss: Miss| {
        let mut description = Description::parse(BOARD, "small.toml").expect("a description");
        description.set("ftl.design=ssc").expect("a key of it");
        let cache = description.resolve().expect("a drive");
        let disk = Description::parse(BOARD, "small.toml").and_then(|disk| disk.resolve()).expect("a drive");
        let options = Options { seed: 1, contents };
        let devices = [("cache", &cache), ("disk", &disk)].map(|(name, config)| {
            Box::new(Member::of(name, Drive::new(config, options).expect("a drive"), options)) as Box<dyn Device>
        });
        let mut manager = CacheManager::new(devices.into(), CacheConfig { miss, ..config() }).expect("a pair");
        let mut rng = rng(3, "misses without contents");
        for tag in 0..600 {
            let op = if rng.random_bool(0.5) { Op::Read } else { Op::Write };
            let at = manager.now();
            let request = Request { at, tag, ..Request::new(op, rng.random_range(0..600) * 8, 8) };
            manager.submit(&request, if op == Op::Write { Data::Stamp(u64::from(tag) + 1) } else { Data::Nothing });
            while let Some(at) = manager.next_event() {
                manager.run_until(at);
            }
            manager.completions().clear();
            manager.read_data().clear();
        }
        let all = &manager.layers()[0].figures;
        ["read_hits", "misses_absent", "fills"].map(|name| all[name] as u64)
    };
    let expected = misses(Contents::Bytes, Miss::Words);
    assert!(expected.iter().all(|count| *count > 50), "{expected:?}");
    for contents in [Contents::Nothing, Contents::Stamps, Contents::Bytes] {
        for miss in [Miss::Words, Miss::Pattern, Miss::Error] {
            assert_eq!(misses(contents, miss), expected, "{contents:?}, {miss:?}");
        }
    }
}

/// Each block that a read wants is a hit or read from the disk; nothing else is read there.
#[test]
fn reads_of_the_disk_are_misses_to_the_last_one() {
    for mode in [Mode::WriteBack, Mode::WriteThrough] {
        let mut rng = rng(7, "misses");
        let mut stack = Checked::new(vec![ssc(), drive("disk", &[])], CacheConfig { mode, ..config() });
        stack.manager.reset_statistics();
        let mut wanted = 0;
        for _ in 0..4000 {
            let request = stack.random(&mut rng);
            if request.op == Op::Read && request.sectors > 0 {
                wanted += request.end().div_ceil(8) - request.sector / 8;
            }
            stack.ask(request);
        }
        // Fills go on after the answer.
        while let Some(at) = stack.manager.next_event() {
            stack.manager.run_until(at);
        }
        let misses = ["misses_absent", "misses_unreadable", "misses_read_only"].map(|name| stack.figure(name));
        assert_eq!(stack.figure("read_hits") + misses.iter().sum::<u64>(), wanted);
        let disk = stack.manager.io.array.device(DISK).taken();
        assert_eq!(disk.bytes[0], misses.iter().sum::<u64>() * 4096, "{mode:?}");
        assert_eq!(disk.requests[0], stack.figure("disk_reads"));
        let cache = stack.manager.io.array.device(SSC).drives()[0].device.counters();
        assert!(cache.commands[0] > 0 && misses[0] > 100);
        let filled = stack.figure("fills") + stack.figure("fills_refused") + stack.figure("fills_overtaken");
        assert_eq!(filled, misses.iter().sum::<u64>());
    }
}

#[test]
fn what_is_dirty_is_found_again_and_clean_blocks_stay_after_a_shutdown() {
    for (drop_clean, closes, warm) in [
        (DropClean::Regions, true, true),
        (DropClean::All, true, true),
        (DropClean::All, false, false),
        (DropClean::None, false, true),
    ] {
        let config = CacheConfig { drop_clean, dirty_limit: 100, ..config() };
        let mut stack = Checked::new(vec![ssc(), drive("disk", &[])], config);
        for block in 0..16 {
            stack.ask(Request::new(Op::Write, 16 * block, 8));
            stack.ask(Request::new(Op::Read, 16 * block + 8, 8));
        }
        assert_eq!(stack.figure("dirty"), 16);
        stack.again(closes);
        assert_eq!(stack.figure("dirty"), 16, "{drop_clean:?}");
        stack.ask(Request::new(Op::Read, 0, 256));
        let expected = if warm { [32, 0] } else { [16, 16] };
        assert_eq!([stack.figure("read_hits"), stack.figure("misses_absent")], expected, "{drop_clean:?}, {closes}");
    }
}

#[test]
fn a_flush_goes_to_the_devices_on_which_something_waits_for_it() {
    let block = |op, block: u64| Request::new(op, 8 * block, 8);
    let flush = Request::new(Op::Flush, 0, 0);
    // The first four are written before: through the cache, or dirty.
    for (mode, requests, flushes) in [
        (Mode::WriteThrough, vec![flush], [0, 0]),
        (Mode::WriteThrough, vec![block(Op::Read, 9), flush], [0, 0]),
        (Mode::WriteThrough, vec![block(Op::Write, 9), flush, flush], [0, 1]),
        // With so many bytes the cache has its turn, once.
        (Mode::WriteThrough, (0..8).map(|at| block(Op::Write, at)).chain([flush, flush]).collect(), [1, 1]),
        (Mode::WriteBack, vec![flush], [0, 0]),
        (Mode::WriteBack, vec![block(Op::Write, 1), flush, flush], [1, 0]),
        (Mode::WriteBack, vec![Request { fua: true, ..block(Op::Write, 1) }, flush], [0, 0]),
        (Mode::WriteBack, vec![block(Op::Trim, 1), flush], [1, 1]),
        (Mode::WriteBack, vec![block(Op::Trim, 9), flush], [0, 1]),
    ] {
        let config = CacheConfig { mode, dirty_limit: 100, ..config() };
        let mut stack = Checked::new(vec![ssc(), drive("disk", &[])], config);
        (0..4).for_each(|at| stack.ask(block(Op::Write, at)));
        stack.again(true);
        requests.iter().for_each(|request| stack.ask(*request));
        let counted = ["cache_flushes", "disk_flushes"].map(|name| stack.figure(name));
        assert_eq!(counted, flushes, "{mode:?}: {requests:?}");
    }
}

/// Copies go to the disk only from flash, so a crash within a batch leaves every clean block.
#[test]
fn a_crash_within_a_batch_of_copies_costs_no_clean_blocks() {
    let config = CacheConfig { dirty_limit: 0, clean_batch: 512 << 10, ..config() };
    for steps in 0..60 {
        let mut stack = Checked::new(vec![ssc(), drive("disk", &[])], CacheConfig { dirty_limit: 100, ..config });
        for block in 0..64 {
            stack.ask(Request::new(Op::Read, 16 * block, 8));
            stack.ask(Request::new(Op::Write, 16 * block + 8, 8));
        }
        stack.config = config;
        stack.again(true);
        stack.ask(Request::new(Op::Write, 8, 8));
        for _ in 0..steps {
            let Some(at) = stack.manager.next_event() else { break };
            stack.manager.run_until(at);
        }
        stack.again(false);
        assert_eq!(stack.figure("dropped_ranges"), 0, "{steps}");
        stack.ask(Request::new(Op::Read, 0, 1024));
        assert_eq!(stack.figure("read_misses"), 0, "{steps}");
        stack.read_all();
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |devices: Vec<Box<dyn Device>>| CacheManager::new(devices, config()).err().expect("it is refused");
    let no_set = refused(vec![drive("cache", &[]), drive("disk", &[])]);
    assert!(matches!(no_set, LayerError::UnknownSet { .. }), "{no_set}");
    let large = refused(vec![ssc(), drive("disk", &["capacity.user=4m"])]).to_string();
    assert!(large.contains("the disk has 4 MiB, and the cache addresses 3 MiB"), "{large}");
    assert!(large.contains("set ftl.addresses=4194304 and ftl.allocation=dynamic"), "{large}");
    // Two pairs that were started as often differ in their names.
    let pair = |name: &str| parted(CacheManager::new(vec![ssc(), drive(name, &[])], config()).expect("a pair"));
    let (mut one, mut other) = (pair("disk"), pair("other"));
    let swapped = refused(vec![one.remove(0), other.remove(1)]).to_string();
    assert!(swapped.contains("expected those of one pair with as many starts"), "{swapped}");
    // One of two pairs that are alike was started once more: its cache knows more than the other's disk, and the other way round.
    let again = |pair| parted(CacheManager::new(pair, config()).expect("the pair"));
    for (cache_again, disk_again) in [(true, false), (false, true)] {
        let of = |is_again| if is_again { again(pair("disk")) } else { pair("disk") };
        let (mut caches, mut disks) = (of(cache_again), of(disk_again));
        let missed = refused(vec![caches.remove(0), disks.remove(1)]);
        assert!(matches!(missed, LayerError::OtherPair { .. }), "{cache_again}: {missed}");
    }
    let new = refused(vec![ssc(), one.remove(0)]).to_string();
    assert!(new.contains("the cache has the record none"), "{new}");
    let mut used = ssc();
    used.submit(&Request::new(Op::Write, 0, 8), Data::Bytes(&[1; 4096]));
    used.run_until(Nanos(1_000_000_000));
    used.completions().clear();
    let used = Box::new(used.into_members().remove(0).for_a_new_host());
    let foreign = refused(vec![used, drive("disk", &[])]);
    assert_eq!(foreign, LayerError::ForeignCache { blocks: 1 });
}
