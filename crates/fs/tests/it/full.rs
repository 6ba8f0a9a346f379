//! A full file system: it is filled to the last block and emptied, again and again.

use ssdlab_fs::{Call, Content, Errno, FileSystem, ROOT, Reply};

use crate::drive::{cache, call, create, made, remount, write};

fn free(fs: &mut FileSystem) -> u64 {
    match call(fs, Call::StatFs) {
        Ok(Reply::Space(space)) => space.blocks_free,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_system_is_filled_to_the_last_block_and_emptied_ten_times() {
    let options = cache(120);
    let mut fs = made(64, &options);
    let empty = free(&mut fs);
    for round in 0..10_u32 {
        let mut files = Vec::new();
        'fill: loop {
            let name = format!("file-{}", files.len());
            let Ok(file) = create(&mut fs, ROOT, &name) else { break };
            files.push((name, file));
            // Small files and large ones in turn.
            for part in 0..if round % 2 == 0 { 1 } else { 40 } {
                match write(&mut fs, file, part * 4096, &[round as u8 + 1; 4096]) {
                    Ok(_) => {}
                    Err(Errno::NoSpace) => break 'fill,
                    Err(errno) => panic!("{errno}: {:?}", fs.read_only_reason()),
                }
            }
        }
        assert!(free(&mut fs) <= 1, "round {round}: {} blocks are left", free(&mut fs));
        call(&mut fs, Call::Sync).expect("a full file system can write a check-point");
        // What is there can be written again, which takes no more space.
        for (_, file) in files.iter().step_by(3) {
            let content = Content::Bytes(vec![0xee; 4096]);
            let again = Call::Write { file: *file, offset: 0, length: 4096, content, mode: Default::default() };
            match call(&mut fs, again) {
                Ok(_) | Err(Errno::NoSpace) => {}
                Err(errno) => panic!("{errno}: {:?}", fs.read_only_reason()),
            }
        }
        call(&mut fs, Call::Sync).expect("a full file system can write a check-point");
        fs = remount(fs, &options);
        for (name, _) in files {
            call(&mut fs, Call::Unlink { directory: ROOT, name: name.into_bytes() }).expect("a name to remove");
        }
        call(&mut fs, Call::Sync).expect("an empty one, too");
        assert_eq!(free(&mut fs), empty, "round {round}");
    }
    assert!(fs.metrics().checkpoints > 0);
}

#[test]
fn cleaning_makes_room_under_overwrites_of_a_full_file_system() {
    let options = cache(200);
    let mut fs = made(64, &options);
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let mut blocks = 0;
    while write(&mut fs, file, blocks * 4096, &[7; 4096]).is_ok() {
        blocks += 1;
    }
    let mut at = 1_u64;
    for _ in 0..6_000 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = (at >> 33) % blocks;
        let result = write(&mut fs, file, block * 4096, &[8; 4096]);
        assert_eq!(result, Ok(Reply::Done), "{:?}; {:?}", fs.read_only_reason(), fs.metrics());
    }
    let metrics = fs.metrics();
    assert!(metrics.cleaned_segments > 10, "{metrics:?}");
    assert!(metrics.moved_blocks > 0 && metrics.trimmed_segments > 0, "{metrics:?}");
    assert_eq!(fs.read_only_reason(), None);
}

/// Crashes while segments are being cleaned: each block holds what its last sync left, or something newer.
#[test]
fn crashes_under_cleaning_lose_nothing_that_was_synced() {
    let options = cache(150);
    let mut fs = made(64, &options);
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let mut blocks = 0;
    while blocks < 900 && write(&mut fs, file, blocks * 4096, &[1; 4096]).is_ok() {
        blocks += 1;
    }
    call(&mut fs, Call::Sync).expect("a sync");
    let (mut at, mut cleaned, mut switches) = (7_u64, 0, 0);
    // What each block may hold: what was synced, and what was written since.
    let mut allowed: Vec<Vec<u8>> = vec![vec![1]; blocks as usize];
    for crash in 0..60_u64 {
        for step in 0..400_u64 {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(crash | 1);
            let (block, value) = ((at >> 33) % blocks, (at >> 50) as u8 | 1);
            assert_eq!(
                write(&mut fs, file, block * 4096, &[value; 4096]),
                Ok(Reply::Done),
                "{:?}",
                fs.read_only_reason()
            );
            allowed[block as usize].push(value);
            if step % 150 == 149 {
                call(&mut fs, Call::Fsync { file }).expect("a sync");
                allowed.iter_mut().for_each(|values| drop(values.drain(..values.len() - 1)));
            }
        }
        let until = ssdlab_base::Nanos(fs.now().0 + at % 3_000_000);
        fs.run_until(until);
        let metrics = fs.metrics();
        cleaned += metrics.cleaned_segments;
        switches += metrics.checkpoint_switches;
        let mut device = fs.into_device();
        if crash % 3 != 0 {
            device.cut(0, &mut |_| None);
        }
        let (device, found) = ssdlab_fs::check::check(device);
        assert_eq!(found.expect("a file system").problems, [], "crash {crash}");
        fs = FileSystem::mount(device, &options).expect("a mount");
        for block in 0..blocks {
            let found = crate::drive::read(&mut fs, file, block * 4096, 4096).expect("it is read");
            let values = &mut allowed[block as usize];
            assert!(values.contains(&found[0]) && found.iter().all(|byte| *byte == found[0]), "block {block}");
            *values = vec![found[0]];
        }
    }
    assert!(cleaned > 100 && switches >= 50, "{cleaned} segments were cleaned, {switches} switches");
}

/// Blocks of the inode map that do not change are copied when their segment is cleaned, and nothing is lost by it.
#[test]
fn segments_of_the_inode_map_are_cleaned() {
    let options = cache(300);
    let mut fs = made(120, &options);
    let (mut last, mut files) = (ROOT, 0);
    for round in 0..4_u8 {
        for _ in 0..510 {
            last = create(&mut fs, ROOT, &format!("f{files}")).expect("a file");
            files += 1;
        }
        call(&mut fs, Call::Sync).expect("a sync");
        for step in 0..100_u8 {
            write(&mut fs, last, 0, &[step ^ round; 100]).expect("room");
            call(&mut fs, Call::Sync).expect("a sync");
        }
    }
    let metrics = fs.metrics();
    assert!(metrics.cleaned_map_segments > 0 && metrics.moved_map_blocks > 0, "{metrics:?}");
    assert!(metrics.moved_map_blocks * 10 < metrics.map_blocks, "few copies: {metrics:?}");
    let (device, found) = ssdlab_fs::check::check(fs.unmount().map_err(|(reason, _)| reason).expect("an unmount"));
    let found = found.expect("a file system");
    assert_eq!((found.problems, found.files), (Vec::new(), files));
    assert_eq!(
        crate::drive::names(&mut FileSystem::mount(device, &options).expect("a mount"), ROOT, 100).len() as u64,
        files
    );
}
