//! Real file systems on a loop device over the file over a disk in memory.
//!
//! A program of its own: it starts itself as a server that is killed.

#[allow(dead_code, reason = "tests of the other program need the rest")]
#[path = "it/support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, mpsc};
use std::thread;
use std::time::Duration;

use ssdlab_base::Op;
use ssdlab_live::Target;
use ssdlab_live::fuse::FuseFile;
use ssdlab_live::mount::{Down, FileSystem, MountError, Mounted, Options, mount, take_down};
use support::MIB;
use support::client::pattern;
use support::machine::{Recorder, must, program, serves, skipped, why_no_fuse, within};
use support::ram::Ram;
use tempfile::TempDir;

/// Servers are killed alone: mkfs.btrfs looks at every loop device of the machine, and fails on one whose file is dead.
static KILLING: RwLock<()> = RwLock::new(());

/// Waits until no test kills a server.
fn nobody_is_killed() -> RwLockReadGuard<'static, ()> {
    let guard = KILLING.read().unwrap_or_else(PoisonError::into_inner);
    take_down_what_is_left();
    guard
}

/// What servers of earlier runs have left would fail mkfs.btrfs here.
fn take_down_what_is_left() {
    for left in ssdlab_live::mount::left().expect("readable") {
        if left.starts_with(std::env::temp_dir()) {
            // A test beside this one may take it down first.
            let _ = take_down(&left, PATIENCE);
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(300);

fn options(mountpoint: &Path, file_system: Option<FileSystem>) -> Options {
    Options { file_system, patience: PATIENCE, ..Options::new(mountpoint) }
}

fn mounted(options: Options, target: &Arc<impl Target + 'static>) -> Mounted {
    let target = Arc::clone(target) as Arc<dyn Target>;
    within("mounting", move || mount(&options, target)).expect("mounted")
}

fn refused(options: Options, target: &Arc<impl Target + 'static>) -> MountError {
    let target = Arc::clone(target) as Arc<dyn Target>;
    within("mounting", move || mount(&options, target).map(|_| ())).expect_err("refused")
}

fn taken_down(mut mounted: Mounted) {
    within("taking down", move || mounted.take_down()).expect("taken down");
}

/// Nothing is left of a mount: no mount, no loop device, no directory.
fn assert_nothing_left(mountpoint: &Path) {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("/proc");
    let slot = slot(mountpoint);
    let mountpoint = mountpoint.to_str().expect("UTF-8");
    assert!(!table.contains(mountpoint), "{table}");
    assert!(!slot.exists());
    let backing = must(&[&"losetup", &"--list", &"--noheadings", &"--output", &"BACK-FILE"]);
    assert!(!backing.contains(slot.to_str().expect("UTF-8")), "{backing}");
}

/// Where root's mounts are kept; the mountpoint's name is written as it is.
fn slot(mountpoint: &Path) -> PathBuf {
    let mountpoint = mountpoint.to_str().expect("UTF-8");
    Path::new("/run/ssdlab").join(mountpoint.trim_start_matches('/').replace('/', "-"))
}

/// A mountpoint whose name is written as it is in the names of slots.
fn mountpoint() -> (TempDir, PathBuf) {
    let directory = tempfile::Builder::new().prefix("ssdlab").tempdir().expect("a directory");
    let mountpoint = directory.path().canonicalize().expect("there").join("drive");
    fs::create_dir(&mountpoint).expect("made");
    serves(&mountpoint);
    serves(&slot(&mountpoint).join("fuse"));
    (directory, mountpoint)
}

/// Why file systems cannot be mounted here, if they cannot.
fn why_no_mount() -> Option<String> {
    if let Some(reason) = why_no_fuse() {
        return Some(reason);
    }
    if !rustix::process::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    let (good, text) = program(&[&"losetup", &"--find"]);
    if !good {
        return Some(format!("no loop devices: {text}"));
    }
    None
}

/// Why a file system cannot be tested here, if it cannot.
fn why_no_file_system(name: &str, checker: &str) -> Option<String> {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.lines().any(|line| line.trim_start_matches("nodev").trim() == name) {
        // It may be a module that no program has asked for yet.
        if !program(&[&"modprobe", &name]).0 {
            return Some(format!("this kernel has no {name}"));
        }
    }
    for tool in [&format!("mkfs.{name}"), checker] {
        if !["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|directory| Path::new(directory).join(tool).exists()) {
            return Some(format!("no {tool}"));
        }
    }
    None
}

/// Checks what a target holds, by the file system's own checker on the file.
fn check(file_system: FileSystem, target: &Arc<impl Target + 'static>) {
    let directory = TempDir::new().expect("a directory");
    let target = Arc::clone(target) as Arc<dyn Target>;
    let file = FuseFile::serve(target, directory.path(), 2).expect("a file");
    match file_system {
        FileSystem::Ext4 => must(&[&"e2fsck", &"-f", &"-n", &file.path()]),
        FileSystem::Xfs => must(&[&"xfs_repair", &"-n", &"-f", &file.path()]),
        FileSystem::Btrfs => must(&[&"btrfs", &"check", &file.path()]),
    };
    within("unmounting", move || file.unmount()).expect("unmounted");
}

fn write_file(path: &Path, data: &[u8]) {
    let mut file = File::create(path).expect("made");
    file.write_all(data).expect("written");
    file.sync_all().expect("flushed");
}

fn checker(file_system: FileSystem) -> &'static str {
    match file_system {
        FileSystem::Ext4 => "e2fsck",
        FileSystem::Xfs => "xfs_repair",
        FileSystem::Btrfs => "btrfs",
    }
}

fn lives_on_the_drive(file_system: FileSystem, bytes: u64, sector_bytes: u32) {
    if skipped(why_no_mount().or_else(|| why_no_file_system(file_system.name(), checker(file_system)))) {
        return;
    }
    let _guard = nobody_is_killed();
    let (_directory, mountpoint) = mountpoint();
    let target = Recorder::new(Ram::new(bytes));
    let options = Options { sector_bytes, ..options(&mountpoint, Some(file_system)) };
    let served = mounted(options.clone(), &target);
    let report = served.report().clone();
    assert!(report.made);
    assert_eq!(report.file_system.as_deref(), Some(file_system.name()));
    assert_eq!(report.notes, [] as [&str; 0]);
    let device = report.device.expect("a device");
    let queue = Path::new("/sys/block").join(device.file_name().expect("a name")).join("queue/logical_block_size");
    assert_eq!(fs::read_to_string(queue).expect("/sys").trim(), sector_bytes.to_string());
    target.take();

    let place = mountpoint.clone();
    within("files", move || {
        for number in 0..20 {
            write_file(&place.join(format!("kept {number}")), &pattern(number, 10_000 * number as usize));
            write_file(&place.join(format!("removed {number}")), &pattern(number, 300_000));
        }
        for number in 0..20 {
            fs::remove_file(place.join(format!("removed {number}"))).expect("removed");
        }
        must(&[&"sync", &"-f", &place]);
        must(&[&"fstrim", &place]);
    });
    let seen = target.take();
    let count = |op| seen.iter().filter(|seen| seen.0 == op).count();
    eprintln!(
        "{file_system}, {sector_bytes}: {} writes, {} flushes, {} trims",
        count(Op::Write),
        count(Op::Flush),
        count(Op::Trim)
    );
    assert!(count(Op::Flush) >= 5 && count(Op::Trim) >= 1 && count(Op::Write) >= 40);
    let sectors = u64::from(sector_bytes) / 512;
    assert!(seen.iter().all(|seen| seen.2 % sectors == 0 && seen.3 % sectors == 0));
    taken_down(served);
    assert_nothing_left(&mountpoint);
    check(file_system, &target);

    // It is found again, with --fs and without.
    for file_system in [Some(file_system), None] {
        let served = mounted(Options { file_system, ..options.clone() }, &target);
        assert!(!served.report().made);
        let place = mountpoint.clone();
        within("files", move || {
            for number in 0..20 {
                let data = fs::read(place.join(format!("kept {number}"))).expect("read");
                assert!(data == pattern(number, 10_000 * number as usize));
                assert!(!place.join(format!("removed {number}")).exists());
            }
        });
        taken_down(served);
    }
    check(file_system, &target);
    assert_nothing_left(&mountpoint);
}

#[test]
fn ext4_lives_on_512_byte_sectors() {
    lives_on_the_drive(FileSystem::Ext4, 64 * MIB, 512);
}

#[test]
fn ext4_lives_on_4096_byte_sectors() {
    lives_on_the_drive(FileSystem::Ext4, 64 * MIB, 4096);
}

#[test]
fn xfs_lives_on_512_byte_sectors() {
    lives_on_the_drive(FileSystem::Xfs, 320 * MIB, 512);
}

#[test]
fn xfs_lives_on_4096_byte_sectors() {
    lives_on_the_drive(FileSystem::Xfs, 320 * MIB, 4096);
}

#[test]
fn btrfs_lives_on_512_byte_sectors() {
    lives_on_the_drive(FileSystem::Btrfs, 160 * MIB, 512);
}

#[test]
fn btrfs_lives_on_4096_byte_sectors() {
    lives_on_the_drive(FileSystem::Btrfs, 160 * MIB, 4096);
}

#[test]
fn the_smallest_drives_are_large_enough_for_their_file_systems() {
    for file_system in FileSystem::ALL {
        if skipped(why_no_mount().or_else(|| why_no_file_system(file_system.name(), checker(file_system)))) {
            continue;
        }
        let _guard = nobody_is_killed();
        let (_directory, mountpoint) = mountpoint();
        let target = Arc::new(Ram::new(file_system.bytes_min()));
        taken_down(mounted(options(&mountpoint, Some(file_system)), &target));
        let smaller = Arc::new(Ram::new(file_system.bytes_min() - 4096));
        let error = refused(options(&mountpoint, Some(file_system)), &smaller);
        assert!(matches!(error, MountError::TooSmall { .. }), "{error}");
        assert_nothing_left(&mountpoint);
    }
}

#[test]
fn what_a_drive_holds_is_never_made_over() {
    if skipped(why_no_mount()) {
        return;
    }
    let _guard = nobody_is_killed();
    let (_directory, mountpoint) = mountpoint();
    let target = Arc::new(Ram::new(320 * MIB));
    let error = refused(options(&mountpoint, None), &target);
    assert!(matches!(error, MountError::NoFileSystem), "{error}");
    assert_nothing_left(&mountpoint);

    taken_down(mounted(options(&mountpoint, Some(FileSystem::Ext4)), &target));
    if !skipped(why_no_file_system("btrfs", "btrfs")) {
        let error = refused(options(&mountpoint, Some(FileSystem::Btrfs)), &target);
        assert!(error.to_string().contains("holds ext4, not btrfs"), "{error}");
        assert_nothing_left(&mountpoint);
    }
    check(FileSystem::Ext4, &target);

    // A partition table is something too.
    let partitioned = Arc::new(Ram::new(64 * MIB));
    let directory = TempDir::new().expect("a directory");
    let file = FuseFile::serve(Arc::clone(&partitioned) as Arc<dyn Target>, directory.path(), 1).expect("a file");
    let mut sector = vec![0; 512];
    sector[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 3, 0, 1, 0, 0, 0, 64, 0, 0, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    fs::write(file.path(), sector).expect("written");
    file.unmount().expect("unmounted");
    let error = refused(options(&mountpoint, Some(FileSystem::Ext4)), &partitioned);
    assert!(error.to_string().contains("holds dos partition table, not ext4"), "{error}");
    assert_nothing_left(&mountpoint);
}

#[test]
fn a_mountpoint_that_cannot_be_is_refused_and_nothing_is_left() {
    if skipped(why_no_fuse()) {
        return;
    }
    let (directory, mountpoint) = mountpoint();
    let target = Arc::new(Ram::new(64 * MIB));
    let missing = directory.path().join("missing");
    assert!(matches!(refused(options(&missing, None), &target), MountError::Mountpoint { .. }));
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    assert!(matches!(refused(options(&file, None), &target), MountError::Mountpoint { .. }));
    for image in [mountpoint.join("image"), mountpoint.clone(), directory.path().to_owned()] {
        fs::create_dir_all(&image).expect("made");
        let options = Options { image: Some(image), ..options(&mountpoint, None) };
        assert!(matches!(refused(options, &target), MountError::ImageInside { .. }));
    }
    let odd = Options { sector_bytes: 1024, ..options(&mountpoint, None) };
    assert!(matches!(refused(odd, &target), MountError::Sector { found: 1024, .. }));
    let parts = Options { sector_bytes: 4096, ..options(&mountpoint, None) };
    assert!(matches!(refused(parts, &Arc::new(Ram::new(MIB + 512))), MountError::Sector { .. }));
    let nothing = take_down(&mountpoint, PATIENCE).expect_err("nothing there");
    assert!(matches!(nothing, MountError::NotServed { .. }), "{nothing}");
    assert_nothing_left(&mountpoint);
}

#[test]
fn a_file_alone_is_served_on_the_mountpoint() {
    if skipped(why_no_fuse()) {
        return;
    }
    let (_directory, mountpoint) = mountpoint();
    let target = Arc::new(Ram::new(MIB));
    let served = mounted(Options { file_only: true, ..options(&mountpoint, None) }, &target);
    assert_eq!(served.report().file, mountpoint.join("drive"));
    assert_eq!(served.report().device, None);
    assert!(served.report().notes[0].contains("as asked"));
    assert_eq!(fs::metadata(mountpoint.join("drive")).expect("there").len(), MIB);
    taken_down(served);
    assert_nothing_left(&mountpoint);
}

#[test]
fn a_mount_is_served_once_and_taken_down_from_elsewhere() {
    if skipped(why_no_mount()) {
        return;
    }
    let (_directory, mountpoint) = mountpoint();
    let target = Arc::new(Ram::new(64 * MIB));
    let mut served = mounted(options(&mountpoint, Some(FileSystem::Ext4)), &target);
    let error = refused(options(&mountpoint, Some(FileSystem::Ext4)), &target);
    assert!(matches!(error, MountError::AlreadyServed { pid, .. } if pid == std::process::id()), "{error}");

    // In use, it stays: for its server, and for who takes it down from elsewhere.
    write_file(&mountpoint.join("open"), b"before");
    let mut open = File::options().append(true).open(mountpoint.join("open")).expect("open");
    let (served_again, result) = within("taking down", move || {
        let result = served.take_down();
        (served, result)
    });
    served = served_again;
    assert!(matches!(result, Err(MountError::Busy { .. })));
    let place = mountpoint.clone();
    let result = within("taking down", move || take_down(&place, PATIENCE));
    assert!(matches!(result, Err(MountError::Busy { .. })));
    open.write_all(b" and after").expect("still served");
    drop(open);
    assert_eq!(fs::read(mountpoint.join("open")).expect("read"), b"before and after");

    // A stopper ends the wait, again and again.
    let stopper = served.stopper().expect("served");
    for _ in 0..2 {
        stopper.stop();
        served = within("a stop", move || {
            served.wait();
            served
        });
    }
    let server = thread::spawn(move || {
        served.wait();
        served.take_down().expect("nothing is left to do");
    });
    let place = mountpoint.clone();
    let down = within("taking down", move || take_down(&place, PATIENCE)).expect("taken down");
    assert_eq!(down, Down::Served(std::process::id()));
    server.join().expect("no panic");
    assert_nothing_left(&mountpoint);
    check(FileSystem::Ext4, &target);
}

/// A server in a process of its own that can be killed. Whatever the test does, it is and nothing stays mounted.
struct Server {
    child: Child,
    mountpoint: PathBuf,
}

const SERVER_MOUNTPOINT: &str = "SSDLAB_TEST_MOUNTPOINT";

impl Server {
    fn start(mountpoint: &Path) -> Server {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "server_process", "--ignored", "--nocapture"])
            .env(SERVER_MOUNTPOINT, mountpoint)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let server = Server { child, mountpoint: mountpoint.to_owned() };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // To its end, or the server could not write any more.
            for line in output.lines().map_while(Result::ok).filter(|line| line.contains("serving")) {
                let _ = sender.send(line);
            }
        });
        receiver.recv_timeout(PATIENCE).expect("a server that serves");
        server
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = take_down(&self.mountpoint, PATIENCE);
    }
}

/// Not a test: the process that [`Server`] starts.
#[test]
#[ignore = "a part of other tests"]
fn server_process() {
    let Some(mountpoint) = std::env::var_os(SERVER_MOUNTPOINT) else { return };
    let options = options(Path::new(&mountpoint), Some(FileSystem::Ext4));
    let mut served = mount(&options, Arc::new(Ram::new(64 * MIB))).expect("mounted");
    println!("serving");
    let stopper = served.stopper().expect("served");
    thread::spawn(move || {
        // Its parent's end is its end.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopper.stop();
    });
    served.wait();
    served.take_down().expect("taken down");
}

/// Writes until it gets an error; how many writes that took.
fn write_until_error(path: &Path) -> usize {
    let data = pattern(3, 16 << 10);
    let Ok(mut file) = File::create(path) else { return 0 };
    for count in 0.. {
        if file.write_all(&data).and_then(|()| file.sync_data()).is_err() {
            return count;
        }
    }
    unreachable!("the server is killed")
}

/// mkfs.btrfs fails beside a mounted loop device whose file is dead; the error says what to take down.
fn assert_btrfs_names_what_is_left(left: &Path) {
    if why_no_file_system("btrfs", checker(FileSystem::Btrfs)).is_some() {
        return;
    }
    let (_directory, mountpoint) = mountpoint();
    let target = Arc::new(Ram::new(FileSystem::Btrfs.bytes_min()));
    let error = refused(options(&mountpoint, Some(FileSystem::Btrfs)), &target).to_string();
    let expected = format!("`ssdlab mount --down '{}'`", left.display());
    assert!(error.contains("mkfs.btrfs") && error.ends_with(&expected), "{error}");
    assert_nothing_left(&mountpoint);
}

#[test]
fn a_killed_server_gives_errors_and_leaves_nothing_that_cannot_be_taken_down() {
    if skipped(why_no_mount()) {
        return;
    }
    let _guard = KILLING.write().unwrap_or_else(PoisonError::into_inner);
    take_down_what_is_left();
    let (_directory, mountpoint) = mountpoint();
    for round in 0..4 {
        let mut server = Server::start(&mountpoint);
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let path = mountpoint.join(format!("file {writer}"));
                thread::spawn(move || write_until_error(&path))
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        // Open over the kill: it holds the dead file system.
        let open = File::create(mountpoint.join("open")).expect("open");
        server.kill();
        for writer in writers {
            let count = within("a writer's error", move || writer.join()).expect("no panic");
            assert!(count > 0, "it wrote before");
        }
        within("a flush's error", move || open.sync_all()).expect_err("the drive is gone");
        if round == 1 {
            assert_btrfs_names_what_is_left(&mountpoint);
            let place = mountpoint.clone();
            let down = within("taking down", move || take_down(&place, PATIENCE)).expect("taken down");
            assert_eq!(down, Down::Left);
            assert_nothing_left(&mountpoint);
            continue;
        }
        if round == 3 {
            // Its mountpoint was removed meanwhile.
            must(&[&"umount", &"-i", &"-c", &"-l", &mountpoint]);
            fs::remove_dir(&mountpoint).expect("removed");
            let place = mountpoint.clone();
            let down = within("taking down", move || take_down(&place, PATIENCE)).expect("taken down");
            assert_eq!(down, Down::Left);
            assert_nothing_left(&mountpoint);
            break;
        }
        // The next mount takes down what is left, also while it is in use.
        let directory = (round == 2).then(|| File::open(&mountpoint).expect("open"));
        let target = Arc::new(Ram::new(64 * MIB));
        let served = mounted(options(&mountpoint, Some(FileSystem::Ext4)), &target);
        assert!(served.report().notes[0].contains("had left"), "{:?}", served.report().notes);
        assert!(served.report().made);
        drop(directory);
        taken_down(served);
        assert_nothing_left(&mountpoint);
    }
    assert!(!program(&[&"mountpoint", &mountpoint]).0);
}

#[test]
fn a_server_is_taken_down_from_another_process() {
    if skipped(why_no_mount()) {
        return;
    }
    let (_directory, mountpoint) = mountpoint();
    let mut server = Server::start(&mountpoint);
    write_file(&mountpoint.join("file"), b"content");
    let place = mountpoint.clone();
    let down = within("taking down", move || take_down(&place, PATIENCE)).expect("taken down");
    assert_eq!(down, Down::Served(server.child.id()));
    assert!(server.child.wait().expect("ended").success());
    assert_nothing_left(&mountpoint);
}
