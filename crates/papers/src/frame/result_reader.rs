//! A run's figures by their names in `result.json`.

use std::sync::Arc;

use serde_json::Value;

/// What a run left: one drive's entry in the results, read by the names that `docs/results.md` explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    device: Arc<Value>,
}

impl Measured {
    /// The first drive of a whole result; nothing where there is none or it was interrupted.
    pub fn of(result: &Value) -> Option<Measured> {
        let device = result.get("devices")?.get(0)?;
        (device.get("complete")?.as_bool()?).then(|| Measured { device: Arc::new(device.clone()) })
    }

    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&*self.device, |value, key| match value {
            Value::Array(values) => values.get(key.parse::<usize>().ok()?),
            value => value.get(key),
        })
    }

    /// A number by its path: `latency_ns.all.mean`, `subtests.0.written_bytes`.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    /// A text by its path.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// A list of texts by its path.
    pub fn words(&self, path: &str) -> Option<Vec<&str>> {
        self.at(path)?.as_array()?.iter().map(Value::as_str).collect()
    }

    /// How many a list has, such as `subtests`; 0 where there is none.
    pub fn length(&self, path: &str) -> usize {
        self.at(path).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// A column of the timeline, as a list; `None` where an interval has no value.
    pub fn column(&self, path: &str) -> Option<Vec<Option<f64>>> {
        Some(self.at(path)?.as_array()?.iter().map(Value::as_f64).collect())
    }

    /// The mean of a list of numbers, such as `utilization.channels`.
    pub fn mean(&self, path: &str) -> Option<f64> {
        let column = self.column(path)?;
        let sum: Option<f64> = column.iter().copied().sum();
        sum.filter(|_| !column.is_empty()).map(|sum| sum / column.len() as f64)
    }

    /// The sum of a table of numbers, such as `memory`.
    pub fn total(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_object()?.values().map(Value::as_f64).sum()
    }

    /// The sum of those entries of a table of numbers whose names are asked for; 0 if there is none of these.
    pub fn total_of(&self, path: &str, asked: impl Fn(&str) -> bool) -> Option<f64> {
        let entries = self.at(path)?.as_object()?.iter();
        entries.filter(|(name, _)| asked(name)).map(|(_, value)| value.as_f64()).sum()
    }

    /// The distribution of a kind's latencies: microseconds, and the share in per cent that took at most this.
    pub fn distribution(&self, kind: &str) -> Option<Vec<(f64, f64)>> {
        let latency = self.column(&format!("latency_cdf.{kind}.latency_ns"))?;
        let fraction = self.column(&format!("latency_cdf.{kind}.fraction"))?;
        let points = latency.into_iter().zip(fraction);
        Some(points.filter_map(|(ns, share)| Some((ns? / 1e3, share? * 100.0))).collect())
    }

    /// The checks that did not hold, a sentence each.
    pub fn broken_checks(&self) -> Vec<String> {
        let checks = self.at("checks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // Earlier versions wrote `held`.
        let passed = |check: &Value| check.get("passed").or_else(|| check.get("held")).and_then(Value::as_bool);
        let broken = checks.iter().filter(|check| passed(check) != Some(true));
        broken
            .map(|check| check.get("detail").and_then(Value::as_str).unwrap_or("a check without words").to_string())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_found_by_path_and_what_is_missing_is_nothing() {
        let result = json!({ "devices": [{ "complete": true, "a": { "b": 3 }, "list": [1, 3], "gap": [1, null],
            "checks": [{ "passed": true, "detail": "x" }, { "passed": false, "detail": "y" }, { "held": true, "detail": "z" }],
            "latency_cdf": { "all": { "latency_ns": [1000, 2000], "fraction": [0.5, 1.0] } } }] });
        let measured = Measured::of(&result).expect("a drive");
        assert_eq!(measured.number("a.b"), Some(3.0));
        assert_eq!(measured.number("a.c"), None);
        assert_eq!(
            (measured.number("list.1"), measured.number("list.2"), measured.number("list.x")),
            (Some(3.0), None, None)
        );
        assert_eq!((measured.length("list"), measured.length("a")), (2, 0));
        assert_eq!(measured.total("a"), Some(3.0));
        assert_eq!(measured.total_of("a", |name| name == "b"), Some(3.0));
        assert_eq!(measured.total_of("a", |name| name == "x"), Some(0.0));
        assert_eq!(measured.total_of("list", |_| true), None);
        assert_eq!(measured.mean("list"), Some(2.0));
        assert_eq!(measured.mean("gap"), None);
        assert_eq!(measured.column("gap"), Some(vec![Some(1.0), None]));
        assert_eq!(measured.distribution("all"), Some(vec![(1.0, 50.0), (2.0, 100.0)]));
        assert_eq!(measured.broken_checks(), ["y"]);
        assert_eq!(Measured::of(&json!({ "devices": [{ "complete": false }] })), None);
        assert_eq!(Measured::of(&json!({})), None);
    }
}
