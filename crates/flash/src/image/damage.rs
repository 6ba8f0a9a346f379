//! Damaged data of an image: pages whose data does not agree with its check, found when they are read.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use crate::{Geometry, Ppn};

/// Damaged pages of an image that are named; more are counted only.
const NAMED_MOST: u64 = 16;

/// A page of an image with data that cannot be read. Reads of it end with an error; nothing else is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The image's file.
    pub path: PathBuf,
    /// Where the data of the damaged mapping unit begins in it, in bytes, and how long it is.
    pub offset: u64,
    /// Bytes of the mapping unit.
    pub bytes: u32,
    /// The page, counted through the drive.
    pub page: Ppn,
    /// Which mapping unit of the page it is.
    pub unit_in_page: u32,
    /// The drive's shape.
    pub geometry: Geometry,
    /// What was found in place of the data.
    pub found: DamageFound,
}

/// What was found in place of a unit's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageFound {
    /// Other bytes than were written.
    Check {
        /// The check of what is there.
        found: u32,
        /// The check in the page's entry.
        expected: u32,
    },
    /// The host's file system did not read it.
    Unread(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { path, offset, bytes, geometry, .. } = self;
        let (block, page) = (self.page.block(geometry.pages_per_block), self.page % geometry.pages_per_block);
        let plane = block.0 / geometry.blocks_per_plane;
        let die = plane / geometry.planes_per_die;
        let chip = die / geometry.dies_per_chip;
        write!(
            f,
            "{}: {bytes} bytes at offset {offset} are damaged: page {page} of block {block} (channel {}, chip {}, die {}, plane \
             {}), mapping unit {} of the page; ",
            path.display(),
            chip / geometry.chips_per_channel,
            chip % geometry.chips_per_channel,
            die % geometry.dies_per_chip,
            plane % geometry.planes_per_die,
            self.unit_in_page,
        )?;
        match &self.found {
            DamageFound::Check { found, expected } => {
                write!(f, "their check is {found:#010x}, expected {expected:#010x}")
            }
            DamageFound::Unread(error) => write!(f, "they cannot be read: {error}"),
        }
    }
}

/// Damaged pages of an image since it was opened.
#[derive(Debug, Default)]
pub(super) struct Damages {
    /// Pages that count already, and those whose program was cut or failed: their data is expected to be wrong.
    known: BTreeSet<Ppn>,
    count: u64,
    untold: Vec<Damage>,
}

impl Damages {
    /// Wrong data in this page is no damage.
    pub(super) fn expect(&mut self, page: Ppn) {
        self.known.insert(page);
    }

    /// The pages are erased: what is programmed next is good.
    pub(super) fn forget(&mut self, pages: Range<Ppn>) {
        if !self.known.is_empty() {
            self.known.retain(|page| !pages.contains(page));
        }
    }

    /// A unit of a page is damaged; `damage` says how, unless enough are named.
    pub(super) fn note(&mut self, page: Ppn, damage: impl FnOnce() -> Damage) {
        if !self.known.insert(page) {
            return;
        }
        self.count += 1;
        if self.count <= NAMED_MOST {
            self.untold.push(damage());
        }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn take(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.untold)
    }
}
