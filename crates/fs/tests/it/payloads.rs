//! A drive that keeps bytes, stamps or nothing gets the same requests, and metadata comes back from each; other drives are refused.

use ssdlab_device::{Description, Drive, Options as DriveOptions};
use ssdlab_flash::Contents;
use ssdlab_fs::check::check;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, Content, FileSystem, MakeError, MakeOptions, MountError, Options, ROOT, Reply};
use ssdlab_host::{Device, Host, Member};
use ssdlab_torture::files::{small_block_drive, small_drive};

use crate::drive::{cache, call, create, drive, mkdir, names, read};

/// Plays the same calls, and gives what the drive took, what the file system did, and the time.
fn play(contents: Contents, page: &str, pages: u32) -> (String, ssdlab_fs::Metrics, u64) {
    play_on(small_drive(80, contents, page, pages), &MakeOptions::default(), contents)
}

fn play_on(device: Box<dyn Device>, make: &MakeOptions, contents: Contents) -> (String, ssdlab_fs::Metrics, u64) {
    let options = cache(100);
    let mut fs = FileSystem::make(device, make, &options).expect("a file system");
    let directory = mkdir(&mut fs, ROOT, "d").expect("a directory");
    let mut at = 1_u64;
    for round in 0..600_u64 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round | 1);
        let name = format!("f{}", (at >> 40) % 40);
        let file = create(&mut fs, directory, &name).ok();
        let file = file.or_else(|| {
            let lookup = Call::Lookup { directory, name: name.clone().into_bytes() };
            call(&mut fs, lookup)
                .ok()
                .and_then(|reply| if let Reply::Found(found) = reply { Some(found.file) } else { None })
        });
        let Some(file) = file else { continue };
        let (offset, length) = ((at >> 20) % 100_000, ((at >> 33) % 9000) as u32);
        let content = match contents {
            Contents::Bytes => Content::Bytes(vec![round as u8; length as usize]),
            Contents::Stamps => Content::Stamp(round + 1),
            Contents::Nothing => Content::Nothing,
        };
        call(&mut fs, Call::Write { file, offset, length, content, mode: Default::default() }).expect("room");
        match round % 17 {
            3 => drop(call(&mut fs, Call::Fsync { file })),
            5 => drop(call(&mut fs, Call::Truncate { file, size: offset / 2 })),
            7 => drop(call(&mut fs, Call::Unlink { directory, name: name.into_bytes() })),
            9 => drop(call(&mut fs, Call::Fsync { file: directory })),
            11 => drop(call(&mut fs, Call::Read { file, offset: 0, length: 50_000, is_direct: false })),
            _ => {}
        }
    }
    let (metrics, now) = (fs.metrics(), fs.now().0);
    let device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
    let traffic = format!("{:?}", device.taken());
    let (device, found) = check(device);
    assert_eq!(found.expect("a file system").problems, []);
    let mut fs = FileSystem::mount(device, &options).expect("a mount");
    assert!(names(&mut fs, directory, 7).len() > 10);
    (traffic, metrics, now)
}

#[test]
fn the_requests_do_not_depend_on_what_the_drive_keeps() {
    let bytes = play(Contents::Bytes, "4k", 8);
    assert_eq!(play(Contents::Bytes, "4k", 8), bytes, "the same again");
    assert_eq!(play(Contents::Stamps, "4k", 8), bytes);
    assert_eq!(play(Contents::Nothing, "4k", 8), bytes);
    assert!(bytes.1.checkpoints > 20 && bytes.1.rolled_fsyncs > 20, "{:?}", bytes.1);
}

/// Layers that hold writes, split them or put them elsewhere.
#[test]
fn metadata_comes_back_through_every_layer() {
    let layers = [
        "scheduler\"\npolicy = \"noop",
        "page-cache\"\nram = \"256k",
        "stripe\"\nchunk = \"1k",
        "mirror\"\nregion = \"64k",
        "restoring\"\nlog = \"1m",
        "ata",
    ];
    for layer in layers {
        let drives = if layer.starts_with("stripe") || layer.starts_with("mirror") { 2 } else { 1 };
        let host =
            Host::parse(&format!("[[layer]]\nkind = \"{layer}\"\ndrives = {drives}\n"), "host.toml").expect("a host");
        let kind = FileSystemKind::of_name("lfs").expect("it is one");
        let make = MakeOptions { kind, segment: 128 << 10, ..MakeOptions::default() };
        let played = |contents| {
            let device = host.above((0..drives).map(|_| small_block_drive(6000, contents)).collect());
            play_on(device.unwrap_or_else(|why| panic!("{layer}: {why}")), &make, contents)
        };
        let bytes = played(Contents::Bytes);
        assert!(bytes.1.checkpoints > 10, "{layer}: {:?}", bytes.1);
        assert_eq!(played(Contents::Nothing), bytes, "{layer}");
    }
}

/// Blocks of nothing fill up write units of 16 KB.
#[test]
fn write_units_larger_than_a_block_are_filled_up() {
    let (_, metrics, _) = play(Contents::Bytes, "16k", 4);
    assert!(metrics.padding_blocks > 0, "{metrics:?}");
}

#[test]
fn stamps_come_back_sector_by_sector() {
    let mut fs = FileSystem::make(drive(64, Contents::Stamps), &MakeOptions::default(), &cache(64)).expect("one");
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let content = Content::Stamp(77);
    call(&mut fs, Call::Write { file, offset: 512, length: 1024, content, mode: Default::default() }).expect("room");
    call(&mut fs, Call::Fsync { file }).expect("a sync");
    fs.drop_caches();
    let stamps: Vec<u64> = read(&mut fs, file, 0, 4096)
        .expect("stamps")
        .chunks(8)
        .map(|stamp| stamp.try_into().map_or(0, u64::from_le_bytes))
        .collect();
    assert_eq!(stamps, [0, 77, 77], "of the sectors up to the end");
}

#[test]
fn drives_without_segments_and_without_a_file_system_are_refused() {
    let text = "name = \"blocks\"\n[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 16\npage_size = \"4k\"\n\
                timing = { read = \"75us\", program = \"478us\", erase = \"3.8ms\", transfer = \"33.3us\" }\n\
                [capacity]\nuser = \"2m\"\n[interface]\nkind = \"nvme\"\nqueues = 1\nqueue_depth = 4\n\
                [ftl]\ndesign = \"page\"\n";
    let config = Description::parse(text, "blocks").and_then(|text| text.resolve()).expect("a description");
    let options = DriveOptions { seed: 1, contents: Contents::Bytes };
    let blocks = || Member::alone(Drive::new(&config, options).expect("a drive"), options);
    let (make, mount) = (MakeOptions::default(), Options::default());
    assert!(matches!(FileSystem::make(blocks(), &make, &mount), Err(MakeError::NoSegments { .. })));
    assert!(matches!(FileSystem::mount(blocks(), &mount), Err(MountError::Superblock(_))));
    let empty = || drive(64, Contents::Bytes);
    assert!(matches!(FileSystem::mount(empty(), &mount), Err(MountError::Superblock(_))));
    assert!(matches!(check(empty()).1, Err(MountError::Superblock(_))));
    let small = FileSystem::make(drive(12, Contents::Bytes), &make, &mount).err().expect("too small").to_string();
    assert!(small.starts_with("found 12 segments of 32 blocks, expected at least "), "{small}");
}

#[test]
fn keys_are_read_and_unknown_ones_refused() {
    let kind = FileSystemKind::of_name("alfs").expect("it is one");
    let (make, options) = kind.read("logs = 4\ncache = \"16m\"\n", "keys").expect("keys");
    assert_eq!((make.logs, options.cache, options.read_ahead), (4, 16 << 20, 128 << 10));
    let error = kind.read("cach = \"16m\"\n", "keys").expect_err("no such key").to_string();
    assert!(error.contains("did you mean 'cache'"), "{error}");
    assert!(kind.read("cache = \"1k\"\n", "keys").is_err(), "below its least");
    let error = FileSystemKind::of_name("ext9").expect_err("no such kind").to_string();
    assert_eq!(error, "found the file system 'ext9', expected alfs or lfs or journaling");
}
