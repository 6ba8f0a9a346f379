//! The four-level model of write amplification: channels, chips, dies, planes (section III.C, equations 1 to 5).
//!
//! Its assumption is that every die is programmed as often as every other, so that one die's Ready/Busy line stands for
//! all. `docs/write-amplification.md` derives it and says what breaks it.

use std::fmt;
use std::str::FromStr;

use ssdlab_flash::{FlashConfig, Geometry, MultiPlane};

/// The four levels of parallelism, and the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// `N_channel`.
    pub channels: u32,
    /// `N_chip`: chips on each channel.
    pub chips_per_channel: u32,
    /// `N_die`: dies in each chip, each with a Ready/Busy line of its own.
    pub dies_per_chip: u32,
    /// `N_plane`: planes in each die.
    pub planes_per_die: u32,
    /// `P_a`: data bytes of a page.
    pub page_bytes: u32,
}

/// How the pages of a die's planes are programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramModel {
    /// Single-plane page program, dies interleaved: a low is one page.
    SinglePlane,
    /// Multi-plane concurrent page program, dies interleaved: a low is a page on every plane.
    MultiPlane,
}

/// Why a text is no geometry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a geometry: expected CHANNELSxCHIPSxDIESxPLANES, each from 1 to 65536, such as 4x1x1x2 (4 channels, 1 \
     chip on each, 1 die in each, 2 planes in each)"
)]
pub struct GeometryError(String);

impl Levels {
    /// The levels of simulated chips.
    pub const fn of(geometry: &Geometry) -> Levels {
        Levels {
            channels: geometry.channels,
            chips_per_channel: geometry.chips_per_channel,
            dies_per_chip: geometry.dies_per_chip,
            planes_per_die: geometry.planes_per_die,
            page_bytes: geometry.page_bytes,
        }
    }

    /// Reads `CHANNELSxCHIPSxDIESxPLANES`.
    ///
    /// # Errors
    /// The text is none.
    ///
    /// ```
    /// use ssdlab_measure::Levels;
    /// let levels = Levels::parse("5x1x2x2", 4096).expect("a geometry");
    /// assert_eq!(levels.dies(), 10);
    /// assert!(Levels::parse("5x1x2", 4096).is_err());
    /// ```
    pub fn parse(text: &str, page_bytes: u32) -> Result<Levels, GeometryError> {
        let error = || GeometryError(text.to_string());
        let numbers: Vec<u32> = text
            .split(['x', 'X'])
            .map(|number| number.trim().parse().ok().filter(|number| (1..=65536).contains(number)))
            .collect::<Option<_>>()
            .ok_or_else(error)?;
        let &[channels, chips_per_channel, dies_per_chip, planes_per_die] = numbers.as_slice() else {
            return Err(error());
        };
        Ok(Levels { channels, chips_per_channel, dies_per_chip, planes_per_die, page_bytes })
    }

    /// Dies of the drive, which is also how many Ready/Busy lines it has.
    pub const fn dies(&self) -> u64 {
        self.channels as u64 * self.chips_per_channel as u64 * self.dies_per_chip as u64
    }

    /// The name of a die's line: `ch0.chip0.die0`. Dies are numbered `(channel * chips + chip) * dies_per_chip + die`.
    pub fn line_name(&self, die: u32) -> String {
        let chip = die / self.dies_per_chip;
        format!(
            "ch{}.chip{}.die{}",
            chip / self.chips_per_channel,
            chip % self.chips_per_channel,
            die % self.dies_per_chip
        )
    }
}

impl Levels {
    /// The die whose line is called so; nothing if there is none.
    pub fn die_named(&self, name: &str) -> Option<u32> {
        let number = |part: &str, prefix: &str, count: u32| {
            let number: u32 = part.strip_prefix(prefix)?.parse().ok()?;
            (number < count).then_some(number)
        };
        let mut parts = name.split('.');
        let channel = number(parts.next()?, "ch", self.channels)?;
        let chip = number(parts.next()?, "chip", self.chips_per_channel)?;
        let die = number(parts.next()?, "die", self.dies_per_chip)?;
        let place = (channel * self.chips_per_channel + chip) * self.dies_per_chip + die;
        (self.line_name(place) == name).then_some(place)
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}x{}", self.channels, self.chips_per_channel, self.dies_per_chip, self.planes_per_die)
    }
}

impl ProgramModel {
    /// `M_p`: pages that one low of a die's line stands for.
    pub const fn pages_per_low(self, planes_per_die: u32) -> u32 {
        match self {
            ProgramModel::SinglePlane => 1,
            ProgramModel::MultiPlane => planes_per_die,
        }
    }

    /// The word for it on the command line and in results.
    pub const fn key(self) -> &'static str {
        match self {
            ProgramModel::SinglePlane => "single",
            ProgramModel::MultiPlane => "multi",
        }
    }
}

/// A text names no program model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a program model: expected single (a page at a time) or multi (a page on every plane)")]
pub struct UnknownProgramModel(pub String);

impl FromStr for ProgramModel {
    type Err = UnknownProgramModel;

    /// Reads `single` or `multi`.
    fn from_str(text: &str) -> Result<ProgramModel, UnknownProgramModel> {
        match text {
            "single" => Ok(ProgramModel::SinglePlane),
            "multi" => Ok(ProgramModel::MultiPlane),
            _ => Err(UnknownProgramModel(text.to_string())),
        }
    }
}

/// The model of one drive.
///
/// ```
/// use ssdlab_measure::{Levels, Model, ProgramModel};
/// let levels = Levels::parse("8x1x2x2", 4096).expect("SSD-M of the paper");
/// let model = Model { levels, program: ProgramModel::MultiPlane };
/// assert_eq!(model.pages(100.0), 8.0 * 2.0 * 100.0 * 2.0);
/// assert_eq!(model.write_amplification(100.0, 4096 * 1600), Some(2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The levels.
    pub levels: Levels,
    /// The program model.
    pub program: ProgramModel,
}

impl Model {
    /// The model of simulated chips: `M_p` is the planes of a die where these may program together.
    pub const fn of(flash: &FlashConfig) -> Model {
        let program = match flash.multi_plane {
            MultiPlane::Off => ProgramModel::SinglePlane,
            MultiPlane::SameOffset | MultiPlane::Relaxed => ProgramModel::MultiPlane,
        };
        Model { levels: Levels::of(&flash.geometry), program }
    }

    /// `M_p`.
    pub const fn pages_per_low(&self) -> u32 {
        self.program.pages_per_low(self.levels.planes_per_die)
    }

    /// Pages programmed in the whole drive when one die's line went low for a program `lows` times (`N_Tprogram`):
    /// `N_channel N_chip N_die N_Tprogram M_p`, the `N_page_test` of equation 3. An estimate may be fractional.
    pub fn pages(&self, lows: f64) -> f64 {
        self.levels.dies() as f64 * lows * f64::from(self.pages_per_low())
    }

    /// Bytes programmed in the whole drive, `P_Volume_Data` of equation 2.
    pub fn physical_bytes(&self, lows: f64) -> f64 {
        self.pages(lows) * f64::from(self.levels.page_bytes)
    }

    /// Write amplification by equation 2; nothing when the host wrote nothing.
    pub fn write_amplification(&self, lows: f64, host_bytes: u64) -> Option<f64> {
        write_amplification(self.physical_bytes(lows), host_bytes)
    }
}

/// Equation 1: bytes written to the chips by bytes written by the host; nothing when the host wrote nothing.
pub fn write_amplification(physical_bytes: f64, host_bytes: u64) -> Option<f64> {
    (host_bytes > 0).then(|| physical_bytes / host_bytes as f64)
}

/// Equation 4 with its sign: by how much the measured number of page programs is off, as a share of the real one. The
/// paper's |PEN| is its magnitude. Nothing when no page was programmed.
///
/// ```
/// assert_eq!(ssdlab_measure::model::percentage_error(98.0, 100), Some(-0.02));
/// ```
pub fn percentage_error(pages_test: f64, pages_real: u64) -> Option<f64> {
    (pages_real > 0).then(|| (pages_test - pages_real as f64) / pages_real as f64)
}

/// Equation 5: over-provisioned space as a share of the available space, which is it and the user space.
///
/// ```
/// let share = ssdlab_measure::model::over_provisioning(2.8, 25.2);
/// assert!((share - 0.10).abs() < 1e-9);
/// ```
pub fn over_provisioning(op: f64, user: f64) -> f64 {
    op / (op + user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equation_3_is_equation_2_with_one_page_a_low() {
        // SSD-v: 4 channels of one chip with one die, so N_page_test = 4 N_Tprogram whatever its planes.
        let levels = Levels::parse("4x1x1x2", 4096).expect("a geometry");
        let single = Model { levels, program: ProgramModel::SinglePlane };
        assert_eq!(single.pages(1000.0), 4000.0);
        let multi = Model { levels, program: ProgramModel::MultiPlane };
        assert_eq!(multi.pages(1000.0), 8000.0);
        assert_eq!(single.write_amplification(1.0, 0), None);
    }

    #[test]
    fn table_3_follows_from_equation_5() {
        // The paper's user spaces with 2.8 GB of spare, against the shares it gives for them.
        for (user, share) in [(37.2, 0.07), (32.2, 0.08), (25.2, 0.10), (20.5, 0.12), (15.9, 0.15)] {
            assert!((over_provisioning(2.8, user) - share).abs() < 0.0005, "{user}");
        }
    }

    #[test]
    fn lines_are_numbered_as_dies_are() {
        let levels = Levels::parse("2x3x2x1", 4096).expect("a geometry");
        assert_eq!(levels.line_name(0), "ch0.chip0.die0");
        assert_eq!(levels.line_name(3), "ch0.chip1.die1");
        assert_eq!(levels.line_name(11), "ch1.chip2.die1");
        for die in 0..levels.dies() as u32 {
            assert_eq!(levels.die_named(&levels.line_name(die)), Some(die));
        }
        for none in ["ch9.chip0.die0", "ch0.chip3.die0", "ch0.chip0", "ch0.chip0.die0.x", "ch00.chip0.die0", "die0", ""]
        {
            assert_eq!(levels.die_named(none), None, "{none}");
        }
        for bad in ["", "1x1x1", "1x1x1x1x1", "0x1x1x1", "axbxcxd", "99999x1x1x1", "-1x1x1x1"] {
            assert!(Levels::parse(bad, 4096).is_err(), "{bad}");
        }
    }
}
