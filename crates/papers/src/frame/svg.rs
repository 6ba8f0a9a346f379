//! A picture of a reproduction as SVG: boxes in lanes, below them the scale and what the colours stand for.

use ssdlab_lab::report::html::escape;

use super::picture::Picture;

/// Pixels: all of it, the names' part, a lane, and what is below the lanes.
const WIDTH: f64 = 1200.0;
const NAMES: f64 = 140.0;
const LANE: f64 = 26.0;
const BELOW: f64 = 44.0;

/// Least width of a box that has its label inside, pixels for each letter.
const LETTER: f64 = 8.0;

/// As SVG, in the colours of the page that it stands in.
pub(super) fn svg(picture: &Picture) -> String {
    let scale = (WIDTH - NAMES - 8.0) / picture.end.max(f64::MIN_POSITIVE);
    let height = LANE * picture.lanes.len() as f64 + BELOW;
    let mut svg = format!(
        "<svg class=\"picture\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&picture.title)
    );
    for (row, lane) in picture.lanes.iter().enumerate() {
        let top = row as f64 * LANE;
        let middle = top + LANE / 2.0 + 4.0;
        svg.push_str(&format!("<text class=\"name\" x=\"0\" y=\"{middle}\">{}</text>", escape(&lane.name)));
        for one in &lane.boxes {
            let (left, width) = (NAMES + one.from * scale, (one.to - one.from) * scale);
            let says =
                format!("{}: {} {}", lane.name, one.label, picture.groups.get(one.group).map_or("", |name| name));
            svg.push_str(&format!(
                "<rect x=\"{left:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" style=\"fill:var(--d{})\">\
                     <title>{} {}</title></rect>",
                top + 2.0,
                width.max(1.0),
                LANE - 4.0,
                one.group % 12,
                escape(&says),
                if picture.x.is_empty() {
                    String::new()
                } else {
                    format!("{:.3} to {:.3} {}", one.from, one.to, escape(picture.x))
                },
            ));
            if width >= LETTER * one.label.chars().count() as f64 {
                svg.push_str(&format!(
                    "<text class=\"label\" x=\"{:.2}\" y=\"{middle}\">{}</text>",
                    left + width / 2.0,
                    escape(&one.label)
                ));
            }
        }
    }
    let bottom = LANE * picture.lanes.len() as f64 + 14.0;
    if !picture.x.is_empty() {
        svg.push_str(&format!(
            "<text class=\"name\" x=\"{NAMES}\" y=\"{bottom}\">0</text><text class=\"name end\" x=\"{}\" \
                 y=\"{bottom}\">{:.0} {}</text>",
            WIDTH - 8.0,
            picture.end,
            escape(picture.x)
        ));
    }
    for (index, group) in picture.groups.iter().enumerate() {
        let left = NAMES + 150.0 * index as f64;
        svg.push_str(&format!(
            "<rect x=\"{left}\" y=\"{:.2}\" width=\"12\" height=\"12\" style=\"fill:var(--d{})\"/><text class=\"name\" \
                 x=\"{}\" y=\"{:.2}\">{}</text>",
            bottom + 12.0,
            index % 12,
            left + 18.0,
            bottom + 22.0,
            escape(group)
        ));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Lane, Mark};

    #[test]
    fn an_svg_has_a_box_for_each_and_escapes_names() {
        let boxes = vec![Mark { from: 0.0, to: 1.0, label: "<0>".to_string(), group: 0 }];
        let picture = Picture {
            title: "a <picture>".to_string(),
            x: "us",
            end: 2.0,
            groups: vec!["A & B".to_string()],
            lanes: vec![Lane { name: "one".to_string(), boxes }, Lane { name: "two".to_string(), boxes: Vec::new() }],
        };
        let svg = svg(&picture);
        assert_eq!(svg.matches("<rect").count(), 1 + 1, "{svg}");
        for part in ["a &lt;picture&gt;", "A &amp; B", "&lt;0&gt;", "0.000 to 1.000 us"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(!svg.contains("<picture"), "{svg}");
    }
}
