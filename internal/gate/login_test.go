package gate

import (
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func TestAFailedLoginIsToldAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users, err := sasl.UsersOf(map[string]string{"ann": "anns"}, rand.Reader)
		assert.Must(t, err)
		server := &sasl.Server{Mechanisms: []sasl.Mechanism{sasl.NewPlain(sasl.NewDirectory(users, []byte("d")), sasl.NewLimiter(sasl.Limits{Turns: 1}), []byte("s"), 10)}, Now: time.Now}
		closing, stop := context.WithCancel(t.Context())
		stop()
		for _, c := range []struct {
			ctx      context.Context
			password string
			fails    bool
			takes    time.Duration
		}{
			{t.Context(), "anns", false, 0},
			{t.Context(), "wrong", true, 100 * time.Millisecond},
			{closing, "anns", false, 0}, // It is remembered, so no one waits for a processor.
		} {
			s := &Session{client: &listener.Client{}, gate: &Gate{delay: 100 * time.Millisecond}, conn: server.Connect()}
			if err, _ := s.Handshake(1, sasl.Plain); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			login := s.Authenticate(c.ctx, []byte("\x00ann\x00"+c.password))
			if took := time.Since(began); (login.Error != nil) != c.fails || took != c.takes || (s.ended != nil) != c.fails {
				t.Errorf("%s: %+v after %v; the connection ends: %v", c.password, login, took, s.ended)
			}
		}
	})
}

func TestShapesOfCredentialsFollowTheUsers(t *testing.T) {
	image := metadata.NewImage(&config.Broker{})
	u := NewUsers(func() *metadata.Image { return image })
	if all := u.Shapes(sasl.SHA256); len(all) != 0 {
		t.Errorf("there are shapes without users: %v", all)
	}
	for i, name := range []string{"ann", "bobby"} {
		edit := image.Edit()
		key := make([]byte, 32)
		edit.SetUser(name, []metadata.Credential{{Hash: 1, Salt: []byte(name), Iterations: 4096 + i, StoredKey: key, ServerKey: key}})
		image = edit.Image()
	}
	ann, bobby := sasl.Shape{Length: 3, Iterations: 4096}, sasl.Shape{Length: 5, Iterations: 4097}
	assert.EqualSlices(t, u.Shapes(sasl.SHA256), []sasl.Shape{ann, bobby})
	if all := u.Shapes(sasl.SHA512); len(all) != 0 {
		t.Errorf("a user without SHA-512 has a shape of it: %v", all)
	}
	if c, ok := u.Credential(sasl.SHA256, "bobby"); !ok || c.Iterations != 4097 {
		t.Errorf("%+v, %v", c, ok)
	}
	edit := image.Edit()
	edit.SetUser("ann", nil)
	image = edit.Image()
	assert.EqualSlices(t, u.Shapes(sasl.SHA256), []sasl.Shape{bobby}, "after ann is gone")
}
