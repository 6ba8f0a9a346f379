//! What kinds of log-structured file systems do not share: how a check-point makes the node map and the usage table durable, and where it
//! goes itself. How such a file system is made and mounted is each kind's own, too.

use std::fmt;

use super::Core;
use crate::format::checkpoint::Checkpoint;
use crate::jobs::encode::NoSegment;

/// Where a kind of file system has its metadata.
pub(crate) trait Layout: fmt::Debug + Sync {
    /// Whether a check-point goes behind the one before, and its segment is trimmed before it is used again. If not, check-points
    /// overwrite segments 1 and 2 in turn.
    fn appends_checkpoints(&self) -> bool;

    /// Segments of metadata that the next check-point cleans.
    fn victims(&self, core: &Core) -> Vec<u32>;

    /// Blocks of the node map that the next check-point needs in memory, where it cleans these segments.
    fn needs(&self, core: &Core, victims: &[u32]) -> Vec<u32>;

    /// Sends what has changed of the node map and of the usage table. All dirty nodes are sent. Segments that the check-point calls free, as
    /// they hold nothing any more.
    fn encode(&self, core: &mut Core, victims: &[u32]) -> Result<Vec<u32>, NoSegment>;

    /// What the check-point says of the node map and of the usage table.
    fn tell(&self, core: &Core, checkpoint: &mut Checkpoint);
}
