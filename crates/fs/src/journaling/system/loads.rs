//! Loads: what gather misses is read, each thing once however many wait for it. Blocks that are committed and not at their places yet are
//! in memory.

use rustc_hash::FxHashMap;
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::standing::{Done, Slots};

use super::super::core::{Block, Body, Cancel, Need, Role, Stop};
use super::super::format::{extents, group};
use super::super::pages::Page;
use super::super::view::View;
use super::super::write_out::MOST_BLOCKS;
use super::{Journaling, Purpose};
use crate::call::{BLOCK_BYTES, Errno};
use crate::calls::data::blocks;
use crate::core::cache::{Key, Of};
use crate::format::{BLOCK, BLOCK_SECTORS, Bad, Bytes, block_of, directory, get_u32, zeroes};

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
    pub(super) fn new() -> Loads {
        Loads { by_key: FxHashMap::default(), commands: Slots::new() }
    }
}

impl Journaling {
    /// Reads what a task misses; without a task, what will be missed.
    pub(super) fn load(&mut self, mut needs: Vec<Need>, task: Option<u32>) {
        needs.sort_unstable();
        needs.dedup();
        let (mut waits, mut missing) = (0, Vec::new());
        for need in needs {
            if let Some(bytes) = self.in_memory(&need) {
                if !self.core.cache.has(need.key)
                    && let Some(role) = need.role
                {
                    self.core.cache.insert(need.key, Body::Block(Block { bytes, role }));
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
            for part in run.chunks(MOST_BLOCKS as usize) {
                self.send_load(Command { needs: part.to_vec(), attempts: 0 });
            }
        }
        if let Some(task) = task {
            self.tasks.get_mut(task).waits = waits;
            if waits == 0 {
                self.runnable.push_back(task);
            }
        }
    }

    /// A block that need not be read: it is committed and not at its place, or a part of an inode table that was never used.
    fn in_memory(&self, need: &Need) -> Option<Box<Bytes>> {
        let role = need.role?;
        if let Some(image) = self.core.image(need.address) {
            return Some(Box::new(*image));
        }
        let Role::Table(group) = role else { return None };
        let superblock = &self.core.superblock;
        let index = superblock.first_inode_of(group, need.address) - 1 - group * superblock.group_inodes;
        let unused = self.core.space.groups[group as usize].told.unused_inodes;
        (index >= superblock.group_inodes - unused).then(zeroes)
    }

    fn send_load(&mut self, command: Command) {
        let (first, count) = (command.needs[0].address, command.needs.len() as u64);
        self.core.metrics.loaded_blocks += count;
        let request = Request::new(Op::Read, u64::from(first) * BLOCK_SECTORS, count * BLOCK_SECTORS);
        let number = self.loads.commands.put(command);
        self.below.send(request, &[], Purpose::Load(number));
    }

    /// A read command has ended.
    pub(super) fn load_ended(&mut self, done: &Done<Purpose>, number: u32) {
        let command = self.loads.commands.take(number);
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
                self.wake(need.key, None);
                self.core.cache.fit();
            }
            Err(bad) => self.not_loaded(need, &bad.to_string()),
        }
    }

    fn decode(&self, need: &Need, cells: Option<&[u8]>, index: usize) -> Result<Body, Bad> {
        let core = &self.core;
        let Some(role) = need.role else {
            let length = core.page_cells();
            let kept = cells.and_then(|cells| cells.get(index * length..(index + 1) * length));
            if length > 0 && kept.is_none() {
                return Err(Bad::Short);
            }
            let cells = kept.unwrap_or(&[]).into();
            return Ok(Body::Page(Page { cells, address: need.address, ..Page::default() }));
        };
        // It may have been committed since it was asked for.
        if let Some(bytes) = self.in_memory(need) {
            return Ok(Body::Block(Block { bytes, role }));
        }
        let bytes = match cells {
            Some(cells) if core.cell == 512 => {
                cells.get(index * BLOCK..(index + 1) * BLOCK).map(block_of).ok_or(Bad::Short)?
            }
            _ => {
                let sector = u64::from(need.address) * BLOCK_SECTORS;
                self.below.device().record(sector).map(block_of).ok_or(Bad::Short)?
            }
        };
        self.check(role, &bytes)?;
        Ok(Body::Block(Block { bytes, role }))
    }

    /// Checks a block of metadata, as far as it can be without others.
    fn check(&self, role: Role, bytes: &Bytes) -> Result<(), Bad> {
        let (superblock, groups) = (&self.core.superblock, &self.core.space.groups);
        let volume = superblock.volume;
        let sum = |group, of_inodes| group::bitmap_sum(volume, group, of_inodes, bytes);
        match role {
            Role::BlockBitmap(group) if sum(group, false) != groups[group as usize].told.block_sum => {
                Err(Bad::Checksum)
            }
            Role::InodeBitmap(group) if sum(group, true) != groups[group as usize].told.inode_sum => Err(Bad::Checksum),
            Role::Directory { inode, generation, index } => directory::check(bytes, volume, inode, generation, index),
            Role::Extents(inode) => extents::check_block(volume, inode, &bytes[..]),
            Role::Index if (0..BLOCK / 4).any(|entry| get_u32(&bytes[..], 4 * entry) >= superblock.blocks) => {
                Err(Bad::Field("address"))
            }
            _ => Ok(()),
        }
    }

    /// A thing cannot be had: of a file its reads fail, and without metadata nothing can be changed any more.
    fn not_loaded(&mut self, need: &Need, reason: &str) {
        if let Some(role) = need.role {
            self.core.set_read_only(format!("block {} ({role:?}): {reason}", need.address));
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
    pub(super) fn cancel_loads(&mut self) {
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

    /// A file is read: what follows is read ahead if reads follow each other.
    pub(super) fn read_ahead(&mut self, number: u32, offset: u64, length: u32) {
        let most = (self.core.options.read_ahead / BLOCK_BYTES) as u32;
        let Ok(Some(inode)) = View::of(&self.core).inode_numbered(number) else { return };
        let Some(file) = self.core.files.get_mut(&number).filter(|file| file.opens > 0) else { return };
        let range = blocks(offset, u64::from(length).min(inode.size.saturating_sub(offset)));
        if most == 0 || range.is_empty() {
            return;
        }
        let Some(stream) = file.read_ahead.stream(&range) else { return };
        let Some(ahead) = stream.window(&range, most, inode.size.div_ceil(BLOCK_BYTES) as u32) else { return };
        let mut needs = Vec::new();
        let view = View::of(&self.core);
        for block in ahead {
            // What says where blocks are is not read ahead: where it is missing, its reader asks for it.
            match view.page(&inode, block) {
                Err(Stop::Missing(missing)) => needs.extend(missing.into_iter().filter(|need| need.role.is_none())),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        self.core.metrics.ahead_blocks += needs.len() as u64;
        self.load(needs, None);
    }
}
