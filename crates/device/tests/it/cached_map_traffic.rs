//! Write amplification of a map of which a part is cached: that of `page`, and map traffic that follows from how often the
//! cache misses.
//!
//! Uniform overwrites of whole pages, without time, on one die. Everything is counted in *accesses*: each page of data that is
//! programmed, by the host or by relocation, needs one of `map_pages` map pages, and makes it dirty. `cached` of them are in
//! the cache, so an access misses with probability `1 - cached / map_pages`.
//!
//! A page leaves the cache `stay = -map_pages * ln(1 - cached / map_pages)` accesses after it was used last: by then as many
//! others were used as fit. It is programmed then, or before: when one leaves, `shared - 1` others share its page of flash,
//! which are the next to leave, so the mean one is programmed `(shared - 1) / 2` misses early; and when `period` accesses
//! have opened a block for each frontier, all dirty pages are programmed. So an access is the last one before a program of
//! its map page unless the page is used again before, which is as likely as `exp(-wait / map_pages)`, where `wait` is the time
//! until it leaves, or until the next flush if that is sooner. Each flush adds a record.
//!
//! Map blocks have an amplification of their own. A map page on flash stays valid until its next program: `map_pages / rate`
//! accesses in the mean, of which the first `delay` surely (it is not used for a while, and then waits to be programmed).
//! The block that is collected is about the oldest, since over-provisioning is plenty: `tau` accesses old, the time in which
//! all its places but those of two free blocks and half of itself were programmed. What is valid then is moved; what was
//! moved before survives with `exp(-tau / map_pages)`. Map pages smaller than a mapping unit share one, which stays valid as long as
//! one of them does.
//!
//! The data has as many blocks as that of the drive with `page` beside it, map blocks come on top.

use rand::RngExt;
use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{Drive, DriveConfig, MapUser, Options, Settings, Status};
use ssdlab_flash::{Cause, Contents, OpKind};

use crate::timing_support::drive;

/// A drive, and its map.
struct Case {
    user_pages: u64,
    pages_per_block: u32,
    /// Blocks for data.
    data_blocks: u32,
    /// Bytes of a mapping unit; a map page has 512.
    unit: u64,
    cached: u64,
    packing: bool,
}

const PAGE: u64 = 4096;
const MAP_PAGE: u64 = 512;

impl Case {
    fn map_pages(&self) -> u64 {
        self.user_pages * (PAGE / self.unit) / (MAP_PAGE / 4)
    }

    /// Map pages that share a page of flash.
    fn shared(&self) -> u64 {
        if self.packing { PAGE / MAP_PAGE } else { 1 }
    }

    /// Map pages that share a mapping unit.
    fn in_unit(&self) -> u64 {
        if self.packing { (self.unit / MAP_PAGE).max(1) } else { 1 }
    }

    /// Blocks that are set aside for the map and the record: twice what they take, and three.
    fn map_blocks(&self) -> u32 {
        let pages = (self.map_pages() + 1).div_ceil(PAGE / self.unit);
        3 + (2 * pages).div_ceil(self.pages_per_block.into()) as u32
    }

    fn config(&self, design: &str) -> DriveConfig {
        let mut config = drive(1, 1, 1);
        config.timed = false;
        config.flash.geometry.pages_per_block = self.pages_per_block;
        config.flash.geometry.blocks_per_plane = self.data_blocks;
        config.user_bytes = self.user_pages * PAGE;
        config.ftl.mapping_unit = self.unit as u32;
        config.ftl.design = design.to_string();
        if design == "dftl" {
            config.flash.geometry.blocks_per_plane += self.map_blocks();
            config.ftl.own = Settings::default()
                .with("map_page", MAP_PAGE)
                .with("map_cache", MAP_PAGE * self.cached)
                .with("map_packing", self.packing);
        }
        config
    }

    /// What is programmed for the map, in pages of flash for each access.
    fn map_programs(&self) -> f64 {
        let (map_pages, cached, shared) = (self.map_pages() as f64, self.cached as f64, self.shared() as f64);
        let period = f64::from(2 * self.pages_per_block);
        let misses = 1.0 - cached / map_pages;
        let stay = -map_pages * misses.ln();
        let leaves = stay - (shared - 1.0) / 2.0 / misses;
        let unused = |accesses: f64| (-accesses / map_pages).exp();
        // Map pages programmed because they leave, and by a flush, for each access.
        let by_eviction = (period - leaves).max(0.0) * unused(leaves) / period;
        let flushed = map_pages * (1.0 - unused(leaves.min(period)));
        let rate = by_eviction + flushed / period;
        let programs = by_eviction / shared + ((flushed / shared).ceil() + 1.0) / period;
        // Collection of map blocks.
        let delay = map_pages / rate - map_pages;
        let places = (f64::from(self.map_blocks()) - 2.5) * f64::from(self.pages_per_block);
        let units_per_page = (PAGE / self.unit) as f64;
        let in_unit = self.in_unit() as f64;
        let mut moved = 0.0;
        for _ in 0..200 {
            let tau = places / (programs + moved);
            // A unit is moved each time that it grows so old again while a page in it is the newest copy.
            let is_needed = |age: f64| 1.0 - (1.0 - unused((age - delay).max(0.0))).powf(in_unit);
            let times: f64 = (1..=50).map(|moves| is_needed(f64::from(moves) * tau)).sum();
            moved = rate / in_unit * times / units_per_page;
        }
        programs + moved
    }
}

struct Measured {
    /// Pages programmed for each write of the host, for data and for the map.
    data: f64,
    map: f64,
    /// Misses for each access of the host's, and of collection's.
    misses: [f64; 2],
    /// Effective over-provisioning as collection found it.
    spare: f64,
}

fn measure(case: &Case, design: &str) -> Measured {
    let options = Options { seed: 1, contents: Contents::Nothing };
    let mut drive = Drive::new(&case.config(design), options).expect("an accepted drive");
    let write = |drive: &mut Drive, page: u64| {
        drive.submit(&Request::new(Op::Write, page * 8, 8));
        let completion = drive.completions().pop().expect("without time it completes at once");
        assert_eq!(completion.status, Status::Success, "page {page}: {:?}", drive.counters());
    };
    (0..case.user_pages).for_each(|page| write(&mut drive, page));
    let mut rng = rng(7, "traffic");
    let writes = 8 * case.user_pages;
    for _ in 0..6 * case.user_pages {
        write(&mut drive, rng.random_range(0..case.user_pages));
    }
    drive.reset_statistics();
    for _ in 0..writes {
        write(&mut drive, rng.random_range(0..case.user_pages));
    }
    assert!(drive.check().iter().all(|check| check.passed));
    let flash = drive.counters().flash;
    let map = flash.get(OpKind::Program, Cause::Mapping);
    let stats = drive.counters().map_cache.unwrap_or_default();
    let ratio = |by: MapUser| 1.0 - stats.by[by as usize].hit_ratio().unwrap_or(1.0);
    Measured {
        data: (flash.total(OpKind::Program) - map) as f64 / writes as f64,
        map: map as f64 / writes as f64,
        misses: [ratio(MapUser::Host), ratio(MapUser::Gc)],
        spare: drive.over_provisioning_at_collection().expect("victims were chosen"),
    }
}

#[test]
fn write_amplification_is_that_of_page_and_the_traffic_of_misses() {
    let case = |pages_per_block, data_blocks, unit, cached, packing| Case {
        user_pages: 16_384,
        pages_per_block,
        data_blocks,
        unit,
        cached,
        packing,
    };
    let cases = [
        case(64, 310, 4096, 4, false),
        case(64, 310, 4096, 12, true),
        case(64, 310, 4096, 16, true),
        case(64, 310, 4096, 64, true),
        case(64, 310, 512, 32, true),
        case(64, 310, 512, 32, false),
        case(64, 360, 512, 256, true),
    ];
    for case in cases {
        let (page, cached) = (measure(&case, "page"), measure(&case, "dftl"));
        let misses = 1.0 - case.cached as f64 / case.map_pages() as f64;
        let expected = page.data * (1.0 + case.map_programs());
        let found = cached.data + cached.map;
        println!(
            "{} of {} map pages, {} to a page, {} blocks of {}: data {:.4} (page {:.4}), map {:.4} (expected {:.4}), WA {found:.4} \
             (expected {expected:.4}), misses {:.4?} (expected {misses:.4})",
            case.cached,
            case.map_pages(),
            case.shared(),
            case.data_blocks,
            case.pages_per_block,
            cached.data,
            page.data,
            cached.map,
            page.data * case.map_programs(),
            cached.misses,
        );
        assert!((cached.data / page.data - 1.0).abs() < 0.01, "{} of data, page {}", cached.data, page.data);
        assert!((found / expected - 1.0).abs() < 0.02, "{found}, expected {expected}");
        assert!(
            (cached.spare - page.spare).abs() < 0.001,
            "over-provisioning of {}, page {}",
            cached.spare,
            page.spare
        );
        assert!((cached.misses[0] / misses - 1.0).abs() < 0.01, "{:?}, expected {misses}", cached.misses);
    }
}
