package interop

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// account is how a client logs in, and where.
type account struct {
	addr      string
	mechanism string // of SASL; none if a certificate says who the client is
	user      string
	password  *secret
	token     func() (text string, ends time.Time, err error)
	trust     string // PEM file of who issued the broker's certificate; none in plain text
	own       string // PEM file with the client's certificate and key, if it has one

	// What is seen of it, by those clients that can log in again.
	logins    atomic.Int64 // that succeeded or were begun
	connected atomic.Int64 // connections that were made
	// during is held for reading while a login runs that can be held up: who changes the
	// password holds it alone, so that no login gets half of the old and half of the new.
	during sync.RWMutex
	// patient says that a login that fails is tried again, if the client does that by itself.
	patient atomic.Bool
}

// inPlace is how often the client has logged in on a connection that it had.
func (a *account) inPlace() int64 { return a.logins.Load() - a.connected.Load() }

// secret is a password that can change. Clients that are not asked for it at each login are
// told.
type secret struct {
	mu   sync.Mutex
	now  string
	tell map[*secretTold]func(string) error
}

type secretTold struct{ _ byte } // not empty, so that each has an address of its own

func newSecret(password string) *secret {
	return &secret{now: password, tell: map[*secretTold]func(string) error{}}
}

func (s *secret) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// follow has someone be told of every change until they do not care any more.
func (s *secret) follow(f func(string) error) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := &secretTold{}
	s.tell[key] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tell, key)
	}
}

func (s *secret) set(password string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = password
	for _, f := range s.tell {
		if err := f(password); err != nil {
			return err
		}
	}
	return nil
}

// loginClient is a client that logs in.
type loginClient struct {
	name   string
	tokens bool // it knows OAUTHBEARER
	again  bool // it logs in again on the same connection before a session ends (KIP-368)
	// produce writes each value that next returns and waits until it is acknowledged, until
	// there is none.
	produce func(ctx context.Context, a *account, topic string, next func() (string, bool)) error
	// consume reads a topic as the only member of a group, from what is committed or from its
	// beginning, until got says that it is enough; then it commits and leaves.
	consume func(ctx context.Context, a *account, topic, group string, got func(value string) (more bool)) error
	// refused says whether an error tells the user that the broker does not take the login.
	refused func(err error) bool
}

var loginClients = []loginClient{franzLogin, saramaLogin, librdkafkaLogin, kafkaGoLogin}
