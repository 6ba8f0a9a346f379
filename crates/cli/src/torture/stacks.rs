//! `ssdlab torture --host FILE` and `--stacks`: layers above several drives.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use ssdlab_torture::stacks::{self, StackScope};
use ssdlab_torture::{Campaign, Scope, Totals};

use super::{Line, SEEDS, finding_json, jobs, small_drive, table, totals_json, until};
use crate::args::Torture;
use crate::failure::Failure;
use crate::{interrupt, shipped, stdout};

/// Shorter cases that are tried to find what of a failing one matters.
const TRIES: u32 = 400;

/// Does what was asked for; status 1 if anything was found.
pub(super) fn campaign(args: &Torture) -> Result<ExitCode, Failure> {
    let host = match &args.host {
        Some(file) => Some((file.display().to_string(), shipped::host(file)?)),
        None => None,
    };
    let drive = args.device.as_deref().map(|device| small_drive(args, device)).transpose()?;
    if let (Some((name, host)), Some(drive)) = (&host, &drive) {
        host.sectors(drive).map_err(|why| Failure::input(format!("{name}: {why}")))?;
    }
    let scope = StackScope { host, drive, commands: args.ops };
    let until = until(args)?;
    let seeds = args.seeds.unwrap_or(if until.is_some() { u64::MAX } else { SEEDS });
    let campaign = Campaign { scope: Scope::everything(args.ops), first: args.seed, seeds, until, jobs: jobs(args) };
    let known = until.is_none().then_some(seeds);
    let line = Line::new(args.quiet);
    let start = Instant::now();
    let outcome = campaign.run_each(interrupt::listen()?, &|totals| line.show(totals, known), &|seed, totals| {
        let (case, host) = stacks::draw(seed, &scope);
        stacks::run(&case, &host, totals)
    });
    line.clear();
    let wall = start.elapsed();
    let totals = &outcome.totals;
    let Some((seed, finding)) = outcome.failed else {
        if args.json {
            stdout::print_json(&json!({ "totals": totals_json(totals, Some(wall)), "failed": null }))?;
        } else {
            stdout::print(|to| to.write_all(told_of(totals, wall).as_bytes()))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let (case, host) = stacks::draw(seed, &scope);
    let (small, shrunk) = stacks::shrink(&case, &host, TRIES);
    let shrunk = shrunk.unwrap_or_else(|| finding.clone());
    let steps: Vec<String> = small.steps.iter().map(ToString::to_string).collect();
    let mut command = format!("ssdlab torture --seed {seed} --seeds 1 --ops {}", args.ops);
    command += &args.host.as_ref().map_or(" --stacks".to_string(), |file| format!(" --host {}", file.display()));
    args.device.iter().for_each(|device| command += &format!(" --device {device}"));
    args.set.iter().for_each(|set| command += &format!(" --set '{set}'"));
    if args.json {
        let mut failed = finding_json(&finding);
        failed["seed"] = json!(seed);
        failed["repeat"] = json!(command);
        failed["shrunk"] = finding_json(&shrunk);
        failed["shrunk"]["steps"] = json!(steps);
        stdout::print_json(&json!({ "totals": totals_json(totals, Some(wall)), "failed": failed }))?;
        return Ok(ExitCode::FAILURE);
    }
    stdout::print(|to| {
        to.write_all(told_of(totals, wall).as_bytes())?;
        writeln!(to, "\nFAILED: seed {seed}, step {} of {}", finding.step + 1, case.steps.len())?;
        writeln!(to, "  {}\nrepeat it with\n  {command}", finding.message)?;
        writeln!(to, "\nshrunk to {} steps, on {}", steps.len(), ssdlab_device::description::one_line(&small.drive))?;
        small.host.lines().try_for_each(|line| writeln!(to, "  | {line}"))?;
        for (index, step) in steps.iter().enumerate() {
            let mark = if index == shrunk.step { "->" } else { "  " };
            writeln!(to, "{mark}{:4}  {step}", index + 1)?;
        }
        writeln!(to, "  {}\n  at {}", shrunk.message, shrunk.place)
    })?;
    Ok(ExitCode::FAILURE)
}

/// The closing table, with whose power was cut.
fn told_of(totals: &Totals, wall: std::time::Duration) -> String {
    let [host, drive, all] = totals.stack_cuts;
    format!("{}crashes of the host {host}, cuts of one drive {drive}, cuts of everything {all}\n", table(totals, wall))
}
