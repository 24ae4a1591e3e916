package handler_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/cluster"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store/mem"
)

// ruledWorld has rules, and everybody may do everything.
func ruledWorld(t *testing.T) *world {
	t.Helper()
	w := emptyWorld(t)
	defaults, err := config.NewBroker(map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS",
	})
	must(t, err)
	w.c, err = cluster.Open(t.Context(), cluster.Options{Store: mem.New(), Self: metadata.Broker{ID: 1}, Defaults: defaults, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	w.opts.Controller = w.c
	w.h = handler.New(w.opts)
	return w
}

// creation is a rule by which alice may read a topic.
func creation(topic string) kmsg.CreateACLsRequestCreation {
	return kmsg.CreateACLsRequestCreation{
		ResourceType: kmsg.ACLResourceTypeTopic, ResourceName: topic, ResourcePatternType: kmsg.ACLResourcePatternTypeLiteral,
		Principal: "User:alice", Host: "*", Operation: kmsg.ACLOperationRead, PermissionType: kmsg.ACLPermissionTypeAllow,
	}
}

func (w *world) createRules(version int16, list ...kmsg.CreateACLsRequestCreation) []kmsg.CreateACLsResponseResult {
	w.t.Helper()
	got := w.request(&kmsg.CreateACLsRequest{Version: version, Creations: list}).(*kmsg.CreateACLsResponse).Results
	assert.MustTrue(w.t, len(got) == len(list), "%d rules have %d results", len(list), len(got))
	return got
}

// allRules is the filter that means all.
func allRules() kmsg.DeleteACLsRequestFilter {
	return kmsg.DeleteACLsRequestFilter{
		ResourceType: kmsg.ACLResourceTypeAny, ResourcePatternType: kmsg.ACLResourcePatternTypeAny,
		Operation: kmsg.ACLOperationAny, PermissionType: kmsg.ACLPermissionTypeAny,
	}
}

func (w *world) describeRules(version int16, f kmsg.DeleteACLsRequestFilter) *kmsg.DescribeACLsResponse {
	w.t.Helper()
	return w.request(&kmsg.DescribeACLsRequest{
		Version: version, ResourceType: f.ResourceType, ResourceName: f.ResourceName, ResourcePatternType: f.ResourcePatternType,
		Principal: f.Principal, Host: f.Host, Operation: f.Operation, PermissionType: f.PermissionType,
	}).(*kmsg.DescribeACLsResponse)
}

func (w *world) deleteRules(version int16, list ...kmsg.DeleteACLsRequestFilter) []kmsg.DeleteACLsResponseResult {
	w.t.Helper()
	got := w.request(&kmsg.DeleteACLsRequest{Version: version, Filters: list}).(*kmsg.DeleteACLsResponse).Results
	assert.MustTrue(w.t, len(got) == len(list), "%d filters have %d results", len(list), len(got))
	return got
}

func TestRulesAreCreatedDescribedAndDeletedInEveryVersion(t *testing.T) {
	w := ruledWorld(t)
	name := func(s string) *string { return &s }
	for v := int16(1); v <= 3; v++ {
		denied := creation("t")
		denied.Principal, denied.Host, denied.PermissionType = "User:bob", "0:0:0:0:0:0:0:1", kmsg.ACLPermissionTypeDeny
		prefixed := creation("t")
		prefixed.ResourcePatternType = kmsg.ACLResourcePatternTypePrefixed
		for i, r := range w.createRules(v, creation("t"), denied, prefixed, creation("u"), creation("t")) {
			assert.MustTrue(t, r.ErrorCode == 0 && r.ErrorMessage == nil, "v%d rule %d: %+v", v, i, r)
		}
		got := w.describeRules(v, allRules())
		assert.MustTrue(t, got.ErrorCode == 0 && len(got.Resources) == 3 && len(got.Resources[0].ACLs) == 2, "v%d: %+v", v, got)
		first := got.Resources[0]
		if first.ResourceName != "t" || first.ResourceType != kmsg.ACLResourceTypeTopic || first.ResourcePatternType != kmsg.ACLResourcePatternTypeLiteral {
			t.Errorf("v%d: %+v", v, first)
		}
		if acl := first.ACLs[1]; acl.Principal != "User:bob" || acl.Host != "::1" || acl.Operation != kmsg.ACLOperationRead || acl.PermissionType != kmsg.ACLPermissionTypeDeny {
			t.Errorf("v%d: %+v", v, acl)
		}
		if got.Resources[1].ResourcePatternType != kmsg.ACLResourcePatternTypePrefixed || got.Resources[2].ResourceName != "u" {
			t.Errorf("v%d: %+v", v, got.Resources)
		}
		match := allRules()
		match.ResourceType, match.ResourceName, match.ResourcePatternType = kmsg.ACLResourceTypeTopic, name("table"), kmsg.ACLResourcePatternTypeMatch
		if got := w.describeRules(v, match).Resources; len(got) != 1 || got[0].ResourcePatternType != kmsg.ACLResourcePatternTypePrefixed {
			t.Errorf("v%d, those that match a name: %+v", v, got)
		}
		tokens := allRules()
		tokens.ResourceType = 6
		if got := w.describeRules(v, tokens); got.ErrorCode != 0 || len(got.Resources) != 0 {
			t.Errorf("v%d, of delegation tokens: %+v", v, got)
		}
		bob := allRules()
		bob.Principal, bob.Host = name("User:bob"), name("::1")
		results := w.deleteRules(v, bob, allRules())
		assert.MustTrue(t, len(results[0].MatchingACLs) == 1 && len(results[1].MatchingACLs) == 4, "v%d deleted %+v", v, results)
		if r := results[0].MatchingACLs[0]; r.ErrorCode != 0 || r.Principal != "User:bob" || r.Host != "::1" || r.ResourceName != "t" || r.ResourceType != kmsg.ACLResourceTypeTopic ||
			r.ResourcePatternType != kmsg.ACLResourcePatternTypeLiteral || r.Operation != kmsg.ACLOperationRead || r.PermissionType != kmsg.ACLPermissionTypeDeny {
			t.Errorf("v%d: %+v", v, r)
		}
		if got := w.describeRules(v, allRules()); len(got.Resources) != 0 || w.c.Image().Rules.Len() != 0 {
			t.Errorf("v%d left %+v", v, got)
		}
	}
}

func TestWithoutAnAuthorizerThereAreNoRules(t *testing.T) {
	w := emptyWorld(t)
	want := kerr.SecurityDisabled.Code
	if got := w.describeRules(3, allRules()); got.ErrorCode != want || got.ErrorMessage == nil || len(got.Resources) != 0 {
		t.Errorf("described: %+v", got)
	}
	for i, r := range w.createRules(3, creation("t"), creation("u")) {
		assert.True(t, r.ErrorCode == want && (i == 0) == (r.ErrorMessage != nil), "created: %+v", r)
	}
	for _, r := range w.deleteRules(3, allRules(), allRules()) {
		assert.True(t, r.ErrorCode == want && len(r.MatchingACLs) == 0, "deleted: %+v", r)
	}
	assert.Equal(t, w.c.Image().Rules.Len(), 0, "there is a rule")
}

func TestBadRulesAndFiltersAreRefusedOneByOne(t *testing.T) {
	w := ruledWorld(t)
	var bad []kmsg.CreateACLsRequestCreation
	with := func(change func(*kmsg.CreateACLsRequestCreation)) {
		c := creation("t")
		change(&c)
		bad = append(bad, c)
	}
	for _, n := range []int8{-1, 0, 1, 6, 7, 8, 100} { // Also those of delegation tokens.
		with(func(c *kmsg.CreateACLsRequestCreation) { c.ResourceType = kmsg.ACLResourceType(n) })
	}
	for _, n := range []int8{-1, 0, 1, 2, 5} {
		with(func(c *kmsg.CreateACLsRequestCreation) { c.ResourcePatternType = kmsg.ACLResourcePatternType(n) })
	}
	for _, n := range []int8{-1, 0, 1, 16, 100} {
		with(func(c *kmsg.CreateACLsRequestCreation) { c.Operation = kmsg.ACLOperation(n) })
	}
	for _, n := range []int8{-1, 0, 1, 4} {
		with(func(c *kmsg.CreateACLsRequestCreation) { c.PermissionType = kmsg.ACLPermissionType(n) })
	}
	with(func(c *kmsg.CreateACLsRequestCreation) { c.ResourceName = "" })
	with(func(c *kmsg.CreateACLsRequestCreation) { c.ResourceType = kmsg.ACLResourceTypeCluster })
	with(func(c *kmsg.CreateACLsRequestCreation) { c.Principal = "alice" })
	with(func(c *kmsg.CreateACLsRequestCreation) { c.Host = "" })
	results := w.createRules(3, append(bad, creation("good"))...)
	for i, r := range results[:len(bad)] {
		if r.ErrorCode != kerr.InvalidRequest.Code || r.ErrorMessage == nil {
			t.Errorf("%+v: %+v", bad[i], r)
		}
	}
	if last := results[len(bad)]; last.ErrorCode != 0 || w.c.Image().Rules.Len() != 1 {
		t.Errorf("the good one: %+v; %d rules", last, w.c.Image().Rules.Len())
	}
	var filters []kmsg.DeleteACLsRequestFilter
	for _, n := range []int8{-1, 0, 100} {
		for i := range 4 {
			f := allRules()
			switch i {
			case 0:
				f.ResourceType = kmsg.ACLResourceType(n)
			case 1:
				f.ResourcePatternType = kmsg.ACLResourcePatternType(n)
			case 2:
				f.Operation = kmsg.ACLOperation(n)
			case 3:
				f.PermissionType = kmsg.ACLPermissionType(n)
			}
			filters = append(filters, f)
			if got := w.describeRules(3, f); got.ErrorCode != kerr.InvalidRequest.Code || len(got.Resources) != 0 {
				t.Errorf("described by %+v: %+v", f, got)
			}
		}
	}
	for i, r := range w.deleteRules(3, filters...) {
		if r.ErrorCode != kerr.InvalidRequest.Code || len(r.MatchingACLs) != 0 {
			t.Errorf("deleted by %+v: %+v", filters[i], r)
		}
	}
	assert.Equal(t, w.c.Image().Rules.Len(), 1, "the good one is gone")
}

func TestThousandsOfRulesInARequest(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	const many = 10_000
	w := ruledWorld(t)
	var list []kmsg.CreateACLsRequestCreation
	var filters []kmsg.DeleteACLsRequestFilter
	for i := range many {
		c := creation(fmt.Sprint(i))
		list = append(list, c)
		filters = append(filters, kmsg.DeleteACLsRequestFilter{
			ResourceType: c.ResourceType, ResourceName: &c.ResourceName, ResourcePatternType: c.ResourcePatternType,
			Principal: &c.Principal, Host: &c.Host, Operation: c.Operation, PermissionType: c.PermissionType,
		})
	}
	for _, r := range w.createRules(3, list...) {
		assert.MustEqual(t, r.ErrorCode, 0, "%+v", r)
	}
	assert.Equal(t, len(w.describeRules(3, allRules()).Resources), many, "resources")
	for _, r := range w.deleteRules(3, filters...) {
		assert.MustTrue(t, r.ErrorCode == 0 && len(r.MatchingACLs) == 1, "%+v", r)
	}
	assert.Equal(t, w.c.Image().Rules.Len(), 0, "rules are left")
	// Too many are refused with one text for all: each entry may be ten bytes.
	for i, r := range w.createRules(3, make([]kmsg.CreateACLsRequestCreation, 200_000)...) {
		assert.MustTrue(t, r.ErrorCode == kerr.InvalidRequest.Code && (i == 0) == (r.ErrorMessage != nil), "%d: %+v", i, r)
	}
	for i, r := range w.deleteRules(3, make([]kmsg.DeleteACLsRequestFilter, 200_000)...) {
		assert.MustTrue(t, r.ErrorCode == kerr.InvalidRequest.Code && (i == 0) == (r.ErrorMessage != nil), "%d: %+v", i, r)
	}
}
