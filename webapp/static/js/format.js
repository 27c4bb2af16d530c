// Numbers and times as the server writes them, in the page's language.

const language = document.documentElement.lang || "en";
const groups = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
const relative = new Intl.RelativeTimeFormat(language, { style: "narrow", numeric: "always" });

export function significant(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 10 ** (digits - 1) || Number.isInteger(value)) return groups.format(value);
  if (size > 0 && size < 1e-4) return value.toPrecision(digits - 1);
  return value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
}

// A sentence with `{names}` in it, with the words that stand there.
export function filled(text, words) {
  return text.replace(/\{(\w+)\}/g, (_, name) => words[name]);
}

export function age(date) {
  return span(Math.max(0, (Date.now() - date.getTime()) / 1000), -1);
}

export function ahead(seconds) {
  return span(seconds, 1);
}

function span(seconds, direction) {
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]]) {
    if (seconds >= size || unit === "second") return relative.format(direction * Math.floor(seconds / size), unit);
  }
  return "";
}

export function refreshAges(root = document) {
  for (const time of root.querySelectorAll("time[data-ago]")) time.textContent = age(new Date(time.dateTime));
}
