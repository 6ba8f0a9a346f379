//! Large flat arrays of plain numbers, one entry a page or a unit.
//!
//! The memory comes from the kernel as zeroes, is not touched before it is used, and asks for huge pages: a drive's
//! tables are read at random, and with small pages most of those reads would miss the TLB as well as the cache.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

/// Bytes of all arrays of this process.
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// Bytes of address space that all [`HugeArray`]s of this process take together.
pub fn mapped_bytes() -> u64 {
    MAPPED.load(Ordering::Relaxed)
}

/// A fixed-size array of `T`, all zero bytes at first.
pub struct HugeArray<T> {
    map: MmapMut,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: Pod> HugeArray<T> {
    /// An array of `len` entries.
    ///
    /// # Panics
    /// When the machine has no address space left for it.
    pub fn new(len: usize) -> HugeArray<T> {
        let bytes = len.checked_mul(size_of::<T>()).expect("array size fits in memory");
        // Not reserved: a process that takes more than the machine has was asked for it (`--memory`), and may not touch
        // it all.
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon();
        let map = map.expect("address space for the drive's tables");
        MAPPED.fetch_add(bytes as u64, Ordering::Relaxed);
        #[cfg(target_os = "linux")]
        if bytes >= 1 << 21 {
            // Only advice: a kernel without huge pages serves small ones.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        HugeArray { map, len, kind: PhantomData }
    }

    /// All entries.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        debug_assert_eq!(self.map.len(), self.len * size_of::<T>(), "an array of {} entries", self.len);
        // The map is as long as the entries, to the byte.
        bytemuck::cast_slice(&self.map)
    }

    /// All entries, to change.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.map)
    }

    /// One entry.
    #[inline(always)]
    pub fn get(&self, index: usize) -> T {
        self.as_slice()[index]
    }

    /// Change one entry.
    #[inline(always)]
    pub fn set(&mut self, index: usize, value: T) {
        self.as_mut_slice()[index] = value;
    }

    /// How many entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of address space taken.
    pub const fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Bytes that an array of `len` entries takes.
    pub const fn bytes_of(len: u64) -> u64 {
        len.saturating_mul(size_of::<T>() as u64)
    }
}

impl<T> std::fmt::Debug for HugeArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HugeArray of {} entries", self.len)
    }
}

impl<T> Drop for HugeArray<T> {
    fn drop(&mut self) {
        MAPPED.fetch_sub((self.len * size_of::<T>()) as u64, Ordering::Relaxed);
    }
}
