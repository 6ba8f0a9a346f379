//! Table III: user spaces, and the share of over-provisioning that equation 5 gives them.

use super::common::point;
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

/// The partitions, by the share that the paper calls them after.
pub(super) const PARTITIONS: [&str; 5] = ["OP 7 %", "OP 8 %", "OP 10 %", "OP 12 %", "OP 15 %"];

const USER: &str = "user space";
const SHARE: &str = "OP by equation 5";
const WHOLE: &str = "physical space never written, of the capacity";

const GB: f64 = 1_073_741_824.0;

pub(super) static FIGURE: Figure = Figure {
    id: "table03",
    title: "over-provisioning by the size of the partition",
    about: "User space is what the initial data writes on SSD-I. Equation 5 takes 2.8 GB of spare whatever the \
            partition, so its OP % is not the space that the drive can use: after a TRIM everything outside the \
            partition is spare as well. The last column is that.",
    differs: "",
    series: &[USER, SHARE, WHOLE],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let mut drawn = Drawn::default();
    let Ok(drive) = context.drive("SSD-I") else { return Ok(drawn) };
    let capacity = drive.flash.geometry.bytes() as f64 / GB;
    let spare = capacity - drive.user_bytes as f64 / GB;
    for partition in PARTITIONS {
        let group = format!("{partition} initial");
        let initial = context.inputs.iter().find(|input| input.group == group);
        let input = context.inputs.iter().find(|input| input.stands_for == partition);
        let (Some(initial), Some(input)) = (initial, input) else { continue };
        let Some(survey) = &initial.survey else { continue };
        let user = survey.write_bytes as f64 / GB;
        let share = 100.0 * ssdlab_measure::model::over_provisioning(spare, user);
        drawn.points.push(point(input, "SSD-I", "", USER, user, "GB"));
        drawn.points.push(point(input, "SSD-I", "", SHARE, share, "%"));
        drawn.points.push(point(input, "SSD-I", "", WHOLE, 100.0 * (capacity - user) / capacity, "%"));
    }
    Ok(drawn)
}
