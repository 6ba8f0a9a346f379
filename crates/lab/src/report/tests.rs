use std::collections::BTreeMap;

use proptest::prelude::*;

use super::html::{bytes_per_second, escape, figure, json_in_script, nanos, percent, whole};
use super::*;
use crate::result::*;

fn device(name: &str) -> DeviceResult {
    let summary =
        LatencySummary { count: 9, mean: 2e5, min: 1, p50: 2, p90: 3, p95: 4, p99: 5, p999: 6, p9999: 7, max: 81_234 };
    DeviceResult {
        smart: crate::SmartLogs::default(),
        name: name.to_string(),
        complete: true,
        timed: true,
        requests: PerOp { read: 4, write: 5, trim: 0, flush: 0 },
        bytes: PerOp { read: 16_384, write: 20_480, trim: 0, flush: 0 },
        latency_ns: Latencies { all: Some(summary), write: Some(summary), ..Latencies::default() },
        virtual_time_ns: 1_000_000,
        wall_time_s: 0.5,
        wall_precondition_s: 0.0,
        throughput: Throughput::default(),
        outstanding: Outstanding::default(),
        flash: Flash::default(),
        write_amplification: Some(WriteAmplification { total: 2.5, by_cause: BTreeMap::new() }),
        theory: None,
        erases: Erases::default(),
        buffer: Buffer::default(),
        map_cache: MapCache::default(),
        gc: Gc::default(),
        utilization: Utilization::default(),
        memory: BTreeMap::from([("mapping_bytes".to_string(), 4096)]),
        design: BTreeMap::new(),
        spare: Spare::default(),
        precondition: Precondition::default(),
        host: Host::default(),
        host_rooms: Vec::new(),
        checks: vec![Check { name: "requests".into(), held: true, detail: "9 generated, 9 completed.".into() }],
        warnings: vec![],
        configuration: serde_json::json!({ "name": name }),
        timeline: Timeline::default(),
        latency_cdf: BTreeMap::new(),
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
        command: vec!["ssdlab".into(), "run".into(), "a b".into()],
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
    assert!(page.contains("ssdlab run &#39;a b&#39;"));
}

#[test]
fn a_name_cannot_break_out_of_the_page() {
    let name = "</script><script>alert(1)</script><img src=x onerror='1'>\"{{script}}{{result}}";
    let mut run = run(vec![device(name)]);
    run.workload = name.to_string();
    run.replay = name.to_string();
    run.precondition = name.to_string();
    run.version = name.to_string();
    run.command = vec![name.to_string()];
    run.complete = false;
    run.devices[0].complete = false;
    run.devices[0].warnings.push(name.to_string());
    run.devices[0].precondition.notes.push(name.to_string());
    run.devices[0].checks.push(Check { name: name.into(), held: false, detail: name.into() });
    run.devices[0].theory = Some(Theory { model: name.into(), write_amplification: 2.0 });
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
        Check { name: "requests".into(), held: false, detail: "9 generated, 8 completed.".into() };
    let page = render(&run);
    let (banners, _) = page.split_once("<h2>Drives</h2>").expect("the table");
    assert!(banners.contains("<b>Incomplete.</b> The run was interrupted (cut)"));
    assert!(banners.contains("cut: 9 generated, 8 completed."));
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
