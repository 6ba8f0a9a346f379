//! The files and devices that jobs would work on with fio, where here there is one drive.

use super::settings::JobSettings;

/// Most names that a note lists.
const TOLD: usize = 4;

/// What to say where the jobs name different files or devices: all of them work on one drive here.
pub(super) fn note(jobs: &[JobSettings]) -> Option<String> {
    let keys = ["filename", "directory", "filename_format"];
    if !jobs.iter().any(|job| keys.iter().any(|key| job.last(key).is_some())) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for job in jobs {
        for clone in 0..job.clones {
            let name = target(job, clone);
            if !names.contains(&name) {
                names.push(name);
            }
            if names.len() > TOLD {
                break;
            }
        }
    }
    if names.len() < 2 {
        return None;
    }
    let more = if names.len() > TOLD { ", ..." } else { "" };
    names.truncate(TOLD);
    Some(format!(
        "with fio, the jobs work on different files or devices ({}{more}); here all of them work on the one drive: give each its \
         part with offset and size, or run them apart",
        names.join(", ")
    ))
}

/// The name that fio gives to the file of a clone.
pub(super) fn target(job: &JobSettings, clone: u32) -> String {
    let name = match job.last("filename") {
        Some(name) => name.replace("\\:", ":"),
        None => job
            .last("filename_format")
            .unwrap_or("$jobname.$jobnum.$filenum")
            .replace("$jobname", &job.name)
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", "0"),
    };
    // Of several directories, each clone has the next.
    let directories: Vec<&str> = job.last("directory").map_or(Vec::new(), |list| list.split(':').collect());
    match directories.len() {
        0 => name,
        count => format!("{}/{name}", directories[clone as usize % count].trim_end_matches('/')),
    }
}
