package redis

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
	"muster/internal/store/redis/conn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// connect opens a client that ends with the test.
func connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	client, err := conn.Connect(context.Background(), url, conn.Options{DialTimeout: patience, CommandTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
