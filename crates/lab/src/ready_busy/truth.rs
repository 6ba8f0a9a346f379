//! What was really programmed while a run was watched: from the chips' operations, by die, cause and test.

use ssdlab_base::Nanos;
use ssdlab_flash::{Cause, OpKind, Resource, Span};

use crate::by_cause::{ByCause, by_cause};

/// Programs (copybacks are programs, too) of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) pages_by_die: Vec<u64>,
    /// Operations of a die, each of one page or of one on several planes.
    pub(super) programs_by_die: Vec<u64>,
    causes: [u64; Cause::COUNT],
    /// The first and the last moment of any operation in it.
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
}

impl Programs {
    fn new(dies: usize) -> Programs {
        Programs { pages_by_die: vec![0; dies], programs_by_die: vec![0; dies], ..Programs::default() }
    }

    pub(super) fn pages(&self) -> u64 {
        self.causes.iter().sum()
    }

    /// Pages that were programmed together, on average; nothing where none was.
    pub(super) fn pages_a_program(&self) -> Option<f64> {
        let programs: u64 = self.programs_by_die.iter().sum();
        (programs > 0).then(|| self.pages() as f64 / programs as f64)
    }

    pub(super) fn by_cause(&self) -> ByCause<u64> {
        by_cause(|cause| self.causes[cause as usize])
    }

    fn add(&mut self, die: usize, span: &Span) {
        let pages = u64::from(span.planes);
        self.pages_by_die[die] += pages;
        self.programs_by_die[die] += 1;
        self.causes[span.cause as usize] += pages;
    }
}

/// Programs in all, and of each test.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    quiet: Nanos,
    total: Programs,
    tests: Vec<Programs>,
}

impl Truth {
    /// For so many dies; a test ends when all of them were quiet for longer than `quiet`.
    pub(super) fn new(dies: usize, quiet: Nanos) -> Truth {
        Truth { quiet, total: Programs::new(dies), tests: Vec::new() }
    }

    /// An operation has ended.
    pub(super) fn span(&mut self, span: &Span) {
        let Resource::Die(die) = span.resource else { return };
        if self.tests.last().is_none_or(|test| span.start.since(test.ended) > self.quiet) {
            let test = Programs::new(self.total.pages_by_die.len());
            self.tests.push(Programs { begun: span.start, ended: span.start, ..test });
        }
        let Some(test) = self.tests.last_mut() else { return };
        test.ended = test.ended.max(span.end);
        if matches!(span.kind, OpKind::Program | OpKind::Copyback) {
            self.total.add(die.index(), span);
            test.add(die.index(), span);
        }
    }

    pub(super) fn total(&self) -> &Programs {
        &self.total
    }

    pub(super) fn tests(&self) -> &[Programs] {
        &self.tests
    }
}
