//! Where the next request of a job begins, and how long it is.

use rand::Rng as _;
use ssdlab_base::SECTOR_BYTES;

use super::super::mode::{Kind, READ, Sizes, TRIM, WRITE};
use super::super::plan::{JobPlan, MapKind};
use super::{JobRun, NOWHERE, TRIES};
use crate::draw::{Permutation, below};

impl JobRun {
    /// First byte and length of the next transfer; `None` at the end of the pass. A length of one size may reach beyond the end
    /// of the region, as in fio.
    #[inline]
    pub(super) fn place(&mut self, direction: usize) -> Option<(u64, u64)> {
        let mode = self.plan.settings.mode;
        if mode.kind == Kind::TrimThenWrite && direction == WRITE {
            return Some((self.last_start[TRIM], self.last_end[TRIM] - self.last_start[TRIM]));
        }
        if !mode.random {
            return self.sequential(direction);
        }
        self.until_random -= 1;
        if self.until_random > 0 {
            return if self.plan.settings.identical {
                self.again(direction)
            } else {
                self.sequential_or_random(direction)
            };
        }
        self.until_random = self.plan.settings.sequence_length;
        let percent = self.plan.settings.percent_random[direction];
        if percent < 100 && below(&mut self.rng, 100) >= u64::from(percent) {
            return self.sequential_or_random(direction);
        }
        self.random(direction)
    }

    fn sequential_or_random(&mut self, direction: usize) -> Option<(u64, u64)> {
        if self.last_end[direction] < self.plan.capacity { self.sequential(direction) } else { self.random(direction) }
    }

    /// The offset of the last transfer in this direction.
    fn again(&mut self, direction: usize) -> Option<(u64, u64)> {
        let last = self.last_start[direction];
        let start = if last == NOWHERE { self.base } else { last };
        self.draw_size(direction, false, start).map(|length| (start, length))
    }

    #[inline]
    fn random(&mut self, direction: usize) -> Option<(u64, u64)> {
        if let Some(picker) = &self.plan.pickers[direction] {
            let start = self.base + picker.pick(&mut self.rng) * self.plan.align[direction];
            return self.draw_size(direction, true, start).map(|length| (start, length));
        }
        let time_based = self.plan.settings.time_based;
        match self.plan.map {
            MapKind::Permutation(blocks) => {
                if self.pass_position == blocks {
                    if !time_based {
                        return None;
                    }
                    self.new_order();
                }
                let permutation = self.permutation.as_ref().expect("a pass was begun");
                let size = self.plan.settings.sizes[direction].min();
                let start = self.base + permutation.at(self.pass_position) * size;
                self.pass_position += 1;
                Some((start, size))
            }
            MapKind::Bitmap { blocks, block_bytes } => {
                let map = self.map.as_mut().expect("a bitmap was built with the job");
                if map.is_full() {
                    if !time_based {
                        return None;
                    }
                    map.clear();
                }
                let block =
                    map.next_free(below(&mut self.rng, blocks)).expect("a map that is not full has a free block");
                let start = self.base + block * block_bytes;
                let length = self.draw_size(direction, true, start)?;
                // As in fio, a request is cut short where the next block was covered before.
                let map = self.map.as_mut().expect("a bitmap was built with the job");
                let marked = map.mark(block, length.div_ceil(block_bytes));
                Some((start, length.min(marked * block_bytes)))
            }
            MapKind::None => unreachable!("a random job without a map has a picker for each of its directions"),
        }
    }

    /// A new order, as fio has it when `randseed` is given: with one order for all passes, garbage collection would
    /// find its blocks emptied in the order they were filled.
    pub(super) fn new_order(&mut self) {
        if let MapKind::Permutation(blocks) = self.plan.map {
            let rng = &mut self.rng;
            self.permutation = Some(Permutation::new(blocks, || rng.next_u64()));
        }
        self.pass_position = 0;
    }

    /// The place behind the last transfer in this direction, by fio's arithmetic: a step beyond the end of the drive goes on
    /// from the start, one beyond the end of a smaller region ends the pass.
    fn sequential(&mut self, direction: usize) -> Option<(u64, u64)> {
        let JobPlan { offset, region, capacity, ref settings, .. } = self.plan;
        let hole = settings.sequence_hole;
        if settings.time_based && self.last_end[direction] >= offset + region {
            self.last_end[direction] = self.base;
        }
        let mut last = self.last_end[direction];
        if last >= capacity {
            return None;
        }
        let end = region.min(capacity);
        if last == self.base && last > 0 && hole < 0 {
            last = end;
        }
        let mut within = last.wrapping_sub(self.base);
        if within > 0 && hole != 0 {
            within = within.wrapping_add_signed(hole);
            if within >= capacity {
                within = if hole > 0 { self.base } else { end.wrapping_add_signed(hole) };
            }
        }
        let start = (within < region).then(|| self.base + within).filter(|start| *start < capacity)?;
        self.draw_size(direction, false, start).map(|length| (start, length))
    }

    /// The length of a transfer at byte `start`; `None` where sizes vary and the smallest does not fit into the region.
    #[inline]
    fn draw_size(&mut self, direction: usize, random: bool, start: u64) -> Option<u64> {
        let job = &self.plan.settings;
        let index = if !job.sizes_by_randomness {
            direction
        } else if random {
            WRITE
        } else {
            READ
        };
        let sizes = &job.sizes[index];
        if let Sizes::Fixed(size) = sizes {
            return Some(*size);
        }
        let room = (self.plan.offset + self.plan.region).saturating_sub(start);
        let smallest = sizes.min();
        if smallest > room {
            return None;
        }
        for _ in 0..TRIES {
            let length = match sizes {
                Sizes::Fixed(size) => *size,
                Sizes::Range(low, high) => {
                    let step = if job.unaligned { SECTOR_BYTES } else { *low };
                    // fio's formula: low + high * u, cut to a multiple of the step and to the upper end.
                    ((low + below(&mut self.rng, *high)) / step * step).min(*high)
                }
                Sizes::Split(entries) => {
                    let mut share = below(&mut self.rng, 100) as u32;
                    let drawn = entries.iter().find(|(_, percent)| {
                        let is_drawn = share < *percent;
                        share = share.saturating_sub(*percent);
                        is_drawn
                    });
                    drawn.map_or(smallest, |(size, _)| *size)
                }
            };
            if length <= room {
                return Some(length);
            }
        }
        Some(smallest)
    }
}
