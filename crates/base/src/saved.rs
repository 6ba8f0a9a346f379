//! State as bytes: the one codec of all that is saved and read again.
//!
//! A type lists its fields with [`saved!`](crate::saved!), in the order in which they are written:
//!
//! ```text
//! number    its bytes, in the order of the machine; a flag is a byte, 0 or 1; a choice is the number of its variant
//! list      how many (64 bits), then each; keys of a map or set rise
//! table     each entry: the configuration says how many
//! option    a flag, then what is there
//! ```
//!
//! Reading judges the form alone, and takes memory only as fast as bytes arrive, whatever a damaged length says. The owner of
//! the values judges them afterwards: bounds first, so that nothing indexes outside a table, then the invariants that a run
//! reports.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::io::{self, Read, Write};

use crate::{Rng, rng_at, rng_state};

/// Entries for which a list takes memory at once.
const STEP: usize = 1 << 16;

/// What can be saved, and read again into a value of the same configuration.
///
/// ```
/// use ssdlab_base::{Saved, saved};
///
/// #[derive(Debug, Default, PartialEq)]
/// struct Log { block: u32, lpns: Vec<u32>, pages: [u8; 2] }
/// saved!(Log: block, lpns, pages[..]);
///
/// let log = Log { block: 7, lpns: vec![3, 4], pages: [1, 2] };
/// let mut bytes = Vec::new();
/// log.save_to(&mut bytes)?;
/// assert_eq!(bytes.len(), 4 + 8 + 2 * 4 + 2);
/// let mut again = Log::default();
/// again.load_from(&mut bytes.as_slice())?;
/// assert_eq!(again, log);
/// # std::io::Result::Ok(())
/// ```
pub trait Saved {
    /// Writes the value.
    ///
    /// # Errors
    /// Those of the writer.
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()>;

    /// Reads what [`Saved::save_to`] wrote over the value. After an error the value is of no use.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for bytes that are no such value.
    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()>;

    /// Writes the entries of a table.
    ///
    /// # Errors
    /// Those of the writer.
    fn save_all(all: &[Self], to: &mut dyn Write) -> io::Result<()>
    where
        Self: Sized,
    {
        all.iter().try_for_each(|entry| entry.save_to(to))
    }

    /// Reads all entries of a table.
    ///
    /// # Errors
    /// As for [`Saved::load_from`].
    fn load_all(all: &mut [Self], from: &mut dyn Read) -> io::Result<()>
    where
        Self: Sized,
    {
        all.iter_mut().try_for_each(|entry| entry.load_from(from))
    }
}

/// The error of saved bytes that contradict themselves or the drive that reads them.
pub fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Reads a value that has a default.
///
/// # Errors
/// As for [`Saved::load_from`].
pub fn load<T: Saved + Default>(from: &mut dyn Read) -> io::Result<T> {
    let mut value = T::default();
    value.load_from(from)?;
    Ok(value)
}

/// Reads the bytes that a saved state begins and ends with, which name its format and the version of that.
///
/// # Errors
/// Those of the reader, and [`io::ErrorKind::InvalidData`] with the sentence `otherwise` for other bytes.
pub fn load_magic<const N: usize>(magic: &[u8; N], from: &mut dyn Read, otherwise: &str) -> io::Result<()> {
    let mut found = [0; N];
    from.read_exact(&mut found)?;
    if found == *magic { Ok(()) } else { Err(damaged(otherwise)) }
}

/// Says of a type how it is saved.
///
/// - `saved!(Type: one, two[..], three?)` saves the fields of a struct in this order. `[..]` is a table, whose length the
///   configuration decides; `?` is an option that the configuration decides.
/// - `saved!(enum Type: One, Two)` saves an enum without fields as the number of its variant, which is a byte; a variant that is not
///   listed is refused when it is read.
/// - `saved!(words Type)` is for numbers and what is made of numbers without padding (`bytemuck::Pod`): whole tables are read and
///   written at once. The crate has `bytemuck`.
#[macro_export]
macro_rules! saved {
    (@save $value:ident, $to:ident;) => {};
    (@save $value:ident, $to:ident; $field:tt [..] $(, $($rest:tt)*)?) => {
        $crate::Saved::save_to(&$value.$field[..], $to)?;
        $crate::saved!(@save $value, $to; $($($rest)*)?);
    };
    (@save $value:ident, $to:ident; $field:tt ? $(, $($rest:tt)*)?) => {
        if let Some(part) = &$value.$field {
            $crate::Saved::save_to(part, $to)?;
        }
        $crate::saved!(@save $value, $to; $($($rest)*)?);
    };
    (@save $value:ident, $to:ident; $field:tt $(, $($rest:tt)*)?) => {
        $crate::Saved::save_to(&$value.$field, $to)?;
        $crate::saved!(@save $value, $to; $($($rest)*)?);
    };
    (@load $value:ident, $from:ident;) => {};
    (@load $value:ident, $from:ident; $field:tt [..] $(, $($rest:tt)*)?) => {
        $crate::Saved::load_from(&mut $value.$field[..], $from)?;
        $crate::saved!(@load $value, $from; $($($rest)*)?);
    };
    (@load $value:ident, $from:ident; $field:tt ? $(, $($rest:tt)*)?) => {
        if let Some(part) = &mut $value.$field {
            $crate::Saved::load_from(part, $from)?;
        }
        $crate::saved!(@load $value, $from; $($($rest)*)?);
    };
    (@load $value:ident, $from:ident; $field:tt $(, $($rest:tt)*)?) => {
        $crate::Saved::load_from(&mut $value.$field, $from)?;
        $crate::saved!(@load $value, $from; $($($rest)*)?);
    };
    (words $($type:ty),+) => { $(
        impl $crate::Saved for $type {
            fn save_to(&self, to: &mut dyn ::std::io::Write) -> ::std::io::Result<()> {
                to.write_all(::bytemuck::bytes_of(self))
            }

            fn load_from(&mut self, from: &mut dyn ::std::io::Read) -> ::std::io::Result<()> {
                from.read_exact(::bytemuck::bytes_of_mut(self))
            }

            fn save_all(all: &[Self], to: &mut dyn ::std::io::Write) -> ::std::io::Result<()> {
                to.write_all(::bytemuck::cast_slice(all))
            }

            fn load_all(all: &mut [Self], from: &mut dyn ::std::io::Read) -> ::std::io::Result<()> {
                from.read_exact(::bytemuck::cast_slice_mut(all))
            }
        }
    )+ };
    (enum $type:ident: $($variant:ident),+) => {
        impl $crate::Saved for $type {
            fn save_to(&self, to: &mut dyn ::std::io::Write) -> ::std::io::Result<()> {
                (*self as u8).save_to(to)
            }

            fn load_from(&mut self, from: &mut dyn ::std::io::Read) -> ::std::io::Result<()> {
                let number = $crate::load::<u8>(from)?;
                let known = [$($type::$variant),+].into_iter().find(|variant| *variant as u8 == number);
                *self = known.ok_or_else(|| {
                    $crate::damaged(format!(concat!(stringify!($type), " has no variant {} in a saved state"), number))
                })?;
                Ok(())
            }
        }
    };
    ($type:ty: $($fields:tt)+) => {
        impl $crate::Saved for $type {
            fn save_to(&self, to: &mut dyn ::std::io::Write) -> ::std::io::Result<()> {
                let value = self;
                $crate::saved!(@save value, to; $($fields)+);
                Ok(())
            }

            fn load_from(&mut self, from: &mut dyn ::std::io::Read) -> ::std::io::Result<()> {
                let value = self;
                $crate::saved!(@load value, from; $($fields)+);
                Ok(())
            }
        }
    };
}

saved!(words u8, u16, u32, u64);

impl Saved for bool {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        u8::from(*self).save_to(to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        *self = match load::<u8>(from)? {
            0 => false,
            1 => true,
            other => return Err(damaged(format!("a flag is {other}, and not 0 or 1"))),
        };
        Ok(())
    }
}

/// Where the generator is in its stream.
impl Saved for Rng {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        rng_state(self).save_to(to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let mut state = rng_state(self);
        state.load_from(from)?;
        *self = rng_at(state);
        Ok(())
    }
}

/// A table.
impl<T: Saved> Saved for [T] {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        T::save_all(self, to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        T::load_all(self, from)
    }
}

impl<T: Saved, const N: usize> Saved for [T; N] {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        T::save_all(self, to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        T::load_all(self, from)
    }
}

impl<T: Saved + Default> Saved for Vec<T> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (self.len() as u64).save_to(to)?;
        T::save_all(self, to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let count = load_count(from)?;
        self.clear();
        while self.len() < count {
            let read = self.len();
            self.resize_with(count.min(read.saturating_add(STEP)), T::default);
            T::load_all(&mut self[read..], from)?;
        }
        assert_eq!(self.len(), count, "a list is read to its end");
        Ok(())
    }
}

impl<T: Saved + Default> Saved for Box<[T]> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (self.len() as u64).save_to(to)?;
        T::save_all(self, to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        *self = load::<Vec<T>>(from)?.into();
        Ok(())
    }
}

impl<T: Saved + Default> Saved for VecDeque<T> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let (first, second) = self.as_slices();
        (self.len() as u64).save_to(to)?;
        T::save_all(first, to)?;
        T::save_all(second, to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        *self = load::<Vec<T>>(from)?.into();
        Ok(())
    }
}

impl<T: Saved> Saved for Box<T> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (**self).save_to(to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        (**self).load_from(from)
    }
}

/// In the order of the keys.
impl<K: Saved + Default + Ord + Hash, V: Saved + Default, S: BuildHasher> Saved for HashMap<K, V, S> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut entries: Vec<(&K, &V)> = self.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        (entries.len() as u64).save_to(to)?;
        entries.into_iter().try_for_each(|(key, value)| {
            key.save_to(to)?;
            value.save_to(to)
        })
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.clear();
        self.extend(load::<BTreeMap<K, V>>(from)?);
        Ok(())
    }
}

impl<K: Saved + Default + Ord, V: Saved + Default> Saved for BTreeMap<K, V> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (self.len() as u64).save_to(to)?;
        self.iter().try_for_each(|(key, value)| {
            key.save_to(to)?;
            value.save_to(to)
        })
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.clear();
        for _ in 0..load_count(from)? {
            let (key, value) = load::<(K, V)>(from)?;
            if self.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(damaged("a key of a saved map is not above the one before it"));
            }
            self.insert(key, value);
        }
        Ok(())
    }
}

impl<T: Saved + Default + Ord> Saved for BTreeSet<T> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (self.len() as u64).save_to(to)?;
        self.iter().try_for_each(|value| value.save_to(to))
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.clear();
        for _ in 0..load_count(from)? {
            let value = load::<T>(from)?;
            if self.last().is_some_and(|last| *last >= value) {
                return Err(damaged("a value of a saved set is not above the one before it"));
            }
            self.insert(value);
        }
        Ok(())
    }
}

impl<T: Saved + Default> Saved for Option<T> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        self.is_some().save_to(to)?;
        self.iter().try_for_each(|value| value.save_to(to))
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        *self = if load::<bool>(from)? { Some(load(from)?) } else { None };
        Ok(())
    }
}

macro_rules! tuple {
    ($($type:ident $field:tt),+) => {
        impl<$($type: Saved),+> Saved for ($($type,)+) {
            fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
                $(self.$field.save_to(to)?;)+
                Ok(())
            }

            fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
                $(self.$field.load_from(from)?;)+
                Ok(())
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);

/// The length of a list.
fn load_count(from: &mut dyn Read) -> io::Result<usize> {
    usize::try_from(load::<u64>(from)?).map_err(|_| damaged("a saved list is longer than memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    enum Kind {
        #[default]
        One,
        Two,
        Three,
    }
    saved!(enum Kind: One, Three);

    #[derive(Debug, Default, PartialEq)]
    struct All {
        number: u16,
        flag: bool,
        kind: Kind,
        list: Vec<u64>,
        queue: VecDeque<(u8, u32)>,
        map: BTreeMap<u32, Box<[u8]>>,
        hashed: HashMap<u32, Box<u8>>,
        set: BTreeSet<u32>,
        there: Option<u32>,
        absent: Option<u32>,
        table: Vec<u32>,
        part: Option<u64>,
        array: [u8; 3],
    }
    saved!(All: number, flag, kind, list, queue, map, hashed, set, there, absent, table[..], part?, array);

    fn sample() -> All {
        All {
            number: 7,
            flag: true,
            kind: Kind::Three,
            list: vec![1, u64::MAX],
            queue: VecDeque::from([(1, 2), (3, 4)]),
            map: BTreeMap::from([(1, Box::from([9, 8])), (5, Box::from([]))]),
            hashed: HashMap::from([(8, Box::new(1)), (2, Box::new(3))]),
            set: BTreeSet::from([4, 6]),
            there: Some(3),
            absent: None,
            table: vec![5; 4],
            part: Some(11),
            array: [1, 2, 3],
        }
    }

    fn bytes_of(value: &impl Saved) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.save_to(&mut bytes).expect("memory takes it");
        bytes
    }

    /// What the configuration decides is there already.
    fn read(mut bytes: &[u8]) -> io::Result<All> {
        let mut all = All { table: vec![0; 4], part: Some(0), ..All::default() };
        all.load_from(&mut bytes)?;
        assert!(bytes.is_empty(), "all is read");
        Ok(all)
    }

    #[test]
    fn every_form_comes_back_and_a_cut_is_an_error() {
        let bytes = bytes_of(&sample());
        assert_eq!(read(&bytes).expect("whole"), sample());
        for end in 0..bytes.len() {
            let error = read(&bytes[..end]).expect_err("cut");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "at {end}: {error}");
        }
    }

    #[test]
    fn a_length_that_is_not_there_takes_no_memory() {
        let bytes = [0xff; 64];
        for error in [
            load::<Vec<u64>>(&mut bytes.as_slice()).expect_err("no list"),
            load::<Vec<Vec<u8>>>(&mut bytes.as_slice()).expect_err("no list of lists"),
            load::<BTreeMap<u8, u8>>(&mut bytes.as_slice()).expect_err("no map"),
        ] {
            assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData), "{error}");
        }
    }

    #[test]
    fn flags_variants_and_keys_are_judged() {
        let said = |result: io::Result<()>| result.expect_err("refused").to_string();
        assert_eq!(said(load::<bool>(&mut [2].as_slice()).map(drop)), "a flag is 2, and not 0 or 1");
        let two = bytes_of(&Kind::Two);
        assert_eq!(said(load::<Kind>(&mut two.as_slice()).map(drop)), "Kind has no variant 1 in a saved state");
        let twice = bytes_of(&vec![(1_u8, 1_u8), (1, 2)]);
        assert!(said(load::<BTreeMap<u8, u8>>(&mut twice.as_slice()).map(drop)).contains("not above"));
        let falls = bytes_of(&vec![4_u8, 3]);
        assert!(said(load::<BTreeSet<u8>>(&mut falls.as_slice()).map(drop)).contains("not above"));
    }

    #[test]
    fn a_long_list_is_read_in_steps() {
        let list: Vec<u32> = (0..3 * STEP as u32 + 5).collect();
        assert_eq!(load::<Vec<u32>>(&mut bytes_of(&list).as_slice()).expect("whole"), list);
    }

    #[test]
    fn a_generator_goes_on_where_it_was() {
        use rand::Rng as _;
        let mut first = crate::rng(1, "saved");
        first.next_u64();
        let mut second = crate::rng(2, "other");
        second.load_from(&mut bytes_of(&first).as_slice()).expect("whole");
        assert_eq!(first.next_u64(), second.next_u64());
    }

    #[test]
    fn another_magic_is_refused_with_its_sentence() {
        let error = load_magic(b"two", &mut b"one".as_slice(), "this is not two").expect_err("refused");
        assert_eq!(error.to_string(), "this is not two");
    }
}
