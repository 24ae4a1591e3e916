package handler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

// alterBroker alters settings of the broker, given as name, value, name, value.
func (w *world) alterBroker(broker string, set ...string) kmsg.IncrementalAlterConfigsResponseResource {
	w.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	res := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: broker}
	for i := 0; i < len(set); i += 2 {
		res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: set[i], Value: &set[i+1]})
	}
	req.Resources = append(req.Resources, res)
	return w.request(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
}

func (w *world) describe(kind kmsg.ConfigResourceType, resource string, names ...string) []kmsg.DescribeConfigsResponseResourceConfig {
	w.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms = 4, true
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: resource, ConfigNames: names}}
	got := w.request(req).(*kmsg.DescribeConfigsResponse).Resources[0]
	if got.ErrorCode != 0 {
		w.t.Fatal(kerr.ErrorForCode(got.ErrorCode))
	}
	return got.Configs
}

func TestABrokerSettingThatNobodyKnowsIsKeptAsInKafka(t *testing.T) {
	w := newWorld(t)
	if got := w.alterBroker("1", "some.plugin.password", "secret"); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	for broker, source := range map[string]kmsg.ConfigSource{"1": kmsg.ConfigSourceDynamicBrokerConfig, "": kmsg.ConfigSourceDynamicDefaultBrokerConfig} {
		for _, names := range [][]string{{"some.plugin.password"}, nil} {
			got := w.describe(kmsg.ConfigResourceTypeBroker, broker, names...)
			assert.MustTrue(t, len(got) != 0, "broker %q has no settings", broker)
			c := got[len(got)-1]
			if c.Name != "some.plugin.password" || c.Value != nil || !c.IsSensitive || !c.ReadOnly || c.Source != source || c.ConfigType != 0 {
				t.Errorf("broker %q: %+v", broker, c)
			}
			if len(c.ConfigSynonyms) != 1 || c.ConfigSynonyms[0].Value != nil || c.ConfigSynonyms[0].Source != source {
				t.Errorf("broker %q: synonyms %+v", broker, c.ConfigSynonyms)
			}
		}
	}
	assert.Equal(t, len(w.describe(kmsg.ConfigResourceTypeBroker, "1", "num.partitions")), 1, "asked for one setting, told")
	// Replacing all settings by none forgets it.
	if got := w.request(&kmsg.AlterConfigsRequest{Version: 2, Resources: []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"}}}).(*kmsg.AlterConfigsResponse).Resources[0]; got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	if got := w.describe(kmsg.ConfigResourceTypeBroker, "1", "some.plugin.password"); len(got) != 0 {
		t.Errorf("still %+v", got)
	}
}

func TestBrokerSettingsAreRefusedAsInKafka(t *testing.T) {
	w := newWorld(t)
	var much []string // 300 KiB, of which no string is too long for a request
	for i := range 10 {
		much = append(much, fmt.Sprintf("no.such.setting.%d", i), strings.Repeat("x", 30<<10))
	}
	for name, set := range map[string][]string{
		"read at start": {"log.dirs", "/x"}, "a bad value": {"num.io.threads", "x"}, "too few": {"num.io.threads", "0"}, "no name": {"", "x"},
		"more than there is room for": much,
	} {
		if got := w.alterBroker("1", set...); got.ErrorCode != kerr.InvalidRequest.Code || got.ErrorMessage == nil {
			t.Errorf("%s: error %d", name, got.ErrorCode)
		}
	}
	more := "x"
	list := &kmsg.IncrementalAlterConfigsRequest{Version: 1, Resources: []kmsg.IncrementalAlterConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1",
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "no.such.list", Op: kmsg.IncrementalAlterConfigOpAppend, Value: &more}},
	}}}
	assert.Equal(t, w.request(list).(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode, kerr.InvalidConfig.Code, "append to what need not be a list: error")
	if len(w.c.Image().Set) != 0 {
		t.Errorf("altered: %v", w.c.Image().Set)
	}
}

func TestWhatKafkaAltersAtRunTimeCanBeAltered(t *testing.T) {
	w := newWorld(t)
	set := []string{"log.cleaner.backoff.ms", "14000", "log.cleaner.threads", "2", "num.io.threads", "9", "max.connections.per.ip", "1000", "max.connections", "2000"}
	if got := w.alterBroker("1", set...); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	for i := 0; i < len(set); i += 2 {
		got := w.describe(kmsg.ConfigResourceTypeBroker, "1", set[i])[0]
		if *got.Value != set[i+1] || got.ReadOnly || got.Source != kmsg.ConfigSourceDynamicBrokerConfig {
			t.Errorf("%s: %+v", set[i], got)
		}
		if w.c.Image().Config.Get(set[i]) != set[i+1] {
			t.Errorf("%s is %s", set[i], w.c.Image().Config.Get(set[i]))
		}
	}
}

func TestAnEmptyListOfSettingsAsksForAll(t *testing.T) {
	w := newWorld(t)
	all, none := w.describe(kmsg.ConfigResourceTypeTopic, "t"), w.describe(kmsg.ConfigResourceTypeTopic, "t", []string{}...)
	assert.True(t, len(all) >= 20 && len(none) == len(all), "null asks for %d settings, an empty list for %d", len(all), len(none))
	// One that is named twice is told once, with what was asked for in either place.
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	for _, names := range [][]string{{"retention.ms"}, {"segment.bytes", "retention.ms"}} {
		req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t", ConfigNames: names})
	}
	if got := w.request(req).(*kmsg.DescribeConfigsResponse).Resources; len(got) != 1 || len(got[0].Configs) != 2 {
		t.Errorf("named twice: %+v", got)
	}
	req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"})
	if got := w.request(req).(*kmsg.DescribeConfigsResponse).Resources; len(got) != 1 || len(got[0].Configs) != len(all) {
		t.Errorf("named thrice, once with all: %d settings", len(got[0].Configs))
	}
}

func TestSynonymsOfTopicSettingsAreKafkas(t *testing.T) {
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: "set", Partitions: 1, Replication: 1, Set: map[string]string{"retention.ms": "1000"}})
	names := func(topic, setting string) (out []string) {
		for _, s := range w.describe(kmsg.ConfigResourceTypeTopic, topic, setting)[0].ConfigSynonyms {
			out = append(out, s.Name+"="+*s.Value)
		}
		return out
	}
	for _, tt := range []struct{ topic, setting, want string }{
		{"t", "retention.ms", ""}, {"t", "segment.ms", ""}, {"set", "retention.ms", "retention.ms=1000"},
		{"t", "retention.bytes", "log.retention.bytes=-1"}, {"t", "compression.type", "compression.type=producer"},
	} {
		assert.Equal(t, strings.Join(names(tt.topic, tt.setting), " "), tt.want, "%s of %s", tt.setting, tt.topic)
	}
	if c := w.describe(kmsg.ConfigResourceTypeTopic, "t", "retention.ms")[0]; *c.Value != "604800000" || c.Source != kmsg.ConfigSourceDefaultConfig {
		t.Errorf("%+v", c)
	}
	if got := w.alterBroker("", "log.retention.ms", "5000"); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	assert.Equal(t, strings.Join(names("t", "retention.ms"), " "), "log.retention.ms=5000", "after the broker's was altered")
}

// Its password is not shown, but who the first user is decides what others read of rights.
func TestTheFirstUserIsShownAmongTheSuperUsers(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"super.users": "User:z;User:a"}, "User:z;User:a"},
		{map[string]string{"muster.bootstrap.user": "ann:pw"}, "User:ann"},
		{map[string]string{"muster.bootstrap.user": "ann:pw", "super.users": "User:z"}, "User:z;User:ann"},
		{map[string]string{"muster.bootstrap.user": "ann:pw", "super.users": "User:z; User:ann"}, "User:z; User:ann"},
		{map[string]string{"muster.bootstrap.user": "a;User:b:pw"}, ""}, // It would be read as two.
	} {
		got := worldWith(t, c.set).describe(kmsg.ConfigResourceTypeBroker, "1", "super.users", "muster.bootstrap.user")
		assert.MustTrue(t, len(got) == 2 && (got[0].Value == nil || got[1].Value == nil), "%v: %+v", c.set, got)
		users := got[0]
		if users.Name != "super.users" {
			users = got[1]
		}
		if *users.Value != c.want || (users.Source == kmsg.ConfigSourceDefaultConfig) != (c.want == "") {
			t.Errorf("%v: super.users is shown as %q by %v", c.set, *users.Value, users.Source)
		}
	}
}
