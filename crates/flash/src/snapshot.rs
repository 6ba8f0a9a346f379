//! The chips' state as bytes, for snapshots of an aged drive: blocks and OOB, not contents.

use std::io::{self, Read, Write};

use crate::{Block, BlockId, Flash, Ppn, UnitId};

impl Flash {
    /// Writes block states and OOB areas; nothing may be in flight.
    pub fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        assert_eq!(self.in_flight(), 0, "the chips are saved only while idle");
        let mut words = Vec::with_capacity(self.blocks.all().len());
        for block in self.blocks.all() {
            let flags = u32::from(block.bad) | u32::from(block.torn) << 1 | u32::from(block.suspect) << 2;
            words.push([block.programmed, block.erases, block.reads, flags]);
        }
        to.write_all(bytemuck::cast_slice(&words))?;
        let (lpns, low, base, records) = self.oob.parts();
        to.write_all(bytemuck::cast_slice(lpns))?;
        to.write_all(bytemuck::cast_slice(low))?;
        to.write_all(bytemuck::cast_slice(base))?;
        to.write_all(bytemuck::cast_slice(self.oob.origins()))?;
        to.write_all(&(records.len() as u64).to_le_bytes())?;
        for (unit, words) in records.iter() {
            to.write_all(&unit.0.to_le_bytes())?;
            to.write_all(&(words.len() as u32).to_le_bytes())?;
            to.write_all(bytemuck::cast_slice(&words))?;
        }
        write_list(to, &self.blocks.unreadable().map(|ppn| ppn.0).collect::<Vec<u32>>())?;
        write_list(to, &self.oob.poisoned().map(|unit| unit.0).collect::<Vec<u32>>())?;
        let substitutes: Vec<u32> = self.blocks.substitutes().flat_map(|(block, index)| [block.0, index]).collect();
        write_list(to, &substitutes)
    }

    /// Reads what [`Flash::save`] wrote into fresh chips of the same geometry.
    pub fn load_state(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let mut words = vec![[0_u32; 4]; self.blocks.all().len()];
        from.read_exact(bytemuck::cast_slice_mut(&mut words))?;
        let geometry = *self.geometry();
        for (block, [programmed, erases, reads, flags]) in words.into_iter().enumerate() {
            if programmed > geometry.pages_per_block || erases.max(reads) > COUNT_MAX || flags & !5 != 0 {
                return Err(damaged("a block's state is not one that a block at rest can have"));
            }
            let (bad, torn, suspect) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
            let state = Block { programmed, erases, reads, bad, torn, suspect };
            self.restore_block(BlockId(block as u32), state);
        }
        let units_per_page = self.oob.units_per_page();
        let units = geometry.pages() * u64::from(units_per_page);
        let (lpns, low, base, origins, records) = self.oob.parts_mut();
        from.read_exact(bytemuck::cast_slice_mut(lpns))?;
        from.read_exact(bytemuck::cast_slice_mut(low))?;
        from.read_exact(bytemuck::cast_slice_mut(base))?;
        from.read_exact(bytemuck::cast_slice_mut(origins))?;
        if base.iter().any(|sequence| *sequence >= 1 << 62) {
            return Err(damaged("a sequence number is out of its range"));
        }
        for _ in 0..read_u64(from)? {
            let (mut unit, mut len) = ([0; 4], [0; 4]);
            from.read_exact(&mut unit)?;
            from.read_exact(&mut len)?;
            let len = u32::from_le_bytes(len) as usize;
            if len > 1 << 16 || u64::from(u32::from_le_bytes(unit)) >= units {
                return Err(damaged("a metadata record is too long or behind the flash"));
            }
            let page = u32::from_le_bytes(unit) / units_per_page;
            if page % geometry.pages_per_block >= self.blocks.get(BlockId(page / geometry.pages_per_block)).programmed {
                return Err(damaged("a metadata record is on a page that was never written"));
            }
            let mut words = vec![0_u64; len];
            from.read_exact(bytemuck::cast_slice_mut(&mut words))?;
            records.insert(UnitId(u32::from_le_bytes(unit)), words.into());
        }
        for _ in 0..read_u64(from)? {
            let ppn = Ppn(read_u32(from)?);
            if u64::from(ppn.0) >= geometry.pages() {
                return Err(damaged("a page that cannot be read is behind the flash"));
            }
            if ppn % geometry.pages_per_block >= self.blocks.get(ppn.block(geometry.pages_per_block)).programmed {
                return Err(damaged("a page that cannot be read was never written"));
            }
            self.blocks.spoil(ppn);
        }
        for _ in 0..read_u64(from)? {
            let unit = UnitId(read_u32(from)?);
            if u64::from(unit.0) >= units {
                return Err(damaged("a unit whose data was lost is behind the flash"));
            }
            self.oob.poison(unit);
        }
        self.blocks.forget_substitutes();
        let words = read_u64(from)?;
        if words % 2 != 0 {
            return Err(damaged("a block stands in nobody's place"));
        }
        for _ in 0..words / 2 {
            let (block, index) = (read_u32(from)?, read_u32(from)?);
            if block >= geometry.blocks() || index >= geometry.blocks_per_plane {
                return Err(damaged("a block stands in the place of one behind the flash"));
            }
            self.blocks.substitute(BlockId(block), Some(index));
        }
        Ok(())
    }
}

/// Largest count of erases or reads that is believed.
const COUNT_MAX: u32 = u32::MAX / 2;

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the saved chips are damaged: {what}"))
}

fn write_list(to: &mut dyn Write, list: &[u32]) -> io::Result<()> {
    to.write_all(&(list.len() as u64).to_le_bytes())?;
    to.write_all(bytemuck::cast_slice(list))
}

fn read_u32(from: &mut dyn Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_u64(from: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
