//! Programs of map pages and erases of map blocks fail until the spares are used up, with power cuts in between.

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::Options;
use ssdlab_flash::{BlockId, Cause, Contents, FaultKind, OpKind, ScriptedFault};
use ssdlab_torture::crash_harness::CrashHarness;
use ssdlab_torture::{Totals, run};

use crate::cached_map::{self, VARIANTS, Variant, drive};

/// Rounds after which a drive that loses a block in every few must have none to spare.
const ROUNDS: usize = 2000;

/// What failed of the map.
#[derive(Debug, Default)]
struct Failed {
    programs: u64,
    erases: u64,
}

struct Case {
    harness: CrashHarness,
    rng: Rng,
    commands: u64,
    failed: Failed,
}

impl Case {
    fn new(variant: Variant, seed: u64) -> Case {
        let mut config = drive(variant);
        // One that never strikes: the drive is one of which others may be asked.
        config.flash.faults.script = vec![ScriptedFault { kind: FaultKind::Program, block: BlockId(0), nth: u32::MAX }];
        let mut harness = CrashHarness::new(&config, Options { seed, contents: Contents::Stamps });
        harness.oracle.faulty = true;
        harness.oracle.may_end_read_only = true;
        let mut case = Case { harness, rng: rng(seed, "commands"), commands: 0, failed: Failed::default() };
        for first in (0..case.sectors()).step_by(32) {
            case.run(Op::Write, first, 32);
        }
        case
    }

    fn sectors(&mut self) -> u64 {
        self.harness.drive().user_sectors()
    }

    fn run(&mut self, op: Op, sector: u64, sectors: u64) {
        self.commands += 1;
        let tag = self.commands as u32;
        self.harness.submit(&Request { tag, ..Request::new(op, sector, sectors) }, self.commands);
        self.harness.drain();
    }

    fn somewhere(&mut self) -> u64 {
        let sectors = self.sectors();
        self.rng.random_range(0..sectors - 4)
    }

    /// Faults that have struck, and operations of the map.
    fn seen(&mut self, kind: OpKind) -> (usize, u64) {
        let drive = self.harness.drive();
        (drive.faults_struck().len(), drive.counters().flash.get(kind, Cause::Mapping))
    }

    /// Writes, and a flush of a trim of which the first program fails: without a buffer that is a map page's.
    fn round(&mut self) {
        for _ in 0..self.rng.random_range(1..4) {
            let (first, sectors) = (self.somewhere(), self.rng.random_range(1..4));
            self.run(Op::Write, first, sectors);
        }
        let first = self.somewhere();
        self.run(Op::Trim, first, 2);
        let (struck, programs) = self.seen(OpKind::Program);
        self.ask(FaultKind::Program);
        self.run(Op::Flush, 0, 0);
        let (struck_since, programs_since) = self.seen(OpKind::Program);
        // Nothing else was programmed for it, so it was a map page that failed.
        self.failed.programs += u64::from(struck_since > struck && programs_since > programs);
    }

    /// Overwrites until a map block's erase fails, for a while.
    fn fail_an_erase(&mut self) {
        for _ in 0..40 {
            self.ask(FaultKind::Erase);
            let (struck, erases) = self.seen(OpKind::Erase);
            let first = self.somewhere();
            self.run(Op::Write, first, 4);
            let (struck_since, erases_since) = self.seen(OpKind::Erase);
            if struck_since > struck {
                self.failed.erases += u64::from(erases_since > erases);
                return;
            }
        }
    }

    /// The next operation of a kind fails, whatever it is of.
    fn ask(&mut self, kind: FaultKind) {
        let asked = self.harness.drive().faults_asked().iter().any(|(other, _)| *other == kind);
        if !asked {
            self.harness.drive().fail_next(kind, None);
        }
    }

    fn cut(&mut self) {
        self.harness.cut_now();
        self.harness.compare();
    }

    fn until_read_only(mut self, name: &str) -> Failed {
        for round in 0..ROUNDS {
            if self.harness.drive().is_read_only() {
                break;
            }
            if round % 2 == 0 {
                self.round();
            } else {
                self.fail_an_erase();
            }
            if self.rng.random_bool(0.3) {
                self.cut();
            }
        }
        assert!(self.harness.drive().is_read_only(), "{name}: {:?}", self.failed);
        self.cut();
        self.failed
    }
}

#[test]
fn a_drive_whose_map_blocks_fail_loses_nothing_and_ends_read_only() {
    for variant in VARIANTS {
        let mut all = Failed::default();
        for seed in 1..=20 {
            let failed = Case::new(variant, seed).until_read_only(variant.name);
            all.programs += failed.programs;
            all.erases += failed.erases;
        }
        println!("{}: {all:?}", variant.name);
        // Behind a buffer the first program of a flush is one of data.
        let programs = if variant.buffer == "none" { all.programs } else { u64::MAX };
        assert!(programs >= 100 && all.erases >= 100, "{}: {all:?}", variant.name);
    }
}

/// Collection of map blocks chose a victim for whose map pages there was room. Programs failed then, each took the rest
/// of its block, and the pages were gone before the victim was empty: a panic. Nothing told it that others of the
/// blocks set aside would give nothing back, either.
#[test]
fn a_drive_whose_programs_fail_at_a_rate_goes_on_until_it_has_no_spare_block() {
    let drives = VARIANTS.into_iter().flat_map(|variant| [(variant, 8, 300, "dftl"), (variant, 16, 150, "dftl")]);
    let mut totals = Totals::default();
    for (variant, pages_per_block, blocks, design) in drives.chain([(VARIANTS[0], 8, 300, "shrd")]) {
        for seed in 1..=8 {
            let (mut case, _) = cached_map::case(variant, seed, 3000);
            let config = &mut case.drive;
            config.flash.geometry.pages_per_block = pages_per_block;
            config.flash.geometry.blocks_per_plane = blocks;
            config.flash.faults.program_failure = 0.1;
            config.flash.faults.erase_failure = if seed % 2 == 0 { 0.02 } else { 0.0 };
            config.ftl.design = design.to_string();
            if design == "shrd" {
                config.ftl.own.set("rwlb", 4096_u64);
            }
            let found = run(&case, &mut totals);
            assert!(
                found.is_ok(),
                "{}, {pages_per_block} pages a block, {design}, seed {seed}: {found:?}",
                variant.name
            );
        }
    }
    let failed = totals.faults[FaultKind::Program as usize];
    println!("{} cases, {} read-only at their end, {failed} programs failed", totals.cases, totals.read_only);
    // Each failed program takes a block: none of these drives ends before it has lost its spare ones.
    assert!(failed > 50 * totals.cases, "{failed} programs failed of {} drives", totals.cases);
}
