//! What is read, what is refused, and in which words.

use std::collections::BTreeSet;
use std::process::Command;

use proptest::prelude::*;
use ssdlab_base::Nanos;
use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_workload::fio::{FioJob, KEYS, Support, Variables, is_spec};
use ssdlab_workload::{Next, Workload};

use crate::fio_support::{self, jobs, refused, spec};

const GIB: u64 = 1 << 30;

fn refused_file(text: &str) -> String {
    let error = FioJob::parse_text(text, "jobs.fio").and_then(|job| job.generator(GIB, 1).map(|_| ()));
    error.expect_err(text).to_string()
}

#[test]
fn a_job_file_is_read_with_globals_comments_and_bare_keys() {
    let text = "; a comment\n# another\n[global]\nbs=8k ; inline\niodepth=4\ntime_based\nruntime=10\n\n\
                [ first ]\nrw=randwrite # inline\nsize=25%\n\n[global]\niodepth=2\n[second]\nreadwrite=read\ntime_based=0\n";
    let workload = jobs(text, GIB, 1);
    assert_eq!(
        workload.describe(),
        "first: 8 KiB randwrite, every block once a pass, depth 4, 256 MiB from 0 B, for 10.0 s\n\
         second: 8 KiB read, depth 2, 1 GiB from 0 B, 1 GiB in all, at most 10.0 s"
    );
    assert_eq!(workload.jobs(), 2);
    assert_eq!(workload.depth_max(), 6);
}

#[test]
fn a_line_goes_on_with_numbers_behind_a_comma() {
    let workload = spec("rw=randrw,bs=4k,16k,rwmixwrite=30,iodepth=2,norandommap", GIB, 1);
    assert_eq!(
        workload.describe(),
        "job: 4 KiB reads, 16 KiB writes randrw (70% reads), depth 2, 1 GiB from 0 B, 1 GiB in all"
    );
    let workload = spec("rate=,1m,rw=write,name=log", GIB, 1);
    assert_eq!(
        workload.describe(),
        "log: 4 KiB write, depth 1, 1 GiB from 0 B, 1 GiB in all, at 1 MiB / 1 MiB a second"
    );
}

#[test]
fn a_specification_is_told_from_a_path() {
    assert!(is_spec("rw=randwrite"));
    assert!(is_spec("bs=4k, readwrite=read"));
    assert!(!is_spec("jobs/randrw.fio"));
    assert!(!is_spec("format=msr:trace.csv"));
    assert!(!is_spec("iodepth=4"));
}

#[test]
fn errors_name_file_line_key_found_and_expected() {
    assert_eq!(
        refused_file("[a]\nrw=read\nbs=4q\n"),
        "jobs.fio:3: key 'bs': found '4q', expected a block size such as 4k or 4k,8k,16k (a positive multiple of 512)"
    );
    assert_eq!(
        refused_file("[a]\nrw=read\nsize=2g\n"),
        "jobs.fio:3: job 'a': 'size=2g': 2147483648 bytes from byte 0 end beyond the drive's user capacity of 1073741824 bytes; \
         expected at most 1073741824, or a share such as size=100%"
    );
    assert_eq!(
        refused_file("[a]\niodept=4\n"),
        "jobs.fio:2: found 'iodept', which is no key of fio; did you mean 'iodepth'?"
    );
    assert!(refused_file("bs=4k\n").contains("jobs.fio:1: found 'bs=4k' before any section"));
    assert!(refused_file("[global]\nbs=4k\n").contains("found no job"));
    assert!(refused_file("").contains("found no job"));
    assert!(refused_file("[a\nrw=read\n").contains("jobs.fio:1: found '[a', expected a section"));
    assert!(refused_file("[a]\ninclude other.fio\n").contains("'include' is known to fio, not supported by ssdlab"));
    assert!(refused("rw=randwrite,bs=0").contains("workload 'rw=randwrite,bs=0': key 'bs': found '0'"));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    for (text, part) in [
        ("rw=sideways", "expected read, write"),
        ("rw=", "found ''"),
        ("rw", "found no value"),
        ("rw=write,bs=1000", "expected a positive multiple of 512"),
        ("rw=write,bs=4kib", "write 4k"),
        ("rw=write,bs=1.5k", "found '1.5k'"),
        ("rw=write,bs=8k,size=4k", "smaller than the smallest block"),
        ("rw=write,bsrange=4k-1m,size=512k", "does not fit into the job's region"),
        ("rw=write,bssplit=4k/50:8k/40", "add up to 100"),
        ("rw=write,bssplit=4k/50:8k/50,bsrange=4k-8k", "contradicts bsrange"),
        ("rw=randread,ba=1000", "multiple of 512"),
        ("rw=write,size=some", "0 is the rest of the drive"),
        ("rw=write,size=101%", "up to 100%"),
        ("rw=write,io_size=some", "0 is the region"),
        ("rw=read:-4k,size=1000000", "multiple of 512"),
        ("rw=write,offset=1g", "the drive's user capacity is"),
        ("rw=write,offset=100", "multiple of 512"),
        ("rw=write,offset_increment=512m,numjobs=3,size=1m", "clone 2 starts at"),
        ("rw=write,iodepth=0", "from 1 to"),
        ("rw=write,numjobs=0", "from 1 to"),
        ("rw=write,iodepth=65536,numjobs=4096", "lower iodepth or numjobs"),
        ("rw=write,time_based", "needs a runtime"),
        ("rw=write,runtime=ten", "a bare number is seconds"),
        ("rw=write,rate=1m,rate_iops=100", "contradicts rate_iops"),
        ("rw=write,rate_process=poisson", "needs rate"),
        ("rw=write,thinktime_blocks=4", "needs a thinktime"),
        ("rw=write,fsync=4,fdatasync=8", "contradicts fsync"),
        ("rw=randrw,rwmixread=101", "from 0 to 100"),
        ("rw=randread:0", "after the colon"),
        ("rw=read:100", "multiple of 512"),
        ("rw=read:2g", "not smaller than the job's region"),
        ("rw=trimwrite:8", "expected no number after the colon"),
        ("rw=randread,random_distribution=zipf:0", "theta above 0"),
        ("rw=randread,random_distribution=zipf:1.2:2", "center from 0 to 1"),
        ("rw=randread,random_distribution=zipf:1.2:0.1:3", "zipf:THETA"),
        ("rw=randread,random_distribution=pareto:1", "between 0 and 1"),
        ("rw=randread,random_distribution=normal:100", "below 100"),
        ("rw=randread,random_distribution=zoned:50/50:40/50", "add up to 100"),
        ("rw=randread,random_distribution=zoned_abs:50/1g:50/1g", "ends beyond the region"),
        ("rw=read,filename=/dev/sda:/dev/sdb", "one file name"),
        ("rw=read,write_hint=eternal", "one of none, short"),
        ("rw=read,startdelay=10-5", "smaller end first"),
        ("rw=read,size=${SIZE}", "found '${SIZE}', a variable without a value: give it with --env SIZE=VALUE"),
        ("rw=read,iodepth=$ncpus", "the number of processors of the machine"),
        ("rw=read,bs=4*$pagesize", "write the number, or a variable such as ${PAGESIZE}"),
        ("rw=read,size=$mb_memory", "the megabytes of memory"),
        ("rw=read,bs=(4*1024)", "arithmetic is known to fio"),
        ("rw=read,verify=crc32c", "'verify=crc32c' is known to fio, not supported by ssdlab"),
        ("rw=read,do_verify=1", "known to fio, not supported"),
        ("rw=read,read_iolog=x.log", "give the log itself"),
        ("rw=read,zonemode=zbd", "needs a zonesize"),
        ("rw=read,zonemode=striped", "one of none, strided, zbd"),
        ("rw=read,zonemode=strided", "strided needs a zonesize above 0"),
        ("rw=read,zonesize=1m,max_open_zones=2", "needs zonemode=zbd"),
        ("rw=read,zonemode=zbd,zonesize=1m,zonerange=1m", "needs zonemode=strided"),
        ("rw=read,zoneskip=1m", "needs zonemode=zbd or zonemode=strided"),
        ("rw=read,size=4z", "a number of zones needs zonemode=zbd"),
        ("rw=read,zonesize=2g", "more than the drive's user capacity"),
        ("rw=read,bs=64k,zonesize=4k", "less than a block"),
        ("rw=read,zonesize=1000", "multiple of 512"),
        ("rw=write,zonemode=zbd,zonesize=1m,zonecapacity=2m", "at most the zonesize"),
        ("rw=write,zonemode=zbd,zonesize=2g", "are 0 zones"),
        ("rw=write,zonemode=zbd,zonesize=1m,size=512k", "hold no whole zone"),
        ("rw=write,zonemode=zbd,zonesize=1m,bs=2m", "the capacity of a zone"),
        ("rw=randrw,zonemode=zbd,zonesize=1m,bs=64k,2m", "found writes of at least 2097152 bytes"),
        ("rw=trim,zonemode=zbd,zonesize=1m,bs=64k", "a trim resets a zone"),
        ("rw=trimwrite,zonemode=zbd,zonesize=1m,bs=1m", "a full zone is reset"),
        ("rw=write:4k,zonemode=zbd,zonesize=1m", "no number after the colon"),
        ("rw=write,zonemode=zbd,zonesize=1m,zoneskip=512k", "multiple of the zone size"),
        ("rw=write,zonemode=zbd,zonesize=1m,bs=96k,max_open_zones=2", "divides the capacity"),
        ("rw=write,zonemode=zbd,zonesize=1m,zone_reset_threshold=2", "from 0 to 1"),
        ("rw=read,exitall", "known to fio, not supported"),
        ("rw=read,nonsense=1", "is no key of fio"),
        ("rw=read,fdp=1", "found 'fdp', a key of a later fio than 3.33"),
        ("rw=read,readfua=1", "known to fio, not supported"),
        ("rw=write,sg_write_mode=verify", "known to fio, not supported"),
        ("rw=read,ioengine=libiao", "did you mean 'libaio'?"),
        ("rw=read,ioengine=libblkio", "an engine of fio 3.33 such as libaio"),
        ("rw=read,ioengine=cpuio", "an engine that sends block requests: 'cpuio' uses processor time"),
        ("rw=read,ioengine=external:/lib/mine.so", "what an external one sends is not known"),
        ("rw=randread,random_generator=lfsr,bsrange=4k-8k", "lfsr needs one block size"),
        ("rw=randread,random_distribution=zoned:99.5/10:0.5/90", "accesses in whole percent"),
        ("rw=randread,random_distribution=zoned:50/60.5:50/60", "sizes in percent that add up to at most 100"),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn maps_too_large_for_memory_are_refused_and_permutations_need_none() {
    let error = FioJob::parse_line("rw=randwrite,bsrange=512-4k").and_then(|job| job.generator(1 << 50, 1).map(|_| ()));
    assert!(error.expect_err("256 GiB of bits").to_string().contains("use norandommap"));
    spec("rw=randwrite,bs=4k,numjobs=64", 1 << 60, 1);
}

#[test]
fn keys_that_ask_for_what_happens_anyway_are_accepted() {
    spec("rw=read,verify=0,do_verify=0,nrfiles=1,zonemode=none,iodepth_batch=1,ramp_time=0,ioscheduler=none", GIB, 1);
}

#[test]
fn sizes_of_zero_and_empty_lists_are_fios_defaults() {
    let describe = |text: &str| spec(text, GIB, 1).describe();
    for (text, same) in [
        ("rw=write,bs=1m,size=0", "rw=write,bs=1m"),
        ("rw=write,size=0%,io_size=0", "rw=write"),
        ("rw=randwrite,ba=0", "rw=randwrite"),
        ("rw=randrw,bssplit=,8k/25:16k/75", "rw=randrw,bs=4k,bssplit=4k/100,8k/25:16k/75"),
        ("rw=randrw,bssplit=8k/100,", "rw=randrw,bs=8k,4k"),
        ("rw=randrw,bssplit=,,8k", "rw=randrw"),
        ("rw=randrw,bs=8k,bssplit=,16k", "rw=randrw,bs=8k,16k"),
        ("rw=randwrite,bssplit=4k/40:10k/60", "rw=randwrite,bssplit=4k/40:8k/60"),
        ("rw=randrw,bsrange=,8k-16k", "rw=randrw,bsrange=4k-4k,8k-16k"),
        ("rw=randread,random_distribution=zoned:,50/10:50/90,norandommap", "rw=randread,norandommap"),
    ] {
        assert_eq!(describe(text), describe(same), "{text}");
    }
    let text = "[global]\nsize=1m\nio_size=64k\n[a]\nrw=write\nsize=0\nio_size=0\n";
    assert_eq!(jobs(text, GIB, 1).describe(), "a: 4 KiB write, depth 1, 1 GiB from 0 B, 1 GiB in all");
}

#[test]
fn engines_are_those_of_fio() {
    for (engine, depth) in
        [("libaio", 8), ("nbd", 8), ("rbd", 8), ("windowsaio", 8), ("sg", 1), ("splice", 1), ("psync", 1)]
    {
        let workload = spec(&format!("rw=write,iodepth=8,ioengine={engine}"), GIB, 1);
        assert_eq!(workload.depth_max(), depth, "{engine}");
        assert_eq!(workload.notes().len(), usize::from(depth == 1), "{engine}");
    }
    let mut forced = spec("rw=write,ioengine=sg,writefua=1,readfua=0", GIB, 1);
    assert!(matches!(forced.next(Nanos::ZERO), Ok(Next::Request(request)) if request.fua));
    let sent = fio_support::run(
        &mut spec("rw=randwrite,norandommap,random_generator=lfsr", 4 << 20, 1),
        4 << 20,
        Nanos(1),
        1 << 20,
    );
    assert_eq!(sent.iter().map(|request| request.sector).collect::<BTreeSet<_>>().len(), 1024, "each block once");
}

#[test]
fn jobs_on_different_files_are_told_of() {
    let notes = |text: &str| FioJob::parse_text(text, "jobs.fio").expect(text).notes();
    let left = "[left]\nrw=write\nfilename=/dev/nvme0n1\n";
    for (text, named) in [
        (format!("{left}[right]\nrw=write\nfilename=/dev/nvme1n1\n"), "(/dev/nvme0n1, /dev/nvme1n1)"),
        (format!("{left}[right]\nrw=write\n"), "(/dev/nvme0n1, right.0.0)"),
        ("[global]\ndirectory=/mnt\n[a]\nrw=read\n[b]\nrw=read\n".to_string(), "(/mnt/a.0.0, /mnt/b.0.0)"),
        ("[a]\nrw=read\ndirectory=/one:/two\nnumjobs=2\nfilename=f".to_string(), "(/one/f, /two/f)"),
        ("[a]\nrw=read\nfilename_format=f.$jobnum\nnumjobs=9".to_string(), "(f.0, f.1, f.2, f.3, ...)"),
    ] {
        let notes = notes(&text);
        assert!(
            notes[0].contains(named) && notes[0].contains("all of them work on the one drive"),
            "{text}: {notes:?}"
        );
    }
    for text in [
        format!("{left}[right]\nrw=write\nfilename=/dev/nvme0n1\n"),
        "[a]\nrw=read\n[b]\nrw=read\nnumjobs=4\n".to_string(),
        "[global]\nfilename=f\ndirectory=/mnt\n[a]\nrw=read\nnumjobs=3\n[b]\nrw=read\n".to_string(),
        "[a]\nrw=read\nfilename_format=shared\nnumjobs=3\n".to_string(),
    ] {
        assert!(!notes(&text).iter().any(|note| note.contains("one drive")), "{text}");
    }
}

#[test]
fn variables_have_the_values_that_are_given() {
    let variables = Variables::default().with("SIZE=4m").and_then(|two| two.with("MODE=randwrite")).expect("two");
    let text = "[a]\nrw=${MODE} ; ${NOT_READ}\nsize=${SIZE}\nbs=4k\n";
    let job = FioJob::parse_text_with(text, "v.fio", &variables).expect("both have values");
    assert_eq!(job.notes(), ["${MODE} is 'randwrite'", "${SIZE} is '4m'"]);
    assert!(job.generator(GIB, 1).expect("it fits").describe().contains("randwrite"));
    let error = FioJob::parse_text(text, "v.fio").expect_err("none is given").to_string();
    assert!(error.starts_with("v.fio:2: found '${MODE}'") && error.contains("--env MODE=VALUE"), "{error}");
}

#[test]
fn keys_without_effect_are_noted_once() {
    let text = "[global]\ndirect=1\nioengine=libaio\nthread\ngroup_reporting\nfilename=/dev/nvme0n1\n[a]\nrw=read\n[b]\nrw=write\ndirect=1\n";
    let workload = jobs(text, GIB, 1);
    assert_eq!(workload.notes(), ["without effect on a stream of block requests: direct, thread, group_reporting"]);
}

#[test]
fn a_file_that_is_missing_or_not_text_is_an_error() {
    let missing = std::path::Path::new("no/such/file.fio");
    let error = FioJob::parse_file(missing, &Variables::default()).expect_err("it does not exist").to_string();
    assert!(error.starts_with("no/such/file.fio: cannot be read"), "{error}");
    let path = std::env::temp_dir().join(format!("ssdlab-not-text-{}.fio", std::process::id()));
    std::fs::write(&path, b"[a]\nrw=\xff\xfe").expect("the temporary folder is writable");
    let error = FioJob::parse_file(&path, &Variables::default()).expect_err("it is not text").to_string();
    std::fs::remove_file(&path).expect("it was just written");
    assert!(error.contains("byte 7 is not text in UTF-8"), "{error}");
}

#[test]
fn the_documentation_lists_every_key() {
    let doc = include_str!("../../../../docs/workloads.md");
    let section = |from: &str, to: &str| {
        let start = doc.find(from).unwrap_or_else(|| panic!("docs/workloads.md has no '{from}'"));
        let end = doc[start..].find(to).map_or(doc.len(), |end| start + end);
        &doc[start..end]
    };
    let works = section("## Keys", "## How requests");
    let idle = section("## Accepted without effect", "## Known to fio");
    let unsupported = section("## Known to fio", "## Where ssdlab");
    for key in KEYS {
        let place = match key.support {
            Support::Works(meaning) => {
                assert!(works.contains(meaning), "docs/workloads.md: '{}' is not described as: {meaning}", key.name);
                works
            }
            Support::NoEffect => idle,
            Support::Unsupported { .. } => unsupported,
        };
        for name in [key.name, key.alias].into_iter().filter(|name| !name.is_empty()) {
            assert!(place.contains(&format!("`{name}`")), "docs/workloads.md does not list '{name}' in its place");
        }
    }
}

#[test]
fn the_examples_of_the_documentation_run() {
    let doc = include_str!("../../../../docs/workloads.md");
    let mut examples = 0;
    for block in doc.split("```").skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').expect("a block has a first line");
        let text = text.split_once("--workload ").map_or(text, |(_, workload)| workload);
        if text.contains(".fio") {
            // A file of the reader's.
            continue;
        }
        let mut workload = if kind == "ini" {
            jobs(text, GIB, 1)
        } else if text.contains("zonemode=zbd") {
            // An example for a drive of zones.
            let shape =
                ZoneShape { size: 4096, capacity: 4096, count: 512, write_unit: 8, max_open: 14, max_active: 14 };
            let job = FioJob::parse_line(text.trim()).expect(text);
            job.generator_on(GIB, Some(shape), 1).expect(text)
        } else {
            spec(text.trim(), GIB, 1)
        };
        assert!(matches!(workload.next(Nanos::ZERO), Ok(Next::Request(_))), "{text}");
        examples += 1;
    }
    assert_eq!(examples, 6);
}

#[test]
fn every_key_of_the_installed_fio_is_known() {
    let Ok(output) = Command::new("fio").arg("--cmdhelp=all").output() else {
        println!("skipped: fio is not installed");
        return;
    };
    let version = Command::new("fio").arg("--version").output().expect("fio just ran");
    if !String::from_utf8_lossy(&version.stdout).starts_with("fio-3.33") {
        println!("skipped: the installed fio is not 3.33");
        return;
    }
    let known: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let missing: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .filter(|name| !known.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let help = |argument: &str| {
        let output = Command::new("fio").arg(argument).output().expect("fio just ran");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for engine in help("--enghelp").lines().skip(1).map(str::trim) {
        let refusal = FioJob::parse_line(&format!("rw=read,ioengine={engine}")).err().map(|error| error.to_string());
        let is_known = refusal.as_ref().is_none_or(|refusal| refusal.contains(&format!("'{engine}' ")));
        assert!(is_known, "{engine}: {refusal:?}");
        for line in help(&format!("--enghelp={engine}")).lines() {
            let Some((key, _)) = line.split_once(':') else { continue };
            assert!(known.contains(key.trim()), "{engine} has the key {key}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
        let _ = FioJob::parse_line(&text);
        let _ = FioJob::parse_text(&text, "any.fio");
        let _ = FioJob::parse_text(&format!("[a]\n{text}"), "any.fio");
    }

    #[test]
    fn no_value_makes_any_key_panic(
        key in 0..KEYS.len(),
        value in prop::sample::select(vec![
            "", "0", "1", "-1", "4k", "4k,8k", "100%", "0.000001%", "18446744073709551615", "16777216t", "a:b", "1-2", "4k-8k/1-2",
            "zipf:1e308", "normal:nan", "zoned:100/0", "zoned_abs:100/0", "write:-9223372036854775808", "randread:18446744073709551615",
            ":", "/", ",,", "1/2/3", "0x", "0xffffffffffffffff", "4k/100", "4k/", "/100:", "1d", "213503d", "é", "inf", "1e400",
        ]),
        mode in prop::sample::select(vec!["randrw", "write", "randtrimwrite"]),
    ) {
        let text = format!("[a]\nrw={mode}\n{}={value}\n", KEYS[key].name);
        if let Ok(job) = FioJob::parse_text(&text, "any.fio") && let Ok(mut workload) = job.generator(1 << 26, 1) {
            let mut now = Nanos::ZERO;
            for _ in 0..64 {
                match workload.next(now) {
                    Ok(Next::WaitUntil(time)) => now = time,
                    Ok(Next::Request(request)) => {
                        prop_assert!(request.end() * 512 <= 1 << 26);
                        workload.completed(now, request.tag);
                    }
                    _ => break,
                }
            }
        }
    }
}
