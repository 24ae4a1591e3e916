package gate

import (
	"context"
	"log/slog"
	"testing"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/certs"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// The first user has a password for each hash. Once there are users, the setting gives no one
// another password, and brings back no one.
func TestTheFirstUserIsMadeOnceOnly(t *testing.T) {
	cfg, err := config.NewBroker(map[string]string{"muster.bootstrap.user": "ann:anns"})
	assert.Must(t, err)
	image := metadata.NewImage(cfg)
	gates := New(Options{Certs: certs.Settings{Config: cfg, Logger: slog.New(slog.DiscardHandler)}, Image: func() *metadata.Image { return image }})
	for _, want := range []int{2, 0} {
		var made []metadata.UserChange
		if err := gates.MakeFirstUser(t.Context(), func(_ context.Context, changes []metadata.UserChange) []error {
			made = append(made, changes...)
			return nil
		}); err != nil || len(made) != want {
			t.Fatalf("with %d users %d credentials are made (%v)", image.Users.Len(), len(made), err)
		}
		if want > 0 && (made[0].Name != "ann" || sasl.Hash(made[0].Hash) != sasl.SHA256 || sasl.Hash(made[1].Hash) != sasl.SHA512) {
			t.Errorf("made are %+v", made)
		}
		edit := image.Edit()
		edit.SetUser("bob", []metadata.Credential{{Hash: int8(sasl.SHA256), Iterations: sasl.MinIterations}})
		image = edit.Image()
	}
}
