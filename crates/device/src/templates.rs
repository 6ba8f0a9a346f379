//! The templates of docs/adding-a-design.md: each is a file that is compiled and registered for tests alone. The page shows
//! it as it is, and a drive works with it. Those of a host layer and of a trace format are tested in their crates.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_flash::Contents;

use crate::{Description, Drive, Options};

/// The templates, by their paths in this folder.
const TEMPLATES: [&str; 6] = [
    "gc/victim/template.rs",
    "buffer/template.rs",
    "placement/template.rs",
    "ftl/one_table.rs",
    "../../host/src/layer/template.rs",
    "../../workload/src/trace/format/template.rs",
];

const FENCE: &str = "```rust\n";

/// Lines that a template may have at most, where there is a limit.
const LINES_MAX: [(&str, usize); 2] = [("placement/template.rs", 80), ("ftl/one_table.rs", 150)];

/// What the compiler asks of a design, and what it may say beyond that: traits and a struct, by their files in this folder.
const ASKED: [(&str, &str); 3] = [
    ("ftl/mod.rs", "pub(crate) trait Ftl: "),
    ("ftl/mod.rs", "pub(crate) struct Make {"),
    ("ftl/page_mapping.rs", "pub(super) trait PageMapping: "),
];

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
fn templates_are_short() {
    for (name, most) in LINES_MAX {
        let lines = std::fs::read_to_string(path(&format!("src/{name}"))).expect("a template").lines().count();
        assert!(lines <= most, "src/{name} has {lines} lines, not {most} at most");
    }
}

#[test]
fn the_page_names_every_method_and_field_of_a_design() {
    let page = std::fs::read_to_string(path("../../docs/adding-a-design.md")).expect("the page");
    let mut names = 0;
    for (file, head) in ASKED {
        let source = std::fs::read_to_string(path(&format!("src/{file}"))).expect("a source");
        let (_, body) = source.split_once(head).unwrap_or_else(|| panic!("{file} has no '{head}'"));
        let (body, _) = body.split_once("\n}\n").expect("it ends");
        let members = body.lines().filter_map(|line| {
            let member = line.strip_prefix("    fn ").or_else(|| line.strip_prefix("    pub(crate) "))?;
            member.split(['(', ':', '<']).next()
        });
        for name in members {
            assert!(page.contains(&format!("`{name}`")), "docs/adding-a-design.md does not name `{name}` of {file}");
            names += 1;
        }
    }
    assert!(names > 50, "{names} methods and fields were found");
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
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
}
