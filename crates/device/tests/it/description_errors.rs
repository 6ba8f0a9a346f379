//! What a wrong description is told: the place, the key, what was found and what was expected.

use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::Contents;

const GOOD: &str = r#"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 64
pages_per_block = 32
page_size = "4k"
cell = "slc"
[capacity]
over_provisioning = "20%"
"#;

fn resolve(text: &str, sets: &[&str]) -> Result<DriveConfig, String> {
    let mut description = Description::parse(text, "d.toml").map_err(|error| error.to_string())?;
    for set in sets {
        description.set(set).map_err(|error| error.to_string())?;
    }
    description.resolve().map_err(|error| error.to_string())
}

/// The message for `GOOD` with one text replaced by another.
fn message(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from));
    resolve(&GOOD.replace(from, to), &[]).expect_err("it is wrong")
}

fn set_message(set: &str) -> String {
    resolve(GOOD, &[set]).expect_err("it is wrong")
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_closest_one() {
    let message = message("channels = 2\nchips", "channels = 2\nchanels = 2\nchips");
    assert!(
        message.starts_with("d.toml:4:1: flash.chanels: found an unknown key, expected one of channels, "),
        "{message}"
    );
    assert!(message.ends_with("; did you mean 'channels'?"), "{message}");
}

#[test]
fn an_unknown_table_is_refused() {
    let message = message("[capacity]", "[capacities]\n[capacity]");
    assert!(message.starts_with("d.toml:11:2: capacities: found an unknown key"), "{message}");
}

#[test]
fn an_override_is_named_when_it_is_wrong() {
    let message = set_message("gc.victm=fifo");
    assert!(message.starts_with("--set 'gc.victm=fifo': gc.victm: found an unknown key"), "{message}");
    assert!(message.contains("did you mean 'victim'"), "{message}");
    assert_eq!(
        set_message("flash.channels=0"),
        "--set 'flash.channels=0': flash.channels: found 0, expected a whole number of at least 1"
    );
    assert_eq!(
        set_message("flash.channels"),
        "--set 'flash.channels': found no '=', expected key=value, such as gc.victim=fifo"
    );
    // An endurance is looked for among the chips' own keys.
    let elsewhere = set_message("flash.endurance=3000");
    assert!(elsewhere.ends_with("; did you mean 'flash.faults.endurance'?"), "{elsewhere}");
    assert_eq!(set_message("flash.channels="), "--set 'flash.channels=': flash.channels: found no value after '='");
    assert!(set_message("flash..channels=4").contains("expected a dotted key"));
    assert!(set_message("flash.channels.x=4").contains("'flash.channels' is not a table"));
    assert!(set_message("flash=4").contains("found 4, expected a table"));
}

#[test]
fn wrong_values_say_what_was_expected() {
    for (from, to, expected) in [
        ("channels = 2", "channels = \"two\"", "d.toml:3:12: flash.channels: found \"two\", expected a whole number"),
        ("channels = 2", "channels = -1", "flash.channels: found -1, expected a whole number of at least 1"),
        ("channels = 2", "channels = 2.5", "found 2.5, expected a whole number"),
        ("channels = 2", "channels = 1979-05-27", "found a date or time of day, expected a whole number"),
        ("channels = 2", "channels = 99999999999999999999", "expected a whole number of at least 1"),
        ("\"4k\"", "\"4 kilos\"", "flash.page_size: found \"4 kilos\", expected a size such as"),
        ("\"4k\"", "0", "found 0, expected a multiple of 512 bytes from 512"),
        ("\"4k\"", "1000", "found 1000, expected a multiple of 512"),
        ("\"4k\"", "\"2m\"", "expected a multiple of 512 bytes from 512 to 1048576"),
        ("\"20%\"", "\"20\"", "found \"20\", expected a percentage"),
        ("\"20%\"", "true", "found true, expected a percentage"),
        ("\"slc\"", "\"slk\"", "found \"slk\", expected slc, mlc, tlc or qlc; did you mean 'slc'?"),
        ("pages_per_block = 32\n", "", "d.toml:2:1: flash.pages_per_block: missing, expected a whole number"),
        ("cell = \"slc\"\n", "", "flash.timing: missing, expected a table of latencies, a preset"),
    ] {
        let message = message(from, to);
        assert!(message.contains(expected), "{message}\nis not\n{expected}");
    }
}

#[test]
fn wrong_times_say_what_was_expected() {
    for (timing, expected) in [
        ("read=20", "flash.timing.read: found 20, expected a time with its unit"),
        ("read=\"20\"", "found \"20\", expected a time with its unit"),
        ("read=600us..400us", "expected a range from its shortest to its longest"),
        ("read=2h", "expected at most 60.0 s"),
        ("read=[]", "found a list of 0, expected from 1 to 32 times"),
        ("read=[\"20us\", 5]", "flash.timing.read[1]: found 5, expected a time"),
        ("transfer=1us..2us", "expected one time, not a range"),
        ("channel_bandwidth=fast", "expected bytes a second"),
        ("channel_bandwidth=1", "expected at least 65536 bytes a second"),
        ("preset=none", "found \"none\", expected slc, mlc, tlc or qlc"),
        ("tR=20us", "found an unknown key, expected one of preset, read,"),
    ] {
        let message = set_message(&format!("flash.timing.{timing}"));
        assert!(message.contains(expected), "{message}\nis not\n{expected}");
    }
    let text = GOOD.replace("cell = \"slc\"", "timing = { read = \"20us\", program = \"200us\", erase = \"1ms\" }");
    let message = resolve(&text, &[]).expect_err("no transfer");
    assert!(message.starts_with("d.toml:10:10: flash.timing.transfer: missing"), "{message}");
    let message = resolve(GOOD, &["flash.program_suspend=true"]).expect_err("no suspend time");
    assert!(
        message.contains("flash.timing: 'suspend' is missing") && message.contains("flash.timing: 'resume' is missing"),
        "{message}"
    );
    // Of a table each is told as a key, beside whatever else is missing.
    let suspends = GOOD.replace("cell = \"slc\"", "erase_suspend = true\ntiming = { preset = \"slc\" }");
    let message = resolve(&suspends.replace("channels = 2\n", ""), &[]).expect_err("three are missing");
    let keys: Vec<&str> = message.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(keys, ["flash.channels", "flash.timing.suspend", "flash.timing.resume"], "{message}");
    let message = resolve(&suspends, &["flash.timing.suspend=5us"]).expect_err("one is missing");
    assert!(
        message.contains("flash.timing.resume: missing, expected a time") && message.lines().count() == 1,
        "{message}"
    );
    assert!(resolve(&suspends, &["flash.timing=none"]).is_ok(), "nothing takes time");
    assert!(
        resolve(GOOD, &["flash.program_suspend=true", "flash.timing.suspend=5us", "flash.timing.resume=5us"]).is_ok()
    );
}

#[test]
fn two_ways_to_say_one_thing_are_refused_in_the_text_and_replaced_by_an_override() {
    let both = GOOD.replace("\"20%\"", "\"20%\"\nuser = \"20m\"");
    let message = resolve(&both, &[]).expect_err("both");
    assert!(message.contains("capacity.user: found beside over_provisioning, expected one of them"), "{message}");
    assert_eq!(resolve(GOOD, &["capacity.user=20m"]).expect("replaced").user_bytes, 20 << 20);
    let both = GOOD.replace("blocks_per_plane = 64", "blocks_per_plane = 64\ndie_capacity = \"128Mb\"");
    let message = resolve(&both, &[]).expect_err("both");
    assert!(message.contains("flash.die_capacity: found beside blocks_per_plane, expected one of them"), "{message}");
    let message = message_of_neither();
    assert!(message.contains("capacity: missing, expected over_provisioning or user"), "{message}");
    let message = resolve(&GOOD.replace("\"slc\"", "\"slc\"\ntiming = \"tlc\""), &[]).expect_err("both");
    assert!(message.contains("found \"tlc\" beside cell = \"slc\""), "{message}");
    let tlc = resolve(GOOD, &["flash.timing=tlc"]).expect("replaced");
    assert_eq!(tlc, resolve(GOOD, &["flash.cell=tlc"]).expect("replaced"));
}

fn message_of_neither() -> String {
    resolve(&GOOD.replace("over_provisioning = \"20%\"", ""), &[]).expect_err("neither")
}

#[test]
fn impossible_geometry_and_too_little_spare_are_refused_with_the_numbers() {
    for (sets, expected) in [
        (
            &[
                "flash.channels=4294967295",
                "flash.chips_per_channel=4294967295",
                "flash.dies_per_chip=4294967295",
                "flash.planes_per_die=4294967295",
                "flash.blocks_per_plane=4294967295",
            ][..],
            "expected fewer than 2147483648",
        ),
        (&["flash.blocks_per_plane=268435456"], "found 2147483648 blocks (8 planes of 268435456)"),
        (
            &["flash.blocks_per_plane=268435455", "flash.pages_per_block=4"],
            "pages (2147483640 blocks of 4), expected fewer than 4294967296",
        ),
        (&["flash.pages_per_block=4294967295"], "expected fewer than 4294967296"),
        (
            &["flash.blocks_per_plane=4194304", "flash.pages_per_block=16", "ftl.mapping_unit=512"],
            "found 4294967296 mapping units of 512 bytes, expected fewer than 4294967294",
        ),
        (
            &["flash.die_capacity=5Mb"],
            "found \"5Mb\", expected a capacity that whole blocks come to within 1 %: a block of each of the 2 planes \
             (pages_per_block x page_size = 131072 bytes each) is 2 Mb, and 3 a plane are 6 Mb, not 5 Mb",
        ),
        (&["flash.die_capacity=0.0001Mb"], "and 1 a plane are 2 Mb, not 1 Mb"),
        (&["flash.die_capacity=16777215Tb"], "expected fewer than 2147483648"),
        (&["flash.die_capacity=128GB"], "found \"128GB\", expected a capacity in bits such as \"128Gb\""),
        (&["flash.die_capacity=0Gb"], "found \"0Gb\", expected a capacity in bits"),
        (&["flash.die_capacity=128"], "found 128, expected a capacity in bits"),
        (&["flash.oob_size=8k"], "expected at most the 4096 bytes of a page"),
        (&["capacity.user=1t"], "expected less than the 67108864 bytes (64 MiB) of flash"),
        (&["capacity.user=64m"], "found a user capacity of 67108864 bytes (64 MiB), expected less than"),
        (&["capacity.over_provisioning=0%"], "expected less than the 67108864 bytes"),
        (&["capacity.user=0"], "expected a user capacity of at least one mapping unit (4096 bytes)"),
        (&["capacity.user=4095"], "expected a user capacity of at least one mapping unit (4096 bytes)"),
        (&["capacity.over_provisioning=99999999%"], "expected a user capacity of at least one mapping unit"),
        (&["flash.blocks_per_plane=3"], "gc.free_blocks: the default is 3, expected fewer than the 3 blocks"),
    ] {
        let message = resolve(GOOD, sets).expect_err("impossible");
        assert!(message.contains(expected), "{message}\nis not\n{expected}");
    }
}

#[test]
fn the_controller_s_limits_are_refused_with_the_reason() {
    for (sets, expected) in [
        (
            &["interface.kind=sata", "interface.queue_depth=33"][..],
            "found 33, expected at most 32 commands in the queue (SATA NCQ)",
        ),
        (&["interface.kind=sata", "interface.queues=2"], "found 2, expected at most 1 queue (SATA)"),
        (&["interface.queue_depth=0"], "found 0, expected a whole number of at least 1"),
        (&["interface.queues=65535", "interface.queue_depth=65536"], "expected at most 1048576 commands"),
        (&["interface.bandwidth=10"], "expected at least 65536 bytes a second, or 0"),
        (&["interface.kind=scsi"], "found \"scsi\", expected nvme or sata"),
        (&["ftl.mapping_unit=8k"], "expected a power of two from 512 to 4096 bytes"),
        (&["ftl.mapping_unit=1536"], "expected a power of two from 512 to 4096 bytes"),
        (&["ftl.allocation=cwd"], "an order of channel, way, die and plane"),
        (&["ftl.allocation=ccdp"], "an order of channel, way, die and plane"),
        (&["ftl.allocation=round-robin:"], "an order of channel, way, die and plane"),
        (&["ftl.streams=0"], "found 0, expected a whole number from 1 to 256"),
        (&["ftl.separate_gc_frontier=yes"], "found \"yes\", expected true or false"),
        (&["gc.free_blocks=1"], "found 1, expected a whole number of at least 2"),
        (&["gc.free_blocks=64"], "expected fewer than the 64 blocks of a plane"),
        (&["gc.background_free_blocks=3"], "expected more than gc.free_blocks (3), or 0"),
        (&["gc.copyback=true"], "flash.copyback = true"),
        (&["flash.faults.program_failure=1.5"], "found 1.5, expected a probability from 0 to 1"),
        (&["flash.faults.program_failure=nan"], "expected a probability"),
        (&["flash.faults.endurance=0"], "found 0, expected a whole number of at least 1"),
        (
            &["flash.faults.script=[{kind=\"program\", block=512}]"],
            "flash.faults.script[0].block: found 512, expected a whole number from 0 to 511",
        ),
        (&["flash.faults.script=[{kind=\"burn\", block=5}]"], "expected read, program, erase, factory or die"),
        (&["flash.faults.script=[{block=5}]"], "flash.faults.script[0].kind: missing"),
        (
            &["flash.scheduler=lifo"],
            "expected fifo, reads-first, host-first, single-fifo or in-order; did you mean 'fifo'?",
        ),
        (&["name=a/b"], "expected a name of 1 to 100 characters"),
    ] {
        let message = resolve(GOOD, sets).expect_err("beyond a limit");
        assert!(message.contains(expected), "{message}\nis not\n{expected}");
    }
}

#[test]
fn unknown_policies_list_the_known_ones() {
    for (set, known) in [
        ("gc.victim=gredy", "did you mean 'greedy'?"),
        ("buffer.policy=mru", "expected none, "),
        ("ftl.design=pages", "did you mean 'page'?"),
    ] {
        let message = set_message(set);
        assert!(message.contains(known), "{message}\nis not\n{known}");
    }
    let message = set_message("buffer.policy=lru");
    assert!(message.contains("buffer.size: missing, expected a size"), "{message}");
    let message = resolve(GOOD, &["buffer.policy=lru", "buffer.size=512"]).expect_err("too small");
    assert!(message.contains("expected at least one page (4096 bytes)"), "{message}");
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_place() {
    let message = message("channels = 2\nchips", "channels 2\nchips");
    assert!(message.starts_with("d.toml:3:"), "{message}");
    assert!(message.contains("not TOML"), "{message}");
    let twice = message_twice();
    assert!(twice.starts_with("d.toml:4:1: not TOML"), "{twice}");
    // Columns count characters, not bytes.
    let text = "name = \"été\" x";
    let message = resolve(text, &[]).expect_err("not TOML");
    assert!(message.starts_with("d.toml:1:14"), "{message}");
    // Nesting has an end.
    let deep = format!("flash = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(resolve(&deep, &[]).is_err());
}

fn message_twice() -> String {
    message("channels = 2\nchips", "channels = 2\nchannels = 2\nchips")
}

#[test]
fn files_that_are_missing_enormous_or_not_text_are_refused() {
    let folder = std::env::temp_dir().join(format!("ssdlab-description-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let load = |path: &std::path::Path| Description::load(path).expect_err("refused").to_string();
    let missing = folder.join("missing.toml");
    let message = load(&missing);
    assert!(message.contains("missing.toml: cannot be read:"), "{message}");
    assert!(load(&folder).contains("cannot be read:"));
    let binary = folder.join("binary.toml");
    std::fs::write(&binary, b"name = \"\xff\"").expect("written");
    assert!(load(&binary).contains("byte 8 is not text in UTF-8, expected a description"));
    let encoded = folder.join("encoded.toml");
    std::fs::write(&encoded, "name = \"a\"".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
        .expect("written");
    assert!(load(&encoded).contains("found text in UTF-16 (little-endian), expected a description in UTF-8"));
    let enormous = folder.join("enormous.toml");
    std::fs::write(&enormous, vec![b'#'; 2 << 20]).expect("written");
    assert!(load(&enormous).contains("found more than 1048576 bytes"));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn all_missing_keys_are_told_at_once() {
    let message = resolve("[flash]\nchannels = 2\n[gc]\nvictim = \"fifo\"\n", &[]).expect_err("most of it is missing");
    let expected: Vec<String> = [
        "chips_per_channel",
        "dies_per_chip",
        "planes_per_die",
        "pages_per_block",
        "page_size",
        "blocks_per_plane",
        "timing",
    ]
    .iter()
    .map(|key| format!("d.toml:1:1: flash.{key}: missing, expected "))
    .chain(["d.toml: capacity: missing, expected ".to_string()])
    .collect();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!((lines.len() - 1, *lines.last().expect("a line")), (expected.len(), "8 errors"), "{message}");
    for (line, start) in lines.iter().zip(&expected) {
        assert!(line.starts_with(start.as_str()), "{line}\ndoes not start with\n{start}");
    }

    let text = GOOD.replace("cell = \"slc\"\n", "timing = { read = \"20us\" }\n").replace("page_size = \"4k\"\n", "");
    let message = resolve(&text, &[]).expect_err("times and the page size are missing");
    for key in ["page_size", "timing.program", "timing.erase", "timing.transfer"] {
        assert!(message.contains(&format!("flash.{key}: missing")), "{message}");
    }
    assert!(!message.contains("timing.read"), "{message}");
    assert!(message.contains("such as \"4k\" or \"16k\"") && message.contains("tPROG"), "{message}");
}

/// Places and keys of a message of several errors, without the line that counts them.
fn in_lines(message: &str) -> Vec<String> {
    let lines: Vec<&str> = message.lines().collect();
    let (count, errors) = lines.split_last().expect("a line");
    assert_eq!(*count, format!("{} errors", errors.len()), "{message}");
    errors.iter().map(|line| line.splitn(3, ": ").take(2).collect::<Vec<_>>().join(": ")).collect()
}

/// A datasheet was copied with nine mistakes, and it took nine runs to find them.
#[test]
fn all_errors_are_told_at_once_in_the_order_of_the_file() {
    let text = r#"
name = "a/b"
chips = 4
[interface]
kind = "sata"
queues = 2
queue_depth = 64
[flash]
chanels = 8
chips_per_channel = 0
dies_per_chip = 1
planes_per_die = "two"
blocks_per_plane = 64
pages_per_block = 32
page_size = "4k"
cell = "plc"
timing = { tR = "50us", read = ["20us", 7], transfer = "400MT/s" }
[flash.faults]
script = [{ kind = "burn", block = 5 }, { block = 3, nht = 2 }]
[capacity]
user = "64 gb"
over_provisioning = "7"
[gc]
victim = "greedi"
choices = -1
"#;
    let message = resolve(text, &["ftl.streams=0", "buffer.sise=4k"]).expect_err("much of it is wrong");
    let expected = [
        "d.toml:2:8: name",
        "d.toml:3:1: chips",
        "d.toml:6:10: interface.queues",
        "d.toml:7:15: interface.queue_depth",
        "d.toml:9:1: flash.chanels",
        "d.toml:10:21: flash.chips_per_channel",
        "d.toml:12:18: flash.planes_per_die",
        "d.toml:16:8: flash.cell",
        "d.toml:17:12: flash.timing.tR",
        "d.toml:17:41: flash.timing.read[1]",
        "d.toml:17:56: flash.timing.transfer",
        "d.toml:19:20: flash.faults.script[0].kind",
        "d.toml:19:41: flash.faults.script[1].kind",
        "d.toml:19:54: flash.faults.script[1].nht",
        "d.toml:21:8: capacity.user",
        "d.toml:22:21: capacity.over_provisioning",
        "d.toml:24:10: gc.victim",
        "d.toml:25:11: gc.choices",
        "--set 'ftl.streams=0': ftl.streams",
        "--set 'buffer.sise=4k': buffer.sise",
    ];
    assert_eq!(in_lines(&message), expected, "{message}");
}

#[test]
fn rules_between_keys_are_told_beside_others_and_not_of_keys_that_are_wrong_themselves() {
    let sets = ["flash.oob_size=8k", "interface.kind=sata", "interface.queue_depth=33", "ftl.mapping_unit=8k"];
    let message = resolve(GOOD, &sets).expect_err("three rules");
    // What the chips are is not known without the size of their pages, so the mapping unit is not judged.
    let expected =
        ["--set 'flash.oob_size=8k': flash.oob_size", "--set 'interface.queue_depth=33': interface.queue_depth"];
    assert_eq!(in_lines(&message), expected, "{message}");
    let message = resolve(GOOD, &["gc.free_blocks=64", "capacity.user=1t", "buffer.policy=lru"]).expect_err("three");
    assert_eq!(in_lines(&message).len(), 3, "{message}");
    let message = resolve(GOOD, &["gc.free_blocks=1", "gc.background_free_blocks=1"]).expect_err("one");
    assert!(message.starts_with("--set 'gc.free_blocks=1'") && message.lines().count() == 1, "{message}");
}

#[test]
fn a_key_that_is_misspelt_is_not_missing_too() {
    for (from, to) in [
        ("channels = 2\nchips", "chanels = 2\nchips"),
        ("over_provisioning", "over_provisoning"),
        ("[capacity]", "[capacties]"),
        ("[flash]", "[flahs]"),
    ] {
        let message = message(from, to);
        assert!(message.contains("found an unknown key") && message.lines().count() == 1, "{message}");
    }
}

/// A quoted key with a point in it is one key, and looks like one of a table that is not there.
#[test]
fn an_unknown_key_that_reads_like_a_key_of_the_table_it_was_meant_for_is_told() {
    let text = GOOD.replace("[flash]", "\"flash.x\" = 1\n[flahs]");
    let message = resolve(&text, &[]).expect_err("it is wrong");
    assert!(message.contains("d.toml:2:1: flash.x: found an unknown key"), "{message}");
    let message = resolve("\"flash.x\" = 1\n[capacity]\nuser = \"1g\"\n", &[]).expect_err("there is no flash");
    assert!(message.starts_with("d.toml:1:1: flash.x: found an unknown key"), "{message}");
}

#[test]
fn text_that_is_no_description_is_told_a_hundred_errors() {
    let unknown: String = (0..40_000).map(|number| format!("key{number} = {number}\n")).collect();
    let entries = "{},".repeat(100_000);
    for text in [format!("{unknown}{GOOD}"), format!("{GOOD}[flash.faults]\nscript = [{entries}]\n")] {
        let message = resolve(&text, &[]).expect_err("it is wrong");
        assert_eq!(message.lines().count(), 101);
        assert!(message.ends_with("\n100 errors or more"));
    }
    let message = resolve(&format!("{unknown}{GOOD}"), &[]).expect_err("it is wrong");
    assert!(message.starts_with("d.toml:1:1: key0: "), "the first ones are told");
}

#[test]
fn a_cache_that_is_no_share_of_the_map_or_too_small_a_one_is_refused_with_the_numbers() {
    let dftl = |set: &str| resolve(GOOD, &["ftl.design=dftl", set]).expect_err("it is wrong");
    let expected =
        "expected a size of at least 16 bytes such as \"1m\", or a percentage above 0 and up to 100 such as \"20%\"";
    for value in ["0%", "0.0 %", "101%", "100.000000001%", "-5%", "abc%", "%", "1e1%", "7.1234567891%", "5 cows", "15"]
    {
        let found = if value == "15" { value.to_string() } else { format!("\"{value}\"") };
        let told = format!("--set 'ftl.map_cache={value}': ftl.map_cache: found {found}, {expected}");
        assert_eq!(dftl(&format!("ftl.map_cache={value}")), told);
    }
    assert!(dftl("ftl.map_cache=true").ends_with(&format!("found true, {expected}")));
    assert!(dftl("ftl.map_cache=4KB").contains("the unit has two readings"));
    // 13,653 units: 14 map pages of 4 KB.
    let small = resolve(GOOD, &["ftl.design=dftl", "ftl.map_cache=14%"]).expect("a share");
    let options = Options { seed: 1, contents: Contents::Nothing };
    let refused = Drive::new(&small, options).err().expect("a cache of one map page is refused");
    assert_eq!(
        refused.to_string(),
        "ftl.map_cache: 7.8 KiB of a map of 56 KiB holds 1 map page of 4 KiB: a command needs up to 2 at once, 8 KiB"
    );
    let in_file = format!("{GOOD}[ftl]\ndesign = \"dftl\"\nmap_cache = \"101%\"\n");
    let message = resolve(&in_file, &[]).expect_err("it is wrong");
    assert!(message.starts_with("d.toml:15:13: ftl.map_cache: found \"101%\", expected a size"), "{message}");
}

#[test]
fn an_error_of_a_section_names_the_override_in_it_if_there_is_one() {
    let message = |over_provisioning: &str, sets: &[&str]| {
        let text = GOOD.replace("20%", over_provisioning);
        let mut description = Description::parse(&text, "d.toml").expect("a description");
        sets.iter().for_each(|set| description.set(set).expect("a key"));
        let config = description.resolve().expect("a drive");
        let options = Options { seed: 1, contents: Contents::Nothing };
        let error = Drive::new(&config, options).err().expect("too little over-provisioning");
        assert_eq!(error.key, "capacity");
        description.place(&error).to_string()
    };
    let least = "capacity.over_provisioning=0.1%";
    let sets: [&[&str]; 2] = [&[least], &["capacity.over_provisioning=0.2%", least, "gc.victim=fifo"]];
    for sets in sets {
        let message = message("20%", sets);
        assert!(message.starts_with(&format!("--set '{least}': capacity: too little over-provisioning")), "{message}");
    }
    let message = message("0.1%", &["gc.victim=fifo"]);
    assert!(message.starts_with("d.toml:11:1: capacity: too little over-provisioning"), "{message}");
}
