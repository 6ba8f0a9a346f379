//! The workload of WAFLASH's figure 2: how much do unaligned writes cost?
//!
//! 120,000 requests arrive as those of MSNFS do. Each is 8 KB long; 30 % are reads, and lie on whole pages of 8 KB; the
//! rest are writes, of which a given share begins 1 KB behind a page's start. With `arrivals=PATH` times and pages are
//! those of the first requests of a real trace, its addresses rounded down to pages; without, they are the model's of
//! MSNFS. A request that is unaligned at some share is so at every larger one, and is otherwise the same.

use std::sync::Arc;

use ssdlab_base::{Op, Rng, SECTOR_BYTES, rng};

use super::generator::Generator;
use super::{Drawn, count, description, flaw, percent, size, unknown};
use crate::WorkloadError;
use crate::draw::unit;
use crate::trace::Trace;

pub(super) const SUMMARY: &str =
    "WAFLASH, figure 2: 120k requests of 8 KB, 30 % reads, a share of the writes shifted by 1 KB (unaligned=50%)";

/// The experiment with its numbers.
#[derive(Clone, Debug)]
pub(super) struct Figure2 {
    pub(super) requests: u64,
    reads_percent: f64,
    unaligned_percent: f64,
    bytes: u64,
    page: u64,
    shift: u64,
    footprint: Option<u64>,
    /// Time and address of each request of a real trace, and its name.
    recorded: Option<(String, Vec<(u64, u64)>)>,
}

impl Figure2 {
    /// Reads the settings; the seed is the one they give, or `seed`.
    pub(super) fn parse(settings: &str, mut seed: u64) -> Result<(Figure2, u64), WorkloadError> {
        const KEYS: [&str; 9] =
            ["requests", "reads", "unaligned", "size", "page", "shift", "footprint", "seed", "arrivals"];
        let mut figure = Figure2 {
            requests: 120_000,
            reads_percent: 30.0,
            unaligned_percent: 0.0,
            bytes: 8192,
            page: 8192,
            shift: 1024,
            footprint: None,
            recorded: None,
        };
        let mut path = None;
        let mut rest = settings;
        while !rest.is_empty() {
            // A path may have commas in it: it is what follows its key.
            if let Some(given) = rest.strip_prefix("arrivals=") {
                path = Some(given);
                break;
            }
            let (setting, behind) = rest.split_once(',').unwrap_or((rest, ""));
            rest = behind;
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match key {
                "requests" => figure.requests = count(key, value)?,
                "reads" => figure.reads_percent = percent(key, value)?,
                "unaligned" => figure.unaligned_percent = percent(key, value)?,
                "size" => figure.bytes = size(key, value)?,
                "page" => figure.page = size(key, value)?,
                "shift" => figure.shift = size(key, value)?,
                "footprint" => figure.footprint = Some(size(key, value)?),
                "seed" => seed = value.parse().map_err(|_| flaw(key, value, "a whole number"))?,
                _ => return Err(unknown(key, &KEYS)),
            }
        }
        if figure.shift >= figure.page {
            return Err(flaw("shift", &figure.shift.to_string(), "less than a page"));
        }
        if let Some(path) = path {
            figure.recorded = Some((path.to_string(), recorded(path, figure.requests)?));
        }
        figure.model()?;
        Ok((figure, seed))
    }

    pub(super) fn identity(&self) -> String {
        let recorded = self.recorded.as_ref().map(|(path, list)| (path, list.len(), list.last()));
        format!("{:?} {recorded:?}", Figure2 { recorded: None, ..self.clone() })
    }

    /// Where times and pages come from without a recorded trace.
    fn model(&self) -> Result<description::Description, WorkloadError> {
        let mut model = description::open("msnfs")?.expect("it ships");
        model.footprint = self.footprint.unwrap_or(model.footprint);
        model.check()?;
        Ok(model)
    }
}

/// Times and addresses of the first `requests` reads and writes of a trace.
fn recorded(path: &str, requests: u64) -> Result<Vec<(u64, u64)>, WorkloadError> {
    let mut trace = Trace::open(path)?;
    let mut list = Vec::new();
    let mut batch = Vec::new();
    while (list.len() as u64) < requests && trace.read(&mut batch)? > 0 {
        let moving = batch.iter().filter(|request| matches!(request.op, Op::Read | Op::Write));
        list.extend(moving.map(|request| (request.at.0, request.sector * SECTOR_BYTES)));
    }
    if (list.len() as u64) < requests {
        return Err(WorkloadError(format!(
            "arrivals: {path} has {} reads and writes, expected the {requests} that are asked for (requests=N asks for \
             fewer)",
            list.len()
        )));
    }
    Ok(list)
}

/// Its requests.
pub(super) struct Requests {
    figure: Arc<Figure2>,
    model: Option<Generator>,
    next: usize,
    reads: Rng,
    shifts: Rng,
}

impl Requests {
    pub(super) fn new(figure: Arc<Figure2>, seed: u64) -> Requests {
        let model = match figure.recorded {
            Some(_) => None,
            None => figure.model().ok().map(|model| Generator::new(&model, seed)),
        };
        Requests { figure, model, next: 0, reads: rng(seed, "figure 2 reads"), shifts: rng(seed, "figure 2 shifts") }
    }
}

impl Iterator for Requests {
    type Item = Drawn;

    fn next(&mut self) -> Option<Drawn> {
        let figure = &self.figure;
        let (at_ns, offset) = match (&figure.recorded, &mut self.model) {
            (Some((_, list)), _) => *list.get(self.next)?,
            (None, Some(model)) => model.next().map(|drawn| (drawn.at_ns, drawn.offset))?,
            (None, None) => return None,
        };
        self.next += 1;
        let page = offset / figure.page * figure.page;
        let read = unit(&mut self.reads) * 100.0 < figure.reads_percent;
        let shifted = unit(&mut self.shifts) * 100.0 < figure.unaligned_percent;
        let (op, offset) = match (read, shifted) {
            (true, _) => (Op::Read, page),
            (false, true) => (Op::Write, page + figure.shift),
            (false, false) => (Op::Write, page),
        };
        Some(Drawn { at_ns, op, offset, bytes: figure.bytes })
    }
}
