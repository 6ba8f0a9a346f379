//! The manager beside a plain array of contents, and what it counts.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Data, Description, Drive, Options, Status};
use ssdlab_flash::Contents;

use super::config::{CacheConfig, DropClean, Mode};
use super::{CacheManager, DISK, SSC};
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
        drop_clean: DropClean::Regions,
        region: 256 << 10,
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

/// A stack, and what its sectors hold.
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
        let fill = self.tag as u8;
        let data = vec![fill; request.sectors as usize * 512];
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
                for (sector, (cells, expected)) in
                    range.zip(read.chunks_exact(512).zip(&self.model[request.sector as usize..]))
                {
                    assert!(
                        cells.iter().all(|byte| byte == expected),
                        "sector {sector}: {} and not {expected}",
                        cells[0]
                    );
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
    for (seed, mode, limit, drop_clean, buffer) in [
        (1, Mode::WriteBack, 20, DropClean::Regions, false),
        (2, Mode::WriteBack, 0, DropClean::All, true),
        (3, Mode::WriteBack, 100, DropClean::None, true),
        (4, Mode::WriteThrough, 20, DropClean::Regions, false),
        (5, Mode::WriteThrough, 20, DropClean::All, true),
    ] {
        let mut rng = rng(seed, "cache manager");
        let buffer = if buffer { &["buffer.policy=fifo", "buffer.size=64k"][..] } else { &[] };
        // Half of the disk has room.
        let cache = drive("cache", &[buffer, &["ftl.design=ssc", "capacity.user=2m", "ftl.addresses=4m"]].concat());
        let config = CacheConfig { mode, dirty_limit: limit, drop_clean, ..config() };
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
        assert!(counted.iter().all(|count| *count > 50), "{counted:?}");
        assert!(limit == 100 || mode == Mode::WriteThrough || stack.figure("blocks_cleaned") > 50);
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
    assert!(swapped.contains("expected those of one pair"), "{swapped}");
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
