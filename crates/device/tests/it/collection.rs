//! Collection where a policy may name any block: it stops when nothing can be gained, and wear levelling moves full blocks.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{
    BROKEN_CONTRACT, Completion, Description, Drive, DriveConfig, Options, PoolView, Status, VictimPolicy,
};
use ssdlab_flash::{Cause, Contents, OpKind};

const BLOCKS: u64 = 64;
const PAGES: u64 = 16;

fn config(timing: &str, gc: &str) -> DriveConfig {
    let text = format!(
        "flash = {{ channels = 1, chips_per_channel = 1, dies_per_chip = 1, planes_per_die = 2, blocks_per_plane = {BLOCKS}, \
         pages_per_block = {PAGES}, page_size = \"4k\", timing = {timing} }}\n\
         capacity = {{ over_provisioning = \"28%\" }}\nftl = {{ design = \"page\" }}\ngc = {{ {gc} }}\n"
    );
    let config = Description::parse(&text, "small").and_then(|description| description.resolve());
    config.expect("a valid description")
}

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

fn drive(timing: &str, gc: &str) -> Drive {
    Drive::new(&config(timing, gc), OPTIONS).expect("an accepted drive")
}

fn figure(drive: &Drive, name: &str) -> u64 {
    drive.design().into_iter().find(|(key, _)| key == name).map_or(0, |(_, value)| value as u64)
}

fn write(drive: &mut Drive, page: u64) {
    let completion = written(drive, page);
    assert_eq!(completion.status, Status::Success, "page {page}");
}

fn written(drive: &mut Drive, page: u64) -> Completion {
    drive.submit(&Request { at: drive.now(), ..Request::new(Op::Write, page * 8, 8) });
    assert!(drive.run_to_completion(Nanos::MAX), "the write of page {page} never ends");
    drive.completions().pop().expect("the write has completed")
}

/// What the drive does by itself, until it does nothing more.
fn rest(drive: &mut Drive) {
    let mut events = 0;
    while let Some(at) = drive.next_event() {
        drive.run_until(at);
        events += 1;
        assert!(events < 1_000_000, "an idle drive goes on for ever");
    }
}

/// Background collection that wants more free blocks than there can be met nothing but full blocks: with FIFO and random
/// victims it would move them round and round.
#[test]
fn background_collection_ends_where_no_block_can_be_won() {
    for victim in ["greedy", "cost-benefit", "fifo", "random", "d-choices"] {
        let gc = format!("victim = \"{victim}\", background_free_blocks = 40, idle_after = \"1ms\"");
        let mut drive = drive("\"slc\"", &gc);
        let pages = drive.user_sectors() / 8;
        (0..pages).for_each(|page| write(&mut drive, page));
        rest(&mut drive);
        let programs = |drive: &Drive| drive.counters().flash.total(OpKind::Program);
        assert_eq!(programs(&drive), pages, "{victim}: every closed block is full, and none is moved");

        // A block's worth of stale pages, one in each of many blocks: now there is something to win, and then no more.
        (0..4 * PAGES).for_each(|index| write(&mut drive, index * 7 % pages));
        rest(&mut drive);
        let collected = programs(&drive) - pages - 4 * PAGES;
        assert!(collected > 0, "{victim}: the stale pages are worth a move");
        let settled = programs(&drive);
        let idle = drive.now() + Nanos::from_ms(1000);
        drive.run_until(idle);
        rest(&mut drive);
        assert_eq!(programs(&drive), settled, "{victim}: idle time without writes moves nothing more");
        assert!(drive.check().iter().all(|check| check.passed));
    }
}

/// With the default `gc.free_blocks`, static wear levelling waited for more free blocks than collection ever leaves: it
/// never moved anything.
#[test]
fn static_wear_levelling_moves_cold_data_at_every_threshold_of_collection() {
    for (free_blocks, victim) in [(2, "greedy"), (3, "greedy"), (4, "greedy"), (3, "d-choices")] {
        let wear = |threshold: u32| {
            let gc = format!("victim = \"{victim}\", free_blocks = {free_blocks}, static_wear_threshold = {threshold}");
            let mut drive = drive("\"none\"", &gc);
            let pages = drive.user_sectors() / 8;
            (0..pages).for_each(|page| write(&mut drive, page));
            let mut rng = rng(5, "wear");
            // A tenth of the pages is written, the rest never again.
            (0..400 * pages / 10).for_each(|_| write(&mut drive, rng.random_range(0..pages / 10)));
            assert!(drive.check().iter().all(|check| check.passed));
            (drive.wear(), figure(&drive, "victims_wear_levelling"))
        };
        let (worn, moved) = wear(0);
        assert_eq!(moved, 0);
        let (levelled, moved) = wear(8);
        assert!(moved > 0, "free_blocks = {free_blocks}, {victim}");
        assert!(
            levelled.max - levelled.min < 40 && worn.max - worn.min > 2 * (levelled.max - levelled.min),
            "free_blocks = {free_blocks}, {victim}: {levelled:?} against {worn:?}"
        );
    }
}

/// Every erase is booked under what its block was emptied for: as many as there were victims of each kind.
#[test]
fn erases_are_booked_under_what_the_block_was_emptied_for() {
    for timing in ["\"none\"", "{ preset = \"slc\" }"] {
        let mut drive = drive(timing, "static_wear_threshold = 2");
        let pages = drive.user_sectors() / 8;
        // All of it once, and then a few pages over and over: the rest grows cold.
        for page in (0..pages).chain((0..20_000).map(|number| number % 8)) {
            write(&mut drive, page);
        }
        while let Some(at) = drive.next_event() {
            drive.run_until(at);
        }
        let counters = drive.counters();
        let [foreground, background, levelling] = counters.victims;
        assert!(levelling > 20 && foreground > 200, "{:?}", counters.victims);
        assert_eq!(counters.flash.get(OpKind::Erase, Cause::WearLevelling), levelling);
        assert_eq!(counters.flash.get(OpKind::Erase, Cause::Gc), foreground + background);
    }
}

/// A policy that names the first block of a kind, or one beyond the plane, or none.
#[derive(Clone, Copy, Debug)]
enum Bad {
    NotClosed,
    Beyond,
    None,
}

impl VictimPolicy for Bad {
    fn name(&self) -> &'static str {
        "bad"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        match self {
            Bad::NotClosed => (0..pool.blocks()).find(|block| !pool.is_closed(*block)),
            Bad::Beyond => Some(u32::MAX),
            Bad::None => None,
        }
    }
}

/// Timed and not, with collection at the host's pace and at a threshold.
fn drives_of(policy: Bad) -> impl Iterator<Item = Drive> {
    let kinds =
        ["\"slc\"", "\"none\""].into_iter().flat_map(|timing| ["proportional", "off"].map(|pacing| (timing, pacing)));
    kinds.map(move |(timing, pacing)| {
        let config = config(timing, &format!("pacing = \"{pacing}\""));
        Drive::with_victim(&config, OPTIONS, Box::new(policy)).expect("an accepted drive")
    })
}

#[test]
fn a_policy_that_chooses_no_victim_of_its_plane_is_told_its_contract() {
    for (policy, returned) in
        [(Bad::NotClosed, "which is "), (Bad::Beyond, "block 4294967295 of 64, which is not there")]
    {
        for mut drive in drives_of(policy) {
            let pages = drive.user_sectors() / 8;
            let run = || (0..4 * pages).for_each(|index| write(&mut drive, index % pages));
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("a wrong choice");
            let said = panic.downcast_ref::<String>().expect("a sentence");
            let head = format!("the victim policy bad {BROKEN_CONTRACT}VictimPolicy::choose: it returned block ");
            assert!(said.starts_with(&head), "{said}");
            assert!(said.contains(returned) && said.contains("allowed are") && said.contains("is_closed"), "{said}");
        }
    }
}

#[test]
fn a_drive_whose_policy_chooses_nothing_becomes_read_only_and_says_why() {
    for mut drive in drives_of(Bad::None) {
        let pages = drive.user_sectors() / 8;
        let refused = (0..4 * pages).find(|index| written(&mut drive, index % pages).status == Status::ReadOnly);
        assert!(refused.is_some(), "writes go on without collection");
        let reason = drive.read_only_reason().expect("a read-only drive");
        let blocks = reason.strip_prefix("the victim policy bad chose no block although ").expect(&reason);
        let blocks: u64 = blocks.strip_suffix(" blocks hold invalid pages").expect(&reason).parse().expect(&reason);
        assert!((1..=2 * BLOCKS).contains(&blocks), "{reason}");
    }
}
