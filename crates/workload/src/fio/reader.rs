//! Values of single settings: the simple ones through [`Reader`], and the lists of block sizes and distributions.

use ssdlab_base::Nanos;

use crate::WorkloadError;

use super::ini::Setting;
use super::mode::{Kind, Mode, READ, TRIM, WRITE};
use super::skew::{Skew, Zone};
use super::value::{self, Extent};

/// Reads one setting's value and says what was expected.
pub(super) struct Reader<'a> {
    pub(super) setting: &'a Setting,
    /// What `k` counts.
    pub(super) kb: u64,
}

impl Reader<'_> {
    pub(super) fn text(&self, expected: &str) -> Result<&str, WorkloadError> {
        let text = self.setting.value.as_deref().filter(|text| !text.is_empty());
        text.ok_or_else(|| self.setting.error(expected))
    }

    pub(super) fn flag(&self) -> Result<bool, WorkloadError> {
        value::flag(self.setting.value.as_deref()).ok_or_else(|| self.setting.error("0 or 1, or no value for 1"))
    }

    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, WorkloadError> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        let text = self.text(&expected)?;
        let found = words.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| self.setting.error(&expected))
    }

    pub(super) fn number(&self, low: u64, high: u64) -> Result<u64, WorkloadError> {
        let expected = match high {
            u64::MAX => format!("a whole number from {low}"),
            _ => format!("a whole number from {low} to {high}"),
        };
        let number = value::count(self.text(&expected)?, self.kb).filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| self.setting.error(&expected))
    }

    pub(super) fn percent(&self) -> Result<u32, WorkloadError> {
        let text = self.text("a percentage from 0 to 100")?;
        let number = value::count(text.trim_end_matches('%'), self.kb).filter(|percent| *percent <= 100);
        number.map(|percent| percent as u32).ok_or_else(|| self.setting.error("a percentage from 0 to 100"))
    }

    /// A share from 0 to 1, in millionths.
    pub(super) fn share(&self) -> Result<u32, WorkloadError> {
        let expected = "a number from 0 to 1 such as 0.25";
        value::millionths(self.text(expected)?).ok_or_else(|| self.setting.error(expected))
    }

    pub(super) fn bytes(&self) -> Result<u64, WorkloadError> {
        let expected = "a size such as 256m";
        value::size(self.text(expected)?, self.kb).ok_or_else(|| self.setting.error(expected))
    }

    pub(super) fn extent_or_zero(&self) -> Result<Extent, WorkloadError> {
        let expected = "a size such as 4g, or a share of the drive up to 100%";
        let extent = value::extent(self.text(expected)?, self.kb).filter(|extent| !extent.exceeds_whole());
        extent.ok_or_else(|| self.setting.error(expected))
    }

    /// `None` for 0, which is fio's default of sizes: as much as there is.
    pub(super) fn extent(&self, expected: &str) -> Result<Option<Extent>, WorkloadError> {
        let extent = value::extent(self.text(expected)?, self.kb).ok_or_else(|| self.setting.error(expected))?;
        let zero = matches!(extent, Extent::Bytes(0) | Extent::Percent(0) | Extent::Zones(0));
        Ok((!zero).then_some(extent))
    }

    pub(super) fn region(&self, expected: &str) -> Result<Option<Extent>, WorkloadError> {
        let extent = self.extent(expected)?;
        if extent.is_some_and(Extent::exceeds_whole) { Err(self.setting.error(expected)) } else { Ok(extent) }
    }

    pub(super) fn time(&self, bare_ns: u64) -> Result<Nanos, WorkloadError> {
        let bare = if bare_ns == value::SECONDS { "seconds" } else { "microseconds" };
        let expected = format!("a time such as 10s, 5m, 20ms or 50us (a bare number is {bare})");
        value::time(self.text(&expected)?, bare_ns)
            .filter(|time| time.0 < MAX_TIME)
            .ok_or_else(|| self.setting.error(&expected))
    }

    pub(super) fn time_range(&self) -> Result<(Nanos, Nanos), WorkloadError> {
        let expected = "a time such as 5 or 5s, or a range such as 5-10 (a bare number is seconds)";
        let text = self.text(expected)?;
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let read = |part: &str| value::time(part, value::SECONDS).filter(|time| time.0 < MAX_TIME);
        read(low).zip(read(high)).ok_or_else(|| self.setting.error(expected))
    }

    pub(super) fn triple<T: Copy>(
        &self,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<[Option<T>; 3], WorkloadError> {
        value::triple(self.text(expected)?, read).ok_or_else(|| self.setting.error(expected))
    }

    pub(super) fn triple_of_ranges(&self) -> Result<[Option<(u64, u64)>; 3], WorkloadError> {
        let expected = "a range of sizes such as 4k-64k, or up to three of them";
        // fio separates ranges with ',' or '/'.
        let text = self.text(expected)?.replace('/', ",");
        value::triple(&text, |part| value::size_range(part, self.kb)).ok_or_else(|| self.setting.error(expected))
    }
}

/// Times from here on are refused, so that sums of them never overflow: 73 years.
const MAX_TIME: u64 = Nanos::HORIZON.0;

pub(super) fn read_mode(s: &Reader<'_>) -> Result<(Mode, Option<String>), WorkloadError> {
    let expected =
        "read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite or randtrimwrite";
    let text = s.text(expected)?;
    let (word, postfix) = match text.split_once(':') {
        Some((word, postfix)) => (word, Some(postfix.to_string())),
        None => (text, None),
    };
    let Some((kind, random)) = direction(word) else {
        return Err(s.setting.error(expected));
    };
    Ok((Mode { kind, random }, postfix))
}

/// The kind of requests that a value of `rw` names, and whether they are random.
pub(super) fn direction(word: &str) -> Option<(Kind, bool)> {
    Some(match word {
        "read" => (Kind::One(READ), false),
        "write" => (Kind::One(WRITE), false),
        "trim" => (Kind::One(TRIM), false),
        "randread" => (Kind::One(READ), true),
        "randwrite" => (Kind::One(WRITE), true),
        "randtrim" => (Kind::One(TRIM), true),
        "rw" | "readwrite" => (Kind::Mixed, false),
        "randrw" => (Kind::Mixed, true),
        "trimwrite" => (Kind::TrimThenWrite, false),
        "randtrimwrite" => (Kind::TrimThenWrite, true),
        _ => return None,
    })
}

/// Lists for reads, writes and trims: one is for all, two are for reads and for writes and trims.
fn three_lists(text: &str) -> Option<[&str; 3]> {
    let parts: Vec<&str> = text.split(',').collect();
    match parts.as_slice() {
        [all] => Some([all, all, all]),
        [reads, rest] => Some([reads, rest, rest]),
        [reads, writes, trims] => Some([reads, writes, trims]),
        _ => None,
    }
}

/// `VALUE/SHARE` entries separated by colons.
fn entries(list: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    list.split(':').map(|entry| match entry.split_once('/') {
        Some((value, share)) if !share.trim().is_empty() => (value.trim(), Some(share.trim())),
        Some((value, _)) => (value.trim(), None),
        None => (entry.trim(), None),
    })
}

/// Fills in the shares left open and checks that all add up to 100.
fn shares(given: &[Option<u32>]) -> Option<Vec<u32>> {
    let sum: u32 = given.iter().flatten().sum();
    let open = given.iter().filter(|share| share.is_none()).count() as u32;
    let left = 100_u32.checked_sub(sum)?;
    if open == 0 {
        return (left == 0).then(|| given.iter().map(|share| share.unwrap_or(0)).collect());
    }
    // What does not divide evenly goes to the last open entry, so that nothing is lost.
    let mut seen = 0;
    let fill = |share: &Option<u32>| {
        share.unwrap_or_else(|| {
            seen += 1;
            if seen == open { left - left / open * (open - 1) } else { left / open }
        })
    };
    Some(given.iter().map(fill).collect())
}

fn percent_share(text: &str) -> Option<u32> {
    text.parse().ok().filter(|percent| *percent <= 100)
}

/// Three lists of sizes and shares; one that is empty keeps the default.
pub(super) fn read_splits(s: &Reader<'_>) -> Result<[Vec<(u64, u32)>; 3], WorkloadError> {
    let expected = "sizes with percentages that add up to 100, such as 4k/60:64k/40, up to three lists with commas";
    let error = || s.setting.error(expected);
    let read = |list: &str| -> Option<Vec<(u64, u32)>> {
        if list.trim().is_empty() {
            return Some(Vec::new());
        }
        let mut sizes = Vec::new();
        let mut given = Vec::new();
        for (size, share) in entries(list) {
            sizes.push(value::size(size, s.kb).filter(|size| *size > 0)?);
            given.push(match share {
                Some(share) => Some(percent_share(share)?),
                None => None,
            });
        }
        (sizes.len() <= 64).then_some(())?;
        Some(sizes.into_iter().zip(shares(&given)?).collect())
    };
    let lists = three_lists(s.text(expected)?).ok_or_else(error)?;
    let [reads, writes, trims] = lists.map(read);
    Ok([reads.ok_or_else(error)?, writes.ok_or_else(error)?, trims.ok_or_else(error)?])
}

pub(super) fn read_skew(s: &Reader<'_>) -> Result<[Skew; 3], WorkloadError> {
    let expected = "random, zipf:THETA[:CENTER], pareto:POWER[:CENTER], normal:DEVIATION[:CENTER], \
                    zoned:ACCESS/SIZE:... or zoned_abs:ACCESS/BYTES:...";
    let text = s.text(expected)?;
    let (word, rest) = match text.split_once(':') {
        Some((word, rest)) => (word, Some(rest)),
        None => (text, None),
    };
    if let "zoned" | "zoned_abs" = word {
        return read_zones(s, rest.unwrap_or(""), word == "zoned_abs");
    }
    // fio separates the centre with a colon; a comma reads the same.
    let mut numbers = rest.map(|rest| rest.split([':', ',']).map(|part| part.trim().parse::<f64>().ok()));
    let mut next = |default: Option<f64>| -> Option<Option<f64>> {
        match numbers.as_mut().and_then(Iterator::next) {
            None => Some(default),
            Some(Some(number)) if number.is_finite() => Some(Some(number)),
            Some(_) => None,
        }
    };
    let error = |expected: &str| s.setting.error(expected);
    // fio's defaults: theta 1.1, power 0.2, deviation 0.
    let default = match word {
        "random" => {
            return if rest.is_none() { Ok([const { Skew::Uniform }; 3]) } else { Err(error(expected)) };
        }
        "zipf" => 1.1,
        "pareto" => 0.2,
        "normal" | "gauss" => 0.0,
        _ => return Err(error(expected)),
    };
    let parameter = next(Some(default)).flatten().ok_or_else(|| error(expected))?;
    let center = next(None).ok_or_else(|| error(expected))?;
    if numbers.is_some_and(|mut numbers| numbers.next().is_some()) {
        return Err(error(expected));
    }
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err(error("a center from 0 to 1"));
    }
    let skew = match word {
        "zipf" if parameter > 0.0 && parameter <= 100.0 => Skew::Zipf { theta: parameter, center },
        "zipf" => return Err(error("a zipf theta above 0 and up to 100")),
        "pareto" if parameter > 0.0 && parameter < 1.0 => Skew::Pareto { power: parameter, center },
        "pareto" => return Err(error("a pareto power between 0 and 1")),
        _ if (0.0..100.0).contains(&parameter) => Skew::Normal { deviation: parameter, center },
        _ => return Err(error("a deviation from 0 to below 100 percent")),
    };
    Ok([skew.clone(), skew.clone(), skew])
}

fn read_zones(s: &Reader<'_>, text: &str, absolute: bool) -> Result<[Skew; 3], WorkloadError> {
    let expected = if absolute {
        "accesses in whole percent that add up to 100 with sizes in bytes, such as zoned_abs:60/20g:40/100g"
    } else {
        "accesses in whole percent that add up to 100 with sizes in percent that add up to at most 100, such as \
         zoned:60/10:39/20:1/0.5"
    };
    let error = || s.setting.error(expected);
    let read = |list: &str| -> Option<Skew> {
        if list.trim().is_empty() {
            return Some(Skew::Uniform);
        }
        let mut accesses = Vec::new();
        let mut sizes = Vec::new();
        for (access, size) in entries(list) {
            accesses.push(percent_share(access)?);
            sizes.push(size);
        }
        (accesses.len() <= 256 && accesses.iter().sum::<u32>() == 100).then_some(())?;
        let sizes: Vec<Extent> = if absolute {
            let size = |size: &Option<&str>| value::size((*size)?, s.kb).map(Extent::Bytes);
            sizes.iter().map(size).collect::<Option<_>>()?
        } else {
            let mut given = Vec::new();
            for size in sizes {
                given.push(match size {
                    Some(size) => Some(value::percent_of(size)?),
                    None => None,
                });
            }
            let sum: u64 = given.iter().flatten().sum();
            let left = (100 * value::ONE_PERCENT).checked_sub(sum)?;
            // fio cuts the share of a zone that gives none to whole percent.
            let open = given.iter().filter(|size| size.is_none()).count() as u64;
            let each = left / value::ONE_PERCENT / open.max(1) * value::ONE_PERCENT;
            given.into_iter().map(|size| Extent::Percent(size.unwrap_or(each))).collect()
        };
        Some(Skew::Zoned(accesses.into_iter().zip(sizes).map(|(access, size)| Zone { access, size }).collect()))
    };
    let lists = three_lists(text).ok_or_else(error)?;
    let [reads, writes, trims] = lists.map(read);
    Ok([reads.ok_or_else(error)?, writes.ok_or_else(error)?, trims.ok_or_else(error)?])
}
