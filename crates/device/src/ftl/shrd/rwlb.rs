//! Log blocks, and what is known of each tLPN.
//!
//! A log block is *settled* when all names in it are final: each of its units was remapped, was trimmed, or has been written
//! again. RAM: the oLPN and the number of each tLPN, the headers, and the names in log blocks, which a trim looks through if its map
//! page has any of them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use rustc_hash::FxHashSet;
use ssdlab_base::{damaged, saved};
use ssdlab_flash::{BlockId, Lpn, Origin, UnitId};

use crate::Check;
use crate::block_pool::{BlockKind, BlockState};
use crate::ftl::cached_map::EraseEpoch;
use crate::ftl::page::PageFtl;
use crate::media::{Frontier, Media, Place};

/// Bytes of RAM for a tLPN: its oLPN and number, and that of a header.
const TLPN_BYTES: u64 = 12;

/// Bytes of RAM for a name in a log block.
const NAME_BYTES: u64 = 4;

/// The number of the first unit that is written to the log. These are even; what is written elsewhere, and a trim, has the odd
/// number before the next of them.
pub(super) const FIRST_NUMBER: u32 = 2;

/// A tLPN that holds nothing.
const EMPTY: Origin = Origin { lpn: Lpn::NONE, number: 0 };

/// The random-write log buffer.
pub(super) struct Rwlb {
    /// The first tLPN, as a unit of the map.
    first: Lpn,
    /// By tLPN: what it holds.
    held: Vec<Origin>,
    /// Headers whose data has not come: first tLPN, and the oLPN of each unit.
    headers: BTreeMap<u32, Vec<u32>>,
    /// The number of the next unit that is written to the log.
    number: u32,
    /// Units whose data took effect and was not given a page yet.
    promised: u32,
    /// Log blocks, and how many of their units have names that are not final.
    blocks: BTreeMap<u32, u32>,
    /// Empty ones that wait for their erase: until then a power cut brings back what was written there.
    erasing: Vec<u32>,
    /// Settled ones whose group has no free block to spare yet.
    due: Vec<EraseEpoch>,
    /// The pool's number of changes when these were looked at last.
    looked_at: Option<u64>,
    /// The pool's number of changes when no closed block was settled that was not known to be, if nothing else that
    /// counts has changed since.
    nothing_settled_at: Cell<Option<u64>>,
    /// Map pages that oLPNs in log blocks are of.
    copies: FxHashSet<u32>,
    /// The group that took the last page.
    last_group: u32,
}

impl Rwlb {
    pub(super) fn new(user_units: u32, units: u32) -> Rwlb {
        Rwlb {
            first: Lpn(user_units),
            held: vec![EMPTY; units as usize],
            headers: BTreeMap::new(),
            number: FIRST_NUMBER,
            promised: 0,
            blocks: BTreeMap::new(),
            due: Vec::new(),
            looked_at: None,
            nothing_settled_at: Cell::new(None),
            erasing: Vec::new(),
            copies: FxHashSet::default(),
            last_group: 0,
        }
    }

    pub(super) fn units(&self) -> u32 {
        self.held.len() as u32
    }

    /// Units of the user.
    pub(super) fn user_units(&self) -> u32 {
        self.first.0
    }

    #[inline]
    pub(super) fn is_tlpn(&self, lpn: Lpn) -> bool {
        lpn >= self.first
    }

    /// A tLPN as a unit of the map.
    pub(super) fn lpn(&self, tlpn: u32) -> Lpn {
        assert!(tlpn < self.units(), "tLPN {tlpn} of {}", self.units());
        self.first + tlpn
    }

    /// What a tLPN holds, if it does.
    pub(super) fn held(&self, tlpn: u32) -> Option<Origin> {
        self.held.get(tlpn as usize).copied().filter(|origin| origin.lpn != Lpn::NONE)
    }

    /// The origin of what is written to a tLPN.
    pub(super) fn origin(&self, lpn: Lpn) -> Origin {
        let origin = self.held[(lpn - self.first) as usize];
        assert_ne!(origin.lpn, Lpn::NONE, "unit {lpn} of the log is written, and no header came");
        origin
    }

    /// The number of a trim, or of a write elsewhere, now.
    pub(super) const fn number_elsewhere(&self) -> u32 {
        self.number - 1
    }

    /// Whether so many units of the log can still be told from all others by 31 bits.
    pub(super) const fn has_numbers(&self, units: u32) -> bool {
        self.number < (1 << 31) - 2 * (units + 1)
    }

    pub(super) fn set_number(&mut self, media: &mut Media, number: u32) {
        assert!(number >= FIRST_NUMBER && number.is_multiple_of(2), "{number} is no number of a unit in the log");
        self.number = number;
        media.flash.oob.set_write_number(number - 1);
    }

    // ---- headers ----

    /// A header came; those that it overlaps are forgotten.
    pub(super) fn announce(&mut self, first: u32, units: Vec<u32>) {
        let end = first + units.len() as u32;
        assert!(!units.is_empty() && end <= self.units(), "a header of tLPNs {first} to {end} was accepted");
        let overlaps = |other: &u32, units: &Vec<u32>| *other < end && first < *other + units.len() as u32;
        self.headers.retain(|other, units| !overlaps(other, units));
        self.headers.insert(first, units);
    }

    /// The oLPNs of data that comes, if a header said the same tLPN and length.
    pub(super) fn announced(&self, first: u32, count: u32) -> Option<&[u32]> {
        self.headers.get(&first).map(Vec::as_slice).filter(|units| units.len() == count as usize)
    }

    /// Data takes effect: its header is used up, and each unit has its number.
    pub(super) fn take(&mut self, media: &mut Media, first: u32) {
        let units = self.headers.remove(&first).expect("the header was there");
        for (tlpn, lpn) in (first..).zip(&units) {
            assert!(*lpn < self.user_units(), "tLPN {tlpn} holds unit {lpn}, which is not the user's");
            self.held[tlpn as usize] = Origin { lpn: Lpn(*lpn), number: self.number };
            self.number += 2;
        }
        self.promised += units.len() as u32;
        self.set_number(media, self.number);
    }

    /// Units whose data took effect and has no page yet: each may take one of its own.
    pub(super) const fn promised(&self) -> u32 {
        self.promised
    }

    /// So many units get a page.
    pub(super) const fn gets_page(&mut self, units: u32) {
        // What a buffer holds when the drive comes back is not counted.
        self.promised = self.promised.saturating_sub(units);
    }

    /// A tLPN holds nothing any more.
    pub(super) fn release(&mut self, tlpn: u32) {
        assert!(self.held(tlpn).is_some(), "tLPN {tlpn} is released, and holds nothing");
        self.held[tlpn as usize] = EMPTY;
    }

    /// Data that took effect for a unit of the log is never written: what was there before is.
    pub(super) fn is_as_mapped(&mut self, media: &Media, data: &PageFtl, lpn: Lpn) {
        let held = &mut self.held[(lpn - self.first) as usize];
        let before = data.unit_of(lpn).map_or(EMPTY, |unit| media.flash.oob.origin(unit));
        if std::mem::replace(held, before) != before {
            self.gets_page(1);
        }
    }

    /// Whether a log block has a copy of what the host wrote under this number, whatever the map says.
    pub(super) fn is_on_flash(media: &Media, held: Origin) -> bool {
        let logs = (0..media.pool.superblocks_count()).filter(|block| media.pool.kind(*block) == BlockKind::Log);
        let blocks = logs.flat_map(|superblock| media.pool.superblocks.members(superblock));
        let written = |block| (0..media.flash.blocks.get(block).programmed).map(move |page| Place { block, page });
        let mut pages = blocks.flat_map(written).filter(|place| media.flash.blocks.readable(media.ppn_at(*place)));
        pages.any(|place| {
            let first = media.unit_at(place);
            UnitId::each(first..first + media.units_per_page).any(|unit| media.flash.oob.origin(unit) == held)
        })
    }

    /// A host begins anew: the headers of the one before say nothing.
    pub(super) fn forget_headers(&mut self) {
        self.headers.clear();
    }

    /// All tLPNs that hold something, with what they hold.
    pub(super) fn all_held(&self) -> impl Iterator<Item = (u32, Origin)> {
        (0..).zip(self.held.iter().copied()).filter(|(_, origin)| origin.lpn != Lpn::NONE)
    }

    // ---- blocks ----

    pub(super) fn has_page(&self, media: &Media) -> bool {
        (0..media.pool.groups()).any(|group| media.has_page(group, Frontier::Log))
    }

    /// The group that takes the next page: the one whose row was begun, else the next with a page.
    pub(super) fn choose_group(&mut self, media: &Media) -> Option<u32> {
        let groups = media.pool.groups();
        if !media.is_within_row(self.last_group, Frontier::Log) || !media.has_page(self.last_group, Frontier::Log) {
            let mut turns = (1..=groups).map(|step| (self.last_group + step) % groups);
            self.last_group = turns.find(|group| media.has_page(*group, Frontier::Log))?;
        }
        Some(self.last_group)
    }

    /// A unit is written to a log block; its oLPN is of a map page.
    pub(super) fn logged(&mut self, media: &Media, block: BlockId, page: u32) {
        let superblock = media.pool.superblocks.of(block);
        assert_eq!(media.pool.kind(superblock), BlockKind::Log, "a unit of the log is written to block {superblock}");
        *self.blocks.entry(superblock).or_default() += 1;
        self.copies.insert(page);
    }

    /// The name of a unit in a log block is final now, or it holds nothing that counts.
    pub(super) fn settled(&mut self, media: &Media, unit: UnitId) {
        let superblock = media.pool.superblocks.of(media.block_of(unit));
        let open = self.blocks.get_mut(&superblock).expect("a tLPN is in a log block");
        assert!(*open > 0, "a name in block {superblock} becomes final, and all are");
        *open -= 1;
        if *open == 0 {
            self.nothing_settled_at.set(None);
        }
    }

    /// Whether a closed log block is settled and is not known to be: it can become a data block after a flush of the map.
    pub(super) fn has_settled(&self, media: &Media) -> bool {
        let changes = media.pool.state_changes();
        if self.nothing_settled_at.get() == Some(changes) {
            return false;
        }
        // Collection empties a block that goes bad.
        let is_log =
            |superblock: u32| media.pool.kind(superblock) == BlockKind::Log && !media.pool.is_retiring(superblock);
        let closed = |superblock: u32| is_log(superblock) && media.pool.state(superblock) == BlockState::Closed;
        let found = self.blocks.iter().any(|(superblock, open)| {
            *open == 0 && closed(*superblock) && !self.due.iter().any(|epoch| epoch.superblock == *superblock)
        });
        self.nothing_settled_at.set((!found).then_some(changes));
        found
    }

    pub(super) fn due(&self) -> &[EraseEpoch] {
        &self.due
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Settled blocks become data blocks, as far as their groups have free blocks to spare; returns how many.
    pub(super) fn turn(&mut self, media: &mut Media, settled: Vec<EraseEpoch>) -> u32 {
        // Those that are due wait for blocks to change.
        if settled.is_empty() && self.looked_at == Some(media.pool.state_changes()) {
            return 0;
        }
        self.nothing_settled_at.set(None);
        self.due.extend(&settled);
        self.blocks.retain(|superblock, _| media.pool.kind(*superblock) == BlockKind::Log);
        let mut turned = 0;
        for epoch in std::mem::take(&mut self.due) {
            let superblock = epoch.superblock;
            let closed = media.pool.state(superblock) == BlockState::Closed && !media.pool.is_retiring(superblock);
            if media.pool.kind(superblock) != BlockKind::Log || !closed || !epoch.is_current(media) {
                // Collection empties it, or has.
                continue;
            }
            assert_eq!(self.blocks.get(&superblock), Some(&0), "block {superblock} becomes a data block");
            let group = media.pool.group_of(superblock);
            if media.pool.valid(superblock) == 0 && !media.pool.is_trimmed(superblock) {
                self.erase(media, superblock);
                continue;
            }
            if media.pool.free_blocks(group) <= media.gc_reserve && !media.pool.has_too_many(BlockKind::Log, group) {
                self.due.push(epoch);
                // Collection looks once at a group that lacks one.
                if settled.contains(&epoch) {
                    media.wakes.groups.push(group);
                }
                continue;
            }
            media.pool.becomes_data(superblock);
            media.wakes.groups.push(group);
            self.blocks.remove(&superblock);
            turned += 1;
        }
        media.log_waits = !self.due.is_empty();
        self.looked_at = Some(media.pool.state_changes());
        turned
    }

    /// Recovery: blocks of the log that were settled and waited for a free block of their group are data blocks on flash. Where the
    /// group has none to spare they wait again.
    pub(super) fn take_back(&mut self, media: &mut Media) -> Vec<EraseEpoch> {
        let mut taken = Vec::new();
        for superblock in 0..media.pool.superblocks_count() {
            let group = media.pool.group_of(superblock);
            if media.pool.free_blocks(group) > media.gc_reserve
                || media.pool.owed_to(BlockKind::Log, group) == 0
                || media.pool.kind(superblock) != BlockKind::Data
                || media.pool.state(superblock) != BlockState::Closed
                || media.pool.is_retiring(superblock)
            {
                continue;
            }
            let first = media.unit_in(superblock, 0);
            if media.flash.oob.origin(first).lpn != Lpn::NONE {
                media.pool.becomes(superblock, BlockKind::Log);
                self.blocks.insert(superblock, 0);
                self.due.push(EraseEpoch::of(media, superblock));
                (self.looked_at, self.nothing_settled_at) = (None, Cell::new(None));
                taken.push(EraseEpoch::of(media, superblock));
            }
        }
        taken
    }

    /// A settled block that holds nothing need not become a data block first.
    fn erase(&mut self, media: &mut Media, superblock: u32) {
        let open = self.blocks.remove(&superblock);
        assert_eq!(open, Some(0), "block {superblock} of the log is erased, and has names that are not final");
        self.erasing.retain(|other| *other != superblock && Rwlb::is_erasing(media, *other));
        self.erasing.push(superblock);
        media.pool.collect(superblock);
        media.pool.await_erase(superblock);
        if media.pool.pins(superblock) == 0 {
            media.wakes.erasable.push(superblock);
        }
    }

    /// Log blocks that there are, where others than twrites wrote to them.
    pub(super) fn found_blocks(&mut self, media: &Media) {
        let is_log = |block: &u32| media.pool.kind(*block) == BlockKind::Log && !Rwlb::is_erasing(media, *block);
        let all = (0..media.pool.superblocks_count()).filter(is_log);
        self.nothing_settled_at.set(None);
        self.blocks = all.map(|superblock| (superblock, self.blocks.get(&superblock).copied().unwrap_or(0))).collect();
    }

    /// Whether a log block waits for its erase: it holds nothing, and is none any more but for the copies in it.
    fn is_erasing(media: &Media, superblock: u32) -> bool {
        media.pool.kind(superblock) == BlockKind::Log && media.pool.state(superblock) == BlockState::Erasing
    }

    /// Names that are not final are counted anew.
    pub(super) fn count_open(&mut self, media: &Media, open: impl Fn(u32) -> u32) {
        self.nothing_settled_at.set(None);
        for (superblock, count) in &mut self.blocks {
            assert_eq!(media.pool.kind(*superblock), BlockKind::Log, "block {superblock} is one of the log");
            *count = open(*superblock);
        }
    }

    // ---- copies ----

    /// The map pages of names in log blocks are told anew.
    pub(super) fn count_copies(&mut self, media: &Media, page_of: impl Fn(Lpn) -> u32) {
        let mut copies = std::mem::take(&mut self.copies);
        copies.clear();
        self.each_copy(media, |lpn, _| {
            copies.insert(page_of(lpn));
        });
        self.copies = copies;
    }

    /// Whether an oLPN of a map page is in a log block.
    pub(super) fn has_copies_of(&self, page: u32) -> bool {
        self.copies.contains(&page)
    }

    /// Those oLPNs of a range that are in log blocks, which are trimmed: the erase of these blocks waits for that to be on flash.
    pub(super) fn trim_copies(&self, media: &mut Media, range: Range<Lpn>) -> Vec<Lpn> {
        let (mut copies, mut blocks) = (BTreeSet::new(), BTreeSet::new());
        self.each_copy(media, |lpn, block| {
            // Of a block that was retired meanwhile nothing is left.
            if range.contains(&lpn) && media.pool.kind_of(block) == BlockKind::Log {
                copies.insert(lpn);
                blocks.insert(block);
            }
        });
        blocks.into_iter().for_each(|block| media.pool.set_trimmed(block));
        copies.into_iter().collect()
    }

    fn each_copy(&self, media: &Media, mut each: impl FnMut(Lpn, BlockId)) {
        let erasing = self.erasing.iter().filter(|superblock| Rwlb::is_erasing(media, **superblock));
        for superblock in self.blocks.keys().chain(erasing) {
            for block in media.pool.superblocks.members(*superblock) {
                // Programs in flight are there as well: their OOB areas are in RAM.
                let first = media.unit_at(Place { block, page: 0 });
                for unit in UnitId::each(first..first + media.pages_per_block() * media.units_per_page) {
                    let lpn = media.flash.oob.lpn(unit);
                    let origin = media.flash.oob.origin(unit);
                    if lpn != Lpn::NONE && origin.lpn != Lpn::NONE {
                        each(origin.lpn, block);
                    }
                }
            }
        }
    }

    // ---- the rest ----

    pub(super) fn memory(&self, map_pages: u32) -> Vec<(&'static str, u64)> {
        let units = u64::from(self.units());
        vec![
            ("log_table_bytes", units * TLPN_BYTES),
            // Of two rounds; and a bit for each map page.
            ("log_names_bytes", 2 * units * NAME_BYTES + u64::from(map_pages).div_ceil(8)),
        ]
    }

    pub(super) fn check(&self, media: &Media, data: &PageFtl) -> Vec<Check> {
        let tlpns = (self.first.0..).zip(&self.held);
        let other = tlpns.filter(|(lpn, origin)| {
            let known = data.unit_of(Lpn(*lpn)).map_or(EMPTY, |unit| media.flash.oob.origin(unit));
            known != **origin
        });
        // A drive that takes no more writes may have some in its write buffer.
        let wrong = (other.count() as u32).saturating_sub(self.promised);
        // Collection may have emptied one, and it was written anew for something else.
        let is_log = |superblock: &u32| media.pool.kind(*superblock) == BlockKind::Log;
        let counted = self.blocks.iter().filter(|(superblock, open)| {
            if !is_log(superblock) {
                return false;
            }
            let current = data.current_units(media, **superblock, 0);
            let names = current.filter(|(_, unit)| self.is_tlpn(media.flash.oob.lpn(*unit))).count() as u32;
            names != **open
        });
        let miscounted = counted.count();
        vec![
            Check {
                name: "log_table_equals_map",
                passed: wrong == 0,
                detail: format!("{wrong} of {} tLPNs are known to hold something else than the map says", self.units()),
            },
            Check {
                name: "open_names_counted_in_log_blocks",
                passed: miscounted == 0,
                detail: format!("{miscounted} of {} log blocks have other names than are counted", self.blocks.len()),
            },
        ]
    }

    /// Refuses a restored log that is not one of this drive. Whether tLPNs hold what the map says is for [`Rwlb::check`] to say.
    pub(super) fn accept(&mut self, media: &mut Media) -> io::Result<()> {
        let known = self.number >= FIRST_NUMBER && self.number.is_multiple_of(2) && self.number < 1 << 31;
        if self.last_group >= media.pool.groups() || !known {
            return Err(damaged("the log's next group or number is not one of the drive's"));
        }
        self.set_number(media, self.number);
        let fits = |(first, units): (&u32, &Vec<u32>)| {
            let end = u64::from(*first) + units.len() as u64;
            !units.is_empty() && end <= u64::from(self.units()) && units.iter().all(|lpn| *lpn < self.user_units())
        };
        if !self.headers.iter().all(fits) {
            return Err(damaged("a header is behind the log's end, or of a unit that is not the user's"));
        }
        (self.looked_at, self.nothing_settled_at) = (None, Cell::new(None));
        for epoch in &mut self.due {
            let superblock = epoch.superblock;
            if superblock >= media.pool.superblocks_count() || !media.pool.superblocks.is_whole(superblock) {
                return Err(damaged("a settled log block is not one of the drive's"));
            }
            *epoch = EraseEpoch::of(media, superblock);
        }
        Ok(())
    }
}

saved!(Rwlb: number, last_group, held[..], headers, due);
