//! The files of a run: `result.json`, `summary.csv`, `summary.parquet`, `latency.csv`, `timeline.parquet`, `report.html`, each
//! drive's description as `drive-NAME.toml`, and its log before and after as `smart/before.json` and `smart/after.json`.
//!
//! All are first written whole under temporary names beside their own, forced to the disk, and then renamed, one
//! after the other, `result.json` last. So a reader never sees half a file; a disk that is full (or any other error
//! before the first rename) leaves the folder as it was, without a new file; and results that were there before are
//! replaced file by file. Logs and descriptions of drives that only the earlier run had are removed, by the names that its
//! `result.json` has. A crash between two renames can leave files of two runs side by side, each of them whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SmartLogs;
use crate::result::{DeviceResult, FORMAT, RunResult};

mod columns;
mod csv;
mod json;
mod parquet;
mod summary;
mod timeline;

pub use csv::field as csv_field;

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be written: {source}", path.display())]
pub struct OutputError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Files that will appear together in a folder; those not committed vanish.
#[derive(Debug)]
pub struct Staging {
    folder: PathBuf,
    /// Folders that were not there before, the outer ones first.
    made: Vec<PathBuf>,
    /// Temporary and final path.
    staged: Vec<(PathBuf, PathBuf)>,
    /// Files of an earlier run that none of these replaces.
    outdated: Vec<PathBuf>,
}

impl Staging {
    /// Makes the folder where it is missing; it goes again if nothing comes into it.
    pub fn new(folder: &Path) -> Result<Staging, OutputError> {
        let failed = |source| OutputError { path: folder.to_path_buf(), source };
        if let Some(file) = folder.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir()) {
            let what = format!("{} is a file, expected a folder or a name that is free", file.display());
            return Err(failed(io::Error::new(io::ErrorKind::NotADirectory, what)));
        }
        let made = if folder.exists() { Vec::new() } else { vec![folder.to_path_buf()] };
        fs::create_dir_all(folder).map_err(failed)?;
        Ok(Staging { folder: folder.to_path_buf(), made, staged: Vec::new(), outdated: Vec::new() })
    }

    /// Stages a run's files.
    ///
    /// # Errors
    /// They cannot be made in the folder, or another program's `result.json` would be replaced.
    pub fn of_run(folder: &Path) -> Result<Staging, OutputError> {
        let mut staging = Staging::new(folder)?;
        let path = folder.join("result.json");
        if let Ok(text) = fs::read(&path)
            && !text.is_empty()
            && serde_json::from_slice::<Format>(&text).is_err()
        {
            let what = "it is no result of ssdlab, which would replace it: name another folder";
            return Err(OutputError { path, source: io::Error::new(io::ErrorKind::AlreadyExists, what) });
        }
        staging.try_out()?;
        Ok(staging)
    }

    /// Stages single files in a folder that exists already. A missing one is not made: its name is probably mistyped.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn in_existing(folder: &Path) -> Result<Staging, OutputError> {
        if folder.exists() {
            return Staging::new(folder);
        }
        let source = io::Error::new(io::ErrorKind::NotFound, "this folder does not exist, expected one that does");
        Err(OutputError { path: folder.to_path_buf(), source })
    }

    /// Tries whether a run's files can be made in the folder at all.
    pub fn try_out(&mut self) -> Result<(), OutputError> {
        for trial in ["result.json", &format!("{SMART}/before.json")] {
            self.open(trial)?;
            if let Some((temporary, _)) = self.staged.pop() {
                fs::remove_file(&temporary).map_err(|source| OutputError { path: temporary, source })?;
            }
        }
        Ok(())
    }

    /// A new file that will be called `name`, perhaps in a folder of its own: write it, then hand it to [`Staging::close`].
    pub fn open(&mut self, name: &str) -> Result<File, OutputError> {
        let path = self.folder.join(name);
        let (folder, file) = match name.rsplit_once('/') {
            Some((below, file)) => (self.folder.join(below), file),
            None => (self.folder.clone(), name),
        };
        if !folder.exists() {
            fs::create_dir(&folder).map_err(|source| OutputError { path: folder.clone(), source })?;
            self.made.push(folder.clone());
        }
        if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) {
            let what = "a device, pipe, link or folder has this name, expected a file or a name that is free";
            return Err(OutputError { path, source: io::Error::new(io::ErrorKind::AlreadyExists, what) });
        }
        let temporary = folder.join(format!(".{file}.{}.part", std::process::id()));
        // Removes what a killed run of the same process number left. A link that was put there is not followed.
        let _ = fs::remove_file(&temporary);
        match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => {
                self.staged.push((temporary, path));
                Ok(file)
            }
            Err(source) => Err(OutputError { path, source }),
        }
    }

    /// Forces a written file to the disk, where a full disk shows at the latest.
    pub fn close(&self, name: &str, file: &File) -> Result<(), OutputError> {
        file.sync_all().map_err(|source| OutputError { path: self.folder.join(name), source })
    }

    /// Writes a whole file.
    pub fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let mut to = BufWriter::with_capacity(1 << 18, self.open(name)?);
        let file = match fill(&mut to).and_then(|()| to.into_inner().map_err(io::IntoInnerError::into_error)) {
            Ok(file) => file,
            Err(source) => {
                return Err(OutputError { path: self.folder.join(name), source });
            }
        };
        self.close(name, &file)
    }

    /// Gives all files their names, in the order in which they were opened. What is outdated goes before the last of them, which
    /// is the one that names it.
    pub fn commit(mut self) -> Result<(), OutputError> {
        let rename = |(temporary, path): &(PathBuf, PathBuf)| {
            fs::rename(temporary, path).map_err(|source| OutputError { path: path.clone(), source })
        };
        if let Some((last, before)) = self.staged.split_last() {
            before.iter().try_for_each(rename)?;
            for path in self.outdated.iter().filter(|path| self.staged.iter().all(|(_, new)| new != *path)) {
                match fs::remove_file(path) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        return Err(OutputError { path: path.clone(), source });
                    }
                    _ => {}
                }
            }
            rename(last)?;
        }
        self.staged.clear();
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for (temporary, _) in &self.staged {
            let _ = fs::remove_file(temporary);
        }
        for folder in self.made.iter().rev() {
            // Only an empty folder can be removed so.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes everything there is to know about a run into `staging`, and commits it.
pub fn write_results(mut staging: Staging, run: &RunResult) -> Result<(), OutputError> {
    staging.write("summary.csv", |to| write_summary_csv(run, to))?;
    staging.write("summary.parquet", |to| write_summary_parquet(run, to))?;
    staging.write("latency.csv", |to| write_latency_csv(run, to))?;
    staging.write("timeline.parquet", |to| write_timeline(run, to))?;
    let drives = Drives::of(run);
    for (number, device) in run.devices.iter().enumerate() {
        if let Some(description) = description(device) {
            staging.write(&drives.description(number), |to| to.write_all(description.as_bytes()))?;
        }
        let logs = [("before", &device.smart.before), ("after", &device.smart.after)];
        // Results that were read back have none.
        for (moment, log) in logs.into_iter().filter(|(_, log)| !log.is_null()) {
            staging.write(&drives.log(number, moment), |to| {
                serde_json::to_writer_pretty(&mut *to, log)?;
                to.write_all(b"\n")
            })?;
        }
    }
    staging.write("report.html", |to| to.write_all(crate::report::render(run).as_bytes()))?;
    staging.write("result.json", |to| write_json(run, to))?;
    staging.outdated = files_of_drives(&staging.folder);
    staging.commit()
}

/// The description of a drive as `--device` takes it, with every default filled in, under the name that it has in the results.
fn description(device: &DeviceResult) -> Option<String> {
    let mut table = toml::Table::try_from(&device.configuration).ok()?;
    table.insert("name".to_string(), toml::Value::String(device.name.clone()));
    Some(table.to_string())
}

/// Bytes of a drive's name in the name of a file: with what stands beside it, it fits the 255 that file systems take.
const FILE_PART_MAX: usize = 150;

/// The folder of the drives' logs.
const SMART: &str = "smart";

/// The names of a run's drives, by which their files are called.
struct Drives<'a>(Vec<&'a str>);

impl<'a> Drives<'a> {
    fn of(run: &'a RunResult) -> Drives<'a> {
        Drives(run.devices.iter().map(|device| device.name.as_str()).collect())
    }

    /// The name of the drive at a place as a part of the names of its files: other drives have other ones.
    fn file_part(&self, number: usize) -> String {
        let name = self.0[number];
        let is_safe = |letter: &char| !matches!(letter, '/' | '\\') && !letter.is_control();
        if name.len() <= FILE_PART_MAX && name.chars().all(|letter| is_safe(&letter)) {
            return name.to_string();
        }
        let safe: String = name.chars().map(|letter| if is_safe(&letter) { letter } else { '_' }).collect();
        let ends = safe.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let end = ends.take_while(|end| *end <= FILE_PART_MAX).last().unwrap_or(0);
        format!("{}-{}", &safe[..end], number + 1)
    }

    /// The file of a drive's description.
    fn description(&self, number: usize) -> String {
        format!("drive-{}.toml", self.file_part(number))
    }

    /// The file of a drive's log: `smart/before.json`, and with the drive's name where there are several.
    fn log(&self, number: usize, moment: &str) -> String {
        match self.0.len() {
            1 => format!("{SMART}/{moment}.json"),
            _ => format!("{SMART}/{moment}-{}.json", self.file_part(number)),
        }
    }
}

/// The files of the drives that the `result.json` of a folder names; none if it cannot be read, or is not of a run.
fn files_of_drives(folder: &Path) -> Vec<PathBuf> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    #[derive(Deserialize)]
    struct Earlier {
        devices: Vec<Named>,
    }
    let earlier = fs::read(folder.join("result.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let Some(Earlier { devices }) = earlier else { return Vec::new() };
    let drives = Drives(devices.iter().map(|device| device.name.as_str()).collect());
    let files = |number| [drives.description(number), drives.log(number, "before"), drives.log(number, "after")];
    (0..devices.len()).flat_map(files).map(|name| folder.join(name)).collect()
}

/// Writes `result.json`: indented, with every list of numbers on a line of its own.
pub fn write_json(run: &impl Serialize, mut to: impl Write) -> io::Result<()> {
    run.serialize(&mut serde_json::Serializer::with_formatter(&mut to, json::Layout::default()))?;
    to.write_all(b"\n")
}

/// Writes `summary.csv`: a row for each drive and repetition, with what was laid over its description and the metrics that a run
/// is judged by, in the units of `result.json`.
pub fn write_summary_csv(run: &RunResult, to: impl Write) -> io::Result<()> {
    summary::write_csv(run, to)
}

/// Writes `summary.parquet`: the same table with typed values. A column of overrides that are all numbers is one of numbers.
pub fn write_summary_parquet(run: &RunResult, to: impl Write + Send) -> io::Result<()> {
    summary::write_parquet(run, to)
}

/// Writes all files of a run into a folder, which is made where it is missing.
///
/// # Errors
/// The folder or a file cannot be written; none is left then.
pub fn write_into(folder: &Path, run: &RunResult) -> Result<(), OutputError> {
    write_results(Staging::new(folder)?, run)
}

/// Writes `latency.csv`: the cumulative distributions, `device,op,latency_ns,fraction`.
pub fn write_latency_csv(run: &RunResult, to: impl Write) -> io::Result<()> {
    csv::write(run, to)
}

/// Writes `timeline.parquet`: a row for each drive and interval.
pub fn write_timeline(run: &RunResult, to: impl Write + Send) -> io::Result<()> {
    timeline::write(run, to)
}

/// Why results could not be read back.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be read: {source}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// The key that is read first: it says whether the others can be understood.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Reads a drive's log. Earlier versions had it in `smart-before.json` beside the results, or not at all.
fn read_log(folder: &Path, name: &str) -> io::Result<serde_json::Value> {
    for name in [name, &name.replacen('/', "-", 1)] {
        match fs::read_to_string(folder.join(name)) {
            Ok(text) => return Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(serde_json::Value::Null)
}

/// Reads the results in a folder back, for a report.
pub fn read_results(folder: &Path) -> Result<RunResult, ReadError> {
    let path = folder.join("result.json");
    let read = || -> io::Result<RunResult> {
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let text = fs::read_to_string(&path)?;
        let Format { format } = serde_json::from_str(&text)?;
        if format != FORMAT {
            let advice = match format < FORMAT {
                true => "docs/results.md lists the keys that changed; repeat the run, or use the ssdlab that wrote it",
                false => "a newer ssdlab wrote it; use that one",
            };
            let what = format!("its format is {format}, and this ssdlab reads format {FORMAT}: {advice}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let mut result: RunResult = serde_json::from_str(&text)?;
        let drives = Drives::of(&result);
        let names: Vec<_> =
            (0..result.devices.len()).map(|number| ["before", "after"].map(|when| drives.log(number, when))).collect();
        for (device, [before, after]) in result.devices.iter_mut().zip(names) {
            device.smart = SmartLogs { before: read_log(folder, &before)?, after: read_log(folder, &after)? };
        }
        Ok(result)
    };
    read().map_err(|source| ReadError { path: path.clone(), source })
}
