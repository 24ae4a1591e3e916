package cluster

import (
	"context"
	"maps"
	"math"
	"net/netip"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/record"
)

// Limits of quotas.
const (
	maxQuotas     = 10_000 // entities that have some
	maxQuotaBytes = 4 << 20
	maxQuotaName  = math.MaxInt16
)

// quotaKey says which values a key of quotas has.
type quotaKey struct {
	most  float64
	whole bool
}

// The keys of users and clients, and those of addresses.
var (
	clientQuotaKeys = map[string]quotaKey{
		metadata.ProducerByteRate:       {math.MaxInt64, true},
		metadata.ConsumerByteRate:       {math.MaxInt64, true},
		metadata.RequestPercentage:      {math.MaxFloat64, false},
		metadata.ControllerMutationRate: {math.MaxFloat64, false},
	}
	addressQuotaKeys = map[string]quotaKey{metadata.ConnectionCreationRate: {math.MaxInt32, true}}
)

// AlterQuotas changes quotas, of each entity on its own. An entity that is named twice is
// not changed.
func (c *Controller) AlterQuotas(ctx context.Context, changes []metadata.QuotaChange, validateOnly bool) (errs []error) {
	changes = canonicalQuotas(changes)
	err := c.durably(ctx, func() error {
		edit := c.image.Load().Edit()
		errs = checkQuotas(changes)
		var recs []record.Record
		for i, ch := range changes {
			if errs[i] != nil {
				continue
			}
			quotas := edit.Image().Quotas
			next := withQuotas(quotas.Of(ch.Entity), ch)
			if errs[i] = checkQuotaRoom(quotas, ch.Entity, next); errs[i] != nil || maps.Equal(quotas.Of(ch.Entity), next) {
				continue
			}
			edit.SetQuotas(ch.Entity, next)
			recs = append(recs, quotasRecord(ch.Entity, next))
		}
		if validateOnly || len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	return fill(errs, err)
}

// canonicalQuotas writes addresses in the one form in which they are looked up.
func canonicalQuotas(changes []metadata.QuotaChange) []metadata.QuotaChange {
	out := slices.Clone(changes)
	for i := range out {
		if addr, err := netip.ParseAddr(out[i].Entity.IP.Name); err == nil {
			out[i].Entity.IP.Name = auth.Host(addr)
		}
	}
	return out
}

func checkQuotas(changes []metadata.QuotaChange) []error {
	errs := make([]error, len(changes))
	first := make(map[metadata.QuotaEntity]int, len(changes))
	for i, ch := range changes {
		if errs[i] = checkQuota(ch); errs[i] != nil {
			continue
		}
		if was, again := first[ch.Entity]; again {
			errs[i] = metadata.Refuse(kerr.InvalidRequest, "an entity must appear at most once in the request")
			errs[was] = errs[i]
			continue
		}
		first[ch.Entity] = i
	}
	return errs
}

// checkQuota has Kafka's rules and words where Kafka checks. Kafka resolves names of
// hosts; an address is what connections have.
func checkQuota(ch metadata.QuotaChange) error {
	e := ch.Entity
	keys := clientQuotaKeys
	switch {
	case e.IP.Named && (e.User.Named || e.ClientID.Named):
		return metadata.Refuse(kerr.InvalidRequest, "Invalid quota entity combination, IP entity should not be combined with User or ClientId")
	case e == (metadata.QuotaEntity{}):
		return metadata.Refuse(kerr.InvalidRequest, "Invalid empty client quota entity")
	case max(len(e.User.Name), len(e.ClientID.Name)) > maxQuotaName:
		return metadata.Refuse(kerr.InvalidRequest, "a name has at most %d bytes", maxQuotaName)
	case e.IP.Named:
		if _, err := netip.ParseAddr(e.IP.Name); err != nil && e.IP.Name != "" {
			return metadata.Refuse(kerr.InvalidRequest, "%s is not a valid IP address", shorten(e.IP.Name))
		}
		keys = addressQuotaKeys
	}
	for _, key := range slices.Sorted(maps.Keys(ch.Set)) {
		if err := checkQuotaValue(keys, key, ch.Set[key]); err != nil {
			return err
		}
		if slices.Contains(ch.Remove, key) {
			return metadata.Refuse(kerr.InvalidRequest, "Duplicate quota key %s", key)
		}
	}
	return nil
}

// checkQuotaValue also refuses what is no number, which Kafka takes.
func checkQuotaValue(keys map[string]quotaKey, key string, value float64) error {
	def, ok := keys[key]
	switch {
	case !ok:
		return metadata.Refuse(kerr.InvalidRequest, "Invalid configuration key %s", shorten(key))
	case math.IsNaN(value) || value <= 0:
		return metadata.Refuse(kerr.InvalidRequest, "Quota %s must be greater than 0", key)
	case value > def.most:
		return metadata.Refuse(kerr.InvalidRequest, "Proposed value for %s is too large", key)
	case def.whole && math.Abs(math.Mod(value, 1)) > 1e-6:
		return metadata.Refuse(kerr.InvalidRequest, "%s cannot be a fractional value", key)
	}
	return nil
}

func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// withQuotas returns the quotas of an entity after a change.
func withQuotas(old map[string]float64, ch metadata.QuotaChange) map[string]float64 {
	next := map[string]float64{}
	maps.Copy(next, old)
	for _, key := range ch.Remove {
		delete(next, key)
	}
	maps.Copy(next, ch.Set)
	return next
}

// checkQuotaRoom refuses what would take more room than there is. What takes less than
// before is never refused.
func checkQuotaRoom(q *metadata.Quotas, e metadata.QuotaEntity, next map[string]float64) error {
	switch entities, bytes := q.With(e, next); {
	case entities > max(maxQuotas, q.Len()):
		return metadata.Refuse(kerr.PolicyViolation, "there are quotas of %d entities already, which is the limit", q.Len())
	case bytes > max(maxQuotaBytes, q.Size()):
		return metadata.Refuse(kerr.PolicyViolation, "the quotas would take %d bytes, which is more than %d", bytes, maxQuotaBytes)
	}
	return nil
}
