//! What the file system does by itself, and what takes time: state machines, a file each.

pub(crate) mod checkpoint;
pub(crate) mod cleaning;
pub(crate) mod encode;
pub(crate) mod in_place;
pub(crate) mod loads;
pub(crate) mod read_ahead;
pub(crate) mod stages;
pub(crate) mod threading;
pub(crate) mod timers;
pub(crate) mod write_out;

/// Work of a file system's own that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Job {
    /// What is valid in a segment is moved.
    Cleaning,
    /// A check-point is made.
    Checkpoint,
    /// The check-point that is made is the first of its segment.
    Switch,
    /// The check-point that is made moves what is valid in segments of the inode map.
    MapCleaning,
    /// Blocks of unlinked or truncated files are freed.
    Freeing,
    /// Segments or freed blocks are trimmed.
    Trim,
    /// A transaction of a journal is committed.
    Commit,
    /// Committed blocks of a journal go to their places.
    Home,
}

impl Job {
    /// All of them.
    pub const ALL: [Job; 8] = [
        Job::Cleaning,
        Job::Checkpoint,
        Job::Switch,
        Job::MapCleaning,
        Job::Freeing,
        Job::Trim,
        Job::Commit,
        Job::Home,
    ];

    /// Those of log-structured file systems.
    pub const LOG_STRUCTURED: [Job; 6] =
        [Job::Cleaning, Job::Checkpoint, Job::Switch, Job::MapCleaning, Job::Freeing, Job::Trim];

    /// Those of journaling file systems.
    pub const JOURNALING: [Job; 4] = [Job::Freeing, Job::Trim, Job::Commit, Job::Home];

    /// Their names, for messages.
    pub const NAMES: &str = "cleaning, checkpoint, switch, map-cleaning, freeing, trim, commit, home";

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Job::Cleaning => "cleaning",
            Job::Checkpoint => "checkpoint",
            Job::Switch => "switch",
            Job::MapCleaning => "map-cleaning",
            Job::Freeing => "freeing",
            Job::Trim => "trim",
            Job::Commit => "commit",
            Job::Home => "home",
        }
    }

    /// The job of a name.
    pub fn of_name(name: &str) -> Option<Job> {
        Job::ALL.into_iter().find(|job| job.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Job;

    #[test]
    fn messages_name_every_job() {
        assert_eq!(Job::NAMES, Job::ALL.map(Job::name).join(", "));
        assert!(Job::ALL.iter().all(|job| Job::of_name(job.name()) == Some(*job)));
    }
}
