// Writing a record to a topic, and deleting the oldest ones.
import { useState } from "preact/hooks";
import type { TopicDetail } from "../../../ui/api";
import { act, type Body } from "../act";
import { Confirm } from "../confirm";
import { Acting, Form } from "../dialog";
import { Area, Pairs, Radios, Select, Text, Tick } from "../fields";
import * as f from "../format";

export function Produce({ topic }: { topic: TopicDetail }) {
  return (
    <Acting text="Produce a record …" title={`Produce a record to ${topic.name}`}>
      <OneRecord topic={topic} />
    </Acting>
  );
}

function OneRecord({ topic }: { topic: TopicDetail }) {
  const [partition, setPartition] = useState("");
  const [keyed, setKeyed] = useState(true);
  const [key, setKey] = useState("");
  const [tombstone, setTombstone] = useState(false);
  const [value, setValue] = useState("");
  const [headers, setHeaders] = useState<[string, string][]>([]);
  return (
    <Form
      verb="Produce"
      submit={async () => {
        const body: Body<"produce"> = {
          encoding: "text",
          headers: headers.filter(([k]) => k).map(([k, v]) => ({ key: k, value: v })),
          ...(keyed && { key }),
          ...(!tombstone && { value }),
          ...(partition !== "" && { partition: Number(partition) }),
        };
        const at = await act("produce", { topic: topic.name }, body);
        return `The record is in partition ${at.partition} at offset ${f.offset(at.offset)}.`;
      }}
    >
      {keyed && <Text label="Key" mono value={key} set={setKey} />}
      <Tick label="Without a key" value={!keyed} set={(x) => setKeyed(!x)} />
      {!tombstone && <Area label="Value" value={value} set={setValue} />}
      <Tick label="Without a value: a tombstone, which deletes the key where the topic is compacted" value={tombstone} set={setTombstone} />
      <Pairs label="Headers" name="Key" text="Value" add="Add a header" value={headers} set={setHeaders} />
      <Text label="Partition" type="number" min={0} hint={keyed ? "by the key" : "any"} value={partition} set={setPartition} note={`0 to ${topic.partitions.length - 1}. Empty: by the key, as Kafka's clients choose it; without a key any.`} />
    </Form>
  );
}

export function DeleteRecords({ topic }: { topic: TopicDetail }) {
  return (
    <Acting text="Delete records …" danger title={`Delete the oldest records of ${topic.name}`}>
      <Oldest topic={topic} />
    </Acting>
  );
}

/** How many partitions a list to choose from has at most. */
const few = 100;

/** What stands for the end of a partition, as in Kafka's DeleteRecords, where the page does not know it. */
const end = "-1";

function Oldest({ topic }: { topic: TopicDetail }) {
  const [partition, setPartition] = useState(topic.partitions.length === 1 ? "0" : "");
  const [which, setWhich] = useState("before");
  const [before, setBefore] = useState("");
  const [body, setBody] = useState<Body<"deleteRecords">>();
  if (body) {
    return (
      <Confirm
        name="deleteRecords"
        params={{ topic: topic.name }}
        body={body}
        verb="Delete the records"
        back={() => setBody(undefined)}
      />
    );
  }
  const count = topic.partitions.length;
  const at = topic.partitions[Number(partition)];
  return (
    <Form
      verb="Show what would happen"
      submit={() => {
        const some = partition === "" ? topic.partitions : topic.partitions.filter((p) => p.partition === Number(partition));
        setBody({ partitions: some.map((p) => ({ partition: p.partition, offset: which === "all" ? (p.logEndOffset ?? end) : before.trim() })) });
      }}
    >
      {count > few ? (
        <Text label="Partition" type="number" min={0} max={count - 1} hint="all" value={partition} set={setPartition} note={`0 to ${count - 1}. Empty means all.`} />
      ) : (
        <Select label="Partition" value={partition} set={setPartition} options={[["", `All ${f.count(count)}`], ...topic.partitions.map((p): [string, string] => [String(p.partition), String(p.partition)])]} />
      )}
      <Radios
        label="Which records"
        value={which}
        set={setWhich}
        options={[
          ["before", "Those before an offset"],
          ["all", "All that are there now"],
        ]}
      />
      {which === "before" && (
        <Text
          label="First offset that stays"
          required
          mono
          pattern="\d+"
          value={before}
          set={setBefore}
          {...(partition !== "" && at?.logStartOffset && { note: `The partition has offsets ${f.offset(at.logStartOffset)} up to ${f.offset(at.logEndOffset)}.` })}
        />
      )}
    </Form>
  );
}
