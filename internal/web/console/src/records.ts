// A search for records as it goes on: lines come from the broker while it searches.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem, RecordBytes, RecordsLine, RecordsQuery, SearchEnd, SearchProgress, TopicRecord } from "../../ui/api";
import { acted, address, Refused } from "./ask";
import { send } from "./session";

export interface Search {
  records: TopicRecord[];
  progress: SearchProgress | undefined;
  end: SearchEnd | undefined;
  problem: Refused | undefined;
  /** The connection broke before the search had ended. */
  broken: boolean;
  running: boolean;
}

const nothing: Search = { records: [], progress: undefined, end: undefined, problem: undefined, broken: false, running: true };

/** How many records a page keeps while it follows; earlier ones go. */
const most = 2000;

/** Searches when the question changes or is asked again, also after something was done here, and goes on where it ended when asked to. */
export function useSearch(topic: string, query: RecordsQuery, again: number): Search & { more: () => void; stop: () => void } {
  const key = topic + JSON.stringify(query);
  const [state, set] = useState<Search>(nothing);
  const abort = useRef<AbortController | null>(null);
  const run = async (after: string | undefined, keep: TopicRecord[]): Promise<void> => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    let now: Search = { ...nothing, records: keep };
    const show = (changes: Partial<Search>): void => {
      now = { ...now, ...changes };
      if (abort.current === mine) set(now);
    };
    set((old) => (after ? { ...old, running: true } : now));
    try {
      const answer = await send(address("records", { topic }, { ...query, after: after ?? "" }), { signal: mine.signal });
      if (!answer.ok) {
        show({ problem: new Refused(answer.status, (await answer.json()) as Problem), running: false });
        return;
      }
      for await (const lines of linesOf(answer)) {
        const found = lines.flatMap((l) => l.record ?? []);
        const progress = lines.reduce((p, l) => l.progress ?? p, now.progress);
        const end = lines.reduce<SearchEnd | undefined>((e, l) => l.end ?? e, undefined);
        show({ records: found.length > 0 ? [...now.records, ...found].slice(query.follow ? -most : 0) : now.records, progress: end ?? progress, end });
      }
      show({ running: false, broken: now.end === undefined });
      if (query.follow && now.end?.next && !now.end.problem && abort.current === mine) await run(now.end.next, now.records);
    } catch {
      show({ running: false, broken: !mine.signal.aborted });
    }
  };
  useEffect(() => {
    set(nothing);
    void run(undefined, []);
    return () => abort.current?.abort();
  }, [key, again, query.follow ? 0 : acted.value]); // Who follows sees by itself what was done.
  return {
    ...state,
    more: () => void run(state.end?.next, state.records),
    stop: () => {
      abort.current?.abort();
      set((s) => ({ ...s, running: false }));
    },
  };
}

/** Reads the lines of an answer, as many at once as have come. */
async function* linesOf(answer: Response): AsyncGenerator<RecordsLine[]> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    if (done) return;
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop() ?? "";
    if (lines.length > 0) yield lines.filter(Boolean).map((l) => JSON.parse(l) as RecordsLine);
  }
}

/** The bytes themselves, as many as came. */
export function bytesOf(b: RecordBytes): Uint8Array {
  if (!b.base64) return new TextEncoder().encode(b.text);
  return Uint8Array.from(atob(b.base64), (c) => c.charCodeAt(0));
}

/** Bytes as a table of hexadecimal numbers and letters. */
export function hex(b: Uint8Array): string {
  const out: string[] = [];
  for (let at = 0; at < b.length; at += 16) {
    const row = [...b.subarray(at, at + 16)];
    const numbers = row.map((n) => n.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((n) => (n > 31 && n < 127 ? String.fromCharCode(n) : ".")).join("");
    out.push(`${at.toString(16).padStart(6, "0")}  ${numbers.padEnd(47)}  ${letters}`);
  }
  return out.join("\n");
}
