package arrivals

import (
	"testing"
	"time"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/quota"
)

func imageOf(t *testing.T, set map[string]string) *metadata.Image {
	t.Helper()
	cfg, err := config.NewBroker(set)
	if err != nil {
		t.Fatal(err)
	}
	return metadata.NewImage(cfg, metadata.Broker{ID: 1})
}

// Clients of all addresses together may come as often as max.connection.creation.rate says,
// after a burst; brokers come by their own listener however many clients do.
func TestConnectionsOfAListenerAreLimitedInAll(t *testing.T) {
	now := time.Unix(1000, 0)
	image := imageOf(t, map[string]string{"max.connection.creation.rate": "5", "quota.window.num": "2", "quota.window.size.seconds": "1"})
	var told time.Duration
	a := New(func() *metadata.Image { return image }, func() time.Time { return now }, func(k quota.Kind, d time.Duration) {
		if k == quota.Connections {
			told += d
		}
	})
	a.Spared = "BROKERS"
	free := 0
	for a.On("CLIENTS") == 0 {
		if free++; free > 1000 {
			t.Fatal("there is no limit")
		}
	}
	if free < 5 || told == 0 {
		t.Errorf("%d come before one has to wait, %s are told", free, told)
	}
	if wait := a.On("BROKERS"); wait != 0 {
		t.Errorf("a broker waits for %s", wait)
	}
	now = now.Add(time.Minute)
	if wait := a.On("CLIENTS"); wait != 0 {
		t.Errorf("a minute later one waits for %s", wait)
	}
	if wait := New(func() *metadata.Image { return nil }, time.Now, nil).On("CLIENTS"); wait != 0 {
		t.Errorf("before there is metadata one waits for %s", wait)
	}
}

// An address has the quota of its one form: a zone, or IPv4 within IPv6, is not part of it.
// Others have what the default is.
func TestConnectionsOfAnAddressAreLimitedByItsQuota(t *testing.T) {
	edit := imageOf(t, map[string]string{"quota.window.num": "2", "quota.window.size.seconds": "1"}).Edit()
	for _, ip := range []string{"10.0.0.1", "fe80::1"} {
		edit.SetQuotas(metadata.QuotaEntity{IP: metadata.Some(ip)}, map[string]float64{metadata.ConnectionCreationRate: 5})
	}
	image, told := edit.Image(), 0
	a := New(func() *metadata.Image { return image }, func() time.Time { return time.Unix(1000, 0) }, func(quota.Kind, time.Duration) { told++ })
	for host, want := range map[string]bool{"10.0.0.1": true, "::ffff:10.0.0.1": true, "fe80::1%eth0": true, "10.0.0.2": false} {
		before, waits := told, false
		for range 100 {
			waits = waits || a.From(host) > 0
		}
		if waits != want || (told > before) != want {
			t.Errorf("%s waits: %t, told %d times", host, waits, told-before)
		}
	}
	edit = image.Edit()
	edit.SetQuotas(metadata.QuotaEntity{IP: metadata.Default()}, map[string]float64{metadata.ConnectionCreationRate: 0})
	if image = edit.Image(); a.From("10.0.0.2") == 0 {
		t.Error("the default does not count")
	}
}

func TestConnectionsPerAddressAreRead(t *testing.T) {
	got, err := PerAddress("10.0.0.1:5,[::1]:7, ::ffff:10.0.0.2:9")
	if err != nil || len(got) != 3 || got["10.0.0.1"] != 5 || got["::1"] != 7 || got["10.0.0.2"] != 9 {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"10.0.0.1", "name:5", "10.0.0.1:x", "10.0.0.1:-1"} {
		if got, err := PerAddress(wrong); err == nil {
			t.Errorf("%q is %v", wrong, got)
		}
	}
}
