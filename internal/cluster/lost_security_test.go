package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/redistest"
)

// logged is a log that can be read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestABrokerSaysWhichUsersRulesAndQuotasAreGone takes the end of the metadata away, in
// which someone was added, someone was deleted and someone changed.
func TestABrokerSaysWhichUsersRulesAndQuotasAreGone(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	var out logged
	f.log = &out
	c := f.join(1)
	f.agreed(c)
	for _, name := range []string{"same", "deleted", "changed"} {
		must(t, secure(t, c, name))
	}
	older := f.server.Nodes[0].Snapshot(t)
	must(t, secure(t, c, "added"))
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{{Name: "deleted", Hash: 1}, setUser("changed", 1, 9)}))
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{{Entity: limit("deleted", 1).Entity, Remove: []string{metadata.ProducerByteRate}}, limit("changed", 9)}, false))
	if _, errs := c.DeleteRules(t.Context(), []auth.Filter{exactly(allow("deleted", "t"))}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	f.server.Nodes[0].Restore(t, older)
	redistest.Eventually(t, "the loss to be seen", func() bool { _, none := knows(c.Image(), "added"); return none })
	got := strings.ReplaceAll(out.String(), " node=1", "")
	for _, want := range []string{
		`msg="users are gone with the end of the cluster metadata" count=1 first=[added]`,
		`msg="users are back, since their deletion is gone with the end of the cluster metadata" count=1 first=[deleted]`,
		`msg="users are older ones, since a change is gone with the end of the cluster metadata" count=1 first=[changed]`,
		`msg="rules are gone with the end of the cluster metadata" count=1 first="[muster acls add added read topic t]"`,
		`msg="rules are back, since their deletion is gone with the end of the cluster metadata" count=1 first="[muster acls add deleted read topic t]"`,
		`msg="quotas are gone with the end of the cluster metadata" count=1 first=[quota/users/added]`,
		`msg="quotas are back, since their deletion is gone with the end of the cluster metadata" count=1 first=[quota/users/deleted]`,
		`msg="quotas are older ones, since a change is gone with the end of the cluster metadata" count=1 first=[quota/users/changed]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log does not say %s", want)
		}
	}
	assert.False(t, strings.Contains(got, "same"), "the log tells of somebody whom nothing happened to")
	if t.Failed() {
		t.Log(got)
	}
}

func TestALossOfThousandsIsToldInAFewWords(t *testing.T) {
	var out logged
	c := &Controller{opts: Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}}
	empty := metadata.NewImage(&config.Broker{})
	edit := empty.Edit()
	for i := range 1000 {
		edit.AddRule(allow(fmt.Sprint("user", i), "t"))
	}
	c.tellLost(edit.Image(), empty)
	if got := out.String(); !strings.Contains(got, "count=1000") || strings.Count(got, "muster acls add") != maxTold {
		t.Errorf("the log says %s", got)
	}
}
