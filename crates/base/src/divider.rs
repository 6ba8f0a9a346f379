//! Division by a number that is known when a drive is made.
//!
//! Addresses are taken apart for every flash operation. Most geometries are powers of two, where a shift does what a
//! division takes twenty cycles for; the others divide.

/// Divides by a fixed number, by a shift where that is possible.
///
/// ```
/// let by = ssdlab_base::Divider::new(256);
/// assert_eq!((by.div(1000), by.rem(1000)), (3, 232));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    divisor: u32,
    /// The shift of a power of two, else 32.
    shift: u32,
}

impl Divider {
    /// By `divisor`, which is not 0.
    pub const fn new(divisor: u32) -> Divider {
        assert!(divisor > 0, "nothing is divided by zero");
        let shift = if divisor.is_power_of_two() { divisor.trailing_zeros() } else { 32 };
        Divider { divisor, shift }
    }

    /// The quotient.
    #[inline(always)]
    pub const fn div(self, value: u32) -> u32 {
        if self.shift < 32 { value >> self.shift } else { value / self.divisor }
    }

    /// The remainder.
    #[inline(always)]
    pub const fn rem(self, value: u32) -> u32 {
        if self.shift < 32 { value & (self.divisor - 1) } else { value % self.divisor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_divides_as_division_does(value: u32, divisor in 1u32.., shift in 0u32..32) {
            for divisor in [divisor, 1 << shift] {
                let by = Divider::new(divisor);
                prop_assert_eq!((by.div(value), by.rem(value)), (value / divisor, value % divisor));
            }
        }
    }
}
