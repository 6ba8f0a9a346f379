//! Variants of drives: the cross product of values for keys of their descriptions, and repetitions with other seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::headline::Metric;
use crate::result::{DeviceResult, RunResult};

/// Variants of a run at most: their results are all in memory.
pub const VARIANTS_MAX: usize = 4096;

/// A key and the values that it takes, one variant each: what `--vary KEY=VALUE,VALUE,...` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key of a description, as `--set` takes it.
    pub key: String,
    /// Its values, as `--set` takes them.
    pub values: Vec<String>,
}

/// What is wrong with an axis, or with several.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// There is no key, or no value.
    #[error("found '{found}', expected KEY=VALUE,VALUE,..., such as gc.victim=greedy,fifo")]
    Form {
        /// What was given.
        found: String,
    },
    /// A value occurs twice: two variants would be the same.
    #[error("{key}: the value '{value}' is there twice")]
    Twice {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A key has two axes.
    #[error("{key} is varied twice: give all its values at once")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// There would be too many variants.
    #[error("found {found} variants, expected at most {VARIANTS_MAX}")]
    TooMany {
        /// How many there would be.
        found: usize,
    },
}

impl std::str::FromStr for Axis {
    type Err = AxisError;

    /// Values are separated by commas; those of a list (in brackets) or of quoted text belong to it.
    fn from_str(text: &str) -> Result<Axis, AxisError> {
        let wrong = || AxisError::Form { found: text.to_string() };
        let (key, values) = text.split_once('=').ok_or_else(wrong)?;
        let (mut depth, mut quote, mut list) = (0_u32, None, vec![String::new()]);
        for letter in values.chars() {
            match (letter, quote) {
                ('"' | '\'', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                (_, Some(_)) => {}
                ('[' | '{', None) => depth += 1,
                (']' | '}', None) => depth = depth.saturating_sub(1),
                (',', None) if depth == 0 => {
                    list.push(String::new());
                    continue;
                }
                _ => {}
            }
            list.last_mut().expect("it is never empty").push(letter);
        }
        let values: Vec<String> = list.into_iter().map(|value| value.trim().to_string()).collect();
        let key = key.trim().to_string();
        if key.is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        if let Some(value) =
            values.iter().enumerate().find_map(|(at, value)| values[..at].contains(value).then_some(value))
        {
            return Err(AxisError::Twice { key, value: value.clone() });
        }
        Ok(Axis { key, values })
    }
}

/// A variant: a value for each axis, in their order.
pub type Variant = Vec<(String, String)>;

/// The cross product of the axes, the last of which varies fastest: one variant without values where there are no axes.
///
/// # Errors
/// A key that is varied twice, and more than [`VARIANTS_MAX`] variants.
///
/// ```
/// use ssdlab_lab::variants::{Axis, cross_product};
///
/// let axes: Vec<Axis> = vec!["gc.victim=greedy,fifo".parse()?, "buffer.size=1m,2m,4m".parse()?];
/// assert_eq!(cross_product(&axes)?.len(), 6);
/// # Ok::<(), ssdlab_lab::variants::AxisError>(())
/// ```
pub fn cross_product(axes: &[Axis]) -> Result<Vec<Variant>, AxisError> {
    if let Some(axis) = axes
        .iter()
        .enumerate()
        .find_map(|(at, axis)| axes[..at].iter().any(|other| other.key == axis.key).then_some(axis))
    {
        return Err(AxisError::KeyTwice { key: axis.key.clone() });
    }
    let found = axes.iter().fold(1_usize, |found, axis| found.saturating_mul(axis.values.len()));
    if found > VARIANTS_MAX {
        return Err(AxisError::TooMany { found });
    }
    let mut variants: Vec<Variant> = vec![Vec::new()];
    for axis in axes {
        let with = |variant: &Variant| -> Vec<Variant> {
            let value = |value: &String| {
                let mut longer = variant.clone();
                longer.push((axis.key.clone(), value.clone()));
                longer
            };
            axis.values.iter().map(value).collect()
        };
        variants = variants.iter().flat_map(with).collect();
    }
    Ok(variants)
}

/// A variant in a name: the last part of each key that is enough to tell the axes apart, and its value.
pub fn suffix(variant: &Variant) -> String {
    let short = |key: &str| key.rsplit('.').next().unwrap_or(key).to_string();
    let unique = |key: &str| variant.iter().filter(|(other, _)| short(other) == short(key)).count() == 1;
    let part = |(key, value): &(String, String)| {
        let key = if unique(key) { short(key) } else { key.clone() };
        format!("{key}={}", value.replace(['/', '\\'], "_"))
    };
    variant.iter().map(part).collect::<Vec<_>>().join(" ")
}

/// Which repetition of a variant a result is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// The drive's name without the repetition.
    pub of: String,
    /// Its number, from 1.
    pub number: u32,
    /// The seed of everything random in it.
    pub seed: u64,
}

/// Runs of the same drives with other seeds as one: every drive as often as there are runs, in the order of the first run.
///
/// # Panics
/// There is no run.
pub fn merged(runs: Vec<RunResult>) -> RunResult {
    let mut first: Option<RunResult> = None;
    let mut devices: Vec<(usize, usize, DeviceResult)> = Vec::new();
    for (number, mut run) in runs.into_iter().enumerate() {
        for (place, mut device) in std::mem::take(&mut run.devices).into_iter().enumerate() {
            let repetition = Repetition { of: device.name.clone(), number: number as u32 + 1, seed: run.seed };
            device.name = format!("{} #{}", device.name, number + 1);
            device.repetition = Some(repetition);
            devices.push((place, number, device));
        }
        match &mut first {
            None => first = Some(run),
            Some(first) => {
                first.complete &= run.complete;
                let new: Vec<String> = run.notes.into_iter().filter(|note| !first.notes.contains(note)).collect();
                first.notes.extend(new);
            }
        }
    }
    devices.sort_by_key(|(place, number, _)| (*place, *number));
    let mut first = first.expect("there is a run");
    first.devices = devices.into_iter().map(|(.., device)| device).collect();
    first
}

/// A metric over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// Half of the 95 % confidence interval of the mean; nothing of a single repetition.
    pub(crate) half_interval: Option<f64>,
}

impl Spread {
    /// Student's interval: the repetitions are independent, and their number is small.
    pub(crate) fn of(values: &[f64]) -> Option<Spread> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let half_interval = (count > 1).then(|| {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
            student_975(count - 1) * (variance / count as f64).sqrt()
        });
        Some(Spread { mean, half_interval })
    }
}

/// The 97.5 % quantile of Student's t by degrees of freedom: tabulated to 30, and by its expansion from there on
/// (Abramowitz and Stegun 26.7.5).
fn student_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    match TABLE.get(freedom.saturating_sub(1)) {
        Some(&quantile) => quantile,
        None => {
            let n = freedom as f64;
            NORMAL
                + (NORMAL.powi(3) + NORMAL) / (4.0 * n)
                + (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / (96.0 * n * n)
        }
    }
}

/// The drives of a run by variant, repetitions together, in their order.
pub(crate) fn by_variant(run: &RunResult) -> Vec<(&str, Vec<&DeviceResult>)> {
    let mut variants: Vec<(&str, Vec<&DeviceResult>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for device in &run.devices {
        let of = device.repetition.as_ref().map_or(device.name.as_str(), |repetition| repetition.of.as_str());
        let place = *places.entry(of).or_insert_with(|| {
            variants.push((of, Vec::new()));
            variants.len() - 1
        });
        variants[place].1.push(device);
    }
    variants
}

/// A metric over the repetitions of a variant; nothing where a repetition has none.
pub(crate) fn spread(metric: &Metric, devices: &[&DeviceResult]) -> Option<Spread> {
    let values: Option<Vec<f64>> = devices.iter().map(|device| (metric.value)(device)).collect();
    Spread::of(&values?)
}

/// A key in which descriptions differ.
pub(crate) struct Difference {
    pub(crate) key: String,
    /// Whether it was set over a description, by `--vary` or `--set`.
    pub(crate) is_set: bool,
    /// The text of each entry of the run: as set, or else as the description has it; nothing where it lacks the key.
    pub(crate) values: Vec<Option<String>>,
}

/// Keys in which the descriptions of a run differ: those that were set first, since others may follow from them, as a
/// capacity does from an over-provisioning.
pub(crate) fn differences(run: &RunResult) -> Vec<Difference> {
    let described: Vec<BTreeMap<String, String>> =
        run.devices.iter().map(|device| flat(&device.configuration)).collect();
    let set = |key: &String| run.devices.iter().any(|device| device.overrides.contains_key(key));
    let keys: BTreeSet<&String> =
        described.iter().flat_map(BTreeMap::keys).chain(run.devices.iter().flat_map(|d| d.overrides.keys())).collect();
    let is_one = |values: &[Option<&String>]| values.windows(2).all(|pair| pair[0] == pair[1]);
    let difference = |key: &String| {
        let described: Vec<Option<&String>> = described.iter().map(|description| description.get(key)).collect();
        let values = run.devices.iter().zip(&described).map(|(device, own)| device.overrides.get(key).or(*own));
        let values: Vec<Option<&String>> = values.collect();
        // What a description has in other words is no difference.
        let differs = !is_one(&values) && (!is_one(&described) || described.iter().all(Option::is_none));
        let values = values.into_iter().map(Option::<&String>::cloned).collect();
        differs.then(|| Difference { key: key.clone(), is_set: set(key), values })
    };
    let mut differences: Vec<Difference> =
        keys.into_iter().filter(|key| *key != "name").filter_map(difference).collect();
    differences.sort_by_key(|difference| !difference.is_set);
    differences
}

/// A description's keys as `--set` writes them: `gc.victim`. A list is one value.
pub(crate) fn flat(configuration: &Value) -> BTreeMap<String, String> {
    fn walk(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    walk(&key, value, into);
                }
            }
            _ => {
                into.insert(prefix.to_string(), text(value));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk("", configuration, &mut all);
    all
}

/// A value without the quotes of JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Axis, AxisError> {
        text.parse()
    }

    #[test]
    fn values_are_split_at_commas_outside_of_lists_and_quotes() {
        let values = |text: &str| axis(text).expect(text).values;
        assert_eq!(values("gc.victim=greedy, fifo"), ["greedy", "fifo"]);
        assert_eq!(values("flash.timing.read=[1us,2us],3us"), ["[1us,2us]", "3us"]);
        assert_eq!(values(r#"name="a,b",c"#), [r#""a,b""#, "c"]);
        for wrong in ["gc.victim", "=a,b", "gc.victim=", "gc.victim=a,,b", "gc.victim=a,b,"] {
            assert_eq!(axis(wrong), Err(AxisError::Form { found: wrong.to_string() }), "{wrong}");
        }
        assert!(matches!(axis("k=a,b,a"), Err(AxisError::Twice { value, .. }) if value == "a"));
    }

    #[test]
    fn the_cross_product_has_every_combination_once() {
        let axes = [axis("a.x=1,2,3").expect("sound"), axis("b.x=p,q").expect("sound")];
        let variants = cross_product(&axes).expect("sound");
        let names: Vec<String> = variants.iter().map(suffix).collect();
        assert_eq!(names, ["a.x=1 b.x=p", "a.x=1 b.x=q", "a.x=2 b.x=p", "a.x=2 b.x=q", "a.x=3 b.x=p", "a.x=3 b.x=q"]);
        assert_eq!(
            suffix(&vec![("gc.victim".into(), "fifo".into()), ("buffer.size".into(), "1m".into())]),
            "victim=fifo size=1m"
        );
        assert_eq!(cross_product(&[]), Ok(vec![vec![]]));
        let twice = [axis("a=1,2").expect("sound"), axis("a=3,4").expect("sound")];
        assert_eq!(cross_product(&twice), Err(AxisError::KeyTwice { key: "a".into() }));
        let wide = |key: &str| Axis { key: key.into(), values: (0..100).map(|value| value.to_string()).collect() };
        assert_eq!(cross_product(&[wide("a"), wide("b")]), Err(AxisError::TooMany { found: 10_000 }));
    }

    #[test]
    fn an_interval_is_student_s() {
        let spread = Spread::of(&[9.0, 10.0, 11.0]).expect("values");
        assert_eq!(spread.mean, 10.0);
        assert!((spread.half_interval.expect("three") - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Spread::of(&[7.0]), Some(Spread { mean: 7.0, half_interval: None }));
        assert_eq!(Spread::of(&[]), None);
        // The expansion goes on where the table ends.
        assert!((student_975(31) - 2.0395).abs() < 1e-3 && (student_975(120) - 1.9799).abs() < 1e-3);
    }
}
