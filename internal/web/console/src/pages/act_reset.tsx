// Moving the committed offsets of a group without members: where to, then what that
// would do to each partition, then doing exactly that.
import { useState } from "preact/hooks";
import type { GroupDetail, ResetPlan } from "../../../ui/api";
import { act } from "../act";
import { Will } from "../confirm";
import { Acting, Form, useClose } from "../dialog";
import { Radios, Select, Text } from "../fields";
import * as f from "../format";
import { numbers, pattern } from "../numbers";
import { Num, Table } from "../parts";

export function Reset({ group }: { group: GroupDetail }) {
  return (
    <Acting text="Reset offsets …" title={`Reset the offsets of ${group.name}`}>
      {group.members.length > 0 ? <NotEmpty group={group} /> : <Wizard group={group} />}
    </Acting>
  );
}

/** What to do first. As soon as the last member is gone, the wizard is here instead. */
function NotEmpty({ group }: { group: GroupDetail }) {
  const close = useClose();
  const shown = group.members.slice(0, 8);
  return (
    <>
      <p>
        The group has {f.plural(group.members.length, "member")}. Offsets can only be moved while it has none: members go on from where they are, and overwrite what is committed.
      </p>
      <p>Stop these consumers. A member that is stopped properly leaves at once; one that just vanished leaves after its session timeout. A static member stays until then, or until it is removed.</p>
      <ul class="list">
        {shown.map((m) => (
          <li key={m.memberId}>
            <span class="name">{m.name}</span> <span class="quiet">{[m.clientId, m.host, m.instanceId && `static, ${m.instanceId}`].filter(Boolean).join(" · ")}</span>
          </li>
        ))}
        {group.members.length > shown.length && <li class="quiet">and {f.count(group.members.length - shown.length)} more</li>}
      </ul>
      <p class="quiet" role="status">
        This goes on by itself when the group is empty.
      </p>
      <div class="acts end">
        <button type="button" class="act" onClick={close}>
          Close
        </button>
      </div>
    </>
  );
}

const wheres: [value: string, text: string][] = [
  ["beginning", "To the beginning: everything that is kept is read again"],
  ["end", "To the end: everything that is unread is skipped"],
  ["timestamp", "To a time"],
  ["offset", "To an offset"],
  ["shift", "By a number of records, back or forth"],
];

function Wizard({ group }: { group: GroupDetail }) {
  const [plan, setPlan] = useState<ResetPlan>();
  const topics = [...new Set(group.partitions.map((p) => p.topic))];
  const [topic, setTopic] = useState("");
  const [partitions, setPartitions] = useState("");
  const [to, setTo] = useState("beginning");
  const [value, setValue] = useState("");
  if (plan) return <Planned group={group} plan={plan} back={() => setPlan(undefined)} />;
  return (
    <Form
      verb="Show what would happen"
      asks
      submit={async () => {
        const at = to === "timestamp" ? new Date(value).toISOString() : value.trim();
        const body = { to, ...(topic && { topic }), ...(topic && partitions.trim() && { partitions: numbers(partitions) }), ...(at && to !== "beginning" && to !== "end" && { value: at }) };
        setPlan(await act("planReset", { group: group.name }, body));
      }}
    >
      <Radios label="Where to" value={to} set={(x) => (setTo(x), setValue(""))} options={wheres} />
      {to === "timestamp" && <Text label="Time" type="datetime-local" step="1" required value={value} set={setValue} note={`In the time zone of this browser (${Intl.DateTimeFormat().resolvedOptions().timeZone}). Reading goes on at the first record of that time or later.`} />}
      {to === "offset" && <Text label="Offset" required pattern="\d+" mono value={value} set={setValue} note="The same in each partition. Outside of a log it is moved to the nearest end." />}
      {to === "shift" && <Text label="Records" required pattern="[+\-]?\d+" mono hint="-100" value={value} set={setValue} note="-100 goes back by 100 offsets, 1 skips one record." />}
      <Select label="Topics" value={topic} set={setTopic} options={[["", `All topics that the group has committed${group.hiddenTopics > 0 ? "" : ` (${topics.length})`}`], ...topics.map((t): [string, string] => [t, t])]} />
      {topic && <Partitions value={partitions} set={setPartitions} />}
    </Form>
  );
}

/** Some partitions of a topic, or all. */
export function Partitions({ value, set }: { value: string; set: (value: string) => void }) {
  return <Text label="Partitions" hint="all" pattern={pattern} mono value={value} set={set} note="As in 0, 2-4. Empty means all of the topic's." />;
}

/** How many partitions of a plan are shown; all are moved. */
const most = 200;

/** Exactly what would happen, and then that. */
function Planned({ group, plan, back }: { group: GroupDetail; plan: ResetPlan; back: () => void }) {
  const moved = plan.partitions.filter((p) => p.to !== null && p.to !== p.committed);
  const noted = plan.partitions.some((p) => p.clamped || p.note);
  const order = moved.map(({ topic, partition, committed, to }) => ({ topic, partition, committed, to: to ?? "" }));
  return (
    <Form verb={`Move ${f.plural(moved.length, "partition")}`} danger ready={moved.length > 0 && !plan.refused} back={back} submit={async () => (await act("executeReset", { group: group.name }, { partitions: order })).sentences.join(" ")}>
      <Will of={plan} />
      <Table label="What becomes of each partition">
        <thead>
          <tr>
            <th scope="col">Partition</th>
            <th scope="col" class="num">From</th>
            <th scope="col" class="num">To</th>
            <th scope="col" class="num">Read again</th>
            <th scope="col" class="num">Skipped</th>
            {noted && <th scope="col">Note</th>}
          </tr>
        </thead>
        <tbody>
          {plan.partitions.slice(0, most).map((p) => (
            <tr key={p.topic + p.partition}>
              <th scope="row">
                {p.topic} <span class="quiet">{p.partition}</span>
              </th>
              <Num>{f.offset(p.committed)}</Num>
              <Num quiet={p.to === null || p.to === p.committed}>{p.to === null ? "stays" : f.offset(p.to)}</Num>
              <Records of={p.again} />
              <Records of={p.skipped} />
              {noted && (
                <td class="cause">
                  {p.clamped ? <span class="warn">▲ {p.note ?? "moved to the nearest end of the log"}</span> : p.note}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </Table>
      {plan.partitions.length > most && <p class="quiet">and {f.count(plan.partitions.length - most)} more</p>}
    </Form>
  );
}

const Records = ({ of }: { of: number | null }) => <Num quiet={!of}>{of === null ? "not known" : f.count(of)}</Num>;
