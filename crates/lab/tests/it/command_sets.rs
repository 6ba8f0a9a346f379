//! Runs of drives with commands of their own: from a trace, through a host layer, verified, counted by name.

use std::sync::atomic::AtomicBool;

use ssdlab_device::{DriveConfig, Settings};
use ssdlab_host::Host;
use ssdlab_lab::{Control, Experiment, NoProgress, Preconditioning, WorkloadSource};
use ssdlab_workload::replay::{ReplaySettings, TraceReplay};
use ssdlab_workload::trace::Trace;
use ssdlab_workload::{Workload, WorkloadError};

use crate::common::{assert_checks_hold, drive, duts, experiment, run};

struct Text(String);

impl WorkloadSource for Text {
    fn open(&self, drive: &DriveConfig, _pass: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let trace = Trace::from_bytes("commands", "format=csv", self.0.clone().into_bytes())?;
        Ok(Box::new(TraceReplay::new(trace, ReplaySettings::default(), drive.user_bytes / 512)?))
    }

    fn identity(&self) -> String {
        self.0.clone()
    }

    fn is_uniform_overwrites(&self, _drive: &DriveConfig) -> bool {
        false
    }
}

/// Neighbouring tagged writes at one instant, reads of what has tags and what has none, a refusal, and events.
fn commands() -> Text {
    let mut text = String::new();
    for round in 0..50_u64 {
        let at = round * 20_000;
        for unit in 0..8_u64 {
            text += &format!("{at},tags:write-tagged,{},4096,{}\n", unit * 4096, round + 1);
        }
        text += &format!("{},tags:read-tagged,0,32768\n", at + 10_000);
        text += &format!("{},tags:read-tagged,1048576,4096\n", at + 10_000);
        text += &format!("{},tags:write-tagged,0,4096,0\n", at + 10_000);
        text += &format!("{},tags:find-tag,0,0,{}\n", at + 12_000, round + 1);
        text += &format!("{},R,0,65536\n", at + 12_000);
    }
    text += "2000000,tags:clear-tags,0,0\n";
    text += "2000000,F,0,0\n";
    Text(text)
}

fn tagged(name: &str) -> DriveConfig {
    let mut config = drive(name);
    config.ftl.design = "tagged".to_string();
    config
}

#[test]
fn commands_of_a_trace_are_executed_verified_and_counted_by_name() {
    let drives = duts(&[tagged("tagged")]);
    let workload = commands();
    let plain = run(&experiment(&drives, &workload, Preconditioning::None));
    let verified = run(&Experiment { verify: true, ..experiment(&drives, &workload, Preconditioning::None) });
    assert_checks_hold(&plain);
    assert_checks_hold(&verified);
    for device in [&plain.devices[0], &verified.devices[0]] {
        let commands = device.commands.as_ref().expect("the drive has a set");
        let count = |name: &str| {
            let count = &commands.by_name[name];
            (count.completed, count.refused, count.failed)
        };
        assert_eq!(commands.set, "tags");
        assert_eq!(count("write-tagged"), (450, 50, 50));
        assert_eq!(count("read-tagged"), (100, 0, 50));
        assert_eq!((count("find-tag"), count("clear-tags"), count("acknowledge")), ((50, 0, 0), (1, 0, 0), (0, 0, 0)));
        // Each round but the first replaces eight tags; clearing is told without an acknowledgement.
        assert_eq!((commands.events, commands.events_unacknowledged), (8 * 49 + 1, 8 * 49));
    }
    assert_eq!(plain.devices[0].latency_ns, verified.devices[0].latency_ns, "contents change no time");
}

#[test]
fn a_scheduler_joins_what_the_set_lets_it_join_and_gives_each_its_answer() {
    let drives = duts(&[tagged("tagged")]);
    let host = Host::parse("[[layer]]\nkind = \"scheduler\"\ndepth = 1\n", "host.toml").expect("a host");
    let workload = commands();
    let through = || Experiment { host: Some(&host), ..experiment(&drives, &workload, Preconditioning::None) };
    let result = run(&Experiment { verify: true, ..through() });
    assert_checks_hold(&result);
    let device = &result.devices[0];
    let layer = &device.host_layers[0];
    // The first of eight goes at once; of the seven behind it six are joined to the next.
    assert_eq!(layer.figures["merged_requests"], 50.0 * 6.0);
    let commands = device.commands.as_ref().expect("the drive has a set");
    assert_eq!(commands.by_name["write-tagged"].completed, 50 * 2 + 50);
    assert_eq!(commands.by_name["find-tag"].failed, 0, "every unit has the tag of its round");
    assert_eq!(commands.events, 8 * 49 + 1, "tags follow one another as the requests did");
}

#[test]
fn a_drive_without_the_set_is_refused_and_so_is_preconditioning_with_it() {
    let workload = commands();
    let stop = AtomicBool::new(false);
    let refused = |drives: &[DriveConfig], preconditioning: Preconditioning<'_>| {
        let drives = duts(drives);
        ssdlab_lab::run(&experiment(&drives, &workload, preconditioning), None, &Control::new(&stop, &NoProgress))
            .expect_err("refused")
            .to_string()
    };
    let error = refused(&[drive("plain")], Preconditioning::None);
    assert!(error.contains("plain") && error.contains("'tags'") && error.contains("block I/O only"), "{error}");
    let error = refused(&[tagged("tagged")], Preconditioning::Workload(&workload));
    assert!(error.contains("preconditioning sends block I/O only"), "{error}");
}

/// The model of `--verify` ends with the capacity, and SHRD's log lies behind it.
#[test]
fn commands_that_move_units_are_refused_under_verify() {
    let mut config = drive("shrd");
    config.ftl.design = "shrd".to_string();
    config.ftl.own = Settings::default().with("rwlb", 131_072_u64);
    let workload = Text(format!("0,shrd:twrite-data,{},4096\n", config.user_bytes));
    let drives = duts(&[config]);
    let stop = AtomicBool::new(false);
    let verified = Experiment { verify: true, ..experiment(&drives, &workload, Preconditioning::None) };
    let error = ssdlab_lab::run(&verified, None, &Control::new(&stop, &NoProgress)).expect_err("refused").to_string();
    assert!(error.contains("the set 'shrd'") && error.contains("without --verify"), "{error}");
}
