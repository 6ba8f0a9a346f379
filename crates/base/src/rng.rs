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
    // The hash keeps the streams apart; SplitMix inside `seed_from_u64` spreads them.
    Rng::seed_from_u64(seed ^ fnv1a(purpose.bytes()))
}

/// The 64-bit hash FNV-1a of bytes: the same on every machine and in every version.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// Bytes of a generator's state.
pub const RNG_BYTES: usize = 32;

/// Where a generator is in its stream, to go on from there: [`rng_at`] is the way back.
///
/// ```
/// use rand::Rng as _;
/// let mut first = ssdlab_base::rng(1, "gc");
/// first.next_u64();
/// let mut second = ssdlab_base::rng_at(ssdlab_base::rng_state(&first));
/// assert_eq!(first.next_u64(), second.next_u64());
/// ```
///
/// # Panics
/// If the generator's state were not four words, which its type says.
pub fn rng_state(rng: &Rng) -> [u8; RNG_BYTES] {
    // The words are private; serde is the door that the generator has for them.
    let value = serde_json::to_value(rng).expect("four words are JSON");
    let words = value["s"].as_array().filter(|words| words.len() * 8 == RNG_BYTES).expect("a state of four words");
    let mut state = [0; RNG_BYTES];
    for (bytes, word) in state.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.as_u64().expect("a word of 64 bits").to_le_bytes());
    }
    state
}

/// A generator that goes on where [`rng_state`] found one.
pub fn rng_at(state: [u8; RNG_BYTES]) -> Rng {
    Rng::from_seed(state)
}
