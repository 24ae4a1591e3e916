package interop

import (
	"context"
	"log/slog"
	"maps"
	"testing"

	"muster"
)

// startInProcess starts a broker in this process, in memory if there is no data
// folder.
func startInProcess(t testing.TB, data string, properties map[string]string) *muster.Broker {
	t.Helper()
	if data != "" && storeKind != "disk" {
		all := redisProperties(t, data)
		maps.Copy(all, properties)
		data, properties = "", all
	}
	b, err := muster.Start(context.Background(), muster.Config{
		Listen: "127.0.0.1:0", Data: data, Properties: properties, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}
