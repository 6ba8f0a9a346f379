//! A drive's description: TOML that reads like a datasheet, made into a [`DriveConfig`].
//!
//! ```text
//! text --parse--> tree of values with their places <--set-- key=value
//!                  |
//!                resolve      refuses unknown keys, wrong types, impossible drives: all errors at once
//!                  v
//!             DriveConfig --expanded--> every default filled in; resolves to the same configuration
//! ```
//!
//! It promises that nothing is guessed in silence: what is not understood is refused with file, line, column, key, what
//! was found and what was expected, and every default is documented. It never panics, whatever the text, and what it
//! accepts fits the numbers the rest of the drive counts with. Whether GC could run out of blocks is for
//! [`crate::Drive::new`] to say.

mod controller;
mod error;
mod errors;
mod expand;
mod filled;
mod flash;
mod idle;
mod key;
mod keys;
mod list;
mod missing;
mod quantity;
mod reader;
mod schema;
mod settings;
mod tree;

use std::path::Path;

use ssdlab_base::{format_size, read_text};

pub use error::{DescriptionError, Place};
pub use errors::Errors;
pub use expand::expanded;
pub use filled::{Filled, Source};
pub use idle::idle_settings;

pub use key::{Default, Family, Key, Kind, Words, word, words};
pub use keys::ROOT as KEYS;
pub use list::{Group, TablesError, groups, tables, with_tables};
pub use reader::{Field, Section};
pub use schema::schema;
pub use settings::{Setting, Settings};
pub use tree::Tree;
use tree::{Origin, Table, Value};

use crate::{DriveConfig, DriveError, InterfaceKind, PlacementConfig};

/// The longest description, in bytes.
pub const BYTES_MAX: u64 = 1 << 20;

/// A description as it was written, with its overrides.
///
/// ```
/// use ssdlab_device::Description;
/// let text = r#"
///     [flash]
///     channels = 4
///     chips_per_channel = 4
///     dies_per_chip = 2
///     planes_per_die = 2
///     blocks_per_plane = 4096
///     pages_per_block = 256
///     page_size = "4k"
///     cell = "slc"
///     [capacity]
///     over_provisioning = "7%"
/// "#;
/// let mut description = Description::parse(text, "example.toml")?;
/// description.set("interface.queue_depth=64")?;
/// let drive = description.resolve()?;
/// assert_eq!(drive.name, "example");
/// assert_eq!(drive.interface.queue_depth, 64);
///
/// let error = description.set("flash.chanels=8").and_then(|()| description.resolve()).unwrap_err();
/// assert!(error.to_string().starts_with("--set 'flash.chanels=8': flash.chanels: found an unknown key"));
/// # Ok::<(), ssdlab_device::DescriptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Description {
    tree: Tree,
}

impl Description {
    /// Reads a file of at most one mebibyte.
    pub fn load(path: &Path) -> Result<Description, DescriptionError> {
        let file = path.display().to_string();
        let error = |reason: String| DescriptionError {
            place: Place::Whole { file: file.clone() },
            key: String::new(),
            reason,
            others: Vec::new(),
        };
        let text = read_text(path, BYTES_MAX, "a description").map_err(|cause| error(cause.to_string()))?;
        Description::parse(&text, &file)
    }

    /// Reads text; `file` is what messages call it, and its stem is the drive's name if the text gives none.
    pub fn parse(text: &str, file: &str) -> Result<Description, DescriptionError> {
        if text.len() as u64 > BYTES_MAX {
            return Err(DescriptionError {
                place: Place::Whole { file: file.to_string() },
                key: String::new(),
                reason: format!("found more than {BYTES_MAX} bytes, expected a description"),
                others: Vec::new(),
            });
        }
        Ok(Description { tree: Tree::parse(text, file)? })
    }

    /// The description without a table at the top that others read, such as the `torture` of a case.
    #[must_use]
    pub fn without(mut self, key: &str) -> Description {
        self.tree.root.remove(key);
        self
    }

    /// Lays one `key=value` over the description, with the same dotted keys. The value is TOML, or text without quotes.
    ///
    /// Of keys that exclude each other the override wins: `capacity.user` takes the file's `over_provisioning` away.
    pub fn set(&mut self, assignment: &str) -> Result<(), DescriptionError> {
        self.set_by("--set", assignment)
    }

    /// Lays one `key=value` over the description for an option other than `--set`; errors name that option.
    pub fn set_by(&mut self, option: &'static str, assignment: &str) -> Result<(), DescriptionError> {
        self.tree.set(option, assignment, keys::ROOT)
    }

    /// The drive it describes.
    ///
    /// # Errors
    /// Everything that is wrong, but for what only shows when something else is mended.
    pub fn resolve(&self) -> Result<DriveConfig, DescriptionError> {
        let root = Section::root(&self.tree, keys::ROOT);
        let mut errors = Errors::default();
        root.check(&mut errors);
        missing::check(&root, &mut errors);
        let config = self.read(&root, &mut errors);
        errors.into_result(&self.tree)?;
        Ok(config.expect("what could not be read has its error"))
    }

    fn read(&self, root: &Section<'_>, errors: &mut Errors) -> Option<DriveConfig> {
        let name = errors.keep(root.described_name());
        let interface = controller::interface(root, errors);
        let controller = errors.keep(controller::controller(root));
        let (flash, timed) = flash::read(root, errors)?;
        let buffer = errors.keep(controller::buffer(root, &flash.geometry));
        let ftl = errors.keep(controller::ftl(root, &flash.geometry))?;
        let user_bytes = errors.keep(controller::capacity(root, &flash.geometry, ftl.mapping_unit));
        let placement = errors.keep(controller::placement(root, &flash.geometry));
        let gc = errors.keep(controller::gc(root, &flash, ftl.superblock));
        Some(DriveConfig {
            name: name?,
            user_bytes: user_bytes?,
            interface: interface?,
            controller: controller?,
            buffer: buffer?,
            placement: placement?,
            gc: gc?,
            ftl,
            flash,
            timed,
            below_layers: false,
        })
    }

    /// Adds to `error` the place of its key in the text or of the override, or of the table that would have it.
    pub fn place(&self, error: &DriveError) -> DescriptionError {
        let (mut table, mut origin) = (Some(&self.tree.root), None);
        for key in error.key.split('.') {
            let Some(node) = table.and_then(|table| table.get(key)) else {
                table = None;
                break;
            };
            origin = Some(node.origin);
            table = if let Value::Table(inner) = &node.value { Some(inner) } else { None };
        }
        // What is left is a section that the key names as a whole.
        let place = match table.and_then(overridden_in).or(origin) {
            Some(origin) => self.tree.place(origin),
            None => Place::Whole { file: self.tree.file.clone() },
        };
        DescriptionError { place, key: error.key.clone(), reason: error.reason.clone(), others: Vec::new() }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.tree.root.get(key).map(|node| &node.value) {
            Some(Value::Text(text)) => Some(text.trim()),
            _ => None,
        }
    }

    /// The description's `summary`: one line on what the drive is.
    pub fn summary(&self) -> Option<&str> {
        self.text("summary")
    }

    /// The description's `source`: where its numbers come from.
    pub fn source(&self) -> Option<&str> {
        self.text("source")
    }

    /// The description's `notes`: what it assumes and what it leaves out.
    pub fn notes(&self) -> Option<&str> {
        self.text("notes")
    }
}

/// The last override of a key of a section.
fn overridden_in(section: &Table) -> Option<Origin> {
    section.values().map(|node| node.origin).filter(|origin| matches!(origin, Origin::Set(_))).max()
}

/// Whether it can be the name of something.
fn is_name(name: &str, most: usize) -> bool {
    !name.is_empty() && name.chars().count() <= most && !name.chars().any(|c| c.is_control() || c == '/' || c == '\\')
}

fn name_expected(most: usize) -> String {
    format!("a name of 1 to {most} characters without '/', '\\' or control characters")
}

/// Every key of a description, dotted, as `--set` takes it (the keys of a scripted fault stand in a list and cannot be
/// set one by one).
pub fn keys() -> Vec<String> {
    fn add(keys: &[&'static Key], path: &str, all: &mut Vec<String>) {
        for key in keys {
            let path = format!("{path}{}", key.name);
            if !matches!(key.kind, Kind::Table(_) | Kind::Chosen(..)) {
                all.push(path.clone());
            }
            add(&key.keys(), &format!("{path}."), all);
        }
    }
    let mut all = Vec::new();
    add(&keys::ROOT.iter().collect::<Vec<_>>(), "", &mut all);
    all
}

impl DriveConfig {
    /// The value of a key that single policies or designs read, such as `gc.choices`; `None` where there is no such key,
    /// or neither value nor default.
    pub fn own(&self, key: &str) -> Option<Setting> {
        let (section, name) = key.split_once('.')?;
        let key = Key::find(keys::ROOT, &[section, name])?;
        self.own_settings(section)?.value(key, &self.flash.geometry)
    }

    fn own_settings(&self, section: &str) -> Option<&Settings> {
        match section {
            "buffer" => Some(&self.buffer.own),
            "ftl" => Some(&self.ftl.own),
            "placement" => Some(&self.placement.own),
            "gc" => Some(&self.gc.own),
            _ => None,
        }
    }
}

/// The drive's capacity, shape, interface and policies in one line.
///
/// The text is for people; programs read [`expanded`].
pub fn one_line(config: &DriveConfig) -> String {
    let geometry = &config.flash.geometry;
    let interface = match config.interface.kind {
        InterfaceKind::Nvme => "NVMe",
        InterfaceKind::Sata => "SATA",
    };
    let buffer = match config.buffer.policy.as_str() {
        "none" => "no buffer".to_string(),
        policy => format!("{} {policy} buffer", format_size(config.buffer.bytes)),
    };
    let placement = match config.placement.policy.as_str() {
        policy if policy == PlacementConfig::default().policy => String::new(),
        policy => format!("{policy} placement, "),
    };
    format!(
        "{} user of {} flash ({}x{}x{}x{} channels, chips, dies, planes; {} pages), {interface} depth {}, {buffer}, \
         {} FTL, {placement}{} GC",
        format_size(config.user_bytes),
        format_size(geometry.bytes()),
        geometry.channels,
        geometry.chips_per_channel,
        geometry.dies_per_chip,
        geometry.planes_per_die,
        format_size(u64::from(geometry.page_bytes)),
        config.interface.queue_depth,
        config.ftl.design,
        config.gc.victim,
    )
}

/// The [`expanded`] description as TOML text.
pub fn to_toml(config: &DriveConfig) -> String {
    expanded(config).to_string()
}
