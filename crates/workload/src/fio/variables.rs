//! Variables of job files: `${SIZE}`, given with the file or taken from the environment, as fio takes them.

use std::collections::BTreeMap;

use crate::WorkloadError;

/// What `${NAME}` stands for in job files.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    given: BTreeMap<String, String>,
    by_environment: bool,
}

impl Variables {
    /// Those of the environment, as fio has them.
    pub fn of_environment() -> Variables {
        Variables { given: BTreeMap::new(), by_environment: true }
    }

    /// With one more, which goes before the environment's; `text` is `NAME=VALUE`.
    ///
    /// # Errors
    /// Text that is not of that form.
    pub fn with(mut self, text: &str) -> Result<Variables, WorkloadError> {
        let is_name = |name: &&str| !name.is_empty() && !name.contains(['{', '}', '$', '#', ';']);
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) else {
            return Err(WorkloadError(format!("found '{}', expected NAME=VALUE", text.escape_default())));
        };
        if value.contains(char::is_control) {
            let shown = value.escape_default();
            return Err(WorkloadError(format!(
                "{name}: found '{shown}', expected a value of one line without control characters"
            )));
        }
        self.given.insert(name.to_string(), value.to_string());
        Ok(self)
    }

    fn get(&self, name: &str) -> Option<(String, bool)> {
        if let Some(value) = self.given.get(name) {
            return Some((value.clone(), false));
        }
        let value = self.by_environment.then(|| std::env::var(name).ok())??;
        (!value.contains(char::is_control)).then_some((value, true))
    }

    /// A line with the values in the place of its variables; which they were is added to `used`.
    ///
    /// # Errors
    /// A variable that has no value, as a sentence without a place.
    pub(super) fn substitute(&self, line: &str, used: &mut Vec<Used>) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((name, after)) = behind.split_once('}') else {
                break;
            };
            let Some((value, by_environment)) = self.get(name) else {
                return Err(format!(
                    "found '${{{name}}}', a variable without a value: give it with --env {name}=VALUE, or set it in the environment"
                ));
            };
            text.push_str(before);
            text.push_str(&value);
            if !used.iter().any(|used| used.name == name) {
                used.push(Used { name: name.to_string(), value, by_environment });
            }
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }
}

/// A variable that a job file took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) by_environment: bool,
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = if self.by_environment { " (of the environment)" } else { "" };
        write!(f, "${{{}}} is '{}'{from}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_into_lines() {
        let variables = Variables::default().with("SIZE=4m").and_then(|two| two.with("A=x=y")).expect("two variables");
        let mut used = Vec::new();
        assert_eq!(variables.substitute("size=${SIZE},${A}${SIZE}", &mut used).as_deref(), Ok("size=4m,x=y4m"));
        assert_eq!(used.len(), 2);
        assert_eq!(used[0].to_string(), "${SIZE} is '4m'");
        assert_eq!(variables.substitute("size=$SIZE ${", &mut used).as_deref(), Ok("size=$SIZE ${"));
        let error = variables.substitute("bs=${NOT_SET_ANYWHERE}", &mut used).expect_err("it has no value");
        assert!(error.contains("'${NOT_SET_ANYWHERE}'") && error.contains("--env NOT_SET_ANYWHERE=VALUE"), "{error}");
        for text in ["SIZE", "=4m", "A{=1", ""] {
            assert!(Variables::default().with(text).is_err(), "{text}");
        }
        assert!(Variables::default().with("A=1\n2").is_err());
        // Cargo sets this one for every test.
        let environment = Variables::of_environment();
        assert_eq!(environment.substitute("${CARGO_PKG_NAME}", &mut used).as_deref(), Ok("ssdlab-workload"));
        assert_eq!(used[2].to_string(), "${CARGO_PKG_NAME} is 'ssdlab-workload' (of the environment)");
    }
}
