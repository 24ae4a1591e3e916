// Made of the table of routes by make generate. Do not edit.

/** An offset: a string, since JavaScript's numbers are too small. */
export type Offset = string;

/** A time, as in 2026-11-16T21:50:00Z. */
export type Time = string;

export interface ACL {
  /** as in User:alice; User:* for everyone */
  principal: string;
  /** an address; * for any */
  host: string;
  /** READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL … */
  operation: string;
  /** ALLOW or DENY */
  permission: string;
  /** TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID */
  resourceType: string;
  /** kafka-cluster for the cluster; * for all, if literal */
  resourceName: string;
  /** LITERAL, or PREFIXED for names that start so */
  patternType: string;
}

export interface ACLList {
  /** false if the broker has no authorizer, so that everyone may do everything */
  enabled: boolean;
  /** by resource */
  acls: ACLRow[];
}

export interface ACLRow {
  principal: string;
  host: string;
  operation: string;
  permission: string;
  resourceType: string;
  resourceName: string;
  patternType: string;
  /** the rule in words */
  sentence: string;
}

export interface ACLWhy {
  allowed: boolean;
  /** what was decided, and by which rule */
  sentence: string;
  /** the one that decides; null if none does */
  rule: ACLRow | null;
  /** the command that would allow it */
  command?: string;
}

export interface Abilities {
  /** to change anything */
  act: boolean;
  /** to see what is in records */
  records: boolean;
}

export interface Absent {
  member?: string;
  clientId?: string;
  host?: string;
  instanceId?: string;
  pending?: boolean;
  kept?: boolean;
}

export interface Assigned {
  topic: string;
  partitions: number[];
}

export interface BrokerList {
  /** the cluster id */
  cluster: string;
  /** by node id */
  brokers: BrokerRow[];
  /** brokers that did not say how they are */
  incomplete: Silent[];
}

export interface BrokerRow {
  id: number;
  rack: string;
  /** it is the one that answers */
  here: boolean;
  /** it is named to clients as the controller */
  controller: boolean;
  /** that it leads */
  partitions: number;
  /** where clients reach it */
  listeners: Endpoint[];
  /** where other brokers reach its HTTP API; empty if they do not */
  http: string;
  /** that it coordinates; null if it did not say */
  groups: number | null;
  /** null if it did not say */
  health: Health | null;
}

export interface Change {
  topicsAdded?: string[];
  topicsAddedCount?: number;
  topicsRemoved?: string[];
  topicsRemovedCount?: number;
  protocols?: string[];
  protocolsBefore?: string[];
  owned?: boolean;
  other?: boolean;
  forgotten?: boolean;
  regex?: string;
  regexBefore?: string;
}

export interface Changed {
  /** what has changed, as it was asked for */
  watch: string;
  at: Time;
}

export interface ChangedConfigs {
  /** settings and their values */
  set?: Record<string, string>;
  /** settings that are to be as by default */
  delete?: string[];
}

export interface ChangedQuota {
  /** whose they are: a user, a client-id, both, or an ip */
  entity: QuotaPart[];
  set?: QuotaValue[];
  /** names of quotas */
  remove?: string[];
}

export interface Coordinator {
  broker: number;
  address: string;
}

export interface Done {
  /** false for a preview */
  done: boolean;
  /** what was done, or would be, for people */
  sentences: string[];
  /** in a preview: why it would be refused now */
  refused?: string;
  /** what is lost or disturbed by it, in numbers */
  effect?: Effect;
}

export interface Effect {
  /** how many it concerns */
  partitions: number;
  /** about how many are lost; null if unknown, and if none can be */
  records: number | null;
  /** that are lost; null if unknown, and if none can be */
  bytes: number | null;
  /** that it concerns, of those that you may see, at most 20 */
  groups: string[];
  /** brokers whose groups are not among these */
  incomplete?: Silent[];
  /** how many there are besides these */
  moreGroups: number;
  /** of groups, that are disturbed */
  members: number;
}

export interface Elsewhere {
  partition: number;
  /** -1 if none does */
  broker: number;
}

export interface Endpoint {
  name: string;
  host: string;
  port: number;
}

export interface Event {
  time: Time;
  kind: string;
  text: string;
  /** what the broker wrote to the journal */
  entry: JournalRecord;
}

export interface Explanation {
  name: string;
  /** Dead if there is no such group any more */
  state: string;
  /** what the group is at this moment */
  text: string;
  /** whether there is a journal, without which nothing is known about the past */
  journal: boolean;
  /** how far back was looked */
  sinceSeconds: number;
  rebalanceCount: number;
  /** the rebalance that goes on */
  underWay: UnderWay | null;
  /** the latest first */
  rebalances: Rebalance[];
  /** on static members that restarted without a rebalance */
  quietRestarts?: string;
  eventCount: number;
  /** what else happened, the latest first */
  events: Event[];
  /** what is odd now, what hurts most first */
  findings: Finding[];
  /** more is in the journal of this time than was read of it, the latest part: there were at least so many rebalances and events */
  partly: boolean;
  /** brokers whose part of the journal is not in the answer, so that not all of the past is */
  incomplete: Silent[];
}

export interface Finding {
  id: string;
  text: string;
  /** what to do */
  change: string;
}

export interface GroupDetail {
  name: string;
  /** classic or consumer */
  type: string;
  /** in Kafka's words */
  state: string;
  protocolType: string;
  assignor: string;
  /** of a consumer group */
  epoch: number | null;
  /** of a consumer group: which epoch members are on their way to */
  targetEpoch: number | null;
  coordinator: Coordinator | null;
  members: Member[];
  /** by topic and number, of topics that you may see */
  partitions: GroupPartition[];
  /** topics of the group that you may not see */
  hiddenTopics: number;
  /** in records; null if a part is not known, and if you may not see all of its topics */
  totalLag: number | null;
  /** it may be more: a count ended early */
  totalLagAtLeast: boolean;
  /** partitions without a committed offset, which have no lag */
  uncommitted: number;
  /** what the last look at all groups found, all topics added up; null if it has not seen this one, and if you may not see all of its topics */
  watched: GroupWatch | null;
}

export interface GroupList {
  /** when the groups were looked at; null before the first look, which comes within seconds of a start */
  at: Time | null;
  /** in the order that was asked for */
  groups: GroupRow[];
  /** what to give as after for the next page; absent on the last */
  next?: string;
  /** how many groups fit the filters; null on further pages */
  matched: number | null;
  /** how many groups there are; null if you may not see all */
  total: number | null;
  /** brokers whose groups are not in the list */
  incomplete: Silent[];
}

export interface GroupPartition {
  topic: string;
  partition: number;
  committed: Offset | null;
  logStartOffset: Offset | null;
  /** the high watermark */
  logEndOffset: Offset | null;
  /** in records; null without a committed offset, and if it is not known */
  lag: number | null;
  /** it may be more: the count ended early, or is an estimate */
  lagAtLeast: boolean;
  /** the age of the first unread record when groups were last looked at */
  lagSeconds: number | null;
  /** the member id of who has it */
  owner: string | null;
  /** no-owner, not-fetching, not-committing, stopped, stalled or rewound; empty if all is well */
  verdict: string;
  /** members that died at the committed offset, one after the other; 0 unless a record is suspected */
  deaths: number;
  /** when retention deletes the first unread record at the earliest; null if never */
  marginSeconds: number | null;
  /** when it will at the present pace; null if not */
  overtakenInSeconds: number | null;
  /** that matters: it may do so at any moment, or will within a day and the group is far behind */
  overtaken: boolean;
}

export interface GroupRow {
  name: string;
  /** classic or consumer */
  type: string;
  /** in Kafka's words */
  state: string;
  members: number;
  /** with a committed offset */
  partitions: number;
  /** in records */
  lag: number;
  /** a part of the lag is not known, for want of a leader */
  lagUnknown: boolean;
  /** a part of the lag was estimated */
  lagApproximate: boolean;
  /** the age of the oldest first unread record */
  lagSeconds: number;
  /** the largest lagSeconds of each of the last minutes, at most 30 of them, the oldest first; -1 where nothing is known; empty while the lag has never changed */
  recentLagSeconds: number[];
  /** how long it takes to catch up; 0 without lag, null if it does not or unknown */
  catchUpSeconds: number | null;
  /** how it gets on: caught-up, catching-up, keeping-up, not-catching-up, held-back (by an open transaction), no-members, too-early (to say) or unknown */
  pace: string;
  /** the same in words, as in 5m for when it will have caught up */
  paceText: string;
  /** partitions that stand still though the group has members */
  stuck: number;
  /** partitions with a record that may kill whoever reads it */
  poison: number;
  /** when the last rebalance ended */
  rebalanced: Time | null;
  /** of that rebalance */
  cause: string;
  /** what is wrong, worst first */
  findings: string[];
  /** that it reads or has committed, of those that you may see */
  topics: string[];
}

export interface GroupWatch {
  at: Time;
  lag: number;
  lagUnknown: boolean;
  lagApproximate: boolean;
  lagSeconds: number;
  /** it may be older */
  lagSecondsAtLeast: boolean;
  /** null before it was watched for long enough */
  consumedPerSecond: number | null;
  producedPerSecond: number | null;
  /** caught-up, catching, not-catching or unknown */
  catchUp: string;
  /** how long it takes, if it is catching */
  catchUpSeconds: number | null;
  /** how it gets on: caught-up, catching-up, keeping-up, not-catching-up, held-back (by an open transaction), no-members, too-early (to say) or unknown */
  pace: string;
  /** the same in words */
  paceText: string;
  /** partitions that stand still though the group has members */
  stuck: number;
  /** partitions with a record that may kill whoever reads it */
  poison: number;
  /** when retention deletes the first unread record at the earliest; null if never */
  marginSeconds: number | null;
  /** when it will at the present pace; null if not */
  overtakenInSeconds: number | null;
  /** what is wrong, worst first */
  findings: string[];
}

export interface Health {
  /** ok, or unavailable if there are problems */
  status: string;
  /** the broker's node id */
  node: number;
  /** the cluster id */
  cluster?: string;
  /** where records are kept */
  store: string;
  /** what is wrong, in sentences */
  problems?: string[];
}

export interface History {
  group: string;
  /** how far apart the points are; of those of which nothing is known there is none */
  stepSeconds: number;
  /** the oldest first; none if you may not see all topics of the group */
  points: HistoryPoint[];
  /** topics of the group that you may not see */
  hiddenTopics: number;
  topic?: string;
  partition?: number;
  /** where the group was in the partition, the oldest first */
  positions?: PositionInTime[];
}

export interface HistoryPoint {
  at: Time;
  /** the largest of the time up to the next point */
  lag: number;
  lagSeconds: number;
}

export interface Journal {
  /** whether there is a journal: it begins with the first rebalance */
  kept: boolean;
  /** how far back was searched */
  since: Time;
  /** the oldest first */
  entries: JournalEntry[];
  /** there is more than these entries: the search found more than the limit, of which these are the latest, or ended before it had seen everything; look less far back, or at one group */
  partly: boolean;
  /** brokers whose entries are not in the list */
  incomplete: Silent[];
}

export interface JournalEntry {
  time: Time;
  group: string;
  kind: string;
  /** the group epoch of a consumer group */
  generation: number;
  /** who and why, in a line */
  text: string;
  /** what the broker wrote to the journal; topics that you may not see are (hidden) */
  entry: JournalRecord;
}

export interface JournalRecord {
  time: Time;
  group: string;
  kind: string;
  state: string;
  generation: number;
  protocol?: string;
  triggers?: Trigger[];
  triggerCount?: number;
  started?: Time;
  /** in nanoseconds */
  joinNs?: number;
  /** in nanoseconds */
  syncNs?: number;
  slowest?: Late[];
  missed?: Absent[];
  missedCount?: number;
  waiting?: Absent[];
  waitingCount?: number;
  leader?: Who;
  membersBefore: number;
  membersAfter: number;
  moves?: Move[];
  moveCount?: number;
  partitionCount?: number;
  cause?: string;
  by?: Who;
  topics?: TopicCount[];
  topicCount?: number;
  type?: string;
  targetEpoch?: number;
  protocolBefore?: string;
  shares?: Share[];
  shareCount?: number;
  revokes?: Revoke[];
  revokeCount?: number;
  held?: Late[];
  suspects?: Suspect[];
  suspectCount?: number;
  reset?: Reset;
}

export interface Late {
  member?: string;
  clientId?: string;
  host?: string;
  instanceId?: string;
  /** in nanoseconds */
  waitedNs: number;
}

export interface LoginRequest {
  /** the name of a user */
  user: string;
  password: string;
}

export interface Member {
  memberId: string;
  /** a short name, which no other member has */
  name: string;
  clientId: string;
  host: string;
  /** of a static member */
  instanceId: string | null;
  /** that it subscribes to; null while that is not known */
  topics: string[] | null;
  /** null while that is not known */
  assigned: Assigned[] | null;
  /** the regular expression that it subscribes to */
  pattern: string | null;
  /** of a member of a consumer group */
  epoch: number | null;
  /** what a member of a consumer group is to have */
  target: Assigned[] | null;
  /** it uses the classic protocol in a consumer group */
  classic: boolean;
  /** what it was told to give up, and has not */
  revoking: Assigned[] | null;
  /** it waits for others to give up partitions */
  waits: boolean;
  /** when it was told, or since when it waits */
  since: Time | null;
  /** when it is removed unless it has given them up */
  until: Time | null;
}

export interface MemberToRemove {
  /** of a member; absent for a static one */
  memberId?: string;
  /** of a static member */
  instanceId?: string;
  /** for the journal */
  reason?: string;
}

export interface MissingACL {
  /** who lacks it */
  principal: string;
  /** what they may not do, under Kafka's name */
  operation: string;
  /** TOPIC, GROUP or CLUSTER */
  resourceType: string;
  /** which one */
  resourceName: string;
  /** the command that gives it */
  command?: string;
}

export interface MorePartitions {
  /** how many there are afterwards */
  count: number;
}

export interface Move {
  topic: string;
  partition: number;
  from?: string;
  to?: string;
}

export interface Moved {
  topic: string;
  partition: number;
  before: number;
  after: number;
}

export interface NeedyRow {
  name: string;
  state: string;
  lag: number;
  lagSeconds: number;
  /** what is wrong, worst first */
  findings: string[];
  /** the worst of it, in a sentence */
  text: string;
}

export interface NewHeader {
  key: string;
  /** absent for none */
  value?: string;
}

export interface NewPassword {
  password: string;
  /** SCRAM-SHA-256, SCRAM-SHA-512; absent for those that the user has, or both */
  mechanisms?: string[];
}

export interface NewRecord {
  /** absent for the one of the key, as Kafka's own clients choose it, or any without a key */
  partition?: number;
  /** absent for none */
  key?: string;
  /** absent for none, which is a tombstone where a topic is compacted */
  value?: string;
  headers?: NewHeader[];
  /** of key, value and the values of headers: text, which is meant if absent, or base64 */
  encoding?: string;
}

export interface NewTopic {
  name: string;
  /** how many; absent for num.partitions of the broker */
  partitions?: number;
  /** settings of the topic, under Kafka's names */
  configs?: Record<string, string>;
  /** the same as preview */
  validateOnly?: boolean;
}

export interface OffsetsToForget {
  topic: string;
  /** absent for all of the topic */
  partitions?: number[];
}

export interface Overview {
  /** when the groups were looked at; null before the first look */
  at: Time | null;
  health: Health;
  /** how many there are; null if you may not see all */
  groups: number | null;
  /** how many there are, internal ones left out, of those that you may see */
  topics: number;
  /** how many groups need attention */
  needing: number;
  /** groups that need attention, worst first */
  worst: NeedyRow[];
  /** other brokers that are not well */
  unwell: Health[];
  /** brokers whose groups are not in the list */
  incomplete: Silent[];
}

export interface PartitionOffset {
  partition: number;
  /** of the first record that stays; -1 for none */
  offset: Offset;
}

export interface Parts {
  topic: string;
  partitions: number[];
}

export interface PositionInTime {
  at: Time;
  committed: Offset;
  lagSeconds: number;
}

export interface Problem {
  /** what is wrong, as a word for programs */
  error: string;
  /** what is wrong, as a sentence for people */
  message: string;
  /** the right that lacks, if one does */
  missingAcl?: MissingACL;
  /** what the Kafka protocol calls it, if that refused, as in TOPIC_ALREADY_EXISTS */
  kafkaError?: string;
  /** when to try again, as in the Retry-After header, if a quota is exceeded */
  retryAfterSeconds?: number;
}

export interface Produced {
  topic: string;
  partition: number;
  offset: Offset;
}

export interface QuotaList {
  quotas: QuotaRow[];
}

export interface QuotaPart {
  /** user, client-id or ip */
  type: string;
  /** null for all that have none of their own */
  name: string | null;
}

export interface QuotaRow {
  /** whose they are */
  entity: QuotaPart[];
  values: QuotaValue[];
}

export interface QuotaValue {
  /** producer_byte_rate, consumer_byte_rate, controller_mutation_rate, request_percentage or connection_creation_rate */
  name: string;
  /** a second, or percent */
  value: number;
}

export interface Rebalance {
  started: Time;
  settled: Time;
  /** the group epoch of a consumer group */
  generation: number;
  tookSeconds: number;
  joinSeconds: number;
  syncSeconds: number;
  membersBefore: number;
  membersAfter: number;
  partitionsMoved: number;
  partitions: number;
  text: string[];
  /** what the broker wrote to the journal */
  entry: JournalRecord;
}

export interface RecordBytes {
  /** how many there are */
  size: number;
  /** if they are text in UTF-8 */
  text: string;
  /** if they are not */
  base64?: string;
  /** how many are here */
  shown: number;
  /** the text is a JSON document */
  json: boolean;
  /** if they begin as those do that a schema registry knows: a zero byte and four for the id */
  schemaId: number | null;
}

export interface RecordHeader {
  name: string;
  value: RecordBytes | null;
}

export interface RecordsBefore {
  /** each once */
  partitions: PartitionOffset[];
}

export interface RecordsLine {
  /** a record that was found */
  record?: TopicRecord;
  /** how far the search has got */
  progress?: SearchProgress;
  /** the last line */
  end?: SearchEnd;
}

export interface Reset {
  plan: string;
  method?: string;
  reason?: string;
  moved?: Moved[];
}

export interface ResetAsk {
  /** absent for all topics that the group has committed offsets of */
  topic?: string;
  /** of the topic; absent for all */
  partitions?: number[];
  /** beginning, end, offset, timestamp or shift */
  to: string;
  /** the offset; the time as 2026-11-16T21:50:00Z, in milliseconds since 1970, or as -1h for an hour ago; how many offsets to shift by, back with a minus */
  value?: string;
}

export interface ResetMove {
  topic: string;
  partition: number;
  /** that of the plan: if it is another by now, nothing is done */
  committed: Offset | null;
  to: Offset;
}

export interface ResetOrder {
  /** each once, as the plan has them; those that it leaves alone are left out */
  partitions: ResetMove[];
}

export interface ResetPartition {
  topic: string;
  partition: number;
  /** the offset that is committed now; null if none is */
  committed: Offset | null;
  /** what it becomes; null if it is left alone */
  to: Offset | null;
  /** null if the partition has no leader */
  logStartOffset: Offset | null;
  /** the high watermark */
  logEndOffset: Offset | null;
  /** how many records are read again; null if unknown */
  again: number | null;
  /** how many unread records are skipped; null if unknown */
  skipped: number | null;
  /** what was asked for lies outside of the log, so that it is moved to its nearest end */
  clamped: boolean;
  /** what is special */
  note?: string;
}

export interface ResetPlan {
  group: string;
  /** of the group, in Kafka's words; Dead if there is none, and the reset creates it */
  state: string;
  members: number;
  /** by topic and number */
  partitions: ResetPartition[];
  /** what would be done, for people */
  sentences: string[];
  /** why it would be refused now */
  refused?: string;
}

export interface Revoke {
  member?: string;
  clientId?: string;
  host?: string;
  instanceId?: string;
  partitions?: Parts[];
  partitionCount?: number;
  for?: Who[];
  forCount?: number;
  /** in nanoseconds */
  timeoutNs?: number;
  /** in nanoseconds */
  heldNs?: number;
}

export interface SearchEnd {
  /** how many records were looked at */
  searched: number;
  /** how many there are to be looked at; null if unknown */
  total: number | null;
  /** there may be fewer: not every offset has a record */
  about: boolean;
  found: number;
  /** that this part of the search has read */
  bytes: number;
  /** end: everything was searched; limit, bytes, page, time: it has found or read as much as it may, or taken as long; quota: the quota consumer_byte_rate of who reads is used up; failure */
  why: string;
  /** what to give as after to go on; absent if everything was searched */
  next?: string;
  /** partitions that were not searched, because another broker leads them */
  elsewhere: Elsewhere[];
  /** partitions that could not be read to their end */
  failures: Unread[];
  /** how many records were too large to be looked at whole */
  cut: number;
  /** how many record batches could not be read */
  unreadable: number;
  /** on how many records the jq expression failed */
  jqFailed: number;
  /** why, for the first */
  jqFailure?: string;
  /** why the search could not go on */
  problem?: Problem;
}

export interface SearchProgress {
  /** how many records were looked at */
  searched: number;
  /** how many there are to be looked at; null if unknown */
  total: number | null;
  /** there may be fewer: not every offset has a record */
  about: boolean;
  found: number;
  /** that this part of the search has read */
  bytes: number;
}

export interface Session {
  /** who is logged in; null without a login */
  user: string | null;
  /** how: none, basic, cookie or bearer */
  login: string;
  /** whoever wants to know anything else has to log in */
  loginWanted: boolean;
  /** how people can log in: password, oidc */
  ways: string[];
  /** when the login ends by itself; null if it does not */
  ends: Time | null;
  /** what is open to them; rights decide the rest */
  may: Abilities;
  /** why they may change nothing, as a sentence; null if they may */
  readOnly: string | null;
}

export interface Setting {
  name: string;
  /** null if it is a secret */
  value: string | null;
  /** default, start (a file, a flag or the environment) or altered (while the broker ran) */
  source: string;
  default: string;
  /** it can be changed only by a new start */
  static: boolean;
  doc: string;
}

export interface SettingList {
  /** by name */
  settings: Setting[];
}

export interface Share {
  member?: string;
  clientId?: string;
  host?: string;
  instanceId?: string;
  before: number;
  after: number;
}

export interface Silent {
  /** its node id */
  broker: number;
  /** why */
  message: string;
}

export interface Suspect {
  topic: string;
  partition: number;
  committed: number;
  end: number;
  deaths: number;
}

export interface TopicChange {
  topic: string;
  kind: string;
  partitionsBefore?: number;
  partitionsAfter?: number;
}

export interface TopicChanges {
  list?: TopicChange[];
  count?: number;
}

export interface TopicConfig {
  name: string;
  /** that holds */
  value: string;
  /** that holds if the topic has none of its own: the broker's */
  default: string;
  /** it was set for this topic */
  set: boolean;
  /** the values that it can have, each of them if it is a list; empty if they are not counted */
  oneOf: string[];
  doc: string;
}

export interface TopicConfigs {
  /** by name */
  configs: TopicConfig[];
}

export interface TopicCount {
  topic: string;
  partitions: number;
  back?: number;
  forward?: number;
}

export interface TopicDetail {
  /** when the partitions were looked at; null before the first look */
  at: Time | null;
  name: string;
  id: string;
  internal: boolean;
  partitions: TopicPartition[];
  /** those that were set for this topic; null unless you may DESCRIBE_CONFIGS the topic */
  settings: TopicSetting[] | null;
  /** that read it or have committed offsets of it, of those that you may see, by name */
  groups: TopicGroup[];
  /** how many there are besides these; /groups?topic= lists all */
  moreGroups: number;
  /** what the Redis keys of its streams begin with; the number of the partition follows. null if Redis clients cannot read its records */
  streams: string | null;
  /** brokers whose partitions and groups are not in the answer */
  incomplete: Silent[];
}

export interface TopicGroup {
  name: string;
  state: string;
  members: number;
  /** of the topic, with a committed offset */
  partitions: number;
  /** in this topic, in records */
  lag: number;
  /** a part of the lag is not known */
  lagUnknown: boolean;
  /** in this topic */
  lagSeconds: number;
}

export interface TopicList {
  /** when the topics were looked at; null before the first look */
  at: Time | null;
  /** in the order that was asked for */
  topics: TopicRow[];
  /** what to give as after for the next page; absent on the last */
  next?: string;
  /** how many topics fit the filters */
  matched: number;
  /** brokers whose sizes and groups are not in the numbers */
  incomplete: Silent[];
}

export interface TopicPartition {
  partition: number;
  /** the node id of its broker; null if there is none */
  leader: number | null;
  /** null unless this broker leads it */
  logStartOffset: Offset | null;
  /** the high watermark */
  logEndOffset: Offset | null;
  /** what readers of committed records may read up to */
  lastStableOffset: Offset | null;
  /** about how many there are; null if offsets do not tell, as on Redis */
  records: number | null;
  bytes: number | null;
}

export interface TopicRecord {
  partition: number;
  offset: Offset;
  /** null if it has none */
  timestamp: Time | null;
  /** CreateTime: the producer's; LogAppendTime: the broker's */
  timestampType: string;
  /** null if it has none, which is not the same as an empty one */
  key: RecordBytes | null;
  /** null for a tombstone */
  value: RecordBytes | null;
  headers: RecordHeader[];
  /** committed, aborted, open, or waiting behind one that is open; empty if it is of none */
  transaction: string;
  /** of a producer with transactions or idempotence */
  producerId: Offset | null;
  /** it was too large to be looked at whole */
  cut: boolean;
  /** what jq made of it, as JSON, unless that is just true */
  result?: string;
}

export interface TopicRow {
  name: string;
  id: string;
  internal: boolean;
  partitions: number;
  /** partitions without a leader */
  leaderless: number;
  /** of the partitions that this broker leads */
  bytes: number;
  /** that read it or have committed offsets of it, of those that you may see */
  groups: number;
}

export interface TopicSetting {
  name: string;
  value: string;
}

export interface Trigger {
  kind: string;
  member?: string;
  clientId?: string;
  host?: string;
  instanceId?: string;
  reason?: string;
  was?: string;
  /** in nanoseconds */
  silentNs?: number;
  new?: boolean;
  by?: Who;
  change?: Change;
  request?: string;
  parked?: boolean;
  bytes?: number;
  maxBytes?: number;
  had?: number;
  revoke?: Revoke;
  topics?: TopicChanges;
}

export interface UnderWay {
  started: Time;
  text: string[];
}

export interface Unread {
  partition: number;
  message: string;
}

export interface UserList {
  /** by name */
  users: UserRow[];
}

export interface UserRow {
  name: string;
  /** by which the user can log in; by PLAIN, too, where a listener has it */
  mechanisms: string[];
}

export interface Who {
  member?: string;
  clientId?: string;
  host?: string;
  instanceId?: string;
}

export interface OverviewQuery {
  /** how many groups that need attention, at most 1000; 20 if not given */
  limit?: number;
}

export interface GroupsQuery {
  /** a part of the name, in large or small letters */
  q?: string;
  /** only groups in one of these states */
  state?: string[];
  /** only groups of these types: classic, consumer */
  type?: string[];
  /** only groups with one of these findings; any for all that have some */
  finding?: string[];
  /** only groups that read this topic, or have committed offsets of it */
  topic?: string;
  /** name, lag, lagSeconds, catchUp, members, state, type, stuck, rebalanced or findings; with a minus for the reverse */
  sort?: string;
  /** how many, at most 1000; 50 if not given */
  limit?: number;
  /** next of the page before */
  after?: string;
}

export type None = Record<string, never>;

export interface HistoryQuery {
  /** how far apart the points of the group are: 10s (for half an hour), 2m (6 hours) or 16m (48 hours); 10s if not given */
  resolution?: string;
  /** with partition: where the group was in that one, a point a minute */
  topic?: string;
  /** of the topic */
  partition?: number;
}

export interface GroupJournalQuery {
  /** how far to look back: 30m, 24h, 7d; 24h if not given */
  since?: string;
  /** the latest so many entries, at most 1000; 100 if not given */
  limit?: number;
  /** also the start of rebalances whose end is there */
  all?: boolean;
}

export interface ExplainQuery {
  /** how far to look back: 30m, 24h, 7d; 1h if not given */
  since?: string;
  /** the latest so many rebalances, and as many other events, at most 1000; 3 if not given */
  limit?: number;
}

export interface TopicsQuery {
  /** a part of the name, in large or small letters */
  q?: string;
  /** also the topics in which the broker keeps what it needs itself */
  internal?: boolean;
  /** name, partitions, bytes or groups; with a minus for the reverse */
  sort?: string;
  /** how many, at most 1000; 50 if not given */
  limit?: number;
  /** next of the page before */
  after?: string;
}

export interface JournalSearch {
  /** a part of the group's name, in large or small letters */
  q?: string;
  /** only entries of these kinds: rebalance-settled, group-deleted … */
  kind?: string[];
  /** only entries with one of these triggers or causes: joined, left, expired … */
  cause?: string[];
  /** only entries that name this member id, client id, host or instance id */
  member?: string;
  /** how far to look back: 30m, 24h, 7d; 1h if not given */
  since?: string;
  /** the latest so many entries, at most 1000; 100 if not given */
  limit?: number;
}

export interface ACLsQuery {
  /** only rules for this one, as in User:alice */
  principal?: string;
  /** only rules about TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID */
  resource?: string;
  /** only rules that match the resource of this name */
  name?: string;
}

export interface WhyQuery {
  /** as in User:alice, or alice */
  principal?: string;
  /** READ, WRITE … */
  operation?: string;
  /** TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID */
  resource?: string;
  /** of the resource; not of the cluster */
  name?: string;
  /** where they come from; if not given, only rules for any host count */
  host?: string;
}

export interface SettingsQuery {
  /** only those that were set */
  set?: boolean;
}

export interface ActQuery {
  /** do nothing, and say what would be done */
  preview?: boolean;
}

export interface EventsQuery {
  /** what to be told of: overview, groups, topics, or group: and a name; given once for each, at most 32 */
  watch?: string[];
}

export interface RecordsQuery {
  /** where the search begins: beginning, end, offset:4711, time:2026-11-17T01:30:00Z, or time:-1h for an hour ago; beginning if not given, end if it follows */
  from?: string;
  /** where it ends, likewise; the end as it is now if not given */
  to?: string;
  /** newest or oldest first, by timestamp; newest if not given, oldest if it follows */
  order?: string;
  /** only these partitions: 0,3,7-9; at most 128 */
  partition?: string[];
  /** a text for the key */
  key?: string;
  /** how the key is compared with it: equals, contains, regexp (RE2); or null, exists; equals if not given */
  keyIs?: string;
  /** producers choose partitions by murmur2 of the key, as Kafka's own do: only the partition that the key belongs to is searched */
  hashed?: boolean;
  /** a text for the value */
  value?: string;
  /** how it is compared, as with keys; contains if not given; null finds tombstones */
  valueIs?: string;
  /** the name of a header */
  header?: string;
  /** a text for its value; it need only be there if not given */
  headerValue?: string;
  /** how it is compared; equals if not given */
  headerIs?: string;
  /** a JSON path in the value: $.order.lines[0].sku, with [*] for all */
  path?: string;
  /** a text for what is there; it need only be there if not given */
  pathValue?: string;
  /** how it is compared; equals if not given */
  pathIs?: string;
  /** an expression of jq over {partition, offset, timestamp, key, value, headers} that is neither false nor null; what it makes of a record is in result */
  jq?: string;
  /** read_uncommitted or read_committed; all records, with what has become of their transactions, if not given */
  isolation?: string;
  /** how many, at most 1000; 50 if not given */
  limit?: number;
  /** how many bytes of a key, a value or a header are shown, at most 1048576; 16384 if not given */
  bytes?: number;
  /** go on with records as they come, for ten minutes at most */
  follow?: boolean;
  /** next of the part before, with the same question */
  after?: string;
}

/** What each path below /api/v1 asks for and answers. */
export interface Routes {
  /** How the broker is, and which groups need attention, worst first, with a sentence each. */
  overview: { path: "/overview"; query: OverviewQuery; answer: Overview };
  /** Groups by filter and order, page by page. */
  groups: { path: "/groups"; query: GroupsQuery; answer: GroupList };
  /** A group as it is now: members, partitions, offsets, lag and what is wrong with it. */
  group: { path: "/groups/{group}"; query: None; answer: GroupDetail };
  /** The lag of a group over time, or where it was in a partition. */
  groupHistory: { path: "/groups/{group}/history"; query: HistoryQuery; answer: History };
  /** What happened to a group, and why: the entries of its journal, the oldest first. */
  groupJournal: { path: "/groups/{group}/journal"; query: GroupJournalQuery; answer: Journal };
  /** Why a group rebalanced, what is odd about it and what to change: what muster groups explain prints. */
  groupExplain: { path: "/groups/{group}/explain"; query: ExplainQuery; answer: Explanation };
  /** Topics by name and order, page by page. */
  topics: { path: "/topics"; query: TopicsQuery; answer: TopicList };
  /** A topic: its partitions, settings, and the groups that read it. */
  topic: { path: "/topics/{topic}"; query: None; answer: TopicDetail };
  /** The settings of a topic, and what they would be by default. */
  topicConfigs: { path: "/topics/{topic}/configs"; query: None; answer: TopicConfigs };
  /** The brokers of the cluster. */
  brokers: { path: "/brokers"; query: None; answer: BrokerList };
  /** What happened to groups, and why: the latest entries of the journal, the oldest first. */
  journal: { path: "/journal"; query: JournalSearch; answer: Journal };
  /** The users, and how they can log in. */
  users: { path: "/users"; query: None; answer: UserList };
  /** The rules of who may do what. */
  acls: { path: "/acls"; query: ACLsQuery; answer: ACLList };
  /** Whether a user may do something, and which rule decides: what muster acls why prints. */
  aclsWhy: { path: "/acls/why"; query: WhyQuery; answer: ACLWhy };
  /** The quotas of users, clients and addresses. */
  quotas: { path: "/quotas"; query: None; answer: QuotaList };
  /** Who is logged in, how one can log in, and whether anything may be changed here. */
  session: { path: "/session"; query: None; answer: Session };
  /** The settings of the broker. Passwords are not shown. */
  settings: { path: "/settings"; query: SettingsQuery; answer: SettingList };
  /** Tells of changes as they come, as server-sent events: changed with what to read again, reset after a gap, when all may have changed. */
  events: { path: "/events"; query: EventsQuery; answer: Changed };
  /** Records of a topic, as they are found, a JSON document a line: record, progress, and at last end, with what goes on where this part of the search stopped. */
  records: { path: "/topics/{topic}/records"; query: RecordsQuery; answer: RecordsLine };
}

/** What can be done below /api/v1, what it takes and answers. */
export interface Acts {
  /** Creates a topic. */
  createTopic: { method: "POST"; path: "/topics"; query: ActQuery; body: NewTopic; answer: Done };
  /** Deletes a topic with its records. */
  deleteTopic: { method: "DELETE"; path: "/topics/{topic}"; query: ActQuery; body: null; answer: Done };
  /** Adds partitions to a topic. */
  addPartitions: { method: "POST"; path: "/topics/{topic}/partitions"; query: ActQuery; body: MorePartitions; answer: Done };
  /** Changes settings of a topic. */
  alterTopic: { method: "PUT"; path: "/topics/{topic}/configs"; query: ActQuery; body: ChangedConfigs; answer: Done };
  /** Produces a record. */
  produce: { method: "POST"; path: "/topics/{topic}/records"; query: None; body: NewRecord; answer: Produced };
  /** Deletes the records of partitions before an offset. */
  deleteRecords: { method: "DELETE"; path: "/topics/{topic}/records"; query: ActQuery; body: RecordsBefore; answer: Done };
  /** Says what a reset of a group's committed offsets would do, and does nothing. */
  planReset: { method: "POST"; path: "/groups/{group}/resets"; query: None; body: ResetAsk; answer: ResetPlan };
  /** Moves committed offsets of a group without members, as planned. It is refused if they are not those of the plan any more. */
  executeReset: { method: "POST"; path: "/groups/{group}/resets/execute"; query: None; body: ResetOrder; answer: Done };
  /** Deletes a group without members, and what it has committed. */
  deleteGroup: { method: "DELETE"; path: "/groups/{group}"; query: ActQuery; body: null; answer: Done };
  /** Deletes committed offsets of a group, of topics that no member subscribes to. */
  deleteOffsets: { method: "DELETE"; path: "/groups/{group}/offsets"; query: ActQuery; body: OffsetsToForget; answer: Done };
  /** Removes a member from a group, which then rebalances. One that still runs joins again. */
  removeMember: { method: "POST"; path: "/groups/{group}/members/remove"; query: ActQuery; body: MemberToRemove; answer: Done };
  /** Sets the password of a user, who is created if there is none of the name. */
  setPassword: { method: "PUT"; path: "/users/{user}"; query: ActQuery; body: NewPassword; answer: Done };
  /** Deletes a user. */
  deleteUser: { method: "DELETE"; path: "/users/{user}"; query: ActQuery; body: null; answer: Done };
  /** Adds a rule. */
  addAcl: { method: "POST"; path: "/acls"; query: ActQuery; body: ACL; answer: Done };
  /** Removes a rule. */
  removeAcl: { method: "DELETE"; path: "/acls"; query: ActQuery; body: ACL; answer: Done };
  /** Changes quotas. */
  alterQuota: { method: "PUT"; path: "/quotas"; query: ActQuery; body: ChangedQuota; answer: Done };
}
