//! Two snapshots of one drive: what was written in between, by whom, and what it cost.

use super::{Counter, LogError, Snapshot};
use crate::lifetime::{Lifetime, Usage};

/// What was counted between the snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Bytes.
    pub bytes: u128,
    /// The true number is within so many bytes of that.
    pub unit: u64,
}

/// The time between the snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// Seconds.
    pub seconds: f64,
    /// How it is known.
    pub by: &'static str,
}

/// Write amplification, with what the drive's units leave open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amplification {
    /// The ratio of the counters' differences.
    pub value: f64,
    /// The least that the units allow.
    pub least: f64,
    /// The most; infinite where the host's bytes are within a unit of nothing.
    pub most: f64,
    /// What it is computed from.
    pub from: &'static str,
}

/// How much longer the drive lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifeLeft {
    /// Percent of the rated life that is left.
    pub percent: f64,
    /// Seconds at the rate at which it was used, if it was used at a known rate.
    pub seconds: Option<f64>,
    /// Bytes the host may write at that rate, if it is known.
    pub host_bytes: Option<f64>,
    /// What the rate is taken from.
    pub rate_of: &'static str,
}

/// What a drive did between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Its model.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The time between.
    pub elapsed: Option<Elapsed>,
    /// Written by the host.
    pub host: Option<Span>,
    /// Written to the chips.
    pub media: Option<Span>,
    /// Write amplification between the snapshots.
    pub amplification: Option<Amplification>,
    /// Write amplification over the drive's whole life, up to the second snapshot.
    pub lifetime_amplification: Option<f64>,
    /// Percent of the rated life used, before and after.
    pub percent_used: Option<(f64, f64)>,
    /// Erases of a block on average, before and after.
    pub erases: Option<(u64, u64)>,
    /// Spare blocks left in percent, before and after.
    pub spare: Option<(u64, u64)>,
    /// How long it lasts from new at the write amplification and the rate between, where it has an endurance estimate.
    pub lifetime: Option<Lifetime>,
    /// How much longer it lasts.
    pub life_left: Option<LifeLeft>,
    /// What could not be said, and why; and what else a person should know.
    pub notes: Vec<String>,
}

/// Compares two snapshots of one drive.
///
/// # Errors
/// They are of two drives, or a counter runs backwards.
pub fn compare(before: &Snapshot, after: &Snapshot) -> Result<Report, LogError> {
    let mut report = between(before, after)?;
    if before.serial.is_none() || after.serial.is_none() {
        report.notes.push(
            "a snapshot has no serial number, so that both are of one drive is taken on trust (append `nvme id-ctrl -o \
             json DEVICE` to it)"
                .to_string(),
        );
    }
    if report.amplification.is_none() {
        let says = match before.media_written.is_some() || after.media_written.is_some() {
            true => "only one of the snapshots says",
            false => "neither snapshot says",
        };
        report.notes.push(why_not(before, after, &report, says));
    }
    Ok(report)
}

/// One snapshot against a new drive: everything that it counts began at nothing.
///
/// # Errors
/// None; what cannot be said is a note.
pub fn whole_life(snapshot: &Snapshot) -> Result<Report, LogError> {
    let zero = |counter: Option<Counter>| counter.map(|counter| Counter { bytes: 0, ..counter });
    let new = Snapshot {
        power_on_hours: snapshot.power_on_hours.map(|_| 0),
        taken: None,
        clock_ns: snapshot.clock_ns.map(|_| 0),
        host_written: zero(snapshot.host_written),
        media_written: zero(snapshot.media_written),
        program_pages: snapshot.program_pages.map(|_| (0, 0)),
        // That the life used is whole percents: its rate is taken from what the drive says of its whole life.
        erases: (None, snapshot.erases.1.map(|_| 0), None),
        notes: Vec::new(),
        ..snapshot.clone()
    };
    let mut report = between(&new, snapshot)?;
    if report.amplification.is_none() {
        report.notes.push(why_not(&new, snapshot, &report, "the snapshot does not say"));
    }
    Ok(report)
}

fn between(before: &Snapshot, after: &Snapshot) -> Result<Report, LogError> {
    let refuse = |what: String| LogError { name: format!("{} and {}", before.source, after.source), what };
    same_drive(before, after).map_err(&refuse)?;
    forwards(before, after).map_err(&refuse)?;
    let mut notes: Vec<String> = before.notes.iter().chain(&after.notes).cloned().collect();
    notes.dedup();
    let span = |before: Option<Counter>, after: Option<Counter>| {
        let (before, after) = before.zip(after)?;
        let bytes = after.bytes.checked_sub(before.bytes)?;
        // Each snapshot's count may be up to a unit off, the difference therefore as much in either direction.
        Some(Span { bytes, unit: if after.unit.max(before.unit) > 1 { after.unit.max(before.unit) } else { 0 } })
    };
    let host = span(before.host_written, after.host_written);
    let media = span(before.media_written, after.media_written);
    let elapsed = elapsed(before, after);
    let amplification = amplification(before, after, host, media);
    let percent_used = before.percent_used.zip(after.percent_used);
    let report = Report {
        model: after.model.clone().or_else(|| before.model.clone()),
        serial: after.serial.clone().or_else(|| before.serial.clone()),
        elapsed,
        host,
        media,
        amplification,
        lifetime_amplification: after.lifetime_amplification(),
        percent_used,
        erases: before.erases.1.zip(after.erases.1),
        spare: before.spare_percent.zip(after.spare_percent),
        lifetime: lifetime(after, elapsed, host, amplification),
        life_left: life_left(after, percent_used, elapsed, host, amplification),
        notes,
    };
    Ok(report)
}

fn same_drive(before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    let differ = |one: &Option<String>, other: &Option<String>| {
        one.as_ref().zip(other.as_ref()).filter(|(one, other)| one != other).map(|(a, b)| (a.clone(), b.clone()))
    };
    if let Some((one, other)) = differ(&before.serial, &after.serial) {
        return Err(format!("these are two drives: the serial numbers are '{one}' and '{other}'"));
    }
    if let Some((one, other)) = differ(&before.model, &after.model) {
        return Err(format!("these are two drives: the models are '{one}' and '{other}'"));
    }
    Ok(())
}

fn forwards(before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    let counters = [
        ("the drive's clock", before.clock_ns.map(u128::from), after.clock_ns.map(u128::from)),
        ("the time of the snapshot", before.taken.map(u128::from), after.taken.map(u128::from)),
        (
            "the hours for which the drive was on",
            before.power_on_hours.map(u128::from),
            after.power_on_hours.map(u128::from),
        ),
        (
            "bytes written by the host",
            before.host_written.map(|count| count.bytes),
            after.host_written.map(|count| count.bytes),
        ),
        (
            "bytes written to the chips",
            before.media_written.map(|count| count.bytes),
            after.media_written.map(|count| count.bytes),
        ),
        (
            "pages programmed for the host",
            before.program_pages.map(|pages| pages.0.into()),
            after.program_pages.map(|pages| pages.0.into()),
        ),
        (
            "pages programmed for anything else",
            before.program_pages.map(|pages| pages.1.into()),
            after.program_pages.map(|pages| pages.1.into()),
        ),
        ("erases on average", before.erases.1.map(u128::from), after.erases.1.map(u128::from)),
    ];
    for (what, one, other) in counters {
        if let Some((one, other)) = one.zip(other)
            && other < one
        {
            return Err(format!(
                "{what} ran backwards, from {one} to {other}: the snapshots are in the wrong order, or of two drives, or \
                 the drive was reset in between"
            ));
        }
    }
    Ok(())
}

fn elapsed(before: &Snapshot, after: &Snapshot) -> Option<Elapsed> {
    let difference =
        |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| other.saturating_sub(one));
    if let Some(seconds) = difference(before.taken, after.taken) {
        return Some(Elapsed { seconds: seconds as f64, by: "the snapshots' times" });
    }
    if let Some(ns) = difference(before.clock_ns, after.clock_ns) {
        return Some(Elapsed { seconds: ns as f64 / 1e9, by: "the drive's clock" });
    }
    let hours = difference(before.power_on_hours, after.power_on_hours).filter(|&hours| hours > 0)?;
    Some(Elapsed { seconds: hours as f64 * 3600.0, by: "the hours for which it was on, to the hour" })
}

fn amplification(
    before: &Snapshot,
    after: &Snapshot,
    host: Option<Span>,
    media: Option<Span>,
) -> Option<Amplification> {
    if let Some((host, media)) = host.zip(media)
        && host.bytes > 0
    {
        let (h, m) = (host.bytes as f64, media.bytes as f64);
        let (h_off, m_off) = (host.unit as f64, media.unit as f64);
        return Some(Amplification {
            value: m / h,
            least: (m - m_off).max(0.0) / (h + h_off),
            most: if h > h_off { (m + m_off) / (h - h_off) } else { f64::INFINITY },
            from: "bytes written to the chips by bytes written by the host",
        });
    }
    let ((host_before, other_before), (host_after, other_after)) = before.program_pages.zip(after.program_pages)?;
    let host = host_after.checked_sub(host_before).filter(|&pages| pages > 0)? as f64;
    let value = 1.0 + other_after.checked_sub(other_before)? as f64 / host;
    Some(Amplification { value, least: value, most: value, from: "pages programmed, all by those for the host" })
}

/// Why there is no write amplification, in words for a user who wants it.
fn why_not(before: &Snapshot, after: &Snapshot, report: &Report, says: &str) -> String {
    if report.host.is_some_and(|host| host.bytes == 0) {
        return "the host wrote nothing that the drive's units show in this time: there is no write amplification"
            .to_string();
    }
    if report.media.is_none() && before.program_pages.zip(after.program_pages).is_none() {
        return format!(
            "{says} what was written to the chips, so write amplification cannot be told (NVMe drives that follow OCP tell \
             it in `nvme ocp smart-add-log`, some ATA drives in vendor attributes)"
        );
    }
    "it is not said what the host wrote, so write amplification cannot be told".to_string()
}

/// From new to worn out, as a run's results have it.
fn lifetime(
    after: &Snapshot,
    elapsed: Option<Elapsed>,
    host: Option<Span>,
    amplification: Option<Amplification>,
) -> Option<Lifetime> {
    let write_amplification = amplification.filter(|amplification| amplification.value > 0.0)?.value;
    let rate = elapsed.zip(host).filter(|(elapsed, host)| elapsed.seconds > 0.0 && host.bytes > 0);
    let mean = after.erases_mean.or(after.erases.1.map(|mean| mean as f64));
    Some(Lifetime::of(&Usage {
        rated_bytes: after.endurance? as f64,
        write_amplification,
        write_bytes_per_s: rate.map(|(elapsed, host)| host.bytes as f64 / elapsed.seconds),
        user_bytes: after.capacity?,
        erases: mean.zip(after.erases.2.map(|most| most as f64)),
    }))
}

fn life_left(
    after: &Snapshot,
    used: Option<(f64, f64)>,
    elapsed: Option<Elapsed>,
    host: Option<Span>,
    amplification: Option<Amplification>,
) -> Option<LifeLeft> {
    let (then, now) = used.or(after.percent_used.map(|now| (now, now)))?;
    let percent = (100.0 - now).max(0.0);
    let moved = now - then;
    if moved > 0.0 {
        return Some(LifeLeft {
            percent,
            seconds: elapsed.map(|elapsed| elapsed.seconds / moved * percent),
            host_bytes: host.map(|host| host.bytes as f64 / moved * percent),
            rate_of: "what was used between the snapshots",
        });
    }
    // What the drive itself allows for its chips, at the amplification that was measured.
    if let (Some(endurance), Some(media), Some(amplification)) = (after.endurance, after.media_written, amplification)
        && amplification.value > 0.0
    {
        let left = endurance.saturating_sub(media.bytes) as f64 / amplification.value;
        let rate = elapsed.zip(host).filter(|(elapsed, host)| elapsed.seconds > 0.0 && host.bytes > 0);
        return Some(LifeLeft {
            percent,
            seconds: rate.map(|(elapsed, host)| left * elapsed.seconds / host.bytes as f64),
            host_bytes: Some(left),
            rate_of: "the drive's endurance estimate, at the write amplification between the snapshots",
        });
    }
    if now > 0.0 {
        return Some(LifeLeft {
            percent,
            seconds: after.power_on_hours.map(|hours| hours as f64 * 3600.0 / now * percent),
            host_bytes: after.host_written.map(|host| host.bytes as f64 / now * percent),
            rate_of: "the drive's whole life so far",
        });
    }
    Some(LifeLeft {
        percent,
        seconds: None,
        host_bytes: None,
        rate_of: "nothing: not a whole percent has been used yet",
    })
}
