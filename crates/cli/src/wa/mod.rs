//! `ssdlab wa`: write amplification from the model, from Ready/Busy captures, and from drives' own logs.

mod capture;
mod drive;
mod findings;
mod model;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ssdlab_base::{Nanos, parse_duration, parse_size};
use ssdlab_device::Description;
use ssdlab_flash::FlashConfig;
use ssdlab_measure::classify::{Expected, ProgramWindow};
use ssdlab_measure::{Levels, Model, ProgramModel, Window};

use crate::failure::Failure;
use crate::shipped;

/// Where write amplification is known from.
#[derive(Debug, Subcommand)]
pub(crate) enum Wa {
    Model(model::ModelArgs),
    Capture(Box<capture::CaptureArgs>),
    Drive(drive::DriveArgs),
}

/// Does what was asked for.
pub(crate) fn wa(what: &Wa) -> Result<ExitCode, Failure> {
    match what {
        Wa::Model(args) => model::model(args)?,
        Wa::Capture(args) => capture::capture(args)?,
        Wa::Drive(args) => drive::drive(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A drive's geometry, given in numbers or by a description.
#[derive(Args, Debug)]
struct Shape {
    /// Channels x chips on each x dies in each x planes in each, such as 4x1x1x2
    #[arg(long, short, value_name = "CxCxDxP", conflicts_with = "device")]
    geometry: Option<String>,
    /// Data bytes of a page
    #[arg(long, value_name = "SIZE", default_value = "4k", conflicts_with = "device")]
    page_size: String,
    /// Pages that one low of a line stands for: single (one) or multi (one on every plane of the die)
    ///
    /// By default single; with --device what the description says.
    #[arg(long, value_name = "single|multi")]
    program_model: Option<String>,
    /// Take geometry, program model and times from a description: a FILE, or the NAME of one that ships
    #[arg(long, short, value_name = "FILE|NAME")]
    device: Option<String>,
}

/// What a [`Shape`] came to.
struct Known {
    model: Model,
    expected: Expected,
    /// The description's window, if there is one.
    window: Option<ProgramWindow>,
}

impl Shape {
    /// The model, if a geometry was given at all.
    fn known(&self) -> Result<Option<Known>, Failure> {
        let program = match &self.program_model {
            Some(text) => Some(text.parse().map_err(|error| Failure::input(format!("--program-model: {error}")))?),
            None => None,
        };
        if let Some(device) = &self.device {
            let flash = resolved(&shipped::open(device)?)?;
            let by_description = Model::of(&flash);
            let model = Model { program: program.unwrap_or(by_description.program), ..by_description };
            let window = ProgramWindow::of(&flash.timing);
            return Ok(Some(Known { model, expected: Expected::of(&flash), window }));
        }
        let Some(geometry) = &self.geometry else { return Ok(None) };
        let levels = Levels::parse(geometry, self.page_bytes()?)
            .map_err(|error| Failure::input(format!("--geometry: {error}")))?;
        let program = program.unwrap_or(ProgramModel::SinglePlane);
        Ok(Some(Known { model: Model { levels, program }, expected: Expected::default(), window: None }))
    }

    fn page_bytes(&self) -> Result<u32, Failure> {
        let bytes = size("--page-size", &self.page_size)?;
        u32::try_from(bytes).ok().filter(|&bytes| bytes > 0).ok_or_else(|| {
            Failure::input(format!("--page-size {}: expected a page of 1 byte to 4 GiB", self.page_size))
        })
    }
}

fn resolved(description: &Description) -> Result<FlashConfig, Failure> {
    Ok(description.resolve().map_err(Failure::input)?.flash)
}

/// A size in an option.
fn size(option: &str, text: &str) -> Result<u64, Failure> {
    parse_size(text).map_err(|error| Failure::input(format!("{option}: {error}")))
}

/// A time in an option.
fn time(option: &str, text: &str) -> Result<Nanos, Failure> {
    parse_duration(text).map_err(|error| Failure::input(format!("{option}: {error}")))
}

/// A window in an option.
fn window(option: &str, text: &Option<String>) -> Result<Option<Window>, Failure> {
    text.as_ref().map(|text| text.parse().map_err(|error| Failure::input(format!("{option}: {error}")))).transpose()
}

/// A count with its noun.
fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count.into()), if count == 1 { "" } else { "s" })
}

/// A count with its thousands apart.
fn grouped(count: u128) -> String {
    ssdlab_base::grouped(&count.to_string(), ',')
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
