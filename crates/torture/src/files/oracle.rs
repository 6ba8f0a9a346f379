//! What may be there after a crash of the host or a power cut.
//!
//! ```text
//!   names, kinds   as after some call, not before the last that a completed sync, or fsync of a directory, covers
//!                  and new files that an fsync covers, under a name that they had
//!   sizes          of each file as after some call since its last fsync
//!   blocks         of each file as its last fsync left them, or as a later call did, if it was that that made the file so long
//!   all else       zeroes: no byte of a deleted file, or of a block that was never written
//! ```
//!
//! Calls count from 1 here: 0 is what was there before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ssdlab_fs::{Answer, Call, Errno, FileId, FileSystem, Reply};

use super::model::{BLOCK, Block, Bytes, Changed, Model, Names};
use super::tree::{Tree, read};

/// Names of all directories.
type AllNames = BTreeMap<FileId, Names>;

/// A directory, and a name in it.
type Place = (FileId, Vec<u8>);

/// Most bytes of a file that are read one behind the other; of a longer one the blocks that were written, and some between them.
const MOST_READ: u64 = 4 << 20;

/// Bytes that a cut leaves whole.
const SECTOR: usize = 512;

/// What was true of a file, and since which call.
#[derive(Clone, Debug, Default)]
struct History {
    sizes: Vec<(u64, u64)>,
    blocks: BTreeMap<u64, Vec<(u64, Block)>>,
    /// Blocks that could not be read when it began: until a call writes them, they may hold anything.
    unknown: BTreeSet<u64>,
    /// The last fsync or sync that covers it.
    floor: u64,
}

/// What is true after `floor`, or was at it.
fn since<T>(list: &[(u64, T)], floor: u64) -> &[(u64, T)] {
    let first = list.iter().rposition(|(order, _)| *order <= floor).unwrap_or(0);
    &list[first..]
}

/// Everything that may be there after a crash.
#[derive(Clone, Debug)]
pub(super) struct Oracle {
    /// Names after calls that changed them.
    names: Vec<(u64, AllNames)>,
    floor: u64,
    files: BTreeMap<FileId, History>,
    /// The last call that changed a file or directory, or its name.
    changes: BTreeMap<FileId, u64>,
    /// An fsync of a file covers the file alone: names are as an older check-point has them.
    rolls: bool,
    /// Names of files that were made or renamed since the beginning, each since a call.
    named: BTreeMap<FileId, Vec<(u64, Place)>>,
    /// Files that have no name any more.
    unlinked: BTreeSet<FileId>,
    /// The last fsync of a file that took effect, and the last that was answered.
    fsyncs: BTreeMap<FileId, u64>,
    promises: BTreeMap<FileId, u64>,
    /// Blocks are written in place: a cut may leave each sector of one as another call left it.
    tears: bool,
    zeroes: Block,
}

impl Oracle {
    /// What is there is durable.
    pub(super) fn new(model: &Model, rolls: bool, tears: bool) -> Oracle {
        let mut oracle = Oracle {
            names: Vec::new(),
            floor: 0,
            files: BTreeMap::new(),
            changes: BTreeMap::new(),
            rolls,
            named: BTreeMap::new(),
            unlinked: BTreeSet::new(),
            fsyncs: BTreeMap::new(),
            promises: BTreeMap::new(),
            tears,
            zeroes: Arc::new([0; BLOCK as usize]),
        };
        oracle.note_names(0, model);
        for (file, bytes) in model.files() {
            let blocks = bytes.blocks().filter_map(|number| Some((number, vec![(0, bytes.block(number)?.clone())])));
            let unknown = bytes.unknown().clone();
            let history = History { sizes: vec![(0, bytes.size())], blocks: blocks.collect(), unknown, floor: 0 };
            oracle.files.insert(file, history);
        }
        oracle
    }

    fn note_names(&mut self, order: u64, model: &Model) {
        let names: AllNames = model.directories().map(|(directory, names)| (directory, names.clone())).collect();
        self.names.push((order, names));
    }

    /// A call took effect in the model, and is answered if `is_answered`.
    pub(super) fn note(&mut self, call: &Call, answer: &Answer, changed: Changed, model: &Model, is_answered: bool) {
        let order = answer.order + 1;
        if changed.names {
            self.note_name(order, call, answer, model);
            self.note_names(order, model);
        }
        if let Some(file) = fsynced(call) {
            self.fsyncs.insert(file, order);
        }
        if let Some(touched) = &changed.bytes
            && let Ok(bytes) = model.file(touched.file)
        {
            let history = self.files.entry(touched.file).or_default();
            history.sizes.push((order, bytes.size()));
            let written: Vec<u64> =
                bytes.blocks().filter(|block| (touched.from..touched.end).contains(block)).collect();
            let known = history.blocks.range(touched.from..touched.end).map(|(block, _)| *block);
            for block in known.chain(written).collect::<BTreeSet<u64>>() {
                let now = bytes.block(block).unwrap_or(&self.zeroes).clone();
                let versions = history.blocks.entry(block).or_insert_with(|| vec![(0, self.zeroes.clone())]);
                if versions.last().is_none_or(|(_, last)| *last != now) {
                    versions.push((order, now));
                }
            }
        }
        self.changes.extend(changed.of.into_iter().map(|file| (file, order)));
        if is_answered && answer.result.is_ok() {
            self.answered(call, order, model);
        }
    }

    /// A call gave a file a name, or took it.
    fn note_name(&mut self, order: u64, call: &Call, answer: &Answer, model: &Model) {
        let before = |directory: &FileId, name: &Vec<u8>| self.names.last()?.1.get(directory)?.get(name).copied();
        match (call, &answer.result) {
            (Call::Create { directory, name }, Ok(Reply::Found(made))) => {
                self.named.entry(made.file).or_default().push((order, (*directory, name.clone())));
            }
            (Call::Unlink { directory, name }, _) => self.unlinked.extend(before(directory, name)),
            (Call::Rename { to_directory, to, .. }, _) => {
                let replaced = before(to_directory, to);
                let moved = model.names(*to_directory).ok().and_then(|names| names.get(to).copied());
                self.unlinked.extend(replaced.filter(|replaced| Some(*replaced) != moved));
                if let Some(moved) = moved {
                    self.named.entry(moved).or_default().push((order, (*to_directory, to.clone())));
                }
            }
            _ => {}
        }
    }

    /// What an answer makes durable.
    fn answered(&mut self, call: &Call, order: u64, model: &Model) {
        if matches!(call, Call::Sync) {
            self.floor = self.floor.max(order);
            for history in self.files.values_mut() {
                history.raise(order);
            }
            return self.forget_names();
        }
        let Some(file) = fsynced(call) else { return };
        if self.rolls && model.names(file).is_err() {
            self.promises.insert(file, order);
        } else {
            // Of one that has not changed, nothing is to be written.
            self.floor = self.floor.max(self.changes.get(&file).copied().unwrap_or(0));
        }
        self.files.entry(file).or_default().raise(order);
        self.forget_names();
    }

    fn forget_names(&mut self) {
        let kept = since(&self.names, self.floor).len();
        self.names.drain(..self.names.len() - kept);
    }

    /// Reads all that is there, compares, and gives the model of it. `given` are numbers that are not given out again. With `lossy`,
    /// media may have lost blocks.
    ///
    /// # Errors
    /// What is there cannot be read, and media may have lost it.
    ///
    /// # Panics
    /// What is there must not be.
    pub(super) fn compare(&self, fs: &mut FileSystem, given: BTreeSet<FileId>, lossy: bool) -> Result<Model, Errno> {
        let tree = match Tree::read(fs) {
            Ok(tree) => tree,
            Err(errno) if lossy && fs.read_only_reason().is_some() => return Err(errno),
            Err(errno) => panic!("the tree cannot be read: {errno}"),
        };
        self.compare_names(&tree);
        let mut files = Vec::new();
        for (file, size) in &tree.files {
            files.push((*file, self.compare_file(fs, *file, *size, lossy)));
        }
        Ok(Model::of(tree.directories, files, given))
    }

    fn compare_names(&self, tree: &Tree) {
        let names: AllNames =
            tree.directories.iter().map(|(directory, _, names)| (*directory, names.clone())).collect();
        let allowed = since(&self.names, self.floor);
        if self.rolls {
            return self.compare_rolled_names(&names, allowed);
        }
        // Directories that were removed and open are gone.
        let differing = |after: &AllNames| -> Vec<FileId> {
            let own = names.iter().filter(|(directory, inside)| after.get(directory) != Some(inside));
            own.map(|(directory, _)| *directory).collect()
        };
        let nearest = allowed.iter().min_by_key(|(_, after)| differing(after).len());
        let Some((order, after)) = nearest else { panic!("there are names since call {}", self.floor) };
        if let Some(directory) = differing(after).first() {
            let (found, expected) = (shown(names.get(directory)), shown(after.get(directory)));
            panic!(
                "names in directory {directory} are as after no call since {}: found {found:?}, after call {order} there were {expected:?}",
                self.floor
            );
        }
    }

    /// Names are as after some call, but for new files that an fsync covers.
    fn compare_rolled_names(&self, names: &AllNames, allowed: &[(u64, AllNames)]) {
        let reasons = allowed.iter().rev().map(|(order, after)| Some((*order, self.differs(names, *order, after)?)));
        let reasons: Option<Vec<(u64, String)>> = reasons.collect();
        if let Some(reasons) = reasons {
            panic!("names are as after no call since {}: {reasons:?}", self.floor);
        }
    }

    /// What of the names cannot be where those after a call are durable, and those of files that fsyncs cover beside them.
    fn differs(&self, names: &AllNames, order: u64, after: &AllNames) -> Option<String> {
        let none = Names::new();
        let is_known = |file: &FileId| after.values().any(|inside| inside.values().any(|known| known == file));
        for (directory, found) in names {
            let known = after.get(directory).unwrap_or(&none);
            for name in found.keys().chain(known.keys()) {
                let (is, was) = (found.get(name), known.get(name));
                let is_here = |(inside, other): &Place| inside == directory && other == name;
                let has_had = |file: &FileId| {
                    let mut all = self.named.get(file).into_iter().flatten();
                    all.any(|(since, place)| *since > order && is_here(place))
                };
                let is_rolled = |file: &FileId| {
                    !is_known(file) && has_had(file) && self.fsyncs.get(file).is_some_and(|fsync| *fsync > order)
                };
                if is != was && !is.is_some_and(is_rolled) {
                    return Some(format!(
                        "{} in {directory} leads to {is:?}, and to {was:?} then",
                        String::from_utf8_lossy(name)
                    ));
                }
            }
        }
        for (file, promise) in &self.promises {
            let place = names.iter().find_map(|(directory, inside)| {
                inside.iter().find(|(_, found)| *found == file).map(|(name, _)| (*directory, name))
            });
            let is_well = match place {
                None => self.unlinked.contains(file),
                Some((directory, name)) => self.named.get(file).is_none_or(|all| {
                    since(all, *promise).iter().any(|(_, (inside, other))| *inside == directory && other == name)
                        || all.first().is_some_and(|(since, _)| since > promise)
                }),
            };
            if !is_well {
                return Some(format!("file {file}, which call {promise} made durable, is at {place:?}"));
            }
        }
        None
    }

    fn compare_file(&self, fs: &mut FileSystem, file: FileId, size: u64, lossy: bool) -> Bytes {
        let none = History::default();
        let history = self.files.get(&file).unwrap_or(&none);
        let sizes: Vec<u64> = since(&history.sizes, history.floor).iter().map(|(_, size)| *size).collect();
        assert!(sizes.contains(&size), "file {file} has {size} bytes, expected one of {sizes:?}");
        let grown = history.grown_to(size);
        let (mut blocks, mut unknown) = (BTreeMap::new(), BTreeSet::new());
        let count = size.div_ceil(BLOCK);
        let all: BTreeSet<u64> = if size <= MOST_READ {
            (0..count).collect()
        } else {
            let near = history.blocks.keys().flat_map(|block| block.saturating_sub(1)..block + 2);
            near.chain([0, count - 1]).filter(|block| *block < count).collect()
        };
        let all: Vec<u64> = all.into_iter().collect();
        for run in all.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(256)) {
            let (first, end) = (run[0] * BLOCK, (run[run.len() - 1] + 1) * BLOCK);
            let found = match read(fs, file, first, (end.min(size) - first) as u32) {
                Ok(found) => found.chunks(BLOCK as usize).map(|block| Some(block.to_vec())).collect::<Vec<_>>(),
                Err(Errno::Io) if lossy => run
                    .iter()
                    .map(|block| read(fs, file, block * BLOCK, (size - block * BLOCK).min(BLOCK) as u32).ok())
                    .collect(),
                Err(errno) => panic!("file {file} of {size} bytes cannot be read from {first} to {end}: {errno}"),
            };
            assert_eq!(found.len(), run.len(), "blocks of file {file} from {first} to {end}");
            for (block, found) in run.iter().zip(found) {
                let Some(found) = found else {
                    unknown.insert(*block);
                    blocks.insert(*block, self.zeroes.clone());
                    continue;
                };
                self.compare_block(file, size, *block, history, &grown, &found);
                let mut bytes = [0; BLOCK as usize];
                bytes[..found.len()].copy_from_slice(&found);
                if history.blocks.contains_key(block) {
                    blocks.insert(*block, Arc::new(bytes));
                }
            }
        }
        Bytes::of(size, blocks, unknown)
    }

    fn compare_block(
        &self,
        file: FileId,
        size: u64,
        block: u64,
        history: &History,
        grown: &[(u64, u64, u64)],
        found: &[u8],
    ) {
        let Some(versions) = history.blocks.get(&block) else {
            let other = found.iter().position(|byte| *byte != 0);
            assert_eq!(
                other, None,
                "block {block} of file {file}, {size} bytes, was never written and shows something"
            );
            return;
        };
        // No size is ahead of its data: the call that made the file so long left its bytes, or a later one did.
        let (start, end) = (block * BLOCK, size.min((block + 1) * BLOCK));
        let last = grown.iter().rev().find(|(_, from, to)| *from < end && *to > start).map(|(order, ..)| *order);
        let floor = history.floor.max(last.unwrap_or(0));
        let allowed = since(versions, floor);
        let begins_unknown = history.unknown.contains(&block) && allowed.first().is_some_and(|(order, _)| *order == 0);
        if begins_unknown || allowed.iter().any(|(_, version)| version[..found.len()] == *found) {
            return;
        }
        if self.tears && is_torn(allowed, found) {
            return;
        }
        let older = versions.iter().find(|(_, version)| version[..found.len()] == *found).map(|(order, _)| *order);
        let what = match older {
            Some(order) => format!("as call {order} left it"),
            None if found.iter().all(|byte| *byte == 0) => "zeroes".to_string(),
            None => "what no call left there".to_string(),
        };
        let orders: Vec<u64> = allowed.iter().map(|(order, _)| *order).collect();
        panic!(
            "block {block} of file {file}, {size} bytes, is {what}: expected it as one of the calls {orders:?} left it, since call {floor}"
        );
    }
}

/// Whether each sector of a block is as some call left it.
fn is_torn(allowed: &[(u64, Block)], found: &[u8]) -> bool {
    let sectors = found.chunks(SECTOR).enumerate();
    let is_known = |(index, sector): (usize, &[u8])| {
        allowed.iter().any(|(_, version)| version[index * SECTOR..][..sector.len()] == *sector)
    };
    sectors.into_iter().all(is_known)
}

impl History {
    /// Calls that made the file longer, up to the first behind the last fsync after which it has this size: order, size before, and size.
    fn grown_to(&self, size: u64) -> Vec<(u64, u64, u64)> {
        let sizes = since(&self.sizes, self.floor);
        let end = sizes.iter().position(|(_, other)| *other == size).map_or(0, |first| first + 1);
        let steps = sizes[..end].windows(2).map(|pair| (pair[1].0, pair[0].1, pair[1].1));
        steps.filter(|(_, from, to)| from < to).collect()
    }

    /// An fsync covers it; what was before is not needed any more.
    fn raise(&mut self, order: u64) {
        self.floor = self.floor.max(order);
        let kept = since(&self.sizes, self.floor).len();
        self.sizes.drain(..self.sizes.len() - kept);
        for versions in self.blocks.values_mut() {
            let kept = since(versions, self.floor).len();
            versions.drain(..versions.len() - kept);
        }
    }
}

/// The file that a call makes durable.
fn fsynced(call: &Call) -> Option<FileId> {
    match call {
        Call::Fsync { file } | Call::Fdatasync { file } => Some(*file),
        Call::Write { file, mode, .. } | Call::Append { file, mode, .. } => {
            (mode.sync != ssdlab_fs::call::Sync::No).then_some(*file)
        }
        _ => None,
    }
}

fn shown(names: Option<&Names>) -> BTreeMap<String, FileId> {
    let short = |name: &Vec<u8>| format!("{}.{}", String::from_utf8_lossy(&name[..name.len().min(12)]), name.len());
    names.into_iter().flatten().map(|(name, file)| (short(name), *file)).collect()
}
