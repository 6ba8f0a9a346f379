//! FTL design `dftl`: page mapping with the map on flash and a part of it in RAM (Gupta et al., ASPLOS 2009; the SHRD paper,
//! section 2). All of it is [`DemandFtl`].

use ssdlab_base::Rng;

use super::cached_map::keys::{self, KEYS, Sizes};
use super::demand_paged::{self, DemandFtl};
use super::{Design, Drawing, Make};
use crate::{DriveConfig, DriveError, Parity};

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "dftl",
    summary: "page mapping with the map on flash, a part of it cached in RAM",
    keys: KEYS,
    make: Make {
        check,
        map_blocks: demand_paged::map_blocks,
        drawing: Drawing { drive: draw, handful: keys::handful, one_in: 4, ..Drawing::ANY },
        ..Make::of(|config| Box::new(DemandFtl::new(config)), demand_paged::simulator_bytes)
    },
};

fn check(config: &DriveConfig) -> Result<(), DriveError> {
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    if config.ftl.parity != Parity::None {
        let reason = "the design 'dftl' has no parity over its map blocks: use \"none\"";
        return refuse("ftl.parity", reason.to_string());
    }
    Sizes::of(config).check(config)
}

/// Makes a drawn drive one that [`check`] accepts, with caches from the smallest to all of the map.
fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    config.ftl.parity = Parity::None;
    keys::draw(config, rng);
}
