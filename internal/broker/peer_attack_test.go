package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	fsasl "github.com/twmb/franz-go/pkg/sasl"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
	"muster/internal/metadata"
	"muster/internal/redistest"
)

// eavesdropper listens in place of a broker, passes everything on, and keeps what it sees.
type eavesdropper struct {
	net.Listener
	mu     sync.Mutex
	target string
	seen   bytes.Buffer
}

func eavesdrop(t *testing.T) *eavesdropper {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e := &eavesdropper{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { e.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return e
}

// pass passes on what both sides send, until one hangs up.
func (e *eavesdropper) pass(from net.Conn) {
	defer from.Close()
	e.mu.Lock()
	target := e.target
	e.mu.Unlock()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(io.MultiWriter(e, way[1]), way[0])
			from.Close()
			to.Close()
		})
	}
	both.Wait()
}

// Write keeps what passes.
func (e *eavesdropper) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.Write(b)
}

// has says whether something has passed.
func (e *eavesdropper) has(b []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Contains(e.seen.Bytes(), b)
}

// TestWhoListensBetweenBrokersLearnsNothingToLogInWith has someone pass on all that a broker
// sends to another, on a listener where clients log in and on one where they do not.
func TestWhoListensBetweenBrokersLearnsNothingToLogInWith(t *testing.T) {
	for _, protocol := range []string{"PLAINTEXT", "SASL_PLAINTEXT"} {
		t.Run(protocol, func(t *testing.T) {
			s, between := redistest.Single(t), eavesdrop(t)
			asks := join(t, s, func(c *broker.Config) {
				c.Properties["listeners"], c.Properties["muster.bootstrap.user"] = protocol+"://127.0.0.1:0", "root:sesame"
			})
			asked := join(t, s, func(c *broker.Config) {
				c.Properties["listeners"] = protocol + "://127.0.0.1:0"
				c.Properties["advertised.listeners"] = fmt.Sprintf("%s://%s", protocol, between.Addr())
			})
			between.mu.Lock()
			between.target = asked.Addr()
			between.mu.Unlock()
			for _, req := range []kmsg.Request{
				&kmsg.ListTransactionsRequest{Version: 1}, &kmsg.DescribeTransactionsRequest{TransactionalIDs: []string{"x"}},
				&kmsg.AddPartitionsToTxnRequest{Version: 5}, &kmsg.WriteTxnMarkersRequest{Version: 1}, &kmsg.ListOffsetsRequest{Version: 7},
			} {
				eventually(t, kmsg.NameForKey(req.Key()), func(ctx context.Context) error {
					resp, err := asks.Ask(ctx, asked.NodeID(), req)
					if a, ok := resp.(*kmsg.AddPartitionsToTxnResponse); ok && a.ErrorCode != 0 {
						return errors.New("it is not taken for a broker")
					}
					return err
				})
			}
			assert.True(t, between.has([]byte("MUSTER-SCRAM-SHA-256")), "no broker has logged in by way of the eavesdropper")
			for what, secret := range asks.LoginSecrets() {
				assert.True(t, len(secret) != 0 && !between.has(secret), "%s passes between brokers", what)
			}
		})
	}
}

// asBroker logs in as brokers of a cluster do that has a secret.
type asBroker struct {
	fsasl.Mechanism
	name string
}

func (m asBroker) Name() string { return m.name }

// peerWith asks a broker as another one that knows some secret.
func peerWith(t *testing.T, b *broker.Broker, addr string, secret metadata.Secret, req kmsg.Request) (kmsg.Response, error) {
	t.Helper()
	l := broker.PeerLogin(secret)
	c := client(t, b, kgo.SeedBrokers(addr), kgo.RequestRetries(0), kgo.RetryTimeout(time.Nanosecond),
		kgo.SASL(asBroker{fscram.Auth{User: l.Name, Pass: l.Password}.AsSha256Mechanism(), l.Mechanism}))
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	return c.SeedBrokers()[0].Request(ctx, req)
}

// guardedFleet is a broker that others may join, where rules hold and ANONYMOUS may read
// what the audit log has.
func guardedFleet(t *testing.T, props map[string]string) *broker.Broker {
	t.Helper()
	return join(t, redistest.Single(t), func(c *broker.Config) {
		c.Properties["authorizer.class.name"], c.Properties["super.users"] = "muster", "User:ANONYMOUS"
		c.Properties["connection.failed.authentication.delay.ms"] = "0"
		maps.Copy(c.Properties, props)
	})
}

func TestWhoDoesNotKnowTheSecretDoesNotPassForABroker(t *testing.T) {
	b := guardedFleet(t, nil)
	list := &kmsg.ListTransactionsRequest{Version: 1}
	if resp, err := peerWith(t, b, b.Addr(), b.Image().Secrets.Current, list); err != nil || resp.(*kmsg.ListTransactionsResponse).ErrorCode != 0 {
		t.Errorf("a broker is answered %+v, %v", resp, err)
	}
	for _, wrong := range []string{"", "another", b.Image().Secrets.Current.Text[1:]} {
		if _, err := peerWith(t, b, b.Addr(), metadata.Secret{Text: wrong}, list); !errors.Is(err, kerr.SaslAuthenticationFailed) {
			t.Errorf("with the secret %q: %v", wrong, err)
		}
	}
	told := map[audit.Kind]audit.Entry{}
	awaitAudit(t, b, func(e audit.Entry) bool {
		told[e.Kind] = e
		return told[audit.Login].Kind != "" && told[audit.LoginFailed].Kind != ""
	})
	for _, kind := range []audit.Kind{audit.Login, audit.LoginFailed} {
		if e := told[kind]; e.Principal != "Broker:muster" || e.Mechanism != "MUSTER-SCRAM-SHA-256" || e.Host != "127.0.0.1" {
			t.Errorf("it tells %+v", e)
		}
	}
}

func TestWhoKnowsTheSecretMayNotDoWhatBrokersDoNotDo(t *testing.T) {
	b := guardedFleet(t, nil)
	grant := kmsg.NewPtrCreateACLsRequest()
	grant.Creations = []kmsg.CreateACLsRequestCreation{{
		ResourceType: kmsg.ACLResourceTypeTopic, ResourceName: "*", ResourcePatternType: kmsg.ACLResourcePatternTypeLiteral,
		Principal: "User:mallory", Host: "*", Operation: kmsg.ACLOperationAll, PermissionType: kmsg.ACLPermissionTypeAllow,
	}}
	for _, req := range []kmsg.Request{grant, kmsg.NewPtrMetadataRequest(), kmsg.NewPtrAlterUserSCRAMCredentialsRequest()} {
		if resp, err := peerWith(t, b, b.Addr(), b.Image().Secrets.Current, req); err == nil {
			t.Errorf("%s is answered %+v", kmsg.NameForKey(req.Key()), resp)
		}
	}
	assert.Equal(t, b.Image().Rules.Len(), 0, "rules")
	awaitAudit(t, b, func(e audit.Entry) bool {
		return e.Kind == audit.Denied && e.Principal == "Broker:muster" && e.Resources[0].Name == "CreateACLs"
	})
}

func TestBrokersComeByTheirListenerOnly(t *testing.T) {
	two := map[string]string{
		"listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0", "inter.broker.listener.name": "BROKERS",
		"listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
	}
	b := guardedFleet(t, two)
	list := &kmsg.ListTransactionsRequest{Version: 1}
	if _, err := peerWith(t, b, b.Addrs()[1], b.Image().Secrets.Current, list); err != nil {
		t.Errorf("at the listener of brokers: %v", err)
	}
	if _, err := peerWith(t, b, b.Addrs()[0], b.Image().Secrets.Current, list); !errors.Is(err, kerr.IllegalSaslState) {
		t.Errorf("at the listener of clients: %v", err)
	}
	two["listener.security.protocol.map"] = "CLIENTS:SASL_PLAINTEXT,BROKERS:PLAINTEXT"
	b = guardedFleet(t, two)
	if _, err := peerWith(t, b, b.Addrs()[0], b.Image().Secrets.Current, list); !errors.Is(err, kerr.UnsupportedSaslMechanism) {
		t.Errorf("at the listener of clients who log in: %v", err)
	}
}

func TestALoneBrokerKnowsNoOthers(t *testing.T) {
	for protocol, want := range map[string]error{"PLAINTEXT": kerr.IllegalSaslState, "SASL_PLAINTEXT": kerr.UnsupportedSaslMechanism} {
		b := start(t, map[string]string{"listeners": protocol + "://127.0.0.1:0"})
		if _, err := peerWith(t, b, b.Addr(), b.Image().Secrets.Current, &kmsg.ListTransactionsRequest{Version: 1}); !errors.Is(err, want) {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func TestWhereClientsDoNotLogInOnlyBrokersBeginTo(t *testing.T) {
	b := guardedFleet(t, nil)
	w := connect(t, b)
	if got := w.handshake("SCRAM-SHA-256"); got.ErrorCode != kerr.IllegalSaslState.Code || !w.works() {
		t.Errorf("by another mechanism: %+v, or the connection ended", got)
	}
	if got := w.token("n,,n=broker,r=x"); got.ErrorCode != kerr.IllegalSaslState.Code || !w.works() {
		t.Errorf("without a handshake: %+v, or the connection ended", got)
	}
	if got := w.handshake("MUSTER-SCRAM-SHA-256"); got.ErrorCode != 0 || len(got.SupportedMechanisms) != 0 {
		t.Errorf("%+v", got)
	}
	// It is answered with an error, and then the connection ends.
	if w.works(); w.works() {
		t.Error("a login that is not over lets in")
	}
}
