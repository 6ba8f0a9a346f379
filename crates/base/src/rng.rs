//! Seeded randomness, handed down and never drawn from the environment.

use rand::SeedableRng;

/// The one generator of the house: small, fast, and the same on every machine.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// A generator for one purpose: the same `seed` gives independent streams for different `purpose`s.
///
/// ```
/// use rand::Rng as _;
/// let mut a = ssdlab_base::rng(1, "gc");
/// let mut b = ssdlab_base::rng(1, "gc");
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
pub fn rng(seed: u64, purpose: &str) -> Rng {
    // FNV-1a over the purpose keeps the streams apart; SplitMix inside `seed_from_u64` spreads them.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in purpose.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    Rng::seed_from_u64(seed ^ hash)
}
