//! Victim policies against a counting model of their own, and against closed forms.

use std::cmp::Reverse;

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options, PoolView, VictimPolicy};
use ssdlab_flash::{Contents, OpKind};
use ssdlab_lab::theory;

use crate::counting_model::{Model, Shape, Victim};

/// The drive's names of the model's policies.
const POLICIES: [(&str, Victim); 5] = [
    ("greedy", Victim::Greedy),
    ("cost-benefit", Victim::CostBenefit),
    ("fifo", Victim::Fifo),
    ("random", Victim::Random),
    ("d-choices", Victim::DChoices(CHOICES)),
];

const CHOICES: usize = 5;

/// Over-provisioning, per cent of the user capacity.
const OVER_PROVISIONING: [usize; 3] = [7, 15, 28];

/// A share of the writes goes to a share of the pages, both per cent; the rest of them to the rest.
const SKEWS: [(u64, u64); 3] = [(100, 100), (80, 20), (90, 10)];

fn shape(planes: usize, blocks: usize, pages: usize, percent: usize, separate: bool) -> Shape {
    let user_pages = planes * blocks * pages * 100 / (100 + percent);
    Shape { planes, blocks, pages, user_pages, free: 3, separate }
}

fn config(shape: &Shape, victim: &str) -> DriveConfig {
    let text = format!(
        "flash = {{ channels = 1, chips_per_channel = 1, dies_per_chip = 1, planes_per_die = {}, blocks_per_plane = {}, \
         pages_per_block = {}, page_size = \"4k\", timing = \"none\" }}\n\
         capacity = {{ user = {} }}\n\
         ftl = {{ design = \"page\", separate_gc_frontier = {} }}\n\
         gc = {{ victim = \"{victim}\", choices = {CHOICES}, free_blocks = {} }}\n",
        shape.planes,
        shape.blocks,
        shape.pages,
        shape.user_pages * 4096,
        shape.separate,
        shape.free
    );
    Description::parse(&text, "planes").and_then(|description| description.resolve()).expect("a valid description")
}

/// The page of a write.
fn page(rng: &mut Rng, user_pages: usize, (writes, space): (u64, u64)) -> u32 {
    let hot = user_pages as u64 * space / 100;
    let range = if rng.random_range(0..100) < writes { 0..hot } else { hot..user_pages as u64 };
    rng.random_range(range) as u32
}

/// Fills in order, writes `before` user capacities, and counts programs for each write of the `measured` ones after them.
fn amplification(
    user_pages: usize,
    skew: (u64, u64),
    [before, measured]: [usize; 2],
    mut write: impl FnMut(u32) -> u64,
) -> f64 {
    let mut rng = rng(7, "victims");
    for page in 0..user_pages as u32 {
        write(page);
    }
    let mut programs = 0;
    for _ in 0..before * user_pages {
        programs = write(page(&mut rng, user_pages, skew));
    }
    let begun = programs;
    for _ in 0..measured * user_pages {
        programs = write(page(&mut rng, user_pages, skew));
    }
    (programs - begun) as f64 / (measured * user_pages) as f64
}

fn of_drive(shape: &Shape, victim: &str, skew: (u64, u64), capacities: [usize; 2]) -> f64 {
    let options = Options { seed: 1, contents: Contents::Nothing };
    of(Drive::new(&config(shape, victim), options).expect("an accepted drive"), shape, victim, skew, capacities)
}

fn of(mut drive: Drive, shape: &Shape, victim: &str, skew: (u64, u64), capacities: [usize; 2]) -> f64 {
    let measured = amplification(shape.user_pages, skew, capacities, |page| {
        drive.submit(&Request::new(Op::Write, u64::from(page) * 8, 8));
        drive.completions().clear();
        drive.counters().flash.total(OpKind::Program)
    });
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    let guarded = drive.design().into_iter().find(|(name, _)| name == "victims_by_guard").map(|(_, count)| count);
    assert_eq!(guarded, Some(0.0), "{victim}: without faults and power cuts the policy alone chooses");
    measured
}

fn of_model(shape: &Shape, victim: Victim, skew: (u64, u64), capacities: [usize; 2]) -> f64 {
    let mut model = Model::new(*shape, victim, 0x9E37_79B9_7F4A_7C15);
    amplification(shape.user_pages, skew, capacities, |page| {
        model.write(page);
        model.programs
    })
}

fn assert_close(what: &str, ours: f64, reference: f64) {
    let apart = ours / reference - 1.0;
    println!("{what}: {ours:.3}, reference {reference:.3} ({:+.2} %)", 100.0 * apart);
    assert!(apart.abs() < 0.01, "{what}: {ours:.4} against {reference:.4}");
}

fn against_the_model(policy: usize) {
    let (name, victim) = POLICIES[policy];
    for separate in [false, true] {
        for percent in OVER_PROVISIONING {
            for skew in SKEWS {
                let shape = shape(2, 256, 32, percent, separate);
                let what = format!("{name}, {skew:?}, separate {separate}, {percent} %");
                let capacities = [8, 10];
                let ours = of_drive(&shape, name, skew, capacities);
                assert_close(&what, ours, of_model(&shape, victim, skew, capacities));
            }
        }
    }
}

#[test]
fn greedy_counts_as_the_model() {
    against_the_model(0);
}

/// Greedy with the other rule for ties: the block that was closed first.
struct Oldest;

impl VictimPolicy for Oldest {
    fn name(&self) -> &'static str {
        "greedy, oldest"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        let closed = (0..pool.blocks()).filter(|block| pool.is_closed(*block));
        closed.min_by_key(|block| (pool.valid(*block), Reverse(pool.age(*block))))
    }
}

/// Several blocks often have equally few valid pages. Greedy takes the lowest number, which says nothing of a block's age.
/// Under skew the block that was closed first costs less: what is still valid in it is cold and will not be overwritten
/// soon, while a younger block would soon have fewer valid pages.
#[test]
fn which_of_equals_greedy_takes_matters_under_skew() {
    let shape = shape(2, 256, 32, 15, false);
    for skew in SKEWS {
        let capacities = [8, 10];
        let options = Options { seed: 1, contents: Contents::Nothing };
        let oldest =
            Drive::with_victim(&config(&shape, "greedy"), options, Box::new(Oldest)).expect("an accepted drive");
        let oldest = of(oldest, &shape, "greedy, oldest", skew, capacities);
        let what = format!("greedy, oldest of equals, {skew:?}");
        assert_close(&what, oldest, of_model(&shape, Victim::GreedyOldest, skew, capacities));
        let lowest = of_drive(&shape, "greedy", skew, capacities);
        let apart = 100.0 * (oldest / lowest - 1.0);
        println!("{skew:?}: lowest number {lowest:.3}, closed first {oldest:.3} ({apart:+.1} %)");
        let expected = if skew == (100, 100) { -1.0..1.0 } else { -6.0..0.0 };
        assert!(expected.contains(&apart), "{skew:?}: {apart:.2} %");
    }
}

#[test]
fn cost_benefit_counts_as_the_model() {
    against_the_model(1);
}

#[test]
fn fifo_counts_as_the_model() {
    against_the_model(2);
}

#[test]
fn random_counts_as_the_model() {
    against_the_model(3);
}

#[test]
fn d_choices_counts_as_the_model() {
    against_the_model(4);
}

/// Physical over user pages without what collection keeps free and, on average, half a block of a second frontier.
fn effective(shape: &Shape) -> f64 {
    let kept = shape.free as f64 + if shape.separate { 0.5 } else { 0.0 };
    (shape.planes * shape.pages) as f64 * (shape.blocks as f64 - kept) / shape.user_pages as f64
}

#[test]
fn uniform_overwrites_meet_the_closed_forms() {
    for percent in OVER_PROVISIONING {
        let shape = shape(1, 2048, 32, percent, true);
        let a = effective(&shape);
        for (victim, reference) in [
            ("greedy", theory::greedy(a, 32)),
            ("fifo", theory::fifo(a)),
            ("random", theory::random(a)),
            ("d-choices", theory::d_choices(a, 32, CHOICES as u32)),
        ] {
            // Random victims differ most from each other: the more of them, the nearer their mean.
            let measured = if victim == "random" { 24 } else { 6 };
            let ours = of_drive(&shape, victim, (100, 100), [6, measured]);
            assert_close(&format!("{victim}, uniform, {percent} %"), ours, reference.expect("a > 1"));
        }
    }
}

#[test]
fn fifo_and_random_under_skew_meet_their_renewal_equations() {
    for percent in OVER_PROVISIONING {
        for skew in [(80, 20), (90, 10)] {
            // One of the two each, so that both frontiers are tried.
            let shape = shape(1, 1024, 32, percent, skew.0 == 90);
            let a = effective(&shape);
            let [writes, space] = [skew.0, skew.1].map(|percent| percent as f64 / 100.0);
            let classes = [(writes, space), (1.0 - writes, 1.0 - space)];
            // A cold page waits for nine capacities until it is overwritten.
            let fifo = of_drive(&shape, "fifo", skew, [20, 12]);
            assert_close(
                &format!("fifo, {skew:?}, {percent} %"),
                fifo,
                theory::fifo_of_classes(a, &classes).expect("a > 1"),
            );
            let random = of_drive(&shape, "random", skew, [20, 40]);
            assert_close(&format!("random, {skew:?}, {percent} %"), random, theory::random(a).expect("a > 1"));
        }
    }
}
