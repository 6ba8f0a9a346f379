//! Classifiers against lows whose operations are known, drawn as the paper says that they are distributed.

use proptest::prelude::*;
use rand::RngExt;
use ssdlab_base::{Nanos, Rng, rng};
use ssdlab_measure::classify::{Estimate, Expected, Fit, Method, Operation, Survey, estimates};
use ssdlab_measure::recorder::{Recorder, Settings};
use ssdlab_measure::{Edge, Levels, Low, Model, ProgramModel, Window};

/// What a die does, drawn.
struct Mix {
    read: (u64, u64),
    program: (u64, u64),
    erase: (u64, u64),
    /// Reads for each hundred programs.
    reads: u64,
    /// Programs for each erase.
    pages_per_block: u64,
}

/// SSD-v of Table I.
const SSD_V: Mix = Mix {
    read: (50_000, 50_000),
    program: (200_000, 2_200_000),
    erase: (2_000_000, 2_000_000),
    reads: 0,
    pages_per_block: 256,
};

/// Lows of a die, back to back with gaps of 100 us, and how many of them are programs.
fn lows(mix: &Mix, die: u32, programs: u64, rng: &mut Rng) -> Vec<Low> {
    let mut all = Vec::new();
    let mut at = 0;
    let mut low = |(shortest, longest): (u64, u64), rng: &mut Rng| {
        let start = at + 100_000;
        at = start + rng.random_range(shortest..=longest);
        all.push(Low { die, start: Nanos(start), end: Nanos(at) });
    };
    for program in 1..=programs {
        low(mix.program, rng);
        if program % mix.pages_per_block == 0 {
            low(mix.erase, rng);
        }
        for _ in 0..mix.reads / 100 + u64::from(rng.random_range(0..100) < mix.reads % 100) {
            low(mix.read, rng);
        }
    }
    all
}

fn window((shortest, longest): (u64, u64)) -> Window {
    Window { above: Nanos(shortest - 1), below: Nanos(longest + 1) }
}

fn expected(mix: &Mix) -> Expected {
    Expected { read: Some(window(mix.read)), program: Some(window(mix.program)), erase: Some(window(mix.erase)) }
}

fn survey(dies: &[Vec<Low>], window: Window) -> Survey {
    let mut survey = Survey::new(dies.len(), Some(window));
    for low in dies.iter().flatten() {
        survey.edge(Edge { at: low.start, die: low.die, busy: true });
        survey.edge(Edge { at: low.end, die: low.die, busy: false });
    }
    survey
}

fn model(dies: u32) -> Model {
    let levels = Levels { channels: dies, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 2, page_bytes: 4096 };
    Model { levels, program: ProgramModel::SinglePlane }
}

/// All estimates for a drive of which some dies are seen, and the truth.
fn measured(mix: &Mix, dies: u32, seen: u32, programs: u64, expected: &Expected) -> (Vec<Estimate>, f64) {
    let mut rng = rng(7, "lows");
    let all: Vec<Vec<Low>> = (0..dies).map(|die| lows(mix, die, programs, &mut rng)).collect();
    let window = window(mix.program);
    let survey = survey(&all[..seen as usize], window);
    let fit = Fit::new(&survey.all(), expected).expect("lows");
    (estimates(&survey, &model(dies), window, 0, expected, Some(&fit)), (u64::from(dies) * programs) as f64)
}

fn error(estimates: &[Estimate], method: Method, truth: f64) -> f64 {
    let found = estimates.iter().find(|estimate| estimate.method == method).expect("the method");
    (found.pages - truth) / truth
}

#[test]
fn the_mixture_tells_erases_from_programs_of_their_length_which_the_window_cannot() {
    let (estimates, truth) = measured(&SSD_V, 4, 4, 50_000, &expected(&SSD_V));
    let plain = error(&estimates, Method::Window, truth);
    let mixture = error(&estimates, Method::Mixture, truth);
    // Each erase counts as a program: one in 256.
    assert!((plain - 1.0 / 256.0).abs() < 1e-4, "{plain}");
    assert!(mixture.abs() < 1.0 / 2560.0, "{mixture}");
}

#[test]
fn without_any_hint_the_mixture_still_finds_the_spike_of_the_erases() {
    let (estimates, truth) = measured(&SSD_V, 4, 4, 50_000, &Expected::default());
    assert!(error(&estimates, Method::Mixture, truth).abs() < 1.0 / 1000.0);
}

#[test]
fn a_window_that_begins_too_low_counts_reads_and_the_filter_takes_them_out() {
    let mix = Mix { reads: 150, ..SSD_V };
    let mut rng = rng(9, "lows");
    let all = vec![lows(&mix, 0, 20_000, &mut rng)];
    let wide = Window { above: Nanos(40_000), below: Nanos(2_200_001) };
    let survey = survey(&all, wide);
    let hints = Expected { read: Some(window(mix.read)), ..Expected::default() };
    let fit = Fit::new(&survey.all(), &hints).expect("lows");
    let found = estimates(&survey, &model(1), wide, 0, &hints, Some(&fit));
    assert!(error(&found, Method::Window, 20_000.0) > 1.4);
    assert!(error(&found, Method::ReadFilter, 20_000.0).abs() < 0.005, "{found:?}");
    assert!(error(&found, Method::Mixture, 20_000.0).abs() < 0.005, "{found:?}");
}

#[test]
fn modes_of_a_multi_level_cell_are_all_programs() {
    // Fast and slow pages, an erase twice as long: what captures of MLC look like.
    let mut rng = rng(3, "lows");
    let mut fast = lows(&Mix { program: (280_000, 330_000), pages_per_block: 1 << 40, ..SSD_V }, 0, 30_000, &mut rng);
    let slow =
        lows(&Mix { program: (1_250_000, 1_400_000), erase: (3_800_000, 3_900_000), ..SSD_V }, 0, 30_000, &mut rng);
    let end = fast.last().expect("lows").end;
    fast.extend(slow.iter().map(|low| Low { start: low.start + end, end: low.end + end, ..*low }));
    let hints = Expected { erase: Some(window((3_700_000, 4_000_000))), ..Expected::default() };
    let survey = survey(&[fast], window((200_000, 2_000_000)));
    let fit = Fit::new(&survey.all(), &hints).expect("lows");
    let programs = fit.count(&survey.all(), Operation::Program);
    assert!((programs - 60_000.0).abs() < 30.0, "{programs}: {fit:?}");
    let suggested = fit.window(&survey.all()).expect("programs");
    assert!(suggested.contains(Nanos(281_000)) && suggested.contains(Nanos(1_399_000)), "{suggested}");
    assert!(!suggested.contains(Nanos(3_800_000)), "{suggested}");
}

#[test]
fn intervals_shrink_with_the_dies_seen_and_hold_the_truth() {
    // Dies that differ: the i-th is programmed 9,000 + 400 i times.
    let mut rng = rng(5, "lows");
    let all: Vec<Vec<Low>> = (0..8).map(|die| lows(&SSD_V, die, 9_000 + 400 * u64::from(die), &mut rng)).collect();
    let truth: u64 = (0..8).map(|die| 9_000 + 400 * die).sum();
    let mut width = f64::INFINITY;
    for seen in [2, 4, 6, 8] {
        // Dies from both ends, so that those seen stand for all.
        let mut dies: Vec<Vec<Low>> = (0..seen / 2).flat_map(|die| [all[die].clone(), all[7 - die].clone()]).collect();
        dies.iter_mut().enumerate().for_each(|(line, lows)| lows.iter_mut().for_each(|low| low.die = line as u32));
        let survey = survey(&dies, window(SSD_V.program));
        let fit = Fit::new(&survey.all(), &expected(&SSD_V)).expect("lows");
        let found = estimates(&survey, &model(8), window(SSD_V.program), 0, &expected(&SSD_V), Some(&fit));
        let mixture = found.last().expect("the mixture");
        let (least, most) = mixture.pages_interval;
        assert!(least <= truth as f64 && truth as f64 <= most, "{seen}: {least} .. {most}, truth {truth}");
        assert!(most - least < width, "{seen}");
        width = most - least;
    }
}

/// Erases of the length of programs that are too few to pay for a component are counted as programs, and the interval says so.
#[test]
fn the_interval_holds_the_truth_where_the_fit_finds_no_erase() {
    const PROGRAMS: u64 = 5_000;
    let program = (201_000, 2_199_000);
    let expected = Expected {
        read: Some(Window { above: Nanos(45_000), below: Nanos(55_000) }),
        program: Some(Window { above: Nanos(200_000), below: Nanos(2_200_000) }),
        erase: Some(Window { above: Nanos(1_900_000), below: Nanos(2_100_000) }),
    };
    let (mut held, mut unseen, mut trials) = (0, 0, 0);
    for erases in [0, 20] {
        for seed in 0..10 {
            let mix = Mix { program, pages_per_block: u64::MAX, ..SSD_V };
            let mut rng = rng(seed, "lows");
            let mut all = lows(&mix, 0, PROGRAMS, &mut rng);
            let end = all.last().expect("programs").end.0;
            all.extend((1..=erases).map(|erase| {
                let start = Nanos(end + erase * 3_000_000);
                Low { die: 0, start, end: start + Nanos(2_000_000) }
            }));
            let window = window(program);
            let survey = survey(&[all], window);
            let fit = Fit::new(&survey.all(), &expected).expect("lows");
            let found = estimates(&survey, &model(1), window, 0, &expected, Some(&fit));
            let mixture = found.last().expect("the mixture");
            let (least, most) = mixture.pages_interval;
            trials += 1;
            let holds = least <= PROGRAMS as f64 && PROGRAMS as f64 <= most;
            held += u32::from(holds);
            if fit.components.iter().all(|component| component.operation != Operation::Erase) {
                unseen += 1;
                assert!(holds && most - least > 1.0, "{erases} erases: {least} .. {most}");
                // All lows count, and only downwards is anything open.
                assert!((most - (PROGRAMS + erases) as f64).abs() < 1e-6, "{erases} erases: {least} .. {most}");
                // No more are in doubt than the lows that are about as long as an erase.
                assert!(most - least < 300.0, "{erases} erases: {least} .. {most}");
            }
        }
    }
    assert!(unseen >= 10, "{unseen}");
    // Chance makes a crowd of programs somewhere, which the fit may take for erases: that is not in the interval.
    assert!(held * 100 >= 90 * trials, "{held} of {trials}");
    // Where nothing is as long as an erase, none hides.
    let apart = lows(&Mix { pages_per_block: u64::MAX, ..SSD_V }, 0, 2_000, &mut rng(1, "lows"));
    let survey = survey(&[apart], window(program));
    let later = Expected { erase: Some(window((3_000_000, 4_000_000))), ..expected };
    let fit = Fit::new(&survey.all(), &later).expect("lows");
    assert!(fit.hidden(&survey.all(), &later) == 0.0);
}

/// Reads, programs and erases that each always take the same time, as simulated chips do.
#[test]
fn a_suggested_window_ends_half_way_to_the_lows_beside_it() {
    let mix =
        Mix { read: (50_300, 50_300), program: (500_300, 500_300), erase: (3_000_300, 3_000_300), reads: 40, ..SSD_V };
    let all = lows(&mix, 0, 20_000, &mut rng(4, "lows"));
    let survey = survey(std::slice::from_ref(&all), window(mix.program));
    let fit = Fit::new(&survey.all(), &Expected::default()).expect("lows");
    assert!(fit.settled, "{fit:?}");
    let suggested = fit.window(&survey.all()).expect("programs");
    // Bins are a 64th of a duration wide.
    let near = |found: Nanos, middle: f64| (found.0 as f64 / middle - 1.0).abs() < 1.0 / 64.0;
    assert!(near(suggested.above, 275_300.0) && near(suggested.below, 1_750_300.0), "{suggested}");
    // So a slow recorder counts them all, which the bin of the programs alone would lose.
    let programs = |window| {
        let mut recorder = Recorder::new(Settings { interval: Nanos(30_000), ..Settings::with_window(window) });
        all.iter().for_each(|&low| recorder.low(low));
        recorder.finish().programs()
    };
    assert_eq!(programs(suggested), 20_000);
    assert!(programs(window(mix.program)) == 0);
}

proptest! {
    /// Where durations do not overlap and sampling is fine, what the recorder counts is what the die did.
    #[test]
    fn programs_are_counted_exactly_where_durations_do_not_overlap(
        seed in any::<u64>(),
        programs in 1_u64..400,
        reads in 0_u64..300,
        sampling in 1_u64..20_000,
    ) {
        let mix = Mix { erase: (3_000_000, 3_500_000), pages_per_block: 16, reads, ..SSD_V };
        let lows = lows(&mix, 0, programs, &mut rng(seed, "lows"));
        // Samples make a low longer or shorter by less than the time between two of them.
        let window = Window { above: Nanos(200_000 - sampling - 1), below: Nanos(2_200_000 + sampling + 1) };
        let settings = Settings { interval: Nanos(sampling), ..Settings::with_window(window) };
        let mut recorder = Recorder::new(settings);
        lows.iter().for_each(|&low| recorder.low(low));
        prop_assert_eq!(recorder.finish().programs(), programs);
        let survey = survey(&[lows], window);
        prop_assert_eq!(survey.inside(window), vec![programs as f64]);
    }

    /// Any durations give a fit, the same every time, whose operations share all lows among them.
    #[test]
    fn any_lows_are_fitted_and_always_alike(durations in prop::collection::vec(prop_oneof![0_u64..100, 1_u64 << 10..1 << 34], 1..60)) {
        let mut survey = Survey::new(1, None);
        let mut at = 0;
        for duration in durations {
            survey.edge(Edge { at: Nanos(at), die: 0, busy: true });
            survey.edge(Edge { at: Nanos(at + duration), die: 0, busy: false });
            at += duration + 1;
        }
        let all = survey.all();
        let fit = Fit::new(&all, &Expected::default()).expect("lows");
        prop_assert_eq!(Fit::new(&all, &Expected::default()), Some(fit.clone()));
        let shared: f64 = [Operation::Read, Operation::Program, Operation::Erase]
            .into_iter()
            .map(|operation| fit.count(&all, operation))
            .sum();
        prop_assert!((shared - all.total() as f64).abs() < 1e-6 * all.total() as f64);
        prop_assert!(fit.components.iter().all(|component| component.weight.is_finite()));
    }
}
