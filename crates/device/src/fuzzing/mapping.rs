//! The page design's map beside an array: what each unit holds, sector for sector.

use ssdlab_flash::{Cause, Contents, Lpn};

use super::{Input, adopt, drive, greedy, options};
use crate::DriveConfig;
use crate::ftl::page::PageFtl;
use crate::ftl::{Found, Ftl, TrimTarget, UnitWrite};
use crate::gc::Gc;
use crate::media::Media;
use crate::recovery_reads::RecoveryReads;
use crate::stats::Check;
use crate::waiter::Waiter;

/// What a unit holds: a stamp a sector, 0 where nothing was written since it was mapped.
type Unit = Option<Vec<u64>>;

/// The map, and the array that it is compared with.
struct Pair {
    config: DriveConfig,
    contents: Contents,
    media: Media,
    ftl: PageFtl,
    gc: Gc,
    units: Vec<Unit>,
    /// Units whose trim is not on flash, and what they held: a power cut may bring that back, and nothing else.
    unsaved: Vec<(Lpn, Vec<u64>)>,
    stamp: u64,
    sectors: usize,
}

/// Writes, trims, relocates and recovers as `bytes` say; every unit is compared with the array after each power cut, and
/// the ones concerned after each operation.
pub fn mapping(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (dies, planes) = (1 + input.below(2), 1 + input.below(2));
    let (blocks, pages) = (8 + input.below(9), 2 + input.below(5));
    let superblock = input.pick(&["none", "die", "drive"]).unwrap_or("none");
    let (page, unit) = input.pick(&[("4k", "4k"), ("8k", "4k"), ("8k", "2k")]).unwrap_or(("4k", "4k"));
    let allocation = input.pick(&["cwdp", "round-robin", "dynamic"]).unwrap_or("cwdp");
    let separate = input.byte() & 1 == 0;
    let contents = input.pick(&[Contents::Stamps, Contents::Nothing]).unwrap_or(Contents::Stamps);
    let ftl = format!(
        "superblock = \"{superblock}\"\nmapping_unit = \"{unit}\"\nallocation = \"{allocation}\"\n\
         separate_gc_frontier = {separate}\n"
    );
    let Some(config) = drive([1, dies, planes, blocks, pages], page, false, &ftl, "") else { return };
    let mut pair = Pair {
        contents,
        media: Media::new(&config, options(contents)),
        ftl: PageFtl::new(&config),
        gc: greedy(&config),
        units: vec![None; config.user_units() as usize],
        unsaved: Vec::new(),
        stamp: 0,
        sectors: config.ftl.mapping_unit as usize / 512,
        config,
    };
    if pair.units.is_empty() {
        return;
    }
    while input.goes_on() {
        pair.step(&mut input);
    }
    pair.compare_all();
}

impl Pair {
    fn step(&mut self, input: &mut Input<'_>) {
        let lpn = Lpn(input.below(self.units.len() as u32));
        match input.below(16) {
            0..11 => self.write(input, lpn),
            11 | 12 => self.trim(input, lpn),
            13 => self.save_trims(),
            14 => {
                for group in 0..self.media.pool.groups() {
                    self.gc.pump(&mut self.media, &mut self.ftl, group);
                }
                self.collect();
            }
            _ if input.byte() < 48 => self.cut(),
            _ => self.compare(lpn),
        }
    }

    /// The unit behind the last.
    fn end(&self) -> Lpn {
        Lpn(self.units.len() as u32)
    }

    /// Collection in all groups of which a block was opened, as the drive has it after each operation.
    fn collect(&mut self) {
        while let Some(group) = self.media.wakes.groups.pop() {
            self.gc.pump(&mut self.media, &mut self.ftl, group);
        }
        assert!(self.media.wakes.erasable.is_empty(), "nothing is pinned where nothing takes time");
        // Where collection saved trims before it erased.
        if self.ftl.trims_pending() == 0 {
            self.unsaved.clear();
        }
    }

    fn write(&mut self, input: &mut Input<'_>, lpn: Lpn) {
        let full = u64::MAX >> (64 - self.sectors);
        let mask = match input.byte() & 3 {
            0 => (u64::from(input.byte()) & full).max(1),
            _ => full,
        };
        // Units that share a page are written together.
        let most = self.media.units_per_page.min(1 + input.below(4));
        let end = (lpn + most).min(self.end());
        let together = Lpn::each(lpn..end).take_while(|other| *other == lpn || self.ftl.share_page(lpn, *other));
        let lpns: Vec<Lpn> = together.collect();
        self.stamp += 1;
        let sector_data: Vec<u8> = match self.contents {
            Contents::Nothing => Vec::new(),
            _ => (0..self.sectors as u64).flat_map(|sector| (self.stamp << 8 | sector).to_le_bytes()).collect(),
        };
        let units: Vec<UnitWrite<'_>> = lpns
            .iter()
            .map(|lpn| UnitWrite { lpn: *lpn, mask, sector_data: &sector_data, expendable: false })
            .collect();
        let stream = u16::from(input.byte() & 1);
        if self.ftl.write(&mut self.media, &units, stream, Cause::Host, Waiter::None).is_err() {
            // Refused, it changed nothing.
            lpns.iter().for_each(|lpn| self.compare(*lpn));
            return;
        }
        for lpn in &lpns {
            let held = self.units[lpn.index()].get_or_insert_with(|| vec![0; self.sectors]);
            for sector in (0..self.sectors).filter(|sector| mask >> sector & 1 != 0) {
                held[sector] = self.stamp << 8 | sector as u64;
            }
        }
        // What is on flash now is newer than what was trimmed.
        self.unsaved.retain(|(unit, _)| !lpns.contains(unit));
        lpns.iter().for_each(|lpn| self.compare(*lpn));
        self.collect();
    }

    fn trim(&mut self, input: &mut Input<'_>, first: Lpn) {
        let end = (first + 1 + input.below(24)).min(self.end());
        let mapped = Lpn::each(first..end).filter(|lpn| self.units[lpn.index()].is_some()).count() as u64;
        let trimmed = self.ftl.trim(&mut self.media, first, end);
        assert_eq!(trimmed, mapped, "units {first} to {end} that held data");
        for lpn in Lpn::each(first..end) {
            if let Some(held) = self.units[lpn.index()].take() {
                self.unsaved.push((lpn, held));
            }
        }
        self.compare(first);
    }

    fn save_trims(&mut self) {
        if self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None).is_ok() {
            assert_eq!(self.ftl.trims_pending(), 0, "all trims are on flash");
            self.unsaved.clear();
        }
        self.collect();
    }

    /// The power goes and comes back.
    fn cut(&mut self) {
        let (config, options) = (self.config.clone(), options(self.contents));
        let fresh = Media::new(&config, options);
        let mut flash = std::mem::replace(&mut self.media, fresh).flash;
        flash.power_cut(ssdlab_base::Nanos::ZERO);
        self.media = Media::over(&config, options, flash);
        self.ftl = PageFtl::new(&config);
        self.gc = greedy(&config);
        self.media.pool.forget();
        let mut reads = RecoveryReads::new(&self.media.flash, &config.flash.timing);
        self.ftl.recover(&mut self.media, &mut reads);
        adopt(&mut self.media);
        for (lpn, held) in std::mem::take(&mut self.unsaved) {
            // The newest of what it held, or nothing.
            if self.ftl.find(lpn) != Found::Unmapped {
                self.units[lpn.index()] = Some(held);
            }
        }
        self.compare_all();
        for group in 0..self.media.pool.groups() {
            self.gc.pump(&mut self.media, &mut self.ftl, group);
        }
        self.collect();
    }

    fn compare(&self, lpn: Lpn) {
        match (self.ftl.find(lpn), &self.units[lpn.index()]) {
            (Found::Unmapped, None) => {}
            (Found::At { unit }, Some(held)) => {
                let place = self.media.place_of(unit);
                assert!(
                    self.media.flash.is_written(place.block, place.page),
                    "unit {lpn} is at {place:?}, not written"
                );
                assert_eq!(self.media.flash.oob.lpn(unit), lpn, "the owner of unit {unit}");
                if self.contents == Contents::Nothing {
                    return;
                }
                let mut sector_data = vec![0; self.sectors * 8];
                assert!(self.media.flash.store.read(unit, 0, &mut sector_data), "unit {lpn} is whole");
                let (stamps, _) = sector_data.as_chunks::<8>();
                let found: Vec<u64> = stamps.iter().map(|stamp| u64::from_le_bytes(*stamp)).collect();
                assert_eq!(found, *held, "what unit {lpn} holds");
            }
            (found, held) => panic!("unit {lpn} is {found:?}, and holds {held:?}"),
        }
    }

    fn compare_all(&self) {
        Lpn::each(Lpn(0)..self.end()).for_each(|lpn| self.compare(lpn));
        for Check { name, passed: held, detail } in self.ftl.check(&self.media) {
            assert!(held, "{name}: {detail}");
        }
        for group in 0..self.media.pool.groups() {
            self.media.pool.audit(group);
        }
    }
}
