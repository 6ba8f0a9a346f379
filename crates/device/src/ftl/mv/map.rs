//! Which physical pages hold the versions of a logical page: the entries, the slots behind them, and nothing else.
//!
//! ```text
//! direct     entry(LPN) = <PPN old, distance>                 new = old + distance in the order of frontiers
//! indirect   entry(LPN) = <PPN old, slot>  ->  <PPN new, 0>   in the table of the LPN's group
//!                                          ->  <PPN newest, slot> -> <PPN newer, 0>   a chain of three
//! ```
//!
//! After a power cut a chain may be one that entry and slots cannot say: longer than the bound, out of reach, or without
//! a full page. Such chains are kept in a list (`odd`) until they are merged; its RAM is counted with the rest.

use std::collections::BTreeMap;

use ssdlab_flash::HugeArray;

use super::entry::{Split, UNMAPPED};
use super::group::Groups;
use crate::DriveConfig;
use crate::VersionIndex;

/// Modelled RAM of an odd chain beside its pages.
const ODD_BYTES: u64 = 8;

/// How the PT of an entry leads to the newest version.
enum Index {
    /// By the distance in the order of pages over the planes.
    Direct(PageOrder),
    /// By a slot of the group.
    Indirect(Groups),
}

/// Numbers pages as frontiers that fill in step give them out: the same page of a block of each plane, then the next.
struct PageOrder {
    pages_per_block: u32,
    blocks_per_plane: u32,
    planes: u32,
}

impl PageOrder {
    fn number(&self, ppn: u32) -> u32 {
        let (block, page) = (ppn / self.pages_per_block, ppn % self.pages_per_block);
        let (plane, block) = (block / self.blocks_per_plane, block % self.blocks_per_plane);
        (block * self.pages_per_block + page) * self.planes + plane
    }

    fn ppn(&self, number: u32) -> u32 {
        let (row, plane) = (number / self.planes, number % self.planes);
        let (block, page) = (row / self.pages_per_block, row % self.pages_per_block);
        (plane * self.blocks_per_plane + block) * self.pages_per_block + page
    }

    fn pages(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.blocks_per_plane) * u64::from(self.planes)
    }

    fn distance(&self, old: u32, new: u32) -> u32 {
        let (old, new) = (u64::from(self.number(old)), u64::from(self.number(new)));
        ((new + self.pages() - old) % self.pages()) as u32
    }

    fn behind(&self, old: u32, distance: u32) -> u32 {
        let number = (u64::from(self.number(old)) + u64::from(distance)) % self.pages();
        self.ppn(number as u32)
    }
}

/// The map of logical pages.
pub(super) struct VersionMap {
    entries: HugeArray<u32>,
    split: Split,
    index: Index,
    /// Versions of a chain at most.
    bound: u32,
    /// Chains that an entry cannot say, newest version first.
    odd: BTreeMap<u32, Vec<u32>>,
    /// Logical pages that are not one full page each.
    chains: u64,
    /// ... of them those that are one compacted version each.
    alone: u64,
}

impl VersionMap {
    pub(super) fn new(config: &DriveConfig, entries: u32, split: Split) -> VersionMap {
        let (geometry, versions) = (&config.flash.geometry, &config.ftl.versions);
        let index = match versions.index {
            VersionIndex::Direct => Index::Direct(PageOrder {
                pages_per_block: geometry.pages_per_block,
                blocks_per_plane: geometry.blocks_per_plane,
                planes: geometry.planes(),
            }),
            VersionIndex::Indirect => Index::Indirect(Groups::new(entries, versions.group_pages, split.most())),
        };
        let mut map = VersionMap {
            entries: HugeArray::new(entries as usize),
            split,
            index,
            bound: versions.chain,
            odd: BTreeMap::new(),
            chains: 0,
            alone: 0,
        };
        map.clear();
        map
    }

    pub(super) fn clear(&mut self) {
        self.entries.as_mut_slice().fill(UNMAPPED);
        if let Index::Indirect(groups) = &mut self.index {
            groups.clear();
        }
        self.odd.clear();
        (self.chains, self.alone) = (0, 0);
    }

    /// Logical pages, metadata included.
    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Logical pages with more than one full page.
    pub(super) const fn chains(&self) -> u64 {
        self.chains
    }

    /// ... of them those of several versions: merging gives pages back.
    pub(super) const fn mergeable(&self) -> u64 {
        self.chains - self.alone
    }

    #[inline]
    pub(super) fn is_mapped(&self, lpn: u32) -> bool {
        self.entries.get(lpn as usize) != UNMAPPED
    }

    /// The page of a logical page that is one full page; `None` where it is not.
    #[inline]
    pub(super) fn full_page(&self, lpn: u32) -> Option<u32> {
        let entry = self.entries.get(lpn as usize);
        // An unmapped entry is all ones, so it is not full. A chain in the list has an entry that is not full, too.
        self.split.is_full(entry).then(|| self.split.ppn(entry))
    }

    /// The entry as it is.
    #[inline]
    pub(super) fn entry(&self, lpn: u32) -> u32 {
        self.entries.get(lpn as usize)
    }

    pub(super) fn is_odd(&self, lpn: u32) -> bool {
        !self.odd.is_empty() && self.odd.contains_key(&lpn)
    }

    /// Whether the newest version is in a compacted page; not for a chain of the list.
    pub(super) fn newest_is_compacted(&self, lpn: u32) -> bool {
        self.is_mapped(lpn) && !self.is_odd(lpn) && self.split.compacted(self.entry(lpn))
    }

    /// The pages of all versions, newest first; none where nothing is mapped.
    pub(super) fn chain(&self, lpn: u32) -> Vec<u32> {
        self.checked_chain(lpn).expect("an entry leads to pages")
    }

    /// As [`VersionMap::chain`], of entries that may be damaged: `None` if they lead nowhere.
    pub(super) fn checked_chain(&self, lpn: u32) -> Option<Vec<u32>> {
        if let Some(odd) = self.odd.get(&lpn) {
            return Some(odd.clone());
        }
        let entry = self.entry(lpn);
        if entry == UNMAPPED {
            return Some(Vec::new());
        }
        let (oldest, pt) = (self.split.ppn(entry), self.split.pt(entry));
        if pt == 0 {
            return Some(vec![oldest]);
        }
        match &self.index {
            Index::Direct(order) => (u64::from(oldest) < order.pages()).then(|| vec![order.behind(oldest, pt), oldest]),
            Index::Indirect(groups) => {
                let slots = groups.in_use_of(lpn)?;
                let mut chain = Vec::with_capacity(4);
                let mut slot = pt;
                while slot != 0 {
                    let entry = *slots.get(slot as usize - 1)?;
                    chain.push(self.split.ppn(entry));
                    slot = self.split.pt(entry);
                    if chain.len() as u32 >= self.bound && slot != 0 {
                        return None;
                    }
                }
                chain.push(oldest);
                Some(chain)
            }
        }
    }

    /// Whether a version can be put on top of the chain of `lpn` as it is, wherever it goes.
    pub(super) fn has_room(&self, lpn: u32) -> Room {
        if self.is_odd(lpn) {
            return Room::Bound;
        }
        let entry = self.entry(lpn);
        match &self.index {
            Index::Direct(_) if self.split.pt(entry) != 0 => Room::Bound,
            Index::Direct(_) => Room::Yes,
            Index::Indirect(groups) if groups.room(lpn) == 0 => Room::Slots,
            Index::Indirect(_) if self.chain(lpn).len() as u32 >= self.bound => Room::Bound,
            Index::Indirect(_) => Room::Yes,
        }
    }

    /// Slots that the group of a logical page has left; without groups as many as one likes.
    pub(super) fn slots_left(&self, lpn: u32) -> u32 {
        match &self.index {
            Index::Direct(_) => u32::MAX,
            Index::Indirect(groups) => groups.room(lpn),
        }
    }

    /// Whether a chain is no longer than it may be.
    pub(super) fn within_bound(&self, chain: &[u32]) -> bool {
        chain.len() as u32 <= self.bound
    }

    /// The most slots that a group has.
    pub(super) const fn slots_most(&self) -> u32 {
        self.split.most()
    }

    /// Whether a version at `ppn` is within reach of the oldest one of `lpn`.
    pub(super) fn reaches(&self, lpn: u32, ppn: u32) -> bool {
        match &self.index {
            Index::Direct(order) => self.can_point(order, self.split.ppn(self.entry(lpn)), ppn),
            Index::Indirect(_) => true,
        }
    }

    fn can_point(&self, order: &PageOrder, old: u32, new: u32) -> bool {
        (1..=self.split.most()).contains(&order.distance(old, new))
    }

    /// Whether PTs are distances, so that a page must be chosen within reach.
    pub(super) const fn is_direct(&self) -> bool {
        matches!(self.index, Index::Direct(_))
    }

    /// Puts a version on top of a chain; [`VersionMap::has_room`] and [`VersionMap::reaches`] were asked.
    pub(super) fn push(&mut self, lpn: u32, ppn: u32, compacted: bool) {
        let entry = self.entry(lpn);
        self.chains += u64::from(self.split.is_full(entry));
        let (oldest, below) = (self.split.ppn(entry), self.split.pt(entry));
        let pt = match &mut self.index {
            Index::Direct(order) => order.distance(oldest, ppn),
            Index::Indirect(groups) => groups.take(lpn, self.split.pack(ppn, below, false)),
        };
        self.entries.set(lpn as usize, self.split.pack(oldest, pt, compacted));
    }

    /// Maps `lpn` to one page: a full one, or a compacted one if that is all there is.
    pub(super) fn set_one(&mut self, lpn: u32, ppn: u32, compacted: bool) {
        self.forget(lpn);
        self.entries.set(lpn as usize, self.split.pack(ppn, 0, compacted));
        self.chains += u64::from(compacted);
        self.alone += u64::from(compacted);
    }

    /// Maps a full page over a full page or nothing: what most writes come to. Returns the old entry's page.
    #[inline]
    pub(super) fn swap_full(&mut self, lpn: u32, ppn: u32) {
        self.entries.set(lpn as usize, self.split.pack(ppn, 0, false));
    }

    /// Unmaps `lpn`.
    pub(super) fn unmap(&mut self, lpn: u32) {
        self.forget(lpn);
        self.entries.set(lpn as usize, UNMAPPED);
    }

    /// Maps `lpn` to a chain, newest first; `regular` says that its oldest version is one that nothing older shows
    /// through, that only the newest may be compacted, and that a single one is full or compacted.
    pub(super) fn set_chain(&mut self, lpn: u32, chain: &[u32], newest_compacted: bool, regular: bool) {
        self.forget(lpn);
        let Some((oldest, newer)) = chain.split_last() else {
            self.entries.set(lpn as usize, UNMAPPED);
            return;
        };
        let fits = match &self.index {
            _ if !regular || chain.len() as u32 > self.bound => false,
            Index::Direct(order) => match newer {
                [] => true,
                [new] => self.can_point(order, *oldest, *new),
                _ => false,
            },
            Index::Indirect(groups) => newer.len() as u32 <= groups.room(lpn),
        };
        if !fits {
            self.odd.insert(lpn, chain.to_vec());
            // Not the entry of a full page, nor of nothing; what it says is in the list.
            self.entries.set(lpn as usize, self.split.pack(*oldest, 1, false));
            self.chains += 1;
            return;
        }
        self.entries.set(lpn as usize, self.split.pack(*oldest, 0, newer.is_empty() && newest_compacted));
        self.chains += u64::from(newer.is_empty() && newest_compacted);
        self.alone += u64::from(newer.is_empty() && newest_compacted);
        for (index, ppn) in newer.iter().enumerate().rev() {
            self.push(lpn, *ppn, newest_compacted && index == 0);
        }
    }

    /// Another page takes the place of the newest version; it was asked whether that is within reach.
    pub(super) fn replace_newest(&mut self, lpn: u32, ppn: u32, compacted: bool) {
        let mut chain = self.chain(lpn);
        chain[0] = ppn;
        self.set_chain(lpn, &chain, compacted, true);
    }

    /// A version has moved to another page.
    pub(super) fn moved(&mut self, lpn: u32, from: u32, to: u32) {
        let mut chain = self.chain(lpn);
        let place = chain.iter_mut().find(|ppn| **ppn == from).expect("what is moved is a version");
        *place = to;
        if let Some(odd) = self.odd.get_mut(&lpn) {
            *odd = chain;
            return;
        }
        let compacted = self.newest_is_compacted(lpn);
        self.set_chain(lpn, &chain, compacted, true);
    }

    /// Gives back what the chain of `lpn` takes beside its entry; the entry is to be set then.
    fn forget(&mut self, lpn: u32) {
        let entry = self.entry(lpn);
        if entry == UNMAPPED || self.split.is_full(entry) {
            return;
        }
        self.chains -= 1;
        if self.odd.remove(&lpn).is_some() {
            return;
        }
        self.alone -= u64::from(self.split.pt(entry) == 0);
        if let Index::Indirect(groups) = &mut self.index {
            let mut slot = self.split.pt(entry);
            while slot != 0 {
                let below = self.split.pt(groups.get(lpn, slot));
                groups.give_back(lpn, slot);
                slot = below;
            }
        }
    }

    /// The next logical page at or after `from` that has several versions: odd chains come first.
    pub(super) fn next_chain(&self, from: u32) -> Option<u32> {
        if self.mergeable() == 0 {
            return None;
        }
        if let Some(lpn) = self.odd.keys().next() {
            return Some(*lpn);
        }
        let is_chain = |lpn: u32| self.is_mapped(lpn) && self.split.pt(self.entry(lpn)) != 0;
        if self.is_direct() {
            return (from..self.len()).find(|lpn| is_chain(*lpn));
        }
        let Index::Indirect(groups) = &self.index else { return None };
        let mut at = from;
        while at < self.len()
            && let Some(lpn) = groups.next_in_use(at)
        {
            let end = groups.end_of_group(lpn).min(self.len());
            if let Some(found) = (lpn..end).find(|lpn| is_chain(*lpn)) {
                return Some(found);
            }
            at = end;
        }
        None
    }

    /// Modelled RAM by name: the entries, the tables of versions, the list of odd chains.
    pub(super) fn memory(&self) -> Vec<(&'static str, u64)> {
        let (tables, most) = match &self.index {
            Index::Direct(_) => (0, 0),
            Index::Indirect(groups) => groups.bytes(),
        };
        vec![
            ("mapping_bytes", self.entries.bytes()),
            ("version_table_bytes", tables),
            ("version_table_bytes_max", most),
            ("odd_chain_bytes", self.odd_bytes()),
        ]
    }

    fn odd_bytes(&self) -> u64 {
        self.odd.values().map(|chain| ODD_BYTES + chain.len() as u64 * 4).sum()
    }

    /// The RAM of tables and list by walking all entries: what versions need and what is charged, and in words.
    pub(super) fn memory_law(&self) -> (bool, String) {
        let (mut newer, mut listed, mut chains, mut alone) = (0, 0, 0, 0);
        for lpn in (0..self.len()).filter(|lpn| self.is_mapped(*lpn) && self.full_page(*lpn).is_none()) {
            let versions = self.chain(lpn).len() as u64;
            chains += 1;
            alone += u64::from(!self.is_odd(lpn) && versions == 1);
            if self.is_odd(lpn) {
                listed += ODD_BYTES + versions * 4;
            } else {
                newer += versions - 1;
            }
        }
        let (used, charged, counted) = match &self.index {
            // A direct pointer is in the entry.
            Index::Direct(_) => (newer, 0, 0),
            Index::Indirect(groups) => (groups.used(), groups.bytes().0, groups.bytes_counted()),
        };
        let held = used == newer
            && charged == counted
            && listed == self.odd_bytes()
            && (chains, alone) == (self.chains, self.alone);
        let detail = format!(
            "{newer} newer versions in {used} slots, tables of {counted} bytes and {charged} charged, lists of {listed} \
             bytes and {} charged, {chains} chains and {} counted",
            self.odd_bytes(),
            self.chains
        );
        (held, detail)
    }
}

/// Whether a chain can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Yes,
    /// The chain is as long as it may be.
    Bound,
    /// The group's slots are all in use.
    Slots,
}

/// The map as bytes.
impl VersionMap {
    pub(super) fn save(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        to.write_all(bytemuck::cast_slice(self.entries.as_slice()))?;
        let tables = match &self.index {
            Index::Direct(_) => Vec::new(),
            Index::Indirect(groups) => groups.words(),
        };
        let odd = self.odd.iter().flat_map(|(lpn, chain)| [*lpn, chain.len() as u32].into_iter().chain(chain.clone()));
        for words in [tables, odd.collect()] {
            to.write_all(&(words.len() as u32).to_le_bytes())?;
            to.write_all(bytemuck::cast_slice(&words))?;
        }
        Ok(())
    }

    /// Reads what [`VersionMap::save`] wrote. The chains are still to be checked against the chips.
    pub(super) fn restore(&mut self, from: &mut dyn std::io::Read) -> std::io::Result<()> {
        let bad = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_string());
        self.clear();
        from.read_exact(bytemuck::cast_slice_mut(self.entries.as_mut_slice()))?;
        let most = u64::from(self.len()) * 8 + 1024;
        let tables = read_words(from, most)?;
        let mut odd = &read_words(from, most)?[..];
        match &mut self.index {
            Index::Direct(_) if tables.is_empty() => {}
            Index::Indirect(groups) => groups.restore(&tables).ok_or_else(|| bad("a table of versions is damaged"))?,
            Index::Direct(_) => return Err(bad("a direct index has no tables")),
        }
        while let [lpn, length, rest @ ..] = odd {
            let (chain, rest) =
                rest.split_at_checked(*length as usize).ok_or_else(|| bad("a list of versions is cut short"))?;
            if *lpn >= self.len() || chain.is_empty() || self.full_page(*lpn).is_some() || !self.is_mapped(*lpn) {
                return Err(bad("a list of versions belongs to no page"));
            }
            self.odd.insert(*lpn, chain.to_vec());
            odd = rest;
        }
        if !odd.is_empty() {
            return Err(bad("a list of versions is cut short"));
        }
        for lpn in 0..self.len() {
            if !self.is_mapped(lpn) || self.full_page(lpn).is_some() {
                continue;
            }
            self.chains += 1;
            self.alone += u64::from(!self.is_odd(lpn) && self.split.pt(self.entry(lpn)) == 0);
        }
        Ok(())
    }
}

fn read_words(from: &mut dyn std::io::Read, most: u64) -> std::io::Result<Vec<u32>> {
    let mut count = [0; 4];
    from.read_exact(&mut count)?;
    let count = u32::from_le_bytes(count);
    if u64::from(count) > most {
        let what = "a table of versions is longer than it can be";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    }
    let mut words = vec![0; count as usize];
    from.read_exact(bytemuck::cast_slice_mut(&mut words))?;
    Ok(words)
}
