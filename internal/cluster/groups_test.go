package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store/mem"
)

const (
	session   = "consumer.session.timeout.ms"
	heartbeat = "consumer.heartbeat.interval.ms"
)

// with is a change that sets a setting, or deletes it if there is no value.
func with(name, v string) []metadata.ConfigChange {
	if v == "" {
		return []metadata.ConfigChange{{Name: name, Op: metadata.ConfigDelete}}
	}
	return []metadata.ConfigChange{{Name: name, Value: &v}}
}

func alterGroup(t *testing.T, c *Controller, group, name, v string) {
	t.Helper()
	must(t, c.AlterGroup(t.Context(), group, with(name, v), false, false))
}

func TestSettingsOfGroupsSurviveARestart(t *testing.T) {
	s := mem.New()
	c := open(t, s, false)
	alterGroup(t, c, "g", session, "50000")
	alterGroup(t, c, "g", heartbeat, "6000")
	alterGroup(t, c, "a/b \x00\xff", heartbeat, "7000")
	alterGroup(t, c, "gone", heartbeat, "8000")
	alterGroup(t, c, "gone", heartbeat, "")
	alterGroup(t, c, "never there", heartbeat, "")
	must(t, c.AlterGroup(t.Context(), "replaced", with(session, "50000"), false, false))
	must(t, c.AlterGroup(t.Context(), "replaced", with(heartbeat, "9000"), true, false))
	live := c.Image()
	again := open(t, s, true).Image()
	if !reflect.DeepEqual(live.GroupSettings, again.GroupSettings) {
		t.Errorf("live %+v\nreplayed %+v", live.GroupSettings, again.GroupSettings)
	}
	for group, want := range map[string]map[string]string{
		"g": {session: "50000", heartbeat: "6000"}, "a/b \x00\xff": {heartbeat: "7000"}, "replaced": {heartbeat: "9000"}, "gone": nil, "never there": nil,
	} {
		assert.EqualMaps(t, again.GroupSettings.Of(group), want, "%q", group)
	}
	assert.EqualSlices(t, again.GroupSettings.Groups(), []string{"a/b \x00\xff", "g", "replaced"}, "listed")
	// The last one that goes leaves nothing.
	c = open(t, s, false)
	for _, group := range c.Image().GroupSettings.Groups() {
		must(t, c.AlterGroup(t.Context(), group, nil, true, false))
	}
	if c.Image().GroupSettings != nil || open(t, s, false).Image().GroupSettings != nil {
		t.Errorf("left: %v", c.Image().GroupSettings)
	}
}

func TestARecordOfGroupSettingsSaysTheWholeState(t *testing.T) {
	r := groupRecord("a/b", map[string]string{heartbeat: "6000", session: "50000"})
	assert.Equal(t, string(r.Key)+" "+string(r.Value), `group/a/b {"`+heartbeat+`":"6000","`+session+`":"50000"}`)
	apply := func(recs ...record.Record) *metadata.GroupSettings {
		s, edit := newState(1), emptyImage().Edit()
		for i := range recs {
			must(t, s.apply(&recs[i], edit))
		}
		return edit.Image().GroupSettings
	}
	assert.EqualMaps(t, apply(groupRecord("a/b", map[string]string{"x": "y"}), r).Of("a/b"), map[string]string{heartbeat: "6000", session: "50000"})
	if tomb := groupRecord("a/b", nil); !tomb.Tombstone() || apply(r, tomb) != nil || apply(tomb) != nil {
		t.Error("a null value does not remove it")
	}
	s := newState(1)
	assert.True(t, s.apply(&record.Record{Key: r.Key, Value: []byte("x")}, emptyImage().Edit()) != nil, "what is no JSON is taken")
}

func TestBadSettingsOfGroupsAreRefusedWithKafkasCodes(t *testing.T) {
	c := open(t, mem.New(), false)
	alterGroup(t, c, "g", session, "50000")
	before := c.Image()
	for _, x := range []struct {
		group  string
		change metadata.ConfigChange
		code   *kerr.Error
	}{
		{"", metadata.ConfigChange{Name: session, Value: new("50000")}, kerr.InvalidRequest},
		{strings.Repeat("g", maxGroupName+1), metadata.ConfigChange{Name: session, Value: new("50000")}, kerr.InvalidRequest},
		{"g", metadata.ConfigChange{Name: "no.such", Value: new("1")}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: "classic.session.timeout.ms", Value: new("50000")}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: session}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: session, Value: new("long")}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: session, Value: new("1000")}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: heartbeat, Value: new("60000")}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: session, Op: metadata.ConfigAppend, Value: new("50000")}, kerr.InvalidConfig},
		{"g", metadata.ConfigChange{Name: session, Op: 9, Value: new("50000")}, kerr.InvalidRequest},
	} {
		for _, replace := range []bool{false, true} {
			wantCode(t, c.AlterGroup(t.Context(), x.group, []metadata.ConfigChange{x.change}, replace, false), x.code)
		}
	}
	assert.NoError(t, c.AlterGroup(t.Context(), "g", with(session, "51000"), false, true))
	wantCode(t, c.AlterGroup(t.Context(), "g", with(session, "1000"), false, true), kerr.InvalidConfig)
	if c.Image() != before {
		t.Errorf("changed to %v", c.Image().GroupSettings)
	}
}

func TestNothingIsStoredOfAGroupWhoseSettingsStayTheSame(t *testing.T) {
	c := open(t, mem.New(), false)
	alterGroup(t, c, "g", session, "50000")
	_, end := c.log.Bounds()
	alterGroup(t, c, "g", session, "50000")
	alterGroup(t, c, "g", heartbeat, "")
	if _, now := c.log.Bounds(); now != end {
		t.Errorf("%d more records", now-end)
	}
}

func TestTheBrokersBoundsCountWhenTheyChange(t *testing.T) {
	c := open(t, mem.New(), false)
	wantCode(t, c.AlterGroup(t.Context(), "g", with(heartbeat, "3000"), false, false), kerr.InvalidConfig)
	must(t, c.AlterBroker(t.Context(), with("group.consumer.min.heartbeat.interval.ms", "2000"), false, false))
	alterGroup(t, c, "g", heartbeat, "3000")
}

func TestSettingsOfGroupsAreBoundedInNumberAndBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	c := open(t, mem.New(), false)
	edit := c.Image().Edit()
	for i := range maxGroups {
		edit.SetGroup(fmt.Sprint(i), map[string]string{session: "50000"})
	}
	c.image.Store(edit.Image())
	wantCode(t, c.AlterGroup(t.Context(), "one more", with(session, "50000"), false, false), kerr.PolicyViolation)
	wantCode(t, c.AlterGroup(t.Context(), "one more", with(session, "50000"), false, true), kerr.PolicyViolation)
	alterGroup(t, c, "never there", session, "")
	alterGroup(t, c, "0", heartbeat, "6000")
	alterGroup(t, c, "1", session, "")
	alterGroup(t, c, "one more", session, "50000")
	assert.Equal(t, c.Image().GroupSettings.Len(), maxGroups, "groups")

	// With a limit that was lowered since, what takes no more than before may change.
	edit = c.Image().Edit()
	edit.SetGroup("beyond", map[string]string{session: strings.Repeat(" ", maxGroupBytes) + "50000"})
	c.image.Store(edit.Image())
	wantCode(t, c.AlterGroup(t.Context(), "one more", with(heartbeat, "6000"), false, false), kerr.PolicyViolation)
	alterGroup(t, c, "0", heartbeat, "7000")

	edit = emptyImage().Edit()
	long := strings.Repeat("g", maxGroupName-8)
	for i := 0; edit.Image().GroupSettings.Size()+maxGroupName+100 < maxGroupBytes; i++ {
		edit.SetGroup(long+fmt.Sprint(i), map[string]string{session: "50000"})
	}
	c.image.Store(edit.Image())
	wantCode(t, c.AlterGroup(t.Context(), strings.Repeat("x", maxGroupName), with(session, "50000"), false, false), kerr.PolicyViolation)
	alterGroup(t, c, "short", session, "50000")
	alterGroup(t, c, long+"0", session, "")
	alterGroup(t, c, strings.Repeat("x", maxGroupName), session, "50000")
	// What is counted is what is there.
	size := 0
	for _, group := range c.Image().GroupSettings.Groups() {
		size += len(group) + len(session) + len("50000")
	}
	if got := c.Image().GroupSettings.Size(); got != size {
		t.Errorf("counted %d bytes, there are %d", got, size)
	}
}

func TestAnImageKeepsTheSettingsOfGroupsThatItHad(t *testing.T) {
	first := emptyImage().Edit()
	first.SetGroup("g", map[string]string{session: "50000"})
	before := first.Image()
	edit := before.Edit()
	edit.SetGroup("g", map[string]string{session: "60000"})
	edit.SetGroup("h", map[string]string{session: "60000"})
	after := edit.Image()
	if before.GroupSettings.Of("g")[session] != "50000" || before.GroupSettings.Len() != 1 || after.GroupSettings.Of("g")[session] != "60000" || after.GroupSettings.Len() != 2 {
		t.Errorf("before %v, after %v", before.GroupSettings, after.GroupSettings)
	}
}

func TestBrokersThatShareAStoreShareTheSettingsOfGroups(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	one, two := f.join(1), f.join(2)
	f.agreed(one, two)
	alterGroup(t, one, "g", session, "50000")
	alterGroup(t, two, "g", heartbeat, "6000") // It has seen the other, whatever it followed until now.
	want := map[string]string{session: "50000", heartbeat: "6000"}
	for _, c := range []*Controller{one, two} {
		redistest.Eventually(t, "the settings of g", func() bool { return maps.Equal(c.Image().GroupSettings.Of("g"), want) })
	}
	assert.EqualMaps(t, f.join(3).Image().GroupSettings.Of("g"), want, "a third broker")
}
