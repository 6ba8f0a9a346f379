//! SCSI: what `smartctl -j -x` prints of a SAS drive. The drive counts what it processed for the host, in its log of write
//! errors, and the life that is used; what went to its chips it does not say.

use serde_json::Value;

use super::document::{count, not_a_count, set};
use super::{Counter, Snapshot};

/// smartctl prints the bytes processed in units of 10^9, with three decimals.
const GIGABYTE: u128 = 1_000_000_000;
const DECIMALS: usize = 3;
const UNIT: u64 = 1_000_000;

const WRITTEN: &str = "/scsi_error_counter_log/write/gigabytes_processed";
const USED: &str = "scsi_percentage_used_endurance_indicator";

/// Whether smartctl's document is of a SCSI drive.
pub(super) fn is_of_one(document: &Value) -> bool {
    document.pointer("/device/protocol").and_then(Value::as_str) == Some("SCSI")
        || document.get("scsi_error_counter_log").is_some()
        || document.get(USED).is_some()
}

/// Takes what the document says; false if it says nothing that is read.
pub(super) fn take(snapshot: &mut Snapshot, document: &Value) -> Result<bool, String> {
    let written = document.pointer(WRITTEN).filter(|value| !value.is_null());
    let bytes =
        written.map(|value| gigabytes(value).ok_or_else(|| not_a_count(&WRITTEN[1..].replace('/', "."), value)));
    set(&mut snapshot.host_written, bytes.transpose()?.map(|bytes| Counter { bytes, unit: UNIT }));
    let used = count(document, [USED, USED])?;
    set(&mut snapshot.percent_used, used.map(|percent| percent as f64));
    Ok(written.is_some() || used.is_some())
}

/// `"2600.750"` in bytes; a number in JSON is read as its text.
fn gigabytes(value: &Value) -> Option<u128> {
    let text = match value {
        Value::String(text) => text.trim().to_string(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let thousandths: u128 = format!("{decimals:0<DECIMALS$.DECIMALS$}").parse().ok()?;
    whole.checked_mul(GIGABYTE)?.checked_add(thousandths * u128::from(UNIT))
}

#[cfg(test)]
mod tests {
    use super::gigabytes;

    #[test]
    fn gigabytes_are_exact_to_the_unit() {
        let of = |text: &str| gigabytes(&serde_json::from_str(text).expect("JSON"));
        assert_eq!(of(r#""2600.750""#), Some(2_600_750_000_000));
        assert_eq!(of(r#""0.001""#), Some(1_000_000));
        assert_eq!(of("17"), Some(17_000_000_000));
        assert_eq!(of("17.25"), Some(17_250_000_000));
        for bad in [r#""lots""#, r#""-1.0""#, r#""1.""#, "[1]", "true", r#""1e3""#] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
