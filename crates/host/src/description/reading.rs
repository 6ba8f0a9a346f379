//! Reading: from a description as a tree of tables to a tree of layers.

use std::sync::Arc;

use ssdlab_device::description::{DescriptionError, Errors, Field, Place, Section, Tree};

use super::member::{Names, device};
use super::{DEPTH_MAX, DRIVES_MAX, EXPECTED, Host, KEYS, LAYER, Layer, Node, kinds, kinds_in_words};
use crate::layers::{LAYERS, LayerConfig, LayerKind};

pub(super) fn read(tree: &Tree, names: &dyn Names) -> Result<Host, DescriptionError> {
    let root = Section::root(tree, KEYS);
    let mut errors = Errors::default();
    root.check(&mut errors);
    let node = stack(&root, names, &mut errors);
    errors.into_result(tree)?;
    Ok(Host { root: node.expect("what could not be read has its error") })
}

fn stack(root: &Section<'_>, names: &dyn Names, errors: &mut Errors) -> Option<Node> {
    let list = errors.keep(root.get("layer").ok_or_else(|| root.missing("layer", EXPECTED)))?;
    let layers = errors.keep(list.list(EXPECTED))?;
    let above = errors.keep(layers.split_last().ok_or_else(|| list.expected(EXPECTED)));
    let (last, above) = above?;
    let mut node = layer(last, names, 0, errors);
    for field in above.iter().rev() {
        node = single(field, errors).zip(node).map(|((kind, config), node)| {
            Node::Layer(Layer { kind, config, below: vec![node], place: place_of(field) })
        });
    }
    let node = node?;
    if node.count() > DRIVES_MAX {
        errors.add(list.expected(&format!("at most {DRIVES_MAX} drives in all")));
    }
    Some(node)
}

/// A layer that stands on the next one of the list.
fn single(field: &Field<'_>, errors: &mut Errors) -> Option<(&'static LayerKind, Arc<dyn LayerConfig>)> {
    let (kind, config) = kind_of(field, errors)?;
    if let Some(below) = field.entry("below").or_else(|| field.entry("drives")) {
        errors.add(
            below.expected("nothing: this layer stands on the next of the list, and only the last one names devices"),
        );
    }
    if !(kind.devices.0..=kind.devices.1).contains(&1) {
        errors.add(field.expected(&format!("a {} last in the list: it stands on several devices", kind.name)));
    }
    Some((kind, config?))
}

/// A layer's kind, which says which keys it has, and what they say.
fn kind_of(field: &Field<'_>, errors: &mut Errors) -> Option<(&'static LayerKind, Option<Arc<dyn LayerConfig>>)> {
    if errors.is_full() {
        return None;
    }
    let named = match field.entry("kind") {
        Some(kind) => kind.name(&kinds()).map(|named| LAYERS.iter().find(|kind| kind.name == named)),
        None => field.section().and_then(|section| {
            section.check_names(errors);
            Err(section.missing("kind", &kinds_in_words()))
        }),
    };
    let kind = errors.keep(named)?.expect("it is one of them");
    let section = errors.keep(field.section_of(LAYER.iter().chain(kind.keys).collect()))?;
    section.check(errors);
    Some((kind, errors.keep((kind.read)(&section))))
}

/// Where a layer's kind is named.
fn place_of(field: &Field<'_>) -> Place {
    field.entry("kind").unwrap_or_else(|| field.clone()).expected("").place
}

/// A layer and what is below it.
pub(super) fn layer(field: &Field<'_>, names: &dyn Names, depth: usize, errors: &mut Errors) -> Option<Node> {
    let (kind, config) = kind_of(field, errors)?;
    let devices = devices(field, kind, names, depth, errors)?;
    let config = config?;
    check_order(field, kind, &*config, &devices, errors);
    Some(Node::Layer(Layer { kind, config, below: devices, place: place_of(field) }))
}

/// Refuses disks where the layer needs drives.
fn check_order(field: &Field<'_>, kind: &LayerKind, config: &dyn LayerConfig, devices: &[Node], errors: &mut Errors) {
    // Without a list it stands on drives of the command.
    let Some(below) = field.entry("below").and_then(|below| below.list("").ok()) else { return };
    for (place, (device, field)) in devices.iter().zip(&below).enumerate() {
        if config.needs_drives(place) && device.has_disks() {
            errors.add(field.entry("disk").unwrap_or_else(|| field.clone()).expected(&format!(
                "a drive: below[{place}] of the layer {} is its cache, and the disk comes behind it",
                kind.name
            )));
        }
    }
}

/// The devices that a layer names, or those that it has by default.
fn devices(
    field: &Field<'_>,
    kind: &LayerKind,
    names: &dyn Names,
    depth: usize,
    errors: &mut Errors,
) -> Option<Vec<Node>> {
    let (least, most) = kind.devices;
    let devices = match (field.entry("below"), field.entry("drives")) {
        (Some(_), Some(count)) => {
            errors.add(count.expected("either below or drives, not both"));
            return None;
        }
        (Some(list), None) if depth >= DEPTH_MAX => {
            errors.add(list.expected(&format!("layers at most {DEPTH_MAX} deep")));
            return None;
        }
        (Some(list), None) => {
            let expected = "a list of the devices below: layers, drives, or {} for the drive of the command";
            let below = errors.keep(list.list(expected))?;
            let devices: Vec<_> = below.iter().map(|below| device(below, names, depth + 1, errors)).collect();
            devices.into_iter().collect::<Option<Vec<_>>>()?
        }
        (None, Some(count)) => vec![Node::Drive(None); errors.keep(count.count(1, DRIVES_MAX as u32))? as usize],
        (None, None) => vec![Node::Drive(None); least],
    };
    if !(least..=most).contains(&devices.len()) {
        let place = field.entry("below").or_else(|| field.entry("drives")).unwrap_or_else(|| field.clone());
        let expected = match (least, most) {
            (1, 1) => "1 device".to_string(),
            (least, most) if least == most => format!("{least} devices"),
            _ => format!("{least} to {most} devices"),
        };
        errors.add(place.expected(&format!("{expected} below a {}", kind.name)));
    }
    Some(devices)
}
