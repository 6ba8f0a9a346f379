//! A directory with one file in it: the drive.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};
use ssdlab_base::command_sets::segments::{PART_OF_SEGMENT, PART_OF_WRITE_UNIT};
use ssdlab_base::{Op, Request as Asked, SECTOR_BYTES};

use super::merge::{Gate, Merger, Part};
use super::pending::{Pending, Reply};
use super::{FILE_NAME, attributes};
use crate::{Appends, Command, Target};

const FILE: INodeNo = INodeNo(2);
/// Neither the file's size nor its name ever changes.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Most bytes of one request; the kernel's own limit unless it is raised (`fs.fuse.max_pages_limit`).
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Asynchronous requests on their way at once: fuser's 16 would be the drive's queue depth.
const BACKGROUND_MAX: u16 = 512;
const EXTENTS_AT_ONCE: usize = 64;

// `whence` of lseek(2).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

pub(super) struct DriveDirectory {
    target: Arc<dyn Target>,
    gate: Arc<Gate>,
    merger: Merger,
    pending: Arc<Pending>,
    bytes: u64,
    /// The rules of a target that takes appends alone: nothing of a request is changed on its way there.
    appends: Option<Appends>,
    since: SystemTime,
    uid: u32,
    gid: u32,
}

impl DriveDirectory {
    pub(super) fn new(target: Arc<dyn Target>) -> io::Result<DriveDirectory> {
        let (bytes, appends) = (target.bytes(), target.appends());
        let gate = Arc::new(Gate::new(Arc::clone(&target)));
        Ok(DriveDirectory {
            target,
            merger: Merger::start(Arc::clone(&gate))?,
            gate,
            pending: Arc::new(Pending::default()),
            bytes,
            appends,
            since: SystemTime::now(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        })
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size, nlink) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o500, 0, 2),
            FILE => (FileType::RegularFile, 0o600, self.bytes, 1),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / SECTOR_BYTES,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: self.target.preferred_bytes(),
            flags: 0,
        })
    }

    fn submit(&self, request: Asked, data: Vec<u8>, reply: Reply) {
        let cookie = self.pending.keep(reply);
        let command = Command { request, data, cookie, sink: Arc::<Pending>::clone(&self.pending) };
        match request.op {
            Op::Read | Op::Flush => self.target.submit(&mut vec![command]),
            Op::Write | Op::Trim | Op::WriteZeroes => self.gate.submit(command),
        }
    }

    /// Where data or a hole begins, from a byte on; a hole is at the end at the latest.
    fn seek(&self, from: u64, data: bool) -> Option<u64> {
        let mut at = from - from % SECTOR_BYTES;
        while at < self.bytes {
            let before = at;
            for extent in self.target.extents(at, self.bytes - at, EXTENTS_AT_ONCE) {
                if extent.mapped == data {
                    return Some(at.max(from));
                }
                at += extent.bytes;
            }
            if at == before {
                break;
            }
        }
        (!data).then_some(self.bytes)
    }
}

fn is_aligned(offset: u64, bytes: u64) -> bool {
    (offset | bytes).is_multiple_of(SECTOR_BYTES)
}

/// The request for a byte range whose ends are sector boundaries.
fn asked(op: Op, offset: u64, bytes: u64) -> Asked {
    Asked::new(op, offset / SECTOR_BYTES, bytes / SECTOR_BYTES)
}

/// Answers with an extended attribute, or with how long it is where `size` is 0.
fn answer(value: &[u8], size: u32, reply: ReplyXattr) {
    match size as usize {
        0 => reply.size(value.len() as u32),
        room if room < value.len() => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}

impl Filesystem for DriveDirectory {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel without one of these serves the file all the same, slower.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        // Shared maps (Linux 6.6). Their pages are written back in any order, which segments do not take.
        if self.appends.is_none() {
            let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attributes) if parent == INodeNo::ROOT && name == FILE_NAME => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// As with a block device: `O_TRUNC` (a size of 0) and times change nothing, any other size is refused.
    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.is_some() || uid.is_some() || gid.is_some() {
            reply.error(Errno::EPERM);
        } else if size.is_some_and(|size| size != 0 && size != self.bytes) {
            reply.error(Errno::EINVAL);
        } else {
            self.getattr(_request, inode, None, reply);
        }
    }

    fn mknod(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // The drive is its own cache: nothing is kept in the kernel, and writes need no lock on the file.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    /// Any offset and length: the sectors around them are read.
    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = offset.saturating_add(u64::from(size)).min(self.bytes);
        if offset >= end {
            reply.data(&[]);
            return;
        }
        let first = offset - offset % SECTOR_BYTES;
        let reply = Reply::Read { reply, skip: (offset - first) as usize, take: (end - offset) as usize };
        self.submit(asked(Op::Read, first, end.next_multiple_of(SECTOR_BYTES) - first), Vec::new(), reply);
    }

    /// Any offset and length: what covers a part of a sector is merged with the rest of it. A target that takes appends alone
    /// gets whole sectors as they come, and nothing else.
    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let bytes = (data.len() as u64).min(self.bytes.saturating_sub(offset));
        if data.is_empty() {
            reply.written(0);
            return;
        }
        if bytes == 0 || self.appends.is_some() && bytes < data.len() as u64 {
            reply.error(Errno::ENOSPC);
            return;
        }
        if self.appends.is_some() && !is_aligned(offset, bytes) {
            self.target.count_refused(PART_OF_WRITE_UNIT);
            reply.error(Errno::EINVAL);
            return;
        }
        // O_SYNC has the bit of O_DSYNC.
        let fua = OFlags::from_bits_retain(flags.0 as u32).contains(OFlags::DSYNC);
        let data = data[..bytes as usize].to_vec();
        let reply = Reply::Write { reply, bytes: bytes as u32 };
        if is_aligned(offset, bytes) {
            self.submit(Asked { fua, ..asked(Op::Write, offset, bytes) }, data, reply);
        } else {
            self.merger.take(Part { offset, data, fua, reply });
        }
    }

    fn fsync(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.submit(asked(Op::Flush, 0, 0), Vec::new(), Reply::Empty(reply));
    }

    fn fsyncdir(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let op = if mode == FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE {
            Op::Trim
        } else if mode.difference(FallocateFlags::KEEP_SIZE) == FallocateFlags::ZERO_RANGE {
            Op::WriteZeroes
        } else {
            // A drive has nothing to reserve.
            reply.error(Errno::EOPNOTSUPP);
            return;
        };
        let end = offset.saturating_add(length);
        if self.appends.is_some() && op == Op::WriteZeroes {
            reply.error(Errno::EOPNOTSUPP);
        } else if !is_aligned(offset, length) {
            if self.appends.is_some() {
                self.target.count_refused(PART_OF_SEGMENT);
            }
            reply.error(Errno::EINVAL);
        } else if self.appends.is_some() && end > self.bytes {
            reply.error(Errno::EINVAL);
        } else if end > self.bytes && !mode.contains(FallocateFlags::KEEP_SIZE) {
            reply.error(Errno::ENOSPC);
        } else if offset >= self.bytes || length == 0 {
            reply.ok();
        } else {
            self.submit(asked(op, offset, end.min(self.bytes) - offset), Vec::new(), Reply::Empty(reply));
        }
    }

    fn getxattr(&self, _request: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        match &self.appends {
            // The kernel does not ask again.
            None => reply.error(Errno::ENOSYS),
            Some(appends) if inode == FILE => match attributes::value(&*self.target, appends, name) {
                Ok(value) => answer(value.as_bytes(), size, reply),
                Err(error) => reply.error(error),
            },
            Some(_) => reply.error(Errno::ENODATA),
        }
    }

    fn listxattr(&self, _request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        match &self.appends {
            None => reply.error(Errno::ENOSYS),
            Some(appends) if inode == FILE => answer(&attributes::names(&*self.target, appends), size, reply),
            Some(_) => answer(&[], size, reply),
        }
    }

    fn lseek(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let data = match whence {
            SEEK_DATA => true,
            SEEK_HOLE => false,
            _ => {
                reply.error(Errno::EINVAL);
                return;
            }
        };
        let from = u64::try_from(offset).ok().filter(|from| *from < self.bytes);
        match from.and_then(|from| self.seek(from, data)) {
            Some(found) => reply.offset(found as i64),
            None => reply.error(Errno::ENXIO),
        }
    }

    fn readdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            reply.error(Errno::ENOTDIR);
            return;
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (at, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(inode, at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// The block size becomes the discard granularity of a loop device over the file.
    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let block = self.target.preferred_bytes();
        reply.statfs(self.bytes / u64::from(block), 0, 0, 1, 0, block, 255, block);
    }
}
