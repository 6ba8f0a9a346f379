//! Making the files of a run before it begins: by calls, one after the other, without virtual time.

use ssdlab_fs::call::{BLOCK_BYTES, MOST_BYTES};
use ssdlab_fs::{Call, Errno, FileSystem, Reply};
use ssdlab_workload::files::{FileSets, PrepareError};

use super::FilesRun;
use super::calls::{Access, Named, Next, Way, Work, verb};
use super::error::FilesError;
use super::model::Model;
use super::runner::wait;
use crate::progress::Control;

/// Files between looks at the stop flag.
const FILES_PER_LOOK: usize = 64;

/// Makes files on a file system.
pub(super) struct Preparation<'a> {
    pub(super) fs: &'a mut FileSystem,
    pub(super) run: &'a FilesRun<'a>,
    pub(super) model: Option<&'a mut Model>,
}

impl Preparation<'_> {
    /// Refuses files that cannot fit: bytes of each.
    pub(super) fn check_space(&mut self, sizes: impl Iterator<Item = u64>, directories: u64) -> Result<(), FilesError> {
        let Ok(Reply::Space(space)) = self.make(Call::StatFs)? else { return Ok(()) };
        // A directory takes its node and a block, at least.
        let of = |bytes: u64| {
            let blocks = bytes.div_ceil(BLOCK_BYTES);
            blocks + (self.run.kind.file_metadata)(blocks, &self.run.make)
        };
        let needed = sizes.fold(2 * directories, |sum, bytes| sum.saturating_add(of(bytes)));
        if needed <= space.blocks_free {
            return Ok(());
        }
        let (needed_bytes, free_bytes) = (needed.saturating_mul(BLOCK_BYTES), space.blocks_free * BLOCK_BYTES);
        Err(self.failed(PrepareError::TooSmall { needed_bytes, free_bytes }))
    }

    /// Makes the directories and files of a personality. Everything is durable then.
    pub(super) fn files(&mut self, files: &FileSets, access: Access, control: &Control<'_>) -> Result<(), FilesError> {
        let planned = files.planned();
        self.check_space(files.existing().map(|(_, bytes)| bytes), planned.directories)?;
        for path in files.directories() {
            self.work(path, Work::named(path, Named::Mkdir))?;
        }
        let mut done = 0;
        for (index, (path, bytes)) in files.existing().enumerate() {
            if index.is_multiple_of(FILES_PER_LOOK) {
                control.progress.advance(done, Some(planned.bytes));
                if control.stopped() {
                    return Err(self.failed(PrepareError::Interrupted));
                }
            }
            self.file(&path, bytes, access, control)?;
            done += bytes;
        }
        self.end()
    }

    /// Makes a file and writes it whole.
    pub(super) fn file(
        &mut self,
        path: &str,
        bytes: u64,
        access: Access,
        control: &Control<'_>,
    ) -> Result<(), FilesError> {
        let file = self.work(path, Work::named(path, Named::Create))?;
        let Some(file) = file else { return Ok(()) };
        let mut offset = 0;
        while offset < bytes {
            let length = (bytes - offset).min(MOST_BYTES.into());
            self.work(path, Work::moving(file, Way::Write, offset, length, access))?;
            offset += length;
            if offset.is_multiple_of(64 << 20) && control.stopped() {
                return Err(self.failed(PrepareError::Interrupted));
            }
        }
        self.work(path, Work::One(Call::Close { file }))?;
        Ok(())
    }

    /// Makes a file of a size without data.
    pub(super) fn sparse_file(&mut self, path: &str, size: u64) -> Result<(), FilesError> {
        let Some(file) = self.work(path, Work::named(path, Named::Create))? else { return Ok(()) };
        self.work(path, Work::One(Call::Truncate { file, size }))?;
        self.work(path, Work::One(Call::Close { file }))?;
        Ok(())
    }

    /// Everything is durable.
    pub(super) fn end(&mut self) -> Result<(), FilesError> {
        self.work("everything", Work::One(Call::Sync))?;
        self.fs.settle();
        Ok(())
    }

    /// Does some work; the file that it opened.
    pub(super) fn work(&mut self, path: &str, work: Work) -> Result<Option<ssdlab_fs::FileId>, FilesError> {
        let mut work = work;
        loop {
            let stamp = self.model.as_mut().map(|model| model.next_stamp());
            let call = work.call(stamp);
            let name = verb(&call);
            let reply = self.make(call)?.map_err(|errno| self.refused(name, path, errno))?;
            match work.replied(&reply) {
                Next::Goes(next) => work = next,
                Next::Ends { opened, .. } => return Ok(opened),
            }
        }
    }

    fn make(&mut self, call: Call) -> Result<Result<Reply, Errno>, FilesError> {
        let Some(model) = &mut self.model else { return Ok(wait(self.fs, call)?.result) };
        model.sent(0, &call);
        let answer = wait(self.fs, call)?;
        model.answered(&answer);
        Ok(answer.result)
    }

    fn refused(&self, call: &'static str, path: &str, errno: Errno) -> FilesError {
        let reason = self.fs.read_only_reason().map_or(String::new(), |reason| format!(" ({reason})"));
        FilesError::Call { label: self.run.dut.label.clone(), call, path: path.to_string(), errno, reason }
    }

    fn failed(&self, source: PrepareError) -> FilesError {
        FilesError::Prepare { label: self.run.dut.label.clone(), source }
    }
}
