//! The handshake: fixed newstyle negotiation, option by option, until the client has chosen the export.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use ssdlab_base::SECTOR_BYTES;

use super::REQUEST_BYTES_MAX;
use super::input::Input;
use super::reply::CONTEXT_ALLOCATION;
use super::session::{Ending, Export, Stream};
use super::wire::{self, Fields, MAGIC, MAGIC_OPTION, MAGIC_OPTION_REPLY, handshake, info, option, option_reply};
use crate::Appends;

/// Data of one option that is looked at; names are at most 4096 bytes by the protocol.
const OPTION_BYTES_MAX: u32 = 32 << 10;

/// Options of one client before it is taken for something else.
const OPTIONS_MAX: usize = 1024;

const CONTEXT_NAME: &[u8] = b"base:allocation";

/// What client and server have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Capacity, as it was told to the client.
    pub(super) bytes: u64,
    pub(super) structured: bool,
    /// `base:allocation` is selected.
    pub(super) status: bool,
}

/// Negotiates with a client until it enters transmission, or ends.
pub(super) fn negotiate<S: Stream>(
    stream: &S,
    input: &mut Input<'_, S>,
    export: &Export,
    limit: Duration,
) -> Result<Agreed, Ending> {
    let agreed = Haggling::new(stream, export, limit).run(input)?;
    stream.set_timeout(None).map_err(|_| Ending::HungUp)?;
    Ok(agreed)
}

/// Answers every option of a client with why it is not served, until it goes or the time is up.
pub(super) fn turn_away<S: Stream>(
    stream: &S,
    input: &mut Input<'_, S>,
    export: &Export,
    limit: Duration,
    why: &str,
) -> Ending {
    let mut haggling = Haggling { turned_away: Some(why), ..Haggling::new(stream, export, limit) };
    haggling.run(input).err().unwrap_or(Ending::TurnedAway)
}

struct Haggling<'a, S: Stream> {
    stream: &'a S,
    export: &'a Export,
    /// Why nothing is granted.
    turned_away: Option<&'a str>,
    until: Instant,
    bytes: u64,
    structured: bool,
    /// The name of the export that `base:allocation` was selected for.
    context_of: Option<Vec<u8>>,
    no_zeroes: bool,
}

/// What an option led to.
enum Next {
    Option,
    Transmission,
    End(Ending),
}

fn ending(error: &io::Error) -> Ending {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ending::TimedOut,
        _ => Ending::HungUp,
    }
}

impl<'a, S: Stream> Haggling<'a, S> {
    fn new(stream: &'a S, export: &'a Export, limit: Duration) -> Haggling<'a, S> {
        Haggling {
            stream,
            export,
            turned_away: None,
            until: Instant::now() + limit,
            bytes: export.target.bytes(),
            structured: false,
            context_of: None,
            no_zeroes: false,
        }
    }

    fn run(&mut self, input: &mut Input<'_, S>) -> Result<Agreed, Ending> {
        let mut greeting = Vec::with_capacity(18);
        greeting.extend_from_slice(&MAGIC.to_be_bytes());
        greeting.extend_from_slice(&MAGIC_OPTION.to_be_bytes());
        greeting.extend_from_slice(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
        self.send(&greeting)?;

        self.need(input, 4)?;
        let flags = Fields(input.take(4)).u32().unwrap_or(u32::MAX);
        if flags & !u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES) != 0 {
            return Err(Ending::Garbage);
        }
        self.no_zeroes = flags & u32::from(handshake::NO_ZEROES) != 0;

        for _ in 0..OPTIONS_MAX {
            match self.option(input)? {
                Next::Option => {}
                Next::End(ending) => return Err(ending),
                Next::Transmission => {
                    return Ok(Agreed {
                        bytes: self.bytes,
                        structured: self.structured,
                        status: self.context_of.is_some(),
                    });
                }
            }
        }
        Err(Ending::Garbage)
    }

    fn option(&mut self, input: &mut Input<'_, S>) -> Result<Next, Ending> {
        self.need(input, 16)?;
        let mut fields = Fields(input.take(16));
        if fields.u64() != Some(MAGIC_OPTION) {
            return Err(Ending::Garbage);
        }
        let (Some(kind), Some(length)) = (fields.u32(), fields.u32()) else { return Err(Ending::Garbage) };
        if length > OPTION_BYTES_MAX {
            let mut left = length;
            while left > 0 {
                let now = left.min(OPTION_BYTES_MAX);
                self.need(input, now as usize)?;
                input.take(now as usize);
                left -= now;
            }
            if kind == option::EXPORT_NAME {
                return Ok(Next::End(Ending::Garbage));
            }
            return self.refuse(kind, option_reply::ERR_TOO_BIG, "the option's data is too long");
        }
        self.need(input, length as usize)?;
        let data = input.take(length as usize);
        if let Some(why) = self.turned_away
            && kind != option::ABORT
        {
            if kind == option::EXPORT_NAME {
                // The one option that has no answer but the export.
                return Ok(Next::End(Ending::TurnedAway));
            }
            return self.refuse(kind, option_reply::ERR_POLICY, why);
        }
        match kind {
            option::EXPORT_NAME => self.export_name(data),
            option::ABORT => {
                // The client may have gone without waiting for it.
                let _ = self.reply(kind, option_reply::ACK, &[]);
                Ok(Next::End(Ending::Disconnected))
            }
            option::LIST if data.is_empty() => self.list(),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                self.reply(kind, option_reply::ACK, &[])?;
                Ok(Next::Option)
            }
            option::LIST | option::STRUCTURED_REPLY => {
                self.refuse(kind, option_reply::ERR_INVALID, "the option has no data")
            }
            option::INFO | option::GO => self.info(kind, data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(kind, data),
            _ => self.refuse(kind, option_reply::ERR_UNSUP, "the server does not know the option"),
        }
    }

    fn is_export(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.export.name.as_bytes()
    }

    fn transmission_flags(&self) -> u16 {
        use wire::export::{
            CAN_MULTI_CONN, HAS_FLAGS, SEND_CACHE, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA, SEND_TRIM,
            SEND_WRITE_ZEROES,
        };
        // All connections share one drive.
        let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | SEND_CACHE;
        let target = &self.export.target;
        let trims = match (target.trims(), target.appends()) {
            // Zeroes are a change of the map: always faster than writing them.
            (true, None) => SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO,
            (true, Some(_)) => SEND_TRIM,
            // A disk is below.
            (false, _) => 0,
        };
        always | trims | if self.structured { SEND_DF } else { 0 }
    }

    /// Minimum, preferred and maximum size of requests in bytes.
    fn block_sizes(&self) -> [u32; 3] {
        if let Some(Appends { shape, .. }) = self.export.target.appends() {
            // A write ends with its segment at the latest, which is whole write units, as the protocol wants it.
            let bytes = |sectors: u64| (sectors * SECTOR_BYTES).min(REQUEST_BYTES_MAX.into()) as u32;
            return [bytes(shape.write_unit), bytes(shape.write_unit), bytes(shape.sectors)];
        }
        // The protocol wants a power of two, no less than the minimum.
        let preferred = self.export.target.preferred_bytes().clamp(SECTOR_BYTES as u32, REQUEST_BYTES_MAX);
        [SECTOR_BYTES as u32, preferred, REQUEST_BYTES_MAX]
    }

    fn export_name(&mut self, name: &[u8]) -> Result<Next, Ending> {
        if !self.is_export(name) {
            return Ok(Next::End(Ending::Garbage));
        }
        self.choose(name);
        let mut data = Vec::with_capacity(134);
        data.extend_from_slice(&self.bytes.to_be_bytes());
        data.extend_from_slice(&self.transmission_flags().to_be_bytes());
        if !self.no_zeroes {
            data.resize(data.len() + 124, 0);
        }
        self.send(&data)?;
        Ok(Next::Transmission)
    }

    /// Contexts that were selected for another export do not count for this one.
    fn choose(&mut self, name: &[u8]) {
        self.context_of.take_if(|selected| selected != name);
    }

    fn list(&mut self) -> Result<Next, Ending> {
        let name = self.export.name.as_bytes();
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend_from_slice(name);
        data.extend_from_slice(self.export.target.description().as_bytes());
        self.reply(option::LIST, option_reply::SERVER, &data)?;
        self.reply(option::LIST, option_reply::ACK, &[])?;
        Ok(Next::Option)
    }

    /// `NBD_OPT_INFO` and `NBD_OPT_GO`: a name, and what the client wants to know.
    fn info(&mut self, kind: u32, data: &[u8]) -> Result<Next, Ending> {
        let parse = || {
            let mut fields = Fields(data);
            let name = fields.string()?;
            let count = fields.u16()?;
            let wanted = (0..count).map(|_| fields.u16()).collect::<Option<Vec<u16>>>()?;
            fields.0.is_empty().then_some((name, wanted))
        };
        let Some((name, wanted)) = parse() else {
            return self.refuse(kind, option_reply::ERR_INVALID, "the option's data is malformed");
        };
        if !self.is_export(name) {
            return self.refuse(kind, option_reply::ERR_UNKNOWN, "there is no export of that name");
        }
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend_from_slice(&self.bytes.to_be_bytes());
        export.extend_from_slice(&self.transmission_flags().to_be_bytes());
        self.reply(kind, option_reply::INFO, &export)?;

        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in self.block_sizes() {
            sizes.extend_from_slice(&size.to_be_bytes());
        }
        self.reply(kind, option_reply::INFO, &sizes)?;

        for (asked, text) in
            [(info::NAME, self.export.name.clone()), (info::DESCRIPTION, self.export.target.description())]
        {
            if wanted.contains(&asked) {
                let mut data = asked.to_be_bytes().to_vec();
                data.extend_from_slice(text.as_bytes());
                self.reply(kind, option_reply::INFO, &data)?;
            }
        }
        if kind == option::GO {
            self.choose(name);
        }
        self.reply(kind, option_reply::ACK, &[])?;
        Ok(if kind == option::GO { Next::Transmission } else { Next::Option })
    }

    fn meta_context(&mut self, kind: u32, data: &[u8]) -> Result<Next, Ending> {
        let set = kind == option::SET_META_CONTEXT;
        if set {
            // Whatever comes of it, it replaces what was selected.
            self.context_of = None;
        }
        let parse = || {
            let mut fields = Fields(data);
            let name = fields.string()?;
            let count = fields.u32()?;
            let mut found = !set && count == 0;
            for _ in 0..count {
                let query = fields.string()?;
                found |= query == CONTEXT_NAME || (!set && query == b"base:");
            }
            fields.0.is_empty().then_some((name, found))
        };
        let Some((name, found)) = parse() else {
            return self.refuse(kind, option_reply::ERR_INVALID, "the option's data is malformed");
        };
        if !self.structured {
            return self.refuse(kind, option_reply::ERR_INVALID, "structured replies come first");
        }
        if !self.is_export(name) {
            return self.refuse(kind, option_reply::ERR_UNKNOWN, "there is no export of that name");
        }
        if found {
            let id = if set { CONTEXT_ALLOCATION } else { 0 };
            let context = [&id.to_be_bytes()[..], CONTEXT_NAME].concat();
            self.reply(kind, option_reply::META_CONTEXT, &context)?;
            if set {
                self.context_of = Some(name.to_vec());
            }
        }
        self.reply(kind, option_reply::ACK, &[])?;
        Ok(Next::Option)
    }

    fn refuse(&mut self, kind: u32, error: u32, message: &str) -> Result<Next, Ending> {
        self.reply(kind, error, message.as_bytes())?;
        Ok(Next::Option)
    }

    fn reply(&self, kind: u32, reply: u32, data: &[u8]) -> Result<(), Ending> {
        let mut message = Vec::with_capacity(20 + data.len());
        message.extend_from_slice(&MAGIC_OPTION_REPLY.to_be_bytes());
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&reply.to_be_bytes());
        message.extend_from_slice(&(data.len() as u32).to_be_bytes());
        message.extend_from_slice(data);
        self.send(&message)
    }

    /// Sends all, within the time that is left.
    fn send(&self, mut bytes: &[u8]) -> Result<(), Ending> {
        while !bytes.is_empty() {
            self.arm()?;
            let sent = self.stream.send(&[IoSlice::new(bytes)], true).map_err(|error| ending(&error))?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Waits for so many bytes, within the time that is left.
    fn need(&self, input: &mut Input<'_, S>, bytes: usize) -> Result<(), Ending> {
        while input.arrived().len() < bytes {
            self.arm()?;
            input.fill().map_err(|error| ending(&error))?;
        }
        Ok(())
    }

    fn arm(&self) -> Result<(), Ending> {
        let left = self.until.saturating_duration_since(Instant::now());
        // A millisecond is what sockets tell apart from "no limit".
        if left < Duration::from_millis(1) {
            return Err(Ending::TimedOut);
        }
        self.stream.set_timeout(Some(left)).map_err(|_| Ending::HungUp)
    }
}
