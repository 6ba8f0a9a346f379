//! What a description lacks, told all at once: a datasheet is copied key by key, and an error a run would take as many
//! runs as there are keys.

use super::error::DescriptionError;
use super::key::Default;
use super::reader::{Field, Section};
use super::{controller, flash};

/// Refuses a description that lacks keys without a default, with every one of them.
pub(super) fn refuse(root: &Section<'_>) -> Result<(), DescriptionError> {
    let flash = root.section("flash")?;
    let mut missing: Vec<DescriptionError> = flash
        .keys()
        .iter()
        .filter(|key| flash.get(key.name).is_none())
        .filter_map(|key| match key.default {
            Default::Required(expected) => Some(flash.missing(key.name, expected)),
            _ => None,
        })
        .collect();
    missing.extend(times(&flash)?);
    missing.extend(pauses(&flash)?);
    let capacity = root.section("capacity")?;
    if capacity.get("over_provisioning").is_none() && capacity.get("user").is_none() {
        missing.push(controller::no_capacity(&capacity));
    }
    DescriptionError::all(missing)
}

/// The times that neither a preset nor the table gives.
fn times(flash: &Section<'_>) -> Result<Vec<DescriptionError>, DescriptionError> {
    if flash.get("cell").is_some() {
        return Ok(Vec::new());
    }
    let Some(field) = flash.get("timing") else {
        return Ok(vec![flash::no_timing(flash)]);
    };
    if field.as_text().is_some() {
        return Ok(Vec::new());
    }
    let table = field.section()?;
    if table.get("preset").is_some() {
        return Ok(Vec::new());
    }
    let given =
        |key: &'static str| table.get(key).is_some() || key == "transfer" && table.get("channel_bandwidth").is_some();
    Ok(flash::REQUIRED_TIMES
        .iter()
        .filter(|(key, _)| !given(key))
        .map(|(key, what)| flash::no_time(&table, key, what))
        .collect())
}

/// The times of suspension, which no preset gives, of chips that suspend.
fn pauses(flash: &Section<'_>) -> Result<Vec<DescriptionError>, DescriptionError> {
    let timing = flash.get("timing");
    let untimed = timing.as_ref().and_then(Field::as_text) == Some("none");
    if untimed || !flash.flag("program_suspend")? && !flash.flag("erase_suspend")? {
        return Ok(Vec::new());
    }
    let table = match timing.filter(|field| field.as_text().is_none()) {
        Some(field) => Some(field.section()?),
        None => None,
    };
    let given = |key: &'static str| table.as_ref().is_some_and(|table| table.get(key).is_some());
    let absent = flash::PAUSES.into_iter().filter(|key| !given(key));
    Ok(absent.map(|key| flash::no_pause(flash, table.as_ref(), key)).collect())
}
