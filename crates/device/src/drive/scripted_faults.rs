//! Faults that a caller asks for, and which of them struck.

use ssdlab_flash::{BlockId, FaultKind, ScriptedFault, Unstruck};

use super::Drive;

impl Drive {
    /// Faults may be asked for from now on; only while nothing is in flight.
    pub fn expect_faults(&mut self) {
        self.media.flash.expect_faults();
    }

    /// Lets the next operation of `kind` fail, on `block` or, with `None`, on whatever block it is. Only on a drive whose
    /// description has faults, or after [`Drive::expect_faults`]. Program failures want a reserve: `gc.free_blocks` of at
    /// least 3.
    pub fn fail_next(&mut self, kind: FaultKind, block: Option<BlockId>) {
        self.media.flash.fail_next(kind, block);
    }

    /// The faults that have struck the chips since they were made, in order, each as the script that would repeat it.
    pub fn faults_struck(&self) -> &[ScriptedFault] {
        self.media.flash.faults_struck()
    }

    /// The faults of the description's script that have not struck since the drive was made or reseeded.
    pub fn faults_unstruck(&self) -> Vec<Unstruck> {
        self.media.flash.faults_unstruck()
    }

    /// What [`Drive::fail_next`] was asked for and waits for its operation, in no order.
    pub fn faults_asked(&self) -> &[(FaultKind, Option<BlockId>)] {
        self.media.flash.faults_asked()
    }
}
