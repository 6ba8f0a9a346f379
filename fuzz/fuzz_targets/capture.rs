//! A capture of any bytes, recognised by its content: as it is, and behind the heads of a VCD and of a CSV.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdlab_base::Nanos;
use ssdlab_measure::capture::{Capture, Select};
use ssdlab_measure::classify::{Expected, Fit, Survey};
use ssdlab_measure::recorder::{Recorder, Settings};

const HEADS: [&[u8]; 3] = [
    b"",
    b"$timescale 10 ps $end $scope module a $end $var wire 1 ! b $end $var wire 1 ab c $end $upscope $end $enddefinitions $end ",
    b"Time [s],Channel 0,Channel 1\n",
];

fuzz_target!(|data: &[u8]| {
    for head in HEADS {
        let bytes = [head, data].concat();
        let select = Select { sample_rate: Some(3), invert: data.len() % 2 == 1, ..Select::default() };
        let Ok(capture) = Capture::from_bytes("fuzz", bytes, &select) else { continue };
        let lines = capture.lines().len();
        let window = "200us..2ms".parse().expect("a window");
        let mut survey = Survey::new(lines, Some(window));
        let mut recorder = Recorder::new(Settings::with_window(window));
        let (mut last, mut count) = (Nanos::ZERO, 0);
        let decoded = capture.decode(|edges| {
            for &edge in edges {
                assert!(edge.at >= last && (edge.die as usize) < lines);
                last = edge.at;
                count += 1;
                if let Some(low) = survey.edge(edge).filter(|low| low.die == 0) {
                    recorder.low(low);
                }
            }
        });
        if let Ok(decoded) = decoded {
            assert_eq!(decoded.edges, count);
        }
        let lows = survey.all();
        assert_eq!(Fit::new(&lows, &Expected::default()).is_some(), lows.total() > 0);
        let report = recorder.finish();
        assert!(report.durations.total() + report.unnoticed.missed + report.unnoticed.merged == survey.lines()[0].total());
        let _ = lows.render(Some(window));
    }
});
