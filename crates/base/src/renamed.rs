//! Names of earlier versions, and what they are called now.
//!
//! One table for options, keys and values. An old name is refused, and the error suggests the new one: [`closest`] looks
//! here first, and the command does for its options.
//!
//! [`closest`]: crate::closest

/// The old names, each with its new one.
pub const RENAMED: &[(&str, &str)] = &[
    // Options of the command.
    ("--recorder", "--rb-probe"),
    ("--pace", "--time-scale"),
    // Values.
    ("touched", "footprint"),
    ("mv", "mvftl"),
    // Keys of host descriptions.
    ("room", "layer"),
    // Keys of results, since their format 2.
    ("host_rooms", "host_layers"),
    ("figures", "metrics"),
    ("spare", "over_provisioning"),
    ("effective_spare", "effective_over_provisioning"),
];

/// The name that replaced `old`.
pub fn renamed(old: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(was, _)| *was == old).map(|(_, now)| *now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_name_leads_to_one_that_is_still_in_use() {
        for (place, (was, now)) in RENAMED.iter().enumerate() {
            assert_eq!(renamed(was), Some(*now));
            assert_eq!(renamed(now), None, "{now} is old, too");
            assert!(RENAMED[..place].iter().all(|(other, _)| other != was), "{was} twice");
        }
        assert_eq!(renamed("layer"), None);
    }

    #[test]
    fn an_old_name_suggests_the_new_one_where_that_is_known() {
        assert_eq!(crate::closest("mv", ["page", "mvftl", "tagged"]), Some("mvftl"));
        assert_eq!(crate::closest("room", ["layer"]), Some("layer"));
        assert_eq!(crate::closest("room", ["depth"]), None);
    }
}
