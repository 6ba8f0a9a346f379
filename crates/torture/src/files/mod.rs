//! File systems under torture: calls, crashes of the host, power cuts, and media that fail.
//!
//! ```text
//! model       a file system in memory that repeats every call
//! oracle      what may be there after a crash or a cut
//! host        the file system beside both
//! call        what a host asks, as data and as text
//! draw        a drive, keys and what happens, from a seed
//! exhaustive  every cut of every short sequence of calls
//! tree        the tree that is there, as calls show it
//! below       what it stands on, over crashes and cuts
//! limit       a device that stands still in the middle of a mount
//! small       a small drive, for tests of other crates, too
//! fuzzing     damaged blocks and images
//! ```

mod below;
mod call;
mod draw;
mod exhaustive;
pub mod fuzzing;
mod host;
mod limit;
pub mod model;
mod oracle;
mod small;
mod tree;

use ssdlab_device::DriveConfig;
use ssdlab_fs::config::{Fsync, InPlace};
use ssdlab_fs::kinds::{FileSystemKind, KINDS};
use ssdlab_fs::{MakeOptions, Options};
use toml::Value;

pub use call::{FileCall, Kind, Path, Simple};
pub use draw::FileScope;
pub use exhaustive::ShortSequences;
pub use host::FileHost;
pub use small::{small_block_drive, small_drive};

use model::Model;
use oracle::Oracle;

use crate::case::{Case, Refused, Subject};
use crate::cut::Whose;
use crate::script::{Keys, ScriptError};
use crate::stacks::Stack;
use crate::step::{Place, Step};

/// A file system on a drive, or on layers above drives.
#[derive(Clone, Debug)]
pub struct Files {
    kind: &'static FileSystemKind,
    /// Its keys, as text.
    keys: String,
    make: MakeOptions,
    options: Options,
    /// What it stands on; `None` for a drive alone.
    stack: Option<Stack>,
}

impl PartialEq for Files {
    fn eq(&self, other: &Files) -> bool {
        (self.kind.name, &self.keys, &self.stack) == (other.kind.name, &other.keys, &other.stack)
    }
}

impl Files {
    /// A file system of a kind, with keys of the kind as text: `key = value`, one a line.
    ///
    /// # Errors
    /// There is no such kind, or a key is wrong.
    pub fn new(kind: &str, keys: &str, file: &str) -> Result<Files, ScriptError> {
        let kind = FileSystemKind::of_name(kind).map_err(|cause| ScriptError(format!("{file}: {cause}")))?;
        let (make, options) = kind.read(keys, file).map_err(|cause| ScriptError(cause.to_string()))?;
        Ok(Files { kind, keys: keys.to_string(), make, options, stack: None })
    }

    /// The file system on layers.
    pub(crate) fn above(self, stack: Option<Stack>) -> Files {
        Files { stack, ..self }
    }

    /// Whether it stands on a drive alone.
    const fn is_alone(&self) -> bool {
        self.stack.is_none()
    }

    /// What may be there after a crash, where `model` is durable.
    fn oracle(&self, model: &Model) -> Oracle {
        // An fsync of a file may make the file alone durable; and a cut may leave a part of a block that is written in place.
        let overwrites = self.kind.overwrites || self.options.in_place != InPlace::Off;
        Oracle::new(model, self.options.fsync == Fsync::RollForward, overwrites)
    }
}

impl Subject for Files {
    type Command = FileCall;
    type System = FileHost;

    const STEPS: &'static str = "a call such as create /a, run, pass, drain, fail KIND, crash, cut all or cut drive=0";
    const END: &'static str = "it is unmounted, checked and compared, and then the power of everything goes";

    fn build(case: &Case<Files>) -> Result<FileHost, Refused> {
        FileHost::new(case)
    }

    fn takes(step: &Step<FileCall>) -> bool {
        match step {
            Step::Fail(_, place) => !matches!(place, Place::Drive(_)),
            Step::Cut(cut) => cut.whose != Whose::Only,
            _ => true,
        }
    }

    fn keys(&self, _: &DriveConfig) -> Vec<(&'static str, Value)> {
        let mut keys = vec![("file_system", Value::from(self.kind.name)), ("keys", Value::from(self.keys.as_str()))];
        keys.extend(self.stack.as_ref().map(|stack| ("host", Value::from(stack.text.as_str()))));
        keys
    }

    fn read(keys: &mut Keys<'_>) -> Result<Files, ScriptError> {
        let known = KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(" or ");
        let kind = keys.text("file_system", &known)?;
        let text = keys.text("keys", "keys of the file system as text")?;
        let files = Files::new(&kind, &text, &format!("{}: torture.keys", keys.file()))?;
        let stack = if keys.has("host") { Some(Stack::read(keys)?) } else { None };
        Ok(files.above(stack))
    }

    fn drives(&self, drive: &DriveConfig) -> Vec<DriveConfig> {
        self.stack.as_ref().map_or_else(|| vec![drive.clone()], |stack| stack.drives(drive))
    }

    fn describe(&self) -> Vec<String> {
        let layers = self.stack.iter().flat_map(|stack| stack.text.lines());
        std::iter::once(self.kind.name).chain(self.keys.lines()).chain(layers).map(str::to_string).collect()
    }

    /// The layers and each key left out.
    fn plainer(&self) -> Vec<Files> {
        let lines: Vec<&str> = self.keys.lines().collect();
        let without = |left: usize| {
            let kept = lines.iter().enumerate().filter(|(index, _)| *index != left);
            let keys: String = kept.map(|(_, line)| format!("{line}\n")).collect();
            Some(Files::new(self.kind.name, &keys, "plainer").ok()?.above(self.stack.clone()))
        };
        let alone = self.stack.is_some().then(|| self.clone().above(None));
        alone.into_iter().chain((0..lines.len()).filter_map(without)).collect()
    }
}
