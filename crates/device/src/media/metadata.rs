//! Programs of metadata that are not on flash: waiters for records of trims wait until there is none.

/// A program of metadata that is not on flash, or a page of metadata that is promised one. Code that has the token answers for
/// it: it comes from [`MetadataInFlight::begin`], goes from the promise or the failed program to what follows, and ends once.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct MetadataToken(());

/// All that is not on flash.
#[derive(Debug, Default)]
pub(crate) struct MetadataInFlight {
    count: u32,
    /// Those that travel with operations in flight, whose cause says that they do.
    with_operations: Vec<MetadataToken>,
}

impl MetadataInFlight {
    /// Whether all metadata that was to be written is on flash.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A page of metadata is to be written.
    pub(crate) const fn begin(&mut self) -> MetadataToken {
        self.count += 1;
        MetadataToken(())
    }

    /// It is on flash, or another token stands for it.
    pub(crate) fn end(&mut self, token: MetadataToken) {
        assert!(self.count as usize > self.with_operations.len(), "{token:?} ends, and travels with an operation");
        self.count -= 1;
    }

    /// The token goes with an operation of cause [`Metadata`](ssdlab_flash::Cause::Metadata) that was started.
    pub(crate) fn travel(&mut self, token: MetadataToken) {
        self.with_operations.push(token);
    }

    /// Such an operation has ended.
    pub(crate) fn arrive(&mut self) -> MetadataToken {
        self.with_operations.pop().expect("a program of metadata that ended was started")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_in_flight_from_its_promise_to_the_end_of_its_program() {
        let mut metadata = MetadataInFlight::default();
        assert!(metadata.is_empty());
        let (promise, program) = (metadata.begin(), metadata.begin());
        metadata.travel(program);
        metadata.end(promise);
        assert!(!metadata.is_empty(), "the program has not ended");
        let program = metadata.arrive();
        metadata.end(program);
        assert!(metadata.is_empty());
    }

    #[test]
    #[should_panic(expected = "travels with an operation")]
    fn what_travels_with_an_operation_does_not_end_before_it_arrives() {
        let mut metadata = MetadataInFlight::default();
        let token = metadata.begin();
        metadata.travel(token);
        metadata.end(MetadataToken(()));
    }

    #[test]
    #[should_panic(expected = "that ended was started")]
    fn no_program_ends_that_was_not_started() {
        let _ = MetadataInFlight::default().arrive();
    }
}
