//! The operations of a loop, as Filebench names them, and what a loop of them must keep to.

use serde::{Deserialize, Serialize};

use super::call::Descriptor;
use super::parameters::Parameters;
use crate::WorkloadError;

/// Descriptors a thread may have.
pub(super) const DESCRIPTORS: u8 = 16;

/// What one operation does. One operation may be many calls of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// Makes the next file that does not exist, and opens it.
    Create,
    /// Opens the next file that exists.
    Open,
    /// Closes.
    Close,
    /// Removes the next file that exists and that no thread has open.
    Delete,
    /// Asks for the size of the next file that exists.
    Stat,
    /// Reads from the start to the end, `iosize` at a time.
    ReadWhole,
    /// Writes the size that was drawn for the file, `iosize` at a time.
    WriteWhole,
    /// Appends `append_size`.
    Append,
    /// Appends a size drawn from 0 up to `append_size`.
    AppendRandom,
    /// Reads `iosize` at a random multiple of it.
    ReadRandom,
    /// Writes `iosize` at a random multiple of it.
    WriteRandom,
    /// Makes everything written to the file durable.
    Fsync,
}

impl OpKind {
    /// All kinds, in the order of reports.
    pub const ALL: [OpKind; 12] = [
        OpKind::Create,
        OpKind::Open,
        OpKind::Close,
        OpKind::Delete,
        OpKind::Stat,
        OpKind::ReadWhole,
        OpKind::WriteWhole,
        OpKind::Append,
        OpKind::AppendRandom,
        OpKind::ReadRandom,
        OpKind::WriteRandom,
        OpKind::Fsync,
    ];

    /// Its name in personalities and results.
    pub const fn name(self) -> &'static str {
        match self {
            OpKind::Create => "create",
            OpKind::Open => "open",
            OpKind::Close => "close",
            OpKind::Delete => "delete",
            OpKind::Stat => "stat",
            OpKind::ReadWhole => "read-whole",
            OpKind::WriteWhole => "write-whole",
            OpKind::Append => "append",
            OpKind::AppendRandom => "append-random",
            OpKind::ReadRandom => "read-random",
            OpKind::WriteRandom => "write-random",
            OpKind::Fsync => "fsync",
        }
    }

    /// Whether it works on an open file.
    const fn needs_open(self) -> bool {
        !matches!(self, OpKind::Create | OpKind::Open | OpKind::Delete | OpKind::Stat)
    }

    const fn appends(self) -> bool {
        matches!(self, OpKind::Append | OpKind::AppendRandom)
    }
}

/// A set of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetName {
    /// The files that the parameters describe.
    #[default]
    Files,
    /// `log_files` files of the same sizes, all of which exist.
    Log,
}

/// An operation as a personality writes it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowopText {
    op: OpKind,
    #[serde(default)]
    file: Option<u8>,
    #[serde(default)]
    set: Option<SetName>,
}

/// One operation of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flowop {
    /// What it does.
    pub kind: OpKind,
    /// The descriptor it works on; those without one have 0.
    pub descriptor: Descriptor,
    /// The set that a file is taken from.
    pub set: SetName,
    /// For what opens a file: everything that is written to it until it is closed is appended.
    pub appends: bool,
    /// The file is opened once, before the loop, and stays open.
    pub held: bool,
}

/// Reads a loop and finds out who opens what.
pub(super) fn compile(texts: &[FlowopText]) -> Result<Vec<Flowop>, WorkloadError> {
    if texts.is_empty() {
        return Err(WorkloadError("[[loop]] is missing, expected at least one operation".into()));
    }
    let place = |index: usize, op: OpKind, why: &str| {
        WorkloadError(format!("[[loop]] operation {}, {}: {why}", index + 1, op.name()))
    };
    let opened = |descriptor| {
        texts.iter().any(|text| matches!(text.op, OpKind::Create | OpKind::Open) && text.file == descriptor)
    };
    let mut open = [false; DESCRIPTORS as usize];
    let mut flowops = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let named = !matches!(text.op, OpKind::Delete | OpKind::Stat);
        let descriptor = match (named, text.file) {
            (true, Some(file)) if file < DESCRIPTORS => file,
            (true, Some(file)) => {
                return Err(place(index, text.op, &format!("found file = {file}, expected less than {DESCRIPTORS}")));
            }
            (true, None) => return Err(place(index, text.op, "file is missing, expected a number, as in file = 1")),
            (false, None) => 0,
            (false, Some(_)) => return Err(place(index, text.op, "found file, expected none: it takes the next one")),
        };
        let held = text.op.needs_open() && !opened(text.file);
        let is_open = &mut open[usize::from(descriptor)];
        match text.op {
            OpKind::Create | OpKind::Open if *is_open => {
                return Err(place(index, text.op, &format!("file {descriptor} is open already")));
            }
            OpKind::Create | OpKind::Open => *is_open = true,
            OpKind::Close if held => return Err(place(index, text.op, &format!("file {descriptor} is never opened"))),
            op if op.needs_open() && !held && !*is_open => {
                return Err(place(index, text.op, &format!("file {descriptor} is not open here")));
            }
            OpKind::Close => *is_open = false,
            _ => {}
        }
        if text.set.is_some() && named && !held && text.op.needs_open() {
            return Err(place(index, text.op, "found set, expected it where the file is opened"));
        }
        let appends = appends(texts, index, held);
        flowops.push(Flowop { kind: text.op, descriptor, set: text.set.unwrap_or_default(), appends, held });
    }
    if let Some(left) = open.iter().position(|open| *open) {
        return Err(WorkloadError(format!("[[loop]] ends with file {left} open, expected a close")));
    }
    Ok(flowops)
}

/// Whether what is written to the file that operation `index` works on is appended, all of it until it is closed.
fn appends(texts: &[FlowopText], index: usize, held: bool) -> bool {
    let same = |text: &&FlowopText| text.file == texts[index].file;
    let life: Vec<OpKind> = if held {
        texts.iter().filter(same).map(|text| text.op).collect()
    } else {
        texts[index..].iter().filter(same).map(|text| text.op).take_while(|op| *op != OpKind::Close).collect()
    };
    life.iter().any(|op| op.appends()) && !life.iter().any(|op| matches!(op, OpKind::WriteRandom | OpKind::WriteWhole))
}

/// Whether a loop fits the numbers.
pub(super) fn check(flowops: &[Flowop], parameters: &Parameters) -> Result<(), WorkloadError> {
    for flowop in flowops {
        let kind = flowop.kind;
        if flowop.set == SetName::Log && parameters.log_files == 0 {
            return Err(WorkloadError(format!("{} takes a file of the set log, and log_files is 0", kind.name())));
        }
        if kind.appends() && parameters.append_size == 0 {
            return Err(WorkloadError(format!("append_size is 0 or missing, and the loop has {}", kind.name())));
        }
        if matches!(kind, OpKind::ReadRandom | OpKind::WriteRandom) {
            let room = if parameters.working_set > 0 { parameters.working_set } else { parameters.mean_size };
            if parameters.size_gamma == 0.0 && parameters.iosize > room.min(parameters.mean_size) {
                return Err(WorkloadError(format!(
                    "iosize is {}, more than the {} bytes that {} may go to",
                    parameters.iosize,
                    room.min(parameters.mean_size),
                    kind.name()
                )));
            }
        }
    }
    Ok(())
}
