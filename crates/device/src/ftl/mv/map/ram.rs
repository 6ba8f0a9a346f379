//! The RAM that the map would take, and the law that it takes no more.

use super::{Index, VersionMap};

/// Modelled RAM of an odd chain beside its pages.
const ODD_BYTES: u64 = 8;

impl VersionMap {
    /// Modelled RAM by name: the entries, the tables of versions, the list of odd chains.
    pub(in crate::ftl::mv) fn memory(&self) -> Vec<(&'static str, u64)> {
        let (tables, most) = match &self.index {
            Index::Direct(_) => (0, 0),
            Index::Indirect(groups) => groups.bytes(),
        };
        vec![
            ("mapping_bytes", self.entries.bytes()),
            ("version_table_bytes", tables),
            ("version_table_bytes_max", most),
            ("odd_chain_bytes", self.odd_bytes()),
        ]
    }

    fn odd_bytes(&self) -> u64 {
        self.odd.values().map(|chain| ODD_BYTES + chain.len() as u64 * 4).sum()
    }

    /// The RAM of tables and list by walking all entries: what versions need and what is charged, and in words.
    pub(in crate::ftl::mv) fn memory_law(&self) -> (bool, String) {
        let (mut newer, mut listed, mut chains, mut alone) = (0, 0, 0, 0);
        for lpn in self.lpns().filter(|lpn| self.is_mapped(*lpn) && self.full_page(*lpn).is_none()) {
            let versions = self.chain(lpn).len() as u64;
            chains += 1;
            alone += u64::from(!self.is_odd(lpn) && versions == 1);
            if self.is_odd(lpn) {
                listed += ODD_BYTES + versions * 4;
            } else {
                newer += versions - 1;
            }
        }
        let (used, charged, counted) = match &self.index {
            // A direct pointer is in the entry.
            Index::Direct(_) => (newer, 0, 0),
            Index::Indirect(groups) => (groups.used(), groups.bytes().0, groups.bytes_counted()),
        };
        let held = used == newer
            && charged == counted
            && listed == self.odd_bytes()
            && (chains, alone) == (self.chains, self.alone);
        let detail = format!(
            "{newer} newer versions in {used} slots, tables of {counted} bytes and {charged} charged, lists of {listed} \
             bytes and {} charged, {chains} chains and {} counted",
            self.odd_bytes(),
            self.chains
        );
        (held, detail)
    }
}
