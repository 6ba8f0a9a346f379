//! What is done with a drive before the run.

use crate::source::WorkloadSource;

/// The state that a drive is brought to before the run.
#[derive(Clone, Copy)]
pub enum Preconditioning<'a> {
    /// Fresh.
    None,
    /// Written once, in order.
    Fill,
    /// Written once, in order, wherever the workload that follows reads or writes.
    Footprint,
    /// In the steady state of the workload that follows.
    Steady,
    /// In the steady state of this workload, whatever follows.
    SteadyUnder(&'a dyn WorkloadSource),
    /// Whatever this workload leaves, run once (its pass 0) on an empty drive.
    Workload(&'a dyn WorkloadSource),
    /// Whatever this workload leaves on a filled drive.
    FilledThen(&'a dyn WorkloadSource),
}

impl<'a> Preconditioning<'a> {
    /// Everything that decides the state of a drive, for the name of a snapshot; `None` where there is nothing to keep.
    pub(crate) fn identity(&self, measured: &dyn WorkloadSource) -> Option<String> {
        match self {
            Preconditioning::None => None,
            Preconditioning::Fill => Some("fill".to_string()),
            Preconditioning::Footprint => Some(format!("footprint {}", measured.identity())),
            Preconditioning::Steady => Some(format!("steady {}", measured.identity())),
            // `Steady` and `SteadyUnder` of one workload lead to one state, so both give the same text.
            Preconditioning::SteadyUnder(source) => Some(format!("steady {}", source.identity())),
            Preconditioning::Workload(source) => Some(format!("workload {}", source.identity())),
            Preconditioning::FilledThen(source) => Some(format!("fill, workload {}", source.identity())),
        }
    }

    /// The workload of its own that it is brought about by; nothing for other kinds.
    pub(crate) fn source(&self) -> Option<&'a dyn WorkloadSource> {
        match self {
            Preconditioning::SteadyUnder(source)
            | Preconditioning::Workload(source)
            | Preconditioning::FilledThen(source) => Some(*source),
            Preconditioning::None | Preconditioning::Fill | Preconditioning::Footprint | Preconditioning::Steady => {
                None
            }
        }
    }

    /// Whether it may leave a part of the drive that was never written.
    pub(crate) fn may_leave_holes(&self) -> bool {
        matches!(self, Preconditioning::Footprint | Preconditioning::Workload(_))
    }

    /// The workload whose steady state this is; nothing for other kinds.
    pub(crate) fn steady_under(&self, measured: &'a dyn WorkloadSource) -> Option<&'a dyn WorkloadSource> {
        match self {
            Preconditioning::Steady => Some(measured),
            Preconditioning::SteadyUnder(source) => Some(*source),
            _ => None,
        }
    }
}
