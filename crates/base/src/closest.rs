//! Finds the name that was meant by one that does not exist.

use crate::renamed;

/// Names longer than this are no slip of the finger.
const LONGEST: usize = 40;

/// Letters that two words begin with before one is taken for a form of the other.
const STEM: usize = 3;

/// The known name that replaced what was written, or else the closest one, if it is close enough to be meant: insertions, deletions, substitutions
/// and swapped neighbours in at most a third of its letters. Of several that are equally close none is more likely to be meant
/// than the others. Where there is none, the one name whose first word has the
/// same stem: the same first letters, at least three and half of either word.
///
/// ```
/// let drives = ["demo-slc", "demo-tlc", "demo-qlc"];
/// assert_eq!(ssdlab_base::closest("demo-tcl", drives), Some("demo-tlc"));
/// assert_eq!(ssdlab_base::closest("unrelated", drives), None);
/// assert_eq!(ssdlab_base::closest("pace_mode", ["victim", "pacing"]), Some("pacing"));
/// ```
pub fn closest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if written.chars().nth(LONGEST).is_some() {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    if let Some(new) = renamed(written).and_then(|new| names.iter().find(|name| **name == new)) {
        return Some(*new);
    }
    let near: Vec<(usize, &str)> = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), *name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .collect();
    match near.iter().map(|(distance, _)| *distance).min() {
        Some(least) => {
            let mut nearest = near.iter().filter(|(distance, _)| *distance == least).map(|(_, name)| *name);
            nearest.next().filter(|first| nearest.all(|other| other == *first))
        }
        None => of_the_same_stem(written, &names),
    }
}

/// The name whose first word shares the longest stem with that of `written`, if no other shares as much.
fn of_the_same_stem<'n>(written: &str, names: &[&'n str]) -> Option<&'n str> {
    let shared = |name: &str| {
        let (one, other) = (first_word(written), first_word(name));
        let letters = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let longer = one.chars().count().max(other.chars().count());
        if letters >= STEM && 2 * letters >= longer { letters } else { 0 }
    };
    let most = names.iter().map(|name| shared(name)).max().filter(|letters| *letters > 0)?;
    let mut alike = names.iter().filter(|name| shared(name) == most);
    let found = alike.next().copied();
    found.filter(|_| alike.next().is_none())
}

fn first_word(name: &str) -> &str {
    name.split(['_', '-']).next().unwrap_or(name)
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
        // 'slc' was offered for 'plc', which is as near to all four.
        assert_eq!(closest("plc", ["slc", "mlc", "tlc", "qlc"]), None);
        assert_eq!(closest("lsc", ["slc", "mlc", "tlc", "qlc"]), Some("slc"));
    }

    #[test]
    fn another_form_of_a_word_finds_its_name_unless_two_are_as_near() {
        let names = ["victim", "free_blocks", "pacing", "idle_after", "pages_per_block", "page_size"];
        assert_eq!(closest("pace", names), Some("pacing"));
        assert_eq!(closest("pace_limit", names), Some("pacing"));
        assert_eq!(closest("pages", names), Some("pages_per_block"));
        assert_eq!(closest("paged", names), None, "two begin with page");
        assert_eq!(closest("pa", names), None, "two letters are no stem");
        assert_eq!(closest("victory_of_the_day", ["victim"]), Some("victim"));
        assert_eq!(closest("vicinity", ["victim"]), None, "three letters of eight");
    }
}
