//! Lists of owners beside a reference model: what each page holds, which pages a list names, and what a power cut leaves.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ssdlab_flash::{BlockId, Cause, Contents, Lpn, OpKind, Ppn};

use crate::block_pool::BlockState;
use crate::gc::Gc;
use crate::gc::victim::POLICIES;
use crate::media::{Frontier, Media, Place, Programming};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Description, DriveConfig, Options};

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

/// Pages of a block, and units of a page.
const PAGES: u32 = 6;
const UNITS: u32 = 4;

fn config() -> DriveConfig {
    let text = format!(
        "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\nblocks_per_plane = 7\n\
         pages_per_block = {PAGES}\npage_size = \"4k\"\noob = \"ecc\"\ntiming = \"none\"\n[capacity]\nover_provisioning = \"400%\"\n\
         [ftl]\nmapping_unit = \"1k\"\nowners = \"summary\"\n"
    );
    let config = Description::parse(&text, "model.toml").and_then(|description| description.resolve());
    config.expect("a drive that lists owners")
}

/// A page of the model.
#[derive(Clone, Debug, PartialEq)]
struct ModelPage {
    /// Empty of a list, and of what a power cut took.
    owners: Vec<Lpn>,
    /// Blocks that it superseded.
    pins: BTreeSet<u32>,
}

/// What a block holds, by page, and how many pages from the first on a list names.
#[derive(Clone, Debug, Default)]
struct ModelBlock {
    pages: Vec<ModelPage>,
    named: usize,
}

#[derive(Default)]
struct Model {
    blocks: BTreeMap<u32, ModelBlock>,
}

impl Model {
    fn list(&mut self, block: u32) {
        let state = self.blocks.get_mut(&block).expect("a block with pages is listed");
        state.named = state.pages.len();
        state.pages.push(ModelPage { owners: Vec::new(), pins: BTreeSet::new() });
    }

    fn lacks_list(block: &ModelBlock) -> bool {
        block.pages[block.named..].iter().any(|page| !page.owners.is_empty())
    }

    /// Blocks with pages that supersede something in `block`, and that no list names.
    fn pins(&self, block: u32) -> u32 {
        let holds = |state: &&ModelBlock| state.pages[state.named..].iter().any(|page| page.pins.contains(&block));
        self.blocks.values().filter(holds).count() as u32
    }

    fn cut(&mut self) {
        for state in self.blocks.values_mut() {
            let named = state.named;
            for page in &mut state.pages[named..] {
                (page.owners, page.pins) = (Vec::new(), BTreeSet::new());
            }
        }
    }
}

fn compare(model: &Model, media: &Media) {
    for block in 0..media.flash.geometry().blocks() {
        let empty = ModelBlock::default();
        let state = model.blocks.get(&block).unwrap_or(&empty);
        let id = BlockId(block);
        assert_eq!(media.flash.blocks.get(id).programmed as usize, state.pages.len(), "pages of block {block}");
        let pins = media.pool.pins(block);
        assert_eq!(pins, model.pins(block), "pins of block {block}");
        for (page, expected) in (0..).zip(&state.pages) {
            let place = Place { block: id, page };
            let owners: Vec<Lpn> = media.flash.oob.lpns(media.unit_at(place), UNITS).to_vec();
            let mut padded = expected.owners.clone();
            padded.resize(UNITS as usize, Lpn::NONE);
            assert_eq!(owners, padded, "owners of {place:?}");
            let named = (page as usize) < state.named;
            assert_eq!(media.is_durable(media.ppn_at(place)), named, "{place:?} is durable");
        }
    }
    let named: usize = model.blocks.values().map(|block| block.named).sum();
    assert_eq!(media.listed_pages().count(), named, "pages that lists name");
}

/// Blocks are what recovery found in them.
fn adopt(media: &mut Media) {
    for block in 0..media.pool.superblocks_count() {
        match media.programmed(block) {
            0 => media.pool.adopt(block, BlockState::Free),
            programmed if programmed < PAGES && media.reopen(block) => {}
            _ => media.pool.adopt(block, BlockState::Closed),
        }
    }
    media.pool.rebuild_free(&media.flash);
}

proptest! {
    #[test]
    fn lists_name_what_the_model_says_and_recovery_finds_that(
        steps in prop::collection::vec((0_u8..10, 0_u32..2, 1_u32..=UNITS, 0_u32..200, any::<u64>()), 0..200)
    ) {
        let config = config();
        let mut media = Media::new(&config, OPTIONS);
        let mut gc = Gc::new(&config, (POLICIES.all()[0].make)(&config));
        let mut model = Model::default();
        for (step, group, units, lpn, word) in steps {
            match step {
                // An early list of every open block.
                0 => {
                    media.list_all();
                    let open: Vec<u32> = model.blocks.iter().filter(|(_, state)| Model::lacks_list(state)).map(|(block, _)| *block).collect();
                    open.into_iter().for_each(|block| model.list(block));
                }
                1 => {
                    media.flash.power_cut(media.now);
                    media = Media::over(&config, OPTIONS, media.flash);
                    media.pool.forget();
                    let mut reads = RecoveryReads::new(&media.flash, &config.flash.timing);
                    media.read_lists(&mut reads);
                    adopt(&mut media);
                    model.cut();
                    assert!(reads.pages() >= u64::from(media.flash.geometry().blocks()), "every block is looked at");
                    gc = Gc::new(&config, (POLICIES.all()[0].make)(&config));
                }
                // A closed block that nothing pins is erased.
                2 => {
                    let closed = |block: &u32| media.pool.state(*block) == BlockState::Closed && media.pool.pins(*block) == 0;
                    if let Some(block) = (0..media.pool.superblocks_count()).find(closed) {
                        media.pool.collect(block);
                        media.was_emptied(block);
                        media.pool.await_erase(block);
                        gc.erase(&mut media, block);
                        model.blocks.remove(&block);
                    }
                }
                _ => {
                    let frontier = if step < 6 { Frontier::Host(0) } else { Frontier::Gc };
                    let Some(place) = media.take_page(group, frontier) else { continue };
                    let lpns: Vec<Lpn> = (0..units).map(|unit| Lpn(lpn + unit)).collect();
                    let written: Vec<u32> = model.blocks.keys().copied().filter(|block| *block != place.block.0).collect();
                    let pins: Vec<BlockId> = (0..units.min(written.len() as u32))
                        .map(|index| BlockId(written[(word >> (8 * index)) as usize % written.len()]))
                        .collect();
                    let cause = Cause::Host;
                    media.program(place, &lpns, Programming {
                        kind: OpKind::Program, cause, frontier, owner: Waiter::None, pins: &pins, after: &[], taken: &[], source: Ppn::NONE,
                    });
                    let state = model.blocks.entry(place.block.0).or_default();
                    prop_assert_eq!(state.pages.len() as u32, place.page);
                    state.pages.push(ModelPage { owners: lpns, pins: pins.iter().map(|pin| pin.0).collect() });
                    if place.page + 2 == PAGES {
                        model.list(place.block.0);
                    }
                }
            }
            media.wakes.erasable.clear();
            compare(&model, &media);
        }
    }
}
