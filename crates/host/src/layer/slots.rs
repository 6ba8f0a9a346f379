//! Numbers for what is in flight.

/// Things that have a number as long as they are there.
#[derive(Debug)]
pub struct Slots<T> {
    things: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots::new()
    }
}

impl<T> Slots<T> {
    /// None.
    pub const fn new() -> Slots<T> {
        Slots { things: Vec::new(), free: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of what is put next.
    #[inline]
    pub(crate) fn next_number(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.things.len() as u32)
    }

    /// Gives a thing a number that none of the others has.
    #[inline]
    pub fn put(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.things[number as usize] = Some(thing);
                number
            }
            None => {
                self.things.push(Some(thing));
                self.things.len() as u32 - 1
            }
        }
    }

    pub(crate) fn get(&self, number: u32) -> &T {
        self.things[number as usize].as_ref().expect("it has not ended")
    }

    /// The thing of a number, if it has not been taken.
    pub(crate) fn find(&self, number: u32) -> Option<&T> {
        self.things.get(number as usize)?.as_ref()
    }

    /// The thing of a number, to change.
    ///
    /// # Panics
    /// It was taken.
    pub fn get_mut(&mut self, number: u32) -> &mut T {
        self.things[number as usize].as_mut().expect("it has not ended")
    }

    /// Each thing with its number.
    pub fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.things).filter_map(|(number, thing)| Some((number, thing.as_ref()?)))
    }

    /// Each thing with its number, to change.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..).zip(&mut self.things).filter_map(|(number, thing)| Some((number, thing.as_mut()?)))
    }

    /// Takes a thing out. Its number may be given again.
    ///
    /// # Panics
    /// It was taken before.
    #[inline]
    pub fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.things[number as usize].take().expect("it ends once")
    }
}
