//! Figure 7: fio's rate and map misses by the size of the cache.

use super::common::{DATA_BY_MAP, DRIVE, SYSTEMS, misses_a_write, misses_of_uniform, write_rate};
use crate::reproduce::{Curve, Curves, Drawn, Figure, Input, Outcomes, Run, Scene, point};

pub(super) struct Figure07;

/// Sizes of the cache, MB: the whole map of 32 GB at most (section 5.2).
const CACHES: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// fio's space (section 5.1).
const SPACE: u64 = 32 << 30;

/// Each system's columns, rate and misses, in the order of [`SYSTEMS`].
const RATES: [&str; SYSTEMS.len()] = ["rate, DFTL", "rate, DFTL with buffer", "rate, SHRD"];
const MISSES: [&str; SYSTEMS.len()] =
    ["misses a write, DFTL", "misses a write, DFTL with buffer", "misses a write, SHRD"];

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
         map of 32 MB the share that is not cached misses. Map cached: the cache by the map of 32 GB. The bars are a picture that \
         the text does not give."
    }

    fn series(&self) -> &'static [&'static str] {
        &[
            "map cached",
            "closed form",
            "misses a write, DFTL",
            "misses a write, DFTL with buffer",
            "misses a write, SHRD",
            "rate, DFTL",
            "rate, DFTL with buffer",
            "rate, SHRD",
        ]
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
                for (index, system) in SYSTEMS.into_iter().enumerate() {
                    let Some(measured) = outcomes.get(&run(scene, system, input, cache)) else { continue };
                    if let Some(misses) = misses_a_write(measured) {
                        add(MISSES[index], misses, "");
                    }
                    if let Some(rate) = write_rate(measured) {
                        add(RATES[index], rate, "K/s");
                    }
                }
            }
            let chart = |title: &str, y, read: super::common::Read| {
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
