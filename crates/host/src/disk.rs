//! The data path of a hard disk: what layers ask of a drive, asked of a disk.

use ssdlab_base::{Nanos, Request};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Completion, Data};
use ssdlab_disk::Disk;

use crate::BlockDevice;

impl BlockDevice for Disk {
    fn sectors(&self) -> u64 {
        Disk::sectors(self)
    }

    fn sector_data_bytes(&self) -> usize {
        Disk::sector_data_bytes(self)
    }

    fn trims(&self) -> bool {
        false
    }

    fn now(&self) -> Nanos {
        Disk::now(self)
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        Disk::submit(self, request, data);
    }

    fn next_event(&self) -> Option<Nanos> {
        Disk::next_event(self)
    }

    fn run_until(&mut self, until: Nanos) {
        Disk::run_until(self, until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        Disk::run_to_completion(self, until)
    }

    fn outstanding(&self) -> u64 {
        Disk::outstanding(self)
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        Disk::completions(self)
    }

    /// A disk records no paths.
    fn take_paths(&mut self, to: &mut Vec<Path>) {
        let _ = to;
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        Disk::read_data(self)
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        Disk::mapped_run(self, sector, end)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_base::Op;
    use ssdlab_disk::DiskConfig;
    use ssdlab_flash::Contents;

    use super::*;

    #[test]
    fn a_host_reads_what_it_wrote_and_what_a_flush_covered_survives_the_power() {
        let text = "[disk]\nheads = 1\nzones = [{ cylinders = 10, sectors = 100 }]\n[disk.seek]\nsettle = \"1ms\"\nknee = \"2ms\"\n\
                    full_stroke = \"3ms\"";
        let config = DiskConfig::parse(text, "small.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut disk = Disk::new(&config, Contents::Bytes);
        let mut ask = |request: Request, data: Data<'_>, cut: bool| {
            let device: &mut dyn BlockDevice = &mut disk;
            device.submit(&Request { at: device.now(), ..request }, data);
            assert!(device.wait_for_completion(Nanos::HORIZON), "{request:?} ends");
            device.completions().clear();
            let read = std::mem::take(device.read_data());
            if cut {
                disk.cut_power();
            }
            read
        };
        let (old, new) = ([1; 1024], [2; 1024]);
        ask(Request::new(Op::Write, 500, 2), Data::Bytes(&old), false);
        ask(Request::new(Op::Flush, 0, 0), Data::Nothing, false);
        ask(Request { tag: 3, ..Request::new(Op::Write, 501, 2) }, Data::Bytes(&new), true);
        let read = ask(Request { tag: 4, ..Request::new(Op::Read, 500, 3) }, Data::Nothing, false);
        assert_eq!(read, [(4, [&old[..], &[0; 512]].concat())]);
        let device: &dyn BlockDevice = &disk;
        assert_eq!((device.sectors(), device.outstanding(), device.mapped_run(500, 600)), (1_000, 0, (true, 502)));
    }
}
