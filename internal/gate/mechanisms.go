package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/metadata/config"
)

// RememberPasswords is about how many passwords that were right PLAIN remembers, so that
// clients who log in often do not cost a derivation each time.
const RememberPasswords = 10_000

// Open gives the gates their mechanisms. Users and secret are known by now. With ctx
// ends what fetches the keys of issuers.
func (b *Gates) Open(ctx context.Context, logins *PeerLogins) error {
	users := NewUsers(b.Image)
	// Deriving a password takes milliseconds: half of the processors are always left for
	// those who have logged in.
	limiter := sasl.NewLimiter(sasl.Limits{Turns: max(runtime.GOMAXPROCS(0)/2, 1)})
	peers := sasl.NewScramNamed(PeerMechanism, sasl.SHA256, sasl.NewDirectory(logins, Derived(b.lasting(), "names of brokers")), rand.Reader)
	for _, g := range b.all {
		server := &sasl.Server{MaxReauth: map[string]time.Duration{}, Now: time.Now}
		if b.peersComeBy(g.name) {
			server.Unlisted, g.logins = []sasl.Mechanism{peers}, logins
		}
		if len(g.mechanisms) == 0 {
			if server.Unlisted != nil {
				g.peers = server
			}
			continue
		}
		for _, name := range g.mechanisms {
			m, err := b.mechanism(ctx, g, name, users, limiter)
			if err != nil {
				return fmt.Errorf("listener %q: %w", g.name, err)
			}
			server.Mechanisms = append(server.Mechanisms, m)
			server.MaxReauth[name] = b.Certs.Config.Of(g.name, name).Duration("connections.max.reauth.ms")
		}
		g.server = server
	}
	return nil
}

// lasting is the secret of the cluster that does not change with rotations. It lets no one
// in.
func (b *Gates) lasting() string {
	s := Secrets(b.Image())
	return s.Lasting()
}

// Invented is what the credentials of users that do not exist are made of.
func (b *Gates) Invented() []byte { return Derived(b.lasting(), "users that do not exist") }

// mechanism makes a mechanism of a listener. What is invented for names that do not exist
// follows from the secret of the cluster, so that all its brokers invent the same.
func (b *Gates) mechanism(ctx context.Context, g *Gate, name string, users sasl.Users, limiter sasl.Limiter) (sasl.Mechanism, error) {
	invented := b.Invented()
	switch name {
	case sasl.ScramSHA256:
		return sasl.NewScram(sasl.SHA256, sasl.NewDirectory(users, invented), rand.Reader), nil
	case sasl.ScramSHA512:
		return sasl.NewScram(sasl.SHA512, sasl.NewDirectory(users, invented), rand.Reader), nil
	case sasl.Plain:
		passwords, err := b.Passwords(g.name)
		if err != nil {
			return nil, err
		}
		if len(passwords) > 0 {
			own, err := sasl.UsersOf(passwords, rand.Reader)
			if err != nil {
				return nil, err
			}
			users = sasl.Both(own, users)
		}
		return sasl.NewPlain(sasl.NewDirectory(users, invented), limiter, []byte(rand.Text()), RememberPasswords), nil
	case sasl.OAuthBearer:
		var err error
		g.tokens, err = b.verifier(ctx, g.name)
		return sasl.NewOAuthBearer(g.tokens), err
	}
	return nil, fmt.Errorf("there is no mechanism %s", name)
}

// checkMechanisms says what is wrong with the settings of a listener's mechanisms, before
// anything else is opened.
func (b *Gates) checkMechanisms(g *Gate) error {
	for _, name := range g.mechanisms {
		var err error
		switch name {
		case sasl.Plain:
			_, err = b.Passwords(g.name)
		case sasl.OAuthBearer:
			if _, err = b.keyURL(g.name); err == nil {
				_, err = b.tokenMapping(g.name)
			}
		}
		if err != nil {
			return fmt.Errorf("listener %q: %w", g.name, err)
		}
	}
	return nil
}

// Passwords returns the users that the settings of a listener name for PLAIN.
func (b *Gates) Passwords(listener string) (map[string]string, error) {
	modules, err := sasl.ParseJAAS(b.Certs.Config.Of(listener, sasl.Plain).Get("sasl.jaas.config"))
	if err != nil {
		return nil, fmt.Errorf("sasl.jaas.config: %w", err)
	}
	passwords := map[string]string{}
	for _, m := range modules {
		if !strings.HasSuffix(m.Name, ".PlainLoginModule") {
			continue // Kafka's own users, and Kerberos, have modules without passwords.
		}
		for name, password := range m.Passwords() {
			if password == "" {
				return nil, errors.New("sasl.jaas.config: a user has an empty password")
			}
			passwords[name] = password
		}
	}
	return passwords, nil
}

// verifier makes what accepts tokens, by Kafka's settings.
func (b *Gates) verifier(ctx context.Context, listener string) (*sasl.Verifier, error) {
	of := b.Certs.Config.Of(listener, sasl.OAuthBearer)
	from, err := b.keyURL(listener)
	if err != nil {
		return nil, err
	}
	fetch := sasl.FetchFile(from.Path)
	if from.Scheme != "file" {
		config, err := b.Certs.Client(listener)
		if err != nil {
			return nil, err
		}
		// A fetch an hour needs no connection that stays.
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config(), DisableKeepAlives: true}
		fetch = sasl.FetchHTTP(&http.Client{Transport: transport}, from.String())
	}
	mapping, err := b.tokenMapping(listener)
	if err != nil {
		return nil, err
	}
	return &sasl.Verifier{
		Name:         mapping.Name,
		Keys:         sasl.NewKeys(ctx, fetch, of.Duration("sasl.oauthbearer.jwks.endpoint.refresh.ms"), time.Now),
		Issuer:       of.Get("sasl.oauthbearer.expected.issuer"),
		Audiences:    config.SplitList(of.Get("sasl.oauthbearer.expected.audience")),
		SubjectClaim: of.Get("sasl.oauthbearer.sub.claim.name"),
		ScopeClaim:   of.Get("sasl.oauthbearer.scope.claim.name"),
		GroupsClaim:  of.Get("muster.oauthbearer.groups.claim"),
		Groups:       GroupsOf,
		Skew:         time.Duration(of.Int("sasl.oauthbearer.clock.skew.seconds")) * time.Second,
		Now:          time.Now,
	}, nil
}

// GroupsOf is auth.GroupsOf for a verifier.
func GroupsOf(names []string) (string, error) {
	groups, err := auth.GroupsOf(names)
	return string(groups), err
}

// tokenMapping makes names of users of the subjects of tokens.
func (b *Gates) tokenMapping(listener string) (*auth.Mapping, error) {
	const setting = "muster.oauthbearer.principal.mapping.rules"
	m, err := auth.ParseMapping(b.Certs.Config.Of(listener, sasl.OAuthBearer).Get(setting))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return m, nil
}

// keyURL returns where the keys of tokens are.
func (b *Gates) keyURL(listener string) (*url.URL, error) {
	const setting = "sasl.oauthbearer.jwks.endpoint.url"
	text := b.Certs.Config.Of(listener, sasl.OAuthBearer).Get(setting)
	if text == "" {
		return nil, fmt.Errorf("OAUTHBEARER needs %s", setting)
	}
	from, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL", setting)
	}
	switch from.Scheme {
	case "file":
		return from, nil
	case "http":
		b.Certs.Logger.Warn("the keys of tokens are fetched in plain text: whoever can change them can log in as anyone", "listener", listener)
		return from, nil
	case "https":
		return from, nil
	}
	return nil, fmt.Errorf("%s must begin with https://, http:// or file://", setting)
}
