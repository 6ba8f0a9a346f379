//! Panics as findings: caught, with their message and place, and without a word on standard error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    /// What it said.
    pub(crate) message: String,
    /// File and line.
    pub(crate) place: String,
}

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `body`; a panic in it is an error that nothing is printed for. Panics of other threads are reported as ever.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Caught> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
                PLACE.replace(place.unwrap_or_default());
            } else {
                before(info);
            }
        }));
    });
    let outer = CATCHING.replace(true);
    // Whatever was half done inside is dropped with it.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(outer);
    result.map_err(|payload| Caught { message: message(&*payload), place: PLACE.take() })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message_and_place() {
        let caught = catch(|| -> u32 { panic!("number {}", 5) }).expect_err("it panicked");
        assert_eq!(caught.message, "number 5");
        assert!(caught.place.contains("panic_capture.rs:"), "{}", caught.place);
        assert_eq!(catch(|| 7), Ok(7));
    }
}
