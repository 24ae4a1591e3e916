package config

import (
	"math"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
)

func broker(t *testing.T, set map[string]string) *Broker {
	t.Helper()
	b, err := NewBroker(set)
	assert.Must(t, err)
	return b
}

func TestEveryDefaultIsAllowed(t *testing.T) {
	for _, defs := range [][]Def{BrokerDefs(), TopicDefs(), GroupDefs()} {
		for _, d := range defs {
			if d.Default != "" {
				assert.NoError(t, d.Check(d.Default), "%s", d.Name)
			}
			assert.True(t, d.Doc != "", "%s has no documentation", d.Name)
			assert.False(t, d.Synonym != "" && BrokerDef(d.Synonym) == nil, "%s falls back to %s, which does not exist", d.Name, d.Synonym)
		}
	}
}

func TestEveryTopicDefaultComesFromTheBrokerAndIsAllowed(t *testing.T) {
	b := broker(t, nil)
	for _, d := range TopicDefs() {
		if err := CheckTopic(d.Name, TopicValue(b, nil, d.Name)); err != nil && d.Name != "follower.replication.throttled.replicas" {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestAMisspeltNameIsRefusedWithTheNearestOne(t *testing.T) {
	for name, want := range map[string]string{
		"num.partition":        `did you mean "num.partitions"?`,
		"auto.create.topic":    `did you mean "auto.create.topics.enable"?`,
		"log.retention.hour":   `did you mean "log.retention.hours"?`,
		"completely.different": `unknown broker setting "completely.different"`,
	} {
		_, err := NewBroker(map[string]string{name: "1"})
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", name, err)
	}
	if err := CheckTopic("retention.mss", "1"); err == nil || !strings.Contains(err.Error(), `"retention.ms"`) {
		t.Error(err)
	}
}

func TestValuesOutsideOfTheirBoundsAreRefused(t *testing.T) {
	for name, value := range map[string]string{
		"num.partitions": "0", "auto.create.topics.enable": "yes", "log.retention.ms": "-2", "log.retention.bytes": "1e3",
		"log.cleaner.min.cleanable.ratio": "1.5", "log.cleanup.policy": "delete,shred", "message.max.bytes": "99999999999",
	} {
		if _, err := NewBroker(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestATopicSettingFallsBackToTheBrokersThenToItsUnits(t *testing.T) {
	b := broker(t, map[string]string{"log.retention.hours": "2"})
	assert.Equal(t, NewTopic(b, nil).RetentionAge, 2*time.Hour, "from hours")
	b = b.With(map[string]string{"log.retention.minutes": "5"})
	assert.Equal(t, NewTopic(b, nil).RetentionAge, 5*time.Minute, "minutes come before hours")
	if got := NewTopic(b, map[string]string{"retention.ms": "-1"}).RetentionAge; got >= 0 {
		t.Errorf("no limit: %v", got)
	}
	assert.Equal(t, NewTopic(b, nil).MaxCompactLag, math.MaxInt64, "a limit beyond what a duration holds")
	c := NewTopic(b, map[string]string{"cleanup.policy": "compact,delete"})
	assert.True(t, c.Compact && c.Delete, "both policies: %+v", c)
}

func TestAlteredSettingsThatAreNotAllowedHaveNoEffect(t *testing.T) {
	b := broker(t, map[string]string{"num.partitions": "4"}).With(map[string]string{
		"num.partitions": "none", "node.id": "77", "no.such.setting": "x", "num.io.threads": "9",
	})
	if b.Int("num.partitions") != 4 || b.Int("node.id") != 1 || b.Int("num.io.threads") != 9 {
		t.Errorf("num.partitions %s, node.id %s, num.io.threads %s", b.Get("num.partitions"), b.Get("node.id"), b.Get("num.io.threads"))
	}
	if got := b.Inert(); len(got) != 1 || got[0] != "num.io.threads" {
		t.Errorf("without effect: %v", got)
	}
}

func TestPropertiesFilesAreReadLikeJavas(t *testing.T) {
	got, err := ParseProperties(strings.NewReader("# comment\n! another\n\n a = 1\nb: two words \nc\tthree\nlisteners=PLAINTEXT://:9092,\\\n   SSL://:9093\nempty=\nlast=x\\"))
	assert.Must(t, err)
	want := map[string]string{"a": "1", "b": "two words", "c": "three", "listeners": "PLAINTEXT://:9092,SSL://:9093", "empty": "", "last": "x"}
	for k, v := range want {
		assert.Equal(t, got[k], v, "%s", k)
	}
	assert.Equal(t, len(got), len(want), "got %v", got)
	if _, err := ParseProperties(strings.NewReader("ok=1\n=x\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line without name: %v", err)
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add("a=1\nb:2\\\n3")
	f.Fuzz(func(t *testing.T, s string) {
		props, err := ParseProperties(strings.NewReader(s))
		for name := range props {
			assert.False(t, err == nil && name == "", "empty name")
		}
	})
}

func TestCompressionSettings(t *testing.T) {
	b := broker(t, map[string]string{"compression.type": "lz4", "compression.lz4.level": "12"})
	for _, c := range []struct {
		set   map[string]string
		codec string
		level int
	}{
		{nil, "lz4", 12},
		{map[string]string{"compression.lz4.level": "17"}, "lz4", 17},
		{map[string]string{"compression.type": "producer"}, "producer", 0},
		{map[string]string{"compression.type": "uncompressed"}, "uncompressed", 0},
		{map[string]string{"compression.type": "snappy"}, "snappy", 0},
		{map[string]string{"compression.type": "gzip"}, "gzip", -1},
		{map[string]string{"compression.type": "zstd"}, "zstd", 3},
		{map[string]string{"compression.type": "zstd", "compression.zstd.level": "-7"}, "zstd", -7},
	} {
		if got := NewTopic(b, c.set); got.Compression != c.codec || got.CompressLevel != c.level {
			t.Errorf("%v: %s at %d, want %s at %d", c.set, got.Compression, got.CompressLevel, c.codec, c.level)
		}
	}
	for name, values := range map[string]map[string]bool{
		"compression.type":       {"none": false, "ZSTD": false, "": false, "snappy": true},
		"compression.gzip.level": {"-1": true, "0": false, "1": true, "9": true, "10": false, "-2": false, "x": false},
		"compression.lz4.level":  {"0": false, "1": true, "17": true, "18": false},
		"compression.zstd.level": {"-131073": false, "-131072": true, "0": true, "22": true, "23": false},
	} {
		for value, ok := range values {
			for _, check := range []func(string, string) error{CheckTopic, CheckBroker} {
				if err := check(name, value); (err == nil) != ok {
					t.Errorf("%s=%s: %v", name, value, err)
				}
			}
		}
	}
}

// Numbers are read once, of each version of the settings.
func TestNumbersOfChangedSettings(t *testing.T) {
	before := broker(t, map[string]string{"num.partitions": "4"})
	assert.True(t, before.Int("num.partitions") == 4 && before.Bool("auto.create.topics.enable"), "other settings than were set")
	after := before.With(map[string]string{"num.partitions": "5"}).Found("auto.create.topics.enable", "false")
	if after.Int("num.partitions") != 5 || after.Bool("auto.create.topics.enable") || before.Int("num.partitions") != 4 {
		t.Errorf("num.partitions is %d, was %d", after.Int("num.partitions"), before.Int("num.partitions"))
	}
}

// What the broker asks of a topic depends on the store and, in Redis, on the layout.
func TestATopicHasTheTraitsOfItsLayout(t *testing.T) {
	whole := Traits{Dense: true, Transactions: true}
	for _, c := range []struct {
		store, layout string
		want          Traits
	}{
		{"disk", "stream", whole},
		{"mem", "log", whole},
		{"redis", "log", whole},
		{"redis", "stream", Traits{Records: true, SharedWriters: true, Timed: true}},
		{"redis", "indexed", Traits{Dense: true, Transactions: true, Records: true, SharedWriters: true}},
		{"redis", InternalLayout, whole},
	} {
		b, err := NewBroker(map[string]string{"muster.store": c.store})
		assert.Must(t, err)
		assert.Equal(t, NewTopic(b, map[string]string{"muster.redis.layout": c.layout}).Traits, c.want, "%s, %s", c.store, c.layout)
	}
	for _, name := range RedisLayouts() {
		assert.NoError(t, CheckTopic("muster.redis.layout", name))
	}
}

func TestWhatWasFoundIsADefault(t *testing.T) {
	const name = "muster.http.advertised"
	b, err := NewBroker(map[string]string{"muster.http.listener": "x"})
	assert.Must(t, err)
	found := b.Found(name, "http://x")
	if b.Get(name) != "" || found.Get(name) != "http://x" || found.IsSet(name) || found.Get("muster.http.listener") != "x" {
		t.Errorf("%q, %q", b.Get(name), found.Get(name))
	}
	if again := found.Found("node.id", "7").With(map[string]string{"num.partitions": "3"}); again.Get(name) != "http://x" || again.Int("node.id") != 7 || again.Int("num.partitions") != 3 {
		t.Error("it is forgotten")
	}
	if b, err = NewBroker(map[string]string{name: ""}); err != nil || b.Found(name, "http://x").Get(name) != "" {
		t.Error("what was set does not count")
	}
}

// BenchmarkSettings asks for what a fetch and a produce ask for: one number that is set,
// one that falls back on another, and a truth value that is not set.
func BenchmarkSettings(b *testing.B) {
	s, err := NewBroker(map[string]string{"fetch.max.bytes": "1000000", "log.retention.hours": "3"})
	assert.Must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		assert.MustTrue(b, s.Int("fetch.max.bytes") == 1000000 && s.Duration("log.retention.ms") != 0 && s.Bool("auto.create.topics.enable"), "other settings")
	}
}
