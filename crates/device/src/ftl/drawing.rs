//! What tests that draw drives have to know of a design: which drives it takes, and what its own keys may be.

use rand::RngExt as _;
use ssdlab_base::{CommandSet, Rng};
use ssdlab_flash::OobUse;

use super::DESIGNS;
use crate::{DriveConfig, Owners, Pacing, Parity, PlacementConfig, Settings, Superblock};

/// How drives of a design are drawn.
pub(crate) struct Drawing {
    /// Draws the design's own keys, and makes the rest of a drawn drive one that it accepts.
    pub(crate) drive: fn(&mut DriveConfig, &mut Rng),
    /// How many of so many units that the drive could have are the user's, so that the design's ways differ.
    pub(crate) user_units: fn(u64, &mut Rng) -> u64,
    /// Makes a drive of a handful of pages one that the design accepts, in two ways.
    pub(crate) handful: fn(&mut DriveConfig, bool),
    /// Its drives take other commands than those that are drawn for all: it is drawn by a campaign of its own alone.
    pub(crate) own_campaign: bool,
    /// Of so many drawn drives that would have another design one has this; 0: it is one of those that are drawn evenly.
    pub(crate) one_in: u32,
}

impl Drawing {
    /// Of a design that takes any drive and has no keys.
    pub(crate) const ANY: Drawing =
        Drawing { drive: |_, _| (), user_units: |units, _| units, handful: |_, _| (), own_campaign: false, one_in: 0 };
}

/// Draws limits on zones with which a host can append, most often as few as it needs: four active ones.
pub fn draw_zone_limits(own: Settings, rng: &mut Rng) -> Settings {
    const LIMITS: [(u32, u32); 5] = [(4, 4), (1, 4), (3, 5), (2, 0), (0, 0)];
    let (open, active) = LIMITS[rng.random_range(0..LIMITS.len())];
    own.with("max_open_zones", open).with("max_active_zones", active)
}

/// The drawing of a drive's design; of one that is not known any.
fn drawing_of(config: &DriveConfig) -> &'static Drawing {
    config.make().map_or(&Drawing::ANY, |make| &make.drawing)
}

/// Names of designs that are drawn evenly, and of the others with how seldom they are: one in so many.
pub fn drawn_designs() -> (Vec<&'static str>, Vec<(&'static str, u32)>) {
    let drawn = || DESIGNS.iter().filter(|design| !design.make.drawing.own_campaign);
    let rows = || drawn().map(|design| (design.name, design.make.drawing.one_in));
    let even = rows().filter(|(_, one_in)| *one_in == 0).map(|(name, _)| name).collect();
    (even, rows().filter(|(_, one_in)| *one_in > 0).collect())
}

/// Names of designs that can do with lists of owners in place of OOB areas.
pub fn designs_with_lists() -> Vec<&'static str> {
    DESIGNS.iter().filter(|design| design.make.lists_owners).map(|design| design.name).collect()
}

/// Whether drives of a design take other commands than those that are drawn for all.
pub fn has_own_campaign(name: &str) -> bool {
    DESIGNS.iter().any(|design| design.name == name && design.make.drawing.own_campaign)
}

/// The first design that takes the commands of a set.
pub fn design_with(set: &CommandSet) -> Option<&'static str> {
    let takes = |design: &&super::Design| design.make.commands.is_some_and(|other| other.name == set.name);
    DESIGNS.iter().find(takes).map(|design| design.name)
}

/// The commands of a design, if it is one and has any.
pub fn design_commands(name: &str) -> Option<&'static CommandSet> {
    DESIGNS.iter().find(|design| design.name == name).and_then(|design| design.make.commands)
}

/// Gives a drawn drive another design, and draws what that wants of its own.
pub fn draw_design(config: &mut DriveConfig, design: &str, rng: &mut Rng) {
    config.ftl.design = design.to_string();
    config.ftl.own = Settings::default();
    (drawing_of(config).drive)(config, rng);
    if config.ftl.streams < 2 {
        config.placement = PlacementConfig::default();
    }
}

/// Gives a drawn drive lists of owners where its design takes them and no blocks are tied: taken from what is drawn already.
pub fn draw_owners(config: &mut DriveConfig) {
    let geometry = &config.flash.geometry;
    let is_drawn = geometry.pages_per_block >= 3 && (geometry.blocks_per_plane + geometry.planes()).is_multiple_of(2);
    let lists = is_drawn && config.ftl.superblock == Superblock::None;
    set_owners(config, if lists { Owners::Summary } else { Owners::Oob });
}

/// Gives a drawn drive lists of owners, or takes them away, where its design takes them.
pub fn set_owners(config: &mut DriveConfig, owners: Owners) {
    let takes = config.make().is_some_and(|make| make.lists_owners);
    (config.ftl.owners, config.flash.oob) = (Owners::Oob, OobUse::Free);
    if takes && owners == Owners::Summary {
        let geometry = &mut config.flash.geometry;
        geometry.pages_per_block = geometry.pages_per_block.max(3);
        (config.ftl.superblock, config.ftl.parity) = (Superblock::None, Parity::None);
        config.gc.pacing = Pacing::Off;
        config.ftl.owners = owners;
        config.flash.oob = if config.flash.geometry.channels == 1 { OobUse::Ecc } else { OobUse::Free };
    }
}

/// Of so many units that a drawn drive could have, those that are the user's.
pub fn draw_user_units(units: u64, config: &DriveConfig, rng: &mut Rng) -> u64 {
    (drawing_of(config).user_units)(units, rng)
}

/// Makes a drive of a handful of pages one that its design accepts, in one of two ways.
pub fn handful_for_design(config: &mut DriveConfig, other: bool) {
    (drawing_of(config).handful)(config, other);
}

/// What a write of part of a mapping unit that holds data comes to with this design, as the end of a sentence about it.
pub fn partial_write_cost(config: &DriveConfig) -> &'static str {
    config.make().map_or("costs a read-modify-write", |make| make.partial_write)
}
