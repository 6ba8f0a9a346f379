//! Targets that answer later, out of order, with errors, or when they are told to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use rand::Rng as _;
use ssdlab_base::{Op, rng};
use ssdlab_live::{Answer, Command, Extent, Failure, Target};

use super::ram::Ram;

/// Answers from a thread of its own, in shuffled order and in groups of any size.
pub(crate) struct Later {
    ram: Arc<Ram>,
    commands: Mutex<Option<mpsc::Sender<Command>>>,
    thread: Option<JoinHandle<()>>,
}

impl Later {
    pub(crate) fn new(bytes: u64, seed: u64) -> Later {
        let ram = Arc::new(Ram::new(bytes));
        let (sender, receiver) = mpsc::channel();
        let disk = Arc::clone(&ram);
        let thread = thread::spawn(move || answer_shuffled(&disk, &receiver, seed));
        Later { ram, commands: Mutex::new(Some(sender)), thread: Some(thread) }
    }
}

fn answer_shuffled(ram: &Ram, receiver: &mpsc::Receiver<Command>, seed: u64) {
    let mut random = rng(seed, "answers");
    let mut next = move |bound: usize| (random.next_u64() % bound as u64) as usize;
    let mut ready: Vec<(Command, Result<Vec<u8>, Failure>)> = Vec::new();
    loop {
        let command = match receiver.try_recv() {
            Ok(command) => Some(command),
            Err(_) if ready.is_empty() => match receiver.recv() {
                Ok(command) => Some(command),
                Err(_) => return,
            },
            Err(_) => None,
        };
        if let Some(mut command) = command {
            // Done in the order it came, answered in any.
            let result = ram.execute(&mut command);
            ready.push((command, result));
            if ready.len() < 16 && next(4) > 0 {
                continue;
            }
        }
        let (command, result) = ready.swap_remove(next(ready.len()));
        let mut answers = vec![Answer { cookie: command.cookie, result }];
        while next(3) > 0 {
            let Some(at) = ready.iter().position(|other| Arc::ptr_eq(&other.0.sink, &command.sink)) else { break };
            let (other, result) = ready.swap_remove(at);
            answers.push(Answer { cookie: other.cookie, result });
        }
        command.sink.answers(&mut answers);
        assert!(answers.is_empty(), "a sink takes all answers");
    }
}

impl Target for Later {
    fn bytes(&self) -> u64 {
        self.ram.bytes()
    }

    fn preferred_bytes(&self) -> u32 {
        self.ram.preferred_bytes()
    }

    fn description(&self) -> String {
        "a disk that answers later".to_owned()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        let sender = self.commands.lock().expect("no panic");
        for command in commands.drain(..) {
            sender.as_ref().expect("open").send(command).expect("the thread takes commands");
        }
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        self.ram.extents(offset, bytes, limit)
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.commands.lock().expect("no panic").take();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

/// Keeps what it is given until it is released; reads and writes by the memory disk below.
pub(crate) struct Held {
    ram: Ram,
    held: Mutex<Vec<Command>>,
    /// Nothing is held any more.
    open: Mutex<bool>,
    /// Commands of all times.
    pub(crate) submitted: AtomicUsize,
}

impl Held {
    pub(crate) fn new(bytes: u64) -> Held {
        Held {
            ram: Ram::new(bytes),
            held: Mutex::new(Vec::new()),
            open: Mutex::new(false),
            submitted: AtomicUsize::new(0),
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.held.lock().expect("no panic").len()
    }

    /// What the sinks of held commands keep alive.
    pub(crate) fn bytes_held(&self) -> u64 {
        self.held.lock().expect("no panic").iter().map(|command| command.request.bytes()).sum()
    }

    /// Answers everything that is held, and from now on at once.
    pub(crate) fn release(&self) {
        *self.open.lock().expect("no panic") = true;
        let held: Vec<Command> = self.held.lock().expect("no panic").drain(..).collect();
        for mut command in held {
            let result = self.ram.execute(&mut command);
            command.sink.answers(&mut vec![Answer { cookie: command.cookie, result }]);
        }
    }
}

impl Target for Held {
    fn bytes(&self) -> u64 {
        self.ram.bytes()
    }

    fn preferred_bytes(&self) -> u32 {
        self.ram.preferred_bytes()
    }

    fn description(&self) -> String {
        "a disk that waits".to_owned()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        self.submitted.fetch_add(commands.len(), Ordering::SeqCst);
        let open = self.open.lock().expect("no panic");
        if *open {
            self.ram.submit(commands);
        } else {
            self.held.lock().expect("no panic").append(commands);
        }
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        self.ram.extents(offset, bytes, limit)
    }
}

/// Fails as the first sector of a request says, and keeps what it was asked.
pub(crate) struct Failing {
    pub(crate) asked: Mutex<Vec<(Op, bool, u64, u64)>>,
}

pub(crate) const FAILURES: [Failure; 5] =
    [Failure::Io, Failure::NoSpace, Failure::ReadOnly, Failure::Invalid, Failure::Shutdown];

impl Target for Failing {
    fn bytes(&self) -> u64 {
        1 << 40
    }

    fn preferred_bytes(&self) -> u32 {
        16384
    }

    fn description(&self) -> String {
        "a disk that fails".to_owned()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        for command in commands.drain(..) {
            let request = &command.request;
            self.asked.lock().expect("no panic").push((request.op, request.fua, request.sector, request.sectors));
            let zeroes = if request.op == Op::Read { vec![0; request.bytes() as usize] } else { Vec::new() };
            let result = FAILURES.get(request.sector as usize).map_or(Ok(zeroes), |failure| Err(*failure));
            command.sink.answers(&mut vec![Answer { cookie: command.cookie, result }]);
        }
    }

    fn extents(&self, _offset: u64, bytes: u64, _limit: usize) -> Vec<Extent> {
        // In more pieces than there are differences.
        [512, 512, bytes - 1024].map(|bytes| Extent { bytes, mapped: true }).to_vec()
    }
}
