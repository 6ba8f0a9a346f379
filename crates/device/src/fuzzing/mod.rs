//! Random sequences of operations on parts of the drive, each beside a reference model that is too simple to be wrong.
//!
//! The bytes of an input choose a small drive and what happens to it. Any bytes are an input. Each part panics where it
//! differs from its model. The fuzz targets of the same names run these functions; the tests here run them on bytes drawn
//! from a seed.

mod block_pool;
mod mapping;
mod media;

/// The bytes of a log unit of a cache ([`crate::ftl`]).
pub fn cache_notes(bytes: &[u8]) {
    crate::ftl::notes_from_bytes(bytes);
}

/// The bytes of a page of a cache's checkpoint ([`crate::ftl`]).
pub fn cache_checkpoint(bytes: &[u8]) {
    crate::ftl::checkpoint_from_bytes(bytes);
}

pub use block_pool::block_pool;
pub use mapping::mapping;
pub use media::media;

use ssdlab_flash::{BlockId, Contents};

use crate::block_pool::BlockState;
use crate::gc::Gc;
use crate::gc::victim::POLICIES;
use crate::media::Media;
use crate::{Description, DriveConfig, Options};

/// Most operations of an input: enough to write a small drive over several times.
const STEPS_MOST: usize = 1500;

/// The bytes of an input, one after another; zeroes when they have run out.
struct Input<'a> {
    bytes: &'a [u8],
    steps: usize,
}

impl<'a> Input<'a> {
    fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, steps: 0 }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        let number = if end > 256 { u32::from(self.byte()) << 8 | u32::from(self.byte()) } else { self.byte().into() };
        number % end.max(1)
    }

    /// One of several.
    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let index = self.below(from.len() as u32) as usize;
        from.get(index).copied()
    }

    /// Whether there is another operation.
    fn goes_on(&mut self) -> bool {
        self.steps += 1;
        !self.bytes.is_empty() && self.steps <= STEPS_MOST
    }
}

/// A small drive: `ftl` and `gc` are lines of their sections.
fn drive(geometry: [u32; 5], page: &str, timed: bool, ftl: &str, gc: &str) -> Option<DriveConfig> {
    let [channels, dies, planes, blocks, pages] = geometry;
    let timing = if timed { "" } else { "timing = \"none\"\n" };
    let text = format!(
        "[flash]\nchannels = {channels}\nchips_per_channel = 1\ndies_per_chip = {dies}\nplanes_per_die = {planes}\n\
         blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = \"{page}\"\ncell = \"slc\"\n{timing}\
         [capacity]\nover_provisioning = \"300%\"\n[ftl]\n{ftl}[gc]\nfree_blocks = 2\n{gc}"
    );
    let config = Description::parse(&text, "fuzz.toml").and_then(|description| description.resolve()).ok()?;
    config.validate().is_ok().then_some(config)
}

fn options(contents: Contents) -> Options {
    Options { seed: 1, contents }
}

/// Collection that takes the block with the fewest valid units.
fn greedy(config: &DriveConfig) -> Gc {
    let greedy = POLICIES.all()[0];
    Gc::new(config, (greedy.make)(config))
}

/// The controller over chips whose power has come back: blocks are what is written in them, as the drive's recovery has it.
fn adopt(media: &mut Media) {
    for superblock in 0..media.pool.superblocks_count() {
        let programmed = media.programmed(superblock);
        let members: Vec<BlockId> = media.pool.superblocks.members(superblock).collect();
        let is_open = (1..media.pages_per_superblock()).contains(&programmed);
        assert!(members.iter().all(|block| !media.flash.blocks.get(*block).torn), "no erase was cut");
        if programmed == 0 {
            media.pool.adopt(superblock, BlockState::Free);
        } else if !is_open || !media.reopen(superblock) {
            media.pool.adopt(superblock, BlockState::Closed);
        }
    }
    media.pool.rebuild_free(&media.flash);
    media.fill_stripes();
    for group in 0..media.pool.groups() {
        media.pool.audit(group);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    /// Inputs of all lengths, most of them long.
    fn run(name: &str, target: fn(&[u8])) {
        for seed in 0..250 {
            let mut rng = rng(seed, name);
            let length = rng.random_range(1..4000);
            let bytes: Vec<u8> = (0..length).map(|_| rng.random_range(0..=255)).collect();
            target(&bytes);
        }
    }

    #[test]
    fn the_block_pool_does_what_its_model_does() {
        run("block pool", super::block_pool);
    }

    #[test]
    fn the_notes_of_a_cache_are_refused_or_come_back() {
        run("cache notes", super::cache_notes);
    }

    #[test]
    fn the_checkpoints_of_a_cache_are_refused_or_come_back() {
        run("cache checkpoint", super::cache_checkpoint);
    }

    #[test]
    fn the_page_map_finds_what_an_array_holds() {
        run("mapping", super::mapping);
    }

    #[test]
    fn pages_come_in_order_stripes_add_up_and_pins_go() {
        run("media", super::media);
    }
}
