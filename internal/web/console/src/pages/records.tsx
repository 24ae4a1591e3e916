import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { RecordBytes, RecordsQuery, SearchEnd, TopicRecord } from "../../../ui/api";
import * as f from "../format";
import { Empty, Problem, Table } from "../parts";
import { bytesOf, hex, useSearch, type Search } from "../records";
import { param, setQuery, withQuery } from "../route";

/** The fields of the form, which stand in the address under the same names. */
const fields = ["from", "to", "order", "partition", "key", "keyIs", "hashed", "value", "valueIs", "header", "headerValue", "headerIs", "path", "pathValue", "pathIs", "jq", "isolation", "limit", "follow"] as const;

type Compare = [value: string, text: string][];
const compares: Compare = [
  ["equals", "equals"],
  ["contains", "contains"],
  ["regexp", "matches (RE2)"],
  ["exists", "is there"],
  ["null", "is null"],
];

function question(): RecordsQuery {
  const out: Record<string, string | string[] | number | boolean> = {};
  for (const name of fields) {
    const value = param(name);
    if (value === "") continue;
    out[name] = name === "partition" ? value.split(",") : name === "limit" ? Number(value) : name === "hashed" || name === "follow" ? value === "true" : value;
  }
  return out as RecordsQuery;
}

export function Records({ topic }: { topic: string }) {
  const query = question();
  const [sent, setSent] = useState(0);
  const search = useSearch(topic, query, sent);
  const shown = query.follow ? [...search.records].reverse() : search.records;
  return (
    <>
      <Form key={JSON.stringify(query)} sent={() => setSent(sent + 1)} />
      {search.problem ? <Problem of={search.problem} /> : <Progress search={search} follow={query.follow ?? false} />}
      {search.end && <Notes end={search.end} />}
      {shown.length > 0 && (
        <Table label="Records">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col" class="num">Partition</th>
              <th scope="col" class="num">Offset</th>
              <th scope="col">Key</th>
              <th scope="col">Value</th>
              <th scope="col" class="num">Size</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((r) => (
              <Row key={`${r.partition}@${r.offset}`} record={r} />
            ))}
          </tbody>
        </Table>
      )}
      {shown.length === 0 && search.end && !search.running && <Nothing topic={topic} searched={search.end.searched} all={search.end.why === "end"} filtered={fields.some((n) => param(n) !== "")} />}
      {search.end?.next && !search.running && (
        <p class="more">
          <button type="button" class="button" onClick={search.more}>
            {search.end.why === "limit" || search.end.why === "page" ? "Show more" : "Search on"}
          </button>
        </p>
      )}
    </>
  );
}

function Nothing({ topic, searched, all, filtered }: { topic: string; searched: number; all: boolean; filtered: boolean }) {
  if (filtered) return <Empty title={searched === 0 ? "There is nothing to search" : all ? "No matching records" : "No matching records so far"}>Remove a filter, or begin earlier.</Empty>;
  return (
    <Empty title="The topic has no records" commands={[`echo hello | muster produce ${f.quoted(topic)}`]}>
      Whatever is produced shows here.
    </Empty>
  );
}

function Progress({ search, follow }: { search: Search & { stop: () => void }; follow: boolean }) {
  const p = search.progress;
  const total = p?.total === null || p?.total === undefined ? "" : ` of ${p.about ? "about " : ""}${f.count(p.total)}`;
  const state = search.broken ? "The connection broke. " : search.running ? (follow && p ? "Following. " : "Searching … ") : search.end?.why === "end" ? "Searched everything: " : "";
  return (
    <div class="lead progress">
      <span role="status">
        {state}
        {p ? `searched ${f.count(p.searched)}${total} ${p.total === 1 ? "record" : "records"}, ${f.count(p.found)} found` : ""}
        {why(search.end, search.running)}
      </span>
      {p && p.total !== null && !follow && <progress aria-label="Searched" max={Math.max(p.total, 1)} value={p.searched} />}
      {search.running && (
        <button type="button" class="plain" onClick={search.stop}>
          Stop
        </button>
      )}
    </div>
  );
}

function why(end: SearchEnd | undefined, running: boolean): string {
  if (running) return "";
  switch (end?.why) {
    case "time":
      return ". It stopped after three seconds; search on for more.";
    case "bytes":
      return ". It stopped after reading 64 MiB; search on for more.";
    case "quota":
      return ". It stopped because your quota for reading (consumer_byte_rate) is used up; search on in a moment.";
    case "failure":
      return ". It could not go on.";
  }
  return "";
}

/** What a search did not see. */
function Notes({ end }: { end: SearchEnd }) {
  const notes: string[] = [];
  if (end.problem) notes.push(end.problem.message);
  if (end.elsewhere.length > 0) notes.push(`not searched: partition ${f.ranges(end.elsewhere.map((e) => e.partition))}, which ${end.elsewhere.map((e) => `broker ${e.broker}`).filter((b, i, all) => all.indexOf(b) === i).join(", ")} leads`);
  for (const x of end.failures) notes.push(`partition ${x.partition}: ${x.message}`);
  if (end.cut > 0) notes.push(`${f.plural(end.cut, "record")} too large to be searched whole`);
  if (end.unreadable > 0) notes.push(`${f.plural(end.unreadable, "record batch")} could not be read`);
  if (end.jqFailed > 0) notes.push(`jq failed on ${f.plural(end.jqFailed, "record")}: ${end.jqFailure ?? ""}`);
  if (notes.length === 0) return null;
  return <p class="notice">Not all was searched: {notes.join("; ")}.</p>;
}

const states: Record<string, [mark: string, text: string, tone: string]> = {
  aborted: ["✕", "aborted", "bad"],
  open: ["◐", "in an open transaction", "warn"],
  waiting: ["◌", "behind an open transaction", "warn"],
  committed: ["●", "committed in a transaction", "quiet"],
};

function Row({ record: r }: { record: TopicRecord }) {
  const [open, setOpen] = useState(false);
  const id = `r${r.partition}-${r.offset}`;
  const state = states[r.transaction];
  return (
    <>
      <tr>
        <td class="time">
          <button type="button" class="plain toggle" data-row aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
            <span aria-hidden="true">{open ? "▾" : "▸"}</span> {r.timestamp === null ? "no time" : f.when(r.timestamp)}
            <span class="unseen">, record {r.offset} of partition {r.partition}</span>
          </button>
        </td>
        <td class="num">{r.partition}</td>
        <td class="num">{f.offset(r.offset)}</td>
        <td class="key">
          <Brief of={r.key} none="no key" />
        </td>
        <td class="preview">
          <Brief of={r.value} none="tombstone" />
          {r.result && <span class="says">jq: {r.result.slice(0, 200)}</span>}
          {state && r.transaction !== "committed" && (
            <span class={`says ${state[2]}`}>
              {state[0]} {state[1]}
            </span>
          )}
        </td>
        <td class="num">{f.bytes((r.key?.size ?? 0) + (r.value?.size ?? 0))}</td>
      </tr>
      {open && (
        <tr class="opened" id={id}>
          <td colSpan={6}>
            <Details record={r} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Bytes in a line. */
function Brief({ of, none }: { of: RecordBytes | null; none: string }) {
  if (of === null) return <span class="quiet">{none}</span>;
  if (of.size === 0) return <span class="quiet">empty</span>;
  if (of.base64) return <span class="quiet">{of.schemaId === null ? "bytes" : `schema ${of.schemaId}`} · {f.bytes(of.size)}</span>;
  return <code>{of.text.slice(0, 200)}</code>;
}

function Details({ record: r }: { record: TopicRecord }) {
  const state = states[r.transaction];
  return (
    <div class="details">
      <p class="quiet">
        {[r.timestamp && `${r.timestamp} (${r.timestampType})`, r.producerId !== null && `producer ${r.producerId}`, state && `${state[0]} ${state[1]}`, r.cut && "too large to be read whole"].filter(Boolean).join(" · ")}
      </p>
      <Bytes title="Key" of={r.key} none="It has no key." />
      <Bytes title="Value" of={r.value} none="It has no value: a tombstone, which deletes its key where the topic is compacted." />
      {r.result && <Shown title="What jq made of it" text={pretty(r.result)} />}
      {r.headers.length > 0 && (
        <>
          <h3>Headers</h3>
          <dl class="headers">
            {r.headers.map((h, i) => (
              <div key={i}>
                <dt>
                  <code>{h.name}</code>
                </dt>
                <dd>{h.value === null ? <span class="quiet">null</span> : <code>{h.value.base64 ? hex(bytesOf(h.value)) : h.value.text}</code>}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </div>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

type Form = "json" | "text" | "hex";

function Bytes({ title, of, none }: { title: string; of: RecordBytes | null; none: string }) {
  const forms: Form[] = of?.json ? ["json", "text", "hex"] : of?.base64 ? ["hex"] : ["text", "hex"];
  const [form, setForm] = useState<Form>(forms[0] ?? "text");
  if (of === null) return <p class="quiet">{none}</p>;
  const text = form === "hex" ? hex(bytesOf(of)) : form === "json" ? pretty(of.text) : of.text;
  const note = [f.bytes(of.size), of.schemaId !== null && `schema id ${of.schemaId}`, of.shown < of.size && `the first ${f.bytes(of.shown)} of it`].filter(Boolean).join(", ");
  return (
    <Shown title={title} note={note} text={text}>
      {forms.length > 1 &&
        forms.map((x) => (
          <button key={x} type="button" class="plain" aria-pressed={x === form} onClick={() => setForm(x)}>
            {x === "json" ? "JSON" : x}
          </button>
        ))}
    </Shown>
  );
}

function Shown({ title, note, text, children }: { title: string; note?: string; text: string; children?: ComponentChildren }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => undefined, // Without TLS browsers lend no clipboard.
    );
  };
  return (
    <div class="shown">
      <div class="head">
        <h3>{title}</h3>
        {note && <span class="quiet">{note}</span>}
        {children}
        <button type="button" class="plain" onClick={copy}>
          {copied ? "copied" : "copy"}
        </button>
      </div>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}

/** The filters. They go to the address when the form is sent, which searches again even if they are as before. */
function Form({ sent }: { sent: () => void }) {
  const send = (e: Event): void => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement);
    const changes: Record<string, string> = {};
    for (const name of fields) {
      const value = data.get(name);
      changes[name] = typeof value === "string" ? value : "";
    }
    for (const [text, is] of [["key", "keyIs"], ["value", "valueIs"], ["headerValue", "headerIs"], ["pathValue", "pathIs"]] as const) {
      const kind = changes[is] ?? "";
      if (kind === "null" || kind === "exists") changes[text] = "";
      else if (changes[text] === "") changes[is] = "";
    }
    if (changes.follow) Object.assign(changes, { order: "", to: "" });
    setQuery(changes);
    sent();
  };
  const special = ["header", "path", "jq", "to", "partition", "isolation"].some((n) => param(n) !== "");
  return (
    <form class="search" onSubmit={send} role="search" aria-label="Search records">
      <div class="filters">
        <Field name="from" label="From" hint="offset:4711, time:-1h" />
        <Select name="order" label="Order" options={[["", "Newest first"], ["oldest", "Oldest first"]]} />
        <Compared name="key" is="keyIs" label="Key" byDefault="equals" />
        <Compared name="value" is="valueIs" label="Value" byDefault="contains" />
        <Select name="limit" label="At a time" options={[["", "50"], ["200", "200"], ["1000", "1,000"]]} />
        <label class="check">
          <input type="checkbox" name="follow" value="true" checked={param("follow") === "true"} /> Follow
        </label>
        <button type="submit" class="button">
          Search
        </button>
        <a href={withQuery(Object.fromEntries(fields.map((n) => [n, ""])))}>Clear</a>
      </div>
      <details open={special}>
        <summary class="quiet">More filters: header, JSON path, jq, partitions, transactions</summary>
        <div class="filters">
          <Field name="header" label="Header" hint="name" />
          <Compared name="headerValue" is="headerIs" label="Header value" byDefault="equals" />
          <Field name="path" label="JSON path" hint="$.order.lines[0].sku" />
          <Compared name="pathValue" is="pathIs" label="Value at the path" byDefault="equals" />
          <Field name="jq" label="jq" hint=".value.total > 100" wide />
          <Field name="to" label="To" hint="offset:5000, time:-10m" />
          <Field name="partition" label="Partitions" hint="0,3,7-9" />
          <Select name="isolation" label="Transactions" options={[["", "All records"], ["read_committed", "Only committed ones"]]} />
          <label class="check">
            <input type="checkbox" name="hashed" value="true" checked={param("hashed") === "true"} /> Producers hash keys by murmur2
          </label>
        </div>
      </details>
    </form>
  );
}

function Field({ name, label, hint, wide }: { name: string; label: string; hint?: string; wide?: boolean }) {
  return (
    <label class={wide ? "field wide" : "field"}>
      <span>{label}</span>
      <input type="search" name={name} defaultValue={param(name)} placeholder={hint} autocomplete="off" spellcheck={false} />
    </label>
  );
}

function Select({ name, label, options, value }: { name: string; label: string; options: Compare; value?: string }) {
  const now = param(name) || (value ?? "");
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name}>
        {options.map(([v, text]) => (
          <option key={v} value={v} selected={v === now}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Compared({ name, is, label, byDefault }: { name: string; is: string; label: string; byDefault: string }) {
  return (
    <div class="compared" role="group" aria-label={label}>
      <Select name={is} label={label} options={compares} value={byDefault} />
      <input type="search" name={name} aria-label={`${label}: text`} defaultValue={param(name)} autocomplete="off" spellcheck={false} />
    </div>
  );
}
