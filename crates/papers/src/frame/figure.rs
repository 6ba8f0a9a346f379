//! What a paper and a figure are to the frame: data.

use std::error::Error;

use ssdlab_device::DriveConfig;

use super::ReproduceError;
use super::context::PaperContext;
use super::figure_data::Drawn;
use super::input::Input;
use super::input_stats::Survey;
use super::plan::Run;
use super::runner::Outcomes;
use super::table::{Column, Label, Row, runs_of};

/// A paper that is reproduced.
pub struct Paper {
    /// Its name on the command line, and its folder under `papers/`.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The text of its `experiment.toml`.
    pub experiment: &'static str,
    /// The descriptions that the experiment names: name and text.
    pub devices: &'static [(&'static str, &'static str)],
    /// The files of its folder that the experiment names, host descriptions and job files: name and text.
    pub files: &'static [(&'static str, &'static str)],
    /// What tables call the experiment's drives: `page` where they differ by their page, else `drive`.
    pub drives_are: &'static str,
    /// Its published values: file name and text of each CSV.
    pub published: &'static [(&'static str, &'static str)],
    /// Its figures and tables, in the order of the report.
    pub figures: &'static [&'static Figure],
}

impl Paper {
    /// The text of a file that the experiment names.
    ///
    /// # Errors
    /// A name that the paper does not have.
    pub(super) fn file(&self, wanted: &str) -> Result<&'static str, ReproduceError> {
        let found = self.files.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| *text).ok_or_else(|| {
            let names: Vec<&str> = self.files.iter().map(|(name, _)| *name).collect();
            let names = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            let file = format!("papers/{}/experiment.toml", self.name);
            ReproduceError::new(format!(
                "{file}: found the file '{wanted}', expected one of the paper's files: {names}"
            ))
        })
    }

    /// Where a file of its folder lies in the source tree.
    pub(super) fn path(&self, file: &str) -> String {
        format!("papers/{}/{file}", self.name)
    }
}

/// The text of a file of the source tree.
macro_rules! text {
    ($($path:literal)*) => { include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $($path),*)) };
}
pub(crate) use text;

/// Files of a folder of the source tree, name and text of each: `texts!("FOLDER/" ".EXTENSION": "NAME" "NAME")`.
macro_rules! texts {
    ($folder:literal $extension:literal: $($name:literal)*) => {
        &[$(($name, $crate::frame::text!($folder $name $extension))),*]
    };
}
pub(crate) use texts;

/// A figure or table: what it says of itself, and how it is made.
pub struct Figure {
    /// Its name: `figure08`, `table01`.
    pub id: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// How its values are to be read, and what of the paper's text was left open; a few sentences.
    pub about: &'static str,
    /// Why its values lie outside what the paper says, as far as known, in a sentence or two; empty where none do.
    pub differs: &'static str,
    /// The columns it can have; published values name one of these.
    pub series: &'static [&'static str],
    /// How it is made.
    pub content: Content,
}

/// A figure that needs no runs, or why it cannot be made.
pub type Made = Result<Drawn, Box<dyn Error>>;

/// How a figure is made.
pub enum Content {
    /// A table of the experiment's drives as their descriptions resolve, without runs.
    Drives {
        /// Their names in the experiment. A single drive is not named in the rows.
        drives: &'static [&'static str],
        /// What the published values are of: `Table 1`.
        of: &'static str,
        /// What is read from each.
        columns: &'static [Column<DriveConfig>],
    },
    /// A table of inputs, without runs.
    Inputs {
        /// The inputs, each with its setting.
        inputs: fn(&PaperContext) -> Vec<(&Input, &'static str)>,
        /// What is read from the statistics of each.
        columns: &'static [Column<Survey>],
    },
    /// A table of runs, and what is drawn of it.
    Runs {
        /// The rows, with their runs and columns.
        rows: fn(&PaperContext) -> Vec<Row>,
        /// Adds panels, curves and remarks.
        panels: fn(&PaperContext, &Outcomes, &mut Drawn),
    },
    /// What needs no runs; an error becomes the remark of an empty figure.
    Facts(fn(&PaperContext) -> Made),
    /// Anything else.
    Own {
        /// The runs it needs. Several figures may ask for the same run, and one figure several times.
        runs: fn(&PaperContext) -> Vec<Run>,
        /// Makes it of what the runs left. A run that is missing leaves a gap, never a guess.
        draw: fn(&PaperContext, &Outcomes) -> Drawn,
    },
    /// What was measured elsewhere, such as on a served drive: this crate knows no live drives.
    Measured(Drawn),
}

impl Figure {
    /// The runs it needs. Several figures may ask for the same run, and one figure several times.
    pub fn runs(&self, context: &PaperContext) -> Vec<Run> {
        match &self.content {
            Content::Runs { rows, .. } => runs_of(&rows(context)),
            Content::Own { runs, .. } => runs(context),
            Content::Drives { .. } | Content::Inputs { .. } | Content::Facts(_) | Content::Measured(_) => Vec::new(),
        }
    }

    /// Makes it of what the runs left. A run that is missing leaves a gap, never a guess.
    pub fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        match &self.content {
            Content::Drives { drives, of, columns } => {
                for name in *drives {
                    let Ok(drive) = context.drive(name) else { continue };
                    let page_size = if drives.len() == 1 { "" } else { name };
                    drawn.columns(&Label::described(&drive.name, page_size, of), &drive, columns);
                }
            }
            Content::Inputs { inputs, columns } => {
                for (input, setting) in inputs(context) {
                    let Some(survey) = &input.survey else { continue };
                    drawn.columns(&Label::of(input, "", setting), survey, columns);
                }
            }
            Content::Runs { rows, panels } => {
                drawn.rows(outcomes, &rows(context));
                panels(context, outcomes, &mut drawn);
            }
            Content::Facts(draw) => match draw(context) {
                Ok(made) => return made,
                Err(why) => drawn.remark(why.to_string()),
            },
            Content::Own { draw, .. } => return draw(context, outcomes),
            Content::Measured(measured) => return measured.clone(),
        }
        drawn
    }
}
