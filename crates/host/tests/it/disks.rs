//! Disks below layers: how they are described, what survives, and what is refused.

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Loss, Member, MemberConfig, Names, UnknownDrive};

const DISK: &str = "[disk]\nheads = 2\nzones = [{ cylinders = 10, sectors = 50 }]\n[disk.seek]\nsettle = \"1ms\"\nknee = \"2ms\"\n\
                    full_stroke = \"3ms\"\n";

struct OneDisk;

impl Names for OneDisk {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        Err(UnknownDrive(format!("'{name}' is no drive here")))
    }

    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        match name {
            "small" => Ok((DISK.to_string(), "small".to_string())),
            name => Err(UnknownDrive(format!("'{name}' is no disk here"))),
        }
    }
}

fn host(text: &str) -> Host {
    Host::parse_with(text, "h.toml", &OneDisk).unwrap_or_else(|error| panic!("{error}"))
}

fn drive() -> DriveConfig {
    crate::stacks::drive(3)
}

fn build(host: &Host) -> Box<dyn Device> {
    let options = Options { seed: 1, contents: Contents::Stamps };
    let member = |(name, config): (String, MemberConfig)| Member::fresh(&name, &config, options).expect("a member");
    host.build(host.members(&drive()).into_iter().map(member).collect()).expect("a stack")
}

/// Sends one command and waits for its end: how it ended, and what it read.
fn ask(device: &mut dyn Device, request: Request, stamp: u64) -> (Status, Vec<u64>) {
    device.submit(&Request { at: device.now(), tag: 7, ..request }, Data::Stamp(stamp));
    assert!(device.wait_for_completion(Nanos::HORIZON), "{request:?} ends");
    let status = device.completions().remove(0).status;
    let read = std::mem::take(device.read_data()).into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<u8>>();
    let (cells, _) = read.as_chunks::<8>();
    (status, cells.iter().map(|cell| u64::from_le_bytes(*cell)).collect())
}

#[test]
fn a_disk_is_a_member_with_a_name_and_only_the_size_that_is_asked_for() {
    let text = "[[layer]]\nkind = \"stripe\"\nchunk = \"4k\"\nbelow = [{ disk = \"small\", size = \"64k\" }, {}, { disk = \"small\" }]\n";
    let host = host(text);
    let names: Vec<String> = host.members(&drive()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["small.0", &format!("{}.1", drive().name), "small.2"]);
    assert_eq!(host.drives(&drive()).len(), 1);
    assert!(host.has_disks() && host.named_after().is_none() && !host.is_transparent());
    let device = build(&host);
    let disks: Vec<(String, u64)> =
        device.disks().into_iter().map(|part| (part.name, part.device.sectors() * SECTOR_BYTES)).collect();
    assert_eq!(disks, [("small.0".to_string(), 64 << 10), ("small.2".to_string(), 1000 * SECTOR_BYTES)]);
    assert_eq!((device.members(), device.drives().len()), (3, 1));
    let alone = self::host("[[layer]]\nkind = \"scheduler\"\nbelow = [{ disk = \"small\" }]\n");
    assert_eq!(alone.named_after().as_deref(), Some("small"));
}

#[test]
fn what_was_flushed_survives_each_cut_and_what_was_not_may_go() {
    let host = host("[[layer]]\nkind = \"mirror\"\nregion = \"4k\"\nbelow = [{ disk = \"small\" }, {}]\n");
    let mut device = build(&host);
    assert_eq!(ask(&mut *device, Request::new(Op::Write, 8, 2), 5).0, Status::Success);
    assert_eq!(ask(&mut *device, Request::new(Op::Flush, 0, 0), 0).0, Status::Success);
    for (lost, member) in [0, 1, 0].into_iter().enumerate() {
        let loss = device.cut(member, &mut |_| None);
        // The other side has what the first one has lost, and may be alone in having it later.
        assert!(member > 0 || loss == Loss::Nothing || lost > 0, "{loss:?}");
        device.completions().clear();
        let (status, read) = ask(&mut *device, Request::new(Op::Read, 7, 4), 0);
        assert_eq!((status, read.len()), (Status::Success, 4));
        assert!(read[0] == 0 && read[1] != 0 && read[2] != 0 && read[3] == 0, "{read:x?}");
    }
    assert!(device.check().iter().all(|(_, check)| check.passed));
}

#[test]
fn a_stack_with_a_disk_refuses_trims_and_writes_of_zeroes() {
    for layers in
        ["kind = \"scheduler\"\n", "kind = \"stripe\"\nchunk = \"4k\"\n", "kind = \"page-cache\"\nram = \"64k\"\n"]
    {
        let mut device = build(&host(&format!("[[layer]]\n{layers}below = [{{ disk = \"small\" }}]\n")));
        assert!(!device.trims(), "{layers}");
        for op in [Op::Trim, Op::WriteZeroes] {
            assert_eq!(ask(&mut *device, Request::new(op, 0, 8), 0).0, Status::Unsupported, "{layers}: {op:?}");
        }
        assert_eq!(ask(&mut *device, Request::new(Op::Write, 0, 8), 1).0, Status::Success, "{layers}");
    }
}

#[test]
fn a_disk_without_time_answers_at_once_and_keeps_what_it_was_given() {
    let mut device = build(&host("[[layer]]\nkind = \"scheduler\"\nbelow = [{ disk = \"small\" }]\n"));
    assert_eq!(ask(&mut *device, Request::new(Op::Write, 0, 8), 9).0, Status::Success);
    device.set_timed(false);
    let before = device.now();
    assert_eq!(ask(&mut *device, Request::new(Op::Write, 500, 8), 10).0, Status::Success);
    assert_eq!(device.now(), before);
    device.set_timed(true);
    device.reset_statistics();
    assert_eq!((device.now(), device.disks()[0].device.counters().commands), (Nanos::ZERO, [0; 4]));
    let (_, read) = ask(&mut *device, Request::new(Op::Read, 0, 8), 0);
    let (_, later) = ask(&mut *device, Request::new(Op::Read, 500, 8), 0);
    assert!(read.iter().chain(&later).all(|cell| *cell != 0), "{read:x?} {later:x?}");
    assert!(device.now() > Nanos::ZERO);
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let refused = |below: &str| {
        let text = format!("[[layer]]\nkind = \"scheduler\"\nbelow = [{below}]\n");
        Host::parse_with(&text, "h.toml", &OneDisk).expect_err("it is wrong").to_string()
    };
    for (below, expected) in [
        (
            "{ disk = \"big\" }",
            "h.toml:3:19: layer[0].below[0].disk: found \"big\", expected the name of a disk that ships",
        ),
        (
            "{ disk = \"small\", size = \"1m\" }",
            "below[0].size: found \"1m\", expected at most the 512000 bytes of the disk",
        ),
        ("{ disk = \"small\", size = 100 }", "below[0].size: found 100, expected"),
        ("{ disk = \"small\", drive = \"x\" }", "below[0].drive: found \"x\", expected either drive or disk, not both"),
        ("{ size = \"1k\" }", "below[0].size: found \"1k\", expected nothing: only a disk has it"),
        (
            "{ disk = \"small\", set = [\"disk.rpm=1\"] }",
            "below[0].set[0]: found \"disk.rpm=1\", expected a valid disk (",
        ),
    ] {
        let found = refused(below);
        assert!(found.contains(expected), "{below}: {found}");
    }
    let shrd = host("[[layer]]\nkind = \"shrd\"\nbelow = [{ disk = \"small\" }]\n");
    let refused = shrd.sectors(&drive()).expect_err("no such commands").to_string();
    assert!(refused.contains("a disk"), "{refused}");
}

#[test]
fn what_a_layer_sent_and_what_its_disk_ended_agree_at_every_event() {
    let mut device = build(&host("[[layer]]\nkind = \"scheduler\"\nbelow = [{ disk = \"small\" }]\n"));
    for number in 0..20 {
        let request = Request { at: device.now(), tag: number, ..Request::new(Op::Write, u64::from(number) * 40, 8) };
        device.submit(&Request { fua: number % 2 == 0, ..request }, Data::Stamp(u64::from(number) + 1));
    }
    let mut in_flight = 0;
    while let Some(at) = device.next_event() {
        device.run_until(at);
        device.completions().clear();
        let layer = device.layers().remove(0);
        assert_eq!(layer.sent, layer.below, "at {at}");
        in_flight += u64::from(device.disks()[0].device.counters().commands[1] > layer.below.requests[1]);
    }
    assert!(in_flight > 10 && device.outstanding() == 0, "{in_flight}");
}
