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
