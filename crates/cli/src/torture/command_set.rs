//! `ssdlab torture --command-sets`: drives whose design takes commands of its own set.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use ssdlab_torture::tags::TagCase;
use ssdlab_torture::{Campaign, Finding, Scope, Totals};

use super::{
    Failed, Line, SEEDS, check_memory, finding_json, jobs, nothing_found, report_failed, table, totals_json, until,
};
use crate::args::Torture;
use crate::failure::Failure;
use crate::{interrupt, stdout};

/// Does what was asked for; status 1 if anything was found.
pub(super) fn campaign(args: &Torture) -> Result<ExitCode, Failure> {
    let until = until(args)?;
    let seeds = args.seeds.unwrap_or(if until.is_some() { u64::MAX } else { SEEDS });
    let campaign = Campaign { scope: Scope::everything(args.ops), first: args.seed, seeds, until, jobs: jobs(args) };
    let known = until.is_none().then_some(seeds);
    let line = Line::new(args.quiet);
    let start = Instant::now();
    let draw = |seed| TagCase::draw(seed, args.ops as usize);
    let outcome = campaign.run_each(interrupt::listen()?, &|totals| line.show(totals, known), &|seed, totals, _| {
        // Not every drawn drive is one that the set's design accepts.
        Ok(draw(seed).map_or(Ok(()), |case| case.run(totals).map(|_| ()))?)
    });
    line.clear();
    let (totals, wall) = (&outcome.totals, start.elapsed());
    let Some((seed, finding, case)) = outcome.failed.and_then(|(seed, found)| Some((seed, found, draw(seed)?))) else {
        return nothing_found(args, totals, wall, &table(totals, wall, true));
    };
    let (small, shrunk) = case.shrink(&finding);
    let command = format!("ssdlab torture --command-sets --seed {seed} --seeds 1 --ops {}", args.ops);
    let failed = Failed {
        seed,
        steps: case.steps.len(),
        small: small.steps.iter().map(ToString::to_string).collect(),
        told: told(&small, &shrunk),
        text: small.to_text(&format!("{}\n{command}", shrunk.message)),
        command,
        finding,
        shrunk,
    };
    report_failed(args, totals, wall, &table(totals, wall, true), &failed)
}

/// Runs the case of a file; `name` is what messages call it.
pub(super) fn replay(args: &Torture, text: &str, name: &str) -> Result<ExitCode, Failure> {
    let case = TagCase::parse(text, name).map_err(Failure::input)?;
    check_memory(args, &case.config, 1)?;
    case.accepted().map_err(|why| Failure::input(format!("{name}: {why}")))?;
    let mut totals = Totals::default();
    let found = case.run(&mut totals);
    if args.json {
        let finding = found.as_ref().err().map(finding_json);
        stdout::print_json(&json!({ "totals": totals_json(&totals, None), "failed": finding, "warnings": [] }))?;
    } else {
        stdout::print(|to| match &found {
            Ok(_) => writeln!(to, "{} steps, {} power cuts: nothing found", case.steps.len(), totals.cuts),
            Err(finding) => writeln!(to, "{}", told(&case, finding)),
        })?;
    }
    Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A failing case as a list that a person reads.
fn told(case: &TagCase, finding: &Finding) -> String {
    let mut text = format!("  on {}\n", ssdlab_device::description::one_line(&case.config));
    for (index, step) in case.steps.iter().enumerate() {
        let mark = if index == finding.step { "->" } else { "  " };
        text.push_str(&format!("{mark}{:4}  {step}\n", index + 1));
    }
    if finding.step >= case.steps.len() {
        text.push_str("->      the end: all commands complete, and all events are compared\n");
    }
    text + &format!("  {}\n  at {}", finding.message, finding.place)
}
