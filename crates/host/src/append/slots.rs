//! Numbers for what is in flight.

/// Things that have a number as long as they are there.
#[derive(Debug)]
pub(super) struct Slots<T> {
    things: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Slots<T> {
        Slots { things: Vec::new(), free: Vec::new() }
    }

    pub(super) fn put(&mut self, thing: T) -> u32 {
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

    pub(super) fn get(&mut self, number: u32) -> &mut T {
        self.things[number as usize].as_mut().expect("it has not ended")
    }

    /// Each thing with its number.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.things).filter_map(|(number, thing)| Some((number, thing.as_ref()?)))
    }

    pub(super) fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.things[number as usize].take().expect("it ends once")
    }
}
