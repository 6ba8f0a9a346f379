//! Pacing: how fast space is collected beside what the host writes into it. Collection in the drive paces each of its groups of
//! blocks, and a host that cleans paces all its segments as one group, with a segment as the block.
//!
//! A decision over a snapshot of one group's space: how many relocations may start now, and how many pages the host may
//! take. It acts on nothing and remembers nothing, so what preconditioning, a restored drive or an idle time leave behind
//! needs no word of its own.
//!
//! The group's *headroom* is what could still be written before a block must be erased: the pages of its free blocks, what
//! is left in its open ones, and of the victim in work as much of a block as has been moved out of it:
//!
//! ```text
//! headroom = free blocks * pages + left in open blocks + pages * moved / valid
//! ```
//!
//! A page of the host takes one page of it, a relocation gives back `(pages - valid) / valid`. So headroom that is kept at
//! a setpoint means `valid / (pages - valid)` relocations for each page of the host, in every group and at any time.
//!
//! Collection without pacing chooses its victims when a block fewer than `gc.free_blocks` is free and the open ones are half
//! full on average. That is the setpoint: victims see the same over-provisioning, and write amplification stays what it
//! was. What is missing to the setpoint is what collection lags behind by; from [`Space::slack`] on the host waits for it, and the
//! setpoint is that much higher.

/// One group's space, in pages.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Pages of a block.
    pub block_pages: u32,
    /// Pages of the host that collection may lag behind before the host is held back.
    pub slack: u32,
    /// Pages that hold nothing: of blocks that are free or whose erase is on its way, and left in open ones.
    pub empty_pages: u32,
    /// Blocks to keep free.
    pub keep_free: u32,
    /// Blocks that are open.
    pub frontiers: u32,
    /// A stream of the host has no block, and may not open one.
    pub host_is_blocked: bool,
    /// Valid pages that the victim had when it was chosen; 0 where none is in work.
    pub victim_valid: u32,
    /// Valid pages that are still in it.
    pub victim_left: u32,
}

impl Space {
    /// What can still be written, with the victim in work in proportion.
    #[must_use]
    pub fn headroom(&self) -> u32 {
        let moved = self.victim_valid.saturating_sub(self.victim_left);
        self.empty_pages
            + (u64::from(self.block_pages) * u64::from(moved)).checked_div(u64::from(self.victim_valid)).unwrap_or(0)
                as u32
    }

    /// Headroom to keep.
    fn setpoint(&self) -> u32 {
        self.keep_free * self.block_pages + self.frontiers * self.block_pages / 2 + self.slack
    }

    /// Pages of the host that collection lags behind by.
    fn lag(&self) -> u32 {
        self.setpoint().saturating_sub(self.headroom())
    }

    /// Relocations that should have been started by now; 0 where collection is abreast of the host.
    #[must_use]
    pub fn owed(&self) -> u32 {
        let lag = self.lag();
        if lag == 0 && !self.host_is_blocked {
            return 0;
        }
        // A victim that is valid from end to end gives nothing: it is to be done with at once.
        let gain = u64::from(self.block_pages.saturating_sub(self.victim_valid).max(1));
        let relocations = (u64::from(lag) * u64::from(self.victim_valid)).div_ceil(gain);
        // A block is to be won as soon as can be; and a victim with nothing valid costs nothing.
        let at_least = if self.host_is_blocked { self.victim_left.max(1) } else { 1 };
        relocations.clamp(at_least.into(), u32::MAX.into()) as u32
    }
}

/// What a group may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Relocations that may start.
    pub relocations: u32,
    /// Pages that the host may take before the group is looked at again; with 0 it waits for a relocation to end.
    pub host_pages: u32,
}

/// The pace of a group with `in_flight` relocations in flight, which may be `most`.
#[must_use]
pub fn pace(space: &Space, in_flight: u32, most: u32) -> Pace {
    let ahead = space.slack.saturating_sub(space.lag());
    // Who waits for a relocation to end needs one that does.
    let host_pages = if in_flight == 0 { ahead.max(1) } else { ahead };
    Pace { relocations: space.owed().min(most.saturating_sub(in_flight)), host_pages }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: u32 = 2;
    const IN_FLIGHT: u32 = 3;

    /// A group that is counted and nothing else: every victim has as many valid pages, relocations take no time.
    struct Group {
        space: Space,
        free_blocks: u32,
        host_left: u32,
        relocation_left: u32,
        in_work: bool,
    }

    impl Group {
        fn new(block_pages: u32, valid: u32) -> Group {
            let space = Space {
                block_pages,
                slack: SLACK,
                empty_pages: 5 * block_pages,
                keep_free: 2,
                frontiers: 2,
                host_is_blocked: false,
                victim_valid: valid,
                victim_left: valid,
            };
            Group { space, free_blocks: 4, host_left: block_pages, relocation_left: 0, in_work: false }
        }

        /// The host takes a page by the rule of the reserve of two blocks.
        fn host_page(&mut self) {
            let space = &mut self.space;
            if self.host_left == 0 {
                let back = if self.in_work { space.block_pages - space.victim_left } else { 0 };
                let room = self.relocation_left + self.free_blocks * space.block_pages + back;
                assert!(room >= 3 * space.block_pages, "the host finds a block: {space:?}");
                self.free_blocks -= 1;
                self.host_left = space.block_pages;
            }
            self.host_left -= 1;
            space.empty_pages -= 1;
        }

        /// Relocates what is owed, and says how many pages that were.
        fn collect(&mut self) -> u32 {
            let mut sum = 0;
            while self.space.owed() > 0 {
                let space = &mut self.space;
                if !self.in_work {
                    (self.in_work, space.victim_left) = (true, space.victim_valid);
                }
                for _ in 0..space.owed().min(space.victim_left) {
                    if self.relocation_left == 0 {
                        assert!(self.free_blocks > 0, "relocation always has a block");
                        self.free_blocks -= 1;
                        self.relocation_left = space.block_pages;
                    }
                    self.relocation_left -= 1;
                    space.empty_pages -= 1;
                    space.victim_left -= 1;
                    sum += 1;
                }
                if space.victim_left == 0 {
                    self.free_blocks += 1;
                    space.empty_pages += space.block_pages;
                    (self.in_work, space.victim_left) = (false, space.victim_valid);
                }
            }
            sum
        }
    }

    #[test]
    fn every_page_of_the_host_takes_its_share_of_relocations_and_the_host_always_finds_a_block() {
        for (pages, valid) in [(192, 157), (128, 100), (256, 211), (128, 64), (128, 120), (64, 20), (192, 0), (8, 6)] {
            let mut group = Group::new(pages, valid);
            let share = f64::from(valid) / f64::from(pages - valid);
            let (mut sum, mut most) = (0, 0);
            for page in 0..400 * pages {
                group.host_page();
                let moved = group.collect();
                // The first blocks are those before the setpoint is reached.
                if page >= 4 * pages {
                    sum += moved;
                    most = most.max(moved);
                    let (headroom, setpoint) = (group.space.headroom(), group.space.setpoint());
                    assert!(headroom >= setpoint, "{valid} of {pages}: headroom {headroom} of {setpoint}");
                    let most = setpoint + pages - valid + 1;
                    assert!(valid == 0 || headroom <= most, "{valid} of {pages}: headroom {headroom} of {setpoint}");
                }
            }
            let mean = f64::from(sum) / f64::from(396 * pages);
            assert!((mean - share).abs() <= 0.01 * share, "{valid} of {pages}: {mean} relocations a page, not {share}");
            let share = share.ceil() as u32 + 1;
            assert!(most <= share, "{valid} of {pages}: {most} relocations for one page, share {share}");
        }
    }

    #[test]
    fn what_is_owed_is_what_brings_the_headroom_back() {
        let mut space = Group::new(192, 160).space;
        space.empty_pages = 3 * 192 + SLACK;
        assert_eq!((space.headroom(), space.setpoint(), space.owed()), (578, 578, 0));
        // 160 / 32 relocations a page.
        space.empty_pages -= 1;
        assert_eq!((space.headroom(), space.owed()), (577, 5));
        // Half of the victim is half a block.
        space.victim_left = 80;
        assert_eq!((space.headroom(), space.owed()), (673, 0));
        // A block that the host waits for is won first.
        space.host_is_blocked = true;
        assert_eq!(space.owed(), 80);
    }

    #[test]
    fn a_host_that_is_too_fast_waits_for_relocations_in_flight_and_for_nothing_else() {
        let mut space = Group::new(192, 160).space;
        space.empty_pages = 3 * 192 + SLACK;
        assert_eq!(pace(&space, 0, IN_FLIGHT), Pace { relocations: 0, host_pages: SLACK });
        space.empty_pages -= 1;
        assert_eq!(pace(&space, 0, IN_FLIGHT), Pace { relocations: 3, host_pages: SLACK - 1 });
        assert_eq!(pace(&space, 2, IN_FLIGHT), Pace { relocations: 1, host_pages: SLACK - 1 });
        space.empty_pages = 3 * 192;
        assert_eq!(pace(&space, 1, IN_FLIGHT), Pace { relocations: 2, host_pages: 0 });
        assert_eq!(pace(&space, 0, IN_FLIGHT).host_pages, 1);
    }

    #[test]
    fn victims_without_anything_valid_or_invalid_are_no_division_by_zero() {
        for valid in [0, 192] {
            let mut space = Group::new(192, valid).space;
            space.empty_pages = 0;
            assert!(space.owed() > 0);
            assert!(pace(&space, 0, IN_FLIGHT).relocations > 0);
        }
    }
}
