//! A disk in memory, served over NBD: what the transport itself can do.
//!
//! ```text
//! cargo run --release -p ssdlab-live --example ram -- unix:/tmp/ram.sock 1G
//! nbdinfo 'nbd+unix:///?socket=/tmp/ram.sock'
//! ```

use std::io::Read;
use std::sync::Arc;

use ssdlab_live::nbd::{Endpoint, Export, Limits, Server};

#[path = "../tests/it/support/ram.rs"]
mod ram;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(endpoint), Some(size)) = (arguments.next(), arguments.next()) else {
        return Err("usage: ram unix:PATH|tcp:PORT SIZE; it ends when its standard input does".into());
    };
    let target = Arc::new(ram::Ram::new(ssdlab_base::parse_size(&size)?));
    let export = Export { target, name: "ssdlab".to_owned() };
    let server = Server::start(&Endpoint::parse(&endpoint, false)?, export, Limits::default())?;
    println!("{}", server.uri());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    Ok(())
}
