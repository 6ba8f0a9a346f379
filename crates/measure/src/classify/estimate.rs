//! The estimates, side by side.

use super::{Expected, Fit, Operation, Survey};
use crate::{Model, Window};

/// Standard deviations of an interval that holds the truth 95 times in a hundred.
const DEVIATIONS: f64 = 1.96;

/// Standard deviations of an interval that holds the truth 95 times in a hundred where the scatter itself is known from
/// a few lines only: Student's t for so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    // Beyond, the first term of its expansion in 1 / freedom (Abramowitz and Stegun 26.7.5) is right to 0.4 %.
    let expanded = || DEVIATIONS + (DEVIATIONS.powi(3) + DEVIATIONS) / (4.0 * freedom as f64);
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or_else(expanded)
}

/// How programs were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The paper's: a window on one line.
    Window,
    /// The window on every line of the capture.
    AllDies,
    /// The window on every line, without what belongs to the fitted reads.
    ReadFilter,
    /// By a mixture fitted to the durations of every line.
    Mixture,
}

impl Method {
    /// Its name in tables and results.
    pub const fn key(self) -> &'static str {
        match self {
            Method::Window => "window",
            Method::AllDies => "all-dies",
            Method::ReadFilter => "read-filter",
            Method::Mixture => "mixture",
        }
    }
}

/// A number of page programs, and how sure it is.
///
/// The interval (95 %) holds what counting some dies for all leaves open and, for the mixture, what lows of overlapping
/// durations leave open, also where the fit found too few of an operation to give it a component. It does not hold what a wrong window, a wrong geometry or a wrong program model does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// How it was made.
    pub method: Method,
    /// Lines looked at.
    pub lines: usize,
    /// `N_Tprogram`: programs on one line, on average over the lines looked at.
    pub lows: f64,
    /// Pages programmed in the whole drive.
    pub pages: f64,
    /// The interval of that.
    pub pages_interval: (f64, f64),
}

impl Estimate {
    /// From the programs counted on each line looked at, the variance that classifying leaves in their sum, and how many of
    /// them may be something else that classifying did not see at all.
    fn new(method: Method, model: &Model, counts: &[f64], variance: f64, hidden: f64) -> Estimate {
        let lines = counts.len().max(1) as f64;
        let dies = (model.levels.dies() as f64).max(lines);
        let sum: f64 = counts.iter().sum();
        let mean = sum / lines;
        // Lines that were not looked at: as they scatter where several were, and as if each program went to a die at
        // random where it was one. Drives spread programs more evenly than that.
        let unseen = 1.0 - lines / dies;
        let classified = variance / (lines * lines);
        let (middle, margin) = if counts.len() > 1 {
            let scatter = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (lines - 1.0);
            let unseen = student(counts.len() - 1).powi(2) * unseen * scatter / lines;
            (mean, (unseen + DEVIATIONS.powi(2) * classified).sqrt())
        } else {
            // Of a count that is small, too: the means from which this one is not too far (the score interval).
            let square = DEVIATIONS.powi(2) * unseen;
            (mean + square / 2.0, (square * (mean + square / 4.0) + DEVIATIONS.powi(2) * classified).sqrt())
        };
        let around = |lows: f64| model.pages(lows.max(0.0));
        // Only downwards: what hides among the programs was counted.
        let below = margin.hypot(hidden / lines);
        Estimate {
            method,
            lines: counts.len(),
            lows: mean,
            pages: model.pages(mean),
            pages_interval: (around(middle - below), around(middle + margin)),
        }
    }
}

/// All estimates that a survey allows: the paper's on the line with the number `line`, and ours. Those that need a fit
/// are missing when there is none.
pub fn estimates(
    survey: &Survey,
    model: &Model,
    window: Window,
    line: usize,
    expected: &Expected,
    fit: Option<&Fit>,
) -> Vec<Estimate> {
    let inside = survey.inside(window);
    let one = inside.get(line).copied().unwrap_or(0.0);
    let mut all = vec![
        Estimate::new(Method::Window, model, &[one], 0.0, 0.0),
        Estimate::new(Method::AllDies, model, &inside, 0.0, 0.0),
    ];
    let Some(fit) = fit else { return all };
    all.push(Estimate::new(
        Method::ReadFilter,
        model,
        &survey.inside(without_reads(survey, fit, window, expected)),
        0.0,
        0.0,
    ));
    let counts: Vec<f64> = survey.lines().iter().map(|line| fit.count(line, Operation::Program)).collect();
    let lows = survey.all();
    let (variance, hidden) = (fit.variance(&lows, Operation::Program), fit.hidden(&lows, expected));
    all.push(Estimate::new(Method::Mixture, model, &counts, variance, hidden));
    all
}

/// The window, begun no earlier than where a low is more likely a program (or an erase) than a read.
fn without_reads(survey: &Survey, fit: &Fit, window: Window, expected: &Expected) -> Window {
    let all = survey.all();
    let reads = |bin: &crate::histogram::Bin| fit.probability(*bin, Operation::Read) > 0.5;
    let last = all.bins().filter(|bin| bin.from < window.below).filter(reads).last();
    // Where programs are known to begin earlier than the last of the reads' bins, nothing is cut off them.
    let limit = expected.program.map_or(window.below, |program| program.above);
    match last {
        Some(bin) if bin.to > window.above && bin.to.0 - 1 < window.below.0 => {
            let above = ssdlab_base::Nanos((bin.to.0 - 1).min(limit.0).max(window.above.0));
            Window { above, below: window.below }
        }
        _ => window,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Levels, ProgramModel};
    use rand::RngExt;

    /// Programs dropped on 8 dies at random, of which some are seen: how often the interval holds their number, in percent.
    fn held(programs: u64, seen: usize) -> u32 {
        const TRIALS: u32 = 4000;
        let levels =
            Levels { channels: 8, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 1, page_bytes: 4096 };
        let model = Model { levels, program: ProgramModel::SinglePlane };
        let mut rng = ssdlab_base::rng(seen as u64, "dies");
        let mut held = 0;
        for _ in 0..TRIALS {
            let mut counts = [0.0; 8];
            (0..programs).for_each(|_| counts[rng.random_range(0..8_usize)] += 1.0);
            let (least, most) = Estimate::new(Method::Window, &model, &counts[..seen], 0.0, 0.0).pages_interval;
            held += u32::from((least..=most).contains(&(programs as f64)));
        }
        held * 100 / TRIALS
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        for seen in [1, 2, 3, 5, 7] {
            let share = held(400, seen);
            assert!((93..=98).contains(&share), "{seen} lines: {share} %");
        }
        // Few programs, or none on the line that is seen. Counts are whole, so the share cannot be met exactly.
        for programs in [4, 8, 16, 40] {
            let share = held(programs, 1);
            assert!(share >= 90, "{programs} programs: {share} %");
        }
        assert_eq!(held(100, 8), 100);
    }
}
