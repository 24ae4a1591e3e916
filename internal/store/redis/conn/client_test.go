package conn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
	"muster/internal/store"
)

// connect opens a client that ends with the test.
func connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	client, err := Connect(context.Background(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func ping(client rueidis.Client) error {
	return client.Do(context.Background(), client.B().Ping().Build()).Error()
}

// wantRefused demands that a URL does not connect, for a reason.
func wantRefused(t *testing.T, url, want string) {
	t.Helper()
	client, err := Connect(context.Background(), url, Options{})
	if err == nil {
		client.Close()
		t.Fatalf("%s: connected", url)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %q does not say %q", url, err, want)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s: the error shows the password: %v", url, err)
	}
}

func TestConnectToEveryDeployment(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		client := connect(t, url)
		key := redistest.Prefix(t)
		if err := client.Do(context.Background(), client.B().Set().Key(key).Value("v").Build()).Error(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestConnectFindsOutThatAServerIsACluster(t *testing.T) {
	cluster := redistest.Shared(t, redistest.KindCluster)
	for _, n := range []int{1, 6} {
		url := strings.Join(strings.Split(strings.Replace(cluster.URL(), "redis+cluster", "redis", 1), ",")[:n], ",")
		if mode := connect(t, url).Mode(); mode != rueidis.ClientModeCluster {
			t.Errorf("%s: the mode is %s", url, mode)
		}
	}
}

func TestConnectRefusesAnotherDeploymentThanTheURLSays(t *testing.T) {
	single := redistest.Shared(t, redistest.KindSingle).Nodes[0].Addr()
	cluster := redistest.Shared(t, redistest.KindCluster).Nodes[0].Addr()
	sentinel := redistest.Shared(t, redistest.KindSentinel).Sentinels[0].Addr()
	wantRefused(t, "redis+cluster://"+single, "not part of a cluster")
	wantRefused(t, "redis://"+single+","+single, "is one server and no cluster")
	wantRefused(t, "redis://"+cluster+"/2", "only database 0")
	wantRefused(t, "redis+sentinel://"+sentinel+"/other", `do not know a primary named "other"`)
	wantRefused(t, "redis+sentinel://"+single+"/main", "connecting to redis at "+single)
	wantRefused(t, "rediss://"+single, "connecting to redis at "+single)
	wantRefused(t, "redis://"+single+"/99", "DB index is out of range")
	wantRefused(t, "redis://ann:hunter2@"+single, "WRONGPASS")
}

func TestConnectSelectsTheDatabase(t *testing.T) {
	s := redistest.Single(t)
	client := connect(t, s.URL()+"/5")
	if err := client.Do(context.Background(), client.B().Set().Key("k").Value("v").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if info := s.Nodes[0].Info("keyspace", "db5"); !strings.HasPrefix(info, "keys=1") {
		t.Errorf("database 5 holds %q", info)
	}
}

func TestConnectWithACLUser(t *testing.T) {
	s := redistest.Single(t, "user default off", "user ann on >hunter2 ~* &* +@all -config")
	node := s.Nodes[0].Addr()
	if err := ping(connect(t, "redis://ann:hunter2@"+node)); err != nil {
		t.Error(err)
	}
	wantRefused(t, "redis://ann:hunter2x@"+node, "WRONGPASS")
	wantRefused(t, "redis://"+node, "NOAUTH")
}

func TestConnectWithPasswordOnly(t *testing.T) {
	s := redistest.Single(t, "requirepass hunter2")
	if err := ping(connect(t, "redis://:hunter2@"+s.Nodes[0].Addr())); err != nil {
		t.Error(err)
	}
	wantRefused(t, s.URL(), "NOAUTH")
}

func TestConnectWithTLS(t *testing.T) {
	cert, key := certificate(t)
	port := redistest.FreePort(t)
	redistest.Single(t, fmt.Sprintf("tls-port %d", port), "tls-cert-file "+cert, "tls-key-file "+key, "tls-ca-cert-file "+cert)
	base := fmt.Sprintf("rediss://127.0.0.1:%d", port)
	pair := "&cert=" + cert + "&key=" + key
	for _, url := range []string{base + "?ca=" + cert + pair, base + "?insecure=true" + pair} {
		if err := ping(connect(t, url)); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	wantRefused(t, base+"?x=y"+pair, `parameter "x"`)
	wantRefused(t, base+"?insecure=false"+pair, "certificate")
	wantRefused(t, base+"?ca="+key, "holds no certificate")
	wantRefused(t, base+"?ca="+cert+".gone", "no such file")
	wantRefused(t, base+"?cert="+key+"&key="+cert, "cert")
	wantRefused(t, base+"?ca="+cert, "connecting to redis at") // The server wants a client certificate.
}

func TestConnectSaysThatNobodyAnswers(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	for _, url := range []string{"redis://" + address, "redis+cluster://" + address, "redis+sentinel://" + address + "/m"} {
		wantRefused(t, url, "connecting to redis at "+address)
		if _, err := Connect(context.Background(), url, Options{}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v is not ErrUnavailable", url, err)
		}
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // It accepts, but never answers.
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, "redis://"+l.Addr().String(), Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect: %v", err)
	}
	if _, err := Connect(context.Background(), "redis://"+l.Addr().String(), Options{DialTimeout: 50 * time.Millisecond}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Connect: %v", err)
	}
}

func TestClientComesBackAfterARestart(t *testing.T) {
	s := redistest.Single(t)
	client := connect(t, s.URL())
	s.Nodes[0].Kill()
	if err := ping(client); err == nil {
		t.Fatal("a dead server answered")
	}
	s.Nodes[0].Start(t)
	redistest.Eventually(t, "the client to connect again", func() bool { return ping(client) == nil })
}

func TestCommandsFailWhenTheServerHangs(t *testing.T) {
	s := redistest.Single(t)
	var client rueidis.Client
	if err := redistest.Poll(time.Minute, func() (err error) {
		client, err = Connect(context.Background(), s.URL(), Options{CommandTimeout: 200 * time.Millisecond, DialTimeout: 200 * time.Millisecond})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s.Nodes[0].Pause()
	const callers = 20 // Some share a connection's pipeline, one is alone at first.
	failed := make(chan error, callers)
	for range callers {
		go func() { failed <- ping(client) }()
	}
	for range callers {
		select {
		case err := <-failed:
			if err == nil {
				t.Error("a paused server answered")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a command hangs with the server")
		}
	}
	s.Nodes[0].Resume()
	redistest.Eventually(t, "the client to connect again", func() bool { return ping(client) == nil })
}

// certificate makes a self-signed certificate for the loopback address.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redis"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", keyDER)
}
