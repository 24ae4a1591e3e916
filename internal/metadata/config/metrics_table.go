package config

// metricSets are the names of metrics that dashboards know.
var metricSets = []string{"kafka_exporter", "lag_exporter", "jmx", "muster"}

// metricsDefs are the settings of /metrics.
var metricsDefs = []Def{
	{Name: "muster.metrics.sets", Type: List, Default: "kafka_exporter,lag_exporter,jmx,muster", OneOf: metricSets, Static: true, Doc: "The names under which /metrics tells what it knows: those of kafka_exporter, of kafka-lag-exporter (lag_exporter), of the JMX exporter's example for Kafka (jmx), and muster's own."},
	{Name: "muster.metrics.max.series", Type: Int, Default: "50000", Min: 1000, Max: 1_000_000, Static: true, Doc: "About how many series /metrics has at most. If there is no room for the partitions of all topics and groups, some are told of as a whole, groups with members or lag last, and others are only counted."},
	{Name: "muster.http.metrics.login", Type: Boolean, Default: "false", Static: true, Doc: "Whether /metrics needs a login where the HTTP API does: the name and password of a user, or a token. Any user may read it."},
	{Name: "muster.metrics.topics.include", Type: String, Static: true, Doc: "A regular expression of the topics that /metrics tells of; all if it is empty."},
	{Name: "muster.metrics.topics.exclude", Type: String, Static: true, Doc: "A regular expression of topics that it does not tell of."},
	{Name: "muster.metrics.groups.include", Type: String, Static: true, Doc: "A regular expression of the groups that /metrics tells of; all if it is empty."},
	{Name: "muster.metrics.groups.exclude", Type: String, Static: true, Doc: "A regular expression of groups that it does not tell of."},
}
