package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRedisSession runs the session that docs/redis.md shows.
func TestRedisSession(t *testing.T) {
	onlyOn(t, "redis")
	out, err := exec.Command(filepath.Join("..", "redis", "session.sh"), musterPath).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if last := strings.TrimSpace(string(out)); !strings.HasSuffix(last, "(empty array)") {
		t.Errorf("the groups are not gone:\n%s", out)
	}
}
