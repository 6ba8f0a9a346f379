//! Names that others chose: of files, jobs, drives. None of them gives a terminal orders, or a page a script.

use serde_json::Value;

use crate::support::Bench;

/// Moves the cursor, colours, rings, and turns the direction of writing, with the control characters of C0 and C1.
const ORDERS: &str = "a\u{1b}[31m\u{7}\u{9b}2J\u{202e}\u{7f}z";

/// Nothing of a text is obeyed by a terminal.
#[track_caller]
fn shown_only(text: &str) {
    let obeyed = |letter: &char| {
        (letter.is_control() && !matches!(letter, '\n' | '\t')) || ('\u{202a}'..='\u{202e}').contains(letter)
    };
    assert_eq!(text.chars().find(obeyed), None, "{text:?}");
}

#[test]
fn names_of_files_and_jobs_reach_the_terminal_as_text() {
    let bench = Bench::new();
    let trace = format!("{ORDERS}.csv");
    bench.write(&trace, "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n");
    bench.write("jobs.fio", &format!("[{ORDERS}]\nrw=write\nbs=4k\nio_size=64k\n[b]\nrw=read\nbs=4k\nio_size=64k\n"));
    let job = format!("rw=write,bs=4k,io_size=64k,name={ORDERS}");
    let drive = bench.read("tiny.toml");
    bench.write(&format!("{ORDERS}.toml"), &drive);
    let twice = format!("{ORDERS}.toml");
    for run in [
        vec!["-w", &trace],
        vec!["-w", "jobs.fio"],
        vec!["-w", &job],
        vec!["-w", &job, "-d", "tiny.toml", &twice],
        vec!["-w", &trace, "-p", &trace],
        vec!["-w", &trace, "--host", &trace],
        vec!["-w", &trace, "--out", ORDERS],
    ] {
        let done = bench.ssdlab(&[&["run", "-q", "-d", "tiny.toml"][..], &run].concat());
        assert!(done.status == 0 || done.stderr.starts_with("error: "), "{run:?}: {}", done.stderr);
        assert!(done.stdout.contains("\\u{1b}[31m") || !done.stdout.contains("31m"), "{}", done.stdout);
        shown_only(&done.stdout);
        shown_only(&done.stderr);
    }
    for command in [
        vec!["run", "-d", ORDERS, "-w", "x"],
        vec!["run", "-d", "tiny.toml", "-w", ORDERS],
        vec!["trace", "stats", ORDERS],
        vec!["trace", "stats", &trace],
        vec!["trace", "convert", &trace, ORDERS],
        vec!["report", ORDERS],
        vec!["wa", "drive", ORDERS],
        vec!["wa", "capture", &trace],
        vec!["stat", ORDERS],
        vec!["torture", "--replay", ORDERS],
        vec!["run", "--seed", ORDERS],
        vec![ORDERS],
    ] {
        let done = bench.ssdlab(&command);
        shown_only(&done.stdout);
        shown_only(&done.stderr);
    }
}

#[test]
fn what_a_drive_s_log_says_reaches_the_terminal_as_text_and_json_stays_json() {
    let bench = Bench::new();
    let log = serde_json::json!({ "critical_warning": 0, "data_units_written": 5, "power_on_hours": 10 });
    let identity = serde_json::json!({ "vid": 1, "mn": ORDERS, "sn": ORDERS });
    bench.write("log.json", &format!("{log}{identity}"));
    let done = bench.succeeds(&["wa", "drive", "log.json"]);
    assert!(done.stdout.contains("\\u{1b}[31m"), "{}", done.stdout);
    shown_only(&done.stdout);
    let done = bench.succeeds(&["wa", "drive", "--json", "log.json"]);
    shown_only(&done.stdout);
    let told: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(told["model"], ORDERS);
    let name = format!("rw=write,bs=4k,io_size=64k,name={ORDERS}");
    let done = bench.succeeds(&["run", "-q", "-d", "tiny.toml", "-w", &name, "--json"]);
    shown_only(&done.stdout);
    let told: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(told["workload"], name.as_str());
}

#[test]
fn a_title_is_one_line_and_is_kept_in_the_results() {
    let bench = Bench::new();
    let run = ["run", "-q", "-d", "tiny.toml", "-w", "rw=write,bs=4k,io_size=64k", "--repeat", "2", "--out", "out"];
    let title = "Größe <b>&amp;</b> {{script}}";
    let done = bench.succeeds(&[&run[..], &["--title", title]].concat());
    assert!(done.stdout.starts_with(&format!("{title}\n\nworkload ")), "{}", done.stdout);
    let result: Value = serde_json::from_str(&bench.read("out/result.json")).expect("JSON");
    assert_eq!(result["title"], title);
    bench.succeeds(&["report", "out"]);
    let page = bench.read("out/report.html");
    assert!(page.contains("<title>Größe &lt;b&gt;&amp;amp;&lt;/b&gt; {{script}}</title>"));
    for wrong in [ORDERS, "two\nlines", "\u{202e}turned", "", " ", &"x".repeat(201)] {
        let refused = bench.ssdlab(&[&run[..], &["--title", wrong]].concat());
        assert_eq!(refused.status, 2, "{wrong:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("expected 1 to 200 characters without control"), "{}", refused.stderr);
        shown_only(&refused.stderr);
    }
    bench.succeeds(&[&run[..], &["--title", &"ß".repeat(200)]].concat());
}

/// What a page would run if it were not escaped.
const SCRIPT: &str = "</script><img src=x onerror=hostile()>\"'`{{script}}";

/// Puts [`SCRIPT`] into every string, and into every object as a key, wherever what is made of it is still a result.
fn hostile(result: &mut Value, is_result: &dyn Fn(&Value) -> bool) -> usize {
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(at.to_string()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
            }
            Value::Object(map) => {
                found.push(at.to_string());
                let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
                map.iter().for_each(|(key, item)| places(item, &format!("{at}/{}", escaped(key)), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    places(result, "", &mut found);
    let mut put = 0;
    for place in found {
        let Some(value) = result.pointer_mut(&place) else { continue };
        let before = value.clone();
        match value {
            Value::Object(map) => {
                let any = map.values().next().cloned().unwrap_or(Value::Null);
                map.insert(SCRIPT.to_string(), any);
            }
            other => *other = Value::String(SCRIPT.to_string()),
        }
        if is_result(result) {
            put += 1;
        } else if let Some(value) = result.pointer_mut(&place) {
            *value = before;
        }
    }
    put
}

#[test]
fn a_foreign_result_puts_no_script_into_its_report() {
    let bench = Bench::new();
    bench.write("jobs.fio", "[a]\nrw=randwrite\nbs=4k\nio_size=400k\n[b]\nrw=randread\nbs=4k\nio_size=400k\n");
    bench.write("host.toml", "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"scheduler\"\n");
    let dftl = ["--set", "ftl.design=dftl", "--host", "host.toml", "-w", "jobs.fio", "--latency-breakdown"];
    let watched = ["-w", "rw=randwrite,bs=4k,iodepth=8,io_size=1m", "--rb-probe", "--subtests", "3x100k"];
    for (out, more) in [("watched", &watched[..]), ("layers", &dftl)] {
        let run = ["run", "-q", "-d", "tiny.toml", "--slowest", "4", "-p", "fill", "--title", "x", "--out", out];
        bench.succeeds(&[&run[..], more].concat());
        let mut result: Value = serde_json::from_str(&bench.read(&format!("{out}/result.json"))).expect("JSON");
        let is_result = |value: &Value| serde_json::from_value::<ssdlab_lab::RunResult>(value.clone()).is_ok();
        let put = hostile(&mut result, &is_result);
        assert!(put > 60, "{put} places");
        bench.write(&format!("{out}/result.json"), &result.to_string());
        bench.succeeds(&["report", out]);
        let page = bench.read(&format!("{out}/report.html"));
        assert!(page.contains("onerror=hostile()"), "the names are on the page");
        let found = page.find("<img src=x").map(|at| &page[at.saturating_sub(200)..at + 30]);
        assert_eq!(found, None, "unescaped");
        // The page's own scripts and nothing more.
        assert_eq!(page.matches("</script>").count(), 3);
    }
}
