//! Figure 17: Filebench at pages of 16 KB, recorded once and replayed on both drives.

use super::common::{figure, point};
use crate::reproduce::{Drawn, Figure, Input, Outcomes, Run, Scene};

pub(super) struct Figure17;

/// The emulated drive has 48 GB (section 5.1); what the page size leaves of Table 1's 4096 blocks a plane.
const CAPACITY: &str = "flash.blocks_per_plane=192";

/// A closed loop: as soon as a request completes, the recording's next is sent.
const REPLAY: &str = "closed:32";

impl Figure for Figure17 {
    fn id(&self) -> &'static str {
        "figure17"
    }

    fn title(&self) -> &'static str {
        "Filebench's throughput, pages of 16 KB"
    }

    fn about(&self) -> &'static str {
        "Block requests of each personality on ext4, recorded once and sent to both drives in a closed loop of 32, in virtual \
         time. The baseline is VSSIM's: FIFO buffer, page FTL. The paper measured operations a second of Filebench itself, \
         with kernel and QEMU, on a drive in real time; ours are the drive's requests a second, without a file system that \
         waits for them."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "WAFLASH", "gain of WAFLASH"]
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        scene
            .inputs("filebench")
            .flat_map(|input| ["VSSIM", "WAFLASH"].map(|variant| run(scene, variant, input)))
            .collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in scene.inputs("filebench") {
            let rate = |variant| figure(outcomes, &run(scene, variant, input), |run| run.number("throughput.iops"));
            let (Some(base), Some(ours)) = (rate("VSSIM"), rate("WAFLASH")) else { continue };
            drawn.points.push(point(input, "16k", "", "Baseline", base.round(), "requests/s"));
            drawn.points.push(point(input, "16k", "", "WAFLASH", ours.round(), "requests/s"));
            if base > 0.0 {
                let gain = 100.0 * (ours - base) / base;
                drawn.points.push(point(input, "16k", "", "gain of WAFLASH", gain, "%"));
            }
        }
        drawn
    }
}

fn run(scene: &Scene, variant: &str, input: &Input) -> Run {
    let run = scene.run("16k", variant, input, REPLAY);
    if scene.quick { run } else { run.with(CAPACITY) }
}
