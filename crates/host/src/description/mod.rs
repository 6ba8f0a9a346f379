//! The description of a host: a tree of layers with drives and disks at the bottom.
//!
//! A layer names the devices under it in `below`: layers, drives and disks with descriptions of their own, or `{}` for the
//! drive that the command names; `drives = N` is N of the latter. Entries of the list at the top stand on one another, so only
//! the last may name what is below it; if it does not, that is the drive that the command names.

mod member;
mod reading;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use ssdlab_base::{CommandSet, SECTOR_BYTES, read_text};
use ssdlab_device::description::{BYTES_MAX, Default, DescriptionError, Family, Key, Kind, Place, Tree};
use ssdlab_device::{DriveConfig, design_commands};
use ssdlab_disk::DiskConfig;

use self::member::MEMBER;
pub use self::member::{MemberConfig, Names};
use self::reading::read;
use crate::layers::{Below, LAYERS, LayerConfig, LayerKind, handing_on};
use crate::{Device, HostError, LayerError, Member, StackError, UnknownDrive};

/// What stands above drives.
#[derive(Clone, Debug)]
pub struct Host {
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    /// `None` is the drive that the command names.
    Drive(Option<Box<DriveConfig>>),
    Disk(Box<DiskConfig>),
    Layer(Layer),
}

#[derive(Clone, Debug)]
struct Layer {
    kind: &'static LayerKind,
    config: Arc<dyn LayerConfig>,
    below: Vec<Node>,
    /// Where its kind is named.
    place: Place,
}

/// Depth to which layers may be nested, and drives that a stack may have.
const DEPTH_MAX: usize = 16;
const DRIVES_MAX: usize = 64;

const EXPECTED: &str = "a [[layer]] for each layer, at least one";

/// Every key of a host's description.
pub const KEYS: &[Key] = &[Key::new(
    "layer",
    Kind::Tables(LAYER, Some(&KINDS)),
    Default::Required(EXPECTED),
    "A table for each layer, the topmost first.",
)];

/// The keys that every layer has.
const LAYER: &[Key] = &[
    Key::new("kind", Kind::Word(kinds), Default::Required("one of them"), "Kind of the layer."),
    Key::new(
        "below",
        Kind::Tables(MEMBER, None),
        Default::Means("as many drives of the command as the layer needs; the next layer of the list"),
        "Devices below the layer: layers, which have a `kind`, drives, disks, or `{}` for the drive of the command.",
    )
    .instead_of("drives"),
    Key::new(
        "drives",
        Kind::Count { unit: "drives", least: 1, most: DRIVES_MAX as u32 },
        Default::Means("see `below`"),
        "Number of the command's drives below the layer.",
    ),
];

static KINDS: Family =
    Family { key: "kind", members: || LAYERS.iter().map(|kind| (kind.name, kind.keys)).collect(), expands_all: false };

fn kinds() -> Vec<&'static str> {
    LAYERS.iter().map(|kind| kind.name).collect()
}

/// The kinds as a message lists them.
fn kinds_in_words() -> String {
    match kinds().as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        kinds => kinds.join(", "),
    }
}

impl Host {
    /// Reads a description: TOML with a `[[layer]]` for each layer, the topmost first; `names` finds drives and
    /// disks.
    ///
    /// # Errors
    /// The file cannot be read, or as [`Host::parse`].
    pub fn load(path: &Path, names: &dyn Names) -> Result<Host, HostError> {
        let text = read_text(path, BYTES_MAX, "a description")
            .map_err(|source| HostError::Unreadable { file: path.to_path_buf(), source })?;
        Ok(Host::parse_with(&text, &path.display().to_string(), names)?)
    }

    /// Reads a description from a text that names no drives: TOML with a `[[layer]]` for each layer, the topmost first.
    /// `file` is what errors call it.
    ///
    /// # Errors
    /// Everything that is wrong: file, line, column and key, what was found and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Host, DescriptionError> {
        Host::parse_with(text, file, &|name: &str| {
            Err(UnknownDrive(format!("'{name}' is no drive that is known here")))
        })
    }

    /// Reads a description from a text: TOML with a `[[layer]]` for each layer, the topmost first. `names` finds
    /// drives and disks, and `file` is what errors call the text.
    ///
    /// # Errors
    /// Everything that is wrong: file, line, column and key, what was found and what was expected.
    pub fn parse_with(text: &str, file: &str, names: &dyn Names) -> Result<Host, DescriptionError> {
        Tree::parse(text, file).and_then(|tree| read(&tree, names))
    }

    /// No layer: a stack of one drive.
    pub const fn bare() -> Host {
        Host { root: Node::Drive(None) }
    }

    /// The drives and disks at the bottom from left to right, with names that tell them apart, where the command names `named`.
    pub fn members(&self, named: &DriveConfig) -> Vec<(String, MemberConfig)> {
        let mut configs = Vec::new();
        self.root.members(named, &mut configs);
        if let [only] = configs.as_slice() {
            return vec![(only.name().to_string(), only.clone())];
        }
        configs.into_iter().enumerate().map(|(index, config)| (format!("{}.{index}", config.name()), config)).collect()
    }

    /// The drives among the [`members`](Host::members).
    pub fn drives(&self, named: &DriveConfig) -> Vec<(String, DriveConfig)> {
        let drive = |(name, config)| match config {
            MemberConfig::Drive(config) => Some((name, *config)),
            MemberConfig::Disk(_) => None,
        };
        self.members(named).into_iter().filter_map(drive).collect()
    }

    /// The name of its first drive or disk, if it names all of them itself; `None` where a layer stands on the drive of the command.
    pub fn named_after(&self) -> Option<String> {
        let (mut nodes, mut first) = (vec![&self.root], None);
        while let Some(node) = nodes.pop() {
            match node {
                Node::Drive(None) => return None,
                Node::Drive(Some(config)) => first = Some(config.name.clone()),
                Node::Disk(config) => first = Some(config.name.clone()),
                Node::Layer(layer) => nodes.extend(&layer.below),
            }
        }
        first
    }

    /// Whether a disk is among its members.
    pub fn has_disks(&self) -> bool {
        self.root.has_disks()
    }

    /// The stack's capacity in sectors.
    ///
    /// # Errors
    /// A layer cannot stand on what is below it.
    pub fn sectors(&self, named: &DriveConfig) -> Result<u64, StackError> {
        let Below { sectors, segment, .. } = self.root.capacity(named)?;
        match &self.root {
            Node::Layer(layer) if segment.is_some() => Err(layer.takes_no_block_io()),
            _ => Ok(sectors),
        }
    }

    /// Whether one drive is below, every sector of which is the stack's of the same number, and no layer keeps anything.
    pub fn is_transparent(&self) -> bool {
        let mut node = &self.root;
        loop {
            match node {
                Node::Drive(_) => return true,
                Node::Disk(_) => return false,
                Node::Layer(layer) if layer.config.is_transparent() && layer.below.len() == 1 => node = &layer.below[0],
                Node::Layer(..) => return false,
            }
        }
    }

    /// What decides where data is on the drives: the layers that move it, from the top, with the drives by number. Empty where
    /// every sector is that of the only drive.
    pub fn places(&self) -> String {
        if self.is_transparent() { String::new() } else { self.root.places(&mut 0) }
    }

    /// The command sets that a layer needs: a drive below it has one of them. None where layers send block I/O alone.
    pub fn commands(&self) -> &'static [&'static CommandSet] {
        let mut nodes = vec![&self.root];
        while let Some(node) = nodes.pop() {
            let Node::Layer(layer) = node else { continue };
            let sets = layer.config.commands();
            if !sets.is_empty() {
                return sets;
            }
            nodes.extend(&layer.below);
        }
        &[]
    }

    /// What its layers take of the host's memory: the place of each that takes much in the description, the key that says how much,
    /// and bytes.
    pub fn memory(&self) -> Vec<(String, &'static str, u64)> {
        let (mut nodes, mut all) = (vec![&self.root], Vec::new());
        while let Some(node) = nodes.pop() {
            let Node::Layer(layer) = node else { continue };
            all.extend(layer.config.memory().map(|(key, bytes)| (layer.place.to_string(), key, bytes)));
            nodes.extend(&layer.below);
        }
        all
    }

    /// What its layers take of the host's memory together, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory().iter().fold(0, |sum, (_, _, bytes)| sum.saturating_add(*bytes))
    }

    /// Puts the layers above drives and disks, which are those of [`Host::members`], new or as a stack of this host left them. What a
    /// layer keeps on its devices it finds there; where contents are not kept the devices count as new.
    ///
    /// # Errors
    /// A layer cannot stand on what is below it.
    pub fn build(&self, members: Vec<Member>) -> Result<Box<dyn Device>, StackError> {
        self.above(members.into_iter().map(|member| Box::new(member.for_a_new_host()) as Box<dyn Device>).collect())
    }

    /// Puts the layers above other devices than drives and disks of a description, one for each, in the order of
    /// [`Host::members`].
    ///
    /// # Errors
    /// A layer cannot stand on what is below it.
    pub fn above(&self, devices: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, StackError> {
        let mut devices = devices.into_iter();
        let device = self.root.build(&mut devices)?;
        assert!(devices.next().is_none(), "as many devices as the host has");
        Ok(device)
    }
}

impl Node {
    fn members(&self, named: &DriveConfig, to: &mut Vec<MemberConfig>) {
        match self {
            Node::Drive(config) => to.push(MemberConfig::Drive(Box::new(config.as_deref().unwrap_or(named).clone()))),
            Node::Disk(config) => to.push(MemberConfig::Disk(config.clone())),
            Node::Layer(layer) => layer.below.iter().for_each(|node| node.members(named, to)),
        }
    }

    fn has_disks(&self) -> bool {
        match self {
            Node::Drive(_) => false,
            Node::Disk(_) => true,
            Node::Layer(layer) => layer.below.iter().any(Node::has_disks),
        }
    }

    fn places(&self, drives: &mut usize) -> String {
        match self {
            Node::Drive(_) | Node::Disk(_) => {
                let kind = if matches!(self, Node::Disk(_)) { "disk" } else { "drive" };
                *drives += 1;
                format!("{kind} {}", *drives - 1)
            }
            Node::Layer(layer) => {
                let below: Vec<String> = layer.below.iter().map(|node| node.places(drives)).collect();
                if layer.config.is_transparent() && layer.below.len() == 1 {
                    return below.concat();
                }
                let (kind, places) = (layer.kind.name, layer.config.places());
                let of = if places.is_empty() { String::new() } else { format!(" ({places})") };
                format!("{kind}{of} over [{}]", below.join(", "))
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Node::Drive(_) | Node::Disk(_) => 1,
            Node::Layer(layer) => layer.below.iter().map(Node::count).sum(),
        }
    }

    fn capacity(&self, named: &DriveConfig) -> Result<Below, StackError> {
        match self {
            Node::Drive(config) => {
                let config = config.as_deref().unwrap_or(named);
                let unit_bytes = config.ftl.mapping_unit;
                let segment =
                    config.segment_units().map(|units| u64::from(units) * u64::from(unit_bytes) / SECTOR_BYTES);
                let most_active = config.zones().map_or(0, |zones| zones.max_active);
                Ok(Below { sectors: config.logical_bytes() / SECTOR_BYTES, unit_bytes, segment, most_active })
            }
            Node::Disk(config) => {
                let unit_bytes = SECTOR_BYTES as u32;
                Ok(Below { sectors: config.sectors, unit_bytes, segment: None, most_active: 0 })
            }
            Node::Layer(layer) => {
                let hands_on = layer.kind.hands_on;
                let mut below = Vec::with_capacity(layer.below.len());
                for (place, node) in layer.below.iter().enumerate() {
                    let sets = layer.config.commands_of(place);
                    if !sets.is_empty() {
                        node.knows_one_of(sets, layer, named)?;
                    }
                    below.push(node.capacity(named)?);
                    if sets.is_empty() && !hands_on && below[place].segment.is_some() {
                        return Err(layer.takes_no_block_io());
                    }
                }
                let unit_bytes = below.iter().map(|below| below.unit_bytes).max().unwrap_or(SECTOR_BYTES as u32);
                let sectors = layer.config.sectors(&below).map_err(|source| layer.error(source))?;
                let of_below = below.first().filter(|_| hands_on);
                let (segment, most_active) = of_below.map_or((None, 0), |below| (below.segment, below.most_active));
                Ok(Below { sectors, unit_bytes, segment, most_active })
            }
        }
    }

    fn build(&self, devices: &mut dyn Iterator<Item = Box<dyn Device>>) -> Result<Box<dyn Device>, StackError> {
        match self {
            Node::Drive(_) | Node::Disk(_) => Ok(devices.next().expect("as many devices as the host has")),
            Node::Layer(layer) => {
                let below = layer.below.iter().map(|node| node.build(devices)).collect::<Result<Vec<_>, _>>()?;
                layer.config.make(below).map_err(|source| layer.error(source))
            }
        }
    }

    /// Whether it is a drive that knows a command set of the layer above, or a layer that hands such a set on.
    fn knows_one_of(&self, sets: &[&CommandSet], above: &Layer, named: &DriveConfig) -> Result<(), StackError> {
        let layer = above.kind.name;
        let mut node = self;
        while let Node::Layer(between) = node
            && between.kind.hands_on
        {
            node = &between.below[0];
        }
        let config = match node {
            Node::Drive(config) => config,
            Node::Disk(_) => {
                let found = "a disk".to_string();
                return Err(above.error(LayerError::NoDrive { layer, found, handing_on: handing_on() }));
            }
            Node::Layer(between) => {
                let found = format!("the layer {}", between.kind.name);
                return Err(above.error(LayerError::NoDrive { layer, found, handing_on: handing_on() }));
            }
        };
        let design = &config.as_deref().unwrap_or(named).ftl.design;
        if design_commands(design).is_some_and(|known| sets.iter().any(|set| set.name == known.name)) {
            return Ok(());
        }
        let names: Vec<&str> = sets.iter().map(|set| set.name).collect();
        Err(above.error(LayerError::UnknownSet { layer, sets: names.join(" or "), design: design.clone() }))
    }
}

impl Layer {
    fn takes_no_block_io(&self) -> StackError {
        self.error(LayerError::NoBlockIo { layer: self.kind.name })
    }

    fn error(&self, source: LayerError) -> StackError {
        StackError { place: self.place.to_string(), layer: self.kind.name, source }
    }
}
