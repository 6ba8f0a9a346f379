//! Named parts of a checkpoint: a policy that keeps something in RAM adds its own, and nothing else changes.

use std::io::{self, Read, Write};

use super::bad;

/// Most parts, and longest name, that are believed.
const PARTS_MAX: u8 = 64;

/// Parts of a controller's state, by name.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<(String, Vec<u8>)>);

impl Parts {
    pub(super) fn add(&mut self, name: &str, bytes: Vec<u8>) {
        assert!(self.0.len() < usize::from(PARTS_MAX));
        assert!(name.len() < usize::from(PARTS_MAX));
        assert!(self.0.iter().all(|(other, _)| other != name), "'{name}' is one part");
        self.0.push((name.to_string(), bytes));
    }

    pub(super) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&[self.0.len() as u8])?;
        for (name, bytes) in &self.0 {
            to.write_all(&[name.len() as u8])?;
            to.write_all(name.as_bytes())?;
            to.write_all(&(bytes.len() as u64).to_le_bytes())?;
            to.write_all(bytes)?;
        }
        Ok(())
    }

    pub(super) fn read(from: &mut dyn Read) -> io::Result<Parts> {
        let small = |from: &mut dyn Read| -> io::Result<u8> {
            let mut byte = [0];
            from.read_exact(&mut byte)?;
            if byte[0] > PARTS_MAX { Err(bad("the list of its parts is damaged")) } else { Ok(byte[0]) }
        };
        let mut parts = Vec::new();
        for _ in 0..small(from)? {
            let mut name = vec![0; usize::from(small(from)?)];
            from.read_exact(&mut name)?;
            let name = String::from_utf8(name).map_err(|_| bad("the name of a part is damaged"))?;
            let mut length = [0; 8];
            from.read_exact(&mut length)?;
            let length = u64::from_le_bytes(length);
            // Memory is taken for what is there, not for what a damaged length says.
            let mut bytes = Vec::new();
            if (&mut *from).take(length).read_to_end(&mut bytes)? as u64 != length {
                return Err(bad(&format!("its part '{name}' is cut short")));
            }
            parts.push((name, bytes));
        }
        Ok(Parts(parts))
    }

    /// Takes a part out.
    pub(super) fn take(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let index = self.0.iter().position(|(other, _)| other == name);
        let index = index.ok_or_else(|| bad(&format!("it has no part '{name}'")))?;
        Ok(self.0.swap_remove(index).1)
    }

    /// Takes one of `N` bytes out.
    pub(super) fn exactly<const N: usize>(&mut self, name: &str) -> io::Result<[u8; N]> {
        let bytes = self.take(name)?;
        bytes.try_into().map_err(|bytes: Vec<u8>| bad(&format!("its part '{name}' has {} bytes, not {N}", bytes.len())))
    }

    /// Takes a yes or no out.
    pub(super) fn flag(&mut self, name: &str) -> io::Result<bool> {
        match self.exactly(name)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(bad(&format!("its part '{name}' is neither yes nor no"))),
        }
    }

    /// Everything was taken.
    pub(super) fn end(self) -> io::Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(bad(&format!("it has a part '{name}', and the drive has nothing for it"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_by_name_and_nothing_is_left_or_missing() {
        let mut parts = Parts::default();
        parts.add("one", vec![1]);
        parts.add("two", b"more".to_vec());
        let mut bytes = Vec::new();
        parts.write(&mut bytes).expect("written to memory");
        let read = || Parts::read(&mut bytes.as_slice()).expect("whole");
        let mut parts = read();
        assert_eq!(parts.take("two").ok(), Some(b"more".to_vec()));
        assert!(parts.flag("one").expect("a flag"));
        assert!(parts.end().is_ok());
        let said = |error: io::Error| error.to_string();
        assert_eq!(read().take("three").map_err(said), Err("it has no part 'three'".to_string()));
        assert_eq!(read().exactly::<3>("two").map_err(said), Err("its part 'two' has 4 bytes, not 3".to_string()));
        assert!(read().end().map_err(said).expect_err("two are left").contains("'one'"));
        for end in 0..bytes.len() {
            assert!(Parts::read(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
