//! The paper's micro-benchmarks by their names: `[size]-[RD|SQ]-[50%|100%]-W-[Y|N]`, as workloads in fio's words.
//!
//! Y is "4KiB alignment of each I/O": a request begins at a multiple of 4 KiB, so sequential requests of 512 bytes leave
//! the rest of each 4 KiB out. N is alignment to 512 bytes; there, a sequence of larger requests begins 512 bytes off.

use std::fmt;
use std::str::FromStr;

use ssdlab_base::parse_size;

/// What the paper aligns to.
const ALIGNMENT: u64 = 4096;
/// A sector.
const SECTOR: u64 = 512;

/// A micro-benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroBenchmark {
    /// Bytes of a request.
    pub size: u64,
    /// Random (RD), or else sequential (SQ).
    pub random: bool,
    /// Percent of the requests that are writes; the rest are reads.
    pub write_percent: u8,
    /// Each request begins at a multiple of 4 KiB, not just of 512 bytes.
    pub aligned: bool,
}

/// Why a name is no micro-benchmark's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a micro-benchmark: expected SIZE-ACCESS-WRITES-ALIGNED such as 4KiB-RD-100%-W-Y: a multiple of 512 \
     bytes, RD (random) or SQ (sequential), 1%-W to 100%-W, Y (4 KiB) or N (512 bytes)"
)]
pub struct NameError(String);

impl FromStr for MicroBenchmark {
    type Err = NameError;

    /// Reads a name; `100%W` is `100%-W`, and case does not matter.
    ///
    /// ```
    /// use ssdlab_measure::micro::MicroBenchmark;
    /// let benchmark: MicroBenchmark = "512B-SQ-50%-W-N".parse().expect("a name of the paper's");
    /// assert_eq!(benchmark.to_string(), "512B-SQ-50%-W-N");
    /// ```
    fn from_str(text: &str) -> Result<MicroBenchmark, NameError> {
        let error = || NameError(text.chars().take(60).collect());
        let upper = text.trim().to_ascii_uppercase().replace("%W", "%-W");
        let parts: Vec<&str> = upper.split('-').collect();
        let &[size, access, writes, "W", aligned] = parts.as_slice() else { return Err(error()) };
        let size = parse_size(size).ok().filter(|size| *size > 0 && *size <= 1 << 30 && size.is_multiple_of(SECTOR));
        let writes = writes.strip_suffix('%').and_then(|percent| percent.parse().ok());
        Ok(MicroBenchmark {
            size: size.ok_or_else(error)?,
            random: match access {
                "RD" => true,
                "SQ" => false,
                _ => return Err(error()),
            },
            write_percent: writes.filter(|percent| (1..=100).contains(percent)).ok_or_else(error)?,
            aligned: match aligned {
                "Y" => true,
                "N" => false,
                _ => return Err(error()),
            },
        })
    }
}

impl fmt::Display for MicroBenchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size =
            if self.size.is_multiple_of(1024) { format!("{}KiB", self.size / 1024) } else { format!("{}B", self.size) };
        let access = if self.random { "RD" } else { "SQ" };
        let aligned = if self.aligned { "Y" } else { "N" };
        write!(f, "{size}-{access}-{}%-W-{aligned}", self.write_percent)
    }
}

impl MicroBenchmark {
    /// The twenty that the paper verifies with 100 % writes and the twenty with 50 %: sizes, then access, then alignment.
    pub fn all(write_percent: u8) -> Vec<MicroBenchmark> {
        let mut all = Vec::new();
        for size in [512, 4 << 10, 8 << 10, 16 << 10, 32 << 10] {
            for random in [false, true] {
                for aligned in [true, false] {
                    all.push(MicroBenchmark { size, random, write_percent, aligned });
                }
            }
        }
        all
    }

    /// The workload as a line of fio's options, without a depth and without an end (`io_size` is the region's size).
    ///
    /// ```
    /// use ssdlab_measure::micro::MicroBenchmark;
    /// let benchmark: MicroBenchmark = "8KiB-RD-50%-W-N".parse().expect("a name");
    /// assert_eq!(benchmark.fio(), "rw=randrw,rwmixwrite=50,bs=8192,blockalign=512,norandommap");
    /// ```
    pub fn fio(&self) -> String {
        let MicroBenchmark { size, random, write_percent, aligned } = *self;
        let mut options = match (random, write_percent) {
            (true, 100) => "rw=randwrite".to_string(),
            (true, percent) => format!("rw=randrw,rwmixwrite={percent}"),
            (false, 100) => "rw=write".to_string(),
            (false, percent) => format!("rw=rw,rwmixwrite={percent}"),
        };
        let hole = size.next_multiple_of(ALIGNMENT) - size;
        if !random && aligned && hole > 0 {
            let colon = options.find(',').unwrap_or(options.len());
            options.insert_str(colon, &format!(":{hole}"));
        }
        options += &format!(",bs={size}");
        match (random, aligned) {
            (true, true) => options += &format!(",blockalign={ALIGNMENT},norandommap"),
            (true, false) => options += &format!(",blockalign={SECTOR},norandommap"),
            (false, false) if size > SECTOR => options += &format!(",offset={SECTOR}"),
            (false, _) => {}
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_nonsense_is_refused() {
        for benchmark in [50, 100].into_iter().flat_map(MicroBenchmark::all) {
            assert_eq!(benchmark.to_string().parse(), Ok(benchmark));
        }
        assert_eq!("4k-rd-100%w-y".parse(), "4KiB-RD-100%-W-Y".parse::<MicroBenchmark>());
        for bad in
            ["", "4KiB", "4KiB-RD-0%-W-Y", "4KiB-RD-101%-W-Y", "100B-RD-50%-W-Y", "4KiB-XX-50%-W-Y", "4KiB-RD-50%-W-Z"]
        {
            assert!(bad.parse::<MicroBenchmark>().is_err(), "{bad}");
        }
    }

    #[test]
    fn small_aligned_sequences_leave_holes() {
        let fio = |name: &str| name.parse::<MicroBenchmark>().expect("a name").fio();
        assert_eq!(fio("512B-SQ-100%-W-Y"), "rw=write:3584,bs=512");
        assert_eq!(fio("512B-SQ-50%-W-Y"), "rw=rw:3584,rwmixwrite=50,bs=512");
        assert_eq!(fio("512B-SQ-100%-W-N"), "rw=write,bs=512");
        assert_eq!(fio("32KiB-SQ-100%-W-N"), "rw=write,bs=32768,offset=512");
        assert_eq!(fio("512B-RD-100%-W-Y"), "rw=randwrite,bs=512,blockalign=4096,norandommap");
    }
}
