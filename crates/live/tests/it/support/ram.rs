//! A disk in memory that answers at once.

use std::sync::RwLock;

use ssdlab_base::{Op, SECTOR_BYTES};
use ssdlab_live::{Answer, Command, Extent, Failure, Target};

struct Contents {
    bytes: Vec<u8>,
    /// For every sector, whether it was written since it was last trimmed.
    mapped: Vec<bool>,
}

pub(crate) struct Ram {
    contents: RwLock<Contents>,
    bytes: u64,
}

impl Ram {
    pub(crate) fn new(bytes: u64) -> Ram {
        let contents =
            Contents { bytes: vec![0; bytes as usize], mapped: vec![false; (bytes / SECTOR_BYTES) as usize] };
        Ram { contents: RwLock::new(contents), bytes }
    }

    pub(crate) fn execute(&self, command: &mut Command) -> Result<Vec<u8>, Failure> {
        let request = &command.request;
        let sectors = request.sector as usize..request.end() as usize;
        let bytes = sectors.start * SECTOR_BYTES as usize..sectors.end * SECTOR_BYTES as usize;
        match request.op {
            Op::Read => Ok(self.contents.read().expect("no panic").bytes[bytes].to_vec()),
            Op::Write => {
                let mut contents = self.contents.write().expect("no panic");
                contents.bytes[bytes].copy_from_slice(&command.data);
                contents.mapped[sectors].fill(true);
                Ok(Vec::new())
            }
            Op::Trim | Op::WriteZeroes => {
                let mut contents = self.contents.write().expect("no panic");
                contents.bytes[bytes].fill(0);
                contents.mapped[sectors].fill(false);
                Ok(Vec::new())
            }
            Op::Flush => Ok(Vec::new()),
        }
    }
}

impl Target for Ram {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn preferred_bytes(&self) -> u32 {
        4096
    }

    fn description(&self) -> String {
        "a disk in memory".to_owned()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands.iter_mut() {
            answers.push(Answer { cookie: command.cookie, result: self.execute(command) });
        }
        if let Some(command) = commands.first() {
            // One batch comes from one connection.
            command.sink.answers(&mut answers);
        }
        commands.clear();
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        let contents = self.contents.read().expect("no panic");
        let sectors = (offset / SECTOR_BYTES) as usize..((offset + bytes) / SECTOR_BYTES) as usize;
        let runs = contents.mapped[sectors].chunk_by(|one, other| one == other);
        runs.take(limit).map(|run| Extent { bytes: run.len() as u64 * SECTOR_BYTES, mapped: run[0] }).collect()
    }
}
