//! A counting model of garbage collection that knows nothing of the drive: planes as pools of blocks, pages that are valid
//! or not, and a victim policy. It counts programs and keeps nothing else. Written from the policies' definitions, to hold
//! the drive against.

/// What a plane is, and how many of them there are.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) planes: usize,
    pub(crate) blocks: usize,
    pub(crate) pages: usize,
    pub(crate) user_pages: usize,
    /// Blocks that collection keeps free in each plane.
    pub(crate) free: usize,
    /// Relocated pages have a frontier of their own.
    pub(crate) separate: bool,
}

/// How a victim is chosen among closed blocks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Victim {
    /// The fewest valid pages; the lowest number among equals.
    Greedy,
    /// The fewest valid pages; the one that was closed first among equals.
    GreedyOldest,
    CostBenefit,
    Fifo,
    Random,
    DChoices(usize),
}

const NOWHERE: u32 = u32::MAX;

struct Block {
    /// The logical page of each page that was programmed; it is valid while the map still points here.
    pages: Vec<u32>,
    valid: usize,
    /// When it was closed, in closings of the whole drive; `None` while it is free or open.
    closed: Option<u64>,
}

struct Pool {
    blocks: Vec<Block>,
    free: Vec<usize>,
    /// The open block of the host, and of relocation where that has its own.
    open: [Option<usize>; 2],
}

/// The model of one drive.
pub(crate) struct Model {
    shape: Shape,
    victim: Victim,
    pools: Vec<Pool>,
    /// Where each logical page is: plane, block, page.
    map: Vec<(u32, u32, u32)>,
    closings: u64,
    next_plane: usize,
    random: u64,
    pub(crate) programs: u64,
}

impl Model {
    pub(crate) fn new(shape: Shape, victim: Victim, seed: u64) -> Model {
        let block = || Block { pages: Vec::with_capacity(shape.pages), valid: 0, closed: None };
        let pool = || Pool {
            blocks: (0..shape.blocks).map(|_| block()).collect(),
            free: (0..shape.blocks).collect(),
            open: [None; 2],
        };
        Model {
            shape,
            victim,
            pools: (0..shape.planes).map(|_| pool()).collect(),
            map: vec![(NOWHERE, 0, 0); shape.user_pages],
            closings: 0,
            next_plane: 0,
            random: seed | 1,
            programs: 0,
        }
    }

    /// The host writes a page: to the planes in turn.
    pub(crate) fn write(&mut self, page: u32) {
        let plane = self.next_plane;
        self.next_plane = (plane + 1) % self.shape.planes;
        let (old_plane, old_block, _) = self.map[page as usize];
        if old_plane != NOWHERE {
            self.pools[old_plane as usize].blocks[old_block as usize].valid -= 1;
        }
        self.program(plane, 0, page);
        while self.pools[plane].free.len() < self.shape.free {
            self.collect(plane);
        }
    }

    fn program(&mut self, plane: usize, frontier: usize, page: u32) {
        self.programs += 1;
        let pool = &mut self.pools[plane];
        let number = match pool.open[frontier] {
            Some(number) => number,
            // A block that has rested longest among the free ones.
            None => pool.free.remove(0),
        };
        let block = &mut pool.blocks[number];
        self.map[page as usize] = (plane as u32, number as u32, block.pages.len() as u32);
        block.pages.push(page);
        block.valid += 1;
        pool.open[frontier] = Some(number);
        if block.pages.len() == self.shape.pages {
            self.closings += 1;
            block.closed = Some(self.closings);
            pool.open[frontier] = None;
        }
    }

    fn collect(&mut self, plane: usize) {
        let number = self.choose(plane);
        let block = &mut self.pools[plane].blocks[number];
        block.closed = None;
        block.valid = 0;
        let pages = std::mem::take(&mut block.pages);
        let frontier = usize::from(self.shape.separate);
        for (index, &page) in pages.iter().enumerate() {
            if self.map[page as usize] == (plane as u32, number as u32, index as u32) {
                self.program(plane, frontier, page);
            }
        }
        self.pools[plane].blocks[number].pages.reserve(self.shape.pages);
        self.pools[plane].free.push(number);
    }

    fn choose(&mut self, plane: usize) -> usize {
        let now = self.closings;
        let pages = self.shape.pages as f64;
        if let Victim::Random = self.victim {
            return self.draw(plane);
        }
        if let Victim::DChoices(choices) = self.victim {
            let drawn: Vec<usize> = (0..choices).map(|_| self.draw(plane)).collect();
            return drawn.into_iter().min_by_key(|&number| self.pools[plane].blocks[number].valid).expect("one drawn");
        }
        let blocks = self.pools[plane].blocks.iter().enumerate();
        let closed = blocks.filter_map(|(number, block)| Some((number, block.valid, block.closed?)));
        let best = match self.victim {
            Victim::Greedy => closed.min_by_key(|&(_, valid, _)| valid),
            Victim::GreedyOldest => closed.min_by_key(|&(_, valid, closed)| (valid, closed)),
            Victim::Fifo => closed.min_by_key(|&(.., closed)| closed),
            // (1 - u) / 2u times the age; an empty block is worth more than all others.
            _ => closed.max_by(|one, other| {
                let worth = |&(_, valid, closed): &(usize, usize, u64)| {
                    let u = valid as f64 / pages;
                    if valid == 0 { f64::INFINITY } else { (now - closed) as f64 * (1.0 - u) / (2.0 * u) }
                };
                worth(one).total_cmp(&worth(other))
            }),
        };
        best.expect("a closed block").0
    }

    fn draw(&mut self, plane: usize) -> usize {
        loop {
            // Xorshift64*: of its own, so that nothing is shared with the drive.
            self.random ^= self.random >> 12;
            self.random ^= self.random << 25;
            self.random ^= self.random >> 27;
            let number = (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % self.shape.blocks;
            if self.pools[plane].blocks[number].closed.is_some() {
                return number;
            }
        }
    }
}
