//! Replies that wait for the target's answers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

use crate::{Answer, Failure, Sink};

/// How the kernel is told what became of its request.
pub(super) enum Reply {
    /// A read: `skip` bytes of the answer lie before what was asked for, `take` bytes were asked for.
    Read { reply: ReplyData, skip: usize, take: usize },
    /// A write of so many bytes.
    Write { reply: ReplyWrite, bytes: u32 },
    /// Anything without data.
    Empty(ReplyEmpty),
}

impl Reply {
    pub(super) fn send(self, result: Result<Vec<u8>, Failure>) {
        match (self, result) {
            (Reply::Read { reply, skip, take }, Ok(data)) => match data.get(skip..skip + take) {
                Some(data) => reply.data(data),
                None => reply.error(Errno::EIO),
            },
            (Reply::Read { reply, .. }, Err(failure)) => reply.error(errno(failure)),
            (Reply::Write { reply, bytes }, Ok(_)) => reply.written(bytes),
            (Reply::Write { reply, .. }, Err(failure)) => reply.error(errno(failure)),
            (Reply::Empty(reply), Ok(_)) => reply.ok(),
            (Reply::Empty(reply), Err(failure)) => reply.error(errno(failure)),
        }
    }
}

fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::Io | Failure::Shutdown => Errno::EIO,
        Failure::NoSpace => Errno::ENOSPC,
        Failure::ReadOnly => Errno::EROFS,
        Failure::Invalid | Failure::Refused(_) => Errno::EINVAL,
        Failure::Unsupported => Errno::EOPNOTSUPP,
    }
}

/// The requests that a target has not answered yet; a request's cookie is its place.
///
/// The thread that brings an answer sends the reply: no thread waits for it, and the lock is never held over a system
/// call.
#[derive(Default)]
pub(super) struct Pending {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    replies: Vec<Option<Reply>>,
    free: Vec<usize>,
}

impl Pending {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a reply until its answer comes, and gives the command's cookie.
    pub(super) fn keep(&self, reply: Reply) -> u64 {
        let mut slots = self.slots();
        if let Some(place) = slots.free.pop() {
            slots.replies[place] = Some(reply);
            place as u64
        } else {
            slots.replies.push(Some(reply));
            slots.replies.len() as u64 - 1
        }
    }

    fn take(&self, cookie: u64) -> Option<Reply> {
        let mut slots = self.slots();
        let place = usize::try_from(cookie).ok()?;
        let reply = slots.replies.get_mut(place)?.take()?;
        slots.free.push(place);
        Some(reply)
    }
}

impl Sink for Pending {
    fn answers(&self, answers: &mut Vec<Answer>) {
        for answer in answers.drain(..) {
            let reply = self.take(answer.cookie);
            debug_assert!(reply.is_some(), "a command is answered once");
            if let Some(reply) = reply {
                reply.send(answer.result);
            }
        }
    }
}
