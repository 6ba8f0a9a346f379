//! The frame with a toy paper: what is shared, kept, refused and reported.

mod toy;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use toy::TOY;

/// Counts runs, and stops everything after so many.
#[derive(Default)]
struct Counter {
    begun: AtomicUsize,
    kept: AtomicUsize,
    stop_after: Option<usize>,
    stop: AtomicBool,
    names: Mutex<Vec<String>>,
}

impl Watch for Counter {
    fn planned(&self, _runs: usize, kept: usize) {
        self.kept.store(kept, Ordering::Relaxed);
    }

    fn began(&self, run: &Run) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.names.lock().expect("nobody panicked").push(run.to_string());
    }

    fn ended(&self, _run: &Run, _well: bool) {
        if self.stop_after == Some(self.begun.load(Ordering::Relaxed)) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn context() -> PaperContext {
    PaperContext::open(&TOY, &Library::default(), Size::Full).expect("the toy's data is right")
}

fn execute_all(context: &PaperContext, out: &Path, counter: &Counter, jobs: usize) -> Outcomes {
    let settings = Settings { jobs, memory_bytes: 1 << 30, snapshots: None, stop: &counter.stop, watch: counter };
    let runs = context.paper.figures.iter().flat_map(|figure| figure.runs(context)).collect();
    execute(context, runs, out, &settings)
}

fn report(context: &PaperContext, outcomes: &Outcomes) -> Report {
    Report::of(context, context.paper.figures, outcomes)
}

/// A report's values alone: what must be the same in every execution.
fn values(report: &Report) -> Vec<Point> {
    report.figures.iter().flat_map(|figure| figure.points.clone()).collect()
}

#[test]
fn a_run_that_two_figures_share_is_done_once_and_threads_change_nothing() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let context = context();
    let counter = Counter::default();
    let outcomes = execute_all(&context, folder.path(), &counter, 1);
    // Three sound runs of figure01, two of which figure02 asks for again, and one that is wrong and never begins.
    assert_eq!(counter.begun.load(Ordering::Relaxed), 3, "{:?}", counter.names.lock().expect("nobody panicked"));
    assert_eq!(outcomes.counts(), (3, 1, 0));
    let one = report(&context, &outcomes);
    let two = report(&context, &execute_all(&context, other.path(), &Counter::default(), 3));
    assert!(!values(&one).is_empty());
    assert_eq!(values(&one), values(&two));
}

#[test]
fn an_interrupted_reproduction_goes_on_where_it_stopped_and_ends_as_if_it_had_not() {
    let (folder, whole) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let context = context();
    let stopping = Counter { stop_after: Some(1), ..Counter::default() };
    let outcomes = execute_all(&context, folder.path(), &stopping, 1);
    assert_eq!(outcomes.counts(), (1, 1, 2));
    let part = report(&context, &outcomes);
    assert!(!part.complete);
    // Runs that were not done are no reason to name an input that nothing of it takes.
    let alone = Report::of(&context, &[&toy::NOTHING_LOST], &outcomes);
    assert!(!render(&alone).contains("lost"), "{}", render(&alone));
    assert!(render(&part).contains("not run: lost (no-such-trace.csv"), "{}", render(&part));
    assert!(render(&part).contains("2 not done: the same command goes on with them"), "{}", render(&part));

    let second = Counter::default();
    let outcomes = execute_all(&context, folder.path(), &second, 1);
    let said = render(&report(&context, &outcomes));
    assert!(said.contains("2 runs done, 1 kept from before, 1 failed"), "{said}");
    assert_eq!(second.kept.load(Ordering::Relaxed), 1);
    assert_eq!(second.begun.load(Ordering::Relaxed), 2);
    let uninterrupted = execute_all(&context, whole.path(), &Counter::default(), 1);
    assert_eq!(values(&report(&context, &outcomes)), values(&report(&context, &uninterrupted)));

    // A file that was damaged is made again, not believed.
    let runs = folder.path().join("runs");
    let file = std::fs::read_dir(&runs).expect("kept runs").next().expect("one").expect("an entry").path();
    std::fs::write(&file, "{ \"format\": 1").expect("a damaged file");
    let third = Counter::default();
    execute_all(&context, folder.path(), &third, 1);
    assert_eq!(third.begun.load(Ordering::Relaxed), 1);
}

#[test]
fn a_run_that_fails_is_reported_with_its_key_and_leaves_a_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let outcomes = execute_all(&context, folder.path(), &Counter::default(), 2);
    let report = report(&context, &outcomes);
    assert!(!report.is_sound());
    let text = render(&report);
    assert!(text.contains("failed: "), "{text}");
    assert!(text.contains("buffer.policy=unheard-of"), "{text}");
    assert!(text.contains("ssdlab run --device toy --set buffer.policy=unheard-of"), "{text}");
    assert!(text.contains("1 of its 4 runs have no result"), "{text}");
    // The others are there.
    assert_eq!(report.figures[0].points.len(), 3);
}

#[test]
fn a_run_whose_result_cannot_be_kept_failed_and_says_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let input = context.input("writes").expect("the toy's input");
    // A file where the folder of runs should be: no result can be kept.
    std::fs::write(folder.path().join("runs"), "in the way").expect("a file");
    let settings = Settings {
        jobs: 1,
        memory_bytes: 1,
        snapshots: None,
        stop: &AtomicBool::new(false),
        watch: &ssdlab_lab::NoProgress,
    };
    let outcomes = execute(&context, vec![context.run("toy", "lru", input, "")], folder.path(), &settings);
    let failures = outcomes.failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].key.len(), 32);
    assert!(failures[0].reason.contains("runs"), "{}", failures[0].reason);
}

#[test]
fn published_values_stand_beside_ours_in_text_csv_and_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let outcomes = execute_all(&context, folder.path(), &Counter::default(), 2);
    let report = report(&context, &outcomes);
    write(&report, &context, folder.path()).expect("a folder that takes files");
    let csv = std::fs::read_to_string(folder.path().join("figure01.csv")).expect("a CSV");
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("figure,workload,page_size,setting,series,value,unit,input,published_low,published_high,where,events")
    );
    assert!(lines.all(|line| line.starts_with("figure01,") && line.contains(",1,4000000,section 1")), "{csv}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("Figure 1: mean latency"));
    assert!(page.contains("Of all requests (<code>latency_ns.all.mean</code>)."), "code in a sentence");
    assert!(page.contains("buffer.policy=unheard-of"));
    assert!(!page.contains("{{"));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("report.json")).expect("JSON")).expect("JSON");
    assert_eq!(json["figures"][0]["compared"][0]["within"], true);
    assert!(render(&report).contains("within"));
}

#[test]
fn a_panel_has_the_papers_values_beside_ours_and_one_without_values_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let report = report(&context, &execute_all(&context, folder.path(), &Counter::default(), 2));
    let titles: Vec<&str> = report.figures[0].panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["(a) mean latency"]);
    let json = serde_json::to_value(&report.figures[0].panels[0]).expect("JSON");
    assert_eq!((&json["scale"], &json["y"]), (&"names".into(), &"mean latency, ns".into()));
    let names: Vec<&str> =
        json["series"].as_array().expect("series").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["lru", "fifo", "none"]);
    assert_eq!(json["series"][1]["values"][0]["published"], serde_json::json!({ "low": 1.0, "high": 4e6 }));
    let of_figure02 = serde_json::to_value(&report.figures[1].panels[0]).expect("JSON");
    assert_eq!(of_figure02["series"][0]["values"][0].get("published"), None, "the paper says nothing of it");
}

#[test]
fn the_verdict_comes_first_and_says_of_each_figure_what_is_outside_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut context = context();
    context.published[0].value = Span { low: Some(1.0), high: Some(2.0) };
    let report = report(&context, &execute_all(&context, folder.path(), &Counter::default(), 2));
    let headline = "2 of 3 published values within; these are not";
    let text = render(&report);
    assert!(text.starts_with(&format!("A toy\n\n{headline}\n  Figure 1: 1 of 3 outside: lru (W, toy) ")), "{text}");
    assert!(text.contains("for 1 to 2 ns. A toy has reasons of its own.\n"), "{text}");
    let page = super::page::render(&report);
    let (verdict, figure) =
        (page.find("id=\"verdict\"").expect("a verdict"), page.find("id=\"figure01\"").expect("a figure"));
    assert!(verdict < figure && page.contains(headline), "the verdict stands before the figures");
    // What an input is ends before it is said that it is missing.
    let mut missing = report;
    missing.inputs[0].missing = Some("a.csv is in none of the folders".to_string());
    let page = super::page::render(&missing);
    assert!(page.contains(". <b>Not run:</b> a.csv is in none of the folders.</li>"), "{page}");
}

#[test]
fn a_middle_size_is_a_part_of_the_whole_and_compares_the_figures_that_mean_something_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = PaperContext::open(&TOY, &Library::default(), Size::Middle).expect("the toy's data is right");
    assert_eq!(context.inputs[0].survey.as_ref().map(|survey| survey.requests), Some(200));
    assert_eq!(
        (context.sized(64 << 20), context.is_judged("figure01"), context.is_judged("figure02")),
        (16 << 20, true, false)
    );
    let report = report(&context, &execute_all(&context, folder.path(), &Counter::default(), 2));
    assert!(report.figures[0].compared.iter().all(|one| one.within == Some(true)), "{:?}", report.figures[0].compared);
    let said = "Middle size: a fifth of the requests. Figure 1 alone is compared with the paper at this size.";
    assert!(render(&report).contains(said), "{}", render(&report));
    assert!(super::page::render(&report).contains(said));

    let quick = PaperContext::open(&TOY, &Library::default(), Size::Quick).expect("the toy's data is right");
    assert!(!quick.is_judged("figure01"), "the values of a smoke test mean nothing");
    let full = self::context();
    assert_eq!((full.sized(64 << 20), full.is_judged("figure02"), full.about_size()), (64 << 20, true, None));
}

#[test]
fn a_middle_size_has_workloads_of_its_own_and_a_part_of_each_inputs_requests() {
    let (whole, own) = ("io_size=1m\"\n", "io_size=1m\"\nmiddle = \"rw=randwrite,bs=2k,io_size=1m\"\n");
    let experiment = toy::EXPERIMENT.replace(whole, own);
    let experiment = experiment.replace("[middle]\nrequests = 200", "[middle]\npart_of_requests = 8");
    // For the rest of the program: papers are.
    let paper: &'static Paper = Box::leak(Box::new(Paper { experiment: experiment.leak(), ..TOY }));
    let requests = |size| {
        let context = PaperContext::open(paper, &Library::default(), size).expect("the toy's data is right");
        let survey = context.inputs[0].survey.clone().expect("it is there");
        (survey.requests, survey.write_bytes_max, context.inputs[0].limit)
    };
    assert_eq!(requests(Size::Full), (1024, 1024, None));
    assert_eq!(requests(Size::Middle), (64, 2048, Some(64)), "an eighth of 512");
}

#[test]
fn names_that_are_not_known_are_answered_with_what_was_meant() {
    static TOYS: &[&Paper] = &[&TOY];
    let refused = |name: &str| find_in(TOYS, name).err().expect("an unknown name");
    assert_eq!(refused("toi").hint.as_deref(), Some("did you mean 'toy'? There are toy"));
    let error = refused("toy/figure3");
    assert_eq!(error.sentence, "no figure of toy is called 'figure3'");
    assert_eq!(error.hint.as_deref(), Some("there are figure01, figure02"), "it is as close to either");
    let hint = refused("toy/fiqure01").hint;
    assert_eq!(hint.as_deref(), Some("did you mean 'figure01'? There are figure01, figure02"));
    for name in ["toy/figure01", "toy/figure1", "toy/1"] {
        assert_eq!(find_in(TOYS, name).expect("a known name").1[0].id, "figure01", "{name}");
    }
    assert_eq!(find_in(TOYS, "toy").expect("a known name").1.len(), 2);
}

#[test]
fn a_variant_with_layers_runs_below_them_and_is_told_apart_from_one_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let input = context.input("writes").expect("the toy's input");
    let (bare, layered) = (context.run("toy", "lru", input, ""), context.run("toy", "layered", input, ""));
    assert_ne!(bare, layered);
    assert_eq!(layered.host.as_deref(), Some("scheduler.toml"));
    let command = layered.command(&context);
    assert!(command.contains("--device toy --host papers/toy/scheduler.toml --set buffer.policy=lru"), "{command}");
    assert!(layered.to_string().contains("below scheduler.toml"), "{layered}");

    let settings = Settings {
        jobs: 1,
        memory_bytes: 1 << 30,
        snapshots: None,
        stop: &AtomicBool::new(false),
        watch: &ssdlab_lab::NoProgress,
    };
    let outcomes = execute(&context, vec![bare.clone(), layered.clone()], folder.path(), &settings);
    assert_eq!(outcomes.counts(), (2, 0, 0), "{:?}", outcomes.failures());
    let (bare, layered) = (outcomes.get(&bare).expect("a result"), outcomes.get(&layered).expect("a result"));
    assert_eq!((bare.length("host_layers"), layered.length("host_layers")), (0, 1));
    assert_eq!(layered.text("host_layers.0.kind"), Some("scheduler"));
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).expect("kept runs").count(), 2, "one key for both");
}

#[test]
fn a_run_with_a_finer_timeline_has_one_and_is_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let input = context.input("writes").expect("the toy's input");
    let plain = context.run("toy", "none", input, "");
    let every = plain.clone().every_ms(3);
    assert!(every.command(&context).contains(" --timeline-interval 3ms "), "{}", every.command(&context));
    let settings = Settings {
        jobs: 1,
        memory_bytes: 1 << 30,
        snapshots: None,
        stop: &AtomicBool::new(false),
        watch: &ssdlab_lab::NoProgress,
    };
    let outcomes = execute(&context, vec![plain.clone(), every.clone()], folder.path(), &settings);
    assert_eq!(outcomes.counts(), (2, 0, 0), "{:?}", outcomes.failures());
    let interval = |run: &Run| outcomes.get(run).expect("a result").number("timeline.interval");
    assert_eq!(interval(&every), Some(3e6));
    assert_ne!(interval(&plain), Some(3e6));
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).expect("kept runs").count(), 2);
}

#[test]
fn a_run_that_is_broken_down_says_what_its_requests_waited_for_and_is_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let input = context.input("writes").expect("the toy's input");
    let plain = context.run("toy", "none", input, "");
    let broken_down = plain.clone().broken_down();
    assert!(broken_down.command(&context).contains(" --latency-breakdown "), "{}", broken_down.command(&context));
    let settings = Settings {
        jobs: 1,
        memory_bytes: 1 << 30,
        snapshots: None,
        stop: &AtomicBool::new(false),
        watch: &ssdlab_lab::NoProgress,
    };
    let outcomes = execute(&context, vec![plain.clone(), broken_down.clone()], folder.path(), &settings);
    assert_eq!(outcomes.counts(), (2, 0, 0), "{:?}", outcomes.failures());
    let parts = |run: &Run| outcomes.get(run).expect("a result").total("latency_breakdown.ops.write.mean.parts_ns");
    let mean = outcomes.get(&plain).and_then(|run| run.number("latency_ns.write.mean")).expect("a mean");
    assert_eq!(parts(&plain), None);
    assert!((parts(&broken_down).expect("parts") / mean - 1.0).abs() < 1e-6);
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).expect("kept runs").count(), 2, "one key for both");
}

#[test]
fn layers_that_the_paper_does_not_have_fail_their_run_alone_and_say_what_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let input = context.input("writes").expect("the toy's input");
    let settings = Settings {
        jobs: 1,
        memory_bytes: 1 << 30,
        snapshots: None,
        stop: &AtomicBool::new(false),
        watch: &ssdlab_lab::NoProgress,
    };
    let runs = ["lost", "lru"].map(|variant| context.run("toy", variant, input, ""));
    let outcomes = execute(&context, runs.to_vec(), folder.path(), &settings);
    assert_eq!(outcomes.counts(), (1, 1, 0));
    let reason = &outcomes.failures()[0].reason;
    for part in ["papers/toy/experiment.toml", "'no-such-host.toml'", "scheduler.toml"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
}

#[test]
fn layers_of_a_command_do_not_go_above_a_paper_whose_variants_have_their_own() {
    let host = ssdlab_host::Host::parse("[[layer]]\nkind = \"scheduler\"\n", "mine.toml").expect("a host");
    let error = context().put_above("mine.toml", host).expect_err("the toy has layers of its own");
    for part in ["mine.toml", "variant 'layered'", "papers/toy/scheduler.toml"] {
        assert!(error.sentence.contains(part), "{part}: {}", error.sentence);
    }
}

#[test]
fn a_drive_aged_by_the_papers_job_file_has_been_written_as_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let input = context.input("writes").expect("the toy's input");
    let run = context.run("toy", "none", input, "").prepared(Preparation::Aged);
    assert!(run.command(&context).contains("--precondition papers/toy/ageing.fio"), "{}", run.command(&context));
    let settings = Settings {
        jobs: 1,
        memory_bytes: 1 << 30,
        snapshots: None,
        stop: &AtomicBool::new(false),
        watch: &ssdlab_lab::NoProgress,
    };
    let outcomes = execute(&context, vec![run.clone()], folder.path(), &settings);
    let written = outcomes.get(&run).and_then(|run| run.number("precondition.written_bytes")).expect("a result");
    // 60 % in order and 48 % at random of 12 MiB, each in whole requests.
    let wanted = 1.08 * f64::from(12 << 20);
    assert!((written / wanted - 1.0).abs() < 0.02, "{written} for {wanted}");
}

#[test]
fn the_template_of_a_figure_has_a_row_for_each_variant_and_a_panel_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let figure = &template::FIGURE;
    let counter = Counter::default();
    let settings = Settings { jobs: 2, memory_bytes: 1 << 30, snapshots: None, stop: &counter.stop, watch: &counter };
    let outcomes = execute(&context, figure.runs(&context), folder.path(), &settings);
    assert_eq!(outcomes.counts(), (3, 0, 0), "{:?}", outcomes.failures());
    let report = Report::of(&context, &[figure], &outcomes);
    let figure = &report.figures[0];
    let values: Vec<(&str, &str, f64)> =
        figure.points.iter().map(|point| (&point.setting[..], point.series, point.value)).collect();
    assert_eq!(values.len(), 3 * 2, "{values:?}");
    assert_eq!(values[1], ("none", "less than without a buffer", 0.0), "it is compared with itself");
    assert!(values[3].2 > 0.0, "a buffer makes writes faster: {values:?}");
    let bars: Vec<&str> = figure.panels[0].series.iter().map(|one| &one.name[..]).collect();
    assert_eq!(bars, ["none", "fifo", "lru"]);
}

#[test]
fn the_page_on_reproductions_shows_the_template_as_it_is() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproductions.md");
    let page = std::fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once("```rust\n").expect("a block of Rust");
    let (_, after) = rest.split_once("```\n").expect("a block ends");
    let right = format!("{before}```rust\n{}```\n{after}", include_str!("../template.rs"));
    if std::env::var_os("SSDLAB_WRITE_DOCS").is_some() {
        return std::fs::write(&file, right).expect("the page can be written");
    }
    assert!(page == right, "write it with: SSDLAB_WRITE_DOCS=1 cargo test -p ssdlab-papers --lib shows_the_template");
}
