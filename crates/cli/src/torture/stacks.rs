//! `ssdlab torture --host FILE` and `--stacks`: layers above several drives.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use ssdlab_device::DriveConfig;
use ssdlab_host::Host;
use ssdlab_torture::stacks::{self, StackCase, StackScope};
use ssdlab_torture::{Campaign, Finding, Scope, Totals};

use super::{
    Failed, Line, SEEDS, cannot_be_drawn, case_text, check_memory_of, finding_json, jobs, nothing_found, report_failed,
    small_drive, table, totals_json, until,
};
use crate::args::Torture;
use crate::failure::Failure;
use crate::{interrupt, shipped, stdout};

/// Shorter cases that are tried to find what of a failing one matters.
const TRIES: u32 = 400;

/// Does what was asked for; status 1 if anything was found.
pub(super) fn campaign(args: &Torture) -> Result<ExitCode, Failure> {
    let host = match &args.host {
        Some(file) => {
            let host = shipped::host(file)?;
            Some((case_text(file)?, host))
        }
        None => None,
    };
    let drive = match &args.device {
        Some(device) => {
            let (drive, description) = small_drive(args, device)?;
            let refused = |error| Failure::input(description.place(&error));
            ssdlab_torture::without_bad_blocks(&drive).map_err(refused)?;
            Some(drive)
        }
        None => None,
    };
    if let (Some(file), Some((_, host)), Some(drive)) = (&args.host, &host, &drive) {
        host.sectors(drive).map_err(|why| Failure::input(format!("{}: {why}", file.display())))?;
        check_memory_of(args, &drives_of(host, drive), jobs(args) as u64)?;
    }
    let scope = StackScope { host, drive, commands: args.ops, drivers: args.drivers, faults: true };
    let until = until(args)?;
    let seeds = args.seeds.unwrap_or(if until.is_some() { u64::MAX } else { SEEDS });
    let campaign = Campaign { scope: Scope::everything(args.ops), first: args.seed, seeds, until, jobs: jobs(args) };
    let known = until.is_none().then_some(seeds);
    let line = Line::new(args.quiet);
    let start = Instant::now();
    let stop = interrupt::listen()?;
    let outcome = campaign.run_each(stop, &|totals| line.show(totals, known), &|seed, totals, over| {
        let (case, host) = stacks::draw_until(seed, &scope, over)?;
        Ok(stacks::run(&case, &host, totals)?)
    });
    line.clear();
    if let Some(why) = &outcome.not_drawn {
        return Err(cannot_be_drawn(args, why));
    }
    let wall = start.elapsed();
    let totals = &outcome.totals;
    let again = |(seed, finding)| stacks::draw(seed, &scope).ok().map(|drawn| (seed, finding, drawn));
    let Some((seed, finding, (case, host))) = outcome.failed.and_then(again) else {
        return nothing_found(args, totals, wall, &told_of(totals, wall));
    };
    let (small, shrunk) = stacks::shrink_until(&case, &host, TRIES, stop);
    let shrunk = shrunk.unwrap_or_else(|| finding.clone());
    let mut command = format!("ssdlab torture --seed {seed} --seeds 1 --ops {}", args.ops);
    let drawn = if args.drivers { " --drivers" } else { " --stacks" };
    command += &args.host.as_ref().map_or(drawn.to_string(), |file| format!(" --host {}", file.display()));
    args.device.iter().for_each(|device| command += &format!(" --device {device}"));
    args.set.iter().for_each(|set| command += &format!(" --set '{set}'"));
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
    report_failed(args, totals, wall, &told_of(totals, wall), &failed)
}

/// Runs the case of a file; `name` is what messages call it.
pub(super) fn replay(args: &Torture, text: &str, name: &str) -> Result<ExitCode, Failure> {
    let case = StackCase::parse(text, name).map_err(Failure::input)?;
    let host = shipped::host_of(&case.host, &format!("{name}: torture.host"))?;
    check_memory_of(args, &drives_of(&host, &case.drive), 1)?;
    stacks::accepted(&case, &host).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let mut totals = Totals::default();
    let found = stacks::run(&case, &host, &mut totals);
    if args.json {
        let finding = found.as_ref().err().map(finding_json);
        stdout::print_json(&json!({ "totals": totals_json(&totals, None), "failed": finding, "warnings": [] }))?;
    } else {
        stdout::print(|to| match &found {
            Ok(()) => writeln!(to, "{} steps, {} power cuts: nothing found", case.steps.len(), totals.cuts),
            Err(finding) => writeln!(to, "{}", told(&case, finding)),
        })?;
    }
    Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The drives of a stack above drives of one kind.
fn drives_of(host: &Host, drive: &DriveConfig) -> Vec<DriveConfig> {
    host.drives(drive).into_iter().map(|(_, config)| config).collect()
}

/// A failing case as a list that a person reads.
fn told(case: &StackCase, finding: &Finding) -> String {
    let mut text = format!("  on {}\n", ssdlab_device::description::one_line(&case.drive));
    case.host.lines().for_each(|line| text.push_str(&format!("  | {line}\n")));
    for (index, step) in case.steps.iter().enumerate() {
        let mark = if index == finding.step { "->" } else { "  " };
        text.push_str(&format!("{mark}{:4}  {step}\n", index + 1));
    }
    if finding.step >= case.steps.len() {
        text.push_str("->      the end: one more write and flush, then cuts of everything and of each drive\n");
    }
    text + &format!("  {}\n  at {}", finding.message, finding.place)
}

/// The closing table, with whose power was cut.
fn told_of(totals: &Totals, wall: std::time::Duration) -> String {
    let [host, drive, all] = totals.stack_cuts;
    let mut text = format!(
        "{}crashes of the host {host}, cuts of one drive {drive}, cuts of everything {all}\n",
        table(totals, wall, false)
    );
    if totals.not_back > 0 {
        text += &format!(
            "stacks that did not come back, because a layer could not read its records: {}\n",
            totals.not_back
        );
    }
    text
}
