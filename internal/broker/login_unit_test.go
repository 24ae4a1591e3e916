package broker

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/auth/sasl"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func TestAFailedLoginIsToldAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users, err := sasl.UsersOf(map[string]string{"ann": "anns"}, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		server := &sasl.Server{Mechanisms: []sasl.Mechanism{sasl.NewPlain(sasl.NewDirectory(users, []byte("d")), sasl.NewLimiter(1), []byte("s"), 10)}, Now: time.Now}
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
			{closing, "anns", false, 0}, // It is remembered, so nobody waits for a processor.
		} {
			s := &session{client: &listener.Client{}, gate: &gate{delay: 100 * time.Millisecond}, conn: server.Connect()}
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

func TestClientsAreNotKnownByWhatTheSystemTrusts(t *testing.T) {
	cert, text := certificate(t, "authority")
	name := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &trust{files: []trustFile{{setting: "ssl.truststore.location", name: name}}, alone: true}
	if err := s.load(); err != nil {
		t.Fatal(err)
	}
	only := x509.NewCertPool()
	only.AddCert(cert)
	if !s.roots.Equal(only) {
		t.Error("others are trusted too")
	}
}

func TestModelsOfCredentialsFollowTheUsers(t *testing.T) {
	cfg, err := config.NewBroker(nil)
	if err != nil {
		t.Fatal(err)
	}
	image := metadata.NewImage(cfg)
	u := &imageUsers{users: func() users { return image.Users }}
	if _, ok := u.Model(sasl.SHA256, 7); ok {
		t.Error("there is a model without users")
	}
	for i, name := range []string{"ann", "bob"} {
		edit := image.Edit()
		edit.SetUser(name, []metadata.Credential{{Hash: 1, Salt: []byte(name), Iterations: 4096 + i}})
		image = edit.Image()
	}
	for number, want := range []string{"ann", "bob", "ann"} {
		if c, ok := u.Model(sasl.SHA256, uint64(number)); !ok || string(c.Salt) != want {
			t.Errorf("%d: %s, %v", number, c.Salt, ok)
		}
	}
	if _, ok := u.Model(sasl.SHA512, 0); ok {
		t.Error("a user without SHA-512 is a model of it")
	}
	if c, ok := u.Credential(sasl.SHA256, "bob"); !ok || c.Iterations != 4097 {
		t.Errorf("%+v, %v", c, ok)
	}
	edit := image.Edit()
	edit.SetUser("ann", nil)
	image = edit.Image()
	if c, ok := u.Model(sasl.SHA256, 0); !ok || string(c.Salt) != "bob" {
		t.Errorf("after ann is gone: %s, %v", c.Salt, ok)
	}
}
