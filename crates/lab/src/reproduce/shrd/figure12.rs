//! Figure 12: random writes on ext4 and on F2FS, over time.

use super::common::{
    BY_DFTL, Column, DRIVE, cache_of, columns, misses_a_write, rate_by, rate_over_time, write_amplification, write_rate,
};
use crate::reproduce::{Curve, Curves, Drawn, Figure, Input, Measured, Outcomes, Run, Scene, names};

pub(super) struct Figure12;

const SYSTEMS: [&str; 2] = ["DFTL", "SHRD"];

/// The inputs: a recording on each file system, which ends with random writes.
const GROUP: &str = "file systems";

/// The cache holds one part in so many of the map of what a recording touches.
const SHARE: u64 = 16;

const COLUMNS: [Column; 4] = [
    ("writes", "K/s", write_rate),
    ("writes, last third", "K/s", last_third),
    ("misses a write", "", misses_a_write),
    ("write amplification", "", write_amplification),
];

/// The mean rate of writes in the last third of the time, in which a recording is at its random writes.
fn last_third(run: &Measured) -> Option<f64> {
    let rates = rate_over_time(run, "write");
    let last = &rates[rates.len() - rates.len() / 3..];
    (!last.is_empty()).then(|| last.iter().map(|(_, rate)| rate).sum::<f64>() / last.len() as f64)
}

fn run(scene: &Scene, system: &str, input: &Input) -> Option<Run> {
    let cache = cache_of(input, SHARE)?;
    Some(scene.run(DRIVE, system, input, "closed:32").with(format!("ftl.map_cache={cache}")))
}

impl Figure for Figure12 {
    fn id(&self) -> &'static str {
        "figure12"
    }

    fn title(&self) -> &'static str {
        "random writes on ext4 and F2FS"
    }

    fn about(&self) -> &'static str {
        "Part (a). Each recording ages its file system and then writes 4 KB at random into one file, with a flush every 64 writes. It is \
         replayed with 32 requests in flight; the cache holds one part in 16 of the map. The file systems and their loads are not the same \
         otherwise: compare DFTL with SHRD on one of them. Part (b), reads and sequential writes of aged files, has no recording."
    }

    fn series(&self) -> &'static [&'static str] {
        const OWN: [&str; COLUMNS.len()] = names(&COLUMNS);
        const NAMES: [&str; COLUMNS.len() + 1] = [OWN[0], OWN[1], BY_DFTL, OWN[2], OWN[3]];
        &NAMES
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        scene.inputs(GROUP).flat_map(|input| SYSTEMS.map(|system| run(scene, system, input))).flatten().collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in scene.inputs(GROUP) {
            let [Some(dftl), Some(shrd)] = SYSTEMS.map(|system| run(scene, system, input)) else { continue };
            let mut curves = Vec::new();
            for (system, run) in SYSTEMS.into_iter().zip([&dftl, &shrd]) {
                columns(&mut drawn, outcomes, (run, input, system), &COLUMNS);
                rate_by(&mut drawn, outcomes, (run, &dftl, "throughput.write_iops"), (input, system, BY_DFTL));
                let points = outcomes.get(run).map(|run| rate_over_time(run, "write"));
                curves.extend(points.map(|points| Curve { name: system.to_string(), points }));
            }
            drawn.curves.push(Curves {
                title: "(a) writes over time".to_string(),
                x: "time, s",
                x_log: false,
                y: "writes, K/s",
                is_scattered: false,
                input: input.shown.clone(),
                curves,
            });
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_third_is_that_of_the_whole_intervals() {
        let timeline = json!({
            "interval": 1_000_000, "time_ns": [1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 6.5e6],
            "latency_by_op": { "write": { "requests": [9, 9, 9, 9, 2, 4, 1] } },
        });
        let result = json!({ "devices": [{ "complete": true, "timeline": timeline }] });
        let measured = Measured::of(&result).expect("it is complete");
        assert_eq!(last_third(&measured), Some(3.0));
    }
}
