//! Read-ahead: an open file that is read in order is read before it is asked for, a window of 16 KB to the limit ahead. Several streams
//! of one file are told apart.

use crate::call::BLOCK_BYTES;
use crate::calls::data::blocks;
use crate::core::{Core, Stop, View};
use crate::log_structured::LogStructured;

impl LogStructured {
    /// A file is read: what follows is read ahead if reads follow each other.
    pub(crate) fn read_ahead(&mut self, number: u32, offset: u64, length: u32) {
        let most = (self.core.options.read_ahead / BLOCK_BYTES) as u32;
        let Some(size) = self.core.cache.inode(number).map(|inode| inode.size) else { return };
        let Some(file) = self.core.files.get_mut(&number).filter(|file| file.opens > 0) else { return };
        let range = blocks(offset, u64::from(length).min(size.saturating_sub(offset)));
        if most == 0 || range.is_empty() {
            return;
        }
        let Some(stream) = file.read_ahead.stream(&range) else { return };
        let Some(ahead) = stream.window(&range, most, Core::blocks_of(size)) else { return };
        let mut needs = Vec::new();
        let view = View::of(&self.core);
        for block in ahead {
            let Some(inode) = view.core.cache.inode(number) else { break };
            // Index blocks are not read ahead: where one is missing, its reader asks for it.
            match view.page(inode, block) {
                Err(Stop::Missing(missing)) => needs.extend(missing.into_iter().filter(|need| is_page(need, number))),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        self.core.metrics.ahead_blocks += needs.len() as u64;
        self.load(needs, None);
    }
}

fn is_page(need: &crate::core::Need, number: u32) -> bool {
    matches!(need.key.of(), crate::core::cache::Of::Page { inode, .. } if inode == number)
}
