//! The least server of a drive: `ssdlab serve` without what is around it, and with a seeded bug where
//! `SSDLAB_SEEDED_BUG` names one. `tests/live` kills it and has to find the bug.

use std::path::PathBuf;
use std::sync::Arc;

use ssdlab_device::Description;
use ssdlab_host::{Host, UnknownDrive};
use ssdlab_live::nbd::{Endpoint, Export, Limits, Server};
use ssdlab_live::seeded::{Bug, seed};
use ssdlab_live::{Engine, Pace, Target, image};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    if let Ok(name) = std::env::var("SSDLAB_SEEDED_BUG") {
        let bug = Bug::ALL.into_iter().find(|bug| bug.name() == name);
        let known = Bug::ALL.map(Bug::name).join(", ");
        seed(Some(bug.ok_or_else(|| format!("SSDLAB_SEEDED_BUG={name}: expected one of {known}"))?));
    }
    let (mut device, mut directory, mut nbd, mut pace, mut settings) =
        (None, None, None, Pace::Model { slower: 1.0 }, Vec::new());
    let mut host = Host::bare();
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        if option == "serve" {
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "-d" => device = Some(Description::load(value.as_ref())?),
            "--image" => directory = Some(PathBuf::from(value)),
            "--nbd" => nbd = Some(Endpoint::parse(&value, false)?),
            "--time-scale" => pace = value.parse()?,
            "--set" => settings.push(value),
            "--host" => host = Host::load(value.as_ref(), &|drive: &str| Err(UnknownDrive(drive.to_string())))?,
            // No client asks for metrics.
            "--control" => {}
            _ => {
                return Err(format!(
                    "{option} is not known; there are -d, --host, --image, --nbd, --time-scale, --set"
                )
                .into());
            }
        }
    }
    let mut device = device.ok_or("-d is missing")?;
    for setting in &settings {
        device.set(setting)?;
    }
    let opened = image::open_stack(&directory.ok_or("--image is missing")?, &host, &device.resolve()?, 1)?;
    let engine = Arc::new(Engine::new(opened.device, pace)?);
    let export = Export { target: Arc::clone(&engine) as Arc<dyn Target>, name: "ssdlab".to_string() };
    let server = Server::start(&nbd.ok_or("--nbd is missing")?, export, Limits::default())?;
    println!("seeded server");
    println!("NBD: {}", server.uri());
    loop {
        std::thread::park();
    }
}
