//! A picture of boxes in lanes: pages in blocks, or operations over time. A paper's page has it as text, a report as SVG
//! (`svg.rs`).
//!
//! ```text
//!   channel 0  |0  |4  |8  |12 |        chip 0  0---------8---------4---------12--------
//!   channel 1  |1  |5  |9  |13 |        chip 1  1---------9---------5---------13--------
//! ```

use serde::Serialize;

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// What it shows, in a line.
    pub title: String,
    /// Quantity and unit of x; nothing where x counts places, which have no scale.
    pub x: &'static str,
    /// The end of x.
    pub end: f64,
    /// What the colours of boxes stand for, by [`Mark::group`].
    pub groups: Vec<String>,
    /// The lanes, from above.
    pub lanes: Vec<Lane>,
}

/// A row of boxes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Its name, left of it.
    pub name: String,
    /// Its boxes, from left to right; they do not overlap.
    pub boxes: Vec<Mark>,
}

/// A box.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// From.
    pub from: f64,
    /// To.
    pub to: f64,
    /// What stands in it.
    pub label: String,
    /// Its colour.
    pub group: usize,
}

/// Columns of the text, without names.
const COLUMNS: usize = 96;

impl Picture {
    /// As text. Places are cells between bars, as wide as the longest label; time is to scale, a label and dashes.
    pub(crate) fn plain(&self) -> String {
        let width = self.lanes.iter().map(|lane| lane.name.chars().count()).max().unwrap_or(0);
        let cell =
            self.lanes.iter().flat_map(|lane| &lane.boxes).map(|one| one.label.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for lane in &self.lanes {
            let row = if self.x.is_empty() { self.cells(lane, cell + 1) } else { self.stretches(lane) };
            text.push_str(&format!("{:<width$}  {}\n", lane.name, row.trim_end()));
        }
        if !self.x.is_empty() {
            let end = format!("{:.0}", self.end);
            text.push_str(&format!("{:<width$}  0{end:>columns$} {}\n", "", self.x, columns = COLUMNS - 1));
        }
        text
    }

    fn cells(&self, lane: &Lane, cell: usize) -> String {
        let places = (0..self.end as usize).map(|place| {
            let found = lane.boxes.iter().find(|one| one.from as usize == place);
            format!("|{:<cell$}", found.map_or("", |one| one.label.as_str()))
        });
        format!("{}|", places.collect::<String>())
    }

    fn stretches(&self, lane: &Lane) -> String {
        let column = |x: f64| ((x * COLUMNS as f64 / self.end.max(f64::MIN_POSITIVE)) as usize).min(COLUMNS - 1);
        let mut row = vec![' '; COLUMNS];
        for one in &lane.boxes {
            (column(one.from)..column(one.to)).for_each(|at| row[at] = '-');
        }
        for (index, one) in lane.boxes.iter().enumerate() {
            // A label may go beyond its box, and not into the next.
            let end = lane.boxes.get(index + 1).map_or(COLUMNS, |next| column(next.from));
            for (at, letter) in (column(one.from)..end.max(column(one.from) + 1)).zip(one.label.chars()) {
                row[at] = letter;
            }
        }
        row.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(x: &'static str) -> Picture {
        let one = |from, to, label: &str| Mark { from, to, label: label.to_string(), group: 0 };
        let lane = |name: &str, boxes| Lane { name: name.to_string(), boxes };
        Picture {
            title: "a <picture>".to_string(),
            x,
            end: 2.0,
            groups: vec!["A & B".to_string()],
            lanes: vec![
                lane("one", vec![one(0.0, 1.0, "0"), one(1.0, 2.0, "10")]),
                lane("three", vec![one(1.0, 2.0, "1")]),
            ],
        }
    }

    #[test]
    fn places_are_as_wide_as_their_labels_need_and_time_is_to_scale() {
        assert_eq!(picture("").plain(), "one    |0  |10 |\nthree  |   |1  |\n");
        let lines: Vec<String> = picture("us").plain().lines().map(str::to_string).collect();
        let dashes = |count| "-".repeat(count);
        assert_eq!(lines[0], format!("one    0{}10{}", dashes(47), dashes(45)));
        assert_eq!(lines[1], format!("three  {}1{}", " ".repeat(48), dashes(46)));
        assert_eq!(lines[2], format!("       0{}2 us", " ".repeat(94)));
    }

    #[test]
    fn a_label_that_does_not_fit_goes_over_free_space_and_not_into_the_next_box() {
        let one = |from, to, label: &str| Mark { from, to, label: label.to_string(), group: 0 };
        let boxes = vec![one(0.0, 1.0, "15"), one(4.0, 5.0, "123"), one(6.0, 7.0, "9"), one(7.0, 7.5, "8")];
        let picture = Picture { end: 96.0, lanes: vec![Lane { name: "c".to_string(), boxes }], ..picture("us") };
        assert!(picture.plain().starts_with("c  15  1298\n"), "{}", picture.plain());
    }
}
