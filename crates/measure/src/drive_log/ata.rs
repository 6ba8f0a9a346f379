//! ATA: vendors number and name their attributes as they like, so what is read is a stated table, by number and by the
//! name that smartctl's drive database gives it. What is not in the table is not read.

use serde_json::Value;

use super::document::{counted, not_a_count, number, set};
use super::{Counter, Snapshot};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// In place of a unit: the drive's logical sector.
const SECTOR: u64 = 0;

/// What an attribute counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Bytes written by the host, in this unit.
    Host(u64),
    /// Bytes written to the chips, in this unit. Several (SLC and TLC) are added.
    Media(u64),
    /// Pages programmed for the host.
    HostPages,
    /// Pages programmed for anything else.
    OtherPages,
    /// The normalised value is the percentage of life that is left.
    LifeLeft,
    /// The raw value is the percentage of life that is used.
    LifeUsed,
    /// The raw value is the average number of erases, the normalised one the percentage of life that is left.
    Erases,
}

use Counts::{Erases, Host, HostPages, LifeLeft, LifeUsed, Media, OtherPages};

/// The table: number, smartctl's name, meaning.
const TABLE: &[(u64, &str, Counts)] = &[
    (175, "Host_Writes_MiB", Host(MIB)),
    (199, "Host_Writes_GiB", Host(GIB)),
    (225, "Host_Writes_32MiB", Host(32 * MIB)),
    (235, "Device_Sectors_Written", Host(SECTOR)),
    (235, "Sectors_Written_to_SSD", Host(SECTOR)),
    (241, "Host_Writes_32MiB", Host(32 * MIB)),
    (241, "Host_Writes_GiB", Host(GIB)),
    (241, "Lifetime_Writes_GiB", Host(GIB)),
    (241, "Lifetime_Wts_Frm_Hst_GB", Host(1_000_000_000)),
    (241, "Total_LBAs_Written", Host(SECTOR)),
    (241, "Total_Writes_GB", Host(1_000_000_000)),
    (241, "Total_Writes_GiB", Host(GIB)),
    (246, "Total_LBAs_Written", Host(SECTOR)),
    (233, "Flash_Writes_32MiB", Media(32 * MIB)),
    (233, "Flash_Writes_GiB", Media(GIB)),
    (233, "Lifetime_Wts_To_Flsh_GB", Media(1_000_000_000)),
    (233, "NAND_GB_Written_TLC", Media(1_000_000_000)),
    (233, "NAND_GiB_Written", Media(GIB)),
    (233, "NAND_Writes_1GiB", Media(GIB)),
    (233, "NAND_Writes_32MiB", Media(32 * MIB)),
    (233, "Total_NAND_Writes_GiB", Media(GIB)),
    (234, "NAND_GB_Written_SLC", Media(1_000_000_000)),
    (235, "Flash_Writes_LBAs", Media(SECTOR)),
    (241, "Nand_Sectors_Written", Media(SECTOR)),
    (241, "Sectors_Written_to_NAND", Media(SECTOR)),
    (243, "NAND_Writes_32MiB", Media(32 * MIB)),
    (245, "Flash_Writes_32MiB", Media(32 * MIB)),
    (245, "TLC_Writes_32MiB", Media(32 * MIB)),
    (246, "SLC_Writes_32MiB", Media(32 * MIB)),
    (249, "NAND_Writes_1GiB", Media(GIB)),
    (249, "NAND_Writes_GiB", Media(GIB)),
    (249, "Total_NAND_Prog_Ct_GiB", Media(GIB)),
    (247, "Host_Program_Page_Count", HostPages),
    (248, "Bckgnd_Program_Page_Cnt", OtherPages),
    (248, "FTL_Program_Page_Count", OtherPages),
    (202, "Perc_Rated_Life_Used", LifeUsed),
    (202, "Percent_Lifetime_Remain", LifeLeft),
    (202, "Percent_Lifetime_Used", LifeUsed),
    (231, "SSD_Life_Left", LifeLeft),
    (233, "Media_Wearout_Indicator", LifeLeft),
    (173, "Avg_Write/Erase_Count", Erases),
    (177, "Wear_Leveling_Count", Erases),
];

/// The table as a person reads it: number, name, meaning.
pub fn attributes() -> Vec<(u64, &'static str, String)> {
    let unit = |unit: u64| match unit {
        SECTOR => "logical sectors".to_string(),
        1_000_000_000 => "10^9 bytes".to_string(),
        unit => ssdlab_base::format_size(unit),
    };
    let meaning = |counts| match counts {
        Host(bytes) => format!("written by the host, in {}", unit(bytes)),
        Media(bytes) => format!("written to the chips, in {}", unit(bytes)),
        HostPages => "pages programmed for the host".to_string(),
        OtherPages => "pages programmed for anything else".to_string(),
        LifeLeft => "normalised value: percent of life left".to_string(),
        LifeUsed => "raw value: percent of life used".to_string(),
        Erases => "raw value: erases of a block on average; normalised: percent of life left".to_string(),
    };
    TABLE.iter().map(|&(id, name, counts)| (id, name, meaning(counts))).collect()
}

/// The numbers under which vendors count what was written.
const COUNTERS: [u64; 9] = [225, 233, 235, 241, 243, 246, 247, 248, 249];

pub(super) fn take(snapshot: &mut Snapshot, document: &Value) -> Result<(), String> {
    let sector = number(document.get("logical_block_size")).and_then(|bytes| u64::try_from(bytes).ok());
    let sector = sector.filter(|&bytes| bytes > 0).unwrap_or(512);
    let bytes = |raw: u128, unit: u64, name: &str| counted(Some(raw), if unit == SECTOR { sector } else { unit }, name);
    // Of this document alone: another one behind it says the same again.
    let mut media: Option<Counter> = None;
    let (mut host_pages, mut other_pages, mut left) = (None, None, None);
    let mut nameless = Vec::new();
    let table = document.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    for attribute in table.into_iter().flatten() {
        let (Some(id), Some(name)) =
            (attribute.get("id").and_then(Value::as_u64), attribute.get("name").and_then(Value::as_str))
        else {
            continue;
        };
        let Some(raw) = attribute.pointer("/raw/value") else { continue };
        let known = TABLE.iter().find(|(number, known, _)| *number == id && *known == name).map(|row| row.2);
        // What an attribute that is not read looks like does not matter.
        let raw = match (number(Some(raw)), known) {
            (Some(raw), _) => raw,
            (None, Some(_)) => return Err(not_a_count(&format!("the raw value of attribute {id} ({name})"), raw)),
            (None, None) => continue,
        };
        let normalised = attribute.get("value").and_then(Value::as_u64).filter(|value| (1..=100).contains(value));
        let small = u64::try_from(raw).ok();
        match known {
            Some(Host(unit)) => set(&mut snapshot.host_written, bytes(raw, unit, name)?),
            Some(Media(unit)) => {
                media = match (media, bytes(raw, unit, name)?) {
                    (Some(one), Some(two)) => Some(Counter {
                        bytes: one.bytes.saturating_add(two.bytes),
                        unit: one.unit.saturating_add(two.unit),
                    }),
                    (one, two) => one.or(two),
                };
            }
            Some(HostPages) => set(&mut host_pages, small),
            Some(OtherPages) => set(&mut other_pages, small),
            Some(LifeLeft) => set(&mut left, normalised),
            Some(LifeUsed) => {
                set(&mut snapshot.percent_used, small.filter(|&used| used <= 255).map(|used| used as f64))
            }
            Some(Erases) => {
                set(&mut snapshot.erases.1, small);
                set(&mut left, normalised);
            }
            None if name.starts_with("Unknown") && COUNTERS.contains(&id) => nameless.push(id.to_string()),
            None => {}
        }
    }
    set(&mut snapshot.media_written, media);
    snapshot.program_pages = snapshot.program_pages.or(host_pages.zip(other_pages));
    statistics(snapshot, document, sector);
    set(&mut snapshot.percent_used, left.map(|left| 100.0 - left as f64));
    if !nameless.is_empty() {
        snapshot.notes.push(format!(
            "smartctl's drive database has no name for the attributes {}, so what they count is not known \
             (update-smart-drivedb may help)",
            nameless.join(", ")
        ));
    }
    Ok(())
}

/// The device statistics log of ATA 8 and later, whose units the standard fixes.
fn statistics(snapshot: &mut Snapshot, document: &Value, sector: u64) {
    let pages = document.pointer("/ata_device_statistics/pages").and_then(Value::as_array);
    for row in pages.into_iter().flatten().filter_map(|page| page.get("table")?.as_array()).flatten() {
        let (Some(name), Some(value)) = (row.get("name").and_then(Value::as_str), number(row.get("value"))) else {
            continue;
        };
        match name {
            "Logical Sectors Written" => {
                let bytes = value.checked_mul(u128::from(sector)).map(|bytes| Counter { bytes, unit: sector });
                set(&mut snapshot.host_written, bytes);
            }
            "Percentage Used Endurance Indicator" => {
                set(&mut snapshot.percent_used, (value <= 255).then_some(value as f64));
            }
            _ => {}
        }
    }
}
