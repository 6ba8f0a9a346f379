//! What somebody meant who wrote a name that does not exist.

/// Names longer than this are no slip of the finger.
const LONGEST: usize = 40;

/// The known name closest to what was written, if one is close enough to be meant: insertions, deletions, substitutions
/// and swapped neighbours in at most a third of its letters.
///
/// ```
/// let drives = ["demo-slc", "demo-tlc", "demo-qlc"];
/// assert_eq!(ssdlab_base::closest("demo-tcl", drives), Some("demo-tlc"));
/// assert_eq!(ssdlab_base::closest("unrelated", drives), None);
/// ```
pub fn closest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if written.chars().nth(LONGEST).is_some() {
        return None;
    }
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let names = ["channels", "chips_per_channel", "page_size"];
        assert_eq!(closest("chanels", names), Some("channels"));
        assert_eq!(closest("pagesize", names), Some("page_size"));
        assert_eq!(closest("chnanels", names), Some("channels"));
        assert_eq!(closest("victim", names), None);
        assert_eq!(closest(&"x".repeat(100_000), names), None);
        assert_eq!(closest("", names), None);
    }
}
