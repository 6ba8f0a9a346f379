//! A figure whose values were measured elsewhere, such as on a served drive: this crate knows no live drives.

use super::context::PaperContext;
use super::figure::Figure;
use super::figure_data::Drawn;
use super::plan::Run;
use super::runner::Outcomes;

/// A figure that needs no runs, because it was measured.
#[derive(Clone, Debug)]
pub struct MeasuredFigure {
    /// Its name.
    pub id: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// How its values are to be read.
    pub about: &'static str,
    /// Its columns.
    pub series: &'static [&'static str],
    /// What was measured.
    pub drawn: Drawn,
}

impl Figure for MeasuredFigure {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn series(&self) -> &'static [&'static str] {
        self.series
    }

    fn runs(&self, _scene: &PaperContext) -> Vec<Run> {
        Vec::new()
    }

    fn draw(&self, _scene: &PaperContext, _outcomes: &Outcomes) -> Drawn {
        self.drawn.clone()
    }
}
