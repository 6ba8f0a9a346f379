//! Devices that a trace calls by name, numbered in the order they first appear.

use rustc_hash::FxHashMap;

use crate::trace::record::Flaw;

/// More named devices than this is no trace.
const NAMES_MAX: usize = 1 << 16;

/// Names to numbers and back, with the last answer at hand: neighbours mostly share a device.
#[derive(Default)]
pub(super) struct Names {
    numbers: FxHashMap<Vec<u8>, u64>,
    names: Vec<String>,
    last: Vec<u8>,
    last_number: u64,
}

impl Names {
    pub(super) fn number(&mut self, name: &[u8]) -> Result<u64, Flaw> {
        if !self.names.is_empty() && self.last == name {
            return Ok(self.last_number);
        }
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None if self.names.len() == NAMES_MAX => {
                return Err(Flaw::new(name, format!("at most {NAMES_MAX} different devices in a trace")));
            }
            None => {
                let number = self.names.len() as u64;
                self.names.push(String::from_utf8_lossy(name).into_owned());
                self.numbers.insert(name.to_vec(), number);
                number
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Ok(number)
    }

    pub(super) fn name(&self, number: u64) -> String {
        usize::try_from(number)
            .ok()
            .and_then(|number| self.names.get(number).cloned())
            .unwrap_or_else(|| number.to_string())
    }
}
