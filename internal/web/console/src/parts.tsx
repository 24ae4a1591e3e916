// The small parts that pages are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Silent } from "../../ui/api";
import type { Refused } from "./ask";
import * as f from "./format";
import { param, setQuery, withQuery } from "./route";

type Children = { children?: ComponentChildren };

export function Title({ children, above }: Children & { above?: ComponentChildren }) {
  return (
    <header class="title">
      {above && <p class="above">{above}</p>}
      <h1 tabIndex={-1}>{children}</h1>
    </header>
  );
}

export function useTitle(text: string): void {
  useEffect(() => {
    document.title = `${text} · muster`;
  }, [text]);
}

const stateMarks: Record<string, [mark: string, tone: string]> = {
  Stable: ["●", "ok"],
  Empty: ["○", "quiet"],
  Dead: ["✕", "quiet"],
  PreparingRebalance: ["◐", "warn"],
  CompletingRebalance: ["◑", "warn"],
  Assigning: ["◐", "warn"],
  Reconciling: ["◑", "warn"],
};

/** The state of a group: a shape and a word, so that no one needs to see the colour. */
export function State({ of }: { of: string }) {
  const [mark, tone] = stateMarks[of] ?? ["◌", "quiet"];
  return (
    <span class="state">
      <span class={`mark ${tone}`} aria-hidden="true">
        {mark}
      </span>
      {f.spaced(of)}
    </span>
  );
}

/** A number that is aligned with those above and below it. */
export function Num({ children, quiet }: Children & { quiet?: boolean }) {
  return <td class={quiet ? "num quiet" : "num"}>{children}</td>;
}

/** The head of a column of buttons: no one needs to see it, but those who listen want to know what is there. */
export function ActsHead() {
  return (
    <th scope="col">
      <span class="unseen">Acts</span>
    </th>
  );
}

export function Lag({ records, unknown, about }: { records: number; unknown?: boolean; about?: boolean }) {
  const title = unknown ? "A part is not known, because a partition has no leader." : about ? "A part of it is an estimate." : undefined;
  return (
    <span title={title}>
      {unknown ? "≥ " : about ? "≈ " : ""}
      {f.count(records)}
    </span>
  );
}

export function When({ time }: { time: string }) {
  return (
    <time dateTime={time} title={f.when(time)}>
      {f.ago(time)}
    </time>
  );
}

/** A command that can be taken to a terminal. */
export function Command({ children }: { children: string }) {
  const [copied, setCopied] = useState(false);
  const text = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(children);
    } catch {
      if (text.current) getSelection()?.selectAllChildren(text.current); // Without TLS browsers lend no clipboard.
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span class="command">
      <code ref={text}>{children}</code>
      <button type="button" class="plain" onClick={() => void copy()} aria-label={`Copy ${children}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}

/** An empty page says what would fill it. */
export function Empty({ title, children, commands }: Children & { title: string; commands?: string[] }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {commands?.map((c) => <Command key={c}>{c}</Command>)}
    </div>
  );
}

/** Why there is no answer. A missing right is named, with the command that gives it. */
export function Problem({ of }: { of: Refused }) {
  const acl = of.problem.missingAcl;
  return (
    <div class="empty" role="alert">
      <h2>{of.status === 403 ? "You may not see this" : of.status === 404 ? "Not found" : of.status === 400 ? "The request is not valid" : of.status === 429 ? "Quota exceeded" : "No answer"}</h2>
      <p>{sentence(of.problem.message)}</p>
      {acl && (
        <p>
          The missing right: <strong>{acl.operation}</strong> on {acl.resourceType.toLowerCase()} <code>{acl.resourceName}</code> for <code>{acl.principal}</code>.
        </p>
      )}
      {acl?.command && <Command>{acl.command}</Command>}
    </div>
  );
}

/** Why there is no answer, or no newer one than what is shown. Without either the answer is on its way. */
export function Hitch({ of, data }: { of: Refused | undefined; data: unknown }) {
  if (!of) return data === undefined ? <Waiting /> : null;
  if (data === undefined) return <Problem of={of} />;
  return (
    <p class="notice bad" role="alert">
      <span aria-hidden="true">▲ </span>
      What you see is not the latest: {sentence(of.problem.message)}
    </p>
  );
}

/** A sentence as people write it. The name of a setting, or of something else, stays as it is. */
export function sentence(text: string): string {
  return (/^[a-z]+[ ,]/.test(text) ? f.capital(text) : text) + (text.endsWith(".") ? "" : ".");
}

export function Waiting() {
  return (
    <p class="quiet waiting" role="status">
      Asking the broker …
    </p>
  );
}

/** Says which brokers an answer lacks. */
export function Incomplete({ of }: { of: Silent[] }) {
  if (of.length === 0) return null;
  return (
    <p class="notice">
      <span aria-hidden="true">◌ </span>
      Not all is here: {of.map((s) => `broker ${s.broker}: ${s.message}`).join("; ")}.
    </p>
  );
}

/** A heading of a column that sorts by it: first the way that is mostly wanted. */
export function SortHead({ by, now, children, num, down, title }: Children & { by: string; now: string; num?: boolean; down?: boolean; title?: string }) {
  const active = now === by ? "ascending" : now === "-" + by ? "descending" : undefined;
  const next = active === "descending" ? by : active === "ascending" ? "-" + by : down ? "-" + by : by;
  return (
    <th scope="col" class={num ? "num" : undefined} aria-sort={active} title={title}>
      <button type="button" class="sort" onClick={() => setQuery({ sort: next, after: "" })}>
        {children}
        <span class="arrow" aria-hidden="true">
          {active === "ascending" ? "↑" : active === "descending" ? "↓" : ""}
        </span>
      </button>
    </th>
  );
}

/** A filter whose text goes to the address after a moment. The key / leads to it. */
export function Filter({ label, name = "q" }: { label: string; name?: string }) {
  const value = param(name);
  const [text, setText] = useState(value);
  const timer = useRef(0);
  useEffect(() => setText(value), [value]);
  const type = (next: string): void => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [name]: next, after: "" }, true), 200);
  };
  return <input type="search" data-filter={name === "q" ? "" : undefined} placeholder={label} aria-label={label} value={text} onInput={(e) => type(e.currentTarget.value)} />;
}

export function Choice({ label, name, options }: { label: string; name: string; options: [value: string, text: string][] }) {
  return (
    <select aria-label={label} value={param(name)} onChange={(e) => setQuery({ [name]: e.currentTarget.value, after: "" })}>
      {options.map(([value, text]) => (
        <option key={value} value={value} selected={value === param(name)}>
          {text}
        </option>
      ))}
    </select>
  );
}

export function Check({ name, value, children }: Children & { name: string; value: string }) {
  return (
    <label class="check">
      <input type="checkbox" checked={param(name) === value} onChange={(e) => setQuery({ [name]: e.currentTarget.checked ? value : "", after: "" })} />
      {children}
    </label>
  );
}

/** A filter that came with a link, and can be taken away. */
export function Chip({ name, label }: { name: string; label: string }) {
  const value = param(name);
  if (!value) return null;
  return (
    <a class="chip" href={withQuery({ [name]: "", after: "" })} aria-label={`Remove the filter ${label} ${value}`}>
      {label} <strong>{value}</strong> <span aria-hidden="true">×</span>
    </a>
  );
}

/** How many rows a file has at most. */
const mostInFile = 1000;

/** The way to the pages of a list. */
export function Pages({ next, shown, matched, noun, csv, csvHas }: { next: string | undefined; shown: number; matched: number | null; noun: string; csv?: string; csvHas?: string }) {
  const after = param("after");
  const has = csvHas ?? (matched !== null && matched > mostInFile ? `the first ${f.count(mostInFile)}` : "");
  return (
    <nav class="pages" aria-label="Pages of the list">
      <span class="quiet">{matched !== null && matched !== shown && !after ? `${f.count(shown)} of ${f.plural(matched, noun)}` : f.plural(shown, noun)}</span>
      {after && <a href={withQuery({ after: "" })}>First page</a>}
      {next && (
        <a href={withQuery({ after: next })} rel="next">
          Next page
        </a>
      )}
      {csv && (
        <a class="end" href={csv} download={`${f.many(noun)}.csv`}>
          Download as CSV{has && `, ${has}`}
        </a>
      )}
    </nav>
  );
}

export function Fact({ label, children, note }: Children & { label: string; note?: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{label}</dt>
      <dd>{children}</dd>
      {note && <dd class="note">{note}</dd>}
    </div>
  );
}

export function Section({ title, children, note }: Children & { title: string; note?: ComponentChildren }) {
  return (
    <section>
      <div class="head">
        <h2>{title}</h2>
        {note && <span class="quiet">{note}</span>}
      </div>
      {children}
    </section>
  );
}

/** A table that may be wider than the page: then it scrolls by itself, also by keys. */
export function Table({ label, children, stale }: Children & { label: string; stale?: boolean }) {
  return (
    <div class={stale ? "scroll stale" : "scroll"} tabIndex={0} role="region" aria-label={label}>
      <table>{children}</table>
    </div>
  );
}
