//! Figures by the cause of a flash operation: write amplification is the sum over causes.

use std::collections::BTreeMap;

use ssdlab_flash::Cause;

/// Figures by cause: every cause is present, also those that did not happen.
pub type ByCause<T> = BTreeMap<String, T>;

/// A figure for each cause.
pub(crate) fn by_cause<T>(figure: impl Fn(Cause) -> T) -> ByCause<T> {
    Cause::ALL.iter().map(|&cause| (cause.key().to_string(), figure(cause))).collect()
}
