//! Where the sectors of a segment are: lanes, which are channels, ways or planes, and a block of each (section 4, Figure 7).
//!
//! Pages are dealt over the channels first, then over the ways, then over the planes; the next page of each block comes last.

use std::ops::Range;

use ssdlab_base::Divider;
use ssdlab_flash::{Geometry, Lpn};

/// Which parallel units each segment has a block of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Levels {
    /// A block of each channel.
    Channels,
    /// A block of each way of each channel: of each die.
    Ways,
    /// A block of each plane.
    Planes,
}

/// The lanes of a drive, and the generations of its segments.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Blocks of a segment.
    pub(super) lanes: u32,
    pub(super) pages_per_block: u32,
    /// Pages of a segment.
    pub(super) segment_pages: u32,
    pub(super) segments: u32,
    /// Groups of blocks (planes) of a lane follow one another at this distance, so many of them.
    levels: Levels,
    channels: u32,
    ways: u32,
    planes_per_die: u32,
    /// Pages of all segments: the LPN in an OOB area is that of the page and a multiple of this, by the segment's generation.
    units: u32,
    pub(super) generations: u32,
    by_segment_pages: Divider,
    by_lanes: Divider,
}

/// Most generations that OOB areas tell apart.
const MOST_GENERATIONS: u32 = 16;

impl Layout {
    /// For so many units of the user.
    pub(super) fn new(geometry: &Geometry, levels: Levels, user_units: u32) -> Layout {
        let ways = geometry.chips_per_channel * geometry.dies_per_chip;
        let lanes = match levels {
            Levels::Channels => geometry.channels,
            Levels::Ways => geometry.channels * ways,
            Levels::Planes => geometry.planes(),
        };
        let segment_pages = lanes * geometry.pages_per_block;
        let segments = user_units / segment_pages;
        let units = segments.max(1) * segment_pages;
        // One number behind all of them is that of records.
        let generations = ((Lpn::NONE.0 - 16) / units).min(MOST_GENERATIONS);
        Layout {
            lanes,
            pages_per_block: geometry.pages_per_block,
            segment_pages,
            segments,
            levels,
            channels: geometry.channels,
            ways,
            planes_per_die: geometry.planes_per_die,
            units,
            generations,
            by_segment_pages: Divider::new(segment_pages),
            by_lanes: Divider::new(lanes),
        }
    }

    /// The segment of a page, and the page in it.
    #[inline]
    pub(super) const fn split(&self, lpn: Lpn) -> (u32, u32) {
        debug_assert!(lpn.0 < self.units, "a page behind the last segment");
        (self.by_segment_pages.div(lpn.0), self.by_segment_pages.rem(lpn.0))
    }

    /// The lane of a page of a segment, and the page in its block.
    #[inline]
    pub(super) const fn place(&self, page: u32) -> (u32, u32) {
        debug_assert!(page < self.segment_pages, "a page behind the end of its segment");
        (self.by_lanes.rem(page), self.by_lanes.div(page))
    }

    /// The page of a segment that is page `offset` of a lane's block.
    pub(super) const fn page_at(&self, lane: u32, offset: u32) -> u32 {
        offset * self.lanes + lane
    }

    /// Pages of a lane's block, of the first `pages` of a segment.
    pub(super) const fn pages_in_lane(&self, lane: u32, pages: u32) -> u32 {
        (pages + self.lanes - 1 - lane) / self.lanes
    }

    /// Planes of a lane.
    pub(super) fn groups(&self, lane: u32) -> Range<u32> {
        debug_assert!(lane < self.lanes, "lane {lane} of {}", self.lanes);
        let (channel, rest) = (lane % self.channels, lane / self.channels);
        let (way, plane) = (rest % self.ways, rest / self.ways);
        let first = (channel * self.ways + way) * self.planes_per_die;
        match self.levels {
            Levels::Channels => first..first + self.ways * self.planes_per_die,
            Levels::Ways => first..first + self.planes_per_die,
            Levels::Planes => first + plane..first + plane + 1,
        }
    }

    /// The lane of a plane.
    pub(super) const fn lane_of(&self, group: u32) -> u32 {
        let (die, plane) = (group / self.planes_per_die, group % self.planes_per_die);
        let (channel, way) = (die / self.ways, die % self.ways);
        match self.levels {
            Levels::Channels => channel,
            Levels::Ways => way * self.channels + channel,
            Levels::Planes => (plane * self.ways + way) * self.channels + channel,
        }
    }

    /// What the OOB area of a page of a segment has for an LPN.
    pub(super) const fn tagged(&self, segment: u32, page: u32, generation: u32) -> Lpn {
        debug_assert!(generation < self.generations, "a generation that OOB areas do not tell apart");
        debug_assert!(segment < self.segments && page < self.segment_pages, "a page of no segment");
        Lpn(generation * self.units + segment * self.segment_pages + page)
    }

    /// What it has of a record.
    pub(super) const fn record(&self) -> Lpn {
        Lpn(self.generations * self.units)
    }

    /// The reverse of [`Layout::tagged`]: segment, page and generation; `None` for a record and what is no LPN of the design.
    pub(super) fn untagged(&self, lpn: Lpn) -> Option<(u32, u32, u32)> {
        let (generation, lpn) = (lpn.0 / self.units, lpn.0 % self.units);
        (generation < self.generations).then(|| (lpn / self.segment_pages, lpn % self.segment_pages, generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 3,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 8,
        pages_per_block: 5,
        page_bytes: 4096,
        oob_bytes: 64,
    };

    #[test]
    fn lanes_share_the_planes_out_and_pages_go_over_channels_first() {
        for (levels, lanes) in [(Levels::Channels, 3), (Levels::Ways, 6), (Levels::Planes, 12)] {
            let layout = Layout::new(&GEOMETRY, levels, lanes * 5 * 3);
            assert_eq!((layout.lanes, layout.segments, layout.segment_pages), (lanes, 3, lanes * 5), "{levels:?}");
            let mut groups: Vec<u32> = (0..lanes).flat_map(|lane| layout.groups(lane)).collect();
            groups.sort_unstable();
            assert_eq!(groups, (0..12).collect::<Vec<u32>>(), "{levels:?}");
            for lane in 0..lanes {
                assert!(layout.groups(lane).all(|group| layout.lane_of(group) == lane), "{levels:?}: lane {lane}");
                // Two ways of two planes a channel.
                assert_eq!(layout.groups(lane).start / 4, lane % 3, "{levels:?}: the channel of lane {lane}");
                let written: Vec<u32> = (0..lanes * 5).map(|pages| layout.pages_in_lane(lane, pages)).collect();
                let counted =
                    (0..lanes * 5).map(|pages| (0..pages).filter(|page| layout.place(*page).0 == lane).count());
                assert_eq!(written, counted.map(|count| count as u32).collect::<Vec<u32>>(), "{levels:?}: lane {lane}");
            }
            for page in 0..layout.segment_pages {
                let (lane, offset) = layout.place(page);
                assert_eq!(layout.page_at(lane, offset), page);
                let tagged = layout.tagged(2, page, 7);
                assert_eq!(layout.untagged(tagged), Some((2, page, 7)));
            }
            assert_eq!(layout.untagged(layout.record()), None);
        }
    }

    /// Figure 7: four channels, one way, two pages a block; sector 801 is in segment 100, on channel 1, in page 0 of its block.
    #[test]
    fn sector_801_is_where_figure_7_has_it() {
        let geometry = Geometry {
            channels: 4,
            chips_per_channel: 1,
            planes_per_die: 1,
            pages_per_block: 2,
            blocks_per_plane: 128,
            ..GEOMETRY
        };
        let layout = Layout::new(&geometry, Levels::Ways, 8 * 120);
        let (segment, page) = layout.split(Lpn(801));
        assert_eq!((segment, layout.place(page)), (100, (1, 0)));
        assert_eq!(layout.lane_of(1), 1, "plane 1 is that of channel 1");
    }

    /// 1 TB in 4 KB pages leaves 15 generations.
    #[test]
    fn large_drives_tell_generations_apart() {
        let geometry =
            Geometry { channels: 8, chips_per_channel: 4, planes_per_die: 1, pages_per_block: 128, ..GEOMETRY };
        let layout = Layout::new(&geometry, Levels::Ways, 1 << 28);
        assert_eq!((layout.segments, layout.generations), (65_536, 15));
        assert!(layout.record() < Lpn::NONE);
    }
}
