// Made of internal/watch/explain/triggers.go by make generate. Do not edit.

/** What sets a rebalance off: its mark in a time line, and what it was. */
export const causes: Record<string, { mark: string; text: string }> = {
  "joined": { mark: "▲", text: "a member joined" },
  "left": { mark: "▼", text: "a member left" },
  "removed": { mark: "▼", text: "a member was removed" },
  "expired": { mark: "✕", text: "a member sent no heartbeat" },
  "no-sync": { mark: "✕", text: "a member never asked for its assignment" },
  "no-join": { mark: "✕", text: "a member did not join again" },
  "not-revoked": { mark: "✕", text: "a member did not let go of partitions" },
  "replaced": { mark: "↻", text: "a static member restarted" },
  "resumed": { mark: "↻", text: "the coordinator was lost on the way" },
  "changed": { mark: "◆", text: "a member joined again with a change" },
  "leader": { mark: "◆", text: "the leader asked for it" },
  "topics": { mark: "■", text: "topics changed" },
  "regex": { mark: "■", text: "a regular expression matches other topics" },
  "max-size": { mark: "", text: "the group was too large" },
  "too-large": { mark: "", text: "the assignment was too large" },
  "reset": { mark: "⇄", text: "committed offsets were moved" },
  "initialized": { mark: "■", text: "the group got new partitions" },
  "conflict": { mark: "", text: "two members had the same partition" },
};
