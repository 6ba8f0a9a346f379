//! The layer `pass-through`: every command goes to the device below as it came.

use std::sync::Arc;

use super::{Array, Ended, Io, Layer, Turn};
use crate::layers::{LayerConfig, LayerKind};
use crate::{Device, LayerError, LayerMetrics};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "pass-through",
    summary: "every command goes to the device below as it came",
    keys: &[],
    devices: (1, 1),
    hands_on: false,
    read: |_| Ok(Arc::new(PassThroughConfig)),
};

/// What the layer is told: a field for each of its keys.
#[derive(Debug)]
pub(crate) struct PassThroughConfig;

impl LayerConfig for PassThroughConfig {
    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        Ok(Box::new(PassThrough { io: Io::new(Array::new(below), &LAYER) }))
    }
}

/// The layer.
struct PassThrough {
    io: Io<u32, ()>,
}

impl Layer for PassThrough {
    const KIND: LayerKind = LAYER;
    /// The number of the command from above.
    type Purpose = u32;
    type State = ();

    fn io(&self) -> &Io<u32, ()> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<u32, ()> {
        &mut self.io
    }

    fn start(&mut self, slot: u32, _: Turn) {
        self.io.take_effect(slot);
        let command = self.io.command(slot);
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        self.io.array.send(0, request, &cells, slot);
    }

    fn ended(&mut self, part: Ended<u32>) {
        let (slot, status) = (part.purpose, part.status);
        let command = self.io.command(slot);
        command.note(status, part.path);
        command.cells = part.cells.unwrap_or_default();
        self.io.answer(slot, status);
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics::default()
    }
}
