package handler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

const (
	session   = "consumer.session.timeout.ms"
	heartbeat = "consumer.heartbeat.interval.ms"
	interval  = "consumer.assignment.interval.ms"
)

// alterGroup sets settings of a group one by one, given as name, value, name, value;
// "" is null.
func (w *world) alterGroup(group string, validateOnly bool, set ...string) kmsg.IncrementalAlterConfigsResponseResource {
	w.t.Helper()
	req := &kmsg.IncrementalAlterConfigsRequest{Version: 1, ValidateOnly: validateOnly, Resources: []kmsg.IncrementalAlterConfigsRequestResource{
		{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: group},
	}}
	for i := 0; i < len(set); i += 2 {
		c := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: set[i], Value: &set[i+1]}
		if set[i+1] == "" {
			c.Value = nil
		}
		req.Resources[0].Configs = append(req.Resources[0].Configs, c)
	}
	return w.request(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
}

// replaceGroup replaces all settings of a group.
func (w *world) replaceGroup(group string, validateOnly bool, set ...string) kmsg.AlterConfigsResponseResource {
	w.t.Helper()
	req := &kmsg.AlterConfigsRequest{Version: 2, ValidateOnly: validateOnly, Resources: []kmsg.AlterConfigsRequestResource{
		{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: group},
	}}
	for i := 0; i < len(set); i += 2 {
		c := kmsg.AlterConfigsRequestResourceConfig{Name: set[i], Value: &set[i+1]}
		if set[i+1] == "" {
			c.Value = nil
		}
		req.Resources[0].Configs = append(req.Resources[0].Configs, c)
	}
	return w.request(req).(*kmsg.AlterConfigsResponse).Resources[0]
}

// listed lists what has settings.
func (w *world) listed(version int16, types ...kmsg.ConfigResourceType) (names []string, code int16) {
	w.t.Helper()
	req := kmsg.NewPtrListConfigResourcesRequest()
	req.Version = version
	for _, t := range types {
		req.ResourceTypes = append(req.ResourceTypes, int8(t))
	}
	resp := w.request(req).(*kmsg.ListConfigResourcesResponse)
	for _, r := range resp.ConfigResources {
		names = append(names, fmt.Sprint(r.Type, " ", r.Name))
	}
	return names, resp.ErrorCode
}

func (w *world) wantListed(want string, types ...kmsg.ConfigResourceType) {
	w.t.Helper()
	if names, code := w.listed(1, types...); strings.Join(names, ", ") != want || code != 0 {
		w.t.Errorf("listed %q, error %d, want %q", names, code, want)
	}
}

// told is what DescribeConfigs says of a group: value, source, and synonyms.
func (w *world) told(group string, names ...string) string {
	w.t.Helper()
	var out []string
	for _, c := range w.describe(kmsg.ConfigResourceTypeGroupConfig, group, names...) {
		s := fmt.Sprintf("%s=%s from %d", c.Name, *c.Value, c.Source)
		for _, syn := range c.ConfigSynonyms {
			s += fmt.Sprintf(" (%s=%s %d)", syn.Name, *syn.Value, syn.Source)
		}
		if c.ReadOnly || c.IsSensitive || c.ConfigType != kmsg.ConfigTypeInt && len(c.ConfigSynonyms) != 1 { // Those of other types have no other synonym.
			s += fmt.Sprintf(" %+v", c)
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func TestAGroupOfAnyNameHasTheBrokersSettingsUntilItHasItsOwn(t *testing.T) {
	w := newWorld(t)
	plain := strings.Join([]string{
		"consumer.assignment.interval.ms=1000 from 5 (group.consumer.assignment.interval.ms=1000 5)",
		"consumer.heartbeat.interval.ms=5000 from 5 (group.consumer.heartbeat.interval.ms=5000 5)",
		"consumer.session.timeout.ms=45000 from 5 (group.consumer.session.timeout.ms=45000 5)",
		"share.assignment.interval.ms=1000 from 5 (group.share.assignment.interval.ms=1000 5)",
		"share.auto.offset.reset=latest from 5 (share.auto.offset.reset=latest 5)",
		"share.delivery.count.limit=5 from 5 (group.share.delivery.count.limit=5 5)",
		"share.heartbeat.interval.ms=5000 from 5 (group.share.heartbeat.interval.ms=5000 5)",
		"share.isolation.level=read_uncommitted from 5 (share.isolation.level=read_uncommitted 5)",
		"share.partition.max.record.locks=2000 from 5 (group.share.partition.max.record.locks=2000 5)",
		"share.record.lock.duration.ms=30000 from 5 (group.share.record.lock.duration.ms=30000 5)",
		"share.renew.acknowledge.enable=true from 5 (share.renew.acknowledge.enable=true 5)",
		"share.session.timeout.ms=45000 from 5 (group.share.session.timeout.ms=45000 5)",
		"streams.assignment.interval.ms=1000 from 5 (group.streams.assignment.interval.ms=1000 5)",
		"streams.heartbeat.interval.ms=5000 from 5 (group.streams.heartbeat.interval.ms=5000 5)",
		"streams.initial.rebalance.delay.ms=3000 from 5 (group.streams.initial.rebalance.delay.ms=3000 5)",
		"streams.num.standby.replicas=0 from 5 (group.streams.num.standby.replicas=0 5)",
		"streams.session.timeout.ms=45000 from 5 (group.streams.session.timeout.ms=45000 5)",
	}, "\n")
	assert.Equal(t, w.told("nobody"), plain, "what is told")
	if got := w.alterGroup("g", false, heartbeat, "6000"); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	if got := w.alterBroker("", "group.consumer.heartbeat.interval.ms", "7000"); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	for group, want := range map[string]string{
		"g":      "consumer.heartbeat.interval.ms=6000 from 8 (consumer.heartbeat.interval.ms=6000 8) (group.consumer.heartbeat.interval.ms=7000 3) (group.consumer.heartbeat.interval.ms=5000 5)",
		"nobody": "consumer.heartbeat.interval.ms=7000 from 3 (group.consumer.heartbeat.interval.ms=7000 3) (group.consumer.heartbeat.interval.ms=5000 5)",
	} {
		assert.Equal(t, w.told(group, heartbeat), want, "%s is told", group)
	}
}

func TestSettingsOfGroupsAreRefusedAsInKafka(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		group string
		set   []string
		code  *kerr.Error
	}{
		{"", []string{session, "50000"}, kerr.InvalidRequest},
		{"g", []string{"no.such.setting", "1"}, kerr.InvalidConfig},
		{"g", []string{session, ""}, kerr.InvalidConfig},
		{"g", []string{session, "44999"}, kerr.InvalidConfig},
		{"g", []string{heartbeat, "4999"}, kerr.InvalidConfig},
		{"g", []string{heartbeat, "15001"}, kerr.InvalidConfig},
		{"g", []string{interval, "15001"}, kerr.InvalidConfig},
		{"g", []string{session, "50000", session, "50000"}, kerr.InvalidRequest},
		{"g", []string{session, "50000", "no.such.setting", "1"}, kerr.InvalidConfig},
	} {
		if got := w.alterGroup(tt.group, false, tt.set...); got.ErrorCode != tt.code.Code || got.ErrorMessage == nil || *got.ErrorMessage == "" {
			t.Errorf("%v of %q: error %d, want %d", tt.set, tt.group, got.ErrorCode, tt.code.Code)
		}
		if got := w.replaceGroup(tt.group, false, tt.set...); got.ErrorCode != tt.code.Code || got.ErrorMessage == nil || *got.ErrorMessage == "" {
			t.Errorf("replaced %v of %q: error %d, want %d", tt.set, tt.group, got.ErrorCode, tt.code.Code)
		}
	}
	if got := w.alterBroker("", "group.consumer.min.session.timeout.ms", "1000"); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	if got := w.alterGroup("g", false, session, "5000"); got.ErrorCode != kerr.InvalidConfig.Code || !strings.Contains(*got.ErrorMessage, "must be greater than "+heartbeat) {
		t.Errorf("a session timeout that is not above the heartbeat interval: error %d", got.ErrorCode)
	}
	w.wantListed("", kmsg.ConfigResourceTypeGroupConfig)
	req := &kmsg.DescribeConfigsRequest{Version: 4, Resources: []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeGroupConfig}}}
	if got := w.request(req).(*kmsg.DescribeConfigsResponse).Resources[0]; got.ErrorCode != kerr.InvalidRequest.Code || got.ErrorMessage == nil || len(got.Configs) > 0 {
		t.Errorf("a group without a name is described: %+v", got)
	}
}

func TestGroupsWithSettingsAreListedUntilTheLastOneIsRemoved(t *testing.T) {
	w := newWorld(t)
	groups := kmsg.ConfigResourceTypeGroupConfig
	for _, got := range []int16{
		w.alterGroup("h", false, heartbeat, "6000", interval, "0").ErrorCode, w.replaceGroup("g", false, session, "50000").ErrorCode,
		w.alterGroup("only validated", true, heartbeat, "6000").ErrorCode, w.replaceGroup("only validated", true, heartbeat, "6000").ErrorCode,
	} {
		if got != 0 {
			t.Fatal(kerr.ErrorForCode(got))
		}
	}
	w.wantListed("32 g, 32 h", groups)
	w.wantListed("32 g, 32 h, 4 1", groups, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBroker)
	w.wantListed("2 __consumer_offsets, 2 __transaction_state, 2 t", kmsg.ConfigResourceTypeTopic)
	w.wantListed("32 g, 32 h, 4 1, 2 __consumer_offsets, 2 __transaction_state, 2 t")
	w.wantListed("", kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeBrokerLogger)
	if names, code := w.listed(1, groups, 7); len(names) > 0 || code != kerr.UnsupportedVersion.Code {
		t.Errorf("an unknown type: %q, error %d", names, code)
	}
	if names, code := w.listed(0); len(names) > 0 || code != 0 {
		t.Errorf("client metrics: %q, error %d", names, code)
	}

	remove := func(group, name string) {
		t.Helper()
		req := &kmsg.IncrementalAlterConfigsRequest{Version: 1, Resources: []kmsg.IncrementalAlterConfigsRequestResource{{
			ResourceType: groups, ResourceName: group, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Op: kmsg.IncrementalAlterConfigOpDelete}},
		}}}
		if got := w.request(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; got.ErrorCode != 0 {
			t.Fatal(*got.ErrorMessage)
		}
	}
	remove("h", heartbeat)
	w.wantListed("32 g, 32 h", groups)
	remove("h", interval)
	w.wantListed("32 g", groups)
	if got := w.replaceGroup("g", true); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	w.wantListed("32 g", groups)
	if got := w.replaceGroup("g", false); got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	w.wantListed("", groups)
}

// Any name is answered, so that a request of short names could ask for an answer that is
// hundreds of times as long.
func TestOneRequestDescribesABoundedNumberOfGroups(t *testing.T) {
	w := newWorld(t)
	const most = 2000
	req := &kmsg.DescribeConfigsRequest{Version: 4, IncludeSynonyms: true, IncludeDocumentation: true}
	for i := range most + 2 {
		req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: fmt.Sprint(i)})
	}
	req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"})
	got := w.request(req).(*kmsg.DescribeConfigsResponse).Resources
	refused := slices.IndexFunc(got, func(r kmsg.DescribeConfigsResponseResource) bool { return r.ErrorCode != 0 })
	if refused != most || got[most].ErrorCode != kerr.InvalidRequest.Code || got[most+1].ErrorCode != kerr.InvalidRequest.Code || len(got[most].Configs) > 0 {
		t.Errorf("the first that is refused is %d", refused)
	}
	if last := got[most+2]; last.ErrorCode != 0 || len(last.Configs) == 0 {
		t.Errorf("the topic after them: %+v", last)
	}
}
