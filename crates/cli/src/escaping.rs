//! The one place where text leaves for a terminal: what a terminal would obey is written as an escape.

use std::io::{self, Write};

use ssdlab_lab::text::is_unprintable;

/// How an escape is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As in a Rust string, `\u{1b}`; ends of lines and tabs stay.
    Text,
    /// As in a string of JSON, `\u009b`. Control characters that JSON itself forbids are not there any more.
    Json,
}

/// A writer of UTF-8 in which nothing unprintable gets through.
pub(crate) struct Escaping<W> {
    to: W,
    spelling: Spelling,
    /// The beginning of a character of which the rest was not written yet.
    begun: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub(crate) fn new(to: W, spelling: Spelling) -> Escaping<W> {
        Escaping { to, spelling, begun: Vec::new() }
    }

    /// What it writes to.
    pub(crate) fn into_inner(self) -> W {
        self.to
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, letter) in text.char_indices() {
            if !is_unprintable(letter) || matches!(letter, '\n' | '\t') {
                continue;
            }
            self.to.write_all(&text.as_bytes()[plain..at])?;
            match self.spelling {
                Spelling::Text => write!(self.to, "{}", letter.escape_default())?,
                // All of them are in the plane that four digits name.
                Spelling::Json => write!(self.to, "\\u{:04x}", u32::from(letter))?,
            }
            plain = at + letter.len_utf8();
        }
        self.to.write_all(&text.as_bytes()[plain..])
    }

    /// Bytes that may end within a character, and may be no text at all.
    fn bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => return self.text(text),
                Err(error) => {
                    let (text, rest) = bytes.split_at(error.valid_up_to());
                    self.text(std::str::from_utf8(text).unwrap_or_default())?;
                    let Some(wrong) = error.error_len() else {
                        self.begun.extend_from_slice(rest);
                        return Ok(());
                    };
                    self.text("\u{fffd}")?;
                    bytes = &rest[wrong..];
                }
            }
        }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Most of what is written are plain lines.
        if self.begun.is_empty() && bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
            self.to.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        self.bytes(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(spelling: Spelling, parts: &[&[u8]]) -> String {
        let mut to = Escaping::new(Vec::new(), spelling);
        parts.iter().for_each(|part| to.write_all(part).expect("memory takes all"));
        String::from_utf8(to.into_inner()).expect("text")
    }

    #[test]
    fn unprintable_characters_are_escaped_wherever_a_write_ends() {
        let text = "a\x1b[31m\tGröße\u{9b}\u{202e}\x7f\n".as_bytes();
        let expected = "a\\u{1b}[31m\tGröße\\u{9b}\\u{202e}\\u{7f}\n";
        for at in 0..=text.len() {
            assert_eq!(escaped(Spelling::Text, &[&text[..at], &text[at..]]), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(escaped(Spelling::Text, &bytes), expected);
        assert_eq!(escaped(Spelling::Text, &[b"\xff\x9bm"]), "\u{fffd}\u{fffd}m");
    }

    #[test]
    fn json_stays_json_and_the_same() {
        let name = "a\x1b\u{9b}\u{202e}\x7f\n\"ü";
        let json = serde_json::to_string(name).expect("a string");
        let written = escaped(Spelling::Json, &[json.as_bytes()]);
        assert!(!written.chars().any(is_unprintable), "{written:?}");
        assert_eq!(serde_json::from_str::<String>(&written).expect("JSON"), name);
    }
}
