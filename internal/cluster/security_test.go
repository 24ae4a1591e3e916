package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/disk"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

// credential is a good one; those of another seed differ.
func credential(hash int8, seed byte) *metadata.Credential {
	key := bytes.Repeat([]byte{seed}, keyLengths[hash])
	return &metadata.Credential{Hash: hash, Salt: []byte{'s', seed}, Iterations: 4096, StoredKey: key, ServerKey: key}
}

func setUser(name string, hash int8, seed byte) metadata.UserChange {
	return metadata.UserChange{Name: name, Hash: hash, Set: credential(hash, seed)}
}

func allow(user, topic string) auth.Rule {
	return auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: topic, Principal: auth.User(user), Host: "*", Operation: auth.Read, Permission: auth.Allow}
}

// anyRule is the filter that means all.
var anyRule = auth.Filter{Type: auth.AnyResource, Pattern: auth.AnyPattern, Operation: auth.AnyOperation, Permission: auth.AnyPermission}

func exactly(r auth.Rule) auth.Filter {
	principal := string(r.Principal)
	return auth.Filter{Type: r.Type, Pattern: r.Pattern, Name: &r.Name, Principal: &principal, Host: &r.Host, Operation: r.Operation, Permission: r.Permission}
}

func limit(user string, rate float64) metadata.QuotaChange {
	return metadata.QuotaChange{Entity: metadata.QuotaEntity{User: metadata.Some(user)}, Set: map[string]float64{metadata.ProducerByteRate: rate}}
}

func ok(t *testing.T, errs []error) {
	t.Helper()
	must(t, errors.Join(errs...))
}

// secured says all that an image knows of users, rules and quotas.
func secured(image *metadata.Image) string {
	var b strings.Builder
	fmt.Fprintln(&b, image.Users.Len(), image.Users.Size(), image.Rules.Len(), image.Rules.Size(), image.Quotas.Len(), image.Quotas.Size())
	for _, name := range image.Users.Names() {
		fmt.Fprintf(&b, "%q %s\n", name, userRecord(name, image.Users.Credentials(name)).Value)
	}
	for _, r := range image.Rules.Rules(anyRule) {
		fmt.Fprintln(&b, r)
	}
	for _, e := range image.Quotas.Entities() {
		fmt.Fprintf(&b, "%+v %v\n", e, image.Quotas.Of(e))
	}
	return b.String()
}

// recordsOf returns all records of the log of a broker alone.
func recordsOf(t *testing.T, c *Controller) (out []record.Record) {
	t.Helper()
	offset, end := c.log.Bounds()
	for offset < end {
		recs, err := c.log.Read(t.Context(), store.ReadRequest{Offset: offset, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		must(t, err)
		b, err := recs.Load()
		recs.Release()
		for err == nil && len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err == nil {
				err = batch.Each(func(r *record.Record) error {
					out = append(out, record.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
					return nil
				})
				offset = batch.LastOffset() + 1
			}
		}
		must(t, err)
	}
	return out
}

// compacted keeps the last record of each key, in any order.
func compacted(recs []record.Record, rng *rand.Rand) (out []record.Record) {
	last := map[string]int{}
	for i := range recs {
		last[string(recs[i].Key)] = i
	}
	for i := range recs {
		if last[string(recs[i].Key)] == i {
			out = append(out, recs[i])
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// Whatever is changed: what the log says is what the broker has, also if it was compacted.
func TestUsersRulesAndQuotasAreWhatTheLogSays(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "a/b", "<default>", "ü %2F"})
	rapid.Check(t, func(rt *rapid.T) {
		s := mem.New()
		c := open(t, s, false)
		for range rapid.IntRange(1, 8).Draw(rt, "requests") {
			change(rt, t, c, names)
		}
		live := secured(c.Image())
		if again := secured(open(t, s, false).Image()); again != live {
			rt.Fatalf("live\n%s\nreplayed\n%s", live, again)
		}
		state, edit := newState(1), emptyImage().Edit()
		recs := compacted(recordsOf(t, c), rand.New(rand.NewPCG(1, 2)))
		for i := range recs {
			if err := state.apply(&recs[i], edit); err != nil {
				rt.Fatal(err)
			}
		}
		if got := secured(edit.Image()); got != live {
			rt.Fatalf("live\n%s\ncompacted\n%s", live, got)
		}
	})
}

// change makes some request, good or bad.
func change(rt *rapid.T, t *testing.T, c *Controller, names *rapid.Generator[string]) {
	n := rapid.IntRange(0, 4).Draw(rt, "changes")
	switch rapid.IntRange(0, 3).Draw(rt, "request") {
	case 0:
		var changes []metadata.UserChange
		for range n {
			ch := setUser(names.Draw(rt, "user"), rapid.Int8Range(1, 3).Draw(rt, "hash"), rapid.Byte().Draw(rt, "seed"))
			if rapid.Bool().Draw(rt, "delete") {
				ch.Set = nil
			}
			changes = append(changes, ch)
		}
		c.AlterUsers(t.Context(), changes)
	case 1:
		var rules []auth.Rule
		for range n {
			rules = append(rules, allow(names.Draw(rt, "user"), names.Draw(rt, "topic")))
		}
		c.CreateRules(t.Context(), rules)
	case 2:
		var filters []auth.Filter
		for range n {
			f := exactly(allow(names.Draw(rt, "user"), names.Draw(rt, "topic")))
			if rapid.Bool().Draw(rt, "open") {
				f.Principal = nil
			}
			filters = append(filters, f)
		}
		c.DeleteRules(t.Context(), filters)
	case 3:
		var changes []metadata.QuotaChange
		for range n {
			part := rapid.Custom(func(rt *rapid.T) metadata.QuotaName {
				return rapid.SampledFrom([]metadata.QuotaName{{}, metadata.Default(), metadata.Some(names.Draw(rt, "name")), metadata.Some("::1")}).Draw(rt, "part")
			})
			ch := metadata.QuotaChange{Entity: metadata.QuotaEntity{User: part.Draw(rt, "user"), ClientID: part.Draw(rt, "client"), IP: part.Draw(rt, "ip")}}
			keys := rapid.SampledFrom([]string{metadata.ProducerByteRate, metadata.RequestPercentage, metadata.ConnectionCreationRate})
			if rapid.Bool().Draw(rt, "set") {
				ch.Set = map[string]float64{keys.Draw(rt, "key"): rapid.SampledFrom([]float64{1, 2, 0.5, -1, math.Pi}).Draw(rt, "value")}
			}
			if rapid.Bool().Draw(rt, "remove") {
				ch.Remove = []string{keys.Draw(rt, "key")}
			}
			changes = append(changes, ch)
		}
		c.AlterQuotas(t.Context(), changes, rapid.Bool().Draw(rt, "validate only"))
	}
}

func TestRecordsOfUsersRulesAndQuotasHaveThisForm(t *testing.T) {
	user := userRecord("a/b", []metadata.Credential{{Hash: 1, Salt: []byte("salt"), Iterations: 4096, StoredKey: []byte{1}, ServerKey: []byte{2}}})
	rule := ruleRecord(allow("alice", "orders"))
	for _, x := range []struct {
		rec  record.Record
		want string
	}{
		{user, `user/a/b {"credentials":[{"hash":1,"salt":"c2FsdA==","iterations":4096,"storedKey":"AQ==","serverKey":"Ag=="}]}`},
		{rule, "acl/" + allow("alice", "orders").ID() + ` {"type":"TOPIC","pattern":"LITERAL","name":"orders","principal":"User:alice","host":"*","operation":"READ","permission":"ALLOW"}`},
		{quotasRecord(metadata.QuotaEntity{User: metadata.Some("a/b"), ClientID: metadata.Default()}, map[string]float64{"producer_byte_rate": 1048576, "request_percentage": 12.5}), `quota/users/a%2Fb/clients/<default> {"producer_byte_rate":1048576,"request_percentage":12.5}`},
		{quotasRecord(metadata.QuotaEntity{User: metadata.Some("<default>")}, map[string]float64{"producer_byte_rate": 1}), `quota/users/%3Cdefault%3E {"producer_byte_rate":1}`},
		{userRecord("a", nil), `user/a `},
		{quotasRecord(metadata.QuotaEntity{ClientID: metadata.Some("c")}, nil), `quota/clients/c `},
		{quotasRecord(metadata.QuotaEntity{IP: metadata.Some("::1")}, map[string]float64{"connection_creation_rate": 3}), `quota/ips/::1 {"connection_creation_rate":3}`},
	} {
		assert.Equal(t, string(x.rec.Key)+" "+string(x.rec.Value), x.want)
		s := newState(1)
		assert.NoError(t, s.apply(&x.rec, emptyImage().Edit()))
		if x.rec.Value != nil && s.apply(&record.Record{Key: x.rec.Key, Value: []byte("x")}, emptyImage().Edit()) == nil {
			t.Errorf("%s: what is no JSON is taken", x.rec.Key)
		}
	}
	for _, key := range []string{"quota/", "quota/users", "quota/users/", "quota/users/a/", "quota/clients/a/users/b", "quota/users/%zz", "quota/hosts/a", "quota/users/a/users/b", "acl/x"} {
		s := newState(1)
		assert.True(t, s.apply(&record.Record{Key: []byte(key), Value: []byte(`{}`)}, emptyImage().Edit()) != nil, "%s is taken", key)
	}
}

func TestNothingIsStoredOfWhatStaysTheSame(t *testing.T) {
	c := open(t, mem.New(), false)
	again := func() {
		ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("a", 1, 1)}))
		ok(t, c.CreateRules(t.Context(), []auth.Rule{allow("a", "t"), allow("a", "t")}))
		ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("a", 1)}, false))
	}
	again()
	image := c.Image()
	_, end := c.log.Bounds()
	again()
	none := "none"
	if deleted, errs := c.DeleteRules(t.Context(), []auth.Filter{exactly(allow("b", "t")), {Type: auth.Topic, Pattern: auth.Match, Name: &none, Operation: auth.Read, Permission: auth.Deny}}); errors.Join(errs...) != nil || len(deleted[0])+len(deleted[1]) > 0 {
		t.Error(deleted, errs)
	}
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("b", 1)}, true))
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{{Entity: limit("b", 1).Entity, Remove: []string{"what"}}}, false))
	if _, now := c.log.Bounds(); now != end || c.Image() != image {
		t.Errorf("%d more records", now-end)
	}
}

// A broker that answered has it after the power failed, and one that could not store it
// does not have it.
func TestUsersRulesAndQuotasAreDurableBeforeTheyAreAnswered(t *testing.T) {
	fs := vfs.NewMem()
	s, err := disk.Open("data", disk.Options{FS: fs})
	must(t, err)
	defer s.Close()
	c := open(t, s, false)
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("a", 1, 1), setUser("b", 2, 1)}))
	ok(t, c.CreateRules(t.Context(), []auth.Rule{allow("a", "t"), allow("b", "t")}))
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("a", 1), limit("b", 2)}, false))
	checkAfterCrash(t, fs, c)
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{{Name: "a", Hash: 1}}))
	if _, errs := c.DeleteRules(t.Context(), []auth.Filter{exactly(allow("a", "t"))}); errs[0] != nil {
		t.Fatal(errs)
	}
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{{Entity: limit("a", 1).Entity, Remove: []string{metadata.ProducerByteRate}}}, false))
	checkAfterCrash(t, fs, c)

	before := c.Image()
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return errors.New("disk is broken")
		}
		return nil
	})
	deleted, deleteErrs := c.DeleteRules(t.Context(), []auth.Filter{anyRule})
	for _, err := range slices.Concat(
		c.AlterUsers(t.Context(), []metadata.UserChange{setUser("c", 1, 1), {Name: "b", Hash: 2}}),
		c.CreateRules(t.Context(), []auth.Rule{allow("c", "t")}), deleteErrs,
		c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("c", 1)}, false),
	) {
		assert.ErrorIs(t, err, store.ErrStorage)
	}
	assert.True(t, c.Image() == before && len(deleted[0]) == 0, "changed, or said so: %v", deleted)
}

func checkAfterCrash(t *testing.T, fs *vfs.Mem, c *Controller) {
	t.Helper()
	s, err := disk.Open("data", disk.Options{FS: fs.CrashStrict()})
	must(t, err)
	defer s.Close()
	if live, again := secured(c.Image()), secured(open(t, s, true).Image()); live != again {
		t.Errorf("live\n%s\nafter the crash\n%s", live, again)
	}
}

func TestBadUsersAreRefusedWithKafkasCodes(t *testing.T) {
	c := open(t, mem.New(), false)
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("a", 1, 1)}))
	with := func(change func(*metadata.Credential)) metadata.UserChange {
		ch := setUser("b", 1, 1)
		change(ch.Set)
		return ch
	}
	before := c.Image()
	for i, x := range []struct {
		change metadata.UserChange
		code   *kerr.Error
	}{
		{setUser("", 1, 1), kerr.UnacceptableCredential},
		{setUser("", 9, 1), kerr.UnacceptableCredential},
		{metadata.UserChange{Name: "", Hash: 1}, kerr.UnacceptableCredential},
		{setUser(strings.Repeat("n", maxUserName+1), 1, 1), kerr.UnacceptableCredential},
		{setUser("\xff", 1, 1), kerr.UnacceptableCredential},
		{setUser("b", 0, 1), kerr.UnsupportedSaslMechanism},
		{setUser("b", 3, 1), kerr.UnsupportedSaslMechanism},
		{metadata.UserChange{Name: "a", Hash: 3}, kerr.UnsupportedSaslMechanism},
		{metadata.UserChange{Name: "a", Hash: 2}, kerr.ResourceNotFound},
		{metadata.UserChange{Name: "b", Hash: 1}, kerr.ResourceNotFound},
		{with(func(c *metadata.Credential) { c.Iterations = 4095 }), kerr.UnacceptableCredential},
		{with(func(c *metadata.Credential) { c.Iterations = 16385 }), kerr.UnacceptableCredential},
		{with(func(c *metadata.Credential) { c.Salt = nil }), kerr.UnacceptableCredential},
		{with(func(c *metadata.Credential) { c.Salt = make([]byte, maxSalt+1) }), kerr.UnacceptableCredential},
		{with(func(c *metadata.Credential) { c.StoredKey = nil }), kerr.UnacceptableCredential},
		{with(func(c *metadata.Credential) { c.ServerKey = make([]byte, 31) }), kerr.UnacceptableCredential},
		{with(func(c *metadata.Credential) { c.Hash = 2 }), kerr.UnacceptableCredential},
	} {
		assert.ErrorIs(t, c.AlterUsers(t.Context(), []metadata.UserChange{x.change})[0], x.code, "case %d", i)
	}
	assert.Equal(t, c.Image(), before, "something was changed")
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{
		with(func(c *metadata.Credential) { c.Iterations, c.Salt = 16384, make([]byte, maxSalt) }), setUser(strings.Repeat("n", maxUserName), 2, 1),
	}))
}

func TestAUserIsChangedOncePerRequest(t *testing.T) {
	c := open(t, mem.New(), false)
	errs := c.AlterUsers(t.Context(), []metadata.UserChange{
		setUser("twice", 1, 1), setUser("ok", 1, 1), setUser("twice", 2, 1), setUser("thrice", 1, 1), setUser("thrice", 1, 1), setUser("thrice", 1, 1),
		{Name: "bad", Hash: 1}, setUser("bad", 1, 1),
	})
	for i, want := range []*kerr.Error{kerr.DuplicateResource, nil, kerr.DuplicateResource, kerr.DuplicateResource, kerr.DuplicateResource, kerr.DuplicateResource, kerr.ResourceNotFound, kerr.ResourceNotFound} {
		if want == nil && errs[i] != nil || want != nil && !errors.Is(errs[i], want) {
			t.Errorf("change %d: %v, want %v", i, errs[i], want)
		}
	}
	assert.EqualSlices(t, c.Image().Users.Names(), []string{"ok"}, "users")
	// One after the other a user has both, and loses one after the other.
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("ok", 2, 3)}))
	if got := c.Image().Users.Credentials("ok"); len(got) != 2 || !got[0].Equal(*credential(1, 1)) || !got[1].Equal(*credential(2, 3)) {
		t.Errorf("%d credentials", len(got))
	}
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("ok", 1, 9)}))
	if got, _ := c.Image().Users.Credential("ok", 1); !got.Equal(*credential(1, 9)) {
		t.Error("the password is the old one")
	}
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{{Name: "ok", Hash: 1}}))
	if _, found := c.Image().Users.Credential("ok", 1); found || c.Image().Users.Len() != 1 {
		t.Error("it is still there, or all of it is gone")
	}
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{{Name: "ok", Hash: 2}}))
	assert.True(t, c.Image().Users == nil, "the user is still there")
}

func TestBadQuotasAreRefusedWithKafkasCodes(t *testing.T) {
	c := open(t, mem.New(), false)
	user, ip := metadata.QuotaEntity{User: metadata.Some("a")}, metadata.QuotaEntity{IP: metadata.Some("10.0.0.1")}
	set := func(e metadata.QuotaEntity, key string, value float64) metadata.QuotaChange {
		return metadata.QuotaChange{Entity: e, Set: map[string]float64{key: value}}
	}
	before := c.Image()
	for i, ch := range []metadata.QuotaChange{
		{}, set(metadata.QuotaEntity{}, metadata.ProducerByteRate, 1),
		set(metadata.QuotaEntity{User: metadata.Some("a"), IP: metadata.Default()}, metadata.ProducerByteRate, 1),
		set(metadata.QuotaEntity{ClientID: metadata.Default(), IP: ip.IP}, metadata.ConnectionCreationRate, 1),
		set(metadata.QuotaEntity{IP: metadata.Some("localhost")}, metadata.ConnectionCreationRate, 1),
		set(metadata.QuotaEntity{User: metadata.Some(strings.Repeat("n", maxQuotaName+1))}, metadata.ProducerByteRate, 1),
		set(metadata.QuotaEntity{ClientID: metadata.Some(strings.Repeat("n", maxQuotaName+1))}, metadata.ProducerByteRate, 1),
		set(user, metadata.ConnectionCreationRate, 1), set(user, "producer_byte_rat", 1), set(user, "", 1), set(ip, metadata.ProducerByteRate, 1),
		set(user, metadata.ProducerByteRate, 0), set(user, metadata.ProducerByteRate, -1), set(user, metadata.ProducerByteRate, math.NaN()),
		set(user, metadata.ProducerByteRate, 1.5), set(user, metadata.ConsumerByteRate, 1e19), set(user, metadata.ConsumerByteRate, math.Inf(1)),
		set(user, metadata.RequestPercentage, math.Inf(1)), set(user, metadata.RequestPercentage, math.NaN()), set(user, metadata.ControllerMutationRate, math.Inf(-1)),
		set(ip, metadata.ConnectionCreationRate, 1<<31), set(ip, metadata.ConnectionCreationRate, 0.5),
		{Entity: user, Set: map[string]float64{metadata.ProducerByteRate: 1, "x": 1}},
		{Entity: user, Set: map[string]float64{metadata.ProducerByteRate: 1}, Remove: []string{metadata.ProducerByteRate}},
	} {
		for _, validateOnly := range []bool{true, false} {
			assert.ErrorIs(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{ch}, validateOnly)[0], kerr.InvalidRequest, "case %d", i)
		}
	}
	twice := c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("a", 1), limit("a", 2), set(metadata.QuotaEntity{IP: metadata.Some("::1")}, metadata.ConnectionCreationRate, 1), set(metadata.QuotaEntity{IP: metadata.Some("0:0::1")}, metadata.ConnectionCreationRate, 1)}, false)
	for i, err := range twice {
		assert.ErrorIs(t, err, kerr.InvalidRequest, "entity %d, named twice", i)
	}
	assert.Equal(t, c.Image(), before, "something was changed")
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{
		set(user, metadata.RequestPercentage, 0.25), set(metadata.QuotaEntity{User: metadata.Default()}, metadata.ControllerMutationRate, 1.5), set(metadata.QuotaEntity{IP: metadata.Default()}, metadata.ConnectionCreationRate, 7),
		set(metadata.QuotaEntity{ClientID: metadata.Some("c")}, metadata.ConsumerByteRate, 1<<62), set(metadata.QuotaEntity{IP: metadata.Some("::ffff:10.0.0.1")}, metadata.ConnectionCreationRate, 9),
	}, false))
	if rate, _ := c.Image().Quotas.EffectiveIP("10.0.0.1"); rate != 9 {
		t.Errorf("an address in another form has %v", rate)
	}
}

func TestUsersRulesAndQuotasAreBoundedInNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	c := open(t, mem.New(), false)
	edit := c.Image().Edit()
	for i := range maxRules {
		edit.AddRule(allow("a", fmt.Sprint(i)))
		if i < maxUsers {
			edit.SetUser(fmt.Sprint(i), []metadata.Credential{*credential(1, 1)})
		}
		if i < maxQuotas {
			edit.SetQuotas(limit(fmt.Sprint(i), 1).Entity, limit("", 1).Set)
		}
	}
	c.image.Store(edit.Image())
	wantCode(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("one more", 1, 1)})[0], kerr.PolicyViolation)
	wantCode(t, c.CreateRules(t.Context(), []auth.Rule{allow("one", "more")})[0], kerr.PolicyViolation)
	wantCode(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("one more", 1)}, false)[0], kerr.PolicyViolation)
	// What is there may change, and what goes makes room.
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{setUser("0", 1, 7), {Name: "1", Hash: 1}, setUser("one more", 1, 1)}))
	ok(t, c.CreateRules(t.Context(), []auth.Rule{allow("a", "0")}))
	if _, errs := c.DeleteRules(t.Context(), []auth.Filter{exactly(allow("a", "0"))}); errs[0] != nil {
		t.Error(errs)
	}
	errs := c.CreateRules(t.Context(), []auth.Rule{allow("one", "more"), allow("one", "more"), allow("two", "more")})
	ok(t, errs[:2])
	wantCode(t, errs[2], kerr.PolicyViolation)
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("0", 9), {Entity: limit("1", 1).Entity, Remove: []string{metadata.ProducerByteRate}}, limit("one more", 1)}, false))
}

func TestUsersRulesAndQuotasAreBoundedInBytes(t *testing.T) {
	c := open(t, mem.New(), false)
	long := strings.Repeat("n", 30_000)
	edit := c.Image().Edit()
	for i := 0; edit.Image().Users.Size()+31_000 < maxUserBytes; i++ {
		edit.SetUser(long+fmt.Sprint(i), []metadata.Credential{*credential(1, 1)})
	}
	for i := 0; edit.Image().Quotas.Size()+31_000 < maxQuotaBytes; i++ {
		edit.SetQuotas(limit(long+fmt.Sprint(i), 1).Entity, limit("", 1).Set)
	}
	for i := 0; edit.Image().Rules.Size()+31_000 < maxRuleBytes; i++ {
		edit.AddRule(allow("a", long+fmt.Sprint(i)))
	}
	c.image.Store(edit.Image())
	more := strings.Repeat("x", 32_000)
	users := c.AlterUsers(t.Context(), []metadata.UserChange{setUser(more, 1, 1), setUser("short", 1, 1)})
	rules := c.CreateRules(t.Context(), []auth.Rule{allow("a", more), allow("a", "short")})
	quotas := c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit(more, 1), limit("short", 1)}, false)
	for _, errs := range [][]error{users, rules, quotas} {
		wantCode(t, errs[0], kerr.PolicyViolation)
		ok(t, errs[1:])
	}
	// What takes less than before is taken, however much there is.
	ok(t, c.AlterUsers(t.Context(), []metadata.UserChange{{Name: long + "0", Hash: 1}, setUser(more, 1, 1)}))
	ok(t, c.AlterQuotas(t.Context(), []metadata.QuotaChange{{Entity: limit(long+"0", 1).Entity, Remove: []string{metadata.ProducerByteRate}}, limit(more, 1)}, false))
}

func TestDeletedRulesAreNamedByEachFilterThatMeansThem(t *testing.T) {
	c := open(t, mem.New(), false)
	ok(t, c.CreateRules(t.Context(), []auth.Rule{allow("a", "t"), allow("b", "t"), allow("a", "u")}))
	_, end := c.log.Bounds()
	principal, bad := "User:a", auth.Filter{}
	deleted, errs := c.DeleteRules(t.Context(), []auth.Filter{
		{Type: auth.Topic, Pattern: auth.AnyPattern, Principal: &principal, Operation: auth.AnyOperation, Permission: auth.AnyPermission},
		exactly(allow("a", "t")), bad, exactly(allow("z", "t")),
	})
	wantCode(t, errs[2], kerr.InvalidRequest)
	ok(t, slices.Concat(errs[:2], errs[3:]))
	want := [][]auth.Rule{{allow("a", "t"), allow("a", "u")}, {allow("a", "t")}, nil, nil}
	for i := range want {
		assert.EqualSlices(t, deleted[i], want[i], "filter %d means", i)
	}
	assert.EqualSlices(t, c.Image().Rules.Rules(anyRule), []auth.Rule{allow("b", "t")}, "what is left")
	if _, now := c.log.Bounds(); now != end+2 {
		t.Errorf("two rules are gone by %d records", now-end)
	}
}

// A request may have thousands of filters that mean thousands of rules each.
func TestARequestToDeleteRulesIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it asks 10,000 rules again and again, alone")
	}
	const many = 10_000
	c := open(t, mem.New(), false)
	edit := c.Image().Edit()
	for i := range many {
		edit.AddRule(allow("a", fmt.Sprint(i)))
	}
	c.image.Store(edit.Image())
	none := "none"
	nothing := anyRule
	nothing.Name = &none
	count := func(filters []auth.Filter) (served, named int) {
		c.image.Store(edit.Image())
		deleted, errs := c.DeleteRules(t.Context(), filters)
		for i := range errs {
			if errs[i] == nil {
				served++
			} else if !errors.Is(errs[i], kerr.InvalidRequest) {
				t.Fatal(errs[i])
			}
			named += len(deleted[i])
		}
		return served, named
	}
	if served, named := count(slices.Repeat([]auth.Filter{nothing}, many)); served != maxCompared/many || named != 0 {
		t.Errorf("%d filters were compared with all rules, %d named", served, named)
	}
	if served, named := count(slices.Repeat([]auth.Filter{anyRule}, many)); served != maxNamed/many || named != maxNamed {
		t.Errorf("%d filters named %d rules", served, named)
	}
	assert.Equal(t, c.Image().Rules.Len(), 0, "rules are left")
	long := emptyImage().Edit()
	for i := range 250 {
		long.AddRule(allow("a", strings.Repeat("n", 30_000)+fmt.Sprint(i)))
	}
	few := edit
	edit = long
	if served, named := count(slices.Repeat([]auth.Filter{anyRule}, 10)); served != 2 || named != 2*250 {
		t.Errorf("%d filters named %d rules of 30 KB", served, named)
	}
	edit = few
	var exact []auth.Filter
	for i := range many {
		exact = append(exact, exactly(allow("a", fmt.Sprint(i))))
	}
	if served, named := count(exact); served != many || named != many {
		t.Errorf("of %d rules %d were deleted by their own filter, %d named", many, served, named)
	}
}

func TestASuperUserThatCannotBeReadKeepsTheBrokerFromStarting(t *testing.T) {
	defaults, err := config.NewBroker(map[string]string{"super.users": "nobody"})
	if err == nil {
		_, err = Open(t.Context(), Options{Store: mem.New(), Self: metadata.Broker{ID: 1}, Defaults: defaults})
	}
	assert.Error(t, err, "it started")
}

func TestAUserIsNotInAnErrorOfItsRecord(t *testing.T) {
	r := userRecord("a", []metadata.Credential{{Hash: 1, Salt: []byte("QQQQ"), StoredKey: []byte("QQQQ")}})
	r.Value = append(r.Value, 'x')
	s := newState(1)
	err := s.apply(&r, emptyImage().Edit())
	encoded, _ := json.Marshal([]byte("QQQQ"))
	assert.True(t, err != nil && !strings.Contains(err.Error(), string(encoded[1:4])), "%v", err)
}
