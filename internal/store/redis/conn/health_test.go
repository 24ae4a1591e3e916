package conn

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
	"muster/internal/store"
)

func inspect(t *testing.T, url string) Report {
	t.Helper()
	r, err := Inspect(context.Background(), connect(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestInspectKnowsEveryDeployment(t *testing.T) {
	want := map[redistest.Kind]Report{
		redistest.KindSingle:   {Mode: rueidis.ClientModeStandalone, Primaries: 1, Replicas: 0},
		redistest.KindCluster:  {Mode: rueidis.ClientModeCluster, Primaries: 3, Replicas: 1},
		redistest.KindSentinel: {Mode: rueidis.ClientModeSentinel, Primaries: 1, Replicas: 2},
	}
	for kind, w := range want {
		t.Run(string(kind), func(t *testing.T) {
			r := inspect(t, redistest.Shared(t, kind).URL())
			if r.Mode != w.Mode || r.Primaries != w.Primaries || r.Replicas != w.Replicas || major(r.Version) < minVersion || r.Name == "" {
				t.Errorf("%v, want %v", r, w)
			}
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "appendfsync is no") {
				t.Errorf("warnings: %q", r.Warnings)
			}
		})
	}
}

func TestInspectWarnsOfWhatCanBeLost(t *testing.T) {
	node := redistest.Single(t).Nodes[0]
	for _, c := range []struct {
		config []string
		want   string
	}{
		{[]string{"appendonly", "yes", "appendfsync", "always", "save", "", "maxmemory-policy", "noeviction"}, ""},
		{[]string{"appendfsync", "everysec"}, "two seconds"},
		{[]string{"appendfsync", "no"}, "half a minute"},
		{[]string{"appendonly", "no"}, "a restart of Redis loses everything"},
		{[]string{"save", "3600 1"}, "since its last snapshot (save 3600 1)"},
		{[]string{"appendonly", "yes", "appendfsync", "always", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb"},
			"allkeys-lru: once its maxmemory of 100.00M is used, Redis deletes whole partitions"},
		{[]string{"maxmemory", "0"}, "allkeys-lru: once its memory is limited"},
		{[]string{"maxmemory-policy", "volatile-ttl"}, "registrations of live brokers"},
	} {
		if _, err := node.Do(append([]string{"CONFIG", "SET"}, c.config...)...); err != nil {
			t.Fatal(err)
		}
		r := inspect(t, "redis://"+node.Addr())
		switch {
		case c.want == "" && len(r.Warnings) != 0:
			t.Errorf("%q: %q", c.config, r.Warnings)
		case c.want != "" && (len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], c.want)):
			t.Errorf("%q: %q do not say %q", c.config, r.Warnings, c.want)
		}
	}
}

func TestInspectNamesTheServersThatDiffer(t *testing.T) {
	s := redistest.CalmCluster(t, "appendfsync always")
	odd := s.Nodes[1]
	if _, err := odd.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-random"); err != nil {
		t.Fatal(err)
	}
	r := inspect(t, s.URL())
	if len(r.Warnings) != 1 || !strings.HasSuffix(r.Warnings[0], "("+odd.Addr()+")") {
		t.Errorf("warnings: %q", r.Warnings)
	}
}

func TestInspectManagesWithoutConfigAndInfo(t *testing.T) {
	s := redistest.Single(t, "user noconfig on >p ~* &* +@all -config", "user noinfo on >p ~* &* +@all -config -info")
	r := inspect(t, "redis://noconfig:p@"+s.Nodes[0].Addr())
	if r.Replicas != 0 || len(r.Warnings) != 0 || major(r.Version) < minVersion {
		t.Errorf("without CONFIG: %v %q", r, r.Warnings)
	}
	if _, err := s.Nodes[0].Do("CONFIG", "SET", "appendonly", "no", "maxmemory-policy", "allkeys-lfu"); err != nil {
		t.Fatal(err)
	}
	r = inspect(t, "redis://noconfig:p@"+s.Nodes[0].Addr())
	if text := strings.Join(r.Warnings, "\n"); len(r.Warnings) != 2 || !strings.Contains(text, "allkeys-lfu") || !strings.Contains(text, "whether it makes any cannot be seen") {
		t.Errorf("without CONFIG: %q", r.Warnings)
	}
	r = inspect(t, "redis://noinfo:p@"+s.Nodes[0].Addr())
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "neither INFO nor CONFIG") || r.Name == "" || major(r.Version) < minVersion {
		t.Errorf("without INFO: %v %q", r, r.Warnings)
	}
}

func TestInspectRefusesOldServers(t *testing.T) {
	err := facts{"name": "redis", "version": "6.2.14"}.checkVersion("h:1")
	if err == nil || !strings.Contains(err.Error(), "redis at h:1 has version 6.2.14: muster needs Redis 7 or later") {
		t.Error(err)
	}
	for _, version := range []string{"7.0.0", "8.2", "255.255.255", "", "unstable"} {
		if err := (facts{"version": version}).checkVersion("h:1"); err != nil {
			t.Error(err)
		}
	}
}

func TestInspectSaysThatRedisIsAway(t *testing.T) {
	for _, s := range []*redistest.Server{redistest.Single(t), redistest.Cluster(t)} {
		client := connect(t, s.URL())
		for _, n := range s.Nodes {
			n.Kill()
		}
		if _, err := Inspect(context.Background(), client); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", s.Kind, err)
		}
	}
}
