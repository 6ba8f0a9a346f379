//! FTL design `one-table`: page mapping at its smallest, a table from logical to physical pages in RAM.
//!
//! A template to copy. Say here which paper the design is from, in its terms and with its section numbers.

use ssdlab_base::saved;
use ssdlab_flash::{Lpn, UnitId};

use super::page_mapping::{self, Common, PageMapping};
use super::{Design, Drawing, Make};
use crate::DriveConfig;

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "one-table",
    summary: "page mapping at its smallest, a table of pages in RAM: the example of a design",
    keys: &[],
    make: Make {
        check: |config| page_mapping::check(config, DESIGN.name),
        drawing: Drawing { drive: page_mapping::draw, handful: page_mapping::handful, one_in: 11, ..Drawing::ANY },
        ..Make::of(|config| Box::new(OneTable::new(config)), |config| Common::simulator_bytes(config, ENTRY_BYTES))
    },
};

/// Bytes of an entry of the table.
const ENTRY_BYTES: u64 = 4;

/// The mapping.
struct OneTable {
    common: Common,
    /// By logical page: the physical one; [`UnitId::NONE`] where there is none.
    table: Vec<UnitId>,
    /// Entries that were changed and held something.
    overwritten: u64,
}

// What a snapshot holds; counters begin at zero.
saved!(OneTable: common, table[..]);

impl OneTable {
    fn new(config: &DriveConfig) -> OneTable {
        let common = Common::new(config);
        OneTable { table: vec![UnitId::NONE; common.entries() as usize], common, overwritten: 0 }
    }
}

impl PageMapping for OneTable {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn lookup(&self, lpn: Lpn) -> UnitId {
        self.table[lpn.index()]
    }

    fn update(&mut self, lpn: Lpn, unit: UnitId) {
        let old = std::mem::replace(&mut self.table[lpn.index()], unit);
        self.overwritten += u64::from(old != UnitId::NONE && unit != UnitId::NONE);
    }

    fn table_bytes(&self) -> u64 {
        self.table.len() as u64 * ENTRY_BYTES
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        vec![("entries_overwritten".to_string(), self.overwritten as f64)]
    }

    fn reset_metrics(&mut self) {
        self.overwritten = 0;
    }
}
