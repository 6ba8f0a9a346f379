use std::collections::BTreeMap;

use proptest::prelude::*;

use super::html::{bytes_per_second, escape, figure, json_in_script, nanos, percent, whole};
use super::*;
use crate::result::*;

pub(crate) fn device(name: &str) -> DeviceResult {
    let summary =
        LatencySummary { count: 9, mean: 2e5, min: 1, p50: 2, p90: 3, p95: 4, p99: 5, p999: 6, p9999: 7, max: 81_234 };
    DeviceResult {
        commands: None,
        smart: crate::SmartLogs::default(),
        notes: Vec::new(),
        overrides: BTreeMap::new(),
        repetition: None,
        name: name.to_string(),
        complete: true,
        timed: true,
        read_only: false,
        requests: PerOp { read: 4, write: 5, trim: 0, flush: 0 },
        bytes: PerOp { read: 16_384, write: 20_480, trim: 0, flush: 0 },
        requests_digest: String::new(),
        latency_ns: Latencies { all: Some(summary), write: Some(summary), ..Latencies::default() },
        virtual_time_ns: 1_000_000,
        wall_time_s: 0.5,
        wall_precondition_s: 0.0,
        rate_variation: RateVariation::default(),
        throughput: Throughput::default(),
        outstanding: Outstanding::default(),
        flash: Flash::default(),
        write_amplification: Some(WriteAmplification { total: 2.5, by_cause: BTreeMap::new() }),
        theory: None,
        erases: Erases::default(),
        erases_in_run: None,
        lifetime: None,
        buffer: Buffer::default(),
        map_cache: None,
        controller: None,
        gc: Gc::default(),
        utilization: Utilization::default(),
        memory: BTreeMap::from([("mapping_bytes".to_string(), 4096)]),
        design: BTreeMap::new(),
        capacity: Capacity::default(),
        over_provisioning: OverProvisioning::default(),
        precondition: Precondition::default(),
        host: Host::default(),
        host_layers: Vec::new(),
        drives: Vec::new(),
        disks: Vec::new(),
        checks: vec![Check { name: "requests".into(), passed: true, detail: "9 generated, 9 completed.".into() }],
        warnings: vec![],
        configuration: serde_json::json!({ "name": name }),
        timeline: Timeline::default(),
        latency_cdf: BTreeMap::new(),
        latency_breakdown: None,
        jobs: Vec::new(),
        subtests: Vec::new(),
        ready_busy: None,
        wear_histogram: WearHistogram::default(),
    }
}

fn run(devices: Vec<DeviceResult>) -> RunResult {
    RunResult {
        format: FORMAT,
        version: VERSION.to_string(),
        complete: true,
        seed: 7,
        title: None,
        command: vec!["ssdlab".into(), "run".into(), "a b".into()],
        wall_started: Some("2026-11-26 06:12 UTC".into()),
        workload: "rw=randwrite".into(),
        replay: "closed:32".into(),
        precondition: "none".into(),
        host: None,
        notes: vec![],
        devices,
    }
}

/// The result as a browser would read it out of the page.
fn embedded(page: &str) -> RunResult {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"result\">").expect("the result's element");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("a result")
}

/// The page without the chart library, in which any text may occur.
fn without_library(page: &str) -> String {
    page.replace(ECHARTS, "")
}

#[test]
fn the_page_carries_the_whole_result() {
    let run = run(vec![device("one"), device("two")]);
    assert_eq!(embedded(&render(&run)), run);
}

#[test]
fn every_part_of_the_page_is_filled() {
    let page = without_library(&render(&run(vec![device("one")])));
    assert!(!page.contains("{{"), "an unfilled part is left");
    assert!(page.contains("<title>one under rw=randwrite</title>"));
    assert!(page.contains("9 generated, 9 completed."));
    assert!(page.contains("<pre id=\"command\">ssdlab run &#39;a b&#39;</pre>"));
    assert!(page.contains("ssdlab 0.1.0 report · <time>2026-11-26 06:12 UTC</time>"));
}

#[test]
fn a_name_cannot_break_out_of_the_page() {
    let name = "</script><script>alert(1)</script><img src=x onerror='1'>\"{{script}}{{result}}";
    let mut run = run(vec![device(name)]);
    run.title = Some(name.to_string());
    run.workload = name.to_string();
    run.replay = name.to_string();
    run.precondition = name.to_string();
    run.version = name.to_string();
    run.command = vec![name.to_string()];
    run.wall_started = Some(name.to_string());
    run.devices[0].configuration =
        serde_json::json!({ name: name, "ftl": { "design": name }, "buffer": { "policy": [name] } });
    run.devices.push(device("another"));
    run.complete = false;
    run.devices[0].complete = false;
    run.devices[0].warnings.push(name.to_string());
    run.devices[0].precondition.notes.push(name.to_string());
    run.devices[0].checks.push(Check { name: name.into(), passed: false, detail: name.into() });
    run.devices[0].theory =
        Some(Theory { model: name.into(), write_amplification: 2.0, effective_over_provisioning: 0.1 });
    run.devices[0].memory.insert(name.into(), 1);
    run.devices[0].design.insert(name.into(), 1.0);
    let page = render(&run);
    assert_eq!(embedded(&page), run);
    let page = without_library(&page);
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<img"));
    // The page's own three scripts and nothing more.
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn a_title_stands_over_the_page_and_the_workload_below_it() {
    let mut titled = run(vec![device("one")]);
    titled.title = Some("Greedy, \"as <shipped>\"".into());
    let page = without_library(&render(&titled));
    assert!(page.contains("<title>Greedy, &quot;as &lt;shipped&gt;&quot;</title>"));
    assert!(page.contains("<h1>Greedy,<wbr> &quot;as &lt;shipped&gt;&quot;</h1>"));
    assert!(page.contains("<li>Workload <b>rw=randwrite</b></li>"));
    // A list breaks between its items, not inside them; a name between its parts.
    let broken = super::tables::breakable("a_b, c under rw=write,io_size=1g,random_generator=lfsr and ../a/b_c.csv");
    let list = "rw=write,<wbr>io_size=1g,<wbr>random_<wbr>generator=lfsr";
    assert_eq!(broken, format!("a_<wbr>b,<wbr> c under {list} and ../<wbr>a/<wbr>b_<wbr>c.csv"));
    assert!(crate::table::render(&titled).starts_with("Greedy, \"as <shipped>\"\n\nworkload rw=randwrite"));
}

#[test]
fn the_page_asks_for_nothing_from_outside() {
    let page = render(&run(vec![device("one")]));
    let page = without_library(&page);
    assert!(page.contains("default-src 'none'"));
    for reference in ["http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(reference), "the page refers to something outside with {reference}");
    }
    // Any of these in the library would end or confuse the element it stands in.
    assert!(!ECHARTS.contains("</script") && !ECHARTS.contains("<!--"));
}

#[test]
fn an_interrupted_run_and_a_broken_check_are_said_first() {
    let mut run = run(vec![device("whole"), device("cut")]);
    assert!(!render(&run).contains("class=\"banner bad\""));
    assert!(!render(&run).contains("<b>Incomplete.</b>"));
    run.complete = false;
    run.devices[1].complete = false;
    run.devices[1].checks[0] =
        Check { name: "requests".into(), passed: false, detail: "9000 generated, 8999 completed.".into() };
    let page = render(&run);
    let (banners, _) = page.split_once("<h2>Drives</h2>").expect("the table");
    assert!(banners.contains("<b>Incomplete.</b> The run was interrupted (cut)"));
    assert!(banners.contains("cut: 9\u{202f}000 generated, 8\u{202f}999 completed."));
    let table = crate::table::render(&run);
    assert!(
        table.contains("1 of 2 invariants hold.\nINVARIANT BROKEN  cut: requests: 9,000 generated, 8,999"),
        "{table}"
    );
    run.devices[1].checks[0].passed = true;
    assert!(crate::table::render(&run).contains("All 2 invariants hold, 1 for each drive.\n"));
}

#[test]
fn a_run_without_drives_and_a_drive_without_figures_are_pages_too() {
    assert!(render(&run(vec![])).contains("This run has no drive in it."));
    let mut blank = device("blank");
    blank.latency_ns = Latencies::default();
    blank.write_amplification = None;
    blank.checks.clear();
    blank.erases.mean = f64::INFINITY;
    blank.timed = false;
    assert!(render(&run(vec![blank])).contains("blank"));
}

#[test]
fn numbers_read_as_people_write_them() {
    assert_eq!(nanos(999.0), "999 ns");
    assert_eq!(nanos(51_200.0), "51.2 µs");
    assert_eq!(nanos(999_900.0), "1.00 ms");
    assert_eq!(nanos(61_000_000_000.0), "61.0 s");
    assert_eq!(whole(1_234_567), "1\u{202f}234\u{202f}567");
    assert_eq!(whole(0), "0");
    assert_eq!(bytes_per_second(2_345_000_000.0), "2.35 GB/s");
    assert_eq!(percent(0.0634), "6.34 %");
    assert_eq!(percent(1.0), "100 %");
    assert_eq!(figure(5.5999), "5.600");
    assert_eq!(figure(0.0), "0.000");
}

proptest! {
    #[test]
    fn json_in_a_script_element_is_the_same_json_and_cannot_end_the_element(text in any::<String>()) {
        let json = serde_json::to_string(&text).expect("a string");
        let escaped = json_in_script(&json);
        prop_assert!(!escaped.contains('<'));
        prop_assert_eq!(serde_json::from_str::<String>(&escaped).expect("still JSON"), text);
    }

    #[test]
    fn escaped_text_holds_nothing_that_markup_is_made_of(text in any::<String>()) {
        let escaped = escape(&text);
        prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        let back = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
        prop_assert_eq!(back, text);
    }
}

fn subtest(name: &str, begun_ns: u64, ended_ns: u64, written_bytes: u64) -> Subtest {
    let write_bytes_per_s = written_bytes as f64 / ((ended_ns - begun_ns) as f64 / 1e9);
    Subtest {
        name: name.to_string(),
        requests: 8,
        written_bytes,
        read_bytes: 0,
        begun_ns,
        ended_ns,
        write_bytes_per_s,
        stands_for: 0,
    }
}

/// Two sub-tests of a second and of three, with 330 s of quiet between them, and a recorder that counts 10 % too much.
fn divided() -> DeviceResult {
    use crate::ready_busy::*;
    let second = 1_000_000_000;
    let causes = |pages| BTreeMap::from([("host".to_string(), pages), ("gc".to_string(), 0)]);
    let test = |programs, pages, real_pages, begun_ns: u64| TestCount {
        programs,
        pages,
        real_pages,
        by_cause: causes(real_pages),
        begun_ns,
        ended_ns: begun_ns + 1,
    };
    let mut device = device("divided");
    device.virtual_time_ns = 334 * second;
    device.bytes = PerOp { read: 0, write: 300 * 4096, trim: 0, flush: 0 };
    device.throughput = Throughput { iops: 2.0, write_iops: 2.0, write_bytes_per_s: 3679.0, ..Throughput::default() };
    device.outstanding = Outstanding { mean: 0.25, max: 4 };
    device.subtests = vec![subtest("1", 0, second, 100 * 4096), subtest("2", 331 * second, 334 * second, 200 * 4096)];
    device.ready_busy = Some(ReadyBusy {
        line: "ch0.chip0.die0".to_string(),
        die: 0,
        geometry: "1x1x2x1".to_string(),
        program_model: "single".to_string(),
        pages_per_low: 1,
        window_ns: [110_000, 850_000],
        recorders: vec![Recorded {
            sampling_ns: 1000,
            programs: 330,
            pages: 660.0,
            write_amplification: Some(2.2),
            percentage_error: Some(0.1),
            lows_missed: 3,
            lows_merged: 12_345,
        }],
        estimates: vec![Estimated {
            method: "mixture".to_string(),
            lines: 2,
            programs_a_line: 300.5,
            pages: 601.0,
            pages_interval: [590.0, 612.0],
            write_amplification: Some(2.003),
            percentage_error: Some(0.00167),
        }],
        levels: LevelFactors {
            sampling: Some(1.1),
            classification: Some(1.0),
            plane: None,
            die: Some(1.0),
            chip: Some(1.0),
            channel: Some(1.0),
        },
        real: Real {
            pages: 600,
            write_amplification: Some(2.0),
            pages_by_die: vec![300, 300],
            programs_by_die: vec![300, 300],
            by_cause: causes(600),
        },
        tests: vec![test(165, 330.0, 300, 5), test(165, 330.0, 300, 331 * second)],
    });
    device
}

#[test]
fn a_divided_run_shows_its_subtests_and_rates_without_the_quiet() {
    let page = without_library(&render(&run(vec![divided()])));
    let whole = "<td>1</td><td>8</td><td>400 KiB</td><td>165</td><td>3.300</td><td>3.000</td><td>0 ns</td>\
                 <td>1.00 s</td><td>410 kB/s</td>";
    assert!(page.contains(whole), "the first sub-test's row");
    assert!(page.contains("<td>1.650</td><td>1.500</td><td>331 s</td><td>3.00 s</td><td>273 kB/s</td>"));
    // 668 requests in 334 s of which 330 are quiet: 167 a second.
    let (_, headline) = page.split_once("id=\"headline\"").expect("the headline");
    assert!(headline.contains(">167</td>") && headline.contains(">307 kB/s</td>"), "the headline");
    assert_eq!(page.matches("busy 4.00 s, idle 330 s.").count(), 4, "headline, two charts over time, shares");
    assert!(page.contains("<td>Idle gaps between sub-tests</td><td>330 s</td>"));
    assert!(page.contains("<td>Requests in flight, mean</td><td>20.88</td>"));
    // Two points are no curve.
    assert!(!page.contains("id=\"subtest-rate\""));
    let mut three = divided();
    three.subtests.push(subtest("<b>3", 664_000_000_000, 665_000_000_000, 4096));
    let page = without_library(&render(&run(vec![three])));
    assert!(page.contains("id=\"subtest-rate\"") && page.contains("id=\"subtest-amplification\""));
    assert!(page.contains("data-points=\"[[[&quot;1&quot;,3.3,3.0,409600.0],"));
    assert!(page.contains("[&quot;&lt;b&gt;3&quot;,0.0,0.0,4096.0]"));
}

#[test]
fn a_watched_run_shows_what_was_counted_and_what_was_there() {
    let page = without_library(&render(&run(vec![divided()])));
    let line = "Ready/Busy of ch0.chip0.die0, 1x1x2x1 (channels x chips x dies x planes), a program T: 110 us &lt; T \
                &lt; 850 us, 1 page(s) a low";
    assert!(page.contains(line));
    let recorder = "<td>recorder (1.00 us)</td><td>330</td><td>660</td><td>–</td><td>2.200</td><td>+10.000 %</td>\
                    <td>3</td><td>12\u{202f}345</td>";
    assert!(page.contains(recorder));
    assert!(
        page.contains("<td>mixture</td><td>300.5</td><td>601</td><td>590 to 612</td><td>2.003</td><td>+0.167 %</td>")
    );
    assert!(page.contains("<td>really</td><td>300</td><td>600</td><td>–</td><td>2.000</td>"));
    assert!(page.contains("sampling <b>1.1000</b>") && page.contains("plane <b>–</b>"));
    assert!(page.contains("by cause: host <b>600</b>; on a die from 300 to 300, on the watched one 300"));
}

#[test]
fn a_whole_run_has_neither_section() {
    let page = without_library(&render(&run(vec![device("one")])));
    assert!(!page.contains("<h2>Sub-tests</h2>") && !page.contains("<h2>Ready/Busy</h2>"));
    assert!(!page.contains("class=\"caption quiet\"") && !page.contains("id=\"means\""));
}

#[test]
fn an_interrupted_run_counts_the_quiet_after_its_last_subtest_and_the_bytes_of_the_unfinished_one() {
    let mut device = divided();
    device.subtests.pop();
    assert_eq!(crate::subtests::quiet_ns(&device), 330_000_000_000);
    // Stopped in the quiet.
    device.virtual_time_ns = 11_000_000_000;
    assert_eq!(crate::subtests::quiet_ns(&device), 10_000_000_000);
    let watched = device.ready_busy.as_ref().expect("a watched run");
    let of = watched.of_subtests(device.bytes.write, &device.subtests);
    assert_eq!((of[0].counted, of[0].real), (Some(3.3), Some(3.0)));
}

#[test]
fn layers_of_one_kind_are_numbered_and_show_their_settings() {
    use ssdlab_host::{LayerMetrics, Traffic};
    let layer = |kind: &str, depth: &str, merged: u32| LayerMetrics {
        kind: kind.to_string(),
        configuration: BTreeMap::from([("depth".to_string(), depth.to_string())]),
        taken: Traffic { requests: [0, 90, 0, 0], bytes: [0; 4] },
        sent: Traffic { requests: [0, 90 - u64::from(merged), 0, 0], bytes: [0; 4] },
        below: Traffic { requests: [0, 90 - u64::from(merged), 0, 0], bytes: [0; 4] },
        figures: BTreeMap::from([("merged_requests".to_string(), f64::from(merged))]),
        ..LayerMetrics::default()
    };
    let mut one = device("one");
    one.host_layers = vec![layer("scheduler", "64", 0), layer("cache", "7", 0), layer("scheduler", "<16>", 20)];
    let mut run = run(vec![one]);
    run.host = Some("two & more.toml".to_string());
    let page = without_library(&render(&run));
    assert!(page.contains("<td>Scheduler 1, merged requests</td><td>0</td>"));
    assert!(page.contains("<td>Scheduler 2, merged requests</td><td>20</td>"));
    assert!(page.contains("<td>Scheduler 2, sent on</td><td>70</td>"));
    assert!(page.contains("<td>Cache, taken</td><td>90</td>"));
    assert!(page.contains("<summary>Host two &amp; more.toml, the topmost layer first</summary>"));
    let settings = "<h4>Scheduler 1</h4><pre>depth = 64</pre><h4>Cache</h4><pre>depth = 7</pre>\
                    <h4>Scheduler 2</h4><pre>depth = &lt;16&gt;</pre>";
    assert!(page.contains(settings));
    assert!(!page.contains("&amp;nbsp;") && !page.contains("&amp;lt;"));
}

#[test]
fn the_page_says_what_each_drive_is_and_only_what_differs() {
    let variant = |name: &str, victim: &str| DeviceResult {
        configuration: serde_json::json!({
            "name": name, "capacity": { "user": "8g" }, "flash": { "channels": 4, "page_size": "16k", "timing": { "program": ["1ms", "2ms"] } },
            "ftl": { "design": "page", "mapping_unit": "page" }, "gc": { "victim": victim }, "buffer": { "policy": "lru", "size": "32m" },
        }),
        over_provisioning: OverProvisioning { nominal: 0.125, effective: 0.1 },
        ..device(name)
    };
    let page = without_library(&render(&run(vec![variant("one", "greedy"), variant("two", "<fifo>")])));
    let row = "<td>8 GiB</td><td>4 channels, 16 KiB pages</td><td>program\u{a0}1ms, 2ms</td><td>12.5 %, 10.0 % effective</td>\
               <td>page, page mapping</td><td>greedy</td><td>lru 32 MiB</td>";
    assert!(page.contains(row));
    let (_, differ) = page.split_once("id=\"differences\"").expect("what differs");
    let (differ, _) = differ.split_once("</table>").expect("a table");
    assert!(differ.contains("<td><code>gc.victim</code></td><td>greedy</td><td>&lt;fifo&gt;</td>"), "{differ}");
    assert_eq!(differ.matches("<code>").count(), 1, "{differ}");
    // Two drives are no curve, three are, unless they have little in common.
    assert!(!page.contains("id=\"by-parameter\""));
    let three = run(vec![variant("one", "greedy"), variant("two", "fifo"), variant("three", "lru")]);
    assert!(without_library(&render(&three)).contains("id=\"by-parameter\""));
    let same = render(&run(vec![variant("one", "greedy"), variant("two", "greedy")]));
    assert!(same.contains("The descriptions of all drives are the same."));
}

/// The value that follows from a key was shown in place of the key that was varied.
#[test]
fn what_was_set_stands_first_among_what_differs() {
    let variant = |name: &str, over: &str, user: &str, cache: Option<&str>| DeviceResult {
        configuration: serde_json::json!({
            "name": name, "buffer": { "size": "32m" }, "capacity": { "user": user }, "gc": { "victim": "greedy" },
        }),
        overrides: BTreeMap::from_iter(
            [("capacity.over_provisioning", Some(over)), ("gc.victim", Some("greedy")), ("ftl.cache", cache)]
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_string(), value?.to_string()))),
        ),
        ..device(name)
    };
    let devices = vec![variant("one", "7%", "8g", None), variant("two", "<28%>", "6g", Some("4m"))];
    let page = without_library(&render(&run(devices.clone())));
    let (_, differ) = page.split_once("<h3>What differs</h3>").expect("what differs");
    let (differ, _) = differ.split_once("</table>").expect("a table");
    let rows: Vec<&str> = differ.split("<tr>").skip(2).collect();
    let expected = [
        "<td><code>capacity.over_provisioning</code></td><td>7%</td><td>&lt;28%&gt;</td>",
        "<td><code>ftl.cache</code></td><td class=\"none\">–</td><td>4m</td>",
        "<td><code>capacity.user</code></td><td>8g</td><td>6g</td>",
    ];
    assert_eq!(rows.len(), expected.len(), "{differ}");
    for (row, expected) in rows.iter().zip(expected) {
        assert!(row.starts_with(expected), "{row}");
    }
    assert!(differ.contains("; the other key may follow from that."), "{differ}");
    // Set alike, or in other words than the description's, is no difference.
    let mut same = devices;
    same[1] = variant("two", "7%", "8g", None);
    same[1].overrides.insert("buffer.size".to_string(), "32768k".to_string());
    assert!(render(&run(same)).contains("The descriptions of all drives are the same."));
}

/// The terminal had means and intervals, and the page had each repetition alone.
#[test]
fn repetitions_have_the_means_of_the_terminal_and_are_one_drive() {
    let repetition = |of: &str, number: u32, amplification: f64| DeviceResult {
        repetition: Some(Repetition { of: of.to_string(), number, seed: u64::from(number) }),
        write_amplification: Some(WriteAmplification { total: amplification, by_cause: BTreeMap::new() }),
        overrides: BTreeMap::from([("gc.victim".to_string(), of.to_string())]),
        ..device(&format!("{of} #{number}"))
    };
    let of = |of: &str, [first, second]: [f64; 2]| [repetition(of, 1, first), repetition(of, 2, second)];
    let run = run([of("<fifo>", [3.0, 3.2]), of("greedy", [2.0, 2.0])].concat());
    let page = without_library(&render(&run));
    let (_, means) = page.split_once("<table id=\"means\">").expect("means");
    let (means, _) = means.split_once("</table>").expect("its end");
    let rows: Vec<&str> = means.split("<td class=\"name\">").skip(1).collect();
    let metrics = crate::headline::metrics(&run);
    let judged = crate::table::judged(&run, &metrics);
    assert_eq!((rows.len(), judged.len()), (2, 2), "{means}");
    let table = crate::table::render(&run);
    for (row, (name, cells)) in rows.iter().zip(judged) {
        assert!(row.starts_with(&format!("{}</td>", escape(name))), "{row}");
        let line = table.lines().find(|line| line.starts_with(name)).expect(&table);
        let row = row.replace('\u{a0}', " ");
        for cell in cells.into_iter().flatten() {
            assert!(row.contains(&format!("<td>{cell}</td>")) && line.contains(&cell), "{cell}: {row}, {line}");
        }
    }
    // 12.706 times the deviation of two values by the root of two.
    assert!(rows[0].contains("<td>3.100 ±1.271</td>") && rows[1].contains("<td>2.000 ±0</td>"), "{means}");
    assert!(page.contains("<title>&lt;fifo&gt; and greedy under rw=randwrite</title>"));
    assert!(page.contains("2 repetitions, each with a seed of its own: the mean, and half of its 95 % interval."));
    let (_, differ) = page.split_once("<h3>What differs</h3>").expect("what differs");
    let (differ, _) = differ.split_once("</table>").expect("a table");
    assert!(differ.contains("<td><code>gc.victim</code></td><td>&lt;fifo&gt;</td><td>greedy</td></tr>"), "{differ}");
    assert!(!differ.contains("#1"), "{differ}");
}

#[test]
fn how_valid_victims_were_is_among_all_figures_of_what_collected() {
    let mut stack = device("stack");
    assert_eq!(stack.victim_valid_share(), None);
    stack.design = BTreeMap::from_iter([("a.0", 30.0, 10.0, 0.5), ("a.1", 60.0, 0.0, 0.75)].into_iter().flat_map(
        |(name, fore, back, share)| {
            let of = |key: &str, value| (format!("{name}.{key}"), value);
            [of("victims_foreground", fore), of("victims_background", back), of("victim_valid_share", share)]
        },
    ));
    assert_eq!(stack.victim_valid_share(), None, "nothing was collected");
    stack.gc = Gc { foreground_victims: 90, background_victims: 10, ..Gc::default() };
    // The mean over 40 victims and 60.
    assert_eq!(stack.victim_valid_share(), Some(0.65));
    let mut alone = device("alone");
    alone.gc.background_victims = 1;
    alone.design.insert("victim_valid_share".to_string(), 0.25);
    let run = run(vec![stack, alone, device("idle")]);
    let page = without_library(&render(&run));
    let row = "<td>Valid share of victims</td><td>65.0 %</td><td>25.0 %</td><td class=\"none\">–</td>";
    assert!(page.contains(row));
    let table = crate::table::render(&run);
    let line = table.lines().find(|line| line.starts_with("  victims, valid share ")).expect(&table);
    let cells: Vec<&str> = line.split_whitespace().skip(3).collect();
    assert_eq!(cells.join(" "), "65.0 % 25.0 % -");
}

#[test]
fn the_headline_has_erases_of_the_run_and_every_value_to_sort_by() {
    let mut one = device("one");
    one.erases.mean = 79.5;
    one.flash.erases.total = 30;
    one.wear_histogram = WearHistogram { bin: 1, erases: vec![79, 80], blocks: vec![5, 5] };
    one.gc.stalled_commands = 1234;
    let page = without_library(&render(&run(vec![one, device("two")])));
    assert!(page.contains("<td data-value=\"1234\">1\u{202f}234</td>"));
    assert!(page.contains("<td data-value=\"3\">3.000</td>"), "30 erases of 10 blocks");
    assert!(page.contains("data-metric=\"Erases of a block in the run\" data-unit=\"ratio\""));
    // No drive of these met a page in its buffer.
    assert!(!page.contains("data-metric=\"Pages found in the write buffer\""));
}

#[test]
fn a_title_breaks_after_commas_and_inside_names_where_their_parts_end() {
    let mut run = run(vec![device("one")]);
    run.workload = "rw=randwrite,bs=4k,<b>".into();
    let page = without_library(&render(&run));
    assert!(page.contains("<h1>one under rw=randwrite,<wbr>bs=4k,<wbr>&lt;b&gt;</h1>"));
    assert!(page.contains("<title>one under rw=randwrite,bs=4k,&lt;b&gt;</title>"));
}
