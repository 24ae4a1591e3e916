import type { JournalEntry, JournalSearch } from "../../../ui/api";
import { address, useAsk } from "../ask";
import * as f from "../format";
import { causeKinds, causeText } from "../owners";
import { Choice, Empty, Filter, Hitch, Incomplete, Pages, Table, Title, useTitle } from "../parts";
import { groupPath, param } from "../route";

const kinds: [string, string][] = [
  ["", "All that happened"],
  ["rebalance-settled", "Rebalances"],
  ["rebalance-started", "Rebalances that began"],
  ["static-member-replaced", "Static members that restarted"],
  ["static-member-fenced", "Static members that were fenced"],
  ["group-loaded", "Groups that were loaded"],
  ["group-deleted", "Groups that were deleted"],
  ["group-epoch-raised", "Group epochs"],
  ["target-assigned", "Target assignments"],
  ["offsets-reset", "Offsets that were reset"],
  ["reset-started", "Resets that began"],
  ["reset-not-applied", "Resets that were not applied"],
  ["offsets-deleted", "Offsets that were deleted"],
  ["offsets-expired", "Offsets that expired"],
  ["poison-suspected", "Records that are suspected"],
];

const spans: [string, string][] = [
  ["", "Last hour"],
  ["6h", "Last 6 hours"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
];

/** How many entries are shown, and how many a file has. */
const most = 200;
const mostInFile = 1000;

export function Journal() {
  useTitle("Journal");
  const query: JournalSearch = { q: param("q"), kind: list("kind"), cause: list("cause"), member: param("member"), since: param("since") || "1h", limit: most };
  const { data, problem, waiting } = useAsk("journal", {}, query);
  const filtered = ["q", "kind", "cause", "member"].some((name) => param(name) !== "");
  return (
    <>
      <Title>Journal</Title>
      <div class="filters" role="search">
        <Filter label="Filter by group" />
        <Filter label="Member, client or host" name="member" />
        <Choice label="What happened" name="kind" options={kinds} />
        <Choice label="Cause" name="cause" options={[["", "Any cause"], ...causeKinds.map((c): [string, string] => [c, causeText(c)])]} />
        <Choice label="How far back" name="since" options={spans} />
      </div>
      <Hitch of={problem} data={data} />
      {data && <Incomplete of={data.incomplete} />}
      {data?.partly && <p class="notice">{data.entries.length >= most ? `These are the latest ${f.count(most)} entries, and there are more` : "The search ended before it had seen everything"}: look less far back, or at one group.</p>}
      {data && data.entries.length === 0 && <Nothing kept={data.kept} filtered={filtered} />}
      {data && data.entries.length > 0 && (
        <>
          <Table label="Journal, the latest first" stale={waiting}>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Group</th>
                <th scope="col">What happened</th>
              </tr>
            </thead>
            <tbody>
              {[...data.entries].reverse().map((e) => (
                <Row key={e.time + e.group + e.kind} entry={e} />
              ))}
            </tbody>
          </Table>
          <Pages next={undefined} shown={data.entries.length} matched={null} noun="entry" csv={address("journal", {}, { ...query, limit: mostInFile }, "csv")} {...(data.partly && { csvHas: `at most the latest ${f.count(mostInFile)}` })} />
        </>
      )}
    </>
  );
}

const list = (name: string): string[] => param(name).split(",").filter(Boolean);

function Row({ entry }: { entry: JournalEntry }) {
  return (
    <tr>
      <td class="time">
        <time dateTime={entry.time}>{f.when(entry.time)}</time>
      </td>
      <td>
        <a class="name" data-row href={groupPath(entry.group) + "?tab=time"}>
          {entry.group}
        </a>
      </td>
      <td class="wide">
        <details>
          <summary>
            <span class="kind">{f.words(entry.kind)}</span> {entry.text}
          </summary>
          <pre tabIndex={0}>{JSON.stringify(entry.entry, null, 2)}</pre>
        </details>
      </td>
    </tr>
  );
}

function Nothing({ kept, filtered }: { kept: boolean; filtered: boolean }) {
  if (filtered) return <Empty title="No matching entries">Remove a filter, or look further back.</Empty>;
  if (kept) return <Empty title="Nothing happened in this time">Look further back to see more.</Empty>;
  return (
    <Empty title="The journal is empty" commands={["muster consume orders --group billing"]}>
      It begins with the first rebalance: a consumer that joins a group makes one.
    </Empty>
  );
}
