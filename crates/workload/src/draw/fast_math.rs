//! `exp` and `ln` for drawing random numbers: to twelve digits, a third of the time of a correctly rounded one, and the
//! same on every machine, because they are made of additions, multiplications and one division.

const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding and subtracting this rounds a small f64 to a whole number.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `e^x`, 0 below -700 and `e^700` above 700.
#[inline]
pub(crate) fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    let x = x.min(700.0);
    let k = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    // Taylor's series to r^11 in Estrin's order, |r| at most ln 2 / 2.
    let r2 = r * r;
    let r4 = r2 * r2;
    let low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    let middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let high = (1.0 / 40_320.0 + r * (1.0 / 362_880.0)) + r2 * (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0));
    let value = low + r4 * (middle + r4 * high);
    // k is between -1010 and 1010, so this is a normal power of two.
    value * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

/// The natural logarithm of a positive, normal, finite number.
#[inline]
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    // x = 2^k * m with m between sqrt(1/2) and sqrt(2).
    let bits = x.to_bits();
    let shifted = bits.wrapping_sub(std::f64::consts::FRAC_1_SQRT_2.to_bits()) as i64 >> 52;
    let m = f64::from_bits(bits.wrapping_sub((shifted as u64) << 52));
    let k = shifted as f64;
    // ln m = 2 atanh(s); the series to s^17, |s| at most 0.172.
    let s = (m - 1.0) / (m + 1.0);
    let t = s * s;
    let t2 = t * t;
    let t4 = t2 * t2;
    let low = (1.0 + t * (1.0 / 3.0)) + t2 * (1.0 / 5.0 + t * (1.0 / 7.0));
    let high = (1.0 / 9.0 + t * (1.0 / 11.0)) + t2 * (1.0 / 13.0 + t * (1.0 / 15.0));
    let series = low + t4 * (high + t4 * (1.0 / 17.0));
    k * LN_2_HIGH + (2.0 * s * series + k * LN_2_LOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::unit;

    #[test]
    fn both_agree_with_correctly_rounded_ones_to_twelve_digits() {
        let mut rng = ssdlab_base::rng(1, "fast math test");
        for _ in 0..1_000_000 {
            let x = (unit(&mut rng) - 0.5) * 1300.0;
            let exact = libm::exp(x);
            assert!((exp(x) / exact - 1.0).abs() < 1e-12, "exp {x}: {} {exact}", exp(x));
            let exact = libm::log(exact);
            assert!((ln(libm::exp(x)) - exact).abs() < 1e-12 * exact.abs().max(1.0), "ln of exp {x}");
            let near = 0.5 + unit(&mut rng);
            assert!((ln(near) - libm::log(near)).abs() < 1e-12, "ln {near}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(exp(-1e9), 0.0);
        assert!(exp(1e9).is_finite());
    }
}
