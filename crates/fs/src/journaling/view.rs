//! What gather sees: everything in memory, with shared access.

use super::core::{Block, Body, Core, Need, Role, Stop};
use super::format::inode::{self, Inode};
use super::map;
use crate::call::{Errno, FileId, FileKind};
use crate::core::cache::Key;
use crate::format::{Bytes, NOWHERE};

/// Shared access to what is in memory.
pub(crate) struct View<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> View<'a> {
    pub(crate) const fn of(core: &'a Core) -> View<'a> {
        View { core }
    }

    /// Fails where the file system takes no changes.
    pub(crate) fn writable(&self) -> Result<(), Stop> {
        if self.core.read_only.is_some() { Err(Errno::ReadOnly.into()) } else { Ok(()) }
    }

    /// Fails where so many blocks of metadata more do not fit into the transaction. One that is empty takes any call.
    pub(crate) fn credits(&self, blocks: usize) -> Result<(), Stop> {
        self.writable()?;
        let running = self.core.running.blocks.len();
        if running > 0 && running + blocks > self.core.most_blocks { Err(Stop::Commit) } else { Ok(()) }
    }

    fn missing(&self, need: Need) -> Stop {
        match self.core.failed.get(&need.key) {
            Some(errno) => Stop::Failed(*errno),
            None => Stop::Missing(vec![need]),
        }
    }

    /// A block of metadata.
    pub(crate) fn block(&self, address: u32, role: Role) -> Result<&'a Bytes, Stop> {
        let key = Key::block(address);
        match self.core.cache.entry(key).map(|entry| &entry.body) {
            Some(Body::Block(Block { bytes, role: found })) if *found == role => Ok(bytes),
            // Damaged metadata names a block twice.
            Some(_) => Err(Errno::Io.into()),
            None => Err(self.missing(Need { address, key, role: Some(role) })),
        }
    }

    /// The block of a group's inode table that has an inode, and the inode's bytes in it.
    pub(crate) fn inode_bytes(&self, number: u32) -> Result<&'a [u8], Stop> {
        let superblock = &self.core.superblock;
        let (address, place) = superblock.place_of_inode(number);
        let bytes = self.block(address, Role::Table(superblock.group_of_inode(number)))?;
        Ok(&bytes[place * inode::SIZE..(place + 1) * inode::SIZE])
    }

    /// An inode of whatever generation; `None` if there is none of that number.
    pub(crate) fn inode_numbered(&self, number: u32) -> Result<Option<Inode>, Stop> {
        if number == 0 || number > self.core.superblock.inodes() {
            return Ok(None);
        }
        let bytes = self.inode_bytes(number)?;
        Inode::decode(self.core.superblock.volume, number, bytes).map_err(|_| Errno::Io.into())
    }

    /// An inode that metadata names.
    pub(crate) fn inode(&self, number: u32) -> Result<Inode, Stop> {
        self.inode_numbered(number)?.ok_or(Stop::Failed(Errno::Io))
    }

    /// What a call names.
    pub(crate) fn named(&self, file: FileId) -> Result<Inode, Stop> {
        let inode = self.inode_numbered(file.number)?.filter(|inode| inode.generation == file.generation);
        inode.filter(|inode| inode.links > 0 || self.is_open(inode.number)).ok_or(Stop::Failed(Errno::Stale))
    }

    /// Whether something keeps a file without a name.
    pub(crate) fn is_open(&self, number: u32) -> bool {
        self.core.files.get(&number).is_some_and(|file| file.opens > 0)
    }

    /// The directory that a call names.
    pub(crate) fn directory(&self, file: FileId) -> Result<Inode, Stop> {
        let inode = self.named(file)?;
        if inode.kind == FileKind::Directory { Ok(inode) } else { Err(Errno::NotDirectory.into()) }
    }

    /// The file that a call names, when none of its blocks are being freed; where nothing can be changed, none will be.
    pub(crate) fn file(&self, file: FileId) -> Result<Inode, Stop> {
        let inode = self.named(file)?;
        if inode.kind == FileKind::Directory {
            return Err(Errno::IsDirectory.into());
        }
        let is_busy = self.core.free_from.contains_key(&inode.number) && self.core.read_only.is_none();
        if is_busy { Err(Stop::Busy(inode.number)) } else { Ok(inode) }
    }

    /// Where a block of a file is; 0 for a hole.
    pub(crate) fn address(&self, inode: &Inode, block: u32) -> Result<u32, Stop> {
        Ok(map::find(self, inode, block)?.map_or(NOWHERE, |run| run.address(block)))
    }

    /// Whether a page of a file has anything, in memory or on the drive. It is at hand then: `true`.
    pub(crate) fn page(&self, inode: &Inode, block: u32) -> Result<bool, Stop> {
        let key = Key::page(inode.number, block);
        if self.core.cache.has(key) {
            return Ok(true);
        }
        match self.address(inode, block)? {
            NOWHERE => Ok(false),
            address => Err(self.missing(Need { address, key, role: None })),
        }
    }

    /// The bytes of a block of a directory; `None` if it has none.
    pub(crate) fn directory_block(&self, inode: &Inode, index: u32) -> Result<Option<(u32, &'a Bytes)>, Stop> {
        let address = self.address(inode, index)?;
        if address == NOWHERE {
            return Ok(None);
        }
        let role = Role::Directory { inode: inode.number, generation: inode.generation, index };
        self.block(address, role).map(|bytes| Some((address, bytes)))
    }
}

/// Runs several looks and puts together all that they miss, so that it is read at once.
#[derive(Default)]
pub(crate) struct Looks {
    needs: Vec<Need>,
}

impl Looks {
    /// What a look found, unless it misses something.
    pub(crate) fn at<T>(&mut self, look: Result<T, Stop>) -> Result<Option<T>, Stop> {
        match look {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Missing(needs)) => {
                self.needs.extend(needs);
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Fails if anything is missing.
    pub(crate) fn end(mut self) -> Result<(), Stop> {
        self.needs.sort_unstable();
        self.needs.dedup();
        if self.needs.is_empty() { Ok(()) } else { Err(Stop::Missing(self.needs)) }
    }
}
