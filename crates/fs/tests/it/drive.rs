//! Small drives, and a file system on one with calls that are waited for.

use ssdlab_base::Nanos;
use ssdlab_flash::Contents;
use ssdlab_fs::{Answer, Call, Content, Errno, FileId, FileSystem, MakeOptions, Options, ROOT, Reply};
use ssdlab_host::Device;
use ssdlab_torture::files::small_drive;

/// A drive of `segments` segments of 32 blocks.
pub(crate) fn drive(segments: u32, contents: Contents) -> Box<dyn Device> {
    small_drive(segments, contents, "4k", 8)
}

/// Options with a cache of so many blocks.
pub(crate) fn cache(blocks: u64) -> Options {
    Options { cache: blocks * 4096, ..Options::default() }
}

/// A new file system.
pub(crate) fn made(segments: u32, options: &Options) -> FileSystem {
    let make = MakeOptions::default();
    FileSystem::make(drive(segments, Contents::Bytes), &make, options).expect("a file system")
}

/// Waits for one call.
pub(crate) fn answer(fs: &mut FileSystem, call: Call) -> Answer {
    let text = format!("{call:?}");
    fs.submit(call, 7);
    let until = Nanos(fs.now().0 + 1_000_000_000_000);
    assert!(fs.run_to_completion(until), "{text} never ends; {:?}", fs.read_only_reason());
    let answer = fs.answers().pop().expect("an answer");
    assert!(fs.answers().is_empty());
    answer
}

/// Waits for one call, and gives its result.
pub(crate) fn call(fs: &mut FileSystem, call: Call) -> Result<Reply, Errno> {
    answer(fs, call).result
}

/// Makes a file.
pub(crate) fn create(fs: &mut FileSystem, directory: FileId, name: &str) -> Result<FileId, Errno> {
    match call(fs, Call::Create { directory, name: name.into() })? {
        Reply::Found(attributes) => Ok(attributes.file),
        other => panic!("{other:?}"),
    }
}

/// Makes a directory.
pub(crate) fn mkdir(fs: &mut FileSystem, directory: FileId, name: &str) -> Result<FileId, Errno> {
    match call(fs, Call::Mkdir { directory, name: name.into() })? {
        Reply::Found(attributes) => Ok(attributes.file),
        other => panic!("{other:?}"),
    }
}

/// Writes bytes.
pub(crate) fn write(fs: &mut FileSystem, file: FileId, offset: u64, bytes: &[u8]) -> Result<Reply, Errno> {
    let (length, content) = (bytes.len() as u32, Content::Bytes(bytes.to_vec()));
    call(fs, Call::Write { file, offset, length, content, mode: Default::default() })
}

/// Reads bytes.
pub(crate) fn read(fs: &mut FileSystem, file: FileId, offset: u64, length: u32) -> Result<Vec<u8>, Errno> {
    match call(fs, Call::Read { file, offset, length, is_direct: false })? {
        Reply::Read { data, .. } => Ok(data),
        other => panic!("{other:?}"),
    }
}

/// All names of a directory.
pub(crate) fn names(fs: &mut FileSystem, directory: FileId, most: u32) -> Vec<(String, u32)> {
    let (mut all, mut position) = (Vec::new(), 0);
    loop {
        match call(fs, Call::List { directory, position, most }) {
            Ok(Reply::Listed { entries, is_end }) => {
                position = entries.last().map_or(position, |entry| entry.next);
                all.extend(
                    entries.into_iter().map(|entry| (String::from_utf8_lossy(&entry.name).into_owned(), entry.number)),
                );
                if is_end {
                    return all;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Unmounts, and mounts again.
pub(crate) fn remount(fs: FileSystem, options: &Options) -> FileSystem {
    let device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
    FileSystem::mount(device, options).expect("a mount")
}

/// The first steps of everything else.
#[test]
fn a_file_is_written_and_read_back_after_a_mount() {
    let options = cache(64);
    let mut fs = made(64, &options);
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let directory = mkdir(&mut fs, ROOT, "d").expect("a directory");
    let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
    write(&mut fs, file, 3, &bytes).expect("room");
    assert_eq!(read(&mut fs, file, 3, 20_000).as_ref(), Ok(&bytes));
    assert_eq!(call(&mut fs, Call::Fsync { file }), Ok(Reply::Done));
    let inner = create(&mut fs, directory, "inner").expect("a file");
    write(&mut fs, inner, 5_000_000_000, b"far").expect("a sparse file");
    let mut fs = remount(fs, &options);
    assert_eq!(read(&mut fs, file, 0, 30_000).map(|read| read[3..] == bytes[..]), Ok(true));
    assert_eq!(read(&mut fs, inner, 5_000_000_000, 10), Ok(b"far".to_vec()));
    assert_eq!(read(&mut fs, inner, 1_000_000, 2), Ok(vec![0, 0]));
    assert_eq!(names(&mut fs, ROOT, 1).len(), 2);
    // The host crashes: what is synced is there.
    let last = create(&mut fs, ROOT, "b").expect("a file");
    write(&mut fs, last, 0, b"synced").expect("room");
    call(&mut fs, Call::Fsync { file: last }).expect("a sync");
    create(&mut fs, ROOT, "lost").expect("a file");
    let mut fs = FileSystem::mount(fs.into_device(), &options).expect("a mount");
    assert_eq!(read(&mut fs, last, 0, 10), Ok(b"synced".to_vec()));
    assert_eq!(names(&mut fs, ROOT, 10).len(), 3);
    call(&mut fs, Call::Unlink { directory, name: b"inner".to_vec() }).expect("unlinked");
    assert_eq!(call(&mut fs, Call::Stat { file: inner }), Err(Errno::Stale));
}
