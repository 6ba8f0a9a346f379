//! A drive as a file: what is done to the file reaches the target, no more and no less.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand::Rng as _;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fallocate};
use rustix::io::Errno;
use ssdlab_base::{Op, rng};
use ssdlab_live::Target;
use ssdlab_live::fuse::{FuseError, FuseFile};
use tempfile::TempDir;

use crate::support::client::pattern;
use crate::support::machine::{Recorder, must, serves, skipped, why_no_fuse, within};
use crate::support::ram::Ram;
use crate::support::targets::{Failing, Held, Later};
use crate::support::{MIB, eventually};

const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
const ZERO: FallocateFlags = FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE);

/// A served target in a directory that goes with it; the file goes first.
struct Serving {
    file: Option<FuseFile>,
    directory: TempDir,
}

impl Serving {
    fn new(target: Arc<dyn Target>, threads: usize) -> Serving {
        let directory = TempDir::new().expect("a directory");
        serves(directory.path());
        let file = Some(FuseFile::serve(target, directory.path(), threads).expect("a file"));
        Serving { file, directory }
    }

    fn open_with(&self, flags: OFlags) -> File {
        let path = self.directory.path().join("drive");
        File::options().read(true).write(true).custom_flags(flags.bits() as i32).open(path).expect("a file")
    }

    fn open(&self) -> File {
        self.open_with(OFlags::empty())
    }

    fn unmount(mut self) -> Result<(), FuseError> {
        self.file.take().expect("served").unmount()
    }
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    Errno::from_io_error(&result.expect_err("an error")).expect("of the system")
}

#[test]
fn every_operation_reaches_the_target_as_what_it_is() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("operations", || {
        let target = Recorder::new(Ram::new(MIB));
        let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>, 2);
        let file = serving.open();
        assert_eq!(file.metadata().expect("attributes").len(), MIB);
        let data = pattern(1, 4096);

        file.write_all_at(&data, 8192).expect("written");
        assert_eq!(target.take(), [(Op::Write, false, 16, 8)]);
        serving.open_with(OFlags::DSYNC).write_all_at(&data[..512], 512).expect("written");
        assert_eq!(target.take(), [(Op::Write, true, 1, 1)]);
        serving.open_with(OFlags::SYNC | OFlags::DIRECT).write_all_at(&[], 0).expect("nothing written");
        assert_eq!(target.take(), []);
        // The part of a sector: at its start, at both ends, within, and FUA stays.
        file.write_all_at(&data[..100], 0).expect("written");
        assert_eq!(target.take(), [(Op::Read, false, 0, 1), (Op::Write, false, 0, 1)]);
        file.write_all_at(&data[..1024], 612).expect("written");
        assert_eq!(target.take(), [(Op::Read, false, 1, 1), (Op::Read, false, 3, 1), (Op::Write, false, 1, 3)]);
        serving.open_with(OFlags::SYNC).write_all_at(&data[..10], 5000).expect("written");
        assert_eq!(target.take(), [(Op::Read, false, 9, 1), (Op::Write, true, 9, 1)]);
        file.write_all_at(&data[..600], 512).expect("written");
        assert_eq!(target.take(), [(Op::Read, false, 2, 1), (Op::Write, false, 1, 2)]);
        file.write_all_at(&data[..600], 424).expect("written");
        assert_eq!(target.take(), [(Op::Read, false, 0, 1), (Op::Write, false, 0, 2)]);

        file.sync_all().expect("flushed");
        file.sync_data().expect("flushed");
        assert_eq!(target.take(), [(Op::Flush, false, 0, 0); 2]);

        fallocate(&file, PUNCH, 512, 1024).expect("trimmed");
        fallocate(&file, ZERO, 4096, 4096).expect("zeroed");
        fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 512).expect("zeroed");
        // What lies behind the end is not the drive's.
        fallocate(&file, PUNCH, MIB - 512, 4096).expect("trimmed");
        fallocate(&file, PUNCH, MIB, 4096).expect("nothing to trim");
        let expected = [
            (Op::Trim, false, 1, 2),
            (Op::WriteZeroes, false, 8, 8),
            (Op::WriteZeroes, false, 0, 1),
            (Op::Trim, false, 2047, 1),
        ];
        assert_eq!(target.take(), expected);

        let mut buffer = vec![0xff; 4096];
        file.read_exact_at(&mut buffer, 8192).expect("read");
        assert!(buffer == data);
        assert_eq!(target.take(), [(Op::Read, false, 16, 8)]);
        file.read_exact_at(&mut buffer[..100], 8192 + 500).expect("read");
        assert!(buffer[..100] == data[500..600]);
        assert_eq!(target.take(), [(Op::Read, false, 16, 2)]);
        assert_eq!(file.read_at(&mut buffer, MIB - 100).expect("read"), 100);
        assert_eq!(target.take(), [(Op::Read, false, 2047, 1)]);
        assert_eq!(file.read_at(&mut buffer, MIB).expect("nothing read"), 0);

        drop(file);
        serving.unmount().expect("unmounted");
        assert_eq!(target.take(), []);
    });
}

#[test]
fn what_a_drive_cannot_do_is_refused_and_changes_nothing() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("refusals", || {
        let target = Recorder::new(Ram::new(MIB));
        let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>, 1);
        let file = serving.open();
        let data = pattern(2, 4096);
        assert_eq!(errno(file.write_at(&data, MIB)), Errno::NOSPC);
        assert_eq!(file.write_at(&data, MIB - 512).expect("as much as there is"), 512);
        assert_eq!(target.take(), [(Op::Write, false, 2047, 1)]);
        assert_eq!(fallocate(&file, PUNCH, 100, 512), Err(Errno::INVAL));
        assert_eq!(fallocate(&file, ZERO, 0, 513), Err(Errno::INVAL));
        assert_eq!(fallocate(&file, FallocateFlags::ZERO_RANGE, MIB, 512), Err(Errno::NOSPC));
        assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, 512), Err(Errno::OPNOTSUPP));
        assert_eq!(errno(file.set_len(512)), Errno::INVAL);
        // `dd of=drive` opens it so.
        let path = serving.directory.path().join("drive");
        File::options().write(true).truncate(true).open(&path).expect("opened");
        assert_eq!(fs::metadata(&path).expect("attributes").len(), MIB);
        assert_eq!(errno(fs::remove_file(&path)), Errno::PERM);
        assert!(File::create(serving.directory.path().join("other")).is_err());
        let names: Vec<_> =
            fs::read_dir(serving.directory.path()).expect("read").map(|one| one.expect("one").file_name()).collect();
        assert_eq!(names, ["drive"]);
        let found = fs::metadata(&path).expect("attributes");
        assert_eq!((found.mode() & 0o777, found.blksize()), (0o600, 4096));
        assert_eq!(target.take(), []);
    });
}

#[test]
fn failures_of_the_target_are_the_errors_of_the_file() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("failures", || {
        let serving = Serving::new(Arc::new(Failing { asked: Default::default() }), 1);
        let file = serving.open();
        let mut sector = [0; 512];
        let expected = [Errno::IO, Errno::NOSPC, Errno::ROFS, Errno::INVAL, Errno::IO];
        for (at, expected) in expected.into_iter().enumerate() {
            let offset = at as u64 * 512;
            assert_eq!(errno(file.write_at(&sector, offset)), expected);
            assert_eq!(errno(file.read_at(&mut sector, offset)), expected);
            assert_eq!(fallocate(&file, PUNCH, offset, 512), Err(expected));
            assert_eq!(fallocate(&file, ZERO, offset, 512), Err(expected));
        }
        assert_eq!(errno(file.sync_all()), Errno::IO);
        file.write_all_at(&sector, 512 * 10).expect("goes on");
    });
}

#[test]
fn random_operations_from_several_threads_agree_with_a_model() {
    // Neighbours share a sector.
    const REGION: u64 = (256 << 10) + 77;
    if skipped(why_no_fuse()) {
        return;
    }
    within("random operations", || {
        let serving = Serving::new(Arc::new(Later::new((4 * REGION).next_multiple_of(512), 11)), 3);
        thread::scope(|scope| {
            for region in 0..4 {
                let file = serving.open_with(if region % 2 == 0 { OFlags::empty() } else { OFlags::DSYNC });
                scope.spawn(move || {
                    let mut random = rng(region, "operations");
                    let mut next = move |bound: u64| random.next_u64() % bound;
                    let mut model = vec![0; REGION as usize];
                    let start = region * REGION;
                    for step in 0..600 {
                        let op = next(6);
                        // Writes and reads have no alignment.
                        let unit = if op < 4 { [512, 512, 100, 1][next(4) as usize] } else { 512 };
                        let skew = (512 - start % 512) % 512 * u64::from(unit == 512);
                        let first = next((REGION - skew) / unit) * unit + skew;
                        let bytes = (next(64) * 512 + unit).min((REGION - first) / unit * unit);
                        if bytes == 0 {
                            continue;
                        }
                        let range = first as usize..(first + bytes) as usize;
                        match op {
                            0 | 1 => {
                                let data = pattern(region << 32 | step, bytes as usize);
                                file.write_all_at(&data, start + first).expect("written");
                                model[range].copy_from_slice(&data);
                            }
                            4 => {
                                let mode = if next(2) == 0 { PUNCH } else { ZERO };
                                fallocate(&file, mode, start + first, bytes).expect("zeroed");
                                model[range].fill(0);
                            }
                            5 => file.sync_data().expect("flushed"),
                            _ => {
                                let mut data = vec![0xff; bytes as usize];
                                file.read_exact_at(&mut data, start + first).expect("read");
                                assert!(data == model[range], "region {region}, step {step}");
                            }
                        }
                    }
                });
            }
        });
    });
}

/// Also when the test fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_merge_never_undoes_what_is_written_beside_it() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("merges", || {
        let serving = Serving::new(Arc::new(Later::new(MIB, 5)), 4);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // One byte of each of two sectors, which cannot be written without the rest of them.
            for at in [511, 600] {
                let file = serving.open();
                let is_over = &is_over;
                scope.spawn(move || {
                    for count in 0.. {
                        file.write_all_at(&[count as u8], at).expect("written");
                        let mut byte = [0];
                        file.read_exact_at(&mut byte, at).expect("read");
                        if is_over.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                });
            }
            let _at_end = SetAtEnd(&is_over);
            let file = serving.open();
            for count in 0..2000 {
                let data = pattern(count, 1024);
                file.write_all_at(&data, 0).expect("written");
                let mut found = vec![0; 1024];
                file.read_exact_at(&mut found, 0).expect("read");
                (found[511], found[600]) = (data[511], data[600]);
                assert!(found == data, "write {count} was undone");
            }
        });
    });
}

#[test]
fn large_writes_from_unaligned_memory_arrive_whole() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("large writes", || {
        let serving = Serving::new(Arc::new(Ram::new(8 * MIB)), 2);
        let file = serving.open();
        let data = pattern(9, 5 * MIB as usize + 1);
        file.write_all_at(&data[1..], 512).expect("written");
        let mut found = vec![0; 5 * MIB as usize];
        file.read_exact_at(&mut found, 512).expect("read");
        assert!(found == data[1..]);
    });
}

#[test]
fn holes_are_where_the_target_has_nothing() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("holes", || {
        let serving = Serving::new(Arc::new(Ram::new(MIB)), 1);
        let file = serving.open();
        let seek = |from| rustix::fs::seek(&file, from);
        assert_eq!(seek(SeekFrom::Data(0)), Err(Errno::NXIO));
        assert_eq!(seek(SeekFrom::Hole(7)), Ok(7));
        // More islands than are looked at in one go.
        let islands: Vec<u64> = (0..100).map(|island| 1024 + island * 8192).collect();
        for &island in &islands {
            file.write_all_at(&[1; 1024], island).expect("written");
        }
        let mut at = 0;
        for &island in &islands {
            assert_eq!(seek(SeekFrom::Data(at)), Ok(island));
            assert_eq!(seek(SeekFrom::Data(island + 5)), Ok(island + 5));
            assert_eq!(seek(SeekFrom::Hole(island + 5)), Ok(island + 1024));
            at = island + 1024;
        }
        assert_eq!(seek(SeekFrom::Data(at)), Err(Errno::NXIO));
        file.write_all_at(&vec![1; MIB as usize], 0).expect("written");
        assert_eq!(seek(SeekFrom::Hole(0)), Ok(MIB));
        assert_eq!(seek(SeekFrom::Hole(MIB)), Err(Errno::NXIO));
    });
}

#[test]
fn requests_that_wait_for_the_target_hold_no_thread() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("waiting requests", || {
        let target = Arc::new(Held::new(MIB));
        let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>, 1);
        thread::scope(|scope| {
            for sector in 0..100 {
                let file = serving.open();
                scope.spawn(move || file.write_all_at(&pattern(sector, 512), sector * 512).expect("written"));
            }
            eventually("100 writes at the target", || target.submitted.load(Ordering::SeqCst) == 100);
            // The one worker still answers.
            assert_eq!(fs::read_dir(serving.directory.path()).expect("read").count(), 1);
            assert_eq!(target.held(), 100);
            target.release();
        });
        let mut sector = [0; 512];
        for at in 0..100 {
            serving.open().read_exact_at(&mut sector, at * 512).expect("read");
            assert!(sector[..] == pattern(at, 512));
        }
    });
}

#[test]
fn a_file_in_use_is_not_taken_away() {
    if skipped(why_no_fuse()) {
        return;
    }
    within("taking away", || {
        let directory = TempDir::new().expect("a directory");
        let served = FuseFile::serve(Arc::new(Ram::new(MIB)), directory.path(), 2).expect("a file");
        let path = served.path();
        let file = File::open(&path).expect("open");
        // With the error it is dropped, and gone from its directory.
        assert!(matches!(served.unmount(), Err(FuseError::Busy { .. })));
        assert_eq!(fs::metadata(&path).expect_err("gone").kind(), ErrorKind::NotFound);
        file.read_at(&mut [0; 512], 0).expect_err("nobody answers");
        let missing = FuseFile::serve(Arc::new(Ram::new(MIB)), &directory.path().join("missing"), 1);
        assert!(matches!(missing, Err(FuseError::Mount { .. })));
    });
}

/// Maps two pages of the file, shared, and changes one; then reads and writes the file itself, and looks through the map.
const MAPS: &str = r#"
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    pages = mmap.mmap(fd, 8192, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=4096)
except OSError as error:
    sys.exit(f"errno {error.errno}")
pages[0:4] = b"mine"
assert os.pread(fd, 4, 4096) == b"mine", "a read of the file"
pages.flush(0, 4096)
other = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(other, b"theirs", 8192)
assert pages[4096:4102] == b"theirs", "a look through the map"
"#;

/// Linux's version, as major and minor.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().expect("major"), numbers.next().expect("minor"))
}

#[test]
fn a_shared_map_of_the_file_reaches_the_target() {
    let old = (kernel() < (6, 6)).then(|| "shared maps of FUSE files need Linux 6.6".to_string());
    if skipped(why_no_fuse().or(old)) {
        return;
    }
    within("shared maps", || {
        let target = Recorder::new(Ram::new(MIB));
        let serving = Serving::new(Arc::clone(&target) as Arc<dyn Target>, 2);
        let path = serving.directory.path().join("drive");
        must(&[&"python3", &"-c", &MAPS, &path]);
        let seen = target.take();
        let written = seen.iter().position(|one| *one == (Op::Write, false, 8, 8));
        let flushed = seen.iter().rposition(|one| *one == (Op::Flush, false, 0, 0));
        assert!(written.is_some() && written < flushed, "the page, then msync's flush: {seen:?}");
        let mut found = [0; 4];
        serving.open().read_exact_at(&mut found, 4096).expect("read");
        assert_eq!(&found, b"mine");
    });
}
