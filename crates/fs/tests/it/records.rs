//! What a drive without contents keeps of the metadata of a file system.

use rand::RngExt;
use ssdlab_base::rng;
use ssdlab_flash::Contents;
use ssdlab_fs::{Call, Content, FileId, FileSystem, MakeOptions, Options, ROOT};

use crate::drive::{call, create, drive};

const FILES: u64 = 400;
const BLOCKS: u64 = 36;
const BLOCK: u64 = 4096;

fn overwrite(fs: &mut FileSystem, file: FileId, offset: u64, length: u64) {
    let length = length as u32;
    let write = Call::Write { file, offset, length, content: Content::Nothing, mode: Default::default() };
    call(fs, write).expect("a write");
}

fn made() -> (FileSystem, Vec<FileId>) {
    let drive = drive(600, Contents::Nothing);
    let mut fs = FileSystem::make(drive, &MakeOptions::default(), &Options::default()).expect("a file system");
    let files: Vec<FileId> =
        (0..FILES).map(|number| create(&mut fs, ROOT, &format!("file {number}")).expect("a file")).collect();
    files.iter().for_each(|file| overwrite(&mut fs, *file, 0, BLOCKS * BLOCK));
    call(&mut fs, Call::Sync).expect("a sync");
    (fs, files)
}

/// Old versions of nodes, directories and tables stay on the drive until their segments are trimmed, but not their records: the memory
/// of records follows the metadata that is current.
#[test]
fn records_of_old_metadata_are_dropped() {
    let (fs, files) = made();
    let current = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount").record_bytes();
    drop(files);
    let (mut fs, files) = made();
    let mut rng = rng(1, "records");
    let mut most = 0;
    for round in 0..4_000 {
        let file = files[rng.random_range(0..files.len())];
        overwrite(&mut fs, file, rng.random_range(0..BLOCKS) * BLOCK, BLOCK);
        let name = format!("new {round}");
        create(&mut fs, ROOT, &name).expect("a file");
        call(&mut fs, Call::Unlink { directory: ROOT, name: name.into() }).expect("it is there");
        if round % 8 == 7 {
            call(&mut fs, Call::Sync).expect("a sync");
            most = most.max(fs.device().record_bytes());
        }
    }
    let cleaned = fs.metrics().cleaned_segments;
    assert!(cleaned > 20, "only {cleaned} segments were cleaned: this test tests nothing");
    let times = most as f64 / current as f64;
    assert!(times <= 1.5, "{most} bytes of records for {current} of current metadata, {times:.2} times");
}
