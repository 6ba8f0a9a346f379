//! `ssdlab reproduce`: a paper's figures and tables, ours beside the published values.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ssdlab_lab::progress::Progress;
use ssdlab_lab::{NoProgress, SnapshotCache};
use ssdlab_papers::{
    Figure, Library, PAPERS, Paper, PaperContext, Report, ReproduceError, Run, Settings, Size, Watch, docs,
};

use crate::args::whole;
use crate::failure::Failure;
use crate::memory::allowed;
use crate::progress::Spoken;
use crate::{figure17_live, interrupt, shipped, stderr, stdout};

/// Reproduce a paper's figures and tables beside the published values.
///
/// Figures share runs. ssdlab does each run once, on all cores, and keeps it under OUT/runs: after an interruption the same
/// command continues. Tables go to standard output; report.html, report.json and a CSV for each figure go to OUT. Every
/// number names its input.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab reproduce --list
  ssdlab reproduce waflash --traces ../traces --traces ../recordings
  ssdlab reproduce waflash/figure08 waflash/figure12
  ssdlab reproduce waflash --middle           # minutes: orderings and ratios hold
  ssdlab reproduce waflash --quick            # seconds: a smoke test
  ssdlab reproduce waflash/figure17-live      # as root: on served drives, some minutes

Exit status: 0 done; 1 a run failed or was not done, or a check did not hold; 2 the input was wrong.")]
pub(crate) struct Reproduce {
    /// A paper, or one of its figures: waflash, waflash/figure08
    #[arg(value_name = WHAT, required_unless_present = "list")]
    pub(crate) what: Vec<String>,

    /// List the papers and their figures
    #[arg(long, conflicts_with = "what")]
    pub(crate) list: bool,

    /// Where to write; by default out/PAPER
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// A folder with published traces or recordings; may be repeated. SSDLAB_TRACES and examples/recordings are searched, too
    ///
    /// SSDLAB_TRACES is a list of folders, like PATH. The report leaves out the rows of a missing trace and says so.
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Vec<PathBuf>,

    /// Parallel runs; by default one per core
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 1024))]
    pub(crate) jobs: Option<u64>,

    /// Memory for all runs together, such as 8g; by default three quarters of what is available
    ///
    /// It limits the number of parallel runs.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Smoke test with small drives and few requests; the values mean nothing
    #[arg(long)]
    pub(crate) quick: bool,

    /// In minutes: a part of the requests, with caches, buffers and drives in proportion, so that orderings and ratios hold
    ///
    /// The report says what is smaller, and which figures are compared with the paper at this size. A paper without one
    /// says why: amf's whole takes half a minute.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) middle: bool,

    /// Write the numbers into the paper's pages in this folder, such as papers/waflash
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "middle"])]
    pub(crate) docs: Option<PathBuf>,

    /// Layers above the drive of every run, from a host description; the paper's own runs have none
    #[arg(long, value_name = "FILE", conflicts_with = "docs")]
    pub(crate) host: Option<PathBuf>,

    /// Print the report as JSON instead of the tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Reproduce {
    /// How large runs are.
    pub(crate) fn size(&self) -> Size {
        match (self.quick, self.middle) {
            (true, _) => Size::Quick,
            (false, true) => Size::Middle,
            (false, false) => Size::Full,
        }
    }
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Failure {
        let failure = Failure::input(&error);
        match error.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// What the command takes, as the help calls it.
pub(crate) const WHAT: &str = "PAPER[/FIGURE]";

/// What to say where nothing was asked for: the papers that there are.
pub(crate) fn what_is_missing() -> Failure {
    let papers: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    Failure::input(format!("found no {WHAT}, expected one or more of {}", papers.join(", ")))
        .hint("`ssdlab reproduce --list` lists their figures")
}

/// A paper and what of it was asked for.
type Wanted = (&'static Paper, Vec<&'static Figure>);

/// Does what was asked for.
pub(crate) fn reproduce(args: &Reproduce) -> Result<ExitCode, Failure> {
    if args.list {
        return list().map(|()| ExitCode::SUCCESS);
    }
    if args.what.iter().any(|name| name == figure17_live::NAME) {
        return match args.what.len() {
            1 if args.host.is_some() => {
                Err(Failure::input(format!("--host: {} runs on served drives, without layers", figure17_live::NAME)))
            }
            1 if args.middle => {
                Err(Failure::input(format!("--middle: {} has no middle size, only --quick", figure17_live::NAME)))
            }
            1 => figure17_live::run(args),
            _ => Err(Failure::input(format!("{} is measured alone, and others were asked for", figure17_live::NAME))),
        };
    }
    let wanted = wanted(&args.what)?;
    let several = wanted.len() > 1;
    if several && args.docs.is_some() {
        return Err(Failure::input("--docs is for the pages of one paper, and several were asked for"));
    }
    let library = library(args)?;
    let host = args.host.as_deref().map(|file| shipped::host(file).map(|host| (file.display().to_string(), host)));
    let host = host.transpose()?;
    let stop =
        interrupt::listen_saying("interrupted: what has ended is kept, and the same command goes on with the rest")?;
    let mut sound = true;
    let mut reports = Vec::new();
    for (paper, figures) in wanted {
        let out = match &args.out {
            Some(out) if several => out.join(paper.name),
            Some(out) => out.clone(),
            None => Path::new("out").join(paper.name),
        };
        ssdlab_papers::try_out(&out)?;
        let mut context = PaperContext::open(paper, &library, args.size())?;
        if let Some((file, host)) = &host {
            context.put_above(file, host.clone()).map_err(|error| Failure::input(format!("--host: {error}")))?;
        }
        let line = Line::new(args.quiet)?;
        let snapshots = SnapshotCache::of_user();
        let runs: Vec<Run> = figures.iter().flat_map(|figure| figure.runs(&context)).collect();
        let allowed = allowed(args.memory.as_deref())?;
        if let Some((run, bytes)) = ssdlab_papers::largest(&context, &runs) {
            allowed.check(&format!("{}: {run}", paper.name), bytes, Vec::new())?;
        }
        let settings = Settings {
            jobs: args.jobs.map_or_else(cores, |jobs| jobs as usize),
            memory_bytes: allowed.bytes,
            snapshots: snapshots.as_ref(),
            stop,
            watch: &line,
        };
        let outcomes = ssdlab_papers::execute(&context, runs, &out, &settings);
        let report = Report::of(&context, &figures, &outcomes);
        ssdlab_papers::write(&report, &context, &out).map_err(Failure::work)?;
        if let Some(folder) = args.docs.as_ref().filter(|_| report.is_sound()) {
            let changed = docs::update(&report, folder).map_err(|error| match error {
                docs::DocsError::Page(error) => Failure::from(error),
                docs::DocsError::Output(error) => Failure::work(error),
            })?;
            for page in changed {
                stderr::say(format_args!("written: {}", page.display()));
            }
        }
        sound &= report.is_sound();
        if report.inputs.iter().any(|input| !input.is_there()) {
            let folders: Vec<String> = library.folders.iter().map(|folder| folder.display().to_string()).collect();
            stderr::say(format_args!("some inputs are missing; folders searched: {}", said(&folders)));
        }
        if !args.json {
            stdout::print(|to| {
                to.write_all(ssdlab_papers::render(&report).as_bytes())?;
                writeln!(to, "\n{}", out.join("report.html").display())
            })?;
        }
        reports.push(report);
    }
    let stays = args.docs.is_some() && !sound;
    match (args.json, &reports[..]) {
        (false, _) => {}
        (true, [report]) => stdout::print_json(report)?,
        (true, reports) => stdout::print_json(&reports)?,
    }
    if stays {
        return Err(Failure::work("the pages are unchanged: not all runs completed with all invariants holding"));
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn said(folders: &[String]) -> String {
    if folders.is_empty() { "none".to_string() } else { folders.join(", ") }
}

fn list() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for paper in PAPERS {
        rows.push(vec![paper.name.to_string(), paper.title.to_string()]);
        let figures = paper.figures.iter();
        rows.extend(figures.map(|figure| vec![format!("{}/{}", paper.name, figure.id), figure.title.to_string()]));
    }
    rows.push(vec![figure17_live::NAME.to_string(), format!("{} (root; not part of the whole)", figure17_live::TITLE)]);
    stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()))
}

/// The papers that were named, each once, with its figures in the paper's own order.
fn wanted(names: &[String]) -> Result<Vec<Wanted>, Failure> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for name in names {
        let (paper, figures) = ssdlab_papers::find(name)?;
        match wanted.iter_mut().find(|(other, _)| other.name == paper.name) {
            Some((_, all)) => all.extend(figures),
            None => wanted.push((paper, figures)),
        }
    }
    for (paper, figures) in &mut wanted {
        let asked: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
        *figures = paper.figures.iter().copied().filter(|figure| asked.contains(&figure.id)).collect();
    }
    Ok(wanted)
}

/// Where traces are looked for: what is named, the environment's, and the recordings that ship with the sources.
fn library(args: &Reproduce) -> Result<Library, Failure> {
    let mut folders = args.traces.clone();
    for folder in &folders {
        if !folder.is_dir() {
            return Err(Failure::input(format!("--traces: found {}, expected a folder", folder.display())));
        }
    }
    if let Some(list) = std::env::var_os("SSDLAB_TRACES").filter(|list| !list.is_empty()) {
        // As in PATH, an empty place between two colons names nothing.
        for folder in std::env::split_paths(&list).filter(|folder| !folder.as_os_str().is_empty()) {
            if !folder.is_dir() {
                return Err(Failure::input(format!("SSDLAB_TRACES: found {}, expected a folder", folder.display())));
            }
            folders.push(folder);
        }
    }
    // The sources' own: anywhere above the working directory, or above target/release/ssdlab.
    let places = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    for place in places.into_iter().flatten() {
        folders.extend(shipped_above(&place));
    }
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let name = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        !seen.contains(&name) && {
            seen.push(name);
            true
        }
    });
    Ok(Library { folders })
}

/// The recordings of the sources that `place` lies in.
fn shipped_above(place: &Path) -> Option<PathBuf> {
    let shipped = Path::new("examples").join("recordings");
    place.ancestors().map(|above| above.join(&shipped)).find(|folder| folder.is_dir())
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// One line on standard error: runs done, and what is being run. Without a terminal, lines of text.
struct Line {
    bar: ProgressBar,
    quiet: bool,
    running: Mutex<Vec<String>>,
    spoken: Spoken,
}

impl Line {
    fn new(quiet: bool) -> Result<Line, Failure> {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(4) };
        let bar = ProgressBar::with_draw_target(None, target);
        Ok(Line { bar, quiet, running: Mutex::new(Vec::new()), spoken: Spoken::new(quiet)? })
    }

    fn show(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut running);
        self.bar.set_message(running.join("; "));
    }
}

impl Watch for Line {
    fn planned(&self, runs: usize, kept: usize) {
        const TEMPLATE: &str = "{bar:28.cyan/dim} {pos} of {len} runs, {eta} left  {wide_msg:.dim}";
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar.set_style(style.progress_chars("━╸─"));
        self.bar.set_length(runs as u64);
        if kept > 0 && !self.quiet {
            stderr::say(format_args!("{kept} runs were done before and kept, {runs} runs are to be done"));
        }
    }

    fn began(&self, run: &Run) {
        self.show(|running| running.push(run.to_string()));
        self.bar.tick();
    }

    fn ended(&self, run: &Run, _well: bool) {
        let name = run.to_string();
        self.show(|running| running.retain(|other| *other != name));
        self.bar.inc(1);
    }

    fn within(&self, run: &Run) -> Box<dyn Progress + '_> {
        if !self.bar.is_hidden() {
            return Box::new(NoProgress);
        }
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        Box::new(self.spoken.of(Some(format!("{done} of {all} runs done; {run}"))))
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_paper_come_once_and_in_the_papers_order() {
        let names = ["waflash/figure12", "waflash/8", "waflash/figure12"].map(str::to_string);
        let wanted = wanted(&names).expect("known figures");
        let ids: Vec<&str> = wanted[0].1.iter().map(|figure| figure.id).collect();
        assert_eq!((wanted.len(), ids), (1, vec!["figure08", "figure12"]));
    }

    #[test]
    fn the_recordings_are_found_from_anywhere_in_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources");
        let found = shipped_above(&root.join("crates/cli/src"));
        assert_eq!(found, Some(root.join("examples/recordings")));
        assert_eq!(shipped_above(Path::new("/")), None);
    }

    #[test]
    fn what_is_not_known_is_answered_with_what_was_meant() {
        let refused = |name: &str| wanted(&[name.to_string()]).err().expect("an unknown name").to_string();
        assert!(refused("wafflash").contains("did you mean 'waflash'"), "{}", refused("wafflash"));
        assert!(refused("waflash/figure81").contains("no figure of waflash is called 'figure81'"));
        assert!(refused("waflash/figur08").contains("did you mean 'figure08'"));
    }
}
