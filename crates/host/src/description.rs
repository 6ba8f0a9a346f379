//! The description of a host: a tree of layers with drives and disks at the bottom.
//!
//! A layer names the devices under it in `below`: layers, drives and disks with descriptions of their own, or `{}` for the
//! drive that the command names; `drives = N` is N of the latter. Entries of the list at the top stand on one another, so only
//! the last may name what is below it; if it does not, that is the drive that the command names.

use std::path::Path;
use std::sync::Arc;

use ssdlab_base::{CommandSet, SECTOR_BYTES, read_text};
use ssdlab_device::description::{
    BYTES_MAX, Default, DescriptionError, Errors, Family, Field, Key, Kind, Place, Section, Tree,
};
use ssdlab_device::{Description, DriveConfig, design_commands};
use ssdlab_disk::DiskConfig;

use crate::layers::{Below, LAYERS, LayerConfig, LayerKind, handing_on};
use crate::{Device, HostError, LayerError, Member, StackError, UnknownDrive};

/// Finds descriptions by what a host's description calls them. A function that finds drives is one that knows no disks.
pub trait Names {
    /// The description of a drive.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive>;

    /// The description of a disk, TOML, and what messages call that text.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        Err(UnknownDrive(format!("'{name}' is no disk that is known here")))
    }
}

impl<F: Fn(&str) -> Result<Description, UnknownDrive>> Names for F {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        self(name)
    }
}

/// What is at the bottom of a stack.
#[derive(Clone, Debug)]
pub enum MemberConfig {
    /// A drive.
    Drive(Box<DriveConfig>),
    /// A disk.
    Disk(Box<DiskConfig>),
}

impl MemberConfig {
    fn name(&self) -> &str {
        match self {
            MemberConfig::Drive(config) => &config.name,
            MemberConfig::Disk(config) => &config.name,
        }
    }

    /// The drive, if it is one.
    pub fn drive(&self) -> Option<&DriveConfig> {
        match self {
            MemberConfig::Drive(config) => Some(config),
            MemberConfig::Disk(_) => None,
        }
    }
}

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

/// The keys of a drive or a disk with a description of its own.
const MEMBER: &[Key] = &[
    Key::new("drive", Kind::Text, Default::Means("the drive of the command"), "A name or a file, as for `--device`."),
    Key::new(
        "disk",
        Kind::Text,
        Default::Means("a drive"),
        "A hard disk: the name of one that ships, or a file (docs/disk.md).",
    )
    .instead_of("drive"),
    Key::new(
        "size",
        Kind::Size { least: SECTOR_BYTES, most: 1 << 50, step: SECTOR_BYTES },
        Default::Means("all of it"),
        "How much of the disk is used, from its first sector on.",
    ),
    Key::new("set", Kind::Text, Default::Means("none"), "A list of overrides of its description, as for `--set`."),
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

fn read(tree: &Tree, names: &dyn Names) -> Result<Host, DescriptionError> {
    let root = Section::root(tree, KEYS);
    let mut errors = Errors::default();
    root.check(&mut errors);
    let node = stack(&root, names, &mut errors);
    errors.into_result(tree)?;
    Ok(Host { root: node.expect("what could not be read has its error") })
}

fn stack(root: &Section<'_>, names: &dyn Names, errors: &mut Errors) -> Option<Node> {
    let list = errors.keep(root.get("layer").ok_or_else(|| root.missing("layer", EXPECTED)))?;
    let layers = errors.keep(list.list(EXPECTED))?;
    let above = errors.keep(layers.split_last().ok_or_else(|| list.expected(EXPECTED)));
    let (last, above) = above?;
    let mut node = layer(last, names, 0, errors);
    for field in above.iter().rev() {
        node = single(field, errors).zip(node).map(|((kind, config), node)| {
            Node::Layer(Layer { kind, config, below: vec![node], place: place_of(field) })
        });
    }
    let node = node?;
    if node.count() > DRIVES_MAX {
        errors.add(list.expected(&format!("at most {DRIVES_MAX} drives in all")));
    }
    Some(node)
}

/// A layer that stands on the next one of the list.
fn single(field: &Field<'_>, errors: &mut Errors) -> Option<(&'static LayerKind, Arc<dyn LayerConfig>)> {
    let (kind, config) = kind_of(field, errors)?;
    if let Some(below) = field.entry("below").or_else(|| field.entry("drives")) {
        errors.add(
            below.expected("nothing: this layer stands on the next of the list, and only the last one names devices"),
        );
    }
    if !(kind.devices.0..=kind.devices.1).contains(&1) {
        errors.add(field.expected(&format!("a {} last in the list: it stands on several devices", kind.name)));
    }
    Some((kind, config?))
}

/// A layer's kind, which says which keys it has, and what they say.
fn kind_of(field: &Field<'_>, errors: &mut Errors) -> Option<(&'static LayerKind, Option<Arc<dyn LayerConfig>>)> {
    if errors.is_full() {
        return None;
    }
    let named = match field.entry("kind") {
        Some(kind) => kind.name(&kinds()).map(|named| LAYERS.iter().find(|kind| kind.name == named)),
        None => field.section().and_then(|section| {
            section.check_names(errors);
            Err(section.missing("kind", &kinds_in_words()))
        }),
    };
    let kind = errors.keep(named)?.expect("it is one of them");
    let section = errors.keep(field.section_of(LAYER.iter().chain(kind.keys).collect()))?;
    section.check(errors);
    Some((kind, errors.keep((kind.read)(&section))))
}

/// Where a layer's kind is named.
fn place_of(field: &Field<'_>) -> Place {
    field.entry("kind").unwrap_or_else(|| field.clone()).expected("").place
}

/// A layer and what is below it.
fn layer(field: &Field<'_>, names: &dyn Names, depth: usize, errors: &mut Errors) -> Option<Node> {
    let (kind, config) = kind_of(field, errors)?;
    let devices = devices(field, kind, names, depth, errors)?;
    Some(Node::Layer(Layer { kind, config: config?, below: devices, place: place_of(field) }))
}

/// The devices that a layer names, or those that it has by default.
fn devices(
    field: &Field<'_>,
    kind: &LayerKind,
    names: &dyn Names,
    depth: usize,
    errors: &mut Errors,
) -> Option<Vec<Node>> {
    let (least, most) = kind.devices;
    let devices = match (field.entry("below"), field.entry("drives")) {
        (Some(_), Some(count)) => {
            errors.add(count.expected("either below or drives, not both"));
            return None;
        }
        (Some(list), None) if depth >= DEPTH_MAX => {
            errors.add(list.expected(&format!("layers at most {DEPTH_MAX} deep")));
            return None;
        }
        (Some(list), None) => {
            let expected = "a list of the devices below: layers, drives, or {} for the drive of the command";
            let below = errors.keep(list.list(expected))?;
            let devices: Vec<_> = below.iter().map(|below| device(below, names, depth + 1, errors)).collect();
            devices.into_iter().collect::<Option<Vec<_>>>()?
        }
        (None, Some(count)) => vec![Node::Drive(None); errors.keep(count.count(1, DRIVES_MAX as u32))? as usize],
        (None, None) => vec![Node::Drive(None); least],
    };
    if !(least..=most).contains(&devices.len()) {
        let place = field.entry("below").or_else(|| field.entry("drives")).unwrap_or_else(|| field.clone());
        let expected = match (least, most) {
            (1, 1) => "1 device".to_string(),
            (least, most) if least == most => format!("{least} devices"),
            _ => format!("{least} to {most} devices"),
        };
        errors.add(place.expected(&format!("{expected} below a {}", kind.name)));
    }
    Some(devices)
}

/// A device below a layer.
fn device(field: &Field<'_>, names: &dyn Names, depth: usize, errors: &mut Errors) -> Option<Node> {
    if field.entry("kind").is_some() {
        return layer(field, names, depth, errors);
    }
    let keys = errors.keep(field.section_of(MEMBER.iter().collect()))?;
    keys.check_names(errors);
    match keys.get("disk") {
        Some(name) => errors.keep(disk(&keys, &name, names)).map(|config| Node::Disk(Box::new(config))),
        None => errors.keep(drive(&keys, names)),
    }
}

/// A disk, with overrides of its description.
fn disk(keys: &Section<'_>, name: &Field<'_>, names: &dyn Names) -> Result<DiskConfig, DescriptionError> {
    if let Some(drive) = keys.get("drive") {
        return Err(drive.expected("either drive or disk, not both"));
    }
    let expected = "the name of a disk that ships, or a file";
    let (text, file) = names.disk(name.text(expected)?).map_err(|why| name.expected(&format!("{expected} ({why})")))?;
    let mut sets = Vec::new();
    if let Some(set) = keys.get("set") {
        let expected = "a list of key=value, as for --set";
        sets =
            set.list(expected)?.iter().map(|one| one.text(expected).map(str::to_string)).collect::<Result<_, _>>()?;
    }
    let place = keys.get("set").unwrap_or_else(|| name.clone());
    let parsed = DiskConfig::parse(&text, &file, &sets);
    let mut config = parsed.map_err(|why| place.expected(&format!("a valid disk ({})", said(&why))))?;
    if let Some(size) = keys.get("size") {
        let sectors = keys.number("size")? / SECTOR_BYTES;
        if sectors > config.sectors {
            return Err(size.expected(&format!("at most the {} bytes of the disk", config.bytes())));
        }
        config.sectors = sectors;
    }
    Ok(config)
}

/// The drive of the command, or one with a description of its own.
fn drive(keys: &Section<'_>, names: &dyn Names) -> Result<Node, DescriptionError> {
    if let Some(size) = keys.get("size") {
        return Err(size.expected("nothing: only a disk has it, and a drive has capacity.user"));
    }
    let Some(name) = keys.get("drive") else {
        return match keys.get("set") {
            None => Ok(Node::Drive(None)),
            Some(set) => Err(set.expected("set beside drive, whose description it changes")),
        };
    };
    let expected = "the name of a drive that ships, or a file";
    let mut description =
        names.drive(name.text(expected)?).map_err(|why| name.expected(&format!("{expected} ({why})")))?;
    if let Some(set) = keys.get("set") {
        let expected = "a list of key=value, as for --set";
        for assignment in set.list(expected)? {
            let changed = description.set(assignment.text(expected)?);
            changed.map_err(|why| assignment.expected(&format!("a key and a value of the drive ({})", said(&why))))?;
        }
    }
    // What the drive's own description says was right before, so an override is to blame where there are any.
    let place = keys.get("set").unwrap_or(name);
    let refused = |why: &DescriptionError| place.expected(&format!("a valid drive ({})", said(why)));
    let config = description.resolve().map_err(|why| refused(&why))?;
    config.validate().map_err(|why| refused(&description.place(&why)))?;
    Ok(Node::Drive(Some(Box::new(config))))
}

/// An error of a drive's description inside another sentence: without its place where that is an override, which the
/// sentence points at itself.
fn said(error: &DescriptionError) -> String {
    let first = DescriptionError { others: Vec::new(), ..error.clone() };
    let first = match &error.place {
        Place::Set { .. } if error.key.is_empty() => first.reason,
        Place::Set { .. } => format!("{}: {}", first.key, first.reason),
        Place::File { .. } | Place::Whole { .. } => first.to_string(),
    };
    match error.others.len() {
        0 => first,
        1 => format!("{first}; and 1 other error"),
        others => format!("{first}; and {others} other errors"),
    }
}

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn a_description_is_read_or_refused_with_its_line() {
        assert!(Host::parse("[[layer]]\nkind = \"scheduler\"\ndepth = 4\n", "h.toml").is_ok());
        let tree = "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"stripe\"\nchunk = \"4k\"\n[[layer.below]]\n\
                    [[layer.below]]\nkind = \"stripe\"\ndrives = 3\n";
        let host = Host::parse(tree, "h.toml").expect("a tree");
        assert_eq!(host.root.count(), 4);
        assert!(!host.is_transparent());
        let refused = |text: &str| Host::parse(text, "h.toml").expect_err("it is wrong").to_string();
        for (text, expected) in [
            ("", "h.toml: layer: missing, expected a [[layer]] for each layer"),
            (
                "[[room]]\nkind = \"scheduler\"\n",
                "h.toml:1:3: room: found an unknown key, expected layer; did you mean 'layer'?",
            ),
            ("layer = []\n", "h.toml:1:9: layer: found a list of 0, expected a [[layer]]"),
            ("[layer]\nkind = \"scheduler\"\n", "h.toml:1:1: layer: found a table, expected a [[layer]]"),
            ("[[layer]]\nkind = \"schedular\"\n", "h.toml:2:8: layer[0].kind: found \"schedular\", expected scheduler"),
            ("[[layer]]\nkind = 3\n", "h.toml:2:8: layer[0].kind: found 3, expected scheduler"),
            (
                "[[layer]]\ndepth = 3\n",
                "layer[0].kind: missing, expected scheduler, page-cache, ata, stripe, mirror, shrd, restoring, append, cache or flashcache",
            ),
            ("[[layer]]\ndepths = 3\n", "h.toml:2:1: layer[0].depths: found an unknown key, expected one of kind"),
            (
                "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"scheduler\"\ndepht = 4\n",
                "h.toml:5:1: layer[1].depht: found an unknown key, expected one of kind, below, drives, depth, \
                 merge_size, policy, segments, requests, unplug_requests, unplug_time, read_expire, write_expire, \
                 fifo_batch or writes_starved; did you mean 'depth'?",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\ndepth = -1\n",
                "h.toml:3:9: layer[0].depth: found -1, expected a whole number",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\nmerge_size = \"100\"\n",
                "h.toml:3:14: layer[0].merge_size: found \"100\"",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\npolicy = \"cfq\"\n",
                "h.toml:3:10: layer[0].policy: found \"cfq\", expected fifo, noop or deadline",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\nrequests = 4\n",
                "h.toml:3:12: layer[0].requests: found 4, expected nothing: the policy fifo does not read it",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\npolicy = \"noop\"\nfifo_batch = 4\n",
                "h.toml:4:14: layer[0].fifo_batch: found 4, expected nothing: only the policy deadline reads it",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\npolicy = \"deadline\"\nfifo_batch = 0\n",
                "h.toml:4:14: layer[0].fifo_batch: found 0, expected",
            ),
            (
                "[[layer]]\nkind = \"stripe\"\nchunk = \"100\"\n",
                "h.toml:3:9: layer[0].chunk: found \"100\", expected whole sectors of 512 bytes",
            ),
            (
                "[[layer]]\nkind = \"stripe\"\ndrives = 3\n[[layer]]\nkind = \"scheduler\"\n",
                "h.toml:3:10: layer[0].drives: found 3, expected nothing: this layer stands on the next",
            ),
            (
                "[[layer]]\nkind = \"scheduler\"\ndrives = 2\n",
                "h.toml:3:10: layer[0].drives: found 2, expected 1 device below a scheduler",
            ),
            (
                "[[layer]]\nkind = \"stripe\"\nbelow = [{ drive = \"nowhere\" }]\n",
                "layer[0].below[0].drive: found \"nowhere\", expected the name of a drive that ships",
            ),
            (
                "[[layer]]\nkind = \"stripe\"\nbelow = [{ set = [] }]\n",
                "layer[0].below[0].set: found a list of 0, expected set beside drive",
            ),
            ("[[layer]]\nkind = \"shrd\"\nthreshold = \"1m\"\n", "h.toml:3:13: layer[0].threshold: found \"1m\""),
            ("[[layer]]\nkind = \"shrd\"\nremap_entries = 512\n", "h.toml:3:17: layer[0].remap_entries: found 512"),
            (
                "[[layer]]\nkind = \"shrd\"\nwhen_full = \"drop\"\n",
                "h.toml:3:13: layer[0].when_full: found \"drop\", expected wait or direct",
            ),
            ("nonsense\n", "h.toml:1:"),
        ] {
            let found = refused(text);
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }

    #[test]
    fn all_errors_of_all_layers_are_told_at_once() {
        let text = "[[layer]]\nkind = \"schedular\"\n[[layer]]\nkind = \"scheduler\"\ndepth = -1\nmerge_sise = 7\n\
                    [[layer]]\nkind = \"stripe\"\nchunk = \"100\"\nbelow = [{ drive = \"nowhere\" }, { kind = \"append\", \
                    copies = 0 }, { drives = 2 }]\n";
        let message = Host::parse(text, "h.toml").expect_err("all of it is wrong").to_string();
        let told: Vec<&str> = message.lines().filter_map(|line| line.split(": ").nth(1)).collect();
        let expected = [
            "layer[0].kind",
            "layer[1].depth",
            "layer[1].merge_sise",
            "layer[2].chunk",
            "layer[2].below[0].drive",
            "layer[2].below[1].copies",
            "layer[2].below[2].drives",
        ];
        assert_eq!(told, expected, "{message}");
        assert!(message.ends_with("\n7 errors"), "{message}");
    }
}
