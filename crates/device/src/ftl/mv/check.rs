//! What must hold: of a description before there is a drive, and of the drive when all of it is walked.

use ssdlab_flash::{Lpn, Ppn};

use super::MvFtl;
use super::entry::Split;
use super::keys::{VersionIndex, Versions};
use super::layout::{self, OOB_BYTES, PageIndex, Version};
use crate::media::Media;
use crate::{Check, DriveConfig, DriveError};

fn refuse<T>(key: &str, reason: String) -> Result<T, DriveError> {
    Err(DriveError { key: key.to_string(), reason })
}

/// Refuses a configuration that the design cannot work with.
pub(super) fn validate(config: &DriveConfig) -> Result<Split, DriveError> {
    let (geometry, versions) = (&config.flash.geometry, Versions::of(config));
    let page = geometry.page_bytes;
    if config.ftl.mapping_unit != page {
        let unit = config.ftl.mapping_unit;
        return refuse(
            "ftl.mapping_unit",
            format!("{unit} bytes: the design 'mvftl' maps pages, here of {page} bytes; set it to {page}"),
        );
    }
    let pages = geometry.pages();
    let Some(split) = Split::new(pages, versions.bits, versions.compaction) else {
        let ppn_bits = 64 - (pages - 1).leading_zeros();
        let given = versions.bits.map_or(String::new(), |bits| format!(", and {bits} are asked for"));
        let flag = if versions.compaction { ", one of them for the flag of compacted pages" } else { "" };
        return refuse(
            "ftl.version_bits",
            format!(
                "{pages} physical pages take {ppn_bits} of the 32 bits of a map entry, which leaves {} for PT/F{given}; \
                 at least {} are needed{flag}",
                32_u32.saturating_sub(ppn_bits),
                2 + u32::from(versions.compaction),
            ),
        );
    };
    if versions.chain < 2 {
        return refuse("ftl.version_chain", format!("{} is too few: a full page and one version", versions.chain));
    }
    if versions.index == VersionIndex::Direct && versions.chain > 2 {
        let reason = format!("{} versions: a direct index finds 2, the older and the newer one", versions.chain);
        return refuse("ftl.version_chain", reason);
    }
    if versions.group_pages == 0 {
        return refuse("ftl.version_group", "0 pages, expected at least 1".to_string());
    }
    if versions.spare_percent > 100 {
        return refuse("ftl.version_spare", format!("{} % is more than all", versions.spare_percent));
    }
    if versions.compaction {
        compaction(config, &versions, split)?;
    }
    addresses_spare(config, &versions, split)?;
    Ok(split)
}

fn compaction(config: &DriveConfig, versions: &Versions, split: Split) -> Result<(), DriveError> {
    let geometry = &config.flash.geometry;
    let page = geometry.page_bytes;
    if page < 2048 {
        let reason = format!("pages of {page} bytes have no room for two parts of pages behind a sector of layout");
        return refuse("ftl.compaction", reason);
    }
    if versions.region_bytes < u64::from(page) || !versions.region_bytes.is_multiple_of(u64::from(page)) {
        let reason = format!("{} bytes is not a whole number of pages of {page} bytes", versions.region_bytes);
        return refuse("ftl.region", reason);
    }
    let triples = PageIndex::of(versions.compaction_index, geometry.oob_bytes).triples;
    if triples < 2 {
        return refuse(
            "ftl.compaction_index",
            format!(
                "an out-of-band area of {} bytes holds {triples} entries of an index beside {OOB_BYTES} bytes of its own; \
                 two are needed, or the index in the page",
                geometry.oob_bytes
            ),
        );
    }
    if versions.index == VersionIndex::Direct && u64::from(split.most()) + 1 < geometry.pages() {
        return refuse(
            "ftl.version_index",
            format!(
                "direct pointers reach {} of {} pages: what is compacted into one page has its older versions anywhere; \
                 use indirect",
                split.most(),
                geometry.pages()
            ),
        );
    }
    Ok(())
}

/// The slots of all groups must be enough for the spare pages that versions may take.
fn addresses_spare(config: &DriveConfig, versions: &Versions, split: Split) -> Result<(), DriveError> {
    let geometry = &config.flash.geometry;
    if versions.index == VersionIndex::Direct {
        return Ok(());
    }
    let room = config.room_units(geometry.blocks_per_plane)
        * u64::from(geometry.planes() / config.ftl.superblock.planes(geometry));
    let spare = room.saturating_sub(u64::from(config.user_units())) * versions.spare_percent / 100;
    let groups = u64::from(config.user_units().div_ceil(versions.group_pages));
    let slots = groups * u64::from(split.most());
    // A version each is as much as anybody can ask for.
    let wanted = spare.min(u64::from(config.user_units()));
    if slots >= wanted {
        return Ok(());
    }
    refuse(
        "ftl.version_group",
        format!(
            "{groups} groups of {} pages with {} slots each address {slots} versions, fewer than the {wanted} that the \
             spare pages may hold; make groups smaller, or PT wider",
            versions.group_pages,
            split.most()
        ),
    )
}

impl MvFtl {
    pub(super) fn check_all(&self, media: &Media) -> Vec<Check> {
        let (mut mapped, mut references, mut wrong, mut too_long) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut compacted_references = 0;
        for lpn in self.map.lpns() {
            let full_entry = self.map.full_page(lpn).map(|page| [page]);
            let several;
            let chain: &[Ppn] = match &full_entry {
                Some(page) => page,
                None => {
                    several = self.map.chain(lpn);
                    &several
                }
            };
            mapped += u64::from(!chain.is_empty());
            references += chain.len() as u64;
            for (index, ppn) in chain.iter().enumerate() {
                let compacted = layout::is_compacted(media, *ppn);
                compacted_references += u64::from(compacted);
                let held = if lpn.0 >= self.user_units {
                    media.flash.oob.lpn(ppn.sole_unit()) == lpn
                } else {
                    self.holds_in_order(media, lpn, chain, index)
                };
                wrong += u64::from(!held || !self.is_valid(*ppn) || full_entry.is_some() && self.is_part(media, *ppn));
            }
            too_long += u64::from(!self.map.is_odd(lpn) && !self.map.within_bound(chain));
        }
        let valid: u64 = self.valid.as_slice().iter().map(|word| u64::from(word.count_ones())).sum();
        let superblocks = 0..media.pool.superblocks_count();
        let counted: u64 = superblocks.map(|superblock| u64::from(media.pool.valid(superblock))).sum();
        let in_compacted: u64 = self.compacted.values().map(|versions| u64::from(*versions)).sum();
        let pages = references - compacted_references + self.compacted.len() as u64;
        let partial = Ppn::each(Ppn(0)..Ppn(media.flash.geometry().pages() as u32))
            .filter(|ppn| self.is_valid(*ppn) && self.is_part(media, *ppn))
            .count() as u64;
        let (ram, detail) = self.map.memory_law();
        vec![
            Check {
                name: "valid_pages_equal_mapped_pages",
                passed: valid == pages && valid == counted && in_compacted == compacted_references,
                detail: format!(
                    "{mapped} LPNs have {references} versions, {compacted_references} of them ({in_compacted} counted) in \
                     {} compacted pages: {pages} pages, {valid} valid, {counted} counted in blocks",
                    self.compacted.len()
                ),
            },
            Check {
                name: "oob_owner_equals_map_entry",
                passed: wrong == 0,
                detail: format!("{wrong} of {references} versions are not what their page says, or out of order"),
            },
            Check {
                name: "chains_within_bound",
                passed: too_long == 0,
                detail: format!("{too_long} chains are longer than their bound"),
            },
            Check {
                name: "versions_within_spare",
                passed: partial == self.space.total(),
                detail: format!("{partial} valid pages of versions, {} counted", self.space.total()),
            },
            Check { name: "modelled_ram_is_what_is_used", passed: ram, detail },
        ]
    }

    fn is_part(&self, media: &Media, ppn: Ppn) -> bool {
        layout::is_partial(media, ppn, self.user_units)
    }

    /// Whether a page of a chain holds a version of its logical page that makes sense, and is older than the one before it.
    fn holds_in_order(&self, media: &Media, lpn: Lpn, chain: &[Ppn], index: usize) -> bool {
        let version = |ppn| layout::version_of(media, ppn, lpn, self.patterns, self.full_mask);
        let Some(Version { number, mask, offset, .. }) = version(chain[index]) else { return false };
        let end = u64::from(offset.unwrap_or(0)) + u64::from(mask.count_ones());
        let is_sound =
            mask != 0 && mask & !self.full_mask == 0 && end <= u64::from(self.sectors) && number < media.sequence();
        let is_newer = |newer: Version| newer.number > number;
        is_sound && (index == 0 || version(chain[index - 1]).is_some_and(is_newer))
    }
}
