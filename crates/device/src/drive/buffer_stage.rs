//! The write buffer, and what is on its way from there to flash.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use ssdlab_base::Nanos;
use ssdlab_flash::Lpn;

use super::destaging::Destager;
use super::read_cache::ReadToKeep;
use crate::buffer::{Slot, WriteBuffer};
use crate::slots::Slots;

/// Pages on their way from the buffer to flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eviction {
    pub(super) sectors: u64,
    pub(super) serial: u64,
    /// A FUA write that waits for exactly this.
    pub(super) command: Option<u32>,
}

/// The write buffer, and what is on its way from there to flash.
#[derive(Default)]
pub(super) struct BufferStage {
    pub(super) buffer: Option<WriteBuffer>,
    pub(super) evictions: Slots<Eviction>,
    /// Evictions issued and not on flash, by serial number from `evictions_base` on.
    pub(super) evicting: VecDeque<bool>,
    pub(super) evictions_base: u64,
    pub(super) leaving_sectors: u64,
    /// Programs that took units out of the buffer since the drive was made.
    pub(super) programs_sent: u64,
    /// Where units leave the buffer before their room is wanted.
    pub(super) destager: Option<Destager>,
    /// Destaging found no space and waits until some is freed.
    pub(super) destage_waits: bool,
    /// Since when writes have been waiting for room.
    pub(super) full_since: Option<Nanos>,
    /// Sectors that all stalled writes wait to bring.
    pub(super) wanted_sectors: u64,
    /// The FTL takes small partial units of a region into one page.
    pub(super) compacts: bool,
    /// Units of the blocks that leave the buffer padded, if they do.
    pub(super) pads: Option<u32>,
    /// By the first unit of a block that left in part: where its padding is to go on. Commands that wait for space send
    /// different blocks in turn, so each block keeps its place.
    pub(super) padded_to: BTreeMap<Lpn, Lpn>,
    /// Units that were to leave the buffer, and wait for their map pages.
    pub(super) awaiting_map: Vec<Lpn>,
    /// The buffer keeps what is read from flash.
    pub(super) caches_reads: bool,
    /// By command: what it fetches from flash, where the buffer keeps reads.
    pub(super) reads_to_keep: FxHashMap<u32, Vec<ReadToKeep>>,
    /// Working space: units that leave, those that leave with one, and the data of a page.
    pub(super) slots: Vec<Slot>,
    pub(super) companions: Vec<Slot>,
    pub(super) scratch: Vec<u8>,
}
