//! The command `ssdlab`: a thin edge over the lab.
//!
//! It reads the command line, hands the work to the lab, prints what comes back, and ends with a status that means the
//! same everywhere: 0 done, 1 the work failed or an invariant did not hold, 2 the input was wrong. Errors are a sentence on
//! standard error; no panic reaches the user as one.

// What goes out passes `stdout` or `stderr`, where what a terminal would obey is escaped.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod background;
mod catalogue;
mod conditions;
mod damage;
mod devices;
mod escaping;
mod failure;
mod figure17_live;
mod files;
mod interrupt;
mod memory;
mod mount;
mod outputs;
mod panic;
mod progress;
mod report;
mod reproduce;
mod run;
mod serve;
mod shipped;
mod stat;
mod stat_segments;
mod stderr;
mod stdout;
mod torture;
mod trace;
mod wa;
mod waveform;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    panic::install_hook();
    let cli = Cli::try_parse().unwrap_or_else(|error| args::refuse(&error));
    match std::panic::catch_unwind(|| dispatch(cli)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            stderr::say(&failure);
            ExitCode::from(failure.status())
        }
        // The hook has said it.
        Err(_) => ExitCode::FAILURE,
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Run(run) => return run::run(*run),
        Command::Serve(serve) => return serve::serve(&serve),
        Command::Mount(mount) => return mount::mount(&mount),
        Command::Stat(stat) => return stat::stat(&stat),
        Command::Record(record) => return stat::record(&record),
        Command::Trace { what } => trace::trace(what)?,
        Command::Devices(devices) => devices::devices(&devices)?,
        Command::List(list) => catalogue::list(&list)?,
        Command::Report(report) => report::report(&report)?,
        Command::Files(files) => return files::files(&files),
        Command::Reproduce(reproduce) => return reproduce::reproduce(&reproduce),
        Command::Torture(torture) => return torture::torture(&torture),
        Command::Wa { what } => return wa::wa(&what),
    }
    Ok(ExitCode::SUCCESS)
}
