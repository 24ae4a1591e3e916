// Making topics, and what can be done to one besides reading it.
import { useState } from "preact/hooks";
import type { TopicDetail } from "../../../ui/api";
import { act, deletes } from "../act";
import { Confirm } from "../confirm";
import { Acting, Acts, Form } from "../dialog";
import { Pairs, Text } from "../fields";
import * as f from "../format";
import { go, topicPath } from "../route";
import { DeleteRecords, Produce } from "./act_records";

/** Settings that people give a topic from the start. The broker knows more, and says so if one is no setting. */
const usual = ["cleanup.policy", "compression.type", "max.message.bytes", "message.timestamp.type", "min.insync.replicas", "muster.redis.layout", "retention.bytes", "retention.ms", "segment.bytes", "segment.ms"];

export function CreateTopic() {
  return (
    <Acting text="Create a topic …" title="Create a topic">
      <Create />
    </Acting>
  );
}

function Create() {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("");
  const [settings, setSettings] = useState<[string, string][]>([]);
  return (
    <Form
      verb="Create the topic"
      submit={async () => {
        const configs = Object.fromEntries(settings.map(([n, v]) => [n.trim(), v.trim()]).filter(([n]) => n));
        const { sentences } = await act("createTopic", {}, { name, configs, ...(partitions && { partitions: Number(partitions) }) });
        go(topicPath(name));
        return sentences.join(" ");
      }}
    >
      <Text label="Name" required mono pattern="[A-Za-z0-9._\-]+" value={name} set={setName} note="Letters, digits, dots, underscores and hyphens." />
      <Text label="Partitions" type="number" min={1} value={partitions} set={setPartitions} note="As many members of a group can share the work. Empty means the broker's num.partitions. More can be added later, but none taken away." />
      <Pairs label="Settings" name="Setting" text="Value" add="Add a setting" list={usual} value={settings} set={setSettings} />
    </Form>
  );
}

export function TopicActs({ topic }: { topic: TopicDetail }) {
  return (
    <Acts>
      <Produce topic={topic} />
      <Acting text="Add partitions …" title={`Add partitions to ${topic.name}`}>
        <AddPartitions topic={topic} />
      </Acting>
      <DeleteRecords topic={topic} />
      <Acting text="Delete the topic …" danger title={`Delete the topic ${topic.name}`}>
        <Confirm
          name="deleteTopic"
          params={{ topic: topic.name }}
          body={null}
          type={topic.name}
          what="topic"
          verb="Delete the topic"
          after={() => {
            deletes("topic", topic.name);
            go("/topics");
          }}
        />
      </Acting>
    </Acts>
  );
}

function AddPartitions({ topic }: { topic: TopicDetail }) {
  const now = topic.partitions.length;
  const [count, setCount] = useState(String(now + 1));
  const [asked, ask] = useState(false);
  if (asked) return <Confirm name="addPartitions" params={{ topic: topic.name }} body={{ count: Number(count) }} verb="Add partitions" back={() => ask(false)} />;
  return (
    <Form verb="Show what would happen" submit={() => ask(true)}>
      <Text label="Partitions afterwards" type="number" required min={now + 1} value={count} set={setCount} note={`There ${now === 1 ? "is 1" : `are ${f.count(now)}`} now.`} />
    </Form>
  );
}
