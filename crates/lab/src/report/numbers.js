// Numbers as people read them, and axes with ticks at round ones. Gives the page one name: numbers.
"use strict";
const numbers = (() => {
  // Units by size: what a value is divided by, and what stands behind it.
  const prefixed = (unit) => ["", "k", "M", "G", "T"].map((prefix, place) => [1000 ** place, prefix || unit ? ` ${prefix}${unit}` : ""]);
  const units = {
    count: prefixed(""), bytes: prefixed("B/s"), ns: [[1, " ns"], [1e3, " µs"], [1e6, " ms"], [1e9, " s"]],
    share: [[.01, " %"]], ratio: [[1, ""]],
  };
  units.rate = units.count;
  const unitOf = (kind, value) => units[kind].findLast(([factor]) => Math.abs(value) >= factor * .9995) ?? units[kind][0];
  const fixed = (value, digits) => (Math.abs(value) < .5 * 10 ** -digits ? 0 : value).toFixed(digits);
  // Three digits, in the unit that suits the value: where values of many sizes stand side by side.
  const single = (kind) => (value) => {
    const [factor, suffix] = unitOf(kind, value);
    const shown = value / factor;
    if (shown === 0 || (factor === 1 && kind !== "ratio" && Number.isInteger(shown))) return shown + suffix;
    return fixed(shown, Math.max(0, 2 - Math.max(0, Math.floor(Math.log10(Math.abs(shown)) + 1e-9)))) + suffix;
  };
  // The same as short as can be: ticks of a logarithmic axis.
  const short = (kind) => (value) => {
    const [factor, suffix] = unitOf(kind, value);
    return String(Number((value / factor).toPrecision(3))) + suffix;
  };
  // The least of 1, 2 and 5 times a power of ten that is at least this.
  const step = (value) => {
    const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value * .999999);
  };
  const decimals = (value) => Math.max(0, -Math.floor(Math.log10(value) + 1e-9));
  // An axis from low to high: its ends and steps are round, its labels have one unit and one number of digits; so have the
  // values of its chart (four digits of the highest).
  const axis = (kind, low, high, parts = 5) => {
    const [factor, suffix] = unitOf(kind, Math.max(Math.abs(low), Math.abs(high)));
    const width = step(Math.max(high - low, Number.EPSILON * Math.abs(high), 1e-9 * factor) / factor / parts);
    const top = Math.max(Math.abs(high / factor), 1e-9);
    const digits = Math.max(kind === "count" && factor === 1 ? 0 : decimals(width), Math.min(6, 3 - Math.floor(Math.log10(top))));
    return {
      min: Math.floor(low / factor / width + 1e-9) * width * factor, max: Math.ceil(high / factor / width - 1e-9) * width * factor,
      interval: width * factor, label: (value) => (value === 0 ? `0${suffix.length > 2 ? suffix : ""}` : fixed(value / factor, decimals(width)) + suffix),
      value: (value) => fixed(value / factor, Math.max(0, digits)) + suffix,
    };
  };
  // Ticks of a logarithmic axis: powers of ten, below two decades also 2 and 5 times them.
  const logTicks = (low, high) => {
    const factors = high / low < 100 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low) - 1e-9); power <= Math.ceil(Math.log10(high)); power += 1) {
      // Not 10 ** power times the factor: that has the error of a negative power in it.
      ticks.push(...factors.map((factor) => Number(`${factor}e${power}`)));
    }
    return ticks.filter((tick) => tick >= low * .999999 && tick <= high * 1.000001);
  };
  // 0.001 of the requests take longer: 99.9 %. As many digits as tell it from its neighbours.
  const quantile = (tail) => {
    const digits = Math.max(0, Math.ceil(-Math.log10(tail) - 2 - 1e-6));
    const nines = Math.abs(tail * 10 ** Math.round(-Math.log10(tail)) - 1) < 1e-6;
    return `${String(Number(((1 - tail) * 100).toFixed(nines ? digits : digits + 1)))} %`;
  };
  // The value below which this share of all weight lies.
  const weighted = (pairs, share) => {
    const sorted = pairs.filter(([, weight]) => weight > 0).sort((a, b) => a[0] - b[0]);
    let left = share * sorted.reduce((total, [, weight]) => total + weight, 0);
    for (const [value, weight] of sorted) {
      left -= weight;
      if (left <= 0) return value;
    }
    return sorted.at(-1)?.[0] ?? 0;
  };
  // What a setting says as a number, to sort by: 7%, 16k, 1.2ms, 8 GiB. Not a number where it is a word.
  const setting = (text) => {
    const scales = { "": 1, "%": .01, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4, ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
    const read = /^\s*(-?[\d.]+(?:e-?\d+)?)\s*([a-z%]*)\s*$/i.exec(text);
    const unit = read?.[2].toLowerCase().replace(/(?<=[kmgt])i?b(\/s)?$/, "");
    return read ? Number(read[1]) * (scales[unit] ?? Number.NaN) : Number.NaN;
  };
  return { axis, fixed, logTicks, quantile, setting, short, single, weighted };
})();
