//! A job file with several jobs: each is reported by itself, and together they are the run.

use ssdlab_device::{Allocation, DriveConfig, Level, Superblock};
use ssdlab_lab::{Preconditioning, ReplayOptions, RunResult, TextSource, table};

use crate::common::{UNIT, assert_checks_hold, drive, duts, experiment, run};

fn ran(jobs: &str, limit: Option<u64>) -> RunResult {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("jobs.fio");
    std::fs::write(&file, jobs).expect("written");
    let text = file.display().to_string();
    let source = TextSource::open(&text, ReplayOptions { limit, ..ReplayOptions::default() }, 1).expect("a job file");
    let drives = duts(&[drive("one"), drive("two")]);
    let result = run(&experiment(&drives, &source, Preconditioning::Fill));
    assert_checks_hold(&result);
    result
}

const MIX: &str = "[global]\nbs=4k\nsize=50%\nnorandommap\n\
                   [readers]\nrw=randread\niodepth=4\nnumjobs=2\nnumber_ios=1500\n\
                   [writer]\nrw=randwrite\niodepth=8\nnumber_ios=2000\nfsync=100\n\
                   [later]\nstonewall\nrw=randwrite\nbs=8k\nnumber_ios=300\n";

#[test]
fn each_job_has_its_own_figures_and_they_add_up() {
    let result = ran(MIX, None);
    for device in &result.devices {
        let names: Vec<&str> = device.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["readers", "writer", "later"]);
        let [readers, writer, later] = &device.jobs[..] else { unreachable!("three names") };
        assert_eq!((readers.requests.read, readers.requests.write), (3000, 0), "clones together");
        assert_eq!((writer.requests.read, writer.requests.write), (0, 2000));
        assert!(writer.requests.flush >= 19, "{}", writer.requests.flush);
        assert_eq!((later.requests.write, later.bytes.write), (300, 300 * 8192));
        assert!(device.checks.iter().any(|check| check.name == "requests_equal_sum_over_jobs" && check.passed));

        // A latency of all writes is that of the writer's or of the later job's.
        let all = device.latency_ns.write.expect("writes");
        let [first, second] = [writer, later].map(|job| job.latency_ns.write.expect("writes"));
        assert_eq!(all.count, first.count + second.count);
        assert_eq!((all.min, all.max), (first.min.min(second.min), first.max.max(second.max)));
        let sum = first.mean * first.count as f64 + second.mean * second.count as f64;
        assert!((all.mean * all.count as f64 / sum - 1.0).abs() < 1e-12);
        assert_eq!(readers.latency_ns.read, device.latency_ns.read, "only one job reads");
        assert_eq!(readers.latency_ns.write, None);

        // The job behind the stonewall begins when the others have ended; rates are over the job's own time.
        assert!(later.begun_ns >= readers.ended_ns.max(writer.ended_ns));
        assert_eq!(later.ended_ns, device.virtual_time_ns);
        let seconds = (later.ended_ns - later.begun_ns) as f64 / 1e9;
        assert!((later.throughput.write_iops * seconds / 300.0 - 1.0).abs() < 1e-9);
    }
    let text = table::render(&result);
    for line in ["jobs of one", "  readers read", "  writer write", "  writer flush", "  later write"] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} in {text}");
    }
    assert!(ssdlab_lab::report::render(&result).contains("<h2>Jobs</h2>"));
}

#[test]
fn a_limit_cuts_the_jobs_too() {
    let result = ran(MIX, Some(1000));
    for device in &result.devices {
        let requests =
            |job: &ssdlab_lab::result::JobResult| job.requests.read + job.requests.write + job.requests.flush;
        assert_eq!(device.jobs.iter().map(requests).sum::<u64>(), 1000);
        assert_eq!(requests(&device.jobs[2]), 0, "its turn did not come");
        assert_eq!(device.jobs[2].latency_ns.all, None);
    }
}

#[test]
fn one_job_with_clones_is_not_reported_by_itself() {
    let result = ran("[only]\nrw=randwrite\nbs=4k\nnumjobs=3\nnumber_ios=500\nsize=50%\n", None);
    assert!(result.devices.iter().all(|device| device.jobs.is_empty()));
    assert!(!table::render(&result).contains("jobs of"));
    assert!(!ssdlab_lab::report::render(&result).contains("<h2>Jobs</h2>"));
}

/// Two jobs that alternate over an even number of planes keep to planes of their own, and write amplification doubles. The
/// run says so, and says nothing where they do not.
#[test]
fn jobs_in_step_with_the_planes_are_told() {
    const JOBS: &str = "[global]\nrw=randwrite\nbs=4k\nnorandommap\nio_size=120m\n\
                        [small]\nsize=10%\n[large]\noffset=10%\n";
    let of = |channels, jobs: &str, change: &dyn Fn(&mut DriveConfig)| {
        let mut config = drive("planes");
        let geometry = &mut config.flash.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.blocks_per_plane) = (channels, 1, 64);
        config.user_bytes = config.flash.geometry.bytes() / UNIT * 7 / 8 * UNIT;
        config.timed = false;
        change(&mut config);
        let source = TextSource::of_jobs(jobs, "jobs.fio", 1).expect("a job file");
        let drives = duts(&[config]);
        let result = run(&experiment(&drives, &source, Preconditioning::Fill));
        assert_checks_hold(&result);
        let device = &result.devices[0];
        let told: Vec<String> = device.warnings.iter().filter(|warning| warning.contains("in step")).cloned().collect();
        assert!(told.len() <= 1, "{told:?}");
        (told.into_iter().next(), device.write_amplification.as_ref().expect("writes").total)
    };
    let unchanged = |_: &mut DriveConfig| {};
    let (told, in_step) = of(2, JOBS, &unchanged);
    let told = told.expect("a warning");
    assert!(
        told.contains("the 2 jobs write in step with the 2 planes") && told.contains("every 2nd of them"),
        "{told}"
    );
    let (three, apart) = of(3, JOBS, &unchanged);
    assert_eq!(three, None, "an odd number of planes");
    assert!(in_step > 1.4 * apart, "in step {in_step}, else {apart}");
    assert!(of(4, JOBS, &unchanged).0.is_some_and(|told| told.contains("the 4 planes")));
    let superblock = |of| move |config: &mut DriveConfig| config.ftl.superblock = of;
    assert_eq!(of(2, JOBS, &superblock(Superblock::Drive)).0, None);
    assert!(of(2, JOBS, &superblock(Superblock::Die)).0.is_some_and(|told| told.contains("the 2 dies")));
    let by_address = |config: &mut DriveConfig| {
        config.ftl.allocation = Allocation::Static([Level::Channel, Level::Way, Level::Die, Level::Plane]);
    };
    assert_eq!(of(2, JOBS, &by_address).0, None);
    assert_eq!(of(2, &JOBS.replace("[small]\nsize=10%\n", ""), &unchanged).0, None, "one job");
    // Two pages a write: each meets both planes.
    assert_eq!(of(2, &JOBS.replace("bs=4k", "bs=8k"), &unchanged).0, None);
    assert_eq!(of(2, &JOBS.replace("io_size=120m", "io_size=2m"), &unchanged).0, None, "nothing to judge by");
}
