//! Loads: what gather misses is read, each thing once however many wait for it.

use rustc_hash::FxHashMap;
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::standing::{Done, Slots};

use crate::call::Errno;
use crate::core::cache::{Body, Key, Of, Page};
use crate::core::inode_map::insert_unwritten;
use crate::core::{Cancel, Need};
use crate::format::inode::{Index, Inode, is_inode};
use crate::format::{BLOCK, BLOCK_SECTORS, Bad, Bytes, NOWHERE, block_of, directory, map, summary};
use crate::log_structured::{LogStructured, Purpose};

/// Most blocks of a read command.
const MOST_BLOCKS: usize = 128;

/// Attempts to read a block that cannot be read.
const READS: u32 = 3;

/// A thing that is being read.
#[derive(Debug, Default)]
struct Load {
    /// Tasks that wait for it.
    tasks: Vec<u32>,
    /// It is not what it was when it was asked for.
    is_cancelled: bool,
}

/// A read command.
#[derive(Debug)]
struct Command {
    needs: Vec<Need>,
    attempts: u32,
}

/// Everything that is being read.
#[derive(Debug)]
pub(crate) struct Loads {
    by_key: FxHashMap<Key, Load>,
    commands: Slots<Command>,
}

impl Loads {
    pub(crate) fn new() -> Loads {
        Loads { by_key: FxHashMap::default(), commands: Slots::new() }
    }
}

impl LogStructured {
    /// Reads what a task misses; without a task, what will be missed.
    pub(crate) fn load(&mut self, mut needs: Vec<Need>, task: Option<u32>) {
        needs.sort_unstable();
        needs.dedup();
        let (mut waits, mut missing) = (0, Vec::new());
        for need in needs {
            if let Of::Map(part) = need.key.of()
                && need.address == NOWHERE
            {
                if !self.core.cache.has(need.key) {
                    insert_unwritten(&mut self.core.cache, &self.core.map, part);
                    self.pin_for(need.key, task);
                }
                continue;
            }
            match self.loads.by_key.get_mut(&need.key) {
                Some(load) => {
                    load.tasks.extend(task);
                    waits += u32::from(task.is_some());
                }
                None => {
                    let load = Load { tasks: task.into_iter().collect(), is_cancelled: false };
                    self.loads.by_key.insert(need.key, load);
                    waits += u32::from(task.is_some());
                    missing.push(need);
                }
            }
        }
        for run in missing.chunk_by(|a, b| b.address == a.address + 1) {
            let mut rest = run;
            while let Some(first) = rest.first() {
                // A command stays within its segment.
                let left = self.core.superblock.segment_blocks - first.address % self.core.superblock.segment_blocks;
                let (now, then) = rest.split_at(rest.len().min(MOST_BLOCKS).min(left as usize));
                self.send_load(Command { needs: now.to_vec(), attempts: 0 });
                rest = then;
            }
        }
        if let Some(task) = task {
            self.tasks.get_mut(task).waits = waits;
            if waits == 0 {
                self.runnable.push_back(task);
            }
        }
    }

    fn send_load(&mut self, command: Command) {
        let (first, count) = (command.needs[0].address, command.needs.len() as u64);
        self.core.metrics.loaded_blocks += count;
        *self.core.space.reading(first / self.core.superblock.segment_blocks) += 1;
        let request = Request::new(Op::Read, u64::from(first) * BLOCK_SECTORS, count * BLOCK_SECTORS);
        let number = self.loads.commands.put(command);
        self.below.send(request, &[], Purpose::Load(number));
    }

    /// A read command has ended.
    pub(crate) fn load_ended(&mut self, done: &Done<Purpose>, number: u32) {
        let command = self.loads.commands.take(number);
        let segment = command.needs[0].address / self.core.superblock.segment_blocks;
        *self.core.space.reading(segment) -= 1;
        match done.status {
            Status::Success => {
                for (index, need) in command.needs.iter().enumerate() {
                    self.loaded(need, done.cells.as_deref(), index);
                }
            }
            // The drive lost its power under the host: what it had completed is there.
            Status::Aborted => self.send_load(command),
            _ if command.needs.len() > 1 => {
                for need in command.needs {
                    self.send_load(Command { needs: vec![need], attempts: 0 });
                }
            }
            _ if command.attempts + 1 < READS => {
                self.send_load(Command { attempts: command.attempts + 1, ..command });
            }
            status => self.not_loaded(&command.needs[0], &format!("it cannot be read ({status:?})")),
        }
    }

    fn loaded(&mut self, need: &Need, cells: Option<&[u8]>, index: usize) {
        let is_cancelled = self.loads.by_key.get(&need.key).is_some_and(|load| load.is_cancelled);
        if is_cancelled || self.core.cache.has(need.key) {
            return self.wake(need.key, None);
        }
        match self.decode(need, cells, index) {
            Ok(body) => {
                self.core.cache.insert(need.key, body);
                if let Of::Map(part) = need.key.of() {
                    self.core.note_loaded(part);
                }
                self.wake(need.key, None);
                self.core.cache.fit();
            }
            Err(bad) => self.not_loaded(need, &bad.to_string()),
        }
    }

    /// The bytes of a block of metadata that was read.
    fn metadata(&self, need: &Need, cells: Option<&[u8]>, index: usize) -> Result<Box<Bytes>, Bad> {
        match cells {
            Some(cells) if self.core.cell == 512 => {
                cells.get(index * BLOCK..(index + 1) * BLOCK).map(block_of).ok_or(Bad::Short)
            }
            _ => {
                let sector = u64::from(need.address) * BLOCK_SECTORS;
                self.below.device().record(sector).map(block_of).ok_or(Bad::Short)
            }
        }
    }

    fn decode(&self, need: &Need, cells: Option<&[u8]>, index: usize) -> Result<Body, Bad> {
        let core = &self.core;
        let (volume, blocks) = (core.superblock.volume, core.superblock.blocks());
        let page = |cells: Box<[u8]>| {
            let (writing, leaf, covers, written) = (0, 0, 0, core.last_write_number());
            let (is_new, is_moved, is_passing) = (false, false, false);
            Body::Page(Page {
                cells,
                address: need.address,
                leaf,
                writing,
                written,
                covers,
                goes_with: 0,
                is_new,
                is_moved,
                is_passing,
            })
        };
        match need.key.of() {
            Of::Page { inode, index: block } => match need.directory {
                Some(generation) => {
                    let bytes = self.metadata(need, cells, index)?;
                    directory::check(&bytes, volume, inode, generation, block)?;
                    Ok(page(bytes))
                }
                None => {
                    let length = core.page_cells();
                    let kept = cells.and_then(|cells| cells.get(index * length..(index + 1) * length));
                    if length > 0 && kept.is_none() {
                        return Err(Bad::Short);
                    }
                    Ok(page(kept.unwrap_or(&[]).into()))
                }
            },
            Of::Node(number) => {
                let bytes = self.metadata(need, cells, index)?;
                match is_inode(&bytes) {
                    Some(true) => {
                        Inode::decode(&bytes, volume, number, blocks).map(|inode| Body::Inode(Box::new(inode)))
                    }
                    _ => Index::decode(&bytes, volume, number, blocks).map(|index| Body::Index(Box::new(index))),
                }
            }
            Of::Map(part) => {
                let places = map::decode(&*self.metadata(need, cells, index)?, part, blocks)?;
                Ok(Body::Map(core.map.with_journal(part, places)))
            }
            Of::Block(_) => Err(Bad::Field("key")),
            Of::Summary { segment, part } => {
                let bytes = self.metadata(need, cells, index)?;
                match core.superblock.areas {
                    Some(_) => Ok(Body::Summary(summary::decode_plain(&bytes))),
                    None => summary::decode(&bytes, volume, segment, part).map(Body::Summary),
                }
            }
        }
    }

    /// A thing cannot be had: of a file its reads fail, and without metadata nothing can be changed any more.
    fn not_loaded(&mut self, need: &Need, reason: &str) {
        let is_data = matches!(need.key.of(), Of::Page { .. }) && need.directory.is_none();
        if !is_data {
            self.core.set_read_only(format!("block {} ({:?}): {reason}", need.address, need.key.of()));
        }
        if self.loads.by_key.get(&need.key).is_some_and(|load| !load.tasks.is_empty()) {
            self.core.failed.insert(need.key, Errno::Io);
        }
        self.wake(need.key, Some(Errno::Io));
    }

    fn pin_for(&mut self, key: Key, task: Option<u32>) {
        if let Some(task) = task
            && self.core.cache.pin(key)
        {
            self.tasks.get_mut(task).pins.push(key);
        }
    }

    fn wake(&mut self, key: Key, failed: Option<Errno>) {
        let Some(load) = self.loads.by_key.remove(&key) else { return };
        for task in load.tasks {
            self.pin_for(key, Some(task));
            let waiting = self.tasks.get_mut(task);
            waiting.failed.extend(failed.map(|_| key));
            waiting.waits -= 1;
            if waiting.waits == 0 {
                self.runnable.push_back(task);
            }
        }
    }

    /// What calls have freed is not wanted any more.
    pub(crate) fn cancel_loads(&mut self) {
        for cancel in std::mem::take(&mut self.core.cancelled) {
            match cancel {
                Cancel::One(key) => {
                    if let Some(load) = self.loads.by_key.get_mut(&key) {
                        load.is_cancelled = true;
                    }
                }
                Cancel::Pages(inode, from) => {
                    for (key, load) in &mut self.loads.by_key {
                        if matches!(key.of(), Of::Page { inode: other, index } if other == inode && index >= from) {
                            load.is_cancelled = true;
                        }
                    }
                }
            }
        }
    }
}
