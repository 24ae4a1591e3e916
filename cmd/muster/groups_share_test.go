package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// shareShell is a shell with a topic of five records, and a share group that begins at the
// first of them.
func shareShell(t *testing.T) *shell {
	t.Helper()
	s := newShell(t, "group.share.heartbeat.interval.ms", "100", "group.share.assignment.interval.ms", "0")
	s.pipe("1\n2\n3\n4\n5\n", "produce", "orders").ok()
	value := "earliest"
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = "share.auto.offset.reset", &value
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName, of.Configs = kmsg.ConfigResourceTypeGroupConfig, "workers", append(of.Configs, c)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(t.Context(), s.client())
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Resources[0].ErrorCode))
	return s
}

// lagOf returns the lag of a share group, as describe has it.
func (s *shell) lagOf(group string) int64 {
	s.t.Helper()
	g := s.describe(group)
	same(s.t, "the type", g.Type, "share")
	assert.MustTrue(s.t, g.TotalLag != nil, "the lag of %s is not known", group)
	return *g.TotalLag
}

func TestConsumeAcceptsWhatAShareGroupGives(t *testing.T) {
	s := shareShell(t)
	same(t, "the first records", s.run("consume", "orders", "--share", "workers", "--count", "2").ok(), "1\n2\n")
	same(t, "the lag", s.lagOf("workers"), int64(3))
	same(t, "the rest", s.run("consume", "orders", "--share", "workers", "-n", "3").ok(), "3\n4\n5\n")
	same(t, "the lag", s.lagOf("workers"), int64(0))
	says(t, s.run("groups", "describe", "workers").ok(), "Type:         share", "Protocol:     share/simple", "START  END  LAG")
	says(t, s.run("groups", "list").ok(), "workers  share  Empty")
}

func TestConsumeReleasesAndRejectsWhatAShareGroupGives(t *testing.T) {
	s := shareShell(t)
	same(t, "what is given back", s.run("consume", "orders", "--share", "workers", "--release", "--count", "2").ok(), "1\n2\n")
	same(t, "the lag", s.lagOf("workers"), int64(5))
	same(t, "what is given up", s.run("consume", "orders", "--share", "workers", "--reject", "--count", "1").ok(), "1\n")
	same(t, "the lag", s.lagOf("workers"), int64(4))
	same(t, "what is accepted", s.run("consume", "orders", "--share", "workers", "--count", "4").ok(), "2\n3\n4\n5\n")
}

// A reset begins anew also where a partition starts already: what was accepted comes again.
func TestGroupsResetAndDeleteOfAShareGroup(t *testing.T) {
	s := shareShell(t)
	s.run("consume", "orders", "--share", "workers", "--count", "5").ok()
	same(t, "a dry run", s.run("groups", "reset", "workers", "--all-topics", "--to-earliest").code, exitOK)
	same(t, "the lag", s.lagOf("workers"), int64(0))
	r := s.run("groups", "reset", "workers", "--topic", "orders", "--to-earliest", "--execute")
	r.ok()
	same(t, "stderr", r.err, "share group workers begins anew in 1 partition\n")
	same(t, "the lag", s.lagOf("workers"), int64(5))
	s.run("groups", "reset", "workers", "--all-topics", "--to-offset", "3", "--execute").ok()
	member := s.background("consume", "orders", "--share", "workers")
	same(t, "what comes then", member.lines(2), "4 5")
	s.run("groups", "reset", "workers", "--all-topics", "--to-earliest", "--execute").fails(exitFailed, "group workers is in use", "share.session.timeout.ms")
	s.run("groups", "delete", "workers", "--yes").fails(exitFailed, "group workers has members; stop them first")
	member.stop()
	s.run("groups", "delete", "workers", "--yes").ok()
	same(t, "the groups", s.run("groups", "list").ok(), "")
}

func TestConsumeRefusesWhatMakesNoSenseWithAShareGroup(t *testing.T) {
	s := &shell{t: t}
	for line, want := range map[string]string{
		"consume a --share=":                     "--share is empty",
		"consume a --release":                    "--release and --reject need --share",
		"consume a --share g --from end":         "share.auto.offset.reset",
		"consume a --share g -p 1":               "--partition cannot be used with --share",
		"consume a --share g --isolation x":      "share.isolation.level",
		"consume a --share g --commit":           "--commit needs --group",
		"consume a --share g --group g":          "cannot be used together",
		"consume a --share g --release --reject": "cannot be used together",
	} {
		s.run(strings.Fields(line)...).fails(exitUsage, want)
	}
}
