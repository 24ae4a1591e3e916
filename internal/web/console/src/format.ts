// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

export const count = (n: number): string => whole.format(n);

/** An offset comes as a string, because numbers are too small for it. */
export const offset = (o: string | null): string => (o === null ? "–" : o.replace(/\B(?=(\d{3})+$)/g, ","));

export const many = (noun: string): string => (noun.endsWith("y") ? noun.slice(0, -1) + "ies" : noun + "s");
export const plural = (n: number, noun: string): string => `${count(n)} ${n === 1 ? noun : many(noun)}`;

export function rate(perSecond: number): string {
  return (perSecond < 10 ? tenths : whole).format(perSecond) + "/s";
}

const units: [number, string][] = [
  [86400, "d"],
  [3600, "h"],
  [60, "m"],
  [1, "s"],
];

/** A duration in the form that the broker's sentences beside it have, which is that of words.Duration: 1.5s, 11m9s, 2d3h. */
export function duration(seconds: number): string {
  if (seconds < 0.001) return "0s";
  if (seconds < 1) return `${Math.floor(seconds * 1000)}ms`;
  if (seconds < 10) return `${seconds.toFixed(1).replace(/\.0$/, "")}s`;
  if (seconds < 59.5) return `${Math.round(seconds)}s`;
  let rest = Math.round(seconds); // First, lest 59 minutes and 59.9 seconds be 60 minutes.
  if (rest >= 3600) rest = Math.round(rest / 60) * 60;
  if (rest >= 86400) rest = Math.round(rest / 3600) * 3600;
  const at = units.findIndex(([size]) => rest >= size);
  return units
    .slice(at, at + 2)
    .map(([size, unit], i) => {
      const n = Math.floor(rest / size);
      rest -= n * size;
      return n > 0 || i === 0 ? `${n}${unit}` : "";
    })
    .join("");
}

export function bytes(n: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1023.5 && i < names.length - 1) {
    n /= 1024;
    i++;
  }
  return `${(n < 10 && i > 0 ? tenths : whole).format(n)} ${names[i] ?? ""}`;
}

export function short(n: number): string {
  const names = ["", "k", "M", "G", "T"];
  let i = 0;
  while (Math.abs(n) >= 1000 && i < names.length - 1) {
    n /= 1000;
    i++;
  }
  return tenths.format(n) + (names[i] ?? "");
}

/** A duration in one unit, for an axis. */
export function brief(seconds: number): string {
  for (const [size, unit] of units) {
    if (seconds >= size) return `${tenths.format(seconds / size)}${unit}`;
  }
  return `${tenths.format(seconds)}s`;
}

export function ago(time: string, now = Date.now()): string {
  const seconds = (now - Date.parse(time)) / 1000;
  if (seconds < 2) return "just now";
  for (const [size, unit] of units) {
    if (seconds >= size) return `${whole.format(Math.floor(seconds / size))}${unit} ago`;
  }
  return "just now";
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** The time of day; with the date if it was another day. */
export function when(time: string | Date): string {
  const t = new Date(time);
  const text = clock.format(t);
  return t.toDateString() === new Date().toDateString() ? text : `${day.format(t)}, ${text}`;
}

/** Numbers of partitions as ranges: 0–3, 7. */
export function ranges(numbers: number[]): string {
  const out: string[] = [];
  const sorted = [...numbers].sort((a, b) => a - b);
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === (sorted[j] ?? 0) + 1) j++;
    const first = sorted[i] ?? 0;
    const last = sorted[j] ?? 0;
    out.push(last > first + 1 ? `${first}–${last}` : last > first ? `${first}, ${last}` : `${first}`);
    i = j + 1;
  }
  return out.join(", ");
}

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What a terminal would act upon, or no one sees. */
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** A word as printf takes it. */
const escaped = (text: string): string =>
  [...text]
    .map((c) => (c === "'" ? "'\\''" : c === "%" ? "%%" : c === "\\" ? "\\\\" : unprintable.test(c) ? [...new TextEncoder().encode(c)].map((b) => "\\" + b.toString(8).padStart(3, "0")).join("") : c))
    .join("");

/**
 * What a shell takes for one word, as words.Shell has it. Names are anyone's choice, and commands are pasted into
 * terminals: what these would act upon is written by printf, whose last newlines $() would cut off.
 */
export function quoted(name: string): string {
  if (/^[\w.:@+=,][\w.:@+=,-]*$/.test(name)) return name;
  const rest = name.replace(/\n+$/, "");
  const word = unprintable.test(rest) ? `"$(printf '${escaped(rest)}')"` : `'${rest.replace(/'/g, "'\\''")}'`;
  return rest === name ? word : `${word}'${name.slice(rest.length)}'`;
}

/** A command about something, whose flags are words already. A name that a command would take for a flag stands at its end. */
export const command = (verb: string, name: string, flags = ""): string =>
  ["muster", verb, ...(name.startsWith("-") ? [flags, "--", quoted(name)] : [quoted(name), flags])].filter(Boolean).join(" ");

/** A word of a command as words.Shell writes it. */
const word = /(?:[\w./:@%+=,…-]+|'(?:[^']|'\\'')*'|"\$\(printf '(?:[^']|'\\'')*'\)")+/y;

/** The commands in sentences. One ends with the sentence, or with what is no word of it. */
export function commandsIn(text: string): string[] {
  const out: string[] = [];
  for (const { index } of text.matchAll(/\bmuster (?:groups|topics|txns|users|acls|quotas|consume) /g)) {
    const all: string[] = [];
    word.lastIndex = index;
    for (let found = word.exec(text); found; found = word.exec(text)) {
      const end = word.lastIndex;
      const ends = /[.,]$/.test(found[0]) && /^(?:\s+[^\s(-]|\s*$)/.test(text.slice(end)); // Words of a command that follow are flags.
      all.push(ends ? found[0].slice(0, -1) : found[0]);
      if (ends || text[end] !== " ") break;
      word.lastIndex = end + 1;
    }
    out.push(all.join(" "));
  }
  return out;
}

/** Whether a shell would take a command for words alone. */
export const harmless = (command: string): boolean => /^[\w.:@+=,/ -]+$/.test(command);

/** An id such as stuck-partition in words. */
export const words = (id: string): string => id.replace(/-/g, " ");

/** PreparingRebalance in words. */
export const spaced = (state: string): string => state.replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
