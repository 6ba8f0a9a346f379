//! What standard error says of damaged pages of a served drive's images.

use ssdlab_live::Engine;

use crate::stderr;

/// Damaged pages that were named or counted on standard error.
#[derive(Debug, Default)]
pub(crate) struct DamageReport {
    named: u64,
    counted: u64,
}

impl DamageReport {
    /// Names each page that was found to be damaged since the last call. Of pages beyond those that an image names it says how
    /// many there are, each time that their number has doubled and, with `last`, whatever it is.
    pub(crate) fn look(&mut self, engine: &Engine, last: bool) {
        let (damages, pages) = engine.take_damage();
        self.named += damages.len() as u64;
        for damage in damages {
            stderr::say(format_args!("warning: {damage}; reads of them end with EIO"));
        }
        let others = pages - self.named;
        if others > self.counted && (last || others >= 2 * self.counted) {
            let one = if others == 1 { "page is" } else { "pages are" };
            stderr::say(format_args!(
                "warning: {others} more {one} damaged, not named here; reads of them end with EIO"
            ));
            self.counted = others;
        }
    }
}
