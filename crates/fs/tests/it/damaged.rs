//! Damaged images: blocks of metadata are changed, with checksums mended or not. Mounting, walking and checking end with an error or an
//! answer, never with a panic, and the check names what is wrong.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng, rng};
use ssdlab_flash::Contents;
use ssdlab_fs::check::check;
use ssdlab_fs::format::{block_of, mend};
use ssdlab_fs::{Call, Content, FileId, FileSystem, MakeOptions, ROOT, Reply};
use ssdlab_host::Device;

use crate::drive::{cache, call, create, drive, mkdir};

/// Segments of the drive, and all its blocks.
const SEGMENTS: u32 = 64;
const BLOCKS: u64 = SEGMENTS as u64 * 32;

/// A file system with some of everything: its metadata is kept as records, since the drive keeps no bytes.
fn image() -> Box<dyn Device> {
    let mut fs =
        FileSystem::make(drive(SEGMENTS, Contents::Nothing), &MakeOptions::default(), &cache(400)).expect("one");
    let write = |fs: &mut FileSystem, file: FileId, offset: u64, length: u32| {
        let write = Call::Write { file, offset, length, content: Content::Nothing, mode: Default::default() };
        call(fs, write).expect("room");
    };
    let inner = mkdir(&mut fs, ROOT, "inner").expect("a directory");
    for number in 0..30 {
        let file = create(&mut fs, if number % 2 == 0 { ROOT } else { inner }, &format!("f{number}")).expect("a file");
        write(&mut fs, file, 100, 9_000);
    }
    let large = create(&mut fs, inner, "large").expect("a file");
    for at in 0..5 {
        write(&mut fs, large, at * 5_000_000_000, 20_000);
    }
    call(&mut fs, Call::Sync).expect("a sync");
    fs.unmount().map_err(|(reason, _)| reason).expect("an unmount")
}

/// Walks the whole tree, and changes what it can.
fn use_all(fs: &mut FileSystem) {
    let (mut directories, mut steps) = (vec![ROOT], 0);
    while let Some(directory) = directories.pop() {
        let Ok(Reply::Listed { entries, .. }) = call(fs, Call::List { directory, position: 0, most: 100 }) else {
            continue;
        };
        for entry in entries {
            steps += 1;
            if steps > 200 {
                return;
            }
            let Ok(Reply::Found(found)) = call(fs, Call::Lookup { directory, name: entry.name.clone() }) else {
                continue;
            };
            let file = found.file;
            let _ = call(fs, Call::Read { file, offset: 0, length: 30_000, is_direct: false });
            let content = Content::Nothing;
            let _ = call(fs, Call::Write { file, offset: 5_000, length: 5_000, content, mode: Default::default() });
            let _ = call(fs, Call::Truncate { file, size: 3_000 });
            let _ = call(fs, Call::Unlink { directory, name: entry.name });
            directories.push(file);
        }
        let _ = call(fs, Call::Create { directory, name: b"new".to_vec() });
    }
    let _ = call(fs, Call::Sync);
    fs.run_until(Nanos(fs.now().0 + 200_000_000_000));
}

/// Changes a block that has a record.
fn damage(device: &mut dyn Device, rng: &mut Rng, is_mended: bool) {
    let volume = u64::from_le_bytes(device.record(0).expect("a superblock")[40..48].try_into().expect("8 bytes"));
    loop {
        let block = if rng.random_bool(0.002) { 0 } else { rng.random_range(0..BLOCKS) };
        let Some(record) = device.record(block * 8) else { continue };
        let mut bytes = block_of(record);
        for _ in 0..rng.random_range(1..6) {
            // Fields at the beginning matter most.
            let end = [170, 4096][rng.random_range(0..2)];
            let at = rng.random_range(0..end);
            bytes[at] = [0, 1, 0xff, bytes[at].wrapping_add(1), bytes[at] ^ 1 << rng.random_range(0..8)]
                [rng.random_range(0..5)];
        }
        if bytes == block_of(record) {
            continue;
        }
        // Blocks of the inode map have no checksum to mend.
        let has_header = record.len() > 12 && record[8..12].iter().all(u8::is_ascii_uppercase);
        if is_mended && has_header {
            mend(&mut bytes, if block == 0 { 0 } else { volume });
        }
        device.keep_record(block * 8, &bytes[..]);
        return;
    }
}

#[test]
fn damaged_images_are_answered_with_errors_and_never_with_a_panic() {
    let only = std::env::var("FS_SEED").ok().and_then(|seed| seed.parse().ok());
    let (mut told, mut refused) = (0, 0);
    for seed in only.map_or(0..600, |seed: u64| seed..seed + 1) {
        println!("FS_SEED={seed} cargo test -p ssdlab-fs --test it damaged");
        let mut rng = rng(seed, "damage");
        let mut device = image();
        let is_mended = rng.random_bool(0.7);
        for _ in 0..rng.random_range(1..4) {
            damage(&mut *device, &mut rng, is_mended);
        }
        let (device, found) = check(device);
        told += u32::from(found.is_ok_and(|found| !found.problems.is_empty()));
        match FileSystem::mount(device, &cache([20, 400][rng.random_range(0..2)])) {
            Ok(mut fs) => use_all(&mut fs),
            Err(_) => refused += 1,
        }
    }
    println!("{told} told by the check, {refused} mounts refused");
    assert!(only.is_some() || (told > 100 && refused > 5), "{told} told, {refused} refused");
}
