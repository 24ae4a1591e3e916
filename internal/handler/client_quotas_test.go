package handler_test

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

// entity is written as "user=a client-id=" with nothing for the default.
func entity(s string) (out []kmsg.AlterClientQuotasRequestEntryEntity) {
	for _, part := range strings.Fields(s) {
		kind, name, _ := strings.Cut(part, "=")
		e := kmsg.AlterClientQuotasRequestEntryEntity{Type: kind}
		if name != "" {
			e.Name = &name
		}
		out = append(out, e)
	}
	return out
}

func limit(of, key string, value float64) kmsg.AlterClientQuotasRequestEntry {
	return kmsg.AlterClientQuotasRequestEntry{Entity: entity(of), Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: key, Value: value}}}
}

func (w *world) alterQuotas(req *kmsg.AlterClientQuotasRequest) []kmsg.AlterClientQuotasResponseEntry {
	w.t.Helper()
	got := w.request(req).(*kmsg.AlterClientQuotasResponse).Entries
	assert.MustTrue(w.t, len(got) == len(req.Entries), "%d entries have %d results", len(req.Entries), len(got))
	return got
}

func (w *world) setQuotas(entries ...kmsg.AlterClientQuotasRequestEntry) {
	w.t.Helper()
	for i, e := range w.alterQuotas(&kmsg.AlterClientQuotasRequest{Version: 1, Entries: entries}) {
		if e.ErrorCode != 0 || e.ErrorMessage != nil {
			w.t.Fatalf("entry %d: %d %v", i, e.ErrorCode, *e.ErrorMessage)
		}
	}
}

// component is written as "user=a", "user=" for the default, "user" for any.
func component(s string) kmsg.DescribeClientQuotasRequestComponent {
	kind, name, exact := strings.Cut(s, "=")
	switch {
	case !exact:
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchTypeAny}
	case name == "":
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchTypeDefault}
	}
	return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchTypeExact, Match: &name}
}

// described writes an answer as "client-id= user=a producer_byte_rate=1; …".
func described(resp *kmsg.DescribeClientQuotasResponse) string {
	var out []string
	for _, e := range resp.Entries {
		var parts []string
		for _, n := range e.Entity {
			name := "" // Null is the default, and no name is empty.
			if n.Name != nil {
				name = cmp.Or(*n.Name, "empty")
			}
			parts = append(parts, n.Type+"="+name)
		}
		for _, v := range e.Values {
			parts = append(parts, fmt.Sprint(v.Key, "=", v.Value))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return strings.Join(out, "; ")
}

func TestQuotasAreDescribedByKafkasFilters(t *testing.T) {
	w := emptyWorld(t)
	const rate = metadata.ProducerByteRate
	w.setQuotas(
		limit("user=a", rate, 1), limit("user=", rate, 2), limit("user=a client-id=c", rate, 3), limit("user=a client-id=", rate, 4),
		limit("client-id=c", rate, 5), limit("client-id=", rate, 6), limit("ip=0:0:0:0:0:0:0:1", metadata.ConnectionCreationRate, 7), limit("ip=", metadata.ConnectionCreationRate, 8),
	)
	const all = "ip= connection_creation_rate=8; ip=::1 connection_creation_rate=7; client-id= producer_byte_rate=6; client-id=c producer_byte_rate=5; " +
		"user= producer_byte_rate=2; user=a producer_byte_rate=1; client-id= user=a producer_byte_rate=4; client-id=c user=a producer_byte_rate=3"
	for _, x := range []struct {
		filter string
		strict bool
		want   string
	}{
		{"", false, all},
		{"", true, ""},
		{"user=a", false, "user=a producer_byte_rate=1; client-id= user=a producer_byte_rate=4; client-id=c user=a producer_byte_rate=3"},
		{"user=a", true, "user=a producer_byte_rate=1"},
		{"user=", false, "user= producer_byte_rate=2"},
		{"user", true, "user= producer_byte_rate=2; user=a producer_byte_rate=1"},
		{"client-id=c", true, "client-id=c producer_byte_rate=5"},
		{"client-id=c", false, "client-id=c producer_byte_rate=5; client-id=c user=a producer_byte_rate=3"},
		{"user=a client-id", true, "client-id= user=a producer_byte_rate=4; client-id=c user=a producer_byte_rate=3"},
		{"user=a client-id=", false, "client-id= user=a producer_byte_rate=4"},
		{"user=z", false, ""},
		{"ip", true, "ip= connection_creation_rate=8; ip=::1 connection_creation_rate=7"},
		{"ip=0::1", false, "ip=::1 connection_creation_rate=7"},
		{"ip=", false, "ip= connection_creation_rate=8"},
	} {
		for v := int16(0); v <= 1; v++ {
			req := &kmsg.DescribeClientQuotasRequest{Version: v, Strict: x.strict}
			for _, c := range strings.Fields(x.filter) {
				req.Components = append(req.Components, component(c))
			}
			got := w.request(req).(*kmsg.DescribeClientQuotasResponse)
			if described(got) != x.want || got.ErrorCode != 0 || got.Entries == nil {
				t.Errorf("v%d %q strict %v: %d\n%s\nwant\n%s", v, x.filter, x.strict, got.ErrorCode, described(got), x.want)
			}
		}
	}
	nobody := component("user=x")
	empty := ""
	nobody.Match = &empty
	if got := w.request(&kmsg.DescribeClientQuotasRequest{Version: 1, Components: []kmsg.DescribeClientQuotasRequestComponent{nobody}}).(*kmsg.DescribeClientQuotasResponse); len(got.Entries) != 0 {
		t.Errorf("an empty name: %s", described(got))
	}
}

func TestBadFiltersOfQuotasAreRefused(t *testing.T) {
	w := emptyWorld(t)
	with := func(c kmsg.DescribeClientQuotasRequestComponent, match *string) kmsg.DescribeClientQuotasRequestComponent {
		c.Match = match
		return c
	}
	x := "x"
	unknown := component("user")
	unknown.MatchType = 3
	for i, f := range []struct {
		components []kmsg.DescribeClientQuotasRequestComponent
		code       *kerr.Error
	}{
		{[]kmsg.DescribeClientQuotasRequestComponent{component("")}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{component("group")}, kerr.UnsupportedVersion},
		{[]kmsg.DescribeClientQuotasRequestComponent{component("user"), component("user=a")}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{component("user"), component("ip")}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{component("ip=::1"), component("client-id=")}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{with(component("user=a"), nil)}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{with(component("user="), &x)}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{with(component("user"), &x)}, kerr.InvalidRequest},
		{[]kmsg.DescribeClientQuotasRequestComponent{unknown}, kerr.InvalidRequest},
		{make([]kmsg.DescribeClientQuotasRequestComponent, 10_000), kerr.InvalidRequest},
	} {
		got := w.request(&kmsg.DescribeClientQuotasRequest{Version: 1, Components: f.components}).(*kmsg.DescribeClientQuotasResponse)
		if got.ErrorCode != f.code.Code || got.ErrorMessage == nil || got.Entries != nil {
			t.Errorf("case %d: %d %v %v", i, got.ErrorCode, got.ErrorMessage, got.Entries)
		}
	}
}

func TestQuotasAreAlteredEntryByEntry(t *testing.T) {
	w := emptyWorld(t)
	empty := ""
	noName := limit("user=a", metadata.ProducerByteRate, 1)
	noName.Entity[0].Name = &empty
	twice := limit("user=d", metadata.ProducerByteRate, 1)
	twice.Ops = append(twice.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: metadata.ProducerByteRate, Value: 2})
	endless := limit("user=e", metadata.ProducerByteRate, 1)
	for i := range 10_000 {
		endless.Ops = append(endless.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: fmt.Sprint(i), Remove: true})
	}
	for v := int16(0); v <= 1; v++ {
		req := &kmsg.AlterClientQuotasRequest{Version: v, Entries: []kmsg.AlterClientQuotasRequestEntry{
			limit("group=a", metadata.ProducerByteRate, 1), limit("", metadata.ProducerByteRate, 1), noName, twice, endless,
			limit("user=a user=b", metadata.ProducerByteRate, 1), limit("user=a ip=::1", metadata.ProducerByteRate, 1), limit("ip=host", metadata.ConnectionCreationRate, 1),
			limit("user=a", "what", 1), limit("user=b", metadata.ProducerByteRate, math.NaN()), limit("user=c", metadata.ProducerByteRate, -1), limit("client-id=c", metadata.ConnectionCreationRate, 1),
			limit("user=good", metadata.ProducerByteRate, 5),
		}}
		got := w.alterQuotas(req)
		for i, e := range got[:len(got)-1] {
			if e.ErrorCode != kerr.InvalidRequest.Code || e.ErrorMessage == nil || len(e.Entity) != len(req.Entries[i].Entity) {
				t.Errorf("v%d entry %d: %+v", v, i, e)
			}
		}
		if last := got[len(got)-1]; last.ErrorCode != 0 || last.Entity[0].Type != "user" || *last.Entity[0].Name != "good" {
			t.Errorf("v%d: %+v", v, last)
		}
		assert.Equal(t, w.c.Image().Quotas.Len(), 1, "v%d: entities", v)
		// Only to be checked, and then removed.
		req.Entries, req.ValidateOnly = []kmsg.AlterClientQuotasRequestEntry{limit("user=other", metadata.ProducerByteRate, 5)}, true
		if got := w.alterQuotas(req); got[0].ErrorCode != 0 || w.c.Image().Quotas.Len() != 1 {
			t.Errorf("v%d: %+v, %d entities", v, got, w.c.Image().Quotas.Len())
		}
		gone := limit("user=good", metadata.ProducerByteRate, 0)
		gone.Ops[0].Remove = true
		w.setQuotas(gone)
		assert.True(t, w.c.Image().Quotas == nil, "it is still there")
	}
}

func TestThousandsOfQuotasInARequest(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	const many = 10_000
	w := emptyWorld(t)
	var entries []kmsg.AlterClientQuotasRequestEntry
	for i := range many {
		entries = append(entries, limit(fmt.Sprint("user=", i), metadata.ProducerByteRate, 1))
	}
	w.setQuotas(entries...)
	assert.Equal(t, len(w.request(&kmsg.DescribeClientQuotasRequest{Version: 1}).(*kmsg.DescribeClientQuotasResponse).Entries), many, "entries")
	if got := w.alterQuotas(&kmsg.AlterClientQuotasRequest{Version: 1, Entries: []kmsg.AlterClientQuotasRequestEntry{limit("user=more", metadata.ProducerByteRate, 1)}}); got[0].ErrorCode != kerr.PolicyViolation.Code {
		t.Errorf("one more: %+v", got)
	}
	for i, e := range w.alterQuotas(&kmsg.AlterClientQuotasRequest{Version: 1, Entries: make([]kmsg.AlterClientQuotasRequestEntry, 200_000)}) {
		assert.MustTrue(t, e.ErrorCode == kerr.InvalidRequest.Code && (i == 0) == (e.ErrorMessage != nil), "%d: %+v", i, e)
	}
}
