package conn

import (
	"testing"

	"muster/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
