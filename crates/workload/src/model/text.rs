//! Drawn requests as the text of a trace, a few at a time.

use std::io::{self, Read, Write as _};

use ssdlab_base::Op;

use super::Drawn;

/// Requests written at once.
const BATCH: usize = 512;

/// Reads like a CSV file.
pub(super) struct Text {
    drawn: Box<dyn Iterator<Item = Drawn> + Send>,
    text: Vec<u8>,
    at: usize,
}

impl Text {
    pub(super) fn new(drawn: impl Iterator<Item = Drawn> + Send + 'static) -> Text {
        Text { drawn: Box::new(drawn), text: b"time_us,op,offset_bytes,length_bytes\n".to_vec(), at: 0 }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        for drawn in self.drawn.by_ref().take(BATCH) {
            let letter = match drawn.op {
                Op::Read => 'R',
                _ => 'W',
            };
            let (us, ns) = (drawn.at_ns / 1000, drawn.at_ns % 1000);
            writeln!(self.text, "{us}.{ns:03},{letter},{},{}", drawn.offset, drawn.bytes)?;
        }
        Ok(())
    }
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            self.refill()?;
        }
        let bytes = into.len().min(self.text.len() - self.at);
        into[..bytes].copy_from_slice(&self.text[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}
