//! The map in a snapshot.

use ssdlab_flash::{Lpn, Ppn};

use super::{Index, VersionMap};

impl VersionMap {
    pub(in crate::ftl::mv) fn save(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        to.write_all(bytemuck::cast_slice(self.entries.as_slice()))?;
        let tables = match &self.index {
            Index::Direct(_) => Vec::new(),
            Index::Indirect(groups) => groups.words(),
        };
        let odd = self
            .odd
            .iter()
            .flat_map(|(lpn, chain)| [lpn.0, chain.len() as u32].into_iter().chain(chain.iter().map(|ppn| ppn.0)));
        for words in [tables, odd.collect()] {
            to.write_all(&(words.len() as u32).to_le_bytes())?;
            to.write_all(bytemuck::cast_slice(&words))?;
        }
        Ok(())
    }

    /// Reads what [`VersionMap::save`] wrote. The chains are still to be checked against the chips.
    pub(in crate::ftl::mv) fn restore(&mut self, from: &mut dyn std::io::Read) -> std::io::Result<()> {
        let bad = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_string());
        self.clear();
        from.read_exact(bytemuck::cast_slice_mut(self.entries.as_mut_slice()))?;
        let most = u64::from(self.len()) * 8 + 1024;
        let tables = read_words(from, most)?;
        let mut odd = &read_words(from, most)?[..];
        match &mut self.index {
            Index::Direct(_) if tables.is_empty() => {}
            Index::Indirect(groups) => groups.restore(&tables).ok_or_else(|| bad("a table of versions is damaged"))?,
            Index::Direct(_) => return Err(bad("a direct index has no tables")),
        }
        while let [lpn, length, rest @ ..] = odd {
            let (chain, rest) =
                rest.split_at_checked(*length as usize).ok_or_else(|| bad("a list of versions is cut short"))?;
            let lpn = Lpn(*lpn);
            if lpn.0 >= self.len() || chain.is_empty() || self.full_page(lpn).is_some() || !self.is_mapped(lpn) {
                return Err(bad("a list of versions belongs to no page"));
            }
            self.odd.insert(lpn, chain.iter().copied().map(Ppn).collect());
            odd = rest;
        }
        if !odd.is_empty() {
            return Err(bad("a list of versions is cut short"));
        }
        for lpn in self.lpns() {
            if !self.is_mapped(lpn) || self.full_page(lpn).is_some() {
                continue;
            }
            self.chains += 1;
            self.alone += u64::from(!self.is_odd(lpn) && self.split.pt(self.entry(lpn)) == 0);
        }
        Ok(())
    }
}

fn read_words(from: &mut dyn std::io::Read, most: u64) -> std::io::Result<Vec<u32>> {
    let mut count = [0; 4];
    from.read_exact(&mut count)?;
    let count = u32::from_le_bytes(count);
    if u64::from(count) > most {
        let what = "a table of versions is longer than it can be";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    }
    let mut words = vec![0; count as usize];
    from.read_exact(bytemuck::cast_slice_mut(&mut words))?;
    Ok(words)
}
