//! The templates of docs/adding-a-design.md: each is a file that is compiled and registered for tests alone. The page shows
//! it as it is, and a drive works with it. Those of a host layer and of a trace format are tested in their crates.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_flash::Contents;

use crate::{Description, Drive, Options};

/// The templates, by their paths in this folder.
const TEMPLATES: [&str; 5] = [
    "gc/victim/template.rs",
    "buffer/template.rs",
    "placement/template.rs",
    "../../host/src/layer/template.rs",
    "../../workload/src/trace/format/template.rs",
];

const FENCE: &str = "```rust\n";

/// A file of the repository.
fn path(of: &str) -> String {
    format!("{}/{of}", env!("CARGO_MANIFEST_DIR"))
}

/// A page in which each fenced Rust block is the template of the same number, indented as the block is.
fn with_templates(page: &str, templates: &[String]) -> String {
    let mut parts = page.split(FENCE);
    let mut right = parts.next().unwrap_or_default().to_string();
    let mut count = 0;
    for (part, template) in parts.zip(templates) {
        let indent = right.rsplit('\n').next().unwrap_or_default().to_string();
        let (_, rest) = part.split_once("```\n").expect("a block ends");
        let lines = template.lines().map(|line| format!("{}{line}\n", if line.is_empty() { "" } else { &indent }));
        right += &format!("{FENCE}{}{indent}```\n{rest}", lines.collect::<String>());
        count += 1;
    }
    assert_eq!(count, page.matches(FENCE).count(), "every Rust block of the page is a template");
    right
}

#[test]
fn the_page_shows_the_templates_as_they_are() {
    let file = path("../../docs/adding-a-design.md");
    let page = std::fs::read_to_string(&file).expect("the page");
    let templates = TEMPLATES.map(|name| std::fs::read_to_string(path(&format!("src/{name}"))).expect("a template"));
    let right = with_templates(&page, &templates);
    if std::env::var_os("SSDLAB_WRITE_DOCS").is_some() {
        return std::fs::write(&file, right).expect("the page can be written");
    }
    let differs = page.lines().zip(right.lines()).find(|(page, right)| page != right);
    assert!(
        page == right,
        "docs/adding-a-design.md does not show the templates as they are, first here:\n{differs:?}\n\
         write them with: SSDLAB_WRITE_DOCS=1 cargo test -p ssdlab-device --lib templates"
    );
}

#[test]
fn a_drive_collects_and_buffers_with_the_templates() {
    let text = "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
                blocks_per_plane = 16\npages_per_block = 8\npage_size = \"4k\"\ncell = \"slc\"\n\
                [capacity]\nover_provisioning = \"80%\"\n[buffer]\npolicy = \"lifo\"\nsize = \"64k\"\n\
                [gc]\nvictim = \"oldest-half\"\n[ftl]\nstreams = 2\n[placement]\npolicy = \"first-writes\"\n";
    let config = Description::parse(text, "templates.toml").and_then(|description| description.resolve());
    let config = config.expect("a drive with the templates");
    let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Stamps }).expect("it is accepted");
    let units = drive.user_sectors() / 8;
    for tag in 0..10 * units {
        let unit = tag * 7919 % units;
        let request = Request { at: drive.now(), tag: tag as u32, ..Request::new(Op::Write, unit * 8, 8) };
        drive.submit(&request);
        while drive.outstanding() > 4 {
            assert!(drive.run_to_completion(Nanos::MAX), "commands complete");
            drive.completions().clear();
        }
    }
    while drive.outstanding() > 0 {
        assert!(drive.run_to_completion(Nanos::MAX), "commands complete");
        drive.completions().clear();
    }
    assert!(drive.counters().victims[0] > units / 8, "{} victims", drive.counters().victims[0]);
    assert!(drive.counters().buffer.full > Nanos::ZERO, "the buffer was never full");
    for check in drive.check() {
        assert!(check.held, "{}: {}", check.name, check.detail);
    }
}
