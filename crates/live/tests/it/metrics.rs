//! Metrics: what they tell of drives and layers, and that idle connections keep no scrape out.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Description, Drive, Options, Settings};
use ssdlab_flash::Contents;
use ssdlab_host::{Host, Member};
use ssdlab_live::control::{Control, serve_metrics};
use ssdlab_live::report::{figures_json, prometheus};
use ssdlab_live::{Answer, Command, Engine, Pace, Sink, Target};
use ssdlab_torture::configs;
use ssdlab_torture::stacks::small_disk;

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

#[test]
fn idle_connections_do_not_block_scrapes_however_many_there_are() {
    let options = Options { seed: 1, contents: Contents::Bytes };
    let drive = Drive::new(&configs::handful(), options).expect("a drive");
    let engine = Arc::new(Engine::new(Member::alone(drive, options), Pace::None).expect("an engine"));
    let address = serve_metrics("127.0.0.1:0".parse().expect("an address"), &engine).expect("a listener");
    let began = Instant::now();
    let mut idle = Vec::new();
    for count in [1, 20, 100] {
        while idle.len() < count {
            let mut stream = TcpStream::connect(address).expect("a connection");
            // Some say the beginning of a request, and no more.
            let _ = stream.write_all(b"GET /metr");
            idle.push(stream);
        }
        let answer = scrape(address);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{count} idle connections: {answer}");
        assert!(answer.contains("ssdlab_commands_total{command=\"read\"} 0"), "{answer}");
    }
    // The server waits 10 s for a silent client: no scrape waited for one.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// Two map pages of four are cached: each is asked for once, and the first once more.
#[test]
fn what_the_cache_of_a_map_did_is_told() {
    let mut config = configs::handful();
    config.flash.geometry.blocks_per_plane = 64;
    config.flash.geometry.pages_per_block = 16;
    config.user_bytes = config.flash.geometry.bytes() / 2;
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default().with("map_page", 512_u32).with("map_cache", 1024_u64);
    let options = Options { seed: 1, contents: Contents::Bytes };
    let figures = |drive: Drive| {
        let engine = Engine::new(Member::alone(drive, options), Pace::None).expect("an engine");
        engine.figures(false)
    };
    let mut drive = Drive::new(&config, options).expect("a drive");
    for map_page in [0, 1, 2, 3, 0] {
        drive.submit(&Request { at: drive.now(), ..Request::new(Op::Write, map_page * 128 * 2, 2) });
        assert!(drive.run_to_completion(Nanos::MAX));
        drive.completions().clear();
    }
    let told = figures(drive);
    let json: serde_json::Value = serde_json::from_str(&figures_json(&told)).expect("JSON");
    let map = &json["map"];
    assert_eq!((&map["hits"], &map["misses"], &map["loads"]), (&0.into(), &5.into(), &1.into()), "{map}");
    assert_eq!(map["by_asker"]["host"]["misses"], 5, "{map}");
    let text = prometheus(&told);
    for line in ["ssdlab_map_misses_total{asker=\"host\"} 5", "ssdlab_map_loads_total{asker=\"gc\"} 0"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // One that has its map in RAM says nothing of it.
    let without = figures(Drive::new(&configs::handful(), options).expect("a drive"));
    assert!(figures_json(&without).contains("\"map\":null") && !prometheus(&without).contains("ssdlab_map_"));
}

/// Keeps answers.
#[derive(Default)]
struct Inbox(Mutex<Vec<Answer>>);

impl Sink for Inbox {
    fn answers(&self, answers: &mut Vec<Answer>) {
        self.0.lock().expect("the test holds").append(answers);
    }
}

/// Commands that come together arrive at one instant, so that a driver sends them on as one; the next ones do not.
#[test]
fn what_a_driver_above_the_drive_did_is_told() {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[capacity]\nuser = \"4m\"\n\
                [buffer]\npolicy = \"none\"\n[ftl]\ndesign = \"shrd\"\nrwlb = \"256k\"\nmapping_unit = \"4k\"\n";
    let config = Description::parse(text, "small.toml").and_then(|small| small.resolve()).expect("a drive");
    let host = Host::parse("[[layer]]\nkind = \"shrd\"\n", "host.toml").expect("a host");
    let options = Options { seed: 1, contents: Contents::Bytes };
    let stack = || host.build(vec![Member::new("small", &config, options).expect("a drive")]).expect("a stack");
    for pace in [Pace::None, Pace::Model { slower: 0.1 }] {
        let engine = Engine::new(stack(), pace).expect("an engine");
        let inbox = Arc::new(Inbox::default());
        for batch in [0..5, 5..7] {
            let write = |cookie| Command {
                request: Request::new(Op::Write, cookie * 80, 8),
                data: vec![1; 4096],
                cookie,
                sink: Arc::clone(&inbox) as Arc<dyn Sink>,
            };
            let wanted = batch.end as usize;
            engine.submit(&mut batch.map(write).collect());
            let until = Instant::now() + Duration::from_secs(60);
            while inbox.0.lock().expect("the test holds").len() < wanted {
                assert!(Instant::now() < until, "answers are missing");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let told = engine.figures(false);
        let json: serde_json::Value = serde_json::from_str(&figures_json(&told)).expect("JSON");
        let driver = &json["host_layers"][0];
        assert_eq!(json["conditions"], serde_json::json!([]), "{json}");
        assert_eq!(driver["kind"], "shrd", "{driver}");
        assert_eq!(driver["taken"]["requests"], serde_json::json!([0, 7, 0, 0]), "{driver}");
        assert_eq!(
            (&driver["metrics"]["twrites"], &driver["metrics"]["packed_requests"]),
            (&2.0.into(), &7.0.into()),
            "{driver}"
        );
        let text = prometheus(&told);
        for line in [
            "ssdlab_layer_requests_total{layer=\"shrd\",number=\"0\",way=\"taken\",command=\"write\"} 7",
            "ssdlab_layer_metric{layer=\"shrd\",number=\"0\",metric=\"packed_requests\"} 7",
            "ssdlab_conditions 0\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}

#[test]
fn what_the_disks_of_a_stack_did_is_told() {
    let text = "[[layer]]\nkind = \"stripe\"\nchunk = 512\nbelow = [{ disk = \"small-disk\", size = \"64k\" }, {}]\n";
    let host = Host::parse_with(text, "h.toml", &small_disk()).expect("a host");
    let options = Options { seed: 1, contents: Contents::Bytes };
    let members = host.members(&configs::handful()).into_iter();
    let members = members.map(|(name, config)| Member::fresh(&name, &config, options).expect("a member"));
    let engine = Engine::new(host.build(members.collect()).expect("a stack"), Pace::None).expect("an engine");
    let inbox = Arc::new(Inbox::default());
    // One chunk on the disk, and the next on the drive.
    let write = |cookie| Command {
        request: Request::new(Op::Write, cookie, 1),
        data: vec![1; 512],
        cookie,
        sink: Arc::clone(&inbox) as Arc<dyn Sink>,
    };
    engine.submit(&mut (0..2).map(write).collect());
    let until = Instant::now() + Duration::from_secs(60);
    while inbox.0.lock().expect("the test holds").len() < 2 {
        assert!(Instant::now() < until, "answers are missing");
        std::thread::sleep(Duration::from_millis(1));
    }
    let told = engine.figures(false);
    let json: serde_json::Value = serde_json::from_str(&figures_json(&told)).expect("JSON");
    let disk = &json["disks"][0];
    assert_eq!((&disk["name"], &disk["capacity_bytes"]), (&"small-disk.0".into(), &65_536.into()), "{json}");
    assert_eq!((&disk["counters"]["writes"], &disk["counters"]["written_bytes"]), (&1.into(), &512.into()), "{disk}");
    let text = prometheus(&told);
    assert!(text.contains("ssdlab_disk_total{disk=\"small-disk.0\",of=\"writes\"} 1\n"), "{text}");
}

/// A control socket once listened before its mode was set, so that any user could connect in between.
#[test]
fn a_control_socket_is_its_owners_alone_from_its_first_moment() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let options = Options { seed: 1, contents: Contents::Bytes };
    let drive = Drive::new(&configs::handful(), options).expect("a drive");
    let engine = Arc::new(Engine::new(Member::alone(drive, options), Pace::None).expect("an engine"));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("control.sock");
    let (done, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if let Ok(found) = std::fs::symlink_metadata(&path) {
                    assert_eq!(found.permissions().mode() & 0o777, 0o600);
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for number in 0.. {
            let control = Control::listen(&path, &engine).expect("it listens");
            std::thread::yield_now();
            drop(control);
            if watcher.is_finished() || number > 150 && seen.load(Ordering::Relaxed) > 0 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
