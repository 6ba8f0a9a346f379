//! JSON documents of `nvme` and `smartctl`, told apart by their keys.

use serde_json::Value;

use super::{Counter, LogError, Snapshot, ata, scsi};

/// NVMe counts data in thousands of 512 bytes, rounded up.
const DATA_UNIT: u64 = 512_000;

const KNOWN: &str = "expected the JSON of `nvme smart-log -o json`, `nvme ocp smart-add-log -o json`, `nvme id-ctrl -o json` \
                     or `smartctl -j -x`, one or several behind one another";

pub(super) fn parse(name: &str, text: &str) -> Result<Snapshot, LogError> {
    let fail = |what: String| LogError { name: name.to_string(), what };
    let mut snapshot = Snapshot { source: name.to_string(), ..Snapshot::default() };
    let text = text.trim_start_matches('\u{feff}');
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let start = documents.byte_offset();
        // The line in which the document begins: white space before it is skipped.
        let line = || {
            let rest = text.as_bytes().get(start..).unwrap_or_default();
            let begins = start + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            1 + text.as_bytes()[..begins].iter().filter(|&&byte| byte == b'\n').count()
        };
        let document = match documents.next() {
            None => break,
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(fail(format!("this is not JSON: {error}; {KNOWN}"))),
        };
        let known = take(&mut snapshot, &document);
        if !known.map_err(|what| fail(format!("line {} (the document that begins there): {what}", line())))? {
            return Err(fail(format!("line {}: a JSON document without a key that is known here; {KNOWN}", line())));
        }
    }
    if snapshot.logs.is_empty() {
        return Err(fail(format!("the file is empty; {KNOWN}")));
    }
    Ok(snapshot)
}

/// Takes what a document says; false if it says nothing that is known.
fn take(snapshot: &mut Snapshot, document: &Value) -> Result<bool, String> {
    let before = snapshot.logs.len();
    if document.get("smartctl").is_some() || document.get("json_format_version").is_some() {
        smartctl(snapshot, document)?;
    } else {
        if document.get("data_units_written").is_some() {
            snapshot.logs.push("nvme smart-log");
            health(snapshot, document)?;
        }
        if field(document, OCP_WRITTEN).is_some() {
            snapshot.logs.push("nvme ocp smart-add-log");
            ocp(snapshot, document)?;
        }
        if let (Some(serial), Some(model)) = (string(document, "sn"), string(document, "mn")) {
            snapshot.logs.push("nvme id-ctrl");
            identity(snapshot, serial, model)?;
            set(&mut snapshot.capacity, number(document.get("tnvmcap")).and_then(|bytes| u64::try_from(bytes).ok()));
            snapshot.capacity = snapshot.capacity.filter(|&bytes| bytes > 0);
        }
        if let Some(own) = document.get("ssdlab").filter(|own| own.is_object()) {
            snapshot.logs.push("ssdlab");
            simulated(snapshot, own);
        }
    }
    Ok(snapshot.logs.len() > before)
}

/// The health log (02h), as `nvme` and `smartctl` both call its keys.
fn health(snapshot: &mut Snapshot, log: &Value) -> Result<(), String> {
    let written = count(log, ["data_units_written_s", "data_units_written"])?;
    set(&mut snapshot.host_written, counted(written, DATA_UNIT, "data_units_written")?);
    set(&mut snapshot.percent_used, count(log, ["percent_used", "percentage_used"])?.map(|percent| percent as f64));
    set(&mut snapshot.spare_percent, small(log, ["avail_spare", "available_spare"])?);
    set(&mut snapshot.power_on_hours, small(log, ["power_on_hours", "power_on_hours"])?);
    Ok(())
}

const OCP_WRITTEN: [&str; 2] = ["Physical media units written", "physical_media_units_written"];

/// OCP's extended health log (C0h); its physical media units are bytes.
fn ocp(snapshot: &mut Snapshot, log: &Value) -> Result<(), String> {
    set(&mut snapshot.media_written, counted(count(log, OCP_WRITTEN)?, 1, OCP_WRITTEN[0])?);
    set(&mut snapshot.erases.0, small(log, ["Min User data erase counts", "min_user_data_erase_count"])?);
    set(&mut snapshot.erases.1, small(log, ["Nand avg erase count", "nand_avg_erase_count"])?);
    set(&mut snapshot.erases.2, small(log, ["Max User data erase counts", "max_user_data_erase_count"])?);
    let endurance = count(log, ["Endurance estimate", "endurance_estimate"])?.filter(|&bytes| bytes > 0);
    set(&mut snapshot.endurance, endurance);
    Ok(())
}

/// What a simulated drive adds: its counters to the byte.
fn simulated(snapshot: &mut Snapshot, own: &Value) {
    let exact = |key: &str| number(own.get(key)).map(|bytes| Counter { bytes, unit: 1 });
    // The exact count goes before the rounded one.
    snapshot.host_written = exact("host_bytes_written").or(snapshot.host_written);
    snapshot.media_written = exact("media_bytes_written").or(snapshot.media_written);
    set(&mut snapshot.clock_ns, own.get("virtual_time_ns").and_then(Value::as_u64));
    let rated = own.get("rated_erases").and_then(Value::as_f64).filter(|&rated| rated > 0.0);
    set(&mut snapshot.erases_mean, own.get("erases_mean").and_then(Value::as_f64));
    let used = rated.zip(snapshot.erases_mean).map(|(rated, mean)| mean / rated * 100.0);
    snapshot.percent_used = used.or(snapshot.percent_used);
}

fn smartctl(snapshot: &mut Snapshot, document: &Value) -> Result<(), String> {
    let model = string(document, "model_name").or_else(|| string(document, "scsi_model_name"));
    if let (Some(serial), Some(model)) = (string(document, "serial_number"), model) {
        identity(snapshot, serial, model)?;
    }
    let small = |path: &str| number(document.pointer(path)).and_then(|count| u64::try_from(count).ok());
    set(&mut snapshot.capacity, small("/user_capacity/bytes"));
    set(&mut snapshot.taken, small("/local_time/time_t"));
    set(&mut snapshot.power_on_hours, small("/power_on_time/hours"));
    let mut found = false;
    if let Some(log) = document.get("nvme_smart_health_information_log") {
        health(snapshot, log)?;
        found = true;
    }
    if document.pointer("/ata_smart_attributes/table").is_some() || document.get("ata_device_statistics").is_some() {
        ata::take(snapshot, document)?;
        found = true;
    }
    if !found && scsi::is_of_one(document) {
        found = scsi::take(snapshot, document)?;
        if !found {
            return Err("smartctl's document of a SCSI drive has neither scsi_error_counter_log (of writes) nor \
                        scsi_percentage_used_endurance_indicator; expected that of `smartctl -j -x DEVICE`, of an SSD"
                .to_string());
        }
    }
    if !found {
        let messages = document.pointer("/smartctl/messages").and_then(Value::as_array);
        let said: Vec<&str> =
            messages.into_iter().flatten().filter_map(|message| message.get("string")?.as_str()).take(3).collect();
        let said = if said.is_empty() { String::new() } else { format!(": it says \"{}\"", said.join("; ")) };
        return Err(format!("smartctl's document has no SMART data{said}; expected that of `smartctl -j -x DEVICE`"));
    }
    snapshot.logs.push("smartctl");
    Ok(())
}

fn identity(snapshot: &mut Snapshot, serial: String, model: String) -> Result<(), String> {
    if let Some(other) = snapshot.serial.as_ref().filter(|other| **other != serial) {
        return Err(format!("two drives in one snapshot: the serial numbers are '{other}' and '{serial}'"));
    }
    snapshot.serial = Some(serial);
    snapshot.model = Some(model);
    Ok(())
}

/// What was said first stands.
pub(super) fn set<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

fn field<'v>(document: &'v Value, keys: [&str; 2]) -> Option<&'v Value> {
    keys.iter().find_map(|key| document.get(key))
}

fn string(document: &Value, key: &str) -> Option<String> {
    let text = document.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// The count under the first of the keys that is there. What is there and is no count is an error, not a drive that does not
/// tell.
pub(super) fn count(document: &Value, keys: [&str; 2]) -> Result<Option<u128>, String> {
    let Some((key, value)) =
        keys.iter().find_map(|key| Some((key, document.get(key)?))).filter(|(_, value)| !value.is_null())
    else {
        return Ok(None);
    };
    number(Some(value)).map(Some).ok_or_else(|| not_a_count(key, value))
}

/// The count under the first of the keys that is there, as 64 bits. A count that does not fit is an error, as is what
/// is no count.
fn small(document: &Value, keys: [&str; 2]) -> Result<Option<u64>, String> {
    count(document, keys)?.map(|value| u64::try_from(value).map_err(|_| too_large(keys[0], value))).transpose()
}

/// So many units of bytes.
pub(super) fn counted(units: Option<u128>, unit: u64, what: &str) -> Result<Option<Counter>, String> {
    let bytes = |units: u128| units.checked_mul(u128::from(unit)).ok_or_else(|| too_large(what, units));
    units.map(|units| bytes(units).map(|bytes| Counter { bytes, unit })).transpose()
}

pub(super) fn not_a_count(what: &str, value: &Value) -> String {
    let found: String = value.to_string().chars().take(60).collect();
    format!("{what} is {found}; expected a count")
}

fn too_large(what: &str, value: u128) -> String {
    format!("{what} is {value}, which is more than any drive has counted")
}

/// A count in any of the ways in which versions of the tools print 64 and 128 bits: a number, text with or without
/// thousands separators, or halves `hi` and `lo`.
pub(super) fn number(value: Option<&Value>) -> Option<u128> {
    match value? {
        Value::Number(number) => {
            if let Some(count) = number.as_u64() {
                return Some(u128::from(count));
            }
            let float = number.as_f64()?;
            (0.0..3.4e38).contains(&float).then_some(float as u128)
        }
        Value::String(text) => {
            let digits: String = text.trim().chars().filter(|c| !matches!(c, ',' | '\'' | '_')).collect();
            match digits.strip_prefix("0x") {
                Some(hex) => u128::from_str_radix(hex, 16).ok(),
                None => digits.parse().ok(),
            }
        }
        Value::Object(halves) => {
            let (hi, lo) = (halves.get("hi")?.as_u64()?, halves.get("lo")?.as_u64()?);
            Some(u128::from(hi) << 64 | u128::from(lo))
        }
        _ => None,
    }
}
