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

mod order;
mod ram;
mod saved;

use std::collections::BTreeMap;

use ssdlab_flash::{HugeArray, Lpn, Ppn};

use crate::DriveConfig;
use crate::ftl::mv::entry::{Split, UNMAPPED};
use crate::ftl::mv::group::Groups;
use crate::ftl::mv::keys::{VersionIndex, Versions};
use order::PageOrder;

/// How the PT of an entry leads to the newest version.
enum Index {
    /// By the distance in the order of pages over the planes.
    Direct(PageOrder),
    /// By a slot of the group.
    Indirect(Groups),
}

/// The map of logical pages.
pub(in crate::ftl::mv) struct VersionMap {
    entries: HugeArray<u32>,
    split: Split,
    index: Index,
    /// Versions of a chain at most.
    bound: u32,
    /// Chains that an entry cannot say, newest version first.
    odd: BTreeMap<Lpn, Vec<Ppn>>,
    /// Logical pages that are not one full page each.
    chains: u64,
    /// Logical pages that are one compacted version each; `chains` counts them, too.
    alone: u64,
}

impl VersionMap {
    pub(in crate::ftl::mv) fn new(config: &DriveConfig, versions: &Versions, entries: u32, split: Split) -> VersionMap {
        let geometry = &config.flash.geometry;
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

    /// Bytes that a map of `entries` logical pages takes with `versions` of them beside full pages.
    pub(in crate::ftl::mv) fn simulator_bytes(config: &Versions, entries: u64, versions: u64) -> u64 {
        let groups = match config.index {
            VersionIndex::Direct => 0,
            VersionIndex::Indirect => Groups::simulator_bytes(entries, config.group_pages, versions),
        };
        HugeArray::<u32>::bytes_of(entries) + groups
    }

    pub(in crate::ftl::mv) fn clear(&mut self) {
        self.entries.as_mut_slice().fill(UNMAPPED);
        if let Index::Indirect(groups) = &mut self.index {
            groups.clear();
        }
        self.odd.clear();
        (self.chains, self.alone) = (0, 0);
    }

    /// Logical pages, metadata included.
    pub(in crate::ftl::mv) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Logical pages, metadata included, one after another.
    pub(in crate::ftl::mv) fn lpns(&self) -> impl Iterator<Item = Lpn> + use<> {
        Lpn::each(Lpn(0)..Lpn(self.len()))
    }

    /// Logical pages with more than one full page.
    pub(in crate::ftl::mv) const fn chains(&self) -> u64 {
        self.chains
    }

    /// Logical pages of several versions: merging gives pages back.
    pub(in crate::ftl::mv) const fn mergeable(&self) -> u64 {
        assert!(self.alone <= self.chains, "compacted versions alone are chains, too");
        self.chains - self.alone
    }

    #[inline]
    pub(in crate::ftl::mv) fn is_mapped(&self, lpn: Lpn) -> bool {
        self.entries.get(lpn.index()) != UNMAPPED
    }

    /// The page of a logical page that is one full page; `None` where it is not.
    #[inline]
    pub(in crate::ftl::mv) fn full_page(&self, lpn: Lpn) -> Option<Ppn> {
        let entry = self.entries.get(lpn.index());
        // An unmapped entry is all ones, so it is not full. A chain in the list has an entry that is not full, too.
        self.split.is_full(entry).then(|| self.split.ppn(entry))
    }

    /// The entry as it is.
    #[inline]
    pub(in crate::ftl::mv) fn entry(&self, lpn: Lpn) -> u32 {
        self.entries.get(lpn.index())
    }

    pub(in crate::ftl::mv) fn is_odd(&self, lpn: Lpn) -> bool {
        !self.odd.is_empty() && self.odd.contains_key(&lpn)
    }

    /// Whether the newest version is in a compacted page; not for a chain of the list.
    pub(in crate::ftl::mv) fn newest_is_compacted(&self, lpn: Lpn) -> bool {
        self.is_mapped(lpn) && !self.is_odd(lpn) && self.split.compacted(self.entry(lpn))
    }

    /// The pages of all versions, newest first; none where nothing is mapped.
    pub(in crate::ftl::mv) fn chain(&self, lpn: Lpn) -> Vec<Ppn> {
        self.checked_chain(lpn).expect("an entry leads to pages")
    }

    /// The pages of all versions, newest first, of entries that may be damaged: `None` if they lead nowhere.
    pub(in crate::ftl::mv) fn checked_chain(&self, lpn: Lpn) -> Option<Vec<Ppn>> {
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
            Index::Direct(order) => {
                (u64::from(oldest.0) < order.pages()).then(|| vec![order.behind(oldest, pt), oldest])
            }
            Index::Indirect(groups) => {
                let slots = groups.in_use_of(lpn)?;
                let mut chain = Vec::with_capacity(4);
                let mut slot = pt;
                while slot != 0 {
                    let entry = *slots.get(slot as usize - 1)?;
                    chain.push(self.split.ppn(entry));
                    slot = self.split.pt(entry);
                    if chain.len() as u32 >= self.bound {
                        return None;
                    }
                }
                chain.push(oldest);
                Some(chain)
            }
        }
    }

    /// Whether a version can be put on top of the chain of `lpn` as it is, wherever it goes.
    pub(in crate::ftl::mv) fn has_room(&self, lpn: Lpn) -> Room {
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
    pub(in crate::ftl::mv) fn slots_left(&self, lpn: Lpn) -> u32 {
        match &self.index {
            Index::Direct(_) => u32::MAX,
            Index::Indirect(groups) => groups.room(lpn),
        }
    }

    /// Whether a chain is no longer than it may be.
    pub(in crate::ftl::mv) fn within_bound(&self, chain: &[Ppn]) -> bool {
        chain.len() as u32 <= self.bound
    }

    /// The most slots that a group has.
    pub(in crate::ftl::mv) const fn slots_most(&self) -> u32 {
        self.split.most()
    }

    /// Whether a version at `ppn` is within reach of the oldest one of `lpn`.
    pub(in crate::ftl::mv) fn reaches(&self, lpn: Lpn, ppn: Ppn) -> bool {
        match &self.index {
            Index::Direct(order) => self.can_point(order, self.split.ppn(self.entry(lpn)), ppn),
            Index::Indirect(_) => true,
        }
    }

    fn can_point(&self, order: &PageOrder, old: Ppn, new: Ppn) -> bool {
        (1..=self.split.most()).contains(&order.distance(old, new))
    }

    /// Whether PTs are distances, so that a page must be chosen within reach.
    pub(in crate::ftl::mv) const fn is_direct(&self) -> bool {
        matches!(self.index, Index::Direct(_))
    }

    /// Puts a version on top of a chain; [`VersionMap::has_room`] and [`VersionMap::reaches`] were asked.
    pub(in crate::ftl::mv) fn push(&mut self, lpn: Lpn, ppn: Ppn, compacted: bool) {
        let entry = self.entry(lpn);
        assert_ne!(entry, UNMAPPED, "LPN {lpn} holds nothing, and page {ppn} is a newer version");
        assert!(!self.is_odd(lpn), "LPN {lpn} is in the list of odd chains, and page {ppn} is pushed");
        self.chains += u64::from(self.split.is_full(entry));
        let (oldest, below) = (self.split.ppn(entry), self.split.pt(entry));
        let pt = match &mut self.index {
            Index::Direct(order) => order.distance(oldest, ppn),
            Index::Indirect(groups) => groups.take(lpn, self.split.pack(ppn, below, false)),
        };
        assert!((1..=self.split.most()).contains(&pt), "page {ppn} is the newest of LPN {lpn}, and PT {pt} cannot say");
        self.entries.set(lpn.index(), self.split.pack(oldest, pt, compacted));
    }

    /// Maps `lpn` to one page: a full one, or a compacted one if that is all there is.
    pub(in crate::ftl::mv) fn set_one(&mut self, lpn: Lpn, ppn: Ppn, compacted: bool) {
        self.forget(lpn);
        self.entries.set(lpn.index(), self.split.pack(ppn, 0, compacted));
        self.chains += u64::from(compacted);
        self.alone += u64::from(compacted);
    }

    /// Maps a full page over a full page or nothing: what most writes come to. Returns the old entry's page.
    #[inline]
    pub(in crate::ftl::mv) fn swap_full(&mut self, lpn: Lpn, ppn: Ppn) {
        debug_assert!(self.full_page(lpn).is_some(), "LPN {lpn} has no full page that {ppn} could take the place of");
        self.entries.set(lpn.index(), self.split.pack(ppn, 0, false));
    }

    /// Unmaps `lpn`.
    pub(in crate::ftl::mv) fn unmap(&mut self, lpn: Lpn) {
        self.forget(lpn);
        self.entries.set(lpn.index(), UNMAPPED);
    }

    /// Maps `lpn` to a chain, newest first; `regular` says that its oldest version is one that nothing older shows
    /// through, that only the newest may be compacted, and that a single one is full or compacted.
    pub(in crate::ftl::mv) fn set_chain(&mut self, lpn: Lpn, chain: &[Ppn], newest_compacted: bool, regular: bool) {
        debug_assert!(
            chain.iter().enumerate().all(|(index, ppn)| !chain[..index].contains(ppn)),
            "LPN {lpn} has a page twice: {chain:?}"
        );
        self.forget(lpn);
        let Some((oldest, newer)) = chain.split_last() else {
            self.entries.set(lpn.index(), UNMAPPED);
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
            self.entries.set(lpn.index(), self.split.pack(*oldest, 1, false));
            self.chains += 1;
            return;
        }
        self.entries.set(lpn.index(), self.split.pack(*oldest, 0, newer.is_empty() && newest_compacted));
        self.chains += u64::from(newer.is_empty() && newest_compacted);
        self.alone += u64::from(newer.is_empty() && newest_compacted);
        for (index, ppn) in newer.iter().enumerate().rev() {
            self.push(lpn, *ppn, newest_compacted && index == 0);
        }
    }

    /// Another page takes the place of the newest version; it was asked whether that is within reach.
    pub(in crate::ftl::mv) fn replace_newest(&mut self, lpn: Lpn, ppn: Ppn, compacted: bool) {
        assert!(self.newest_is_compacted(lpn), "the newest version of LPN {lpn} is not compacted, and is replaced");
        let mut chain = self.chain(lpn);
        chain[0] = ppn;
        self.set_chain(lpn, &chain, compacted, true);
    }

    /// A version has moved to another page.
    pub(in crate::ftl::mv) fn moved(&mut self, lpn: Lpn, from: Ppn, to: Ppn) {
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
    fn forget(&mut self, lpn: Lpn) {
        let entry = self.entry(lpn);
        if entry == UNMAPPED || self.split.is_full(entry) {
            return;
        }
        assert!(self.chains > 0, "the chain of LPN {lpn} is forgotten, and there is none");
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
    pub(in crate::ftl::mv) fn next_chain(&self, from: Lpn) -> Option<Lpn> {
        if self.mergeable() == 0 {
            return None;
        }
        if let Some(lpn) = self.odd.keys().next() {
            return Some(*lpn);
        }
        let is_chain = |lpn: Lpn| self.is_mapped(lpn) && self.split.pt(self.entry(lpn)) != 0;
        if self.is_direct() {
            return Lpn::each(from..Lpn(self.len())).find(|lpn| is_chain(*lpn));
        }
        let Index::Indirect(groups) = &self.index else { return None };
        let mut at = from;
        while at.0 < self.len()
            && let Some(lpn) = groups.next_in_use(at)
        {
            let end = groups.end_of_group(lpn).min(Lpn(self.len()));
            if let Some(found) = Lpn::each(lpn..end).find(|lpn| is_chain(*lpn)) {
                return Some(found);
            }
            at = end;
        }
        None
    }
}

/// Whether a chain can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ftl::mv) enum Room {
    Yes,
    /// The chain is as long as it may be.
    Bound,
    /// The group's slots are all in use.
    Slots,
}
