//! The queue and its policies beside a reference model: a list of everything that waits, looked through for each decision.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::description::{Section, Tree};

use super::config::LAYER;
use super::policy::{Direction, POLICIES, Policy};
use super::queue::Queue;
use super::request::{Joined, Rules};

const BATCH: u64 = 4;
const STARVED: u64 = 2;
const EXPIRE: [u64; 2] = [50, 400];
const SECTORS: u64 = 3000;

/// A policy of the registry with the keys of these tests.
fn policy(name: &str) -> Box<dyn Policy> {
    let keys = match name {
        "deadline" => "read_expire = \"50ns\"\nwrite_expire = \"400ns\"\nfifo_batch = 4\n",
        _ => "",
    };
    let tree = Tree::parse(&format!("policy = \"{name}\"\n{keys}"), "test.toml").expect("a text");
    let section = Section::root(&tree, LAYER.keys);
    let read = POLICIES.iter().find(|policy| policy.name == name).and_then(|policy| policy.read);
    read.expect("a policy that orders requests")(&section).expect("keys that it takes").make()
}

/// A request of the model, of one command or several.
#[derive(Clone, Debug)]
struct Known {
    request: Request,
    slots: Vec<u32>,
    segments: u64,
    number: u64,
    since: u64,
}

/// Everything that waits, in the order of arrival.
#[derive(Default)]
struct Model {
    queued: Vec<Known>,
    held: Vec<Known>,
    numbers: u64,
    /// Direction, where the last request ended, and requests left of the batch.
    batch: Option<(Op, u64, u64)>,
    starved: u64,
}

fn is_read(request: &Request) -> bool {
    request.op == Op::Read
}

fn of(all: &[Known], op: Op) -> impl Iterator<Item = &Known> {
    all.iter().filter(move |known| is_read(&known.request) == (op == Op::Read))
}

impl Model {
    fn may_join(rules: &Rules, first: &Known, second: &Known) -> bool {
        let (a, b) = (&first.request, &second.request);
        let alike = (a.op, a.fua, a.stream, a.opcode) == (b.op, b.fua, b.stream, b.opcode);
        alike
            && matches!(a.op, Op::Read | Op::Write)
            && a.end() == b.sector
            && (a.sectors + b.sectors) * 512 <= rules.bytes
            && first.segments + second.segments <= rules.segments
    }

    fn conflicts(&self, request: &Request) -> bool {
        self.queued.iter().chain(&self.held).any(|known| {
            let other = &known.request;
            let shares = other.sector < request.end() && request.sector < other.end();
            shares && !(is_read(other) && is_read(request))
        })
    }

    fn absorb(&mut self, first: usize, second: usize) {
        let (older, younger) =
            if self.queued[first].number < self.queued[second].number { (first, second) } else { (second, first) };
        let (a, b) = (self.queued[first].clone(), self.queued[second].clone());
        let Known { number, since, .. } = self.queued[older];
        let request = Request { sector: a.request.sector, sectors: a.request.sectors + b.request.sectors, ..a.request };
        let slots = [a.slots, b.slots].concat();
        self.queued[older] = Known { request, slots, segments: a.segments + b.segments, number, since };
        self.queued.remove(younger);
    }

    /// Joins the last queued one to others, as often as it fits.
    fn join_last(&mut self, rules: &Rules) -> bool {
        let last = self.queued.len() - 1;
        let new = self.queued[last].clone();
        let same = |index: &usize| *index != last && is_read(&self.queued[*index].request) == is_read(&new.request);
        let before = |sector: u64, than: &dyn Fn(&usize) -> bool| {
            let all = (0..=last).filter(|index| than(index) && self.queued[*index].request.sector < sector);
            all.max_by_key(|index| (self.queued[*index].request.sector, self.queued[*index].number))
        };
        let at = |sector: u64, than: &dyn Fn(&usize) -> bool| {
            let all = (0..=last).filter(|index| than(index) && self.queued[*index].request.sector == sector);
            all.min_by_key(|index| self.queued[*index].number)
        };
        let grown = if let Some(index) = before(new.request.sector, &same)
            && Model::may_join(rules, &self.queued[index], &new)
        {
            let next = at(new.request.end(), &same);
            self.absorb(index, last);
            next.map(|next| (index, next))
        } else if let Some(index) = at(new.request.end(), &same)
            && Model::may_join(rules, &new, &self.queued[index])
        {
            let former = before(new.request.sector, &same);
            self.absorb(last, index);
            former.map(|former| (former, index))
        } else {
            return false;
        };
        if let Some((first, second)) = grown
            && Model::may_join(rules, &self.queued[first], &self.queued[second])
        {
            self.absorb(first, second);
        }
        true
    }

    fn admit(&mut self, request: Request, slot: u32, now: u64, rules: &Rules, limit: usize) {
        let segments = (request.sectors * 512).div_ceil(4096);
        self.queued.push(Known { request, slots: vec![slot], segments, number: u64::MAX, since: now });
        if self.join_last(rules) {
            return self.fill(request.op, now, rules, limit);
        }
        self.numbers += 1;
        let mut known = self.queued.pop().expect("it was pushed");
        known.number = self.numbers;
        let is_held = of(&self.queued, request.op).count() >= limit;
        if is_held { self.held.push(known) } else { self.queued.push(known) }
    }

    fn take(&mut self, number: u64, now: u64, rules: &Rules, limit: usize) -> Known {
        let index = self.queued.iter().position(|known| known.number == number).expect("it waits");
        let gone = self.queued.remove(index);
        self.fill(gone.request.op, now, rules, limit);
        gone
    }

    /// Queues what was held while there are places.
    fn fill(&mut self, op: Op, now: u64, rules: &Rules, limit: usize) {
        while of(&self.queued, op).count() < limit
            && let Some(index) = self.held.iter().position(|held| is_read(&held.request) == (op == Op::Read))
        {
            let held = self.held.remove(index);
            let number = held.number;
            self.queued.push(Known { number: u64::MAX, since: now, ..held });
            if !self.join_last(rules) {
                self.queued.last_mut().expect("it was pushed").number = number;
            }
        }
    }

    fn oldest(&self, op: Op) -> Option<&Known> {
        of(&self.queued, op).min_by_key(|known| known.number)
    }

    fn noop(&self) -> u64 {
        self.queued.iter().map(|known| known.number).min().expect("requests wait")
    }

    fn deadline(&mut self, now: u64) -> u64 {
        let late = |model: &Model, op: Op| {
            let oldest = model.oldest(op).cloned();
            oldest.filter(|known| now >= known.since + EXPIRE[usize::from(op != Op::Read)])
        };
        let behind = |model: &Model, op: Op, position: u64| {
            let further = of(&model.queued, op).filter(|known| known.request.sector >= position);
            further.min_by_key(|known| (known.request.sector, known.number)).cloned()
        };
        let running = self.batch.filter(|(_, _, left)| *left > 0).and_then(|(op, position, left)| {
            let next = late(self, op).or_else(|| behind(self, op, position))?;
            Some((op, next, left))
        });
        let (op, next, left) = running.unwrap_or_else(|| {
            let (reads, writes) = (self.oldest(Op::Read).is_some(), self.oldest(Op::Write).is_some());
            let op = if reads && !(writes && self.starved >= STARVED) { Op::Read } else { Op::Write };
            self.starved = if op == Op::Write { 0 } else { self.starved + u64::from(writes) };
            let last = self.batch.filter(|(last, ..)| *last == op).map(|(_, position, _)| position);
            let further = last.and_then(|position| behind(self, op, position));
            let next = late(self, op).or(further).or_else(|| self.oldest(op).cloned());
            (op, next.expect("requests of the direction wait"), BATCH)
        });
        self.batch = Some((op, next.request.end(), left - 1));
        next.number
    }
}

/// A command somewhere, most often beside one that came before.
fn draw(rng: &mut Rng, last: &Request) -> Request {
    let op = [Op::Read, Op::Write, Op::Write, Op::Trim][rng.random_range(0..4)];
    if rng.random_bool(0.3) {
        // Gaps between these are as long as they are.
        return Request::new(op, rng.random_range(0..60) * 8, 8);
    }
    let sectors = rng.random_range(1..=12);
    let sector = match rng.random_range(0..4) {
        0 => last.end(),
        1 => last.sector.saturating_sub(sectors),
        _ => rng.random_range(0..SECTORS),
    };
    let (fua, stream) = (rng.random_bool(0.1), rng.random_range(0..2) * u16::from(rng.random_bool(0.2)));
    Request { op, fua, stream, ..Request::new(op, sector, sectors) }
}

/// A request that went: when it came, its direction, and when it went.
type Went = (u64, Direction, u64);

/// What one run of requests did, for the tests below.
#[derive(Default)]
struct Seen {
    went: Vec<Went>,
    joined: [u64; 3],
    held: u64,
}

fn run(name: &str, seed: u64, rules: Rules, limit: usize, steps: u32) -> Seen {
    let mut rng = rng(seed, name);
    let mut queue = Queue::new(rules, limit as u32);
    let (mut policy, mut model, mut seen) = (policy(name), Model::default(), Seen::default());
    let mut last = Request::new(Op::Write, 0, 1);
    let mut requests: Vec<Request> = Vec::new();
    for step in 0..steps {
        let now = u64::from(step);
        // Times of many arrivals, and times of few.
        let busy = if step / 300 % 2 == 0 { 0.8 } else { 0.25 };
        if rng.random_bool(busy) || queue.is_empty() {
            let request = draw(&mut rng, &last);
            assert_eq!(queue.conflicts(&request), model.conflicts(&request), "{request:?}");
            if model.conflicts(&request) || request.end() > SECTORS {
                continue;
            }
            last = request;
            let slot = requests.len() as u32;
            requests.push(request);
            queue.admit(Joined::new(request, slot, Vec::new()), Nanos(now));
            model.admit(request, slot, now, &rules, limit);
        } else {
            let expected = if name == "noop" { model.noop() } else { model.deadline(now) };
            let chosen = policy.choose(&queue.view(), Nanos(now));
            let joined = queue.take(chosen, Nanos(now));
            let known = model.take(expected, now, &rules, limit);
            assert_eq!(joined.slots().collect::<Vec<_>>(), known.slots, "{name}, seed {seed}, step {step}");
            assert_eq!((joined.request, joined.segments), (known.request, known.segments));
            let mut sector = joined.request.sector;
            for slot in joined.slots() {
                let part = &requests[slot as usize];
                assert_eq!(part.sector, sector, "parts follow one another");
                let kind = |request: &Request| (request.op, request.fua, request.stream);
                assert_eq!(kind(part), kind(&joined.request), "commands of different kinds never join");
                sector = part.end();
            }
            assert_eq!(sector, joined.request.end());
            if joined.parts() > 1 {
                assert!(joined.request.bytes() <= rules.bytes && joined.segments <= rules.segments);
            }
            let direction = if is_read(&joined.request) { Direction::Read } else { Direction::Write };
            seen.went.push((known.since, direction, now));
        }
        assert_eq!(queue.len(), model.queued.len() + model.held.len());
        for direction in [Direction::Read, Direction::Write] {
            assert!(queue.view().count(direction) <= limit, "at most {limit} requests of a direction are queued");
        }
    }
    let counts = queue.counts;
    seen.joined = [counts.back_merges, counts.front_merges, counts.neighbours_joined];
    seen.held = counts.held;
    seen
}

#[test]
fn queue_and_policies_do_what_a_list_of_all_does() {
    let (mut joined, mut held) = ([0; 3], 0);
    for name in ["noop", "deadline"] {
        for seed in 0..60 {
            let sizes = [(4 << 10, 128), (512 << 10, 128), (512 << 10, 5)];
            let (bytes, segments) = sizes[seed as usize % 3];
            let rules = Rules { bytes, segments, capacity: SECTORS, zone: None };
            let limit = [3, 8, 128][seed as usize / 3 % 3];
            let seen = run(name, seed, rules, limit, 1500);
            (0..3).for_each(|kind| joined[kind] += seen.joined[kind]);
            held += seen.held;
        }
    }
    assert!(joined.iter().all(|count| *count > 20) && held > 200, "{joined:?} joined, {held} held");
}

/// After its deadline nothing younger of its direction goes before a request. Of the other direction go the batch that runs, and
/// `writes_starved` batches of reads, or one of writes, for each batch that its own direction needs.
#[test]
fn after_its_deadline_a_request_is_overtaken_by_so_much_at_most() {
    let mut late = 0;
    for seed in 0..40 {
        let rules = Rules { bytes: 0, segments: 128, capacity: SECTORS, zone: None };
        let seen = run("deadline", seed, rules, 1000, 4000);
        for (index, (since, direction, went)) in seen.went.iter().enumerate() {
            let deadline = since + EXPIRE[*direction as usize];
            if *went <= deadline {
                continue;
            }
            late += 1;
            let after = seen.went[..index].iter().filter(|(_, _, at)| *at >= deadline);
            let (own, other): (Vec<&Went>, Vec<&Went>) = after.partition(|(_, other, _)| other == direction);
            assert!(
                own.iter().all(|(other, ..)| other <= since),
                "seed {seed}: a younger one overtook that of {since}"
            );
            let batches = own.len() as u64 / BATCH + 1;
            let each = if *direction == Direction::Write { STARVED } else { 1 };
            let most = (batches * each + 1) * BATCH;
            assert!(other.len() as u64 <= most, "seed {seed}: {} of the other direction, at most {most}", other.len());
        }
    }
    assert!(late > 500, "only {late} were late: this test tests nothing");
}

#[test]
fn a_request_grows_at_its_end_at_its_beginning_and_by_a_neighbour() {
    let rules = Rules { bytes: 512 << 10, segments: 128, capacity: SECTORS, zone: None };
    let mut queue = Queue::new(rules, 128);
    let admit = |queue: &mut Queue, sector, slot| {
        queue.admit(Joined::new(Request::new(Op::Write, sector, 8), slot, Vec::new()), Nanos::ZERO);
    };
    let counts = |queue: &Queue| {
        let counts = queue.counts;
        [counts.back_merges, counts.front_merges, counts.neighbours_joined]
    };
    admit(&mut queue, 100, 0);
    admit(&mut queue, 108, 1);
    assert_eq!(counts(&queue), [1, 0, 0]);
    admit(&mut queue, 92, 2);
    assert_eq!(counts(&queue), [1, 1, 0]);
    admit(&mut queue, 124, 3);
    assert_eq!(queue.len(), 2);
    admit(&mut queue, 116, 4);
    assert_eq!(counts(&queue), [2, 1, 1]);
    assert_eq!(queue.len(), 1);
    let slot = policy("noop").choose(&queue.view(), Nanos::ZERO);
    let joined = queue.take(slot, Nanos::ZERO);
    assert_eq!((joined.request.sector, joined.request.sectors), (92, 40));
    assert_eq!(joined.slots().collect::<Vec<_>>(), [2, 0, 1, 4, 3]);
}
