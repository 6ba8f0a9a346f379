//! What the pages hold: nothing, a stamp a sector, or all bytes; and the OOB area.

use std::collections::{BTreeSet, VecDeque};

use crate::array::HugeArray;
use crate::blocks::Blocks;
use crate::image::Image;
use crate::records::Records;
use crate::{BlockId, Contents, Geometry, Lpn, Ppn, UnitId};

/// What the mapping units hold, addressed by physical unit: in memory, or in the files of an [`Image`].
pub struct Store {
    per_sector: usize,
    unit_data_bytes: usize,
    kept: Kept,
}

enum Kept {
    Memory(HugeArray<u8>),
    Image(Box<Image>),
}

impl Store {
    pub(crate) fn new(geometry: &Geometry, units_per_page: u32, contents: Contents) -> Store {
        let per_sector = contents.sector_data_bytes();
        let unit_data_bytes = (geometry.page_bytes / units_per_page) as usize / 512 * per_sector;
        let units = geometry.pages() as usize * units_per_page as usize;
        Store { per_sector, unit_data_bytes, kept: Kept::Memory(HugeArray::new(units * unit_data_bytes)) }
    }

    /// Bytes that [`Store::new`] takes.
    pub(crate) fn simulator_bytes(geometry: &Geometry, contents: Contents) -> u64 {
        HugeArray::<u8>::bytes_of(geometry.bytes() / 512 * contents.sector_data_bytes() as u64)
    }

    pub(crate) fn on_image(geometry: &Geometry, units_per_page: u32, image: Image) -> Store {
        let unit_data_bytes = (geometry.page_bytes / units_per_page) as usize;
        Store { per_sector: Contents::Bytes.sector_data_bytes(), unit_data_bytes, kept: Kept::Image(Box::new(image)) }
    }

    /// Bytes kept a sector; 0 when nothing is kept.
    #[inline]
    pub const fn sector_data_bytes(&self) -> usize {
        self.per_sector
    }

    /// Bytes kept a unit.
    #[inline]
    pub const fn unit_data_bytes(&self) -> usize {
        self.unit_data_bytes
    }

    /// The image that keeps the contents, if one does.
    #[inline]
    pub fn image(&self) -> Option<&Image> {
        match &self.kept {
            Kept::Memory(_) => None,
            Kept::Image(image) => Some(image),
        }
    }

    /// Mutable access to the image that keeps the contents, if one does.
    #[inline]
    pub fn image_mut(&mut self) -> Option<&mut Image> {
        match &mut self.kept {
            Kept::Memory(_) => None,
            Kept::Image(image) => Some(image),
        }
    }

    /// Copies the data of a unit's sectors out, from sector `first` of it on, as many as `sector_data` takes. False if what
    /// is kept is damaged: the data means nothing then.
    #[must_use]
    pub fn read(&self, unit: UnitId, first: u64, sector_data: &mut [u8]) -> bool {
        debug_assert!(
            first as usize * self.per_sector + sector_data.len() <= self.unit_data_bytes,
            "{} bytes from sector {first} of unit {unit} on, which has {}",
            sector_data.len(),
            self.unit_data_bytes
        );
        let from = first as usize * self.per_sector;
        match &self.kept {
            Kept::Memory(kept) => {
                let start = unit.index() * self.unit_data_bytes + from;
                sector_data.copy_from_slice(&kept.as_slice()[start..start + sector_data.len()]);
                true
            }
            Kept::Image(image) => image.read(unit, from, sector_data),
        }
    }

    /// Binds data to all sectors of a unit, whose program is still to end.
    pub fn write(&mut self, unit: UnitId, sector_data: &[u8]) {
        assert_eq!(sector_data.len(), self.unit_data_bytes, "all of unit {unit} is written at once");
        match &mut self.kept {
            Kept::Memory(kept) => {
                let start = unit.index() * self.unit_data_bytes;
                kept.as_mut_slice()[start..start + self.unit_data_bytes].copy_from_slice(sector_data);
            }
            Kept::Image(image) => image.write(unit, sector_data),
        }
    }

    /// Binds what a unit holds to another one. False if it is damaged.
    #[must_use]
    pub fn copy(&mut self, from: UnitId, to: UnitId) -> bool {
        debug_assert_ne!(from, to, "a unit goes to another place");
        let bytes = self.unit_data_bytes;
        match &mut self.kept {
            Kept::Memory(kept) => {
                let start = from.index() * bytes;
                kept.as_mut_slice().copy_within(start..start + bytes, to.index() * bytes);
                true
            }
            Kept::Image(image) => image.copy(from, to),
        }
    }
}

/// The out-of-band area of every page: what recovery has to go by.
///
/// A page's OOB holds the LPN of each mapping unit in it and one sequence number. The sequence number is kept as its
/// low 32 bits beside the block's first one.
pub struct Oob {
    pub(crate) lpns: HugeArray<Lpn>,
    pub(crate) sequence_low: HugeArray<u32>,
    pub(crate) block_sequence: Vec<u64>,
    units_per_page: u32,
    pages_per_block: u32,
    /// Contents of metadata units, by physical unit: kept in every mode, since recovery reads them.
    pub(crate) records: Records,
    /// Units whose data was lost on the way here, by physical unit: a flag in a real OOB.
    pub(crate) poisoned: BTreeSet<UnitId>,
    /// Where a design numbers the writes of the host.
    pub(crate) origins: Option<Origins>,
}

/// What the OOB says of a unit beside its LPN, of a design that numbers the writes of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Origin {
    /// The unit that the host wrote under another name for a while; [`Lpn::NONE`] where the LPN is its only one.
    pub lpn: Lpn,
    /// The number of the host's write, which the unit keeps wherever it is moved.
    pub number: u32,
}

/// What a page has that was not written.
const NO_ORIGIN: Origin = Origin { lpn: Lpn::NONE, number: 0 };

pub(crate) struct Origins {
    pub(crate) of: HugeArray<Origin>,
    /// The number of what the host writes now.
    now: u32,
    /// Of the units that are written next.
    given: VecDeque<Origin>,
}

impl Oob {
    pub(crate) fn new(geometry: &Geometry, units_per_page: u32) -> Oob {
        let pages = geometry.pages() as usize;
        Oob {
            lpns: HugeArray::new(pages * units_per_page as usize),
            sequence_low: HugeArray::new(pages),
            block_sequence: vec![0; geometry.blocks() as usize],
            units_per_page,
            pages_per_block: geometry.pages_per_block,
            records: Records::new(geometry.pages_per_block * units_per_page),
            poisoned: BTreeSet::new(),
            origins: None,
        }
    }

    /// Keeps an [`Origin`] with each unit from now on.
    pub fn keep_origins(&mut self) {
        self.origins.get_or_insert_with(|| Origins {
            of: HugeArray::new(self.lpns.len()),
            now: 0,
            given: VecDeque::new(),
        });
    }

    /// Bytes that [`Oob::keep_origins`] takes.
    pub fn origins_bytes(units: u64) -> u64 {
        HugeArray::<Origin>::bytes_of(units)
    }

    /// The origin of a unit.
    ///
    /// # Panics
    /// None are kept.
    #[inline]
    pub fn origin(&self, unit: UnitId) -> Origin {
        self.origins.as_ref().expect("origins are kept").of.get(unit.index())
    }

    /// The number that what the host writes now gets.
    pub fn set_write_number(&mut self, number: u32) {
        if let Some(origins) = &mut self.origins {
            origins.now = number;
        }
    }

    /// The number that what the host writes now gets, where origins are kept.
    pub fn write_number(&self) -> Option<u32> {
        self.origins.as_ref().map(|origins| origins.now)
    }

    /// A unit is written now: under its own LPN, or with the next of the origins that were given.
    #[inline]
    pub fn number_write(&mut self, unit: UnitId) {
        if let Some(origins) = &mut self.origins {
            let own = Origin { lpn: Lpn::NONE, number: origins.now };
            origins.of.as_mut_slice()[unit.index()] = origins.given.pop_front().unwrap_or(own);
        }
    }

    /// The units that are written next have these origins.
    ///
    /// # Panics
    /// None are kept.
    pub fn give_origins(&mut self, given: impl Iterator<Item = Origin>) {
        let origins = self.origins.as_mut().expect("origins are kept");
        assert!(origins.given.is_empty(), "origins were given, and no unit was written");
        origins.given.extend(given);
    }

    /// The map has a unit under another LPN now. The OOB area of a chip has both, the LPN and the origin; which of the two is
    /// current, only the map tells, and recovery does not ask this.
    pub fn rename(&mut self, unit: UnitId, lpn: Lpn) {
        assert!(self.origins.is_some(), "unit {unit} has one name alone");
        self.lpns.as_mut_slice()[unit.index()] = lpn;
    }

    /// An image tells of a unit's origin.
    pub(crate) fn set_origin(&mut self, unit: UnitId, origin: Origin) {
        if let Some(origins) = &mut self.origins {
            origins.of.as_mut_slice()[unit.index()] = origin;
        }
    }

    /// A unit is written anew as it is: it keeps its number.
    pub fn keep_number(&mut self, from: UnitId, to: UnitId) {
        if let Some(origins) = &mut self.origins
            && from != UnitId::NONE
        {
            let of = origins.of.as_mut_slice();
            of[to.index()].number = of[from.index()].number;
        }
    }

    /// The LPN of a unit that was moved is its only name from now on.
    #[inline]
    pub fn has_final_name(&mut self, unit: UnitId) {
        if let Some(origins) = &mut self.origins {
            origins.of.as_mut_slice()[unit.index()].lpn = Lpn::NONE;
        }
    }

    /// Whether origins are kept.
    #[inline]
    pub fn keeps_origins(&self) -> bool {
        self.origins.is_some()
    }

    /// Bytes that [`Oob::new`] takes.
    pub(crate) fn simulator_bytes(geometry: &Geometry, units_per_page: u32) -> u64 {
        let pages = geometry.pages();
        HugeArray::<u32>::bytes_of(pages * u64::from(units_per_page))
            + HugeArray::<u32>::bytes_of(pages)
            + u64::from(geometry.blocks()) * 8
    }

    pub(crate) const fn units_per_page(&self) -> u32 {
        self.units_per_page
    }

    /// Bytes this takes in the simulator.
    pub fn bytes(&self) -> u64 {
        self.lpns.bytes() + self.sequence_low.bytes() + self.block_sequence.len() as u64 * 8
    }

    /// The LPN stored with a physical unit.
    #[inline]
    pub fn lpn(&self, unit: UnitId) -> Lpn {
        self.lpns.get(unit.index())
    }

    /// The LPNs of a run of physical units.
    #[inline]
    pub fn lpns(&self, first: UnitId, count: u32) -> &[Lpn] {
        &self.lpns.as_slice()[first.index()..(first + count).index()]
    }

    /// Writes the OOB of a page at the time its program is decided.
    // Every program comes by here: rare callers must not make a call of it.
    #[inline(always)]
    pub fn write(&mut self, block: BlockId, page: u32, lpns: &[Lpn], sequence: u64) {
        let ppn = Ppn::of(block, page, self.pages_per_block);
        debug_assert!(
            lpns.len() <= self.units_per_page as usize,
            "{} units in a page of {}",
            lpns.len(),
            self.units_per_page
        );
        debug_assert!(
            page == 0 || sequence > self.sequence(block, page - 1),
            "page {page} of block {block} has number {sequence}, the one before it {}",
            self.sequence(block, page.saturating_sub(1))
        );
        if page == 0 {
            self.block_sequence[block.index()] = sequence;
        }
        self.sequence_low.set(ppn.index(), sequence as u32);
        let first = ppn.first_unit(self.units_per_page).index();
        let stored = &mut self.lpns.as_mut_slice()[first..first + self.units_per_page as usize];
        if let ([stored], [lpn]) = (&mut *stored, lpns) {
            *stored = *lpn;
            return;
        }
        stored[..lpns.len()].copy_from_slice(lpns);
        stored[lpns.len()..].fill(Lpn::NONE);
    }

    /// Begins a run of pages with one unit each, numbered from `sequence` on: all LPNs and all low sequence halves, for
    /// the caller to fill in. Only where [`Oob::is_plain`].
    #[inline]
    pub fn begin_run(&mut self, block: BlockId, page: u32, sequence: u64) -> (&mut [Lpn], &mut [u32]) {
        debug_assert!(self.is_plain(), "a run of pages of block {block} would lose what their OOB holds beside LPNs");
        if page == 0 {
            self.block_sequence[block.index()] = sequence;
        }
        (self.lpns.as_mut_slice(), self.sequence_low.as_mut_slice())
    }

    /// Whether nothing but LPNs and sequence numbers is stored.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.records.is_empty() && self.poisoned.is_empty() && self.origins.is_none()
    }

    /// The sequence number of a page.
    #[inline]
    pub fn sequence(&self, block: BlockId, page: u32) -> u64 {
        let base = self.block_sequence[block.index()];
        let low = self.sequence_low.get(Ppn::of(block, page, self.pages_per_block).index());
        base + u64::from(low.wrapping_sub(base as u32))
    }

    /// Whether a page with `sequence` may still go into `block` (its distance to the first must fit in 32 bits).
    #[inline]
    pub fn sequence_fits(&self, block: BlockId, sequence: u64) -> bool {
        debug_assert!(sequence >= self.block_sequence[block.index()], "numbers grow: {sequence} in block {block}");
        sequence - self.block_sequence[block.index()] < u64::from(u32::MAX) - (1 << 20)
    }

    /// Forgets the LPNs and sequence numbers of all pages, which nothing wrote: of a drive that keeps its metadata in its pages.
    /// What pages hold, and which of them fail their ECC, stays.
    pub(crate) fn forget_owners(&mut self, blocks: &Blocks) {
        let units = self.pages_per_block * self.units_per_page;
        for (block, state) in blocks.all().iter().enumerate() {
            let first = UnitId(block as u32 * units);
            let written = self.lpns(first, state.programmed * self.units_per_page);
            assert!(written.iter().all(|lpn| *lpn == Lpn::NONE), "block {block} has LPNs in its OOB, and must not");
        }
        self.lpns.as_mut_slice().fill(Lpn::NONE);
        self.sequence_low.as_mut_slice().fill(0);
        self.block_sequence.fill(0);
    }

    /// Forgets owners, numbers, and marks of lost data.
    pub(crate) fn clear(&mut self) {
        self.lpns.as_mut_slice().fill(Lpn::NONE);
        self.sequence_low.as_mut_slice().fill(0);
        self.block_sequence.fill(0);
        self.poisoned.clear();
    }

    /// What metadata elsewhere says of the next page of a block: the owners of its units, and the number of its program.
    pub fn restore_page(&mut self, block: BlockId, page: u32, lpns: &[Lpn], sequence: u64) {
        let ppn = Ppn::of(block, page, self.pages_per_block);
        if page == 0 {
            self.block_sequence[block.index()] = sequence;
        }
        self.sequence_low.set(ppn.index(), sequence as u32);
        let first = ppn.first_unit(self.units_per_page).index();
        self.lpns.as_mut_slice()[first..first + self.units_per_page as usize].copy_from_slice(lpns);
    }

    /// Whether each of the first pages of a block was programmed behind the one before it, by their numbers.
    pub fn numbers_ascend(&self, block: BlockId, pages: u32) -> bool {
        (1..pages).all(|page| self.sequence(block, page) > self.sequence(block, page - 1))
    }

    /// Nothing is known of a block's pages: whatever is written there next has `sequence` or a higher number.
    pub fn restore_block(&mut self, block: BlockId, sequence: u64) {
        self.block_sequence[block.index()] = sequence;
    }

    /// The words of a metadata unit.
    pub fn record(&self, unit: UnitId) -> Option<&[u64]> {
        self.records.get(unit)
    }

    /// All metadata units with their words, by physical unit.
    pub fn records(&self) -> impl Iterator<Item = (UnitId, std::borrow::Cow<'_, [u64]>)> {
        self.records.iter()
    }

    /// Stores a metadata unit's words.
    pub fn put_record(&mut self, unit: UnitId, words: Box<[u64]>) {
        assert!(!words.is_empty(), "metadata unit {unit} has words");
        self.records.insert(unit, words);
    }

    /// Whether a metadata unit has words that [`Oob::put_record_over`] can change.
    pub fn can_be_put_over(&self, unit: UnitId) -> bool {
        self.records.can_hand_on(unit)
    }

    /// Stores a metadata unit's words: those of `from` with changes in a few places. Until a power cut `from` is not
    /// read any more; after one it has its own words again.
    pub fn put_record_over(&mut self, unit: UnitId, from: UnitId, changes: impl Iterator<Item = (u32, u64)>) {
        self.records.hand_on(from, unit, changes);
    }

    /// A metadata unit's words are not needed any more: a newer copy is on flash. Gives them back, to be used again.
    pub fn drop_record(&mut self, unit: UnitId) -> Option<Box<[u64]>> {
        self.records.remove(unit)
    }

    /// Marks a unit as lost: reading it is an error from now on.
    pub fn poison(&mut self, unit: UnitId) {
        assert!((unit.index()) < self.lpns.len(), "unit {unit} of {} is lost", self.lpns.len());
        self.poisoned.insert(unit);
    }

    /// Whether a unit's data was lost.
    #[inline]
    pub fn is_poisoned(&self, unit: UnitId) -> bool {
        !self.poisoned.is_empty() && self.poisoned.contains(&unit)
    }

    /// What goes with a unit that is moved: its metadata words and its mark of lost data.
    #[inline]
    pub fn carry(&mut self, from: UnitId, to: UnitId) {
        debug_assert_ne!(from, to, "a unit goes to another place");
        if !self.records.is_empty()
            && let Some(words) = self.records.get(from).map(Box::from)
        {
            self.records.insert(to, words);
        }
        if self.is_poisoned(from) {
            self.poisoned.insert(to);
        }
        if let Some(origins) = &mut self.origins {
            let of = origins.of.as_mut_slice();
            of[to.index()] = of[from.index()];
        }
    }

    /// What was bound to pages whose programs never happened is gone with the RAM.
    pub(crate) fn forget_unwritten(&mut self, blocks: &Blocks) {
        let (pages, units) = (self.pages_per_block, self.units_per_page);
        let written = |unit: UnitId| {
            let ppn = unit.page(units);
            ppn % pages < blocks.get(ppn.block(pages)).programmed
        };
        self.records.retain(written);
        self.poisoned.retain(|unit| written(*unit));
        if let Some(origins) = &mut self.origins {
            for (origin, unit) in origins.of.as_mut_slice().iter_mut().zip((0..).map(UnitId)) {
                if !written(unit) {
                    *origin = NO_ORIGIN;
                }
            }
        }
    }

    pub(crate) fn erase(&mut self, block: BlockId) {
        let units = self.pages_per_block * self.units_per_page;
        let first = UnitId(block.0 * units);
        if let Some(origins) = &mut self.origins {
            origins.of.as_mut_slice()[first.index()..(first + units).index()].fill(NO_ORIGIN);
        }
        if self.records.is_empty() && self.poisoned.is_empty() {
            return;
        }
        let last = first + (units - 1);
        self.records.remove_block(block.0);
        self.poisoned.retain(|unit| *unit < first || *unit > last);
    }
}
