//! Commands that are sent to a stack one by one.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Status};
use ssdlab_host::Device;

/// Sends one command, and waits for it; its status and what it read.
pub(crate) fn one(device: &mut dyn Device, request: Request, fill: u8) -> (Status, Vec<u8>) {
    let bytes = vec![fill; if request.op == Op::Write { request.bytes() as usize } else { 0 }];
    let data = if bytes.is_empty() { Data::Nothing } else { Data::Bytes(&bytes) };
    let at = device.now();
    device.submit(&Request { at, ..request }, data);
    assert!(device.wait_for_completion(Nanos::MAX), "{request:?} never completes");
    let status = device.completions().pop().expect("it has completed").status;
    (status, device.read_data().pop().map_or_else(Vec::new, |(_, bytes)| bytes))
}

pub(crate) fn write(device: &mut dyn Device, sector: u64, sectors: u64, fill: u8) {
    assert_eq!(one(device, Request::new(Op::Write, sector, sectors), fill).0, Status::Success);
}

pub(crate) fn flush(device: &mut dyn Device) {
    assert_eq!(one(device, Request::new(Op::Flush, 0, 0), 0).0, Status::Success);
}

/// The first byte of each sector.
pub(crate) fn read(device: &mut dyn Device, sector: u64, sectors: u64) -> Vec<u8> {
    let (status, bytes) = one(device, Request::new(Op::Read, sector, sectors), 0);
    assert_eq!(status, Status::Success);
    bytes.chunks(512).map(|sector| sector[0]).collect()
}
