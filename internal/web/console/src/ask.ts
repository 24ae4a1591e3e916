// Asking the broker. Types of questions and answers are made of the broker's own table of
// routes.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Problem, Routes } from "../../ui/api";
import { live, watch } from "./live";
import { question } from "./session";

export type Name = Exclude<keyof Routes, "events">;

const paths: { [N in Name]: Routes[N]["path"] } = {
  overview: "/overview",
  groups: "/groups",
  group: "/groups/{group}",
  groupHistory: "/groups/{group}/history",
  groupJournal: "/groups/{group}/journal",
  groupExplain: "/groups/{group}/explain",
  topics: "/topics",
  topic: "/topics/{topic}",
  topicConfigs: "/topics/{topic}/configs",
  records: "/topics/{topic}/records",
  brokers: "/brokers",
  journal: "/journal",
  users: "/users",
  acls: "/acls",
  aclsWhy: "/acls/why",
  quotas: "/quotas",
  session: "/session",
  settings: "/settings",
};

/** The broker answered that it cannot, or may not. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

export type Params = Record<string, string>;
type Value = string | number | boolean | string[] | undefined;

/** Where an answer is, also for links to download it. */
export function address<N extends Name>(name: N, params: Params, query: Routes[N]["query"], format = ""): string {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query as Record<string, Value>)) {
    if (value === undefined || value === "" || value === false || (Array.isArray(value) && value.length === 0)) continue;
    q.set(key, String(value));
  }
  if (format) q.set("format", format);
  const path = paths[name].replace(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(params[param] ?? ""));
  const text = q.toString();
  return "/api/v1" + path + (text ? "?" + text : "");
}

export async function ask<N extends Name>(name: N, params: Params, query: Routes[N]["query"], abort?: AbortSignal): Promise<Routes[N]["answer"]> {
  const { answer, body } = await question(address(name, params, query), abort ? { signal: abort } : {});
  if (!answer.ok) throw new Refused(answer.status, body as Problem);
  return body as Routes[N]["answer"];
}

/** Counts what was done here, after which everything is read again. */
export const acted = signal(0);

/** Since when the broker has not answered; null while it does. */
export const silentSince = signal<Date | null>(null);
let lastAnswer = new Date();

function heard(): void {
  lastAnswer = new Date();
  silentSince.value = null;
}

export interface Asked<A> {
  data: A | undefined;
  /** Why there is no answer, or none since that. */
  problem: Refused | undefined;
  /** The answer is to an earlier question; that to this one is on its way. */
  waiting: boolean;
}

interface Kept<A> extends Asked<A> {
  key: string;
}

/** Whether the next answer may be another: then what is known stays. */
const passing = (e: Refused): boolean => e.status >= 500 || e.status === 421;

/** What the broker's stream calls an answer, and how many seconds are between two readings of it at least. */
function watched(name: Name, params: Params): [what: string, gap: number] | null {
  switch (name) {
    case "overview":
    case "groups":
    case "topics":
      return [name, 1];
    case "topic":
      return ["topics", 1];
    case "group":
      return ["group:" + (params.group ?? ""), 1];
    case "groupExplain":
      return ["group:" + (params.group ?? ""), 3]; // It reads the journal.
  }
  return null;
}

/** How often is asked while the stream is open, which is trusted, but not blindly. */
const rarely = 30;

/** Asks now, again when the broker says that it has changed, and every so many seconds while the page can be seen. */
export function useAsk<N extends Name>(name: N, params: Params, query: Routes[N]["query"], every = 5): Asked<Routes[N]["answer"]> {
  type A = Routes[N]["answer"];
  const key = address(name, params, query);
  const subject = name + JSON.stringify(params);
  const [kept, keep] = useState<Kept<A> & { subject: string }>({ key, subject, data: undefined, problem: undefined, waiting: true });
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let asking = false;
    let changed = false; // Since it was asked.
    let asked = 0;
    const stream = watched(name, params);
    const again = (): void => {
      const seconds = stream && live.value ? rarely : every;
      timer = setTimeout(() => (document.hidden ? again() : void once()), seconds * 1000);
    };
    const soon = (gap: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => void once(), Math.max(0, asked + gap * 1000 - Date.now()));
    };
    const once = async (): Promise<void> => {
      asking = true;
      changed = false;
      asked = Date.now();
      try {
        const data = await ask(name, params, query, abort.signal);
        heard();
        keep({ key, subject, data, problem: undefined, waiting: false });
      } catch (e) {
        if (abort.signal.aborted) return;
        if (e instanceof Refused) {
          heard();
          keep((k) => (passing(e) && k.subject === subject && k.data !== undefined ? { ...k, problem: e, waiting: false } : { key, subject, data: undefined, problem: e, waiting: false }));
        } else {
          silentSince.value ??= lastAnswer;
          keep((k) => ({ ...k, waiting: false }));
        }
      }
      asking = false;
      if (abort.signal.aborted) return;
      if (stream && changed) soon(stream[1]);
      else again();
    };
    void once();
    const end = stream
      ? watch(stream[0], () => {
          if (asking) changed = true;
          else soon(stream[1]);
        })
      : undefined;
    return () => {
      end?.();
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, every, acted.value]);
  // What is known of another subject is not shown for this one; another order or filter
  // of the same list is, until the answer comes, so that nothing flickers.
  if (kept.subject !== subject) return { data: undefined, problem: undefined, waiting: true };
  return { ...kept, waiting: kept.waiting || kept.key !== key };
}
