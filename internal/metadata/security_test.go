package metadata

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata/config"
)

func imageWith(t *testing.T, set map[string]string) *Image {
	t.Helper()
	defaults, err := config.NewBroker(set)
	assert.Must(t, err)
	return NewImage(defaults)
}

// naiveEffective has Kafka's eight levels one below the other.
func naiveEffective(q map[QuotaEntity]map[string]float64, key, user, client string) (QuotaEntity, bool) {
	named := func(n string) QuotaName { return QuotaName{Named: true, Name: n} }
	def := QuotaName{Named: true}
	for _, e := range []QuotaEntity{
		{User: named(user), ClientID: named(client)},
		{User: named(user), ClientID: def},
		{User: named(user)},
		{User: def, ClientID: named(client)},
		{User: def, ClientID: def},
		{User: def},
		{ClientID: named(client)},
		{ClientID: def},
	} {
		if _, ok := q[e][key]; ok {
			return e, true
		}
	}
	return QuotaEntity{}, false
}

func genQuotaEntity(t *rapid.T) QuotaEntity {
	part := rapid.SampledFrom([]QuotaName{{}, Default(), Some("a"), Some("b")})
	e := QuotaEntity{User: part.Draw(t, "user"), ClientID: part.Draw(t, "client")}
	if e == (QuotaEntity{}) {
		e.IP = rapid.SampledFrom([]QuotaName{Default(), Some("::1"), Some("10.0.0.1")}).Draw(t, "ip")
	}
	return e
}

// Quotas are those of a map that is changed in the same way; what counts is what Kafka's
// order says; and an image from before a change stays as it was.
func TestQuotasAreAskedInKafkasOrder(t *testing.T) {
	image := imageWith(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		now, model := image, map[QuotaEntity]map[string]float64{}
		keys := []string{ProducerByteRate, ConsumerByteRate, ConnectionCreationRate}
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
			before, old := now.Quotas, maps.Clone(model)
			edit := now.Edit()
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				e := genQuotaEntity(t)
				set := map[string]float64{}
				for _, key := range keys {
					if rapid.Bool().Draw(t, key) {
						set[key] = rapid.Float64Range(1, 9).Draw(t, "value")
					}
				}
				edit.SetQuotas(e, set)
				if model[e] = set; len(set) == 0 {
					delete(model, e)
				}
			}
			now = edit.Image()
			checkSameQuotas(t, before, old)
			checkSameQuotas(t, now.Quotas, model)
		}
		for _, user := range []string{"a", "b", "c", ""} {
			for _, client := range []string{"a", "b", "c", ""} {
				for _, key := range keys {
					want, found := naiveEffective(model, key, user, client)
					value, e, ok := now.Quotas.Effective(key, user, client)
					if ok != found || e != want || value != model[want][key] {
						t.Fatalf("%s of %q %q: %v of %+v (%v), want that of %+v (%v)", key, user, client, value, e, ok, want, found)
					}
				}
			}
		}
		for _, ip := range []string{"::1", "10.0.0.1", "10.0.0.2"} {
			want, found := model[QuotaEntity{IP: Some(ip)}][ConnectionCreationRate]
			if !found {
				want, found = model[QuotaEntity{IP: Default()}][ConnectionCreationRate]
			}
			if value, ok := now.Quotas.EffectiveIP(ip); ok != found || value != want {
				t.Fatalf("%s: %v, %v, want %v, %v", ip, value, ok, want, found)
			}
		}
	})
}

func checkSameQuotas(t *rapid.T, q *Quotas, model map[QuotaEntity]map[string]float64) {
	size := 0
	for e, set := range model {
		assert.MustEqualMaps(t, q.Of(e), set, "%+v", e)
		size += len(e.User.Name) + len(e.ClientID.Name) + len(e.IP.Name)
		for key := range set {
			size += len(key) + 8
		}
	}
	entities := q.Entities()
	if len(entities) != len(model) || q.Len() != len(model) || q.Size() != size || (q == nil) != (len(model) == 0) {
		t.Fatalf("%d entities (%d) of %d bytes, want %d of %d", len(entities), q.Len(), q.Size(), len(model), size)
	}
	assert.MustTrue(t, slices.IsSortedFunc(entities, QuotaEntity.compare), "not in order: %+v", entities)
}

func TestEntitiesAreListedInOneOrder(t *testing.T) {
	want := []QuotaEntity{
		{IP: Default()}, {IP: Some("::1")}, {ClientID: Default()}, {ClientID: Some("c")},
		{User: Default()}, {User: Default(), ClientID: Some("c")}, {User: Some("a")}, {User: Some("a"), ClientID: Default()}, {User: Some("b")},
	}
	edit := imageWith(t, nil).Edit()
	for _, e := range slices.Backward(want) {
		edit.SetQuotas(e, map[string]float64{ProducerByteRate: 1})
	}
	assert.EqualSlices(t, edit.Image().Quotas.Entities(), want)
}

func TestUsersAreThoseThatWereSet(t *testing.T) {
	image := imageWith(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		now, model := image, map[string][]Credential{}
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
			before, old := now.Users, maps.Clone(model)
			edit := now.Edit()
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				name := rapid.SampledFrom([]string{"a", "b", "long name"}).Draw(t, "name")
				var list []Credential
				for _, hash := range rapid.SampledFrom([][]int8{nil, {1}, {2}, {2, 1}, {1, 2}}).Draw(t, "hashes") {
					list = append(list, Credential{Hash: hash, Iterations: 4096, Salt: []byte(rapid.StringN(1, 9, 9).Draw(t, "salt")), StoredKey: make([]byte, 32)})
				}
				edit.SetUser(name, list)
				if model[name] = list; len(list) == 0 {
					delete(model, name)
				}
			}
			now = edit.Image()
			checkSameUsers(t, before, old)
			checkSameUsers(t, now.Users, model)
		}
	})
}

func checkSameUsers(t *rapid.T, u *Users, model map[string][]Credential) {
	size := 0
	for name, list := range model {
		size += len(name)
		for _, c := range list {
			got, ok := u.Credential(name, c.Hash)
			assert.MustTrue(t, ok && got.Equal(c), "%s has not what was set", name)
			size += len(c.Salt) + len(c.StoredKey)
		}
		if got := u.Credentials(name); len(got) != len(list) || !slices.IsSortedFunc(got, func(a, b Credential) int { return int(a.Hash) - int(b.Hash) }) {
			t.Fatalf("%s has %d credentials, or not in order", name, len(got))
		}
	}
	if names := slices.Sorted(maps.Keys(model)); !slices.Equal(u.Names(), names) || u.Len() != len(names) || u.Size() != size || (u == nil) != (len(names) == 0) {
		t.Fatalf("%v (%d) of %d bytes, want %v of %d", u.Names(), u.Len(), u.Size(), names, size)
	}
}

func TestACredentialIsNotWhatItWasMadeOf(t *testing.T) {
	salt := []byte("salt")
	edit := imageWith(t, nil).Edit()
	edit.SetUser("a", []Credential{{Hash: 1, Salt: salt}})
	salt[0] = 'X' // As the frame of the next request does.
	if c, _ := edit.Image().Users.Credential("a", 1); !bytes.Equal(c.Salt, []byte("salt")) {
		t.Errorf("it became %q", c.Salt)
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	c := Credential{Hash: 1, Salt: []byte("QQQQ"), StoredKey: []byte("QQQQ"), ServerKey: []byte("QQQQ"), Iterations: 4096}
	edit := imageWith(t, nil).Edit()
	edit.SetUser("a", []Credential{c})
	image := edit.Image()
	for _, v := range []any{c, &c, []Credential{c}, UserChange{Name: "a", Hash: 1, Set: &c}, image.Users, image} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(format, v); strings.Contains(s, "QQQQ") || strings.Contains(s, "81 81") || strings.Contains(s, "0x51, 0x51") {
				t.Errorf("%s of %T shows a secret: %.200s", format, v, s)
			}
		}
	}
}

func TestSettingsSayWhetherRulesCountAndForWhom(t *testing.T) {
	if i := imageWith(t, nil); i.Authorizes() || i.Rules == nil || i.Rules.Policy().AllowEveryone {
		t.Errorf("without settings: %v, %+v", i.Authorizes(), i.Rules)
	}
	i := imageWith(t, map[string]string{"authorizer.class.name": "muster", "super.users": "User:a;User:b", "allow.everyone.if.no.acl.found": "true"})
	if p := i.Rules.Policy(); !i.Authorizes() || !p.AllowEveryone || !slices.Equal(p.SuperUsers, []auth.Principal{"User:a", "User:b"}) {
		t.Errorf("%v, %+v", i.Authorizes(), p)
	}
	// Also after the broker's settings were altered, and rules.
	r := auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "t", Principal: "User:c", Host: "*", Operation: auth.Read, Permission: auth.Allow}
	edit := i.Edit()
	edit.AddRule(r)
	edit.SetBrokerConfig(map[string]string{"num.partitions": "3"})
	next := edit.Image()
	if !next.Authorizes() || !next.Rules.IsSuper("User:b", "") || !next.Rules.Has(r) || i.Rules.Has(r) {
		t.Errorf("%v, %+v", next.Authorizes(), next.Rules.Policy())
	}
	edit.RemoveRule(r.ID())
	edit.RemoveRule("none")
	assert.False(t, edit.Image().Rules.Has(r), "the rule is still there")
	for _, name := range []string{authorizerSetting, superUsersSetting, allowEveryoneSetting} {
		assert.True(t, config.BrokerDef(name).Static, "%s may be altered, and the image does not see it", name)
	}
	bad, err := config.NewBroker(map[string]string{"super.users": "nobody"})
	assert.False(t, err == nil && CheckPolicy(bad) == nil, "a super user without a type is taken")
}

func TestARotatedSecretIsKnownBeforeItIsUsedAndTheOldOneAcceptedAfterwards(t *testing.T) {
	begin := Secrets{Current: Secret{Text: "old"}}
	at := time.Now()
	s := begin.Rotate("new", at)
	old, next := Secret{"old", 0}, Secret{"new", 1}
	for _, c := range []struct {
		after    time.Duration
		use      Secret
		overlaps bool
	}{
		{-time.Minute, old, true}, // The clock of another broker.
		{0, old, true},
		{SecretSwitch - 1, old, true},
		{SecretSwitch, next, true},
		{SecretOverlap - 1, next, true},
		{SecretOverlap, next, false},
	} {
		now := at.Add(c.after)
		if use, overlaps := s.Use(now), s.Overlaps(now); use != c.use || overlaps != c.overlaps {
			t.Errorf("%s after: uses %v, and accepts the old one: %v", c.after, use.Text, overlaps)
		}
	}
	if use := begin.Use(at); use != old || begin.Overlaps(at) {
		t.Errorf("before there was any rotation: %v, %v", use, begin.Overlaps(at))
	}
	if again := s.Rotate("newer", at); begin.Lasting() != "old" || s.Lasting() != "old" || again.Lasting() != "old" || again.Current.Number != 2 {
		t.Errorf("what lasts is %s, %s, %s", begin.Lasting(), s.Lasting(), again.Lasting())
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	edit := imageWith(t, nil).Edit()
	first := Secrets{Current: Secret{Text: "QQQQ"}}
	edit.SetSecrets(first.Rotate("QQQQ", time.Now()))
	for _, v := range []any{edit.Image().Secrets, &edit.Image().Secrets, edit.Image()} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(format, v); strings.Contains(s, "QQQQ") {
				t.Errorf("%s of %T shows a secret: %.200s", format, v, s)
			}
		}
	}
}

func TestATopicIsShownToWhoMayDescribeIt(t *testing.T) {
	allow := func(host string, op auth.Operation, permission auth.Permission) auth.Rule {
		return auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "t", Principal: auth.User("ann"), Host: host, Operation: op, Permission: permission}
	}
	guarded := map[string]string{"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:root"}
	ann := Asker{Principal: auth.User("ann"), Host: "10.0.0.1"}
	for _, c := range []struct {
		name  string
		set   map[string]string
		rules []auth.Rule
		who   Asker
		want  bool
	}{
		{"without an authorizer", nil, nil, Asker{}, true},
		{"without a rule", guarded, nil, ann, false},
		{"to nobody", guarded, []auth.Rule{allow(auth.AnyHost, auth.Describe, auth.Allow)}, Asker{}, false},
		{"to a super user", guarded, nil, Asker{Principal: auth.User("root")}, true},
		{"by describe", guarded, []auth.Rule{allow(auth.AnyHost, auth.Describe, auth.Allow)}, ann, true},
		{"by read, which implies it", guarded, []auth.Rule{allow("10.0.0.1", auth.Read, auth.Allow)}, ann, true},
		{"from another host", guarded, []auth.Rule{allow("10.0.0.2", auth.Read, auth.Allow)}, ann, false},
		{"by a right that does not imply it", guarded, []auth.Rule{allow(auth.AnyHost, auth.DescribeConfigs, auth.Allow)}, ann, false},
		{"where it is denied", guarded, []auth.Rule{allow(auth.AnyHost, auth.Read, auth.Allow), allow(auth.AnyHost, auth.Describe, auth.Deny)}, ann, false},
	} {
		edit := imageWith(t, c.set).Edit()
		for _, r := range c.rules {
			edit.AddRule(r)
		}
		assert.Equal(t, edit.Image().Shows("t", c.who), c.want, "%s", c.name)
	}
}
