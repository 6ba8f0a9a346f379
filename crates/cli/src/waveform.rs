//! `--vcd`: the Ready/Busy lines of a run, in a file that appears when it is whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use ssdlab_base::Nanos;
use ssdlab_flash::Observer;
use ssdlab_lab::DeviceUnderTest;
use ssdlab_lab::output::Staging;
use ssdlab_measure::Levels;
use ssdlab_measure::vcd::{VcdRecording, VcdWriter};

use crate::failure::Failure;

/// A file being recorded.
pub(crate) struct Waveform {
    path: PathBuf,
    name: String,
    staging: Staging,
    recording: VcdRecording<Out>,
}

/// Where the bytes go.
enum Out {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Plain(to) => to.write(bytes),
            Out::Gzip(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Plain(to) => to.flush(),
            Out::Gzip(to) => to.flush(),
        }
    }
}

impl Out {
    fn into_file(self) -> io::Result<File> {
        let to = match self {
            Out::Plain(to) => to,
            Out::Gzip(to) => to.finish()?,
        };
        to.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// Sees and does nothing.
struct Nobody;
impl Observer for Nobody {}

impl Waveform {
    /// Begins the file of the only drive.
    pub(crate) fn begin(path: &Path, drives: &[DeviceUnderTest]) -> Result<Waveform, Failure> {
        let [drive] = drives else {
            return Err(Failure::input(format!("--vcd {}: there are {} drives", path.display(), drives.len()))
                .hint("a VCD is of one drive: run them one after the other"));
        };
        if !drive.config.timed {
            return Err(Failure::input(format!("--vcd: {} has timing = \"none\": no line ever changes", drive.label)));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| Failure::input(format!("'{}' is not the name of a file", path.display())))?;
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let mut staging = Staging::in_existing(folder).map_err(Failure::input)?;
        let file = BufWriter::with_capacity(1 << 18, staging.open(&name).map_err(Failure::input)?);
        let out = if path.extension().is_some_and(|extension| extension == "gz") {
            Out::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::fast())))
        } else {
            Out::Plain(file)
        };
        let levels = Levels::of(&drive.config.flash.geometry);
        let about = format!("Ready/Busy of {}, low is busy", drive.label);
        let writer = VcdWriter::begin(out, &levels, &about).map_err(|error| unwritten(path, &error))?;
        Ok(Waveform { path: path.to_path_buf(), name, staging, recording: VcdRecording::new(writer) })
    }

    /// What the drive is observed by.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        self.recording.observer()
    }

    /// In its place where nothing is recorded.
    pub(crate) fn nobody() -> Box<dyn Observer> {
        Box::new(Nobody)
    }

    /// Ends the file at `end` and gives it its name.
    pub(crate) fn finish(self, end: Nanos) -> Result<(), Failure> {
        let (out, _) = self.recording.finish(end).map_err(|error| unwritten(&self.path, &error))?;
        let file = out.into_file().map_err(|error| unwritten(&self.path, &error))?;
        self.staging.close(&self.name, &file).and_then(|()| self.staging.commit()).map_err(Failure::work)
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("{} could not be written: {error}", path.display()))
}
