package metrics

import dto "github.com/prometheus/client_model/go"

// family is a metric by its place in the table.
type family uint8

// All families but those with a value of each group, which groupTable lists.
const (
	brokersFamily family = iota
	brokerInfoFamily
	topicPartitionsFamily
	currentOffsetFamily
	oldestOffsetFamily
	leaderFamily
	replicasFamily
	inSyncFamily
	preferredFamily
	underReplicatedFamily
	groupLagFamily
	groupOffsetFamily
	groupLagSumFamily
	groupOffsetSumFamily

	latestOffsetFamily
	earliestOffsetFamily
	lagOffsetFamily
	lagRecordsFamily
	lagSecondsFamily
	lagTopicSumFamily

	messagesInFamily
	bytesInFamily
	bytesOutFamily
	produceRequestsFamily
	fetchRequestsFamily
	failedProducesFamily
	failedFetchesFamily
	leaderCountFamily
	partitionCountFamily
	underReplicatedCountFamily
	underMinISRFamily
	activeControllerFamily
	offlinePartitionsFamily
	uncleanElectionsFamily
	brokerStateFamily
	logSizeFamily
	logStartFamily
	logEndFamily
	requestsFamily
	totalTimeFamily
	connectionsFamily
	numGroupsFamily
	numOffsetsFamily
	numStableFamily
	numEmptyFamily
	numPreparingFamily
	numCompletingFamily

	rebalancesFamily
	rebalanceTookFamily
	loginsFamily
	denialsFamily
	throttledFamily
	journalDroppedFamily
	panicsFamily
	storeUpFamily
	diskSizeFamily
	diskFreeFamily
	requestTookFamily
	flushTookFamily
	droppedFamily
	buildInfoFamily
	families
)

const (
	gauge     = dto.MetricType_GAUGE
	counter   = dto.MetricType_COUNTER
	histogram = dto.MetricType_HISTOGRAM
)

// entry is what is known of a family. docs/metrics.md has the same table, and a test
// compares the two.
type entry struct {
	set    Set
	kind   dto.MetricType
	name   string
	labels string // Their names, with spaces between.
	help   string
}

// table has all families: first those that have a name in the code, then those of groups.
var table = append(fixed[:], groupEntries()...)

var fixed = [families]entry{
	brokersFamily:         {KafkaExporter, gauge, "kafka_brokers", "", "How many brokers are alive."},
	brokerInfoFamily:      {KafkaExporter, gauge, "kafka_broker_info", "id address", "1 for each broker that is alive."},
	topicPartitionsFamily: {KafkaExporter, gauge, "kafka_topic_partitions", "topic", "How many partitions a topic has."},
	currentOffsetFamily:   {KafkaExporter, gauge, "kafka_topic_partition_current_offset", "topic partition", "The high watermark of a partition."},
	oldestOffsetFamily:    {KafkaExporter, gauge, "kafka_topic_partition_oldest_offset", "topic partition", "The log start offset of a partition."},
	leaderFamily:          {KafkaExporter, gauge, "kafka_topic_partition_leader", "topic partition", "The node id of the leader, -1 if there is none."},
	replicasFamily:        {KafkaExporter, gauge, "kafka_topic_partition_replicas", "topic partition", "How many replicas a partition has: one, the leader, as Metadata tells clients."},
	inSyncFamily:          {KafkaExporter, gauge, "kafka_topic_partition_in_sync_replica", "topic partition", "How many of them are in sync."},
	preferredFamily:       {KafkaExporter, gauge, "kafka_topic_partition_leader_is_preferred", "topic partition", "1 if the leader is the preferred replica, which the only one is."},
	underReplicatedFamily: {KafkaExporter, gauge, "kafka_topic_partition_under_replicated_partition", "topic partition", "1 if replicas are not in sync."},
	groupLagFamily:        {KafkaExporter, gauge, "kafka_consumergroup_lag", "consumergroup topic partition", "Records that a group has yet to read."},
	groupOffsetFamily:     {KafkaExporter, gauge, "kafka_consumergroup_current_offset", "consumergroup topic partition", "The committed offset of a group."},
	groupLagSumFamily:     {KafkaExporter, gauge, "kafka_consumergroup_lag_sum", "consumergroup topic", "Records that a group has yet to read of a topic."},
	groupOffsetSumFamily:  {KafkaExporter, gauge, "kafka_consumergroup_current_offset_sum", "consumergroup topic", "The sum of the committed offsets of a group in a topic."},

	latestOffsetFamily:   {LagExporter, gauge, "kafka_partition_latest_offset", "cluster_name topic partition", "The high watermark of a partition."},
	earliestOffsetFamily: {LagExporter, gauge, "kafka_partition_earliest_offset", "cluster_name topic partition", "The log start offset of a partition."},
	lagOffsetFamily:      {LagExporter, gauge, "kafka_consumergroup_group_offset", "cluster_name group topic partition", "The committed offset of a group."},
	lagRecordsFamily:     {LagExporter, gauge, "kafka_consumergroup_group_lag", "cluster_name group topic partition", "Records that a group has yet to read."},
	lagSecondsFamily:     {LagExporter, gauge, "kafka_consumergroup_group_lag_seconds", "cluster_name group topic partition", "How long ago the first record was appended that a group has yet to read, 0 without lag."},
	lagTopicSumFamily:    {LagExporter, gauge, "kafka_consumergroup_group_topic_sum_lag", "cluster_name group topic", "Records that a group has yet to read of a topic."},

	messagesInFamily:           {JMX, counter, "kafka_server_brokertopicmetrics_messagesin_total", "topic", "Records that clients produced."},
	bytesInFamily:              {JMX, counter, "kafka_server_brokertopicmetrics_bytesin_total", "topic", "Bytes of records that clients produced, as they sent them."},
	bytesOutFamily:             {JMX, counter, "kafka_server_brokertopicmetrics_bytesout_total", "topic", "Bytes of records that clients fetched."},
	produceRequestsFamily:      {JMX, counter, "kafka_server_brokertopicmetrics_totalproducerequests_total", "topic", "Partitions that Produce requests had a batch for."},
	fetchRequestsFamily:        {JMX, counter, "kafka_server_brokertopicmetrics_totalfetchrequests_total", "topic", "Partitions that Fetch requests asked for."},
	failedProducesFamily:       {JMX, counter, "kafka_server_brokertopicmetrics_failedproducerequests_total", "topic", "Partitions for which Produce was answered with an error."},
	failedFetchesFamily:        {JMX, counter, "kafka_server_brokertopicmetrics_failedfetchrequests_total", "topic", "Partitions for which Fetch was answered with an error."},
	leaderCountFamily:          {JMX, gauge, "kafka_server_replicamanager_leadercount", "", "Partitions that this broker leads."},
	partitionCountFamily:       {JMX, gauge, "kafka_server_replicamanager_partitioncount", "", "Partitions that this broker has."},
	underReplicatedCountFamily: {JMX, gauge, "kafka_server_replicamanager_underreplicatedpartitions", "", "Partitions with replicas that are not in sync: none, since each has one."},
	underMinISRFamily:          {JMX, gauge, "kafka_server_replicamanager_underminisrpartitioncount", "", "Partitions with fewer copies than min.insync.replicas. Not told of Redis, which does not say."},
	activeControllerFamily:     {JMX, gauge, "kafka_controller_kafkacontroller_activecontrollercount", "", "1 if this broker is the controller that Metadata names."},
	offlinePartitionsFamily:    {JMX, gauge, "kafka_controller_kafkacontroller_offlinepartitionscount", "", "Partitions without a leader."},
	uncleanElectionsFamily:     {JMX, counter, "kafka_controller_controllerstats_uncleanleaderelections_total", "", "Leaders that lacked records: none, since all leaders have the same store."},
	brokerStateFamily:          {JMX, gauge, "kafka_server_kafkaserver_brokerstate", "", "1 starting, 3 running, 6 stopping."},
	logSizeFamily:              {JMX, gauge, "kafka_log_log_size", "topic partition", "Bytes of a partition."},
	logStartFamily:             {JMX, gauge, "kafka_log_log_logstartoffset", "topic partition", "The log start offset of a partition."},
	logEndFamily:               {JMX, gauge, "kafka_log_log_logendoffset", "topic partition", "The end of a partition as readers see it: the high watermark."},
	requestsFamily:             {JMX, counter, "kafka_network_requestmetrics_requests_total", "request version", "Requests that were answered."},
	totalTimeFamily:            {JMX, gauge, "kafka_network_requestmetrics_totaltimems", "request quantile", "How long requests took, in milliseconds, over the last minutes."},
	connectionsFamily:          {JMX, gauge, "kafka_server_socket_server_metrics_connection_count", "listener", "Connections of clients."},
	numGroupsFamily:            {JMX, gauge, "kafka_coordinator_group_groupmetadatamanager_numgroups", "", "Groups that this broker coordinates."},
	numOffsetsFamily:           {JMX, gauge, "kafka_coordinator_group_groupmetadatamanager_numoffsets", "", "Their committed offsets."},
	numStableFamily:            {JMX, gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupsstable", "", "Those that are Stable."},
	numEmptyFamily:             {JMX, gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupsempty", "", "Those that are Empty."},
	numPreparingFamily:         {JMX, gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", "", "Those that are PreparingRebalance."},
	numCompletingFamily:        {JMX, gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance", "", "Those that are CompletingRebalance."},

	rebalancesFamily:     {Muster, counter, "muster_group_rebalances_total", "group trigger", "Rebalances of a group by what began them, as in its journal."},
	rebalanceTookFamily:  {Muster, histogram, "muster_group_rebalance_duration_seconds", "phase", "How long the phases of rebalances took: join and sync, or reconcile in groups of the consumer protocol."},
	loginsFamily:         {Muster, counter, "muster_authentication_total", "listener mechanism result", "Logins that succeeded or failed."},
	denialsFamily:        {Muster, counter, "muster_authorization_denied_total", "operation resource_type", "What requests were denied, once for each resource of a request."},
	throttledFamily:      {Muster, counter, "muster_quota_throttle_seconds_total", "kind", "How long clients had to wait for their quotas."},
	journalDroppedFamily: {Muster, counter, "muster_journal_dropped_total", "", "Entries that are not in the journals of groups and transactions or in the audit log, since these fell behind or could not be written."},
	panicsFamily:         {Muster, counter, "muster_panics_total", "", "Defects of the broker that made a request or a coordinator panic. The log says where."},
	storeUpFamily:        {Muster, gauge, "muster_store_up", "", "1 if records can be stored, 0 if Redis is away or the storage of partitions has failed."},
	diskSizeFamily:       {Muster, gauge, "muster_disk_size_bytes", "", "The size of the volume that the data folder is on."},
	diskFreeFamily:       {Muster, gauge, "muster_disk_free_bytes", "", "What is free on it."},
	requestTookFamily:    {Muster, histogram, "muster_request_duration_seconds", "request", "How long requests took, from when they were read until the answer was written."},
	flushTookFamily:      {Muster, histogram, "muster_flush_duration_seconds", "", "How long the disk took to have records for good."},
	droppedFamily:        {Muster, gauge, "muster_metrics_series_dropped", "level", "Series that muster.metrics.max.series has no room for."},
	buildInfoFamily:      {Muster, gauge, "muster_build_info", "version revision goversion", "1, with what the broker was built from."},
}

// The names of labels.
var (
	addressLabel       = new("address")
	clusterNameLabel   = new("cluster_name")
	consumergroupLabel = new("consumergroup")
	goversionLabel     = new("goversion")
	groupLabel         = new("group")
	idLabel            = new("id")
	kindLabel          = new("kind")
	levelLabel         = new("level")
	listenerLabel      = new("listener")
	mechanismLabel     = new("mechanism")
	operationLabel     = new("operation")
	partitionLabel     = new("partition")
	phaseLabel         = new("phase")
	quantileLabel      = new("quantile")
	requestLabel       = new("request")
	resourceTypeLabel  = new("resource_type")
	resultLabel        = new("result")
	revisionLabel      = new("revision")
	topicLabel         = new("topic")
	triggerLabel       = new("trigger")
	versionLabel       = new("version")
)
