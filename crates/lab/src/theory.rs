//! What theory says of write amplification under uniform random overwrites of single pages.
//!
//! All functions take `a`, physical over user pages, where physical means what data can lie in: without GC's reserve
//! and the open block (the *effective* spare). They return `None` outside `a > 1`. With uniform overwrites a page that
//! GC has moved is as likely to be overwritten next as any other, so relocated and host pages need not be told apart.
//!
//! - FIFO (also called LRU or circular cleaning): Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012,
//!   gives `a / (a + W(-a e^-a))` with Lambert's W; Menon (1995) and Robinson (1996) have it as a fixed point.
//! - Greedy: the limit of infinitely many blocks of `pages` pages (the mean field of Van Houdt, "A Mean Field Model for a
//!   Class of Garbage Collection Algorithms in Flash-based Solid State Drives", SIGMETRICS 2013, with d to infinity).
//!   There every block decays alike, and victims have `k` or `k + 1` valid pages; see [`greedy`].
//! - Random: a victim is as full as the drive, so `a / (a - 1)`; how the writes are spread makes no difference. A block is
//!   taken at a rate `m`, a page of a class overwritten at a rate `l`, so `m / (m + l)` of its residences end in a
//!   relocation, and the programs of all classes add up to `1 + m U` a host write, whatever `l` is.
//! - d-choices: the same mean field with a finite d; see [`d_choices`].
//! - FIFO under skew: see [`fifo_of_classes`].

/// Lambert's W on its main branch, for `-1/e <= x <= 0`: the `w >= -1` with `w e^w = x`.
fn lambert_w0(x: f64) -> f64 {
    // Near -1/e the root is a square root's away from -1, which is where Newton's method alone is slow.
    let near = (2.0 * (1.0 + std::f64::consts::E * x)).max(0.0).sqrt();
    let mut w = -1.0 + near - near * near / 3.0;
    for _ in 0..64 {
        // Halley's method.
        let e = w.exp();
        let f = w * e - x;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        if !step.is_finite() {
            break;
        }
        w -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// Write amplification of FIFO cleaning.
///
/// ```
/// let wa = ssdlab_lab::theory::fifo(1.15).expect("a > 1");
/// assert!((wa - 4.02).abs() < 0.01);
/// ```
pub fn fifo(a: f64) -> Option<f64> {
    (a > 1.0 && a.is_finite()).then(|| a / (a + lambert_w0(-a * (-a).exp())))
}

/// Write amplification of FIFO cleaning where pages are written at different rates: `classes` are the share of the writes
/// and the share of the user pages of each, both adding up to 1. As Desnoyers 2012, section 4.2, has it for hot and cold.
///
/// A page of a class with `q` of the writes on `s U` pages survives a round of `T U` host writes with `e = exp(-q T / s)`.
/// Its class takes `q / (1 - e)` programs a host write, its own and the survivors'; a round programs all of `a U` pages, so
/// `T` times the sum over classes, which is the write amplification, is `a`.
///
/// ```
/// let classes = [(0.9, 0.1), (0.1, 0.9)];
/// let wa = ssdlab_lab::theory::fifo_of_classes(1.15, &classes).expect("a > 1");
/// assert!((wa - 4.957).abs() < 0.001);
/// ```
pub fn fifo_of_classes(a: f64, classes: &[(f64, f64)]) -> Option<f64> {
    let sums = |part: fn(&(f64, f64)) -> f64| (classes.iter().map(part).sum::<f64>() - 1.0).abs() < 1e-9;
    let known = classes.iter().all(|(writes, space)| *writes >= 0.0 && *space > 0.0);
    if !(a > 1.0 && a.is_finite() && known && sums(|class| class.0) && sums(|class| class.1)) {
        return None;
    }
    // The limit of a class that is never written: it takes its share of the round, `s / T`.
    let programs = |round: f64| -> f64 {
        let of = |&(writes, space): &(f64, f64)| {
            if writes == 0.0 { space / round } else { writes / -(-writes * round / space).exp_m1() }
        };
        classes.iter().map(of).sum()
    };
    // `T` times the programs rises with `T`, from 1 at a round of nothing to `a` at one without survivors or before.
    let round = bisect(0.0, a, |round| round * programs(round) < a);
    Some(programs(round))
}

/// Where `below` turns false between `low` and `high`.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if below(middle) { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Write amplification of the best of `choices` blocks drawn at random, with blocks of `pages` pages, of which there are
/// many: the mean field of Van Houdt 2013.
///
/// Let `Q(i)` be the share of blocks with `i` valid pages or more, `c` the blocks cleaned for each overwrite of a page that
/// the mean block would see, `f U / N`. A victim has `i` or more with `Q(i)^d`. Blocks go from `i` to `i - 1` at the rate
/// at which they are cleaned below `i`: `i (Q(i) - Q(i + 1)) = c (1 - Q(i)^d)`. With `Q(pages + 1) = 0` that gives every
/// `Q`, and the mean of valid pages, the sum of `Q(1)` to `Q(pages)`, is `pages / a` at the right `c`.
pub fn d_choices(a: f64, pages: u32, choices: u32) -> Option<f64> {
    if !(a > 1.0 && a.is_finite() && pages > 0 && choices > 0) {
        return None;
    }
    let power = i32::try_from(choices).unwrap_or(i32::MAX);
    let mean = |c: f64| -> f64 {
        let mut above = 0.0;
        let mut sum = 0.0;
        for level in (1..=pages).rev() {
            let level = f64::from(level);
            above = bisect(above, 1.0, |share| level * (share - above) < c * (1.0 - share.powi(power)));
            sum += above;
        }
        sum
    };
    // The faster blocks are cleaned, the fuller they are. One choice, which is random, cleans fastest: `1 / (a - 1)`.
    let c = bisect(0.0, 2.0 / (a - 1.0), |c| mean(c) < f64::from(pages) / a);
    Some(c * a)
}

/// Write amplification of random victims.
pub fn random(a: f64) -> Option<f64> {
    (a > 1.0 && a.is_finite()).then(|| a / (a - 1.0))
}

/// Write amplification of greedy cleaning with blocks of `pages` pages, of which there are many.
///
/// Let `U` be the user pages, `f` the blocks cleaned for each host write. A block with `i` valid pages loses one every
/// `U / i` writes, so `f U / i` blocks are in state `i`. Blocks that reach `k` are cleaned at once; with them, `g` a
/// write are cleaned in state `k + 1`. Then
///
/// - what host writes take is what cleaning gives: `f (pages - k) - g = 1`;
/// - the states hold all blocks: `a / pages = f (1/pages + ... + 1/(k+2)) + (f - g) / (k + 1)`.
///
/// Both are linear in `f` and `g`; the right `k` is the one with `0 <= g <= f`.
pub fn greedy(a: f64, pages: u32) -> Option<f64> {
    if !(a > 1.0 && a.is_finite() && pages > 0) {
        return None;
    }
    let b = f64::from(pages);
    let mut harmonic = 0.0;
    for k in (0..pages).rev() {
        // Here `harmonic` is 1/pages + ... + 1/(k+2).
        let level = f64::from(k) + 1.0;
        let f = (a / b - 1.0 / level) / (harmonic - (b - level) / level);
        let g = f * (b - f64::from(k)) - 1.0;
        if f.is_finite() && f > 0.0 && g >= -1e-12 && g <= f + 1e-12 {
            return Some(f * b);
        }
        harmonic += 1.0 / level;
    }
    // So much spare that blocks empty completely before they are needed.
    Some(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One plane of 1024 blocks of 64 pages: `reserve` free blocks hold no data, and a write frontier half of one.
    fn effective(user_pages: f64, reserve: f64, frontiers: f64) -> f64 {
        (1024.0 - reserve - frontiers / 2.0) * 64.0 / user_pages
    }

    #[test]
    fn lambert_w_inverts_w_times_e_to_the_w() {
        for x in [-1.0 / std::f64::consts::E, -0.3678, -0.36, -0.2, -0.01, -1e-9, 0.0] {
            let w = lambert_w0(x);
            assert!(w >= -1.0);
            assert!((w * w.exp() - x).abs() < 1e-12, "W({x}) = {w}");
        }
    }

    #[test]
    fn closed_forms_meet_the_simulated_references_within_a_percent() {
        // One plane, 1024 blocks of 64 pages, R = 2, one frontier; exact simulations over 40 user capacities.
        for (user, greedy_reference, fifo_reference) in
            [(61_248.0, 7.192, 8.044), (56_987.0, 3.849, 4.067), (51_200.0, 2.417, 2.494)]
        {
            let a = effective(user, 2.0, 1.0);
            let found = greedy(a, 64).expect("a > 1");
            assert!((found / greedy_reference - 1.0).abs() < 0.01, "greedy {found} against {greedy_reference}");
            let found = fifo(a).expect("a > 1");
            assert!((found / fifo_reference - 1.0).abs() < 0.01, "FIFO {found} against {fifo_reference}");
        }
        // Two frontiers, R = 10.
        for (user, reference) in [(61_248.0, 8.064), (56_987.0, 4.056), (51_200.0, 2.486)] {
            let found = greedy(effective(user, 10.0, 2.0), 64).expect("a > 1");
            assert!((found / reference - 1.0).abs() < 0.01, "greedy with two frontiers {found} against {reference}");
        }
    }

    #[test]
    fn greedy_is_between_one_and_fifo_and_falls_with_spare() {
        let mut last = f64::INFINITY;
        for step in 1..200 {
            let a = 1.0 + f64::from(step) * 0.02;
            let wa = greedy(a, 256).expect("a > 1");
            assert!(wa >= 1.0 - 1e-9, "greedy({a}) = {wa}");
            assert!(wa <= fifo(a).expect("a > 1") + 1e-9, "greedy({a}) = {wa}");
            assert!(wa <= last + 1e-9);
            assert!(fifo(a).expect("a > 1") <= random(a).expect("a > 1"));
            last = wa;
        }
    }

    #[test]
    fn d_choices_go_from_random_to_greedy() {
        for a in [1.05, 1.15, 1.3] {
            let at = |choices| d_choices(a, 64, choices).expect("a > 1");
            assert!((at(1) / random(a).expect("a > 1") - 1.0).abs() < 1e-9);
            assert!((at(100_000) / greedy(a, 64).expect("a > 1") - 1.0).abs() < 1e-3, "{} at {a}", at(100_000));
            assert!(at(1) > at(2) && at(2) > at(5) && at(5) > at(50));
        }
    }

    #[test]
    fn fifo_of_classes_that_are_alike_is_fifo_and_cold_data_makes_it_worse() {
        for a in [1.07, 1.15, 1.28] {
            let uniform = fifo(a).expect("a > 1");
            for classes in [&[(1.0, 1.0)][..], &[(0.3, 0.3), (0.7, 0.7)]] {
                assert!((fifo_of_classes(a, classes).expect("a > 1") / uniform - 1.0).abs() < 1e-9);
            }
            let of = |writes: f64, space| fifo_of_classes(a, &[(writes, space), (1.0 - writes, 1.0 - space)]);
            assert!(of(0.8, 0.2).expect("a > 1") > uniform);
            assert!(of(0.9, 0.1).expect("a > 1") > of(0.8, 0.2).expect("a > 1"));
            // Data that is never overwritten goes round with the rest.
            assert!(of(1.0, 0.1).is_some_and(|wa| wa > 1.0 && wa.is_finite()));
        }
        assert_eq!(fifo_of_classes(1.1, &[(0.5, 0.5)]), None, "half of the writes are missing");
    }

    #[test]
    fn without_spare_there_is_no_answer() {
        assert_eq!(fifo(1.0), None);
        assert_eq!(greedy(0.9, 64), None);
        assert_eq!(greedy(f64::NAN, 64), None);
        assert_eq!(greedy(1.1, 0), None);
        assert_eq!(random(f64::INFINITY), None);
    }
}
