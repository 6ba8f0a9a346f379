//! Logs as `nvme` and `smartctl` print them, whole and broken.

use proptest::prelude::*;
use ssdlab_measure::drive_log::{Snapshot, compare, whole_life};

fn parse(text: &str) -> Snapshot {
    Snapshot::parse("test", text).unwrap_or_else(|error| panic!("{error}"))
}

/// `nvme smart-log -o json` of nvme-cli 2, `nvme ocp smart-add-log -o json`, `nvme id-ctrl -o json`, shortened.
fn nvme(written: &str, media: (u64, u64), used: u64, hours: u64, serial: &str) -> String {
    format!(
        r#"{{
  "critical_warning":0, "temperature":311, "avail_spare":100, "spare_thresh":10, "percent_used":{used},
  "endurance_grp_critical_warning_summary":0, "data_units_read":81726351, "data_units_written":{written},
  "host_read_commands":1, "host_write_commands":2, "controller_busy_time":5, "power_cycles":9, "power_on_hours":{hours},
  "unsafe_shutdowns":1, "media_errors":0, "num_err_log_entries":0
}}
{{
  "Physical media units written":{{ "hi":{}, "lo":{} }},
  "Physical media units read":{{ "hi":0, "lo":5 }},
  "Max User data erase counts":31, "Min User data erase counts":12,
  "Endurance estimate":7000000000000000
}}
{{ "vid":5197, "sn":"{serial}   ", "mn":"A DRIVE", "tnvmcap":960197124096 }}"#,
        media.0, media.1
    )
}

#[test]
fn an_nvme_drive_tells_both_sides() {
    let before = parse(&nvme("1000000", (0, 1_000_000_000_000), 3, 100, "S1"));
    let after = parse(&nvme("1200000", (0, 1_256_000_000_000), 3, 124, "S1"));
    assert_eq!(before.serial.as_deref(), Some("S1"));
    assert_eq!(before.capacity, Some(960_197_124_096));
    let report = compare(&before, &after).expect("one drive");
    let ratio = report.amplification.expect("both are told");
    assert!((ratio.value - 256.0 / 102.4).abs() < 1e-9, "{}", ratio.value);
    assert!(ratio.least < ratio.value && ratio.value < ratio.most);
    assert_eq!(report.elapsed.map(|elapsed| elapsed.seconds), Some(24.0 * 3600.0));
    let left = report.life_left.expect("a drive that is used");
    // (7e15 - 1.256e12) / 2.5 bytes of the host's.
    assert!((left.host_bytes.expect("an estimate") - (7e15 - 1.256e12) / ratio.value).abs() < 1.0);
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn counts_are_read_in_every_way_in_which_the_tools_print_them() {
    for written in ["\"1,234,567\"", "1234567.0", "1.234567e6", "1234567"] {
        let snapshot = parse(&nvme(written, (0, 1), 0, 1, "S"));
        assert_eq!(snapshot.host_written.map(|host| host.bytes), Some(1_234_567 * 512_000), "{written}");
    }
    let wide = parse(&nvme("1", (1, 5), 0, 1, "S"));
    assert_eq!(wide.media_written.map(|media| media.bytes), Some((1 << 64) + 5));
    let newer = parse(r#"{"physical_media_units_written":{"hi":0,"lo":77},"endurance_estimate":"12"}"#);
    assert_eq!((newer.media_written.map(|media| media.bytes), newer.endurance), (Some(77), Some(12)));
}

#[test]
fn two_drives_and_counters_that_run_backwards_are_refused() {
    let one = parse(&nvme("1000", (0, 5_000_000_000), 3, 100, "S1"));
    let other = parse(&nvme("2000", (0, 6_000_000_000), 3, 101, "S2"));
    assert!(compare(&one, &other).expect_err("two drives").what.contains("'S1' and 'S2'"));
    let later = parse(&nvme("2000", (0, 6_000_000_000), 3, 101, "S1"));
    assert!(compare(&later, &one).expect_err("backwards").what.contains("ran backwards, from 101 to 100"));
    let reset = parse(&nvme("2000", (0, 1), 3, 101, "S1"));
    assert!(compare(&one, &reset).expect_err("backwards").what.contains("to the chips ran backwards"));
    let mixed = nvme("1", (0, 1), 1, 1, "S1") + r#"{"sn":"S2","mn":"A DRIVE"}"#;
    assert!(Snapshot::parse("x", &mixed).expect_err("two drives").what.contains("two drives"));
}

#[test]
fn a_drive_that_does_not_tell_gets_no_ratio_and_a_reason() {
    let log = |units: u64| format!(r#"{{"data_units_written":{units},"percent_used":1}}"#);
    let report = compare(&parse(&log(5)), &parse(&log(50))).expect("one drive");
    assert_eq!((report.amplification, report.host.map(|host| host.bytes)), (None, Some(45 * 512_000)));
    assert!(report.notes.iter().any(|note| note.contains("neither snapshot says")), "{:?}", report.notes);
    assert!(report.notes.iter().any(|note| note.contains("serial number")), "{:?}", report.notes);
    let nothing = compare(&parse(&nvme("5", (0, 9), 1, 1, "S")), &parse(&nvme("5", (0, 12), 1, 1, "S"))).expect("one");
    assert_eq!(nothing.amplification, None);
    assert!(nothing.notes.iter().any(|note| note.contains("the host wrote nothing")));
}

/// `smartctl -j -x` of an ATA drive, shortened.
fn smartctl(attributes: &[(u64, &str, u64, u64)], time: u64) -> String {
    let rows: Vec<String> = attributes
        .iter()
        .map(|(id, name, value, raw)| {
            format!(r#"{{"id":{id},"name":"{name}","value":{value},"raw":{{"value":{raw},"string":"{raw}"}}}}"#)
        })
        .collect();
    format!(
        r#"{{"json_format_version":[1,0],"smartctl":{{"version":[7,3],"exit_status":0}},"model_name":"ATA","serial_number":"A1",
            "user_capacity":{{"bytes":500107862016}},"logical_block_size":512,"local_time":{{"time_t":{time}}},
            "power_on_time":{{"hours":10}},"ata_smart_attributes":{{"revision":1,"table":[{}]}}}}"#,
        rows.join(",")
    )
}

#[test]
fn pages_programmed_for_the_host_and_for_anything_else_give_the_ratio() {
    let log = |host, other, time| {
        parse(&smartctl(
            &[
                (202, "Percent_Lifetime_Remain", 93, 7),
                (246, "Total_LBAs_Written", 100, host * 8),
                (247, "Host_Program_Page_Count", 100, host),
                (248, "FTL_Program_Page_Count", 100, other),
            ],
            time,
        ))
    };
    let report = compare(&log(1000, 500, 1_700_000_000), &log(3000, 3500, 1_700_003_600)).expect("one drive");
    assert_eq!(report.amplification.map(|ratio| ratio.value), Some(2.5));
    assert_eq!(report.host.map(|host| host.bytes), Some(2000 * 8 * 512));
    assert_eq!(report.percent_used, Some((7.0, 7.0)));
    assert_eq!(report.elapsed.map(|elapsed| elapsed.seconds), Some(3600.0));
}

#[test]
fn the_same_number_counts_what_its_name_says() {
    let read = |attributes: &[(u64, &str, u64, u64)]| parse(&smartctl(attributes, 1));
    // Intel: 32 MiB and GiB.
    let intel = read(&[
        (241, "Host_Writes_32MiB", 100, 64),
        (249, "NAND_Writes_1GiB", 100, 5),
        (233, "Media_Wearout_Indicator", 97, 0),
    ]);
    assert_eq!(intel.host_written.map(|host| (host.bytes, host.unit)), Some((2 << 30, 32 << 20)));
    assert_eq!(intel.lifetime_amplification(), Some(2.5));
    assert_eq!(intel.percent_used, Some(3.0));
    // SandForce: 233 is what went to the chips.
    let sandforce =
        read(&[(241, "Lifetime_Writes_GiB", 0, 10), (233, "Flash_Writes_GiB", 0, 7), (231, "SSD_Life_Left", 99, 1)]);
    assert_eq!(sandforce.lifetime_amplification(), Some(0.7));
    // SanDisk: two kinds of cells.
    let sandisk = read(&[
        (241, "Total_Writes_GB", 253, 10),
        (233, "NAND_GB_Written_TLC", 100, 12),
        (234, "NAND_GB_Written_SLC", 100, 18),
    ]);
    assert_eq!(sandisk.lifetime_amplification(), Some(3.0));
    // Samsung: only the host's.
    let samsung = read(&[(241, "Total_LBAs_Written", 99, 2000), (177, "Wear_Leveling_Count", 98, 31)]);
    assert_eq!((samsung.host_written.map(|host| host.bytes), samsung.media_written), (Some(1_024_000), None));
    assert_eq!((samsung.erases.1, samsung.percent_used), (Some(31), Some(2.0)));
    // A name that the database does not have is no unit.
    let unknown = read(&[(249, "Unknown_Attribute", 100, 5), (241, "Total_LBAs_Written", 99, 2000)]);
    assert_eq!(unknown.media_written, None);
    assert!(unknown.notes.iter().any(|note| note.contains("249")));
}

#[test]
fn smartctl_of_an_nvme_drive_and_of_none() {
    let text = r#"{"json_format_version":[1,0],"smartctl":{"exit_status":0},"model_name":"N","serial_number":"N1",
        "nvme_smart_health_information_log":{"critical_warning":0,"available_spare":99,"percentage_used":4,
        "data_units_written":18014398509481984,"data_units_written_s":"18014398509481985"},"power_on_time":{"hours":7}}"#;
    let snapshot = parse(text);
    assert_eq!(snapshot.host_written.map(|host| host.bytes), Some(18_014_398_509_481_985 * 512_000));
    assert_eq!((snapshot.percent_used, snapshot.power_on_hours), (Some(4.0), Some(7)));
    let failed = r#"{"json_format_version":[1,0],"smartctl":{"exit_status":2,"messages":[{"string":"/dev/sdz: Unable to detect device type","severity":"error"}]}}"#;
    assert!(Snapshot::parse("x", failed).expect_err("no data").what.contains("Unable to detect device type"));
}

/// `smartctl -j -x` of a SAS drive, shortened.
fn sas(hours: u64, used: u64, written: &str) -> String {
    format!(
        r#"{{"json_format_version":[1,0],"smartctl":{{"version":[7,3],"argv":["smartctl","-j","-x","/dev/sdb"],"exit_status":0}},
            "device":{{"name":"/dev/sdb","type":"scsi","protocol":"SCSI"}},"model_name":"MAKER SASSSD800","serial_number":"SN1",
            "user_capacity":{{"blocks":1562824368,"bytes":800166076416}},"logical_block_size":512,"rotation_rate":0,
            "power_on_time":{{"hours":{hours},"minutes":12}},"scsi_percentage_used_endurance_indicator":{used},
            "scsi_error_counter_log":{{"read":{{"gigabytes_processed":"5000.250","total_uncorrected_errors":0}},
                                       "write":{{"gigabytes_processed":{written},"total_uncorrected_errors":0}}}}}}"#
    )
}

#[test]
fn a_sas_drive_tells_the_host_s_side_and_its_life() {
    let (before, after) = (parse(&sas(1000, 3, "\"2000.500\"")), parse(&sas(1100, 4, "\"2600.750\"")));
    assert_eq!((before.serial.as_deref(), before.capacity), (Some("SN1"), Some(800_166_076_416)));
    let report = compare(&before, &after).expect("one drive");
    assert_eq!(report.host.map(|host| (host.bytes, host.unit)), Some((600_250_000_000, 1_000_000)));
    assert_eq!(report.elapsed.map(|elapsed| elapsed.seconds), Some(360_000.0));
    assert_eq!(report.percent_used, Some((3.0, 4.0)));
    assert_eq!((report.media, report.amplification), (None, None));
    assert!(report.notes.iter().any(|note| note.contains("neither snapshot says")), "{:?}", report.notes);
    let what = |text: &str| Snapshot::parse("x", text).expect_err("no log").what;
    let lots = what(&sas(1, 1, "\"lots\""));
    assert!(lots.contains("scsi_error_counter_log.write.gigabytes_processed is \"lots\""), "{lots}");
    let disk = what(r#"{"smartctl":{"exit_status":0},"device":{"protocol":"SCSI"},"power_on_time":{"hours":5}}"#);
    assert!(disk.contains("a SCSI drive has neither scsi_error_counter_log"), "{disk}");
}

#[test]
fn what_is_no_log_is_refused_with_its_place() {
    let what = |text: &str| Snapshot::parse("x", text).expect_err("no log").what;
    assert!(what("").contains("empty"));
    assert!(what("hello").contains("line 1 column 1"), "{}", what("hello"));
    assert!(what("{\"data_units_written\":1}\n{\"data_units_written\":").contains("EOF"));
    assert!(
        what("{\"data_units_written\":1}\n\n{\"name\":1}").contains("line "),
        "{}",
        what("{\"data_units_written\":1}\n\n{\"name\":1}")
    );
}

/// A key that is there and holds no count is a broken log, not a drive that does not tell.
#[test]
fn what_is_no_count_is_refused_with_its_key_and_line() {
    let what = |text: &str| Snapshot::parse("x", text).expect_err("no count").what;
    for value in ["\"lots\"", "-5", "[1]", "1e60", "true"] {
        let text = format!("{{\"sn\":\"S\",\"mn\":\"M\"}}\n\n {{\"data_units_written\":{value}}}");
        let what = what(&text);
        assert!(what.starts_with("line 3 ") && what.contains("data_units_written is"), "{value}: {what}");
    }
    let halves = what(r#"{"Physical media units written":{"hi":1}}"#);
    assert!(halves.contains("Physical media units written is {\"hi\":1}"), "{halves}");
    // More bytes than 128 bits hold, more hours than 64.
    assert!(what(&format!("{{\"data_units_written\":\"{}\"}}", u128::MAX)).contains("more than any drive"));
    assert!(what(&format!("{{\"data_units_written\":1,\"power_on_hours\":\"{}\"}}", u128::MAX)).contains("hours"));
    let attribute = smartctl(&[(241, "Total_LBAs_Written", 99, 5)], 1).replace("\"value\":5", "\"value\":\"n/a\"");
    assert!(what(&attribute).contains("attribute 241 (Total_LBAs_Written) is \"n/a\""));
    // What is not read may be anything, and what is null is not told.
    let unread = smartctl(&[(9, "Power_On_Hours", 99, 5)], 1).replace("\"value\":5", "\"value\":\"n/a\"");
    assert_eq!(parse(&unread).host_written, None);
    assert_eq!(parse(r#"{"data_units_written":7,"percent_used":null}"#).percent_used, None);
}

#[test]
fn a_document_that_is_there_twice_says_the_same_once() {
    let log = smartctl(
        &[
            (241, "Host_Writes_GiB", 100, 10),
            (233, "NAND_GB_Written_TLC", 100, 12),
            (234, "NAND_GB_Written_SLC", 100, 18),
        ],
        1,
    );
    let twice = parse(&format!("{log}\n{log}"));
    assert_eq!(twice.media_written.map(|media| media.bytes), Some(30_000_000_000));
    assert_eq!(twice.lifetime_amplification(), parse(&log).lifetime_amplification());
}

#[test]
fn one_snapshot_is_the_drive_s_whole_life() {
    let report = whole_life(&parse(&nvme("1000000", (0, 1_024_000_000_000), 3, 100, "S1"))).expect("a snapshot");
    assert_eq!(report.amplification.map(|ratio| ratio.value), Some(2.0));
    assert_eq!(report.elapsed.map(|elapsed| elapsed.seconds), Some(360_000.0));
    let silent = whole_life(&parse(r#"{"data_units_written":7}"#)).expect("a snapshot");
    assert!(silent.notes.iter().any(|note| note.starts_with("the snapshot does not say")), "{:?}", silent.notes);
    assert!(!silent.notes.iter().any(|note| note.contains("neither") || note.contains("trust")), "{:?}", silent.notes);
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in "[\\PC\\n]{0,200}", cut in 0_usize..900) {
        let _ = Snapshot::parse("x", &text);
        let whole = nvme("1000", (u64::MAX, u64::MAX), 300, u64::MAX, "S");
        let cut: String = whole.chars().take(cut).collect();
        let one = Snapshot::parse("x", &cut);
        let two = Snapshot::parse("x", &whole.replace("1000", "18446744073709551615"));
        if let (Ok(one), Ok(two)) = (one, two) {
            let _ = compare(&one, &two);
            let _ = compare(&two, &one);
        }
    }
}
