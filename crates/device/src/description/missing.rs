//! What a description lacks that no single key says: one of several keys, or a time that a preset would give.

use super::errors::Errors;
use super::reader::{Field, Section};
use super::{controller, flash};

/// Tells of each.
pub(super) fn check(root: &Section<'_>, errors: &mut Errors) {
    // What is no table has been told.
    if let Ok(flash) = root.section("flash") {
        if flash.get("blocks_per_plane").is_none() && flash.get("die_capacity").is_none() {
            errors.missing(flash::no_blocks(&flash));
        }
        times(&flash, errors);
        pauses(&flash, errors);
    }
    if let Ok(capacity) = root.section("capacity")
        && capacity.get("over_provisioning").is_none()
        && capacity.get("user").is_none()
    {
        errors.missing(controller::no_capacity(&capacity));
    }
}

/// The times that neither a preset nor the table gives.
fn times(flash: &Section<'_>, errors: &mut Errors) {
    if flash.get("cell").is_some() {
        return;
    }
    let Some(field) = flash.get("timing") else { return errors.missing(flash::no_timing(flash)) };
    if field.as_text().is_some() {
        return;
    }
    let Ok(table) = field.section() else { return };
    if table.get("preset").is_some() {
        return;
    }
    let given =
        |key: &'static str| table.get(key).is_some() || key == "transfer" && table.get("channel_bandwidth").is_some();
    for (key, what) in flash::REQUIRED_TIMES {
        if !given(key) {
            errors.missing(flash::no_time(&table, key, what));
        }
    }
}

/// The times of suspension, which no preset gives, of chips that suspend.
fn pauses(flash: &Section<'_>, errors: &mut Errors) {
    let timing = flash.get("timing");
    let untimed = timing.as_ref().and_then(Field::as_text) == Some("none");
    let suspends = |key| flash.flag(key).unwrap_or(false);
    if untimed || !suspends("program_suspend") && !suspends("erase_suspend") {
        return;
    }
    let table = timing.filter(|field| field.as_text().is_none()).and_then(|field| field.section().ok());
    let given = |key: &'static str| table.as_ref().is_some_and(|table| table.get(key).is_some());
    for key in flash::PAUSES.into_iter().filter(|key| !given(key)) {
        errors.missing(flash::no_pause(flash, table.as_ref(), key));
    }
}
