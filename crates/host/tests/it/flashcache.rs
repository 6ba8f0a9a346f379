//! FlashCache above two drives, a cache and a disk: what it caches, cleans, keeps over restarts and refuses.

use std::collections::VecDeque;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::{Contents, FaultKind};
use ssdlab_host::{Administration as _, BlockDevice as _, Device, Host, Loss, Member};

use crate::one_by_one::{flush, one, read, write};

/// A drive of so many bytes whose units have 8 sectors.
fn drive(name: &str, user: &str, set: &[&str]) -> DriveConfig {
    let text = format!(
        "name = \"{name}\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
         blocks_per_plane = 64\npages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[capacity]\nuser = \"{user}\"\n\
         [buffer]\npolicy = \"none\"\n[ftl]\nmapping_unit = \"4k\"\n"
    );
    let mut description = Description::parse(&text, "small.toml").expect("a description");
    set.iter().for_each(|set| description.set(set).expect("a setting"));
    description.resolve().expect("a drive")
}

fn host(keys: &str) -> Host {
    let text = format!("[[layer]]\nkind = \"flashcache\"\n{keys}[[layer.below]]\n[[layer.below]]\n");
    Host::parse(&text, "host.toml").expect("a host")
}

fn member(name: &str, set: &[&str], contents: Contents) -> Member {
    let mut member = Member::new(name, &drive(name, "4m", set), Options { seed: 1, contents }).expect("a drive");
    member.drives_mut()[0].device.expect_faults();
    member
}

/// A cache and a disk.
fn members(set: &[&str], contents: Contents) -> Vec<Member> {
    vec![member("cache", set, contents), member("disk", set, contents)]
}

fn layer(keys: &str) -> Box<dyn Device> {
    host(keys).build(members(&[], Contents::Bytes)).expect("a stack")
}

/// Drives that lose what is not flushed.
const BUFFERED: &[&str] = &["buffer.policy=lru", "buffer.size=256k"];

fn figure(device: &dyn Device, name: &str) -> u64 {
    device.layers()[0].figures[name] as u64
}

fn figures<const N: usize>(device: &dyn Device, names: [&str; N]) -> [u64; N] {
    names.map(|name| figure(device, name))
}

/// Lets cleaning come to its end.
fn rest(device: &mut dyn Device, time: Nanos) {
    let until = Nanos(device.now().0 + time.0);
    device.run_until(until);
}

const SECOND: Nanos = Nanos(1_000_000_000);

/// The power of everything goes, and a new layer begins above what is left.
fn cut_all(device: Box<dyn Device>, keys: &str) -> Box<dyn Device> {
    let mut members = device.into_members();
    for member in &mut members {
        member.cycle(&mut |_| None);
        // What was in flight is answered to no client.
        member.completions().clear();
        member.read_data().clear();
    }
    host(keys).build(members).expect("it comes back")
}

#[test]
fn sizes_and_keys_that_cannot_work_are_refused_with_their_place() {
    let config = drive("small", "4m", &[]);
    for (keys, numbers) in [
        ("", "the cache drive: found 1 MiB, expected at least 2060 KiB, for 2 MiB of blocks"),
        ("size = \"4m\"\nset = 8\n", "the cache drive: found 4 MiB, expected at least 4116 KiB, for 4 MiB of blocks"),
        ("size = \"1m\"\n", "size: found 1 MiB, expected at least 2 MiB, one set of 512 blocks"),
    ] {
        let config = if keys.is_empty() { drive("small", "1m", &[]) } else { config.clone() };
        let refused = host(keys).sectors(&config).expect_err(keys).to_string();
        assert!(refused.starts_with("host.toml:2:8: the layer flashcache") && refused.contains(numbers), "{refused}");
    }
    for (keys, place, expected) in [
        ("mode = \"back\"\n", "host.toml:3:8: layer[0].mode", "write-around"),
        ("dirty_threshold = \"101%\"\n", "host.toml:3:19: layer[0].dirty_threshold", "100"),
        ("metadata_block = 600\n", "host.toml:3:18: layer[0].metadata_block", "512"),
        ("set = 0\n", "host.toml:3:7: layer[0].set", "1"),
    ] {
        let text = format!("[[layer]]\nkind = \"flashcache\"\n{keys}[[layer.below]]\n[[layer.below]]\n");
        let refused = Host::parse(&text, "host.toml").expect_err(keys).to_string();
        assert!(refused.starts_with(place) && refused.contains(expected), "{refused}");
    }
}

/// 512 blocks of 4 KB take 2 MB, and 16 bytes each 8 KB; the superblock has 4 KB, and so has the label on the disk.
#[test]
fn the_disk_keeps_its_capacity_but_for_a_label_and_the_cache_holds_whole_sets() {
    let device = layer("");
    assert_eq!(device.sectors(), (4 << 20) / 512 - 8);
    assert_eq!(device.layers()[0].configuration["size"], "2 MiB");
    let device = layer("set = 8\n");
    // 127 sets, four metadata blocks and the superblock are all of it but three blocks.
    assert_eq!(device.layers()[0].configuration["size"], "4064 KiB");
}

#[test]
fn the_first_write_of_a_block_writes_metadata_and_later_ones_do_not() {
    let mut device = layer("");
    write(&mut *device, 16, 8, 1);
    assert_eq!(figures(&*device, ["write_misses", "metadata_writes", "disk_writes", "dirty"]), [1, 1, 0, 1]);
    write(&mut *device, 16, 8, 2);
    assert_eq!(figures(&*device, ["write_hits", "dirty_write_hits", "metadata_writes", "dirty"]), [1, 1, 1, 1]);
    assert_eq!(read(&mut *device, 16, 8), [2; 8]);
    assert_eq!(figures(&*device, ["read_hits", "read_misses", "disk_reads"]), [1, 0, 0]);
    // Entries of one metadata block share its write.
    write(&mut *device, 160, 64, 3);
    assert_eq!(figures(&*device, ["metadata_writes", "metadata_updates"]), [2, 9]);
    let parts: Vec<u64> = device.layers()[0].sent.requests.to_vec();
    // Its start read the superblock, the label and the disk's first sector, and wrote the superblock twice and the label.
    assert_eq!(parts[..2], [3 + 1, 3 + 5], "a read, three writes of data and two of metadata");
}

#[test]
fn a_missed_read_fills_the_cache_and_the_next_one_hits() {
    for mode in ["write-back", "write-through", "write-around"] {
        let mut device = layer(&format!("mode = \"{mode}\"\nskip_sequential = 0\n"));
        assert_eq!(read(&mut *device, 0, 64), [0; 64]);
        assert_eq!(figures(&*device, ["read_misses", "fills", "disk_reads", "disk_read_sectors"]), [8, 8, 1, 64]);
        assert_eq!(read(&mut *device, 0, 64), [0; 64]);
        assert_eq!(figures(&*device, ["read_hits", "disk_reads"]), [8, 1]);
        write(&mut *device, 8, 8, 5);
        assert_eq!(read(&mut *device, 0, 24), [[0; 8], [5; 8], [0; 8]].concat());
        let (disk_writes, metadata) = if mode == "write-back" { (0, 1) } else { (1, 0) };
        assert_eq!(figures(&*device, ["disk_writes", "metadata_writes"]), [disk_writes, metadata], "{mode}");
        let expected = if mode == "write-around" { [1, 9, 10] } else { [0, 8, 11] };
        assert_eq!(figures(&*device, ["invalidated", "fills", "read_hits"]), expected, "{mode}");
    }
}

/// A set of ten blocks; two of them may be dirty.
#[test]
fn dirty_blocks_above_the_threshold_are_cleaned_in_the_order_of_the_disk() {
    let mut device = layer("set = 10\nsize = \"40k\"\n");
    for block in [7, 3, 4, 9, 1] {
        write(&mut *device, block * 8, 8, block as u8);
    }
    rest(&mut *device, SECOND);
    assert_eq!(figure(&*device, "dirty"), 2);
    assert_eq!(figure(&*device, "cleaned_threshold"), 3);
    assert_eq!(figure(&*device, "cached"), 5, "a cleaned block stays");
    for block in [7, 3, 4, 9, 1] {
        assert_eq!(read(&mut *device, block * 8, 8), [block as u8; 8]);
    }
    assert_eq!(figure(&*device, "read_hits"), 5);
    // Neighbours go with it in one write.
    let mut device = layer("set = 10\nsize = \"40k\"\nclean_writes_set = 1\n");
    write(&mut *device, 24, 24, 1);
    rest(&mut *device, SECOND);
    assert_eq!(figures(&*device, ["dirty", "cleaned_threshold", "disk_writes"]), [0, 3, 1]);
}

#[test]
fn dirty_blocks_that_are_not_used_are_cleaned_after_their_time() {
    let mut device = layer("fallow_delay = \"2s\"\n");
    write(&mut *device, 0, 8, 1);
    write(&mut *device, 80, 8, 2);
    rest(&mut *device, SECOND);
    read(&mut *device, 80, 8);
    rest(&mut *device, Nanos(SECOND.0 * 3 / 2));
    assert_eq!(figures(&*device, ["cleaned_fallow", "dirty"]), [1, 1], "the other one was read");
    rest(&mut *device, SECOND);
    assert_eq!(figures(&*device, ["cleaned_fallow", "dirty"]), [2, 0]);
    assert_eq!(device.next_event(), None, "it comes to rest");
}

/// FlashCache cleans a dirty block, forgets it, and sends parts of it to the disk.
#[test]
fn parts_of_blocks_go_past_the_cache() {
    let mut device = layer("");
    write(&mut *device, 0, 24, 1);
    write(&mut *device, 4, 8, 2);
    assert_eq!(figures(&*device, ["cleaned_invalidation", "invalidated", "past_parts", "dirty"]), [2, 2, 2, 1]);
    assert_eq!(read(&mut *device, 0, 24), [[1; 4], [2; 4], [2; 4], [1; 4], [1; 4], [1; 4]].concat());
    // A part that is read goes past as well.
    let before = figure(&*device, "past_parts");
    assert_eq!(read(&mut *device, 17, 2), [1; 2]);
    assert_eq!(figures(&*device, ["past_parts", "dirty"]), [before + 1, 0]);
}

#[test]
fn a_sequential_run_is_cached_up_to_its_threshold() {
    for (op, past) in [(Op::Write, "past_sequential"), (Op::Read, "past_sequential")] {
        let mut device = layer("skip_sequential = \"16k\"\n");
        for block in 0..10 {
            one(&mut *device, Request::new(op, block * 8, 8), 1);
        }
        assert_eq!(figures(&*device, ["cached", past]), [4, 6], "{op:?}");
        // One that is there is found.
        assert_eq!(read(&mut *device, 8, 8)[0], u8::from(op == Op::Write));
        assert_eq!(figure(&*device, "read_hits"), 1);
    }
    // A run that goes over a cached block leaves no older copy.
    let mut device = layer("skip_sequential = \"16k\"\n");
    write(&mut *device, 64, 8, 9);
    for block in 0..10 {
        write(&mut *device, block * 8, 8, 1);
    }
    assert_eq!(read(&mut *device, 0, 80), [1; 80]);
}

#[test]
fn a_trim_reads_zeroes_and_with_the_key_the_cache_hears_of_it() {
    for (key, trims) in [("", 0), ("trim = true\n", 3)] {
        let mut device = layer(key);
        write(&mut *device, 0, 32, 1);
        assert_eq!(one(&mut *device, Request::new(Op::Trim, 4, 20), 0).0, Status::Success);
        assert_eq!(
            read(&mut *device, 0, 32),
            [[1; 4], [0; 4], [0; 4], [0; 4], [0; 4], [0; 4], [1; 4], [1; 4]].concat()
        );
        assert_eq!(figure(&*device, "trims"), trims);
        assert_eq!(
            device.layers()[0].sent.requests[2],
            trims + 2,
            "its start cleared the metadata, and one went to the disk"
        );
        assert_eq!(device.mapped_run(8, 64), (false, 24));
        assert_eq!(device.mapped_run(24, 64), (true, 32));
    }
}

#[test]
fn dirty_blocks_are_kept_after_a_crash_and_clean_ones_only_after_a_stop_in_good_order() {
    for contents in [Contents::Bytes, Contents::Stamps] {
        for (keys, closes, expected) in [
            ("", false, [2, 2]),
            ("", true, [4, 0]),
            ("fast_remove = true\n", true, [4, 2]),
            ("mode = \"write-through\"\n", true, [0, 0]),
        ] {
            let mut device = host(keys).build(members(&[], contents)).expect("a stack");
            one(&mut *device, Request::new(Op::Read, 80, 16), 0);
            device.submit(&Request { at: device.now(), ..Request::new(Op::Write, 8, 16) }, Data::Stamp(77));
            device.run_until(Nanos(device.now().0 + SECOND.0));
            device.completions().clear();
            flush(&mut *device);
            if closes {
                device.close();
            }
            let mut device = cut_all(device, keys);
            assert_eq!(figures(&*device, ["cached", "dirty"]), expected, "{contents:?} {keys:?} {closes}");
            let before = figure(&*device, "read_misses");
            let found = one(&mut *device, Request::new(Op::Read, 8, 16), 0).1;
            assert!(found.iter().any(|byte| *byte != 0), "{contents:?} {keys:?}: the written block is there");
            assert_eq!(figure(&*device, "read_misses") - before, if expected[0] == 0 { 2 } else { 0 });
            // It was opened again: a crash now drops what is clean.
            let device = cut_all(device, keys);
            assert_eq!(figures(&*device, ["cached", "dirty"]), [expected[1], expected[1]], "{keys:?} {closes}");
        }
    }
}

#[test]
fn another_disk_cache_or_geometry_is_refused() {
    let keys = "set = 16\nsize = \"1m\"\n";
    let made = || {
        let mut device = layer(keys);
        write(&mut *device, 0, 8, 1);
        flush(&mut *device);
        device.into_members()
    };
    let refused = |keys: &str, members: Vec<Member>| match host(keys).build(members) {
        Ok(_) => panic!("{keys} is accepted"),
        Err(why) => why.to_string(),
    };
    let place = "host.toml:2:8: the layer flashcache: ";
    for (other, says) in [
        ("set = 8\nsize = \"1m\"\n", "the number of sets: found 16, expected 32"),
        ("set = 16\nsize = \"512k\"\n", "the number of sets: found 16, expected 8"),
        (
            "set = 16\nsize = \"1m\"\nmetadata_block = 512\n",
            "metadata_block, in sectors of 512 bytes: found 8, expected 1",
        ),
        ("set = 16\nsize = \"1m\"\nmode = \"write-through\"\n", "mode: found a cache in write-back"),
    ] {
        let message = refused(other, made());
        assert!(message.starts_with(place) && message.contains(says), "{message}");
    }
    let swap = |index: usize, with: Member| {
        let mut members = made();
        members[index] = with;
        refused(keys, members)
    };
    let blank = |name: &str| member(name, &[], Contents::Bytes);
    for (message, says) in [
        (swap(1, blank("disk")), "the disk: found a disk without a label, expected a disk with the label 0x"),
        (swap(0, blank("cache")), "the cache: found a drive without a superblock, and a disk that belongs to a cache"),
        (swap(1, blank("other")), "the identity: found 0x"),
        (swap(0, blank("other")), "the cache: found a drive without a superblock"),
    ] {
        assert!(message.starts_with(place) && message.contains(says), "{message}");
    }
    let message = refused(keys, made().into_iter().rev().collect());
    assert!(
        message.contains("the disk: found a drive that caches a disk, expected below = [CACHE, DISK]"),
        "{message}"
    );
    let small = Member::new("disk", &drive("disk", "3m", &[]), Options { seed: 1, contents: Contents::Bytes });
    let message = swap(1, small.expect("a drive"));
    assert!(message.contains("the size of the disk, in blocks of 4 KiB: found 1023, expected 767"), "{message}");
    // Those of two caches: each has a label, and not the other's.
    let device = host("set = 16\nsize = \"2m\"\n").build(members(&[], Contents::Bytes)).expect("a stack");
    let mut others = device.into_members();
    let message = swap(1, others.pop().expect("a disk"));
    assert!(message.contains("the disk: found a disk with the label 0x"), "{message}");
    assert!(host(keys).build(made()).is_ok(), "its own are accepted");
}

#[test]
fn damaged_metadata_is_refused() {
    let keys = "set = 16\nsize = \"1m\"\n";
    let mut device = layer(keys);
    write(&mut *device, 0, 8, 1);
    flush(&mut *device);
    let mut members = device.into_members();
    let write = Request { at: members[0].now(), ..Request::new(Op::Write, 8, 1) };
    members[0].submit(&write, Data::Bytes(&[0x55; 512]));
    while members[0].completions().is_empty() {
        assert!(members[0].run_to_completion(Nanos::MAX));
    }
    members[0].completions().clear();
    let Err(why) = host(keys).build(members) else { panic!("damage is accepted") };
    let says = "the cache's metadata in sector 8 is damaged: found the words 0x5555555555555555";
    assert!(why.to_string().contains(says), "{why}");
}

/// Barriers never reached a device. What was flushed is lost with the power, unless flushes are passed on.
#[test]
fn refused_flushes_reach_no_device_and_lose_data() {
    for (flushes, expected) in [("refused", 0), ("passed", 1)] {
        let keys = format!("flushes = \"{flushes}\"\n");
        let mut device = host(&keys).build(members(BUFFERED, Contents::Bytes)).expect("a stack");
        let before = device.layers()[0].sent.requests[3];
        write(&mut *device, 16, 8, 1);
        flush(&mut *device);
        let sent = device.layers()[0].sent.requests[3] - before;
        assert_eq!((sent, figure(&*device, "flushes_refused")), (2 * expected, 1 - expected), "{flushes}");
        let mut device = cut_all(device, &keys);
        assert_eq!(read(&mut *device, 16, 1), [expected as u8], "{flushes}");
    }
}

#[test]
fn a_device_that_loses_its_buffer_takes_clean_blocks_with_it() {
    for part in [0, 1] {
        let mut device = host("skip_sequential = 0\n").build(members(BUFFERED, Contents::Bytes)).expect("a stack");
        read(&mut *device, 80, 16);
        write(&mut *device, 16, 8, 1);
        assert_eq!(device.cut(part, &mut |_| None), Loss::Unflushed);
        assert_eq!(figures(&*device, ["cached", "dirty", "lost_clean"]), [1, 1, 2]);
        assert_eq!(read(&mut *device, 16, 8), [1; 8], "what makes a block dirty is on flash");
    }
}

#[test]
fn a_clean_block_that_cannot_be_read_comes_from_the_disk_and_a_dirty_one_does_not() {
    let mut device = layer("");
    read(&mut *device, 80, 8);
    device.drives_mut()[0].device.fail_next(FaultKind::Read, None);
    assert_eq!(read(&mut *device, 80, 8), [0; 8]);
    assert_eq!(figures(&*device, ["cache_errors", "disk_reads", "cached"]), [1, 2, 0]);
    write(&mut *device, 16, 8, 1);
    device.drives_mut()[0].device.fail_next(FaultKind::Read, None);
    let (status, _) = one(&mut *device, Request::new(Op::Read, 16, 8), 0);
    assert_eq!(status, Status::UncorrectableRead);
    // A part of one that cannot be cleaned is written where it is.
    device.drives_mut()[0].device.fail_next(FaultKind::Read, None);
    write(&mut *device, 18, 2, 2);
    assert_eq!(figures(&*device, ["cleaned_invalidation", "dirty", "disk_writes"]), [1, 1, 0]);
}

/// What a set of FIFO or LRU holds, as a list.
struct Model {
    sets: Vec<VecDeque<u64>>,
    set: u64,
    is_lru: bool,
    hits: u64,
    replaced: u64,
}

impl Model {
    fn uses(&mut self, block: u64) {
        let index = (block / self.set) as usize % self.sets.len();
        let list = &mut self.sets[index];
        match list.iter().position(|other| *other == block) {
            Some(at) => {
                self.hits += 1;
                if self.is_lru {
                    list.remove(at);
                    list.push_back(block);
                }
            }
            None => {
                if list.len() as u64 == self.set {
                    list.pop_front();
                    self.replaced += 1;
                }
                list.push_back(block);
            }
        }
    }
}

/// Whole blocks one after the other: hits, misses and replaced blocks are those of lists, to the last one, and what is read was written.
#[test]
fn hits_and_replaced_blocks_are_those_of_lists() {
    for (replacement, set, sets) in [("fifo", 4, 3), ("lru", 4, 3), ("lru", 16, 2), ("fifo", 1, 7)] {
        let keys = format!(
            "mode = \"write-through\"\nreplacement = \"{replacement}\"\nset = {set}\nsize = {}\nskip_sequential = 0\n",
            set * sets * 4096
        );
        let mut device = layer(&keys);
        let mut rng = rng(set, "lists");
        let is_lru = replacement == "lru";
        let mut model = Model { sets: vec![VecDeque::new(); sets as usize], set, is_lru, hits: 0, replaced: 0 };
        let mut contents = [0_u8; 100];
        for _ in 0..3000 {
            let block = rng.random_range(0..100_u64);
            model.uses(block);
            if rng.random_bool(0.4) {
                contents[block as usize] = rng.random();
                write(&mut *device, block * 8, 8, contents[block as usize]);
            } else {
                assert_eq!(read(&mut *device, block * 8, 8), [contents[block as usize]; 8]);
            }
        }
        let [read_hits, read_misses, write_hits, write_misses, replaced, disk_reads, fills] = figures(
            &*device,
            ["read_hits", "read_misses", "write_hits", "write_misses", "replaced", "disk_reads", "fills"],
        );
        assert_eq!((read_hits + write_hits, replaced), (model.hits, model.replaced), "{keys}");
        assert_eq!(read_hits + read_misses + write_hits + write_misses, 3000);
        assert_eq!((disk_reads, fills), (read_misses, read_misses), "every read of the disk is a miss");
    }
}

/// Random commands of all kinds, several at one time, with crashes and cuts between: every sector is what was written last.
#[test]
fn what_is_read_is_what_was_written() {
    for seed in 1..=24_u64 {
        let mut rng = rng(seed, "flashcache");
        let set = [1, 4, 16][rng.random_range(0..3)];
        let keys = format!(
            "mode = \"{}\"\nreplacement = \"{}\"\nset = {set}\nsize = {}\nmetadata_block = {}\ndirty_threshold = \"{}%\"\n\
             skip_sequential = {}\ntrim = {}\nfast_remove = {}\nfallow_delay = \"{}us\"\n",
            ["write-back", "write-back", "write-through", "write-around"][rng.random_range(0..4)],
            ["fifo", "lru"][rng.random_range(0..2)],
            set * 4096 * rng.random_range(1..5),
            [512, 4096][rng.random_range(0..2)],
            [0, 20, 100][rng.random_range(0..3)],
            [0, 8192][rng.random_range(0..2)],
            rng.random_bool(0.5),
            rng.random_bool(0.5),
            [0, 500, 900_000_000][rng.random_range(0..3)],
        );
        let mut device = host(&keys).build(members(BUFFERED, Contents::Bytes)).expect("a stack");
        let mut contents = vec![0_u8; 600];
        let mut tag = 0;
        for _ in 0..150 {
            let mut expected = Vec::new();
            for _ in 0..rng.random_range(1..12) {
                let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush]
                    [rng.random_range(0..8)];
                let (sector, sectors) = match rng.random_range(0..3) {
                    0 => (rng.random_range(0..70) * 8, rng.random_range(1..4) * 8),
                    _ => (rng.random_range(0..560), rng.random_range(0..40)),
                };
                let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (sector, sectors) };
                tag += 1;
                let fua = op != Op::Read && op != Op::Flush && rng.random_bool(0.2);
                let request = Request { at: device.now(), tag, fua, ..Request::new(op, sector, sectors) };
                let range = sector as usize..(sector + sectors) as usize;
                let bytes: Vec<u8> = (0..sectors).flat_map(|_| [rng.random::<u8>(); 512]).collect();
                match op {
                    Op::Read => expected.push((tag, contents[range].to_vec())),
                    Op::Write => bytes.chunks(512).zip(&mut contents[range]).for_each(|(from, to)| *to = from[0]),
                    Op::Flush => {}
                    _ => contents[range].fill(0),
                }
                let data = if op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing };
                device.submit(&request, data);
            }
            while device.outstanding() > 0 || !device.completions().is_empty() {
                assert!(device.run_to_completion(Nanos::MAX), "seed {seed}: a request never completes");
                for completion in std::mem::take(device.completions()) {
                    assert_eq!(completion.status, Status::Success, "seed {seed}: {completion:?}");
                }
            }
            let brought: Vec<_> = std::mem::take(device.read_data());
            for (tag, expected) in expected.into_iter().filter(|(_, expected)| !expected.is_empty()) {
                let (_, bytes) = brought.iter().find(|(other, _)| *other == tag).expect("a read brings its sectors");
                let found: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
                assert_eq!(found, expected, "seed {seed}, read {tag}, {keys}");
            }
            if rng.random_bool(0.1) {
                flush(&mut *device);
                if rng.random_bool(0.3) {
                    device.close();
                }
                device = cut_all(device, &keys);
            }
        }
    }
}
