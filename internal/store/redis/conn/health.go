package conn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// minVersion is the first major version that tells a group's lag and lets a
// client set entries-read, and takes LIMIT and exact ids where we use them.
const minVersion = 7

// Report is what Inspect found out about the servers behind a client.
type Report struct {
	Name      string // redis or valkey
	Version   string // of the oldest server
	Mode      rueidis.ClientMode
	Primaries int
	Replicas  int // of the primary that has the fewest
	// Warnings say in whole sentences what can be lost, and what to set.
	Warnings []string
}

func (r Report) String() string {
	return fmt.Sprintf("%s %s, %s, primaries: %d, replicas of each: %d", r.Name, r.Version, r.Mode, r.Primaries, r.Replicas)
}

// facts are what one server says about itself. What it does not say is absent.
type facts map[string]string

// Inspect asks all primaries what they are and how they are configured. It
// fails if one of them is too old or does not answer. Servers that allow
// neither CONFIG nor INFO, as managed ones may, are reported with what is
// known.
func Inspect(ctx context.Context, client rueidis.Client) (Report, error) {
	r := Report{Mode: client.Mode(), Replicas: -1}
	warnings := make(map[string][]string) // where each applies
	for address, node := range client.Nodes() {
		f, err := ask(ctx, node)
		if err != nil {
			if client.Mode() == rueidis.ClientModeCluster {
				continue // It may be a replica; a primary that is away shows elsewhere.
			}
			return r, Attempt("inspecting redis at "+address, err)
		}
		if f["role"] == "slave" {
			continue
		}
		if err := f.checkVersion(address); err != nil {
			return r, err
		}
		r.add(f)
		for _, w := range f.warnings() {
			warnings[w] = append(warnings[w], address)
		}
	}
	if r.Primaries == 0 {
		return r, Attempt("inspecting redis", rueidis.ErrNoAddr)
	}
	for _, text := range slices.Sorted(maps.Keys(warnings)) {
		if at := warnings[text]; len(at) < r.Primaries {
			slices.Sort(at)
			text += " (" + strings.Join(at, ", ") + ")"
		}
		r.Warnings = append(r.Warnings, text)
	}
	return r, nil
}

// add counts a primary in.
func (r *Report) add(f facts) {
	r.Primaries++
	if r.Name == "" || major(f["version"]) < major(r.Version) {
		r.Name, r.Version = f["name"], f["version"]
	}
	if n, err := strconv.Atoi(f["connected_slaves"]); err == nil && (r.Replicas < 0 || n < r.Replicas) {
		r.Replicas = n
	}
	r.Replicas = max(r.Replicas, 0)
}

// ask collects a server's facts from INFO, CONFIG GET and HELLO.
func ask(ctx context.Context, node rueidis.Client) (facts, error) {
	replies := node.DoMulti(ctx,
		node.B().Hello().Build(),
		node.B().Info().Build(),
		node.B().ConfigGet().Parameter("maxmemory-policy", "save", "appendfsync", "appendonly").Build())
	f := make(facts)
	hello, err := replies[0].AsStrMap()
	if err != nil && IsPassing(err) {
		return nil, err
	}
	f["name"], f["version"], f["role"] = hello["server"], hello["version"], strings.Replace(hello["role"], "replica", "slave", 1)
	if text, err := replies[1].ToString(); err == nil {
		f.read(text)
		f["name"], f["version"] = "redis", f["redis_version"]
		if v := f["valkey_version"]; v != "" {
			f["name"], f["version"] = "valkey", v
		}
	} else if IsPassing(err) {
		return nil, err
	}
	config, err := replies[2].AsStrMap()
	if err != nil && IsPassing(err) {
		return nil, err
	}
	maps.Copy(f, config)
	return f, nil
}

// read adds the lines of an INFO. RESP3 puts the kind of text before it.
func (f facts) read(text string) {
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
}

func (f facts) checkVersion(address string) error {
	if v := f["version"]; v != "" && major(v) < minVersion {
		return fmt.Errorf("%s at %s has version %s: muster needs Redis %d or later, or Valkey", f["name"], address, v, minVersion)
	}
	return nil
}

// major returns the first number of a version, and a large one if there is
// none, so that a server that hides its version is not taken for an old one.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 1 << 30
	}
	return n
}

// warnings says what a primary's configuration may cost.
func (f facts) warnings() []string {
	var list []string
	if w := f.evictionWarning(); w != "" {
		list = append(list, w)
	}
	if w := f.persistenceWarning(); w != "" {
		list = append(list, w)
	}
	for _, status := range [][2]string{
		{"aof_last_write_status", "write of the append-only file"},
		{"aof_last_bgrewrite_status", "rewrite of the append-only file"},
		{"rdb_last_bgsave_status", "snapshot"},
	} {
		if f[status[0]] == "err" {
			list = append(list, "Redis says that its last "+status[1]+" failed: look at its log.")
		}
	}
	return list
}

func (f facts) evictionWarning() string {
	policy := f["maxmemory-policy"]
	if policy == "" {
		policy = f["maxmemory_policy"]
	}
	when := "once its maxmemory of " + f["maxmemory_human"] + " is used"
	if limit := f["maxmemory"]; limit == "" || limit == "0" {
		when = "once its memory is limited (maxmemory) and used"
	}
	switch {
	case strings.HasPrefix(policy, "allkeys-"):
		return fmt.Sprintf("maxmemory-policy is %s: %s, Redis deletes whole partitions. Set it to noeviction.", policy, when)
	case strings.HasPrefix(policy, "volatile-"):
		return fmt.Sprintf("maxmemory-policy is %s: %s, Redis deletes the registrations of live brokers. Set it to noeviction.", policy, when)
	}
	return ""
}

func (f facts) persistenceWarning() string {
	save, configKnown := f["save"]
	aof := f["aof_enabled"] == "1" || f["appendonly"] == "yes"
	_, infoKnown := f["aof_enabled"]
	switch {
	case !configKnown && !infoKnown:
		return "Redis allows neither INFO nor CONFIG: whether it keeps its data over a restart cannot be seen."
	case !aof && !configKnown:
		return "appendonly is off: a crash of Redis loses what it has not saved in a snapshot, and whether it makes any cannot be seen."
	case !aof && save == "":
		return "Persistence is off (no appendonly, no save): a restart of Redis loses everything. Set appendonly to yes."
	case !aof:
		return fmt.Sprintf("appendonly is off: a crash of Redis loses all records since its last snapshot (save %s). Set appendonly to yes.", save)
	case f["appendfsync"] == "everysec":
		return "appendfsync is everysec: a loss of power can lose up to two seconds of acknowledged records, unless a replica has them (min.insync.replicas). Set it to always to keep them."
	case f["appendfsync"] == "no":
		return "appendfsync is no: a loss of power can lose half a minute of acknowledged records, unless a replica has them (min.insync.replicas). Set it to everysec or always."
	}
	return ""
}
