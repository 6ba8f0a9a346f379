//! `ssdlab torture`: campaigns of power cuts and faults, and what a failing seed comes down to.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use ssdlab_base::command_sets::tags::TAGS;
use ssdlab_base::{SECTOR_BYTES, closest, format_size, grouped, parse_duration, read_text};
use ssdlab_device::description::BYTES_MAX;
use ssdlab_device::{Description, DriveConfig, has_own_campaign, registered};
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_host::{Host, MemberConfig};
use ssdlab_lab::memory::BESIDES;
use ssdlab_torture::files::{FileScope, ShortSequences};
use ssdlab_torture::stacks::{Stack, StackScope};
use ssdlab_torture::{
    Campaign, Case, Draw, Exhaustive, Finding, NotAccepted, NotDrawn, Outcome, Scope, Subject, Totals, WithCase,
    WithScope, scale_down,
};

use crate::args::Torture;
use crate::failure::Failure;
use crate::memory::allowed;
use crate::{interrupt, outputs, progress, shipped, stderr, stdout};

/// Bytes of a disk at most.
const DISK_BYTES_MAX: u64 = 64 << 20;

/// Commands of a seed where --ops does not say how many.
const COMMANDS: u64 = 200;

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
    if let Some(file) = &args.replay {
        return replay(args, file);
    }
    if let Some(set) = &args.command_set {
        if set != TAGS.name && args.ops.is_some() {
            return Err(Failure::input(format!(
                "--ops: cases of the set '{set}' have lengths of their own, expected no --ops"
            )));
        }
        return ssdlab_torture::with_scope(set, commands(args), CampaignOf(args)).expect("clap knows the sets");
    }
    if layered(args) {
        return campaign(args, stack_scope(args)?);
    }
    if let Some(kind) = &args.fs {
        let scope = file_scope(args, kind)?;
        let Some(length) = args.exhaustive else { return campaign(args, scope) };
        let sequences = ShortSequences { kind: scope.kind(), length, jobs: jobs(args) };
        return watched(args, None, |stop, watch| sequences.run(stop, watch));
    }
    let scope = scope(args)?;
    let Some(length) = args.exhaustive else { return campaign(args, scope) };
    let Scope { designs, buffers, .. } = scope;
    let sequences = Exhaustive { designs, buffers, length, jobs: jobs(args) };
    watched(args, None, |stop, watch| sequences.run(stop, watch))
}

/// Commands of a seed, as the command line says or by default.
fn commands(args: &Torture) -> u64 {
    args.ops.unwrap_or(COMMANDS)
}

/// Whether stacks of layers are tortured.
fn layered(args: &Torture) -> bool {
    args.host.is_some() || args.stacks || args.drivers
}

/// Whether cuts are counted by whose power goes.
fn has_hosts(args: &Torture) -> bool {
    layered(args) || args.fs.is_some()
}

/// What file systems are drawn from, as the command line says.
fn file_scope(args: &Torture, kind: &str) -> Result<FileScope, Failure> {
    let known = FileSystemKind::of_name(kind).map_err(|error| Failure::input(format!("--fs: {error}")))?;
    known.read_overrides(&args.fs_set, "--fs-set").map_err(Failure::input)?;
    let mut keys = String::new();
    for (key, value) in args.fs_set.iter().filter_map(|assignment| assignment.split_once('=')) {
        let (key, value) = (key.trim(), value.trim());
        let is_number = value.parse::<i64>().is_ok();
        let text = if is_number { value.to_string() } else { json!(value).to_string() };
        keys.push_str(&format!("{key} = {text}\n"));
    }
    FileScope::new(kind, &keys, commands(args)).map_err(Failure::input)
}

/// The text of a saved case, or of a host's description.
fn case_text(file: &Path) -> Result<String, Failure> {
    read_text(file, BYTES_MAX, "a description").map_err(|error| Failure::input(format!("{}: {error}", file.display())))
}

fn replay(args: &Torture, file: &Path) -> Result<ExitCode, Failure> {
    let name = file.display().to_string();
    let text = case_text(file)?;
    ssdlab_torture::with_case(&text, &name, &ssdlab::host::Descriptions, Replay { args, name: &name })
        .map_err(Failure::input)?
}

/// Runs the case of a file.
struct Replay<'a> {
    args: &'a Torture,
    /// What messages call the file.
    name: &'a str,
}

impl WithCase for Replay<'_> {
    type Result = Result<ExitCode, Failure>;

    fn with<S: Subject>(self, case: Case<S>) -> Result<ExitCode, Failure> {
        check_memory(self.args, &case.drives(), 1)?;
        case.accepted().map_err(|error| Failure::input(format!("{}: {error}", self.name)))?;
        let mut totals = Totals::default();
        let mut unstruck = Vec::new();
        let found = ssdlab_torture::run_telling(&case, &mut totals, &mut unstruck);
        for sentence in &unstruck {
            stderr::say(format_args!("warning: {sentence}"));
        }
        if self.args.json {
            let finding = found.as_ref().err().map(finding_json);
            let replayed = json!({ "totals": totals_json(&totals, None), "failed": finding, "warnings": unstruck });
            stdout::print_json(&replayed)?;
        } else {
            stdout::print(|to| match &found {
                Ok(()) => writeln!(to, "{} steps, {} power cuts: nothing found", case.steps.len(), totals.cuts),
                Err(finding) => writeln!(to, "{}", case.describe(finding)),
            })?;
        }
        Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
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

/// Runs the seeds.
fn campaign<D: Draw>(args: &Torture, scope: D) -> Result<ExitCode, Failure> {
    let until = until(args)?;
    let seeds = args.seeds.unwrap_or(if until.is_some() { u64::MAX } else { SEEDS });
    let campaign = Campaign { scope, first: args.seed, seeds, until, jobs: jobs(args) };
    watched(args, until.is_none().then_some(seeds), |stop, watch| campaign.run(stop, watch))
}

/// The campaign of a scope.
struct CampaignOf<'a>(&'a Torture);

impl WithScope for CampaignOf<'_> {
    type Result = Result<ExitCode, Failure>;

    fn with<D: Draw>(self, scope: D) -> Self::Result {
        campaign(self.0, scope)
    }
}

/// Lets cases run, shows how far they are, and tells what came of them; `cases` of them, where that is known.
fn watched<S: Subject>(
    args: &Torture,
    cases: Option<u64>,
    run: impl FnOnce(&AtomicBool, &(dyn Fn(&Totals) + Sync)) -> Outcome<S>,
) -> Result<ExitCode, Failure> {
    let stop = interrupt::listen()?;
    let line = Line::new(args.quiet);
    let start = Instant::now();
    let Outcome { totals, failed, not_drawn } = run(stop, &|totals| line.show(totals, cases));
    line.clear();
    if let Some(why) = not_drawn {
        return Err(cannot_be_drawn(args, &why));
    }
    let wall = start.elapsed();
    match failed {
        None => nothing_found(args, &totals, wall),
        Some((case, finding)) => report(args, &totals, wall, &case, &finding, stop),
    }
}

/// A campaign found nothing: it ran to its end, or was interrupted, which is no success.
fn nothing_found(args: &Torture, totals: &Totals, wall: Duration) -> Result<ExitCode, Failure> {
    let interrupted = interrupt::was_asked_for();
    if args.json {
        let totals = totals_json(totals, Some(wall));
        stdout::print_json(&json!({ "totals": totals, "failed": null, "interrupted": interrupted }))?;
    } else {
        stdout::print(|to| {
            to.write_all(table(args, totals, wall).as_bytes())?;
            writeln!(to, "{}", if interrupted { "interrupted: nothing was found so far" } else { "nothing found" })
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

/// Refuses systems of these drives where `jobs` of them at a time take more memory than is allowed.
fn check_memory(args: &Torture, drives: &[DriveConfig], jobs: u64) -> Result<(), Failure> {
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
        ..Scope::everything(commands(args))
    };
    let all = Scope::everything(commands(args));
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
    scope.drive = Some(drive.clone());
    scope.check().map_err(|error| match error {
        NotAccepted::Drive(error) => Failure::input(description.place(&error)),
        error @ NotAccepted::With { .. } => Failure::input(error),
    })?;
    check_memory(args, &[drive], jobs(args) as u64)?;
    Ok(scope)
}

/// What stacks are drawn from, as the command line says.
fn stack_scope(args: &Torture) -> Result<StackScope, Failure> {
    let host = match &args.host {
        Some(file) => {
            let host = shipped::host(file)?;
            Some(Stack { text: case_text(file)?, host })
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
    if let (Some(file), Some(stack)) = (&args.host, &host) {
        check_disks(file, &stack.host)?;
    }
    if let (Some(file), Some(stack), Some(drive)) = (&args.host, &host, &drive) {
        stack.host.sectors(drive).map_err(|why| Failure::input(format!("{}: {why}", file.display())))?;
        check_memory(args, &stack.drives(drive), jobs(args) as u64)?;
    }
    Ok(StackScope { host, drive, commands: commands(args), drivers: args.drivers, faults: true })
}

/// Refuses large disks: torture compares every sector of a disk after each cut.
fn check_disks(file: &Path, host: &Host) -> Result<(), Failure> {
    let any_drive = Description::from(ssdlab::Device::named("demo-tlc")?).resolve().map_err(Failure::input)?;
    for (name, member) in host.members(&any_drive) {
        let MemberConfig::Disk(disk) = member else { continue };
        let bytes = disk.sectors * SECTOR_BYTES;
        if bytes > DISK_BYTES_MAX {
            let (found, most) = (format_size(bytes), format_size(DISK_BYTES_MAX));
            return Err(Failure::input(format!(
                "{}: the disk {name} has {found}, expected at most {most}: all of it is compared after each cut",
                file.display()
            ))
            .hint("say size = \"1m\" beside it: the outer part of the disk is tortured"));
        }
    }
    Ok(())
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
    let mut command = format!("ssdlab torture --seed {seed} --seeds 1");
    if args.command_set.as_ref().is_none_or(|set| set == TAGS.name) {
        command.push_str(&format!(" --ops {}", commands(args)));
    }
    let flags = [("--stacks", args.stacks), ("--drivers", args.drivers)];
    flags.iter().filter(|(_, given)| *given).for_each(|(flag, _)| command.push_str(&format!(" {flag}")));
    if let Some(file) = &args.host {
        command.push_str(&format!(" --host {}", quoted(&file.display().to_string())));
    }
    let device = args.device.iter().map(|device| ("--device", device));
    let device = device.chain(args.command_set.iter().map(|set| ("--command-set", set)));
    let device = device.chain(args.fs.iter().map(|kind| ("--fs", kind)));
    let device = device.chain(args.fs_set.iter().map(|assignment| ("--fs-set", assignment)));
    let rest = [("--set", &args.set), ("--design", &args.design), ("--buffer", &args.buffer)];
    let rest = rest.into_iter().flat_map(|(option, values)| values.iter().map(move |value| (option, value)));
    for (option, value) in device.chain(rest) {
        command.push_str(&format!(" {option} {}", quoted(value)));
    }
    command
}

/// A failing case: what it comes down to, and the command that repeats its seed, if it was drawn from one.
fn report<S: Subject>(
    args: &Torture,
    totals: &Totals,
    wall: Duration,
    case: &Case<S>,
    finding: &Finding,
    stop: &AtomicBool,
) -> Result<ExitCode, Failure> {
    let shrunk = ssdlab_torture::shrink_until(case, finding, stop);
    let command = args.exhaustive.is_none().then(|| repeat(args, case.seed));
    let path = args.save.clone().unwrap_or_else(|| PathBuf::from(format!("torture-{}.toml", case.seed)));
    let comment =
        format!("{}\n{}", shrunk.finding.message, command.as_deref().unwrap_or("a short sequence of commands"));
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
            to.write_all(table(args, totals, wall).as_bytes())?;
            writeln!(to, "\nFAILED: seed {}, step {} of {}", case.seed, finding.step + 1, case.steps.len())?;
            writeln!(to, "  {}", finding.message)?;
            if let Some(command) = command {
                writeln!(to, "repeat it with\n  {command}")?;
            }
            writeln!(to, "\nshrunk to {} steps in {} tries:", shrunk.case.steps.len(), shrunk.tries)?;
            writeln!(to, "{}", shrunk.case.describe(&shrunk.finding))?;
            if saved.is_ok() {
                writeln!(to, "repeat that with\n  ssdlab torture --replay {}", path.display())?;
            }
            Ok(())
        })?;
    }
    saved.map_err(|error| Failure::work(format!("{}: cannot be written: {error}", path.display())))?;
    Ok(ExitCode::FAILURE)
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
        "cuts_by_work": totals.cuts_by_work,
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

/// The closing table. Power cuts of stacks are counted by whose power was cut, others by what they interrupted.
fn table(args: &Torture, totals: &Totals, wall: Duration) -> String {
    let count = |number: u64| grouped(&number.to_string(), ',');
    let row = |name: &str, value: String| vec![name.to_string(), value];
    let [program, erase, recovery, idle] = totals.cuts_by_kind;
    let [reads, programs, erases, factory, dies] = totals.faults;
    let mut rows = vec![
        row("seeds", count(totals.cases)),
        row("commands", count(totals.commands)),
        row(if has_hosts(args) { "cuts and crashes" } else { "power cuts" }, count(totals.cuts)),
    ];
    if args.fs.is_some() {
        // What none of these names was interrupted in calls, write-out, or nothing.
        rows.extend(totals.cuts_by_work.iter().map(|(work, cuts)| row(&format!("  in {work}"), count(*cuts))));
    } else if !layered(args) {
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
    let mut text = stdout::aligned(&rows);
    if has_hosts(args) {
        let [host, drive, all] = totals.stack_cuts;
        text += &format!("crashes of the host {host}, cuts of one drive {drive}, cuts of everything {all}\n");
    }
    if totals.not_back > 0 && args.fs.is_some() {
        text +=
            &format!("mounts refused because faults of the chips destroyed metadata (allowed): {}\n", totals.not_back);
    } else if totals.not_back > 0 {
        text += &format!(
            "stacks that did not come back, because a layer could not read its records: {}\n",
            totals.not_back
        );
    }
    text
}

/// How far the campaign is, on a terminal.
struct Line {
    bar: ProgressBar,
    drawn: Mutex<Instant>,
}

impl Line {
    fn new(quiet: bool) -> Line {
        Line { bar: progress::line(quiet), drawn: Mutex::new(Instant::now()) }
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
