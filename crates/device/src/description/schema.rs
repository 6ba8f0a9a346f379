//! The tables of keys as a JSON Schema (draft 2020-12), for editors and for tools that write descriptions.
//!
//! It says of each key by itself what is right. What a drive's keys ask of each other (a copyback that the chips do not
//! have, a buffer smaller than a page) only [`crate::Description::resolve`] knows: what that accepts the schema accepts.

use serde_json::{Map, Value, json};

use super::key::{Default, Key, Kind};
use super::quantity;

/// The schema of a table with these keys.
pub fn schema(title: &str, keys: &'static [Key]) -> Value {
    let mut schema = table(&keys.iter().collect::<Vec<_>>());
    schema.insert("$schema".to_string(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_string(), json!(title));
    Value::Object(schema)
}

fn table(keys: &[&'static Key]) -> Map<String, Value> {
    let names = |keys: &mut dyn Iterator<Item = &&'static Key>| keys.map(|key| key.name).collect::<Vec<_>>();
    let required = names(&mut keys.iter().filter(|key| matches!(key.default, Default::Required(_))));
    let properties: Map<String, Value> = keys.iter().map(|key| (key.name.to_string(), of_key(key))).collect();
    let mut table = Map::from_iter([
        ("type".to_string(), json!("object")),
        ("properties".to_string(), Value::Object(properties)),
        ("additionalProperties".to_string(), json!(false)),
    ]);
    if !required.is_empty() {
        table.insert("required".to_string(), json!(required));
    }
    let exclude = keys.iter().filter_map(|key| key.instead_of.map(|other| json!({ "required": [key.name, other] })));
    let exclude: Vec<Value> = exclude.collect();
    if !exclude.is_empty() {
        table.insert("not".to_string(), json!({ "anyOf": exclude }));
    }
    table
}

fn of_key(key: &'static Key) -> Value {
    let mut schema = of_kind(key);
    if !key.meaning.is_empty() {
        schema.insert("description".to_string(), json!(key.meaning));
    }
    if let Default::Is(setting) = key.default {
        schema.insert("default".to_string(), json!(key.kind.toml(setting)));
    }
    // A section that has to be there says at least one thing.
    if let (Default::Required(_), Kind::Table(_)) = (key.default, key.kind) {
        schema.insert("minProperties".to_string(), json!(1));
    }
    Value::Object(schema)
}

fn of_kind(key: &'static Key) -> Map<String, Value> {
    let below = || key.keys();
    let schema = match key.kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Name(most) => {
            json!({ "type": "string", "maxLength": most, "pattern": r"^[^/\\\x00-\x1f\x7f-\x9f]+$" })
        }
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Count { least, most, .. } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Size { least, most, step } => any_of([
            json!({ "type": "integer", "minimum": least, "maximum": most, "multipleOf": step }),
            text(quantity::SIZE),
        ]),
        Kind::SizeOrShare { least } => any_of([
            json!({ "type": "integer", "minimum": least }),
            text(quantity::SIZE),
            text(quantity::SHARE_UP_TO_100),
        ]),
        Kind::Pages => any_of([json!({ "type": "integer", "minimum": 1 }), text(quantity::SIZE)]),
        Kind::Bits => text(quantity::BITS),
        Kind::Bandwidth { least, zero } => any_of([
            json!({ "type": "integer", "minimum": if zero { 0 } else { least } }),
            text(&format!("{}|{}", quantity::SIZE, quantity::BANDWIDTH)),
        ]),
        Kind::Frequency { least, most } => {
            any_of([json!({ "type": "integer", "minimum": least, "maximum": most }), text(quantity::FREQUENCY)])
        }
        Kind::BooleanOrWord(words) => any_of([json!({ "type": "boolean" }), json!({ "enum": words() })]),
        Kind::Time(_) => any_of([json!({ "const": 0 }), text(quantity::TIME)]),
        Kind::Latency(_) => latency(),
        Kind::Latencies(_) => any_of([latency(), json!({ "type": "array", "items": latency(), "minItems": 1 })]),
        Kind::Probability => {
            any_of([json!({ "type": "number", "minimum": 0, "maximum": 1 }), text(r"^\s*\S+\s*%\s*$")])
        }
        Kind::Share => text(quantity::SHARE),
        Kind::Percent(least) => text(if least == 0 { quantity::PERCENT } else { quantity::PERCENT_FROM_1 }),
        Kind::Word(words) => json!({ "enum": words() }),
        Kind::Allocation => text(&format!("^(dynamic|round-robin|(round-robin:)?({}))$", orders().join("|"))),
        Kind::Table(_) | Kind::Chosen(..) => Value::Object(table(&below())),
        Kind::TableOrWord(_, _, words) => any_of([json!({ "enum": words() }), Value::Object(table(&below()))]),
        Kind::Tables(..) => json!({ "type": "array", "items": table(&below()) }),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Every order of the four levels.
fn orders() -> Vec<String> {
    ["c", "w", "d", "p"].into_iter().fold(vec![String::new()], |orders, _| {
        let longer = |order: &String| -> Vec<String> {
            "cwdp".chars().filter(|level| !order.contains(*level)).map(|level| format!("{order}{level}")).collect()
        };
        orders.iter().flat_map(longer).collect()
    })
}

fn any_of<const N: usize>(schemas: [Value; N]) -> Value {
    json!({ "anyOf": schemas.to_vec() })
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// A time or a range of them.
fn latency() -> Value {
    any_of([json!({ "const": 0 }), text(quantity::TIME), text(quantity::RANGE)])
}
