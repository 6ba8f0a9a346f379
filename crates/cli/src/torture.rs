//! `ssdlab torture`: campaigns of power cuts and faults, and what a failing seed comes down to.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use ssdlab_base::{closest, grouped, parse_duration, read_text};
use ssdlab_device::description::BYTES_MAX;
use ssdlab_device::{Description, DriveConfig, has_own_campaign, registered};
use ssdlab_lab::memory::BESIDES;
use ssdlab_torture::stacks::StackCase;
use ssdlab_torture::tags::TagCase;
use ssdlab_torture::{Campaign, Case, Exhaustive, Finding, NotAccepted, NotDrawn, Scope, Shrunk, Totals, scale_down};

use crate::args::Torture;
use crate::failure::Failure;
use crate::memory::allowed;
use crate::{interrupt, outputs, shipped, stderr, stdout};

mod command_set;
mod stacks;

/// Seeds where neither --seeds nor --until says how many.
const SEEDS: u64 = 1000;

/// Does what was asked for; status 1 if anything was found.
pub(crate) fn torture(args: &Torture) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.save {
        let below = args.host.as_deref().map(shipped::host_and_drives).transpose()?.map(|(_, drives)| drives);
        let drives = args.device.iter().chain(below.iter().flatten()).map(Path::new);
        outputs::is_not_read("--save ", path, drives.chain(args.host.as_deref()))?;
    }
    if args.memory.is_some() && args.device.is_none() && args.replay.is_none() {
        return Err(Failure::input("--memory: it limits the drives of --device and --replay, and there is neither")
            .hint("without them torture draws drives of less than a megabyte"));
    }
    match &args.replay {
        Some(file) => replay(args, file),
        None if args.command_sets => command_set::campaign(args),
        None if args.host.is_some() || args.stacks || args.drivers => stacks::campaign(args),
        None => campaign(args),
    }
}

/// The text of a saved case, or of a host's description.
fn case_text(file: &Path) -> Result<String, Failure> {
    read_text(file, BYTES_MAX, "a description").map_err(|error| Failure::input(format!("{}: {error}", file.display())))
}

fn replay(args: &Torture, file: &Path) -> Result<ExitCode, Failure> {
    let name = file.display().to_string();
    let text = case_text(file)?;
    if StackCase::is_meant(&text) {
        return stacks::replay(args, &text, &name);
    }
    if TagCase::is_meant(&text) {
        return command_set::replay(args, &text, &name);
    }
    let case = Case::parse(&text, &name).map_err(Failure::input)?;
    check_memory(args, &case.config, 1)?;
    ssdlab_torture::accepted(&case).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let mut totals = Totals::default();
    let mut unstruck = Vec::new();
    let found = ssdlab_torture::run_telling(&case, &mut totals, &mut unstruck);
    for sentence in &unstruck {
        stderr::say(format_args!("warning: {sentence}"));
    }
    if args.json {
        let finding = found.as_ref().err().map(finding_json);
        let replayed = json!({ "totals": totals_json(&totals, None), "failed": finding, "warnings": unstruck });
        stdout::print_json(&replayed)?;
    } else {
        stdout::print(|to| match &found {
            Ok(()) => writeln!(to, "{} steps, {} power cuts: nothing found", case.steps.len(), totals.cuts),
            Err(finding) => writeln!(to, "{}", told(&case, finding)),
        })?;
    }
    Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long seeds are begun, where that is said.
fn until(args: &Torture) -> Result<Option<Duration>, Failure> {
    let Some(text) = &args.until else { return Ok(None) };
    let time = parse_duration(text).map_err(|error| Failure::input(format!("--until: {error}")))?;
    Ok(Some(Duration::from_nanos(time.0)))
}

fn jobs(args: &Torture) -> usize {
    args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize)
}

fn campaign(args: &Torture) -> Result<ExitCode, Failure> {
    let scope = scope(args)?;
    let until = until(args)?;
    let jobs = jobs(args);
    if let Some(drive) = &scope.drive {
        check_memory(args, drive, jobs as u64)?;
    }
    let stop = interrupt::listen()?;
    let line = Line::new(args.quiet);
    let start = Instant::now();
    let (totals, failed, not_drawn) = match args.exhaustive {
        Some(length) => {
            let Scope { designs, buffers, .. } = scope.clone();
            let found = Exhaustive { designs, buffers, length, jobs }.run(stop, &|totals| line.show(totals, None));
            (found.totals, found.failed, None)
        }
        None => {
            let seeds = args.seeds.unwrap_or(if until.is_some() { u64::MAX } else { SEEDS });
            let campaign = Campaign { scope: scope.clone(), first: args.seed, seeds, until, jobs };
            let known = until.is_none().then_some(seeds);
            let outcome = campaign.run(stop, &|totals| line.show(totals, known));
            let again = |(seed, finding)| ssdlab_torture::draw(seed, &scope).ok().map(|case| (case, finding));
            (outcome.totals, outcome.failed.and_then(again), outcome.not_drawn)
        }
    };
    line.clear();
    if let Some(why) = not_drawn {
        return Err(cannot_be_drawn(args, &why));
    }
    let wall = start.elapsed();
    let Some((case, finding)) = failed else { return nothing_found(args, &totals, wall, &table(&totals, wall, true)) };
    let shrunk = ssdlab_torture::shrink_until(&case, &finding, stop);
    let command = (args.exhaustive.is_none()).then(|| repeat(args, case.seed));
    report(args, &totals, wall, &case, &finding, &shrunk, command.as_deref())?;
    Ok(ExitCode::FAILURE)
}

/// A campaign found nothing: it ran to its end, or was interrupted, which is no success.
fn nothing_found(args: &Torture, totals: &Totals, wall: Duration, counted: &str) -> Result<ExitCode, Failure> {
    let interrupted = interrupt::was_asked_for();
    if args.json {
        let totals = totals_json(totals, Some(wall));
        stdout::print_json(&json!({ "totals": totals, "failed": null, "interrupted": interrupted }))?;
    } else {
        stdout::print(|to| {
            to.write_all(counted.as_bytes())?;
            if interrupted { writeln!(to, "interrupted: nothing was found so far") } else { Ok(()) }
        })?;
    }
    Ok(if interrupted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// No drive was accepted for a seed.
fn cannot_be_drawn(args: &Torture, why: &NotDrawn) -> Failure {
    let failure = match &args.device {
        Some(device) => Failure::input(format!("{device}: {why}")),
        None => Failure::input(why),
    };
    failure.hint(match (&args.device, &args.host) {
        (Some(_), _) => {
            "each seed has bad blocks of its own: lower flash.faults.factory_bad or the user capacity, or raise \
             flash.blocks_per_plane, so that every seed leaves enough good blocks"
        }
        (None, Some(_)) => {
            "drives that are drawn have up to some 700 KB: lower what the layers take of them, or name a drive with \
             --device"
        }
        (None, None) => "name other designs or buffers with --design and --buffer, or a drive with --device",
    })
}

/// Refuses drives of which `jobs` at a time take more than is allowed.
fn check_memory(args: &Torture, config: &DriveConfig, jobs: u64) -> Result<(), Failure> {
    check_memory_of(args, std::slice::from_ref(config), jobs)
}

/// Refuses stacks of these drives where `jobs` stacks at a time take more memory than is allowed.
fn check_memory_of(args: &Torture, drives: &[DriveConfig], jobs: u64) -> Result<(), Failure> {
    let allowed = allowed(args.memory.as_deref())?;
    let mut one = 0_u64;
    for config in drives {
        one = one.saturating_add(ssdlab_torture::simulator_bytes(config).map_err(Failure::input)?);
    }
    let name = match drives {
        [config] => config.name.clone(),
        _ => format!("a stack of {} drives", drives.len()),
    };
    let mut hints = Vec::new();
    if jobs > 1 && one + BESIDES <= allowed.bytes {
        hints.push(format!("--jobs {} fits", (allowed.bytes - BESIDES) / one));
    }
    let what = if jobs > 1 { format!("{name}: torture on {jobs} threads") } else { format!("{name}: torture") };
    allowed.check(&what, one.saturating_mul(jobs).saturating_add(BESIDES), hints)
}

/// Random block I/O means nothing to a drive with append-only segments.
fn appends_alone(option: &str, design: &str) -> Failure {
    Failure::input(format!("{option}: drives of the design '{design}' accept only appends to segments")).hint(
        "put the layer 'append' above a drive of the command set 'segments' or 'zoned' with --host (docs/host.md); to test bare \
             drives, run `cargo test --release -p ssdlab-torture --test it segments::`",
    )
}

/// What cases are drawn from, as the command line says.
fn scope(args: &Torture) -> Result<Scope, Failure> {
    let names = |given: &[String], option: &str, kind: &str| -> Result<Vec<String>, Failure> {
        let known: Vec<&str> =
            registered().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.name).collect();
        if let Some(wrong) = given.iter().find(|name| !known.contains(&name.as_str())) {
            let meant = closest(wrong, known.iter().copied()).map(|name| format!("did you mean '{name}'? "));
            let hint = format!("{}there are {}", meant.unwrap_or_default(), known.join(", "));
            return Err(Failure::input(format!("{option}: '{wrong}' is not known")).hint(hint));
        }
        if let Some(name) = given.iter().find(|name| has_own_campaign(name)) {
            return Err(appends_alone(option, name));
        }
        Ok(given.to_vec())
    };
    let mut scope = Scope {
        designs: names(&args.design, "--design", "ftl.design")?,
        buffers: names(&args.buffer, "--buffer", "buffer.policy")?,
        ..Scope::everything(args.ops)
    };
    let all = Scope::everything(args.ops);
    let Some(device) = &args.device else {
        if let Some(assignment) = args.set.first() {
            return Err(Failure::input(format!("--set {assignment} without --device: there is no drive to set it on")));
        }
        scope.designs = if scope.designs.is_empty() { all.designs } else { scope.designs };
        scope.buffers = if scope.buffers.is_empty() { all.buffers } else { scope.buffers };
        return Ok(scope);
    };
    if args.exhaustive.is_some() {
        return Err(Failure::input("--device with --exhaustive: short sequences run on drives of a handful of pages"));
    }
    let (drive, description) = small_drive(args, device)?;
    scope.drive = Some(drive);
    scope.check().map_err(|error| match error {
        NotAccepted::Drive(error) => Failure::input(description.place(&error)),
        error @ NotAccepted::With { .. } => Failure::input(error),
    })?;
    Ok(scope)
}

/// The drive of one's own, or a small one of its kind; and its description, which says where what is wrong stands.
fn small_drive(args: &Torture, device: &str) -> Result<(DriveConfig, Description), Failure> {
    let mut description = shipped::open(device)?;
    for assignment in &args.set {
        description.set(assignment).map_err(Failure::input)?;
    }
    let config = description.resolve().map_err(Failure::input)?;
    config.validate().map_err(|error| Failure::input(description.place(&error)))?;
    if has_own_campaign(&config.ftl.design) && args.host.is_none() {
        return Err(appends_alone("--device", &config.ftl.design));
    }
    let small = scale_down::small_like(&config).ok_or_else(|| {
        Failure::input(format!("no small drive of the kind of '{}' is accepted", config.name))
            .hint("fewer streams or a smaller gc.free_blocks leave more space")
    })?;
    if small.flash.geometry != config.flash.geometry {
        stderr::note(format_args!(
            "a small drive of its kind is tortured: {}",
            ssdlab_device::description::one_line(&small)
        ));
    }
    Ok((small, description))
}

/// The command that runs this seed alone.
fn repeat(args: &Torture, seed: u64) -> String {
    let quoted = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:%+,".contains(c);
        if text.chars().all(plain) { text.to_string() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let mut command = format!("ssdlab torture --seed {seed} --seeds 1 --ops {}", args.ops);
    let device = args.device.iter().map(|device| ("--device", device));
    let rest = [("--set", &args.set), ("--design", &args.design), ("--buffer", &args.buffer)];
    let rest = rest.into_iter().flat_map(|(option, values)| values.iter().map(move |value| (option, value)));
    for (option, value) in device.chain(rest) {
        command.push_str(&format!(" {option} {}", quoted(value)));
    }
    command
}

#[allow(clippy::too_many_arguments)]
fn report(
    args: &Torture,
    totals: &Totals,
    wall: Duration,
    case: &Case,
    finding: &Finding,
    shrunk: &Shrunk,
    command: Option<&str>,
) -> Result<(), Failure> {
    let path = args.save.clone().unwrap_or_else(|| PathBuf::from(format!("torture-{}.toml", case.seed)));
    let comment = format!("{}\n{}", shrunk.finding.message, command.unwrap_or("a short sequence of commands"));
    let saved = std::fs::write(&path, shrunk.case.to_text(&comment));
    if args.json {
        let mut finding = finding_json(finding);
        finding["seed"] = json!(case.seed);
        finding["repeat"] = json!(command);
        finding["steps"] = json!(case.steps.len());
        finding["shrunk"] = finding_json(&shrunk.finding);
        finding["shrunk"]["steps"] = shrunk.case.steps.iter().map(|step| json!(step.to_string())).collect();
        finding["shrunk"]["file"] = json!(saved.is_ok().then(|| path.display().to_string()));
        stdout::print_json(&json!({ "totals": totals_json(totals, Some(wall)), "failed": finding }))?;
    } else {
        stdout::print(|to| {
            to.write_all(table(totals, wall, true).as_bytes())?;
            writeln!(to, "\nFAILED: seed {}, step {} of {}", case.seed, finding.step + 1, case.steps.len())?;
            writeln!(to, "  {}", finding.message)?;
            if let Some(command) = command {
                writeln!(to, "repeat it with\n  {command}")?;
            }
            writeln!(to, "\nshrunk to {} steps in {} tries:", shrunk.case.steps.len(), shrunk.tries)?;
            writeln!(to, "{}", told(&shrunk.case, &shrunk.finding))?;
            if saved.is_ok() {
                writeln!(to, "repeat that with\n  ssdlab torture --replay {}", path.display())?;
            }
            Ok(())
        })?;
    }
    saved.map_err(|error| Failure::work(format!("{}: cannot be written: {error}", path.display())))
}

/// A failing seed of stacks or of a command set, and what it shrank to.
struct Failed {
    seed: u64,
    /// The command that repeats the seed.
    command: String,
    /// Steps of the case that the seed determines.
    steps: usize,
    finding: Finding,
    shrunk: Finding,
    /// The steps of the shrunk case.
    small: Vec<String>,
    /// The shrunk case as a list that a person reads.
    told: String,
    /// The shrunk case as a file.
    text: String,
}

fn report_failed(
    args: &Torture,
    totals: &Totals,
    wall: Duration,
    counted: &str,
    failed: &Failed,
) -> Result<ExitCode, Failure> {
    let Failed { seed, command, finding, shrunk, small, .. } = failed;
    let path = args.save.clone().unwrap_or_else(|| PathBuf::from(format!("torture-{seed}.toml")));
    let saved = std::fs::write(&path, &failed.text);
    if args.json {
        let mut json = finding_json(finding);
        json["seed"] = json!(seed);
        json["repeat"] = json!(command);
        json["steps"] = json!(failed.steps);
        json["shrunk"] = finding_json(shrunk);
        json["shrunk"]["steps"] = json!(small);
        json["shrunk"]["file"] = json!(saved.is_ok().then(|| path.display().to_string()));
        stdout::print_json(&json!({ "totals": totals_json(totals, Some(wall)), "failed": json }))?;
    } else {
        stdout::print(|to| {
            to.write_all(counted.as_bytes())?;
            writeln!(to, "\nFAILED: seed {seed}, step {} of {}", finding.step + 1, failed.steps)?;
            writeln!(to, "  {}\nrepeat it with\n  {command}", finding.message)?;
            writeln!(to, "\nshrunk to {} steps:\n{}", small.len(), failed.told)?;
            if saved.is_ok() {
                writeln!(to, "repeat that with\n  ssdlab torture --replay {}", path.display())?;
            }
            Ok(())
        })?;
    }
    saved.map_err(|error| Failure::work(format!("{}: cannot be written: {error}", path.display())))?;
    Ok(ExitCode::FAILURE)
}

/// A failing case as a list that a person reads.
fn told(case: &Case, finding: &Finding) -> String {
    let mut text = format!("  on {}\n", ssdlab_device::description::one_line(&case.config));
    for fault in &case.config.flash.faults.script {
        text.push_str(&format!("  fault: {:?} number {} on block {}\n", fault.kind, fault.nth, fault.block));
    }
    for (index, step) in case.steps.iter().enumerate() {
        let mark = if index == finding.step { "->" } else { "  " };
        text.push_str(&format!("{mark}{:4}  {step}\n", index + 1));
    }
    if finding.step >= case.steps.len() {
        text.push_str("->      the end: one more write and flush, and a look at all sectors\n");
    }
    text.push_str(&format!("  {}\n  at {}", finding.message, finding.place));
    text
}

fn finding_json(finding: &Finding) -> Value {
    json!({ "message": finding.message, "place": finding.place, "step": finding.step + 1 })
}

fn totals_json(totals: &Totals, wall: Option<Duration>) -> Value {
    let kinds = totals.cuts_by_kind;
    let faults = totals.faults;
    let [host, drive, all] = totals.stack_cuts;
    json!({
        "seeds": totals.cases,
        "commands": totals.commands,
        "stack_cuts": { "host": host, "drive": drive, "all": all },
        "stacks_not_back": totals.not_back,
        "cuts": {
            "total": totals.cuts, "program": kinds[0], "erase": kinds[1], "recovery": kinds[2], "idle": kinds[3],
        },
        "faults": { "read": faults[0], "program": faults[1], "erase": faults[2], "factory": faults[3], "die": faults[4] },
        "read_only_ends": totals.read_only,
        "commands_refused": totals.refused,
        "reads_failed": totals.unreadable,
        "sectors_compared": totals.sectors_compared,
        "cuts_per_core_second": totals.cuts_per_core_second(),
        "recovery_us": per_cut(totals.recovering, totals),
        "comparison_us": per_cut(totals.comparing, totals),
        "wall_time_s": wall.map(|wall| wall.as_secs_f64()),
    })
}

fn per_cut(time: Duration, totals: &Totals) -> f64 {
    time.as_secs_f64() * 1e6 / totals.cuts.max(1) as f64
}

/// The closing table; `by_kind` where power cuts are counted by what they interrupted, which those of stacks are not.
fn table(totals: &Totals, wall: Duration, by_kind: bool) -> String {
    let count = |number: u64| grouped(&number.to_string(), ',');
    let row = |name: &str, value: String| vec![name.to_string(), value];
    let [program, erase, recovery, idle] = totals.cuts_by_kind;
    let [reads, programs, erases, factory, dies] = totals.faults;
    let mut rows = vec![
        row("seeds", count(totals.cases)),
        row("commands", count(totals.commands)),
        row("power cuts", count(totals.cuts)),
    ];
    if by_kind {
        rows.extend([
            row("  in a program", count(program)),
            row("  in an erase", count(erase)),
            row("  in recovery", count(recovery)),
            row("  idle arrays", count(idle)),
        ]);
    }
    rows.extend([
        row("faults", String::new()),
        row("  reads", count(reads)),
        row("  programs", count(programs)),
        row("  erases", count(erases)),
        row("  bad from the factory", count(factory)),
        row("  lost dies", count(dies)),
        row("ended read-only", count(totals.read_only)),
        row("sectors compared", count(totals.sectors_compared)),
        row("power cuts/s of a core", count(totals.cuts_per_core_second() as u64)),
        row(
            "a power cut costs",
            format!(
                "{:.0} us recovery, {:.0} us comparison",
                per_cut(totals.recovering, totals),
                per_cut(totals.comparing, totals)
            ),
        ),
        row("wall time", format!("{:.1} s", wall.as_secs_f64())),
    ]);
    stdout::aligned(&rows)
}

/// How far the campaign is, on a terminal.
struct Line {
    bar: ProgressBar,
    drawn: Mutex<Instant>,
}

impl Line {
    fn new(quiet: bool) -> Line {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style =
            ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style);
        Line { bar, drawn: Mutex::new(Instant::now()) }
    }

    fn show(&self, totals: &Totals, seeds: Option<u64>) {
        if self.bar.is_hidden() {
            return;
        }
        let Ok(mut drawn) = self.drawn.try_lock() else { return };
        if drawn.elapsed() < Duration::from_millis(125) {
            return;
        }
        *drawn = Instant::now();
        let of = seeds.map_or(String::new(), |seeds| format!(" of {seeds}"));
        self.bar.set_message(format!("{}{of} seeds  {} power cuts", totals.cases, totals.cuts));
        self.bar.tick();
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
