//! A file system at work on a small drive: what each of its blocks is, and where that lies on the chips.
//!
//! The drive keeps bytes. After a power cut every written block is read through the drive, and its bytes are looked for on the
//! chips. What a block is stands in its header. TIMB blocks of ALFS have none, and a check-point lists them; summaries of LFS have none,
//! and lie in an area of their own.

use std::collections::{BTreeMap, HashMap};

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Drive, DriveConfig, Options as DriveOptions, Status};
use ssdlab_flash::{Cause, Contents, Geometry, Observer, OpKind};
use ssdlab_fs::config::Fsync;
use ssdlab_fs::format::checkpoint::Checkpoint;
use ssdlab_fs::format::identify::Identity;
use ssdlab_fs::format::superblock::Superblock;
use ssdlab_fs::format::{BLOCK_SECTORS, Bytes, block_of};
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, FileId, FileSystem, MakeOptions, Options, ROOT, Reply};
use ssdlab_host::standing::Unused;
use ssdlab_host::{Device, Member};

use super::trial::{Place, Spans, pages};
use crate::frame::{Lane, Mark, Picture};

/// A new file system on a new drive.
///
/// # Errors
/// The drive or the file system cannot be, as a sentence.
pub(super) fn made(
    config: &DriveConfig,
    contents: Contents,
    make: &MakeOptions,
    options: &Options,
) -> Result<FileSystem, String> {
    watched(config, contents, make, options, None)
}

/// A new file system on a new drive, whose chips are watched.
fn watched(
    config: &DriveConfig,
    contents: Contents,
    make: &MakeOptions,
    options: &Options,
    observer: Option<Box<dyn Observer>>,
) -> Result<FileSystem, String> {
    let drive_options = DriveOptions { seed: 1, contents };
    let mut drive = Drive::new(config, drive_options).map_err(|error| error.to_string())?;
    drive.observe(observer);
    FileSystem::make(Member::alone(drive, drive_options), make, options).map_err(|error| error.to_string())
}

/// Time without a call after which a segment is cleaned.
pub(super) const CLEANING_PERIOD: Nanos = Nanos::from_ms(1000);

/// A file system with files that have names of one letter.
pub(super) struct Small {
    fs: FileSystem,
    spans: Spans,
    files: BTreeMap<u32, String>,
}

/// A block of the file system on the drive.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Its address in the file system.
    pub(super) address: u32,
    /// Its logical segment.
    pub(super) segment: u32,
    /// Its place in the segment.
    pub(super) offset: u32,
    /// What it is.
    pub(super) content: Content,
    /// Its bytes.
    pub(super) bytes: Box<Bytes>,
    /// Where it lies. A page that was trimmed and is not erased yet may have the same bytes; then this is not known.
    place: Option<Place>,
    /// The drive's garbage collection wrote it there.
    pub(super) was_moved: bool,
}

/// What lies on the chips.
pub(super) struct Look {
    /// Every block that the drive still has, by address.
    pub(super) blocks: Vec<Block>,
    /// Erases of each flash block.
    erases: Vec<u32>,
    superblock: Superblock,
    geometry: Geometry,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    Superblock,
    /// Of this version.
    Checkpoint(u64),
    /// The inode of a file.
    File(String),
    /// The inode of the root directory.
    Root,
    /// A block of the root directory.
    Names,
    /// A block of the inode map.
    Map(u32),
    /// A TIMB block.
    Table(u32),
    /// A block of the usage table, or the summary of a segment.
    Bookkeeping(&'static str),
    /// Data of a file.
    Data,
}

/// The colours of pictures.
const GROUPS: [&str; 5] = ["files", "directory", "inode map and TIMB", "check-points", "usage and summaries"];

impl Content {
    /// What a picture calls it.
    pub(super) fn label(&self) -> String {
        match self {
            Content::Superblock => "SB".to_string(),
            Content::Checkpoint(version) => format!("CP(v{version})"),
            Content::File(name) => name.clone(),
            Content::Root => "/".to_string(),
            Content::Names => "names".to_string(),
            Content::Map(part) => format!("IM#{part}"),
            Content::Table(part) => format!("TIMB#{part}"),
            Content::Bookkeeping(what) => (*what).to_string(),
            Content::Data => "data".to_string(),
        }
    }

    /// The name of the file whose inode it is.
    pub(super) fn file(&self) -> Option<&str> {
        match self {
            Content::File(name) => Some(name),
            _ => None,
        }
    }

    /// Its colour, by [`GROUPS`].
    fn group(&self) -> usize {
        match self {
            Content::File(_) | Content::Data => 0,
            Content::Root | Content::Names => 1,
            Content::Map(_) | Content::Table(_) => 2,
            Content::Superblock | Content::Checkpoint(_) => 3,
            Content::Bookkeeping(_) => 4,
        }
    }
}

impl Small {
    /// ALFS on a new small drive that keeps bytes. It makes no check-point by itself.
    ///
    /// # Errors
    /// The drive or the file system cannot be, as a sentence.
    pub(super) fn new(config: &DriveConfig) -> Result<Small, String> {
        Small::made(config, MakeOptions { logs: 2, ..MakeOptions::default() })
    }

    /// LFS likewise, with segments of so many bytes.
    ///
    /// # Errors
    /// The drive or the file system cannot be, as a sentence.
    pub(super) fn lfs(config: &DriveConfig, segment: u64) -> Result<Small, String> {
        let kind = FileSystemKind::of_name("lfs").map_err(|error| error.to_string())?;
        Small::made(config, MakeOptions { kind, logs: 2, segment, ..MakeOptions::default() })
    }

    fn made(config: &DriveConfig, make: MakeOptions) -> Result<Small, String> {
        let (checkpoint_period, cleaning_period) = (Nanos::ZERO, CLEANING_PERIOD);
        let options = Options {
            cache: 4 << 20,
            checkpoint_period,
            cleaning_period,
            // As the paper says of flushes (section 3.2).
            fsync: Fsync::Checkpoint,
            ..Options::default()
        };
        let spans = Spans::default();
        let fs = watched(config, Contents::Bytes, &make, &options, Some(Box::new(spans.clone())))?;
        Ok(Small { fs, spans, files: BTreeMap::new() })
    }

    /// Operations of the chips of a kind so far, and those of them that garbage collection wanted.
    pub(super) fn operations(&self, kind: OpKind) -> (usize, usize) {
        let all = self.spans.on_chips(kind);
        (all.len(), all.iter().filter(|span| span.cause == Cause::Gc).count())
    }

    /// The file system.
    pub(super) fn fs(&self) -> &FileSystem {
        &self.fs
    }

    /// Files that were made.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Makes a call and waits for it.
    ///
    /// # Errors
    /// A call that fails, as a sentence.
    pub(super) fn call(&mut self, call: Call) -> Result<Reply, String> {
        // Of a write's data the length is enough.
        let text = format!("{call:?}").chars().take(100).collect::<String>();
        self.fs.submit(call, 0);
        self.fs.run_to_completion(Nanos::MAX);
        let answer = self.fs.answers().pop().ok_or_else(|| format!("{text} has no answer"))?;
        answer.result.map_err(|errno| format!("{text}: {errno}"))
    }

    /// Makes an empty file: its inode is its only block.
    ///
    /// # Errors
    /// A call that fails, as a sentence.
    pub(super) fn create(&mut self, name: &str) -> Result<FileId, String> {
        match self.call(Call::Create { directory: ROOT, name: name.as_bytes().to_vec() })? {
            Reply::Found(found) => {
                self.files.insert(found.file.number, name.to_string());
                Ok(found.file)
            }
            other => Err(format!("found {other:?} for a new file")),
        }
    }

    /// Writes a check-point.
    ///
    /// # Errors
    /// A call that fails, as a sentence.
    pub(super) fn sync(&mut self) -> Result<(), String> {
        self.call(Call::Sync).map(drop)
    }

    /// Lets so much time pass without calls.
    pub(super) fn idle(&mut self, time: Nanos) {
        let until = self.fs.now() + time;
        self.fs.run_until(until);
    }

    /// Ends the file system, has the drive put its TRIMs on flash with a flush, and looks after so much time without commands.
    ///
    /// # Errors
    /// A flush that fails, and those of [`Small::look`].
    pub(super) fn look_after(self, time: Nanos) -> Result<Look, String> {
        let superblock = self.superblock()?;
        let Small { fs, spans, files } = self;
        let mut below = Unused::new(fs.into_device());
        let flushed = below.alone(Request::new(Op::Flush, 0, 0), &[], &[]).map_err(|error| error.to_string())?;
        if flushed.status != Status::Success {
            return Err(format!("a flush ended with {:?}", flushed.status));
        }
        let mut device = below.into_device();
        let until = device.now() + time;
        device.run_until(until);
        // Asked for what is in flight, the drive drops the trims whose erases have ended.
        for part in device.drives_mut() {
            drop(part.device.in_flight_work());
        }
        look(device, &superblock, &files, &spans)
    }

    /// What was decided when it was made.
    ///
    /// # Errors
    /// Never, as long as it is ALFS or LFS.
    pub(super) fn superblock(&self) -> Result<Superblock, String> {
        self.fs.superblock().copied().ok_or_else(|| "found no superblock of a log-structured file system".to_string())
    }

    /// Cuts the power, and looks at what lies on the chips.
    ///
    /// # Errors
    /// A block that is not on the chips, as a sentence.
    pub(super) fn look(self) -> Result<Look, String> {
        let superblock = self.superblock()?;
        look(self.fs.into_device(), &superblock, &self.files, &self.spans)
    }
}

fn look(
    mut device: Box<dyn Device>,
    superblock: &Superblock,
    files: &BTreeMap<u32, String>,
    spans: &Spans,
) -> Result<Look, String> {
    let programs = spans.on_chips(OpKind::Program);
    let mut found: HashMap<Vec<u8>, Vec<Place>> = HashMap::new();
    let (mut erases, mut geometry) = (Vec::new(), None);
    device.cut(0, &mut |flash| {
        geometry = Some(*flash.geometry());
        erases = flash.blocks.all().iter().map(|block| block.erases).collect();
        for (place, bytes) in pages(flash, flash.geometry().page_bytes) {
            found.entry(bytes).or_default().push(place);
        }
        None
    });
    let geometry = geometry.ok_or("the power was not cut")?;
    let written = read_all(device, superblock)?;
    let tables = listed(&written, superblock.volume);
    let mut blocks = Vec::new();
    for (address, bytes) in &written {
        let Some(content) = content(files, *address, bytes, superblock, &tables) else { continue };
        let (segment, offset) = (address / superblock.segment_blocks, address % superblock.segment_blocks);
        let last = |place: &Place| programs.iter().rposition(|span| span.ppn == place.ppn(&geometry));
        let place = match found.get(&bytes[..]).map_or(&[][..], Vec::as_slice) {
            [] => return Err(format!("block {address} ({}) does not lie on the chips", content.label())),
            [place] => Some(*place),
            // A drive that moves pages: what it wrote last is the one in use.
            places if superblock.areas.is_some() => places.iter().copied().max_by_key(last),
            _ => None,
        };
        let program = place.as_ref().and_then(last).and_then(|at| programs.get(at));
        let was_moved = program.is_some_and(|span| span.cause == Cause::Gc);
        let place = place.map(|place| Place { sector: u64::from(*address), ..place });
        let bytes = bytes.clone();
        blocks.push(Block { address: *address, segment, offset, content, bytes, place, was_moved });
    }
    Ok(Look { blocks, erases, superblock: *superblock, geometry })
}

impl Look {
    /// Blocks of these segments that hold something, in the order of their addresses.
    pub(super) fn of(&self, segments: &[u32]) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| segments.contains(&block.segment))
    }

    /// The block at an address of the file system.
    pub(super) fn at(&self, address: u32) -> Option<&Block> {
        self.blocks.iter().find(|block| block.address == address)
    }

    /// Where blocks of segments lie, in the order of their addresses.
    fn placed(&self, segments: &[u32]) -> Result<Vec<(&Block, Place)>, String> {
        let mut placed = Vec::new();
        for block in self.of(segments) {
            let place = block.place.ok_or_else(|| format!("block {} lies on more than one page", block.address))?;
            placed.push((block, place));
        }
        Ok(placed)
    }

    /// The numbers of the flash blocks in which segments lie.
    ///
    /// # Errors
    /// A block whose place is not known, as a sentence.
    pub(super) fn flash_blocks(&self, segments: &[u32]) -> Result<Vec<usize>, String> {
        let of = |(_, place): &(&Block, Place)| (place.ppn(&self.geometry).0 / self.geometry.pages_per_block) as usize;
        let mut blocks: Vec<usize> = self.placed(segments)?.iter().map(of).collect();
        blocks.sort_unstable();
        blocks.dedup();
        Ok(blocks)
    }

    /// Erases of a flash block so far.
    pub(super) fn erases(&self, block: usize) -> u32 {
        self.erases.get(block).copied().unwrap_or(0)
    }

    /// The segments that hold a block of this kind.
    pub(super) fn segments_of(&self, is_one: impl Fn(&Content) -> bool) -> Vec<u32> {
        let mut segments: Vec<u32> =
            self.blocks.iter().filter(|block| is_one(&block.content)).map(|block| block.segment).collect();
        segments.dedup();
        segments
    }

    /// Segments as a picture: a lane for each, by the place in it.
    pub(super) fn segments(&self, title: &str, segments: &[u32]) -> Picture {
        let lane = |segment: &u32| {
            let boxes = self.of(&[*segment]).map(|block| mark(block.offset, &block.content)).collect();
            Lane { name: format!("segment {segment}"), boxes }
        };
        // Of long segments the written part.
        let written = self.of(segments).map(|block| block.offset + 1).max().unwrap_or(0);
        picture(title, self.superblock.segment_blocks.min(written.max(8)), segments.iter().map(lane).collect())
    }

    /// The flash blocks in which segments lie: a lane for each, by its page.
    ///
    /// # Errors
    /// A block whose place is not known, as a sentence.
    pub(super) fn chips(&self, title: &str, segments: &[u32]) -> Result<Picture, String> {
        let mut lanes: BTreeMap<(u32, u32, u32), Lane> = BTreeMap::new();
        let mut placed = self.placed(segments)?;
        placed.sort_by_key(|(_, place)| place.page);
        for (one, Place { channel, way, block, page, .. }) in placed {
            let name = format!("channel {channel}, block {block}");
            let lane = lanes.entry((block, channel, way)).or_insert_with(|| Lane { name, boxes: Vec::new() });
            lane.boxes.push(mark(page, &one.content));
        }
        Ok(picture(title, self.geometry.pages_per_block, lanes.into_values().collect()))
    }
}

/// Every written block that the drive still has.
fn read_all(device: Box<dyn Device>, superblock: &Superblock) -> Result<Vec<(u32, Box<Bytes>)>, String> {
    let mut below = Unused::new(device);
    let written: Vec<u32> = if superblock.areas.is_some() {
        vec![superblock.segment_blocks; superblock.segments as usize]
    } else {
        let (_, segments) = below.report().map_err(|status| format!("the segments are not told: {status:?}"))?;
        segments.iter().map(|state| (state.written / BLOCK_SECTORS) as u32).collect()
    };
    let mut all = Vec::new();
    for (segment, written) in (0_u32..).zip(written) {
        for block in 0..written {
            let address = segment * superblock.segment_blocks + block;
            let read = Request::new(Op::Read, u64::from(address) * BLOCK_SECTORS, BLOCK_SECTORS);
            let done = below.alone(read, &[], &[]).map_err(|error| error.to_string())?;
            let cells = done.cells.ok_or_else(|| format!("block {address} is not read: {:?}", done.status))?;
            all.push((address, block_of(&cells)));
        }
    }
    Ok(all)
}

/// The TIMB blocks that check-points list, by address.
fn listed(written: &[(u32, Box<Bytes>)], volume: u64) -> BTreeMap<u32, u32> {
    let begins = |(at, (_, block)): (usize, &(u32, Box<Bytes>))| Some((at, Checkpoint::begins(block, volume).ok()?.1));
    let mut tables = BTreeMap::new();
    for (at, count) in written.iter().enumerate().filter_map(begins) {
        let blocks: Vec<&Bytes> = written[at..].iter().take(count as usize).map(|(_, block)| &**block).collect();
        if let Ok(checkpoint) = Checkpoint::decode(&blocks, volume) {
            tables.extend(checkpoint.table.iter().copied().zip(0..));
        }
    }
    tables
}

/// What a block is; nothing where it only fills up a write unit.
fn content(
    files: &BTreeMap<u32, String>,
    address: u32,
    block: &Bytes,
    superblock: &Superblock,
    tables: &BTreeMap<u32, u32>,
) -> Option<Content> {
    if block.iter().all(|byte| *byte == 0) {
        return None;
    }
    if superblock
        .areas
        .is_some_and(|areas| (areas.summaries..areas.main * superblock.segment_blocks).contains(&address))
    {
        return Some(Content::Bookkeeping("sum"));
    }
    Some(match Identity::of(block, superblock.volume) {
        Identity::Superblock => Content::Superblock,
        Identity::Checkpoint { version, .. } => Content::Checkpoint(version),
        Identity::Inode(number) => files.get(&number).cloned().map_or(Content::Root, Content::File),
        Identity::Directory { .. } => Content::Names,
        Identity::Map(part) => Content::Map(part),
        Identity::Usage(_) => Content::Bookkeeping("usage"),
        Identity::Summary(_) => Content::Bookkeeping("sum"),
        Identity::Index(_) => Content::Data,
        Identity::Unsaid => match tables.get(&address) {
            Some(part) => Content::Table(*part),
            None => Content::Data,
        },
    })
}

fn mark(place: u32, content: &Content) -> Mark {
    let from = f64::from(place);
    Mark { from, to: from + 1.0, label: content.label(), group: content.group() }
}

fn picture(title: &str, length: u32, lanes: Vec<Lane>) -> Picture {
    let groups = GROUPS.iter().map(ToString::to_string).collect();
    Picture { title: title.to_string(), x: "", end: f64::from(length), groups, lanes }
}
