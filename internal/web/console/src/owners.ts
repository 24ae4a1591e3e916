// Who is who in a group: each member gets a letter and a colour, the same on the whole
// page, and who had which partition when is told from the journal.
import type { GroupDetail, Rebalance } from "../../ui/api";
import { causes } from "../../ui/causes";

export interface Owner {
  id: string;
  name: string;
  /** Its group instance id or client id, which others may have had. */
  client: string;
  letter: string;
  colour: number;
}

/** How many colours the style sheet has. */
export const colours = 8;

const uuid = 36;

/** The id of a member without most of the random part at its end. */
export function shortName(id: string): string {
  const cut = id.length - uuid;
  if (cut > 0 && id[cut - 1] === "-" && id.slice(cut).split("-").length === 5) return id.slice(0, cut + 8);
  return id.length === uuid || id.length === 22 ? id.slice(0, 8) : id;
}

/** What a member has before the random part of its id: its client id, or its group instance id if it is static. */
function clientOf(id: string): string {
  const cut = id.length - uuid;
  return (cut > 0 && id[cut - 1] === "-" && id.slice(cut).split("-").length === 5 && id.slice(0, cut - 1)) || id;
}

/** Who is behind the ids of members, by group instance id or else by client id: those stay when a process comes back. */
function clientsOf(group: GroupDetail, rebalances: Rebalance[]): { clients: Map<string, string>; instances: Set<string> } {
  const clients = new Map<string, string>();
  const instances = new Set<string>();
  const note = (id: string | undefined, instance: string | null | undefined, client: string | undefined): void => {
    if (id) clients.set(id, instance || client || clientOf(id));
    if (instance) instances.add(instance);
  };
  for (const { entry } of rebalances) {
    for (const who of [...(entry.triggers ?? []), ...(entry.slowest ?? []), ...(entry.held ?? [])]) note(who.member, who.instanceId, who.clientId);
  }
  for (const m of group.members) note(m.memberId, m.instanceId, m.clientId);
  return { clients, instances };
}

interface Stay {
  from: number;
  to: number;
}

/** From when to when members were there, as far as rebalances tell. Who is first heard of by what it gives up was there before. */
function staysOf(group: GroupDetail, rebalances: Rebalance[]): Map<string, Stay> {
  const out = new Map<string, Stay>();
  const see = (id: string | undefined, first: number, at: number): void => {
    if (id) out.set(id, { from: out.get(id)?.from ?? first, to: at });
  };
  for (const r of [...rebalances].reverse()) {
    const at = Date.parse(r.settled);
    const moves = r.entry.moves ?? [];
    for (const m of moves) see(m.from, -Infinity, at);
    for (const t of r.entry.triggers ?? []) see(t.member, t.kind === "joined" ? at : -Infinity, at);
    for (const m of moves) see(m.to, at, at);
  }
  for (const m of group.members) see(m.memberId, -Infinity, Infinity);
  return out;
}

const apart = (a: Stay, b: Stay): boolean => a.from !== b.from && (a.to <= b.from || b.to <= a.from);

/**
 * Members by id, those of now first, then those that the journal names, the latest first. Whoever comes back under the
 * same client id or group instance id has the letter and the colour that it had. Of several that were there at once, the
 * others have a number, too.
 */
export function ownersOf(group: GroupDetail, rebalances: Rebalance[]): Map<string, Owner> {
  const out = new Map<string, Owner>();
  const { clients, instances } = clientsOf(group, rebalances);
  const stays = staysOf(group, rebalances);
  /** The places that those of one name take: at each of them there is one at a time. */
  const all = new Map<string, { letter: string; places: { colour: number; stays: Stay[] }[] }>();
  let taken = 0;
  const add = (id: string | undefined, name: string): void => {
    if (!id || out.has(id)) return;
    const client = clients.get(id) ?? clientOf(id);
    const stay = stays.get(id) ?? { from: -Infinity, to: Infinity };
    const { letter, places } = all.get(client) ?? { letter: letters(all.size), places: [] };
    all.set(client, { letter, places });
    let at = places.findIndex((p) => instances.has(client) || p.stays.every((s) => apart(s, stay))); // A static member replaces its predecessor.
    if (at < 0) at = places.push({ colour: taken++ % colours, stays: [] }) - 1;
    const place = places[at]!;
    place.stays.push(stay);
    out.set(id, { id, name, client, letter: at > 0 ? `${letter}${at + 1}` : letter, colour: place.colour });
  };
  for (const m of group.members) add(m.memberId, m.name);
  for (const r of rebalances) {
    for (const move of r.entry.moves ?? []) {
      add(move.to, shortName(move.to ?? ""));
      add(move.from, shortName(move.from ?? ""));
    }
  }
  return out;
}

/** A to Z, AA to ZZ … */
function letters(i: number): string {
  const last = String.fromCharCode(65 + (i % 26));
  return i < 26 ? last : letters(Math.floor(i / 26) - 1) + last;
}

/** Someone had a partition from then to then; null is no one, undefined not known. */
export interface Span {
  from: number;
  to: number;
  owner: string | null | undefined;
}

export interface Ribbon {
  topic: string;
  partition: number;
  spans: Span[];
}

/** How many partitions are drawn. */
export const drawn = 64;

/** Goes back from who has each partition that is drawn now, rebalance by rebalance, latest first. */
export function ribbons(group: GroupDetail, rebalances: Rebalance[], complete: boolean, from: number, now: number): Ribbon[] {
  const known = group.members.every((m) => m.assigned !== null) && !group.state.endsWith("Rebalance");
  return group.partitions.slice(0, drawn).map((p) => {
    const spans: Span[] = [];
    let owner: Span["owner"] = known ? p.owner : undefined;
    let end = now;
    for (const r of rebalances) {
      const at = Date.parse(r.settled);
      const moves = r.entry.moves ?? [];
      const move = moves.find((m) => m.topic === p.topic && m.partition === p.partition);
      if (owner === undefined && move) owner = move.to ?? null;
      add(spans, { from: Math.max(at, from), to: end, owner });
      if (at <= from) return { topic: p.topic, partition: p.partition, spans };
      end = at;
      if (move) owner = move.from ?? null;
      else if ((r.entry.moveCount ?? moves.length) > moves.length) owner = undefined; // The list was cut short.
    }
    add(spans, { from, to: end, owner: complete ? owner : undefined });
    return { topic: p.topic, partition: p.partition, spans };
  });
}

function add(spans: Span[], span: Span): void {
  const later = spans[spans.length - 1];
  if (later && later.owner === span.owner) later.from = span.from;
  else if (span.to > span.from) spans.push(span);
}

/** What set a rebalance off, as the journal names it. */
export function causesOf(r: Rebalance): string[] {
  return [...new Set((r.entry.triggers ?? []).map((t) => t.kind))];
}

export const causeMark = (cause: string | undefined): string => (cause && causes[cause]?.mark) || "●";

export const causeText = (cause: string): string => causes[cause]?.text ?? cause.replace(/-/g, " ");

export const causeKinds = Object.keys(causes);
