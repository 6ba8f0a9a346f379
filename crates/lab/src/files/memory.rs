//! How much memory a file run takes, known before it is taken.

use ssdlab_fs::call::BLOCK_BYTES;
use ssdlab_fs::check::memory_bytes;
use ssdlab_workload::files::FileSets;

use super::{FilesError, FilesRun, FilesWork};
use crate::experiment::RunError;
use crate::memory::{Memory, Part};

/// What an entry of the cache takes beside its contents.
const ENTRY_BYTES: u64 = 200;

/// What a stamped page takes.
const STAMPS_BYTES: u64 = 64;

/// An inode without the addresses of its blocks, and what is beside a record.
const INODE_BYTES: u64 = 200;

/// What a name takes in a directory: 8-byte slots, half of them used.
const NAME_BYTES: u64 = 64;

/// Sizes of the files that a run begins with, as far as the workload says so.
fn sizes(run: &FilesRun<'_>) -> Result<Vec<u64>, FilesError> {
    Ok(match run.work {
        FilesWork::Personality(personality) => {
            let files = FileSets::new(personality, run.seed);
            files.existing().map(|(_, bytes)| bytes).collect()
        }
        FilesWork::Jobs(jobs, _) => jobs.on_files(run.seed)?.files.iter().map(|file| file.bytes).collect(),
    })
}

impl FilesRun<'_> {
    /// Memory that it takes at most, beside [`crate::memory::BESIDES`]. Files that a workload adds to those it begins with are taken to
    /// be as many again.
    ///
    /// # Errors
    /// A design that is not known, or jobs that are refused.
    pub fn memory(&self) -> Result<Memory, FilesError> {
        let (label, config) = (&self.dut.label, &self.dut.config);
        let refused = |source| FilesError::Run(RunError::Drive { label: label.clone(), source });
        let mut memory = match self.host {
            Some(host) => Memory::of_stack(label, config, host, self.verify),
            None => Memory::of(label, config, self.verify),
        }
        .map_err(refused)?;
        let blocks = config.address_bytes() / BLOCK_BYTES;
        let sizes = sizes(self)?;
        let data = sizes.iter().map(|bytes| bytes.div_ceil(BLOCK_BYTES)).sum::<u64>();
        let of = |bytes: &u64| (self.kind.file_metadata)(bytes.div_ceil(BLOCK_BYTES), &self.make);
        // An inode of its own block, or one among others: a record has its bytes.
        let nodes = sizes.iter().map(of).sum::<u64>().max(sizes.len() as u64);
        let indexes = nodes - sizes.len() as u64;
        // Old versions of metadata stay with the drive until their segment is trimmed: half as much again.
        let metadata =
            2 * (nodes * INODE_BYTES + 4 * data + indexes * BLOCK_BYTES / 4 + sizes.len() as u64 * NAME_BYTES);
        let entries = (self.options.cache / BLOCK_BYTES).min(blocks);
        let stamps = if self.verify { STAMPS_BYTES } else { 0 };
        let of_drive = config.segment_units().map(|units| u64::from(units) * u64::from(config.ftl.mapping_unit));
        let segments = config.address_bytes() / of_drive.unwrap_or(self.make.segment);
        // A usage table with bits is held against the walk's own.
        let bits = if self.kind.command_set.is_none() { blocks / 8 } else { 0 };
        let check = if self.check { memory_bytes(blocks, blocks.next_power_of_two(), segments) + bits } else { 0 };
        let parts =
            [(Part::Cache, entries * (ENTRY_BYTES + stamps)), (Part::Metadata, metadata * 3 / 2), (Part::Check, check)];
        memory.parts = parts.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
        Ok(memory)
    }
}
