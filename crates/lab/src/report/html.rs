//! Pages that open offline: their style and chart library, HTML that nothing can break out of, and numbers as people read them.

use std::borrow::Cow;

use ssdlab_base::grouped;

/// The style of a page.
pub const STYLE: &str = include_str!("page.css");

/// What the dark theme changes; the page's script switches it on and off, and without it the system does.
pub const DARK_STYLE: &str = include_str!("dark.css");

/// The chart library, Apache ECharts 6.1.0, unchanged; licence and notice lie beside it.
pub const ECHARTS: &str = include_str!("../../assets/echarts.min.js");

/// Text as it may stand in an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// JSON as it may stand in a script element: no `</script>` and no `<!--` can appear in it, and it is the same JSON.
pub fn json_in_script(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            // These occur in JSON only inside strings, where the escape means the same letter.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Replaces each `{{key}}` of `template` once, in one pass, so that nothing inside a value is ever taken for a key. A key that
/// `values` lacks is a bug of the caller.
pub fn fill_template(template: &str, values: &[(&str, &str)]) -> String {
    let length = template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>();
    let mut page = String::with_capacity(length);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (key, behind) = after.split_once("}}").unwrap_or((after, ""));
        let value = values.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        page.push_str(before);
        page.push_str(value.unwrap_or_else(|| unreachable!("the template names the unknown part '{key}'")));
        rest = behind;
    }
    page.push_str(rest);
    page
}

/// Between thousands.
const THIN_SPACE: char = '\u{202f}';

/// A sentence with numbers, as it may stand in an element.
pub(super) fn sentence(text: &str) -> String {
    escape(&crate::text::with_thousands(text, THIN_SPACE))
}

/// A whole number with thin spaces between thousands.
pub(super) fn whole(value: u64) -> String {
    grouped(&value.to_string(), THIN_SPACE)
}

/// A number with `digits` significant digits but never without its whole part.
fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let whole = if value.abs() < 1.0 { 1 } else { value.abs().log10().floor() as usize + 1 };
    format!("{value:.*}", digits.saturating_sub(whole))
}

fn scaled(value: f64, step: f64, units: &[&'static str]) -> String {
    let mut unit = 0;
    let mut shown = value;
    while shown.abs() >= step * 0.9995 && unit + 1 < units.len() {
        shown /= step;
        unit += 1;
    }
    let number = if unit == 0 && shown.fract() == 0.0 { format!("{shown}") } else { significant(shown, 3) };
    format!("{number}{}", units[unit])
}

/// Nanoseconds in the unit that suits them.
pub(super) fn nanos(value: f64) -> String {
    scaled(value, 1000.0, &[" ns", " µs", " ms", " s"])
}

/// Events a second.
pub(super) fn rate(value: f64) -> String {
    scaled(value, 1000.0, &["", " k", " M", " G"])
}

/// Bytes a second, in powers of 1000 as links and data sheets count.
pub(super) fn bytes_per_second(value: f64) -> String {
    scaled(value, 1000.0, &[" B/s", " kB/s", " MB/s", " GB/s", " TB/s"])
}

/// A size in binary units.
pub(super) fn size(bytes: u64) -> String {
    ssdlab_base::format_size(bytes)
}

/// A share of one, in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0, 3))
}

/// A figure without unit, such as a write amplification.
pub(super) fn figure(value: f64) -> String {
    significant(value, 4)
}

/// A dash where there is nothing to say.
pub(super) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> Cow<'static, str> {
    value.map_or(Cow::Borrowed("–"), |value| Cow::Owned(show(value)))
}
