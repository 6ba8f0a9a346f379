//! How far is read ahead: the rules of Linux 2.6.33 (`ondemand_readahead` in `mm/readahead.c`), without the search of the cache for
//! streams that share a file.

/// Blocks that are read ahead, and where the next ones are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u32,
    pub(super) size: u32,
    /// Of these so many at its end are ahead of the reader: a read of the first of them asks for the next window.
    pub(super) ahead: u32,
}

impl Window {
    /// The block that asks for the next window.
    pub(super) const fn mark(&self) -> u32 {
        self.start + self.size - self.ahead
    }
}

/// What is known of one reader.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    window: Option<Window>,
    /// The last block that was read.
    previous: Option<u32>,
}

/// The first window of a reader that asks for so many blocks.
fn first_size(asked: u32, most: u32) -> u32 {
    let size = asked.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// The window behind one of so many blocks.
fn next_size(size: u32, most: u32) -> u32 {
    let next = if size < most / 16 { size * 4 } else { size * 2 };
    next.min(most)
}

impl Reader {
    /// A block was read, and its reader goes on behind it.
    pub(super) fn has_read(&mut self, block: u32) {
        self.previous = Some(block);
    }

    /// A read of `asked` blocks misses `block`; the window that is read, at most `most` blocks at a time, or none if the read is a
    /// random one.
    pub(super) fn misses(&mut self, block: u32, asked: u32, most: u32) -> Option<Window> {
        if most == 0 {
            return None;
        }
        let goes_on = |window: &Window| block == window.mark() || block == window.start + window.size;
        let window = if block > 0
            && let Some(window) = self.window.filter(goes_on)
        {
            let size = next_size(window.size, most);
            Window { start: window.start + window.size, size, ahead: size }
        } else {
            let is_sequential = self.previous.is_some_and(|previous| block.wrapping_sub(previous) <= 1);
            if block > 0 && asked <= most && !is_sequential {
                return None;
            }
            let size = first_size(asked, most);
            Window { start: block, size, ahead: if size > asked { size - asked } else { size } }
        };
        // A window that begins with the block and is all ahead grows by the next one.
        let window = if window.start == block && window.size == window.ahead {
            let ahead = next_size(window.size, most);
            Window { size: window.size + ahead, ahead, ..window }
        } else {
            window
        };
        self.window = Some(window);
        Some(window)
    }

    /// A read of `asked` blocks reaches a mark at `block`; `hole` is the first block behind it that is not cached.
    pub(super) fn reaches_mark(&mut self, block: u32, asked: u32, hole: Option<u32>, most: u32) -> Option<Window> {
        let window = match self.window.filter(|window| block == window.mark()) {
            Some(window) => {
                let size = next_size(window.size, most);
                Window { start: window.start + window.size, size, ahead: size }
            }
            None => {
                let start = hole.filter(|hole| hole - block <= most)?;
                let size = next_size(start - block + asked, most);
                Window { start, size, ahead: size }
            }
        };
        self.window = Some(window);
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of single blocks from the first on: windows double up to the most, and each is asked for before its blocks are
    /// needed.
    #[test]
    fn windows_of_a_sequential_reader_grow_to_the_most() {
        let mut reader = Reader::default();
        let mut window = reader.misses(0, 1, 32).expect("the beginning is read ahead");
        assert_eq!(window, Window { start: 0, size: 4, ahead: 3 });
        let mut sizes = Vec::new();
        for _ in 0..4 {
            let next = reader.reaches_mark(window.mark(), 1, None, 32).expect("the next window");
            assert_eq!(next.start, window.start + window.size, "windows follow one another");
            sizes.push(next.size);
            window = next;
        }
        assert_eq!(sizes, [8, 16, 32, 32]);
    }

    #[test]
    fn a_random_read_reads_nothing_ahead() {
        let mut reader = Reader::default();
        reader.has_read(7);
        assert_eq!(reader.misses(100, 1, 32), None);
        assert_eq!(reader.misses(8, 1, 32), Some(Window { start: 8, size: 4, ahead: 3 }));
        assert_eq!(reader.misses(500, 1, 0), None, "read-ahead is off");
    }
}
