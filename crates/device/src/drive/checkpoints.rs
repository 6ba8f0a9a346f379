//! Checkpoints of the map of a design that writes them: when they begin, and what ended of them.

use ssdlab_flash::Done;

use super::Drive;
use crate::media::Place;

impl Drive {
    /// What a flush, or a command that is to leave a map behind, begins: a checkpoint, where the design writes one.
    pub(super) fn save_map(&mut self) {
        if let Some(checkpoints) = self.ftl.checkpoints() {
            checkpoints.save_map(&mut self.media);
        }
    }

    #[cold]
    pub(super) fn checkpoint_page_done(&mut self, done: &Done) {
        let place = Place { block: done.block, page: done.page };
        self.media.release_pins(done);
        let checkpoints = self.ftl.checkpoints().expect("a page of a checkpoint is its design's");
        checkpoints.programmed(&mut self.media, place, done.failed);
        // What follows from it has begun by now: who waits for all of it does not go on in between.
        let token = self.media.metadata.arrive();
        self.media.metadata.end(token);
        self.metadata_ended();
    }

    #[cold]
    pub(super) fn checkpoint_block_erased(&mut self, done: &Done) {
        if done.failed {
            self.media.flash.retire(done.block);
            self.gc.grown_bad += 1;
        }
        let checkpoints = self.ftl.checkpoints().expect("a block of checkpoints is its design's");
        checkpoints.erased(&mut self.media, done.block);
        self.metadata_ended();
    }
}
