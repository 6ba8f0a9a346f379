//! What a paper and a figure are to the frame.

use super::ReproduceError;
use super::context::PaperContext;
use super::figure_data::Drawn;
use super::plan::Run;
use super::runner::Outcomes;

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
    pub figures: &'static [&'static dyn Figure],
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

/// A figure or table: the runs it needs, and how it is made of them.
pub trait Figure: Sync {
    /// Its name: `figure08`, `table01`.
    fn id(&self) -> &'static str;

    /// What it shows, in a line.
    fn title(&self) -> &'static str;

    /// How its values are to be read, and what of the paper's text was left open; a few sentences.
    fn about(&self) -> &'static str;

    /// Why values of it lie outside what the paper says, as far as known, in a sentence or two; nothing where none do.
    fn differs(&self) -> &'static str {
        ""
    }

    /// The columns it can have; published values name one of these.
    fn series(&self) -> &'static [&'static str];

    /// The runs it needs. The same run may be asked for by several figures, and by one several times.
    fn runs(&self, context: &PaperContext) -> Vec<Run>;

    /// Makes it of what the runs left. A run that is missing leaves a gap, never a guess.
    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn;
}
