//! What the design counts, for the result's `design` block and the paper's Figures 11 and 12.

use super::pattern::Patterns;

/// Chains of up to so many versions are counted one by one.
const LENGTHS: usize = 8;

/// Why a partial write became a full page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    /// Its mask is no pattern.
    NoPattern,
    /// The chain is as long as it may be.
    AtBound,
    /// There is no slot, nothing within reach, or no page for another version.
    NoPage,
    /// Together with the compacted version that it overwrites.
    Compacted,
}

/// Counters since they were last reset.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    /// Partial pages that came from the host or the buffer (Figure 11).
    pub(super) partial_page_writes: u64,
    /// Partial page writes to pages that held nothing.
    pub(super) partial_first_writes: u64,
    /// Partial page writes that became a version without a read, by pattern; the last is a mask that is no pattern.
    by_pattern: Vec<u64>,
    /// Partial page writes that were merged with the compacted version they overwrite.
    pub(super) compacted_overwrites: u64,
    /// Partial page writes that were completed from flash because their mask is no pattern.
    pub(super) no_pattern: u64,
    /// Partial page writes that were completed from flash because the chain is as long as it may be.
    pub(super) at_bound: u64,
    /// Partial page writes that were completed from flash because the group has no slot, the pointer reaches no page
    /// that is free, or versions have all the spare pages that they may take.
    pub(super) no_page: u64,
    /// Partial page writes that were completed from flash because with the compacted version they overwrite they are a
    /// full page, or all that the page holds, or cannot be one version.
    pub(super) with_compacted: u64,
    /// Reads that partial writes waited for.
    pub(super) additional_reads_at_write: u64,
    /// Reads of older versions that host reads waited for.
    pub(super) additional_reads_at_read: u64,
    /// Compacted pages written for the host, and the partial pages in them.
    pub(super) compacted_pages: u64,
    pub(super) compacted_versions: u64,
    /// Sectors at the heads of compacted pages, and bytes of identifiers and triples in them.
    pub(super) layout_bytes: u64,
    /// Chains merged by the background, by garbage collection and the like, and by writes.
    pub(super) merges_idle: u64,
    pub(super) merges_gc: u64,
    pub(super) merges_write: u64,
    /// Compacted pages that collection moved as they were.
    pub(super) compacted_moved: u64,
    /// Lengths of chains when a version was put on them.
    lengths: [u64; LENGTHS + 1],
    patterns: Patterns,
}

impl Counters {
    pub(super) fn new(patterns: Patterns) -> Counters {
        Counters {
            partial_page_writes: 0,
            partial_first_writes: 0,
            by_pattern: vec![0; patterns.count() as usize + 1],
            compacted_overwrites: 0,
            no_pattern: 0,
            at_bound: 0,
            no_page: 0,
            with_compacted: 0,
            additional_reads_at_write: 0,
            additional_reads_at_read: 0,
            compacted_pages: 0,
            compacted_versions: 0,
            layout_bytes: 0,
            merges_idle: 0,
            merges_gc: 0,
            merges_write: 0,
            compacted_moved: 0,
            lengths: [0; LENGTHS + 1],
            patterns,
        }
    }

    /// A partial write was completed from flash.
    pub(super) fn completed(&mut self, why: Completed) {
        match why {
            Completed::NoPattern => self.no_pattern += 1,
            Completed::AtBound => self.at_bound += 1,
            Completed::NoPage => self.no_page += 1,
            Completed::Compacted => self.with_compacted += 1,
        }
    }

    /// A version was put on a chain that has `length` versions now.
    pub(super) fn pushed(&mut self, mask: u64, length: usize) {
        let pattern = self.patterns.number(mask).unwrap_or(self.patterns.count());
        self.by_pattern[pattern as usize] += 1;
        self.chain_of(length);
    }

    /// A chain has so many versions now.
    pub(super) fn chain_of(&mut self, length: usize) {
        self.lengths[length.min(LENGTHS)] += 1;
    }

    /// A host read was served from so many versions.
    pub(super) fn read_versions(&mut self, pages: usize) {
        self.additional_reads_at_read += (pages as u64).saturating_sub(1);
    }

    /// All of it, by name.
    pub(super) fn rows(&self) -> Vec<(String, f64)> {
        let reads = self.additional_reads_at_write + self.additional_reads_at_read;
        let versions: u64 = self.by_pattern.iter().sum();
        let mut rows = vec![
            ("partial_page_writes", self.partial_page_writes),
            ("partial_first_writes", self.partial_first_writes),
            ("additional_reads", reads),
            ("additional_reads_at_write", self.additional_reads_at_write),
            ("additional_reads_at_read", self.additional_reads_at_read),
            ("version_writes", versions),
            ("compacted_overwrites", self.compacted_overwrites),
            ("completed_no_pattern", self.no_pattern),
            ("completed_chain_bound", self.at_bound),
            ("completed_no_page", self.no_page),
            ("completed_with_compacted", self.with_compacted),
            ("compacted_pages", self.compacted_pages),
            ("compacted_versions", self.compacted_versions),
            ("compacted_layout_bytes", self.layout_bytes),
            ("compacted_pages_moved", self.compacted_moved),
            ("merges_idle", self.merges_idle),
            ("merges_gc", self.merges_gc),
            ("merges_write", self.merges_write),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_string(), count as f64))
        .collect::<Vec<_>>();
        for (pattern, count) in self.by_pattern.iter().enumerate() {
            let name = if pattern as u32 == self.patterns.count() {
                "version_writes_no_pattern".to_string()
            } else {
                format!("version_writes_pattern_{pattern}")
            };
            rows.push((name, *count as f64));
        }
        for (length, count) in self.lengths.iter().enumerate().skip(2) {
            let more = if length == LENGTHS { "_or_more" } else { "" };
            rows.push((format!("chains_of_{length}{more}"), *count as f64));
        }
        rows
    }
}
