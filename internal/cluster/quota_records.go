package cluster

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"muster/internal/metadata"
	"muster/internal/record"
)

// The key of a record of quotas names the entity by its parts, as in
// quota/users/alice/clients/<default>. Names are escaped, so that no name has a slash and
// none is the default.
const (
	usersPart   = "users/"
	clientsPart = "clients/"
	ipsPart     = "ips/"
	defaultName = "<default>"
)

func quotaKeyOf(e metadata.QuotaEntity) string {
	var parts []string
	for _, p := range []struct {
		kind string
		name metadata.QuotaName
	}{{usersPart, e.User}, {clientsPart, e.ClientID}, {ipsPart, e.IP}} {
		switch {
		case p.name.Named && p.name.Name == "":
			parts = append(parts, p.kind+defaultName)
		case p.name.Named:
			parts = append(parts, p.kind+url.PathEscape(p.name.Name))
		}
	}
	return keyQuotaPrefix + strings.Join(parts, "/")
}

// parseQuotaEntity reads what quotaKeyOf wrote, without the prefix.
func parseQuotaEntity(s string) (e metadata.QuotaEntity, err error) {
	parts := strings.Split(s, "/")
	for i := 0; i+1 < len(parts); i += 2 {
		var name metadata.QuotaName
		if name, err = parseQuotaName(parts[i+1]); err != nil {
			return e, err
		}
		switch parts[i] + "/" {
		case usersPart:
			e.User = name
		case clientsPart:
			e.ClientID = name
		case ipsPart:
			e.IP = name
		}
	}
	if e == (metadata.QuotaEntity{}) || quotaKeyOf(e) != keyQuotaPrefix+s {
		return e, fmt.Errorf("metadata record of quotas of %q, which names no entity", s)
	}
	return e, nil
}

func parseQuotaName(s string) (metadata.QuotaName, error) {
	if s == defaultName {
		return metadata.Default(), nil
	}
	name, err := url.PathUnescape(s)
	return metadata.Some(name), err
}

func quotasRecord(e metadata.QuotaEntity, set map[string]float64) record.Record {
	if len(set) == 0 {
		return tombstone(quotaKeyOf(e))
	}
	return keyed(quotaKeyOf(e), set)
}

func applyQuotas(edit *metadata.Edit, entity string, r *record.Record) error {
	e, err := parseQuotaEntity(entity)
	if err != nil {
		return err
	}
	var set map[string]float64
	if !r.Tombstone() {
		if err := json.Unmarshal(r.Value, &set); err != nil {
			return fmt.Errorf("metadata record of quotas of %q: %w", entity, err)
		}
	}
	edit.SetQuotas(e, set)
	return nil
}
