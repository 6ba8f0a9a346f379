//! A mixture fitted to the durations of lows by expectation and maximisation, without any random start.
//!
//! Components are log-normal (a spike or a hump at any duration) and, optionally, one uniform over the program's range, as
//! drives are simulated and as the paper assumes for its error estimate. Components are added where the fit is worst, as
//! long as the Bayesian information criterion gets better. Everything is computed on the bins of the histogram, so the
//! work does not grow with the capture.

use ssdlab_base::Nanos;

use super::Expected;
use crate::Window;
use crate::histogram::{Bin, Durations};

/// Components at most.
const COMPONENTS_MAX: usize = 10;
/// Iterations for one number of components.
const ROUNDS: usize = 200;
/// The narrowest log-normal: far below a bin's width.
const SIGMA_MIN: f64 = 0.0005;
/// The widths with which a new log-normal begins.
const WIDTHS: [f64; 3] = [SIGMA_MIN, 0.03, 0.3];
/// A log-normal narrower than this is a spike.
const SPIKE: f64 = 0.12;
/// Shorter lows are reads, where the expected durations say nothing of reads: between the longest read (75 us) and the
/// shortest program (200 us) of the paper's Table I. QLC chips have longer reads (228 us, the preset's): theirs have to
/// be said.
const READ_MAX_NS: f64 = 150_000.0;

/// What a low was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A page read.
    Read,
    /// A page program.
    Program,
    /// A block erase.
    Erase,
}

impl Operation {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Program => "program",
            Operation::Erase => "erase",
        }
    }
}

/// The form of a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// The logarithm (of nanoseconds) is normal.
    LogNormal {
        /// Its mean.
        mu: f64,
        /// Its standard deviation.
        sigma: f64,
    },
    /// Every duration of a range is as likely.
    Uniform {
        /// From, in nanoseconds.
        from: f64,
        /// To, in nanoseconds.
        to: f64,
    },
}

/// A component of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Its form.
    pub shape: Shape,
    /// Its share of all lows.
    pub weight: f64,
    /// What it is taken for.
    pub operation: Operation,
}

/// A fitted mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The components, by their typical duration.
    pub components: Vec<Component>,
    /// The Bayesian information criterion: the smaller, the better the fit pays for its parameters.
    pub bic: f64,
    /// The last iteration moved no more than one low in ten thousand from one component to another.
    pub settled: bool,
}

impl Shape {
    /// A typical duration.
    pub fn typical(self) -> Nanos {
        match self {
            Shape::LogNormal { mu, .. } => Nanos(mu.exp() as u64),
            Shape::Uniform { from, to } => Nanos(f64::midpoint(from, to) as u64),
        }
    }

    /// The probability of a bin.
    pub(super) fn mass(self, cell: &Cell) -> f64 {
        match self {
            Shape::LogNormal { mu, sigma } => {
                let (a, b) = ((cell.ln_from - mu) / sigma, (cell.ln_to - mu) / sigma);
                let root = std::f64::consts::FRAC_1_SQRT_2;
                // Differences of the tail that is small, so that they do not cancel.
                if a > 0.0 {
                    0.5 * (libm::erfc(a * root) - libm::erfc(b * root))
                } else {
                    0.5 * (libm::erfc(-b * root) - libm::erfc(-a * root))
                }
            }
            Shape::Uniform { from, to } => {
                let overlap = cell.to.min(to) - cell.from.max(from);
                (overlap / (to - from)).max(0.0)
            }
        }
    }

    fn parameters(self) -> f64 {
        match self {
            Shape::LogNormal { .. } => 3.0,
            Shape::Uniform { .. } => 3.0,
        }
    }
}

/// A bin as the fit needs it.
pub(super) struct Cell {
    pub(super) from: f64,
    pub(super) to: f64,
    ln_from: f64,
    ln_to: f64,
    /// The logarithm of its middle.
    at: f64,
    pub(super) count: f64,
}

impl Cell {
    pub(super) fn of(bin: Bin) -> Cell {
        let (from, to) = (bin.from.0 as f64, bin.to.0 as f64);
        let (ln_from, ln_to) = (from.max(0.5).ln(), to.ln());
        Cell { from, to, ln_from, ln_to, at: f64::midpoint(ln_from, ln_to), count: bin.count as f64 }
    }
}

impl Fit {
    /// Fits a mixture; nothing if there is no low.
    pub fn new(durations: &Durations, expected: &Expected) -> Option<Fit> {
        let cells: Vec<Cell> = durations.bins().map(Cell::of).collect();
        if cells.is_empty() {
            return None;
        }
        let (shortest, longest) = durations.range()?;
        // Bins at the ends are not full: the range ends where the durations do.
        let run = densest_run(&cells, read_max(expected));
        let run = run.map(|(from, to)| (from.max(shortest.0 as f64), to.min(longest.0 as f64 + 1.0)));
        let mut ranges = vec![None, run];
        if let Some(program) = expected.program {
            ranges.push(Some((program.above.0 as f64, program.below.0 as f64)));
        }
        let fits = ranges.into_iter().map(|range| grow(&cells, range));
        let mut best = fits.min_by(|one, other| one.bic.total_cmp(&other.bic))?;
        label(&mut best.components, expected);
        best.components.sort_by_key(|component| component.shape.typical());
        Some(best)
    }

    /// The probability that a low of a bin is of an operation.
    pub fn probability(&self, bin: Bin, operation: Operation) -> f64 {
        let cell = Cell::of(bin);
        let (mut of_it, mut all) = (0.0, 0.0);
        for component in &self.components {
            let mass = component.weight * component.shape.mass(&cell);
            all += mass;
            if component.operation == operation {
                of_it += mass;
            }
        }
        if all > 0.0 {
            return of_it / all;
        }
        // Beyond every component: what is nearest.
        let distance = |component: &&Component| (component.shape.typical().0 as f64).max(1.0).ln() - cell.at;
        let nearest = self.components.iter().min_by(|a, b| distance(a).abs().total_cmp(&distance(b).abs()));
        f64::from(u8::from(nearest.is_some_and(|component| component.operation == operation)))
    }

    /// The lows of an operation.
    pub fn count(&self, durations: &Durations, operation: Operation) -> f64 {
        durations.bins().map(|bin| bin.count as f64 * self.probability(bin, operation)).sum()
    }

    /// The variance of that count around the truth, because lows of one duration can be of several operations.
    ///
    /// With `f` the fitted distribution, `w` the operation's share in it, and `g` and `h` the distributions of the
    /// operation and of everything else, a low tells `I = E[((g - h) / f)^2]` about `w`. So the share that is fitted to N
    /// lows has a variance of `N / I` around its expectation, of which `N w (1 - w)` is the true number's own.
    pub fn variance(&self, durations: &Durations, operation: Operation) -> f64 {
        let total = durations.total() as f64;
        let share: f64 =
            self.components.iter().filter(|part| part.operation == operation).map(|part| part.weight).sum();
        // Shares add up to one but for rounding, which would be taken for a share of others.
        let others = self.components.iter().any(|part| part.operation != operation && part.weight > 0.0);
        if share <= 0.0 || share >= 1.0 || !others {
            return 0.0;
        }
        // (g - h) / f is p / w - (1 - p) / (1 - w), where p is the probability of the operation.
        let told = |bin: Bin| {
            let probability = self.probability(bin, operation);
            let difference = probability / share - (1.0 - probability) / (1.0 - share);
            bin.count as f64 / total * difference * difference
        };
        let information: f64 = durations.bins().map(told).sum();
        if information > 0.0 { (total * (1.0 / information - share * (1.0 - share))).max(0.0) } else { 0.0 }
    }

    /// The durations at which a program begins and ends to be the likeliest: the window that this fit suggests. Where the
    /// nearest low of another operation is apart from them, the window ends half way to it, so that a recorder's samples,
    /// which make a low longer or shorter by up to an interval, do not put it on the other side. Nothing if no component is
    /// a program.
    pub fn window(&self, durations: &Durations) -> Option<Window> {
        let bins: Vec<Bin> = durations.bins().collect();
        let likely = |bin: &Bin| self.probability(*bin, Operation::Program) >= 0.5;
        let (first, last) = (bins.iter().position(likely)?, bins.iter().rposition(likely)?);
        let (shortest, longest) = (bins[first].from.0, bins[last].to.0);
        let above = match first.checked_sub(1).map(|below| bins[below].to.0) {
            Some(below) if below < shortest => below.midpoint(shortest),
            _ => shortest.saturating_sub(1),
        };
        let below = match bins.get(last + 1).map(|above| above.from.0) {
            Some(above) if above > longest => above.midpoint(longest),
            _ => longest,
        };
        Some(Window { above: Nanos(above), below: Nanos(below) })
    }
}

/// Of the stretches of bins without a gap that are wide and no reads, the one that holds the most.
fn densest_run(cells: &[Cell], read_max: f64) -> Option<(f64, f64)> {
    /// A gap (of logarithms) below this is none.
    const GAP: f64 = 0.1;
    /// From the first to the last duration of a range, at least.
    const WIDE: f64 = 1.3;
    let mut best: Option<(f64, f64, f64)> = None;
    let (mut from, mut held) = (cells.first()?.from, 0.0);
    for (index, cell) in cells.iter().enumerate() {
        held += cell.count;
        let over = cells.get(index + 1).is_none_or(|next| next.ln_from - cell.ln_to > GAP);
        if over {
            let range = from > read_max && cell.to > from * WIDE;
            if range && best.is_none_or(|(most, ..)| held > most) {
                best = Some((held, from, cell.to));
            }
            if let Some(next) = cells.get(index + 1) {
                (from, held) = (next.from, 0.0);
            }
        }
    }
    best.map(|(_, from, to)| (from, to))
}

/// Adds components, one at a time, as long as it pays.
fn grow(cells: &[Cell], uniform: Option<(f64, f64)>) -> Fit {
    let total: f64 = cells.iter().map(|cell| cell.count).sum();
    let unlabelled = |shape, weight| Component { shape, weight, operation: Operation::Program };
    let mut components: Vec<Component> =
        uniform.into_iter().map(|(from, to)| unlabelled(Shape::Uniform { from, to }, 0.9)).collect();
    let mut best: Option<Fit> = None;
    let mut worse = 0;
    while components.len() < COMPONENTS_MAX && worse < 2 {
        // A spike that begins as a hump stays one for long: several widths are tried.
        let (shapes, weight) = match components.is_empty() {
            true => (vec![whole(cells, total)], 1.0),
            false => (WIDTHS.map(|sigma| worst(cells, total, &components, sigma)).to_vec(), 0.02),
        };
        let tried = shapes.into_iter().map(|shape| {
            let mut more = components.clone();
            more.iter_mut().for_each(|component| component.weight *= 1.0 - weight);
            more.push(unlabelled(shape, weight));
            let (likelihood, settled) = maximise(cells, total, &mut more);
            (likelihood, settled, more)
        });
        let Some((likelihood, settled, more)) = tried.max_by(|one, other| one.0.total_cmp(&other.0)) else { break };
        components = more;
        let parameters: f64 = components.iter().map(|component| component.shape.parameters()).sum::<f64>() - 1.0;
        let bic = parameters * total.ln() - 2.0 * likelihood;
        if best.as_ref().is_none_or(|best| bic < best.bic) {
            worse = 0;
            best = Some(Fit { components: components.clone(), bic, settled });
        } else {
            worse += 1;
        }
    }
    best.unwrap_or(Fit { components, bic: f64::INFINITY, settled: false })
}

/// One hump over everything.
fn whole(cells: &[Cell], total: f64) -> Shape {
    let mu = cells.iter().map(|cell| cell.count * cell.at).sum::<f64>() / total;
    let variance = cells.iter().map(|cell| cell.count * (cell.at - mu).powi(2)).sum::<f64>() / total;
    Shape::LogNormal { mu, sigma: variance.sqrt().max(SIGMA_MIN) }
}

/// A hump where the mixture expects the least of what there is.
fn worst(cells: &[Cell], total: f64, components: &[Component], sigma: f64) -> Shape {
    let excess = |cell: &&Cell| {
        let expected: f64 = components.iter().map(|part| part.weight * part.shape.mass(cell)).sum::<f64>() * total;
        (cell.count - expected) / (expected + 1.0).sqrt()
    };
    let cell = cells.iter().max_by(|one, other| excess(one).total_cmp(&excess(other)));
    Shape::LogNormal { mu: cell.map_or(0.0, |cell| cell.at), sigma }
}

/// Expectation and maximisation; gives the log-likelihood, and whether it settled.
fn maximise(cells: &[Cell], total: f64, components: &mut [Component]) -> (f64, bool) {
    /// What is in no component's reach counts as this likely.
    const FLOOR: f64 = 1e-30;
    /// A component's share moves by less.
    const STILL: f64 = 1e-4;
    let mut before = f64::NEG_INFINITY;
    let mut moved = f64::INFINITY;
    let mut masses = vec![0.0; components.len()];
    for _ in 0..ROUNDS {
        let mut likelihood = 0.0;
        // For each component: lows, and the first two moments of their logarithms around its mean.
        let mut sums = vec![(0.0, 0.0, 0.0); components.len()];
        for cell in cells {
            let mut all = 0.0;
            for (mass, component) in masses.iter_mut().zip(&*components) {
                *mass = component.weight * component.shape.mass(cell);
                all += *mass;
            }
            likelihood += cell.count * (all + FLOOR).ln();
            if all <= 0.0 {
                continue;
            }
            for ((mass, sum), component) in masses.iter().zip(&mut sums).zip(&*components) {
                let lows = cell.count * mass / all;
                let mu = match component.shape {
                    Shape::LogNormal { mu, .. } => mu,
                    Shape::Uniform { .. } => 0.0,
                };
                let away = cell.at - mu;
                *sum = (sum.0 + lows, sum.1 + lows * away, sum.2 + lows * away * away);
            }
        }
        moved = 0.0;
        for (component, (lows, first, second)) in components.iter_mut().zip(sums) {
            moved = f64::max(moved, (component.weight - lows / total).abs());
            component.weight = lows / total;
            if let Shape::LogNormal { mu, sigma } = &mut component.shape
                && lows > 0.0
            {
                let shift = first / lows;
                *mu += shift;
                *sigma = (second / lows - shift * shift).max(0.0).sqrt().max(SIGMA_MIN);
            }
        }
        if (likelihood - before).abs() <= 1e-10 * likelihood.abs() {
            return (likelihood, true);
        }
        before = likelihood;
    }
    (before, moved <= STILL)
}

/// Lows up to this are reads.
fn read_max(expected: &Expected) -> f64 {
    expected.read.map_or(READ_MAX_NS, |window| window.below.0 as f64 * 1.5)
}

/// Says what each component is, by the expected durations or, without them, by size and order.
fn label(components: &mut [Component], expected: &Expected) {
    let within = |window: Option<Window>, ns: f64, slack: f64| {
        window.is_some_and(|window| (window.above.0 as f64 / slack..=window.below.0 as f64 * slack).contains(&ns))
    };
    let read_max = read_max(expected);
    let typical = |component: &Component| component.shape.typical().0 as f64;
    let programs_of = |component: &&Component| {
        let ns = typical(component);
        ns > read_max || within(expected.program, ns, 1.1)
    };
    // The heaviest of what is no read is a program.
    let heaviest = components.iter().filter(programs_of).max_by(|a, b| a.weight.total_cmp(&b.weight)).copied();
    for component in components {
        let ns = typical(component);
        let spike = matches!(component.shape, Shape::LogNormal { sigma, .. } if sigma < SPIKE);
        let light = heaviest.is_some_and(|heaviest| component.weight * 8.0 < heaviest.weight);
        let beyond = heaviest.is_some_and(|heaviest| match heaviest.shape {
            Shape::LogNormal { mu, sigma } => ns.max(1.0).ln() > mu + 3.0 * sigma.max(0.1),
            // An erase of the length of a program is a spike in its upper half.
            Shape::Uniform { from, to } => ns > f64::midpoint(from, to),
        });
        let is_program_range = within(expected.program, ns, 1.1);
        component.operation = if matches!(component.shape, Shape::Uniform { .. }) {
            Operation::Program
        } else if expected.erase.is_some() && within(expected.erase, ns, 1.1) && (!is_program_range || (spike && light))
        {
            Operation::Erase
        } else if is_program_range {
            Operation::Program
        } else if ns <= read_max {
            Operation::Read
        } else if expected.erase.is_none() && light && beyond && (spike || expected.program.is_none()) {
            Operation::Erase
        } else if expected.program.is_some() && expected.erase.is_some() {
            nearest(ns, expected)
        } else {
            Operation::Program
        };
    }
}

/// The operation whose expected durations are nearest.
fn nearest(ns: f64, expected: &Expected) -> Operation {
    let choices =
        [(Operation::Read, expected.read), (Operation::Program, expected.program), (Operation::Erase, expected.erase)];
    let far = |window: Window| {
        let (from, to) = ((window.above.0 as f64).max(1.0).ln(), (window.below.0 as f64).max(1.0).ln());
        let at = ns.max(1.0).ln();
        (from - at).max(at - to).max(0.0)
    };
    choices
        .into_iter()
        .filter_map(|(operation, window)| window.map(|window| (operation, far(window))))
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .map_or(Operation::Program, |(operation, _)| operation)
}
