package config

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"muster/internal/assert"
)

//go:embed testdata/kafka-4-settings.txt
var kafkaSettings string

func TestEveryBrokerSettingOfKafkaIsAccepted(t *testing.T) {
	names := strings.Fields(kafkaSettings)
	assert.MustTrue(t, len(names) >= 350, "%d names", len(names))
	for _, name := range names {
		assert.True(t, BrokerDef(name) != nil, "%s is not known", name)
	}
}

func TestSettingsWithoutEffectAreTold(t *testing.T) {
	set := map[string]string{
		"default.replication.factor": "3", "group.coordinator.rebalance.protocols": "classic,consumer,streams", "transaction.partition.verification.enable": "true",
		"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector", "reserved.broker.max.id": "1000", "num.partitions": "3",
		"rsm.config.endpoint": "x", "config.providers.file.class": "x",
		"listener.name.plaintext.max.connections": "20", "listener.name.plaintext.gssapi.sasl.jaas.config": "x", "listener.name.plaintext.ssl.engine.factory.class": "x",
	}
	got := broker(t, set).Inert()
	delete(set, "num.partitions")
	assert.True(t, len(got) == len(set) && !slices.Contains(got, "num.partitions"), "without effect: %q", got)
}

func TestSecretsWithoutEffectAreSecrets(t *testing.T) {
	for _, name := range []string{"delegation.token.secret.key", "delegation.token.master.key", "ssl.keystore.key", "listener.name.plaintext.ssl.keystore.key", "zookeeper.ssl.keystore.password"} {
		assert.True(t, IsSecret(name), "%s may be shown", name)
	}
}

func TestANameThatKafkaDoesNotKnowIsRefused(t *testing.T) {
	for _, name := range []string{"replica.selector.klass", "listener.name.plaintext.max.connection", "listener.name.plaintext.kerberos.x"} {
		if _, err := NewBroker(map[string]string{name: "1"}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
