//! Stacks under torture: the host crashes, one drive loses its power, or everything does, each at moments of its own.
//!
//! ```text
//! draw        a stack and what happens to it, from a seed
//! system      the stack and the oracle, over crashes and cuts
//! exhaustive  every cut of every short sequence of commands
//! fuzzing     damaged metadata of a cache
//! ```
//!
//! The oracle looks at the stack from above, through its layers, and knows nothing of them but what each says of a
//! power cut below it: whether completed commands may be lost ([`ssdlab_host::Loss`]).

mod disk;
mod draw;
mod exhaustive;
pub mod fuzzing;
mod system;

use ssdlab_device::DriveConfig;
use ssdlab_host::Host;
use toml::Value;

pub use disk::small_disk;
pub use draw::StackScope;
pub(crate) use draw::{below_files, of_design};
pub use exhaustive::walk;
pub use system::StackUnderTest;
pub(crate) use system::{Fresh, build_again, fresh};

use crate::case::{Case, Refused, Subject};
use crate::cut::{Moment, Whose};
use crate::script::{Keys, ScriptError};
use crate::step::{BlockCommand, Place, Step};

/// Layers above drives.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The layers, as text.
    pub text: String,
    /// What the text describes.
    pub host: Host,
}

impl PartialEq for Stack {
    fn eq(&self, other: &Stack) -> bool {
        self.text == other.text
    }
}

impl Stack {
    /// Layers that name no drives, and no disks but the small one.
    ///
    /// # Panics
    /// The text describes no layers, or names drives or other disks.
    pub fn new(text: String) -> Stack {
        let host = Host::parse_with(&text, "drawn", &small_disk()).expect("a drawn host is one");
        Stack { text, host }
    }
}

impl Subject for Stack {
    type Command = BlockCommand;
    type System = StackUnderTest;

    const STEPS: &'static str =
        "read, write, trim, zero, flush, run, drain, fail KIND drive=N, crash, cut all or cut drive=N";
    const END: &'static str = "one more write and flush, then cuts of everything and of each drive";

    fn build(case: &Case<Stack>) -> Result<StackUnderTest, Refused> {
        StackUnderTest::new(case)
    }

    fn takes(step: &Step<BlockCommand>) -> bool {
        match step {
            Step::Command(_) | Step::Run(_) | Step::Drain => true,
            Step::Pass(_) => false,
            Step::Fail(_, place) => matches!(place, Place::Drive(_)),
            Step::Cut(cut) => cut.whose != Whose::Only && cut.at == Moment::Now && !cut.is_of_files(),
        }
    }

    fn keys(&self, _: &DriveConfig) -> Vec<(&'static str, Value)> {
        vec![("host", Value::String(self.text.clone()))]
    }

    fn read(keys: &mut Keys<'_>) -> Result<Stack, ScriptError> {
        let text = keys.text("host", "layers as text")?;
        let names = disk::WithSmall { others: keys.drives() };
        let host = Host::parse_with(&text, &format!("{}: torture.host", keys.file()), &names);
        Ok(Stack { host: host.map_err(|cause| ScriptError(cause.to_string()))?, text })
    }

    fn drives(&self, drive: &DriveConfig) -> Vec<DriveConfig> {
        self.host.drives(drive).into_iter().map(|(_, config)| config).collect()
    }

    fn describe(&self) -> Vec<String> {
        self.text.lines().map(str::to_string).collect()
    }
}
