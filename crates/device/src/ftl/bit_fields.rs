//! One bit a unit, packed in words: what is valid on flash, what is mapped.

/// The first set bit in `from..end`.
#[inline]
pub(super) fn next_set(words: &[u64], from: u32, end: u32) -> Option<u32> {
    let mut at = from;
    while at < end {
        let word = words[at as usize / 64] >> (at % 64);
        if word != 0 {
            let found = at + word.trailing_zeros();
            return (found < end).then_some(found);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// Clears bits `from..end`.
pub(super) fn clear_bits(words: &mut [u64], from: u32, end: u32) {
    each_word(from, end, |word, mask| words[word] &= !mask);
}

/// Sets bits `from..end`.
pub(super) fn set_bits(words: &mut [u64], from: u32, end: u32) {
    each_word(from, end, |word, mask| words[word] |= mask);
}

#[inline]
fn each_word(from: u32, end: u32, mut apply: impl FnMut(usize, u64)) {
    let mut at = from;
    while at < end {
        let stop = ((at / 64 + 1) * 64).min(end);
        debug_assert!(at < stop && stop - at <= 64, "bits {at} to {stop} are in one word");
        let mask = (u64::MAX >> (64 - (stop - at))) << (at % 64);
        apply(at as usize / 64, mask);
        at = stop;
    }
}
