//! Any text is a description or an error, never a panic; what resolves reads back from its expanded form.
//!
//! Lines that start with `--set ` are overrides, the rest is the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdlab_device::Description;
use ssdlab_device::description::{one_line, to_toml};

fuzz_target!(|input: &str| {
    let (sets, text): (Vec<&str>, Vec<&str>) = input.lines().partition(|line| line.starts_with("--set "));
    let Ok(mut description) = Description::parse(&text.join("\n"), "fuzz.toml") else {
        return;
    };
    for set in sets {
        if let Err(error) = description.set(&set["--set ".len()..]) {
            assert!(!error.to_string().contains('\n'));
        }
    }
    match description.resolve() {
        Ok(config) => {
            assert!(!one_line(&config).contains('\n'));
            let again = Description::parse(&to_toml(&config), "expanded.toml")
                .and_then(|description| description.resolve())
                .unwrap_or_else(|error| panic!("{error}\n{}", to_toml(&config)));
            assert_eq!(again, config);
            assert!(!description.filled(&config).is_empty());
        }
        // All errors are told at once, each on its line.
        Err(error) => assert!(error.to_string().lines().all(|line| !line.trim().is_empty())),
    }
});
