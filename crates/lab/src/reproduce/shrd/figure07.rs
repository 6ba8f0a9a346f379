//! Figure 7: fio's rate and map misses by the size of the cache.

use super::common::{
    BY_DFTL, Column, DATA_BY_MAP, DRIVE, Read, SYSTEMS, columns, erases_of_thousand_writes, misses_a_write,
    misses_of_uniform, rate_by, write_amplification, write_rate,
};
use crate::reproduce::{Curve, Curves, Drawn, Figure, Input, Outcomes, Run, Scene, point};

pub(super) struct Figure07;

/// Sizes of the cache, MB: the whole map of 32 GB at most (section 5.2).
const CACHES: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// fio's space (section 5.1).
const SPACE: u64 = 32 << 30;

/// A system's columns.
const COLUMNS: [Column; 4] = [
    ("rate", "K/s", write_rate),
    ("misses a write", "", misses_a_write),
    ("write amplification", "", write_amplification),
    ("erases", "a thousand writes", erases_of_thousand_writes),
];

fn run(scene: &Scene, system: &str, input: &Input, cache: u64) -> Run {
    scene.run(DRIVE, system, input, "").with(format!("ftl.map_cache={cache}m"))
}

impl Figure for Figure07 {
    fn id(&self) -> &'static str {
        "figure07"
    }

    fn title(&self) -> &'static str {
        "fio's random writes: rate and map misses a write, by the size of the map's cache"
    }

    fn about(&self) -> &'static str {
        "The whole drive, 32 GB written once before, then 1 GB of the paper's 32 at random. Closed form: of uniform writes over a \
         map of 32 MB the share that is not cached misses. Map cached: the cache by the map of 32 GB. Write amplification counts \
         what the drive writes for the workload's writes, copies of the host among them. The bars are a picture that the text does not give."
    }

    fn series(&self) -> &'static [&'static str] {
        &["map cached", "closed form", "rate", BY_DFTL, "misses a write", "write amplification", "erases"]
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        let of_input = |input| CACHES.map(|cache| SYSTEMS.map(|system| run(scene, system, input, cache)));
        scene.inputs("fio").flat_map(of_input).flatten().collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in scene.inputs("fio") {
            for cache in CACHES {
                let setting = format!("{cache} MB");
                let mut add = |series, value, unit| drawn.points.push(point(input, "", &setting, series, value, unit));
                let misses = misses_of_uniform(cache << 20, SPACE / DATA_BY_MAP);
                add("map cached", 100.0 * (1.0 - misses), "%");
                add("closed form", misses, "");
                for system in SYSTEMS {
                    let setting = format!("{system}, {cache} MB");
                    let [run, dftl] = [system, SYSTEMS[0]].map(|system| run(scene, system, input, cache));
                    columns(&mut drawn, outcomes, (&run, input, &setting), &COLUMNS);
                    rate_by(&mut drawn, outcomes, (&run, &dftl, "throughput.write_iops"), (input, &setting, BY_DFTL));
                }
            }
            let chart = |title: &str, y, read: Read| {
                let curves = SYSTEMS.map(|system| Curve {
                    name: system.to_string(),
                    points: CACHES
                        .into_iter()
                        .filter_map(|cache| {
                            Some((cache as f64, read(outcomes.get(&run(scene, system, input, cache))?)?))
                        })
                        .collect(),
                });
                let (title, x) = (title.to_string(), "cache of the map, MB");
                Curves {
                    title,
                    x,
                    x_log: true,
                    y,
                    is_scattered: false,
                    input: input.shown.clone(),
                    curves: curves.to_vec(),
                }
            };
            drawn.curves.push(chart("(a) rate", "writes, K/s", write_rate));
            drawn.curves.push(chart("(b) map misses a write", "misses a write", misses_a_write));
        }
        drawn
    }
}
