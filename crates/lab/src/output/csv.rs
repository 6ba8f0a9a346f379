//! `latency.csv`: the distributions of latencies as a table.

use std::io::{self, Write};

use crate::result::RunResult;

/// A field of a CSV file (RFC 4180), in quotes where it needs them.
pub fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

pub(super) fn write(run: &RunResult, mut to: impl Write) -> io::Result<()> {
    writeln!(to, "device,op,latency_ns,fraction")?;
    for device in &run.devices {
        let name = field(&device.name);
        for (op, cdf) in &device.latency_cdf {
            for (latency, fraction) in cdf.latency_ns.iter().zip(&cdf.fraction) {
                writeln!(to, "{name},{op},{latency},{fraction}")?;
            }
        }
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_name_with_commas_and_quotes_stays_one_field() {
        assert_eq!(super::field("plain"), "plain");
        assert_eq!(super::field("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
