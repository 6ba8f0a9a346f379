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
