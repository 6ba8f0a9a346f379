//! What a file system stands on: a drive, or layers above drives and disks, over crashes of the host and power cuts.

use ssdlab_base::Nanos;
use ssdlab_device::{Drive, Options as DriveOptions};
use ssdlab_flash::Contents;
use ssdlab_host::{Again, Device, Host, Member, Through};

use super::Files;
use super::limit::Limit;
use crate::case::{Allowed, Case, Refused};
use crate::cut::{Cut, Whose};
use crate::driver;
use crate::stacks::{Fresh, build_again, fresh};

/// Events in which some call ends, above a drive and above layers.
const MOST_EVENTS: [u32; 2] = [20_000, 400_000];

/// What the device below may do, and how it comes back.
pub(super) struct Below {
    /// The layers; `None` for a drive alone.
    host: Option<Host>,
    pub(super) limit: Limit,
    pub(super) allowed: Allowed,
    /// Virtual time in which some call ends, or the file system hangs.
    pub(super) hangs_after: Nanos,
    /// Events in which some call ends.
    pub(super) most_events: u32,
}

impl Below {
    /// Drives that nothing was written to, and the layers above them.
    pub(super) fn new(case: &Case<Files>) -> Result<(Below, Box<dyn Device>), Refused> {
        let limit = Limit::new();
        let host = case.subject.stack.as_ref().map(|stack| stack.host.clone());
        let (device, allowed, hangs_after): (Box<dyn Device>, _, _) = match &host {
            Some(host) => {
                if case.subject.kind.command_set.is_none() {
                    host.sectors(&case.drive)?;
                }
                let Fresh { members, allowed, hangs_after } = fresh(case, host, Contents::Bytes)?;
                (host.build(members)?, allowed, hangs_after)
            }
            None => {
                let options = DriveOptions { seed: case.seed, contents: Contents::Bytes };
                let allowed = case.allows(&case.drive);
                let mut drive = Drive::new(&case.drive, options)?;
                allowed.prepare(&mut drive);
                (Member::alone(drive, options), allowed, driver::hangs_after(&case.drive))
            }
        };
        let device = Box::new(Through::new(device, limit.clone()));
        let most_events = MOST_EVENTS[usize::from(host.is_some())];
        Ok((Below { host, limit, allowed, hangs_after, most_events }, device))
    }

    /// The host has crashed, or the power of everything has gone and come back. A drive alone goes on with what it has in flight when the
    /// host has crashed, and `again` says where its recovery is cut. `None` where layers do not come back, since reads of what they keep
    /// may fail.
    pub(super) fn come_back(
        &self,
        mut device: Box<dyn Device>,
        cut: &Cut,
        again: &mut Again<'_>,
    ) -> Option<Box<dyn Device>> {
        let Some(host) = &self.host else {
            if cut.whose == Whose::All {
                device.cut(0, again);
            }
            return Some(device);
        };
        match build_again(host, device, cut) {
            Ok(device) => Some(Box::new(Through::new(device, self.limit.clone()))),
            Err(why) => {
                assert!(self.allowed.failed_reads, "a stack comes back: {why}");
                None
            }
        }
    }
}
