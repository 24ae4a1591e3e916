package interop

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// newKeystore makes a private key and a certificate for 127.0.0.1 with a serial
// number, in one PEM text, and the pool of authorities that trusts it.
func newKeystore(t *testing.T, serial int64) ([]byte, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "muster"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	var out bytes.Buffer
	for _, block := range []*pem.Block{{Type: "PRIVATE KEY", Bytes: private}, {Type: "CERTIFICATE", Bytes: cert}} {
		must(t, pem.Encode(&out, block))
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(out.Bytes())
	return out.Bytes(), pool
}

// install puts a file in place in one step, as tools that renew certificates do.
func install(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path+".new", content, 0o600))
	must(t, os.Rename(path+".new", path))
}

func TestTLSAndItsCertificateReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keystore.pem")
	first, pool := newKeystore(t, 1)
	install(t, path, first)
	b := serve(t, t.TempDir(), "--set", "listeners=SSL://127.0.0.1:0", "--set", "ssl.keystore.location="+path)

	cl := connect(t, b.addr(), kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.AllowAutoTopicCreation(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"secret": {0: kgo.NewOffset().AtStart()}}))
	// Large values, since a fetch of those takes another way through the broker.
	roundTrip(t, cl, strings.Repeat("before ", 50_000))
	if serial := servedSerial(t, b.addr(), pool); serial != 1 {
		t.Fatalf("certificate %d is served, want 1", serial)
	}

	second, newPool := newKeystore(t, 2)
	install(t, path, second)
	deadline := time.Now().Add(20 * time.Second)
	for servedSerial(t, b.addr(), nil) != 2 {
		assert.MustFalse(t, time.Now().After(deadline), "the new certificate is not served")
		<-time.After(50 * time.Millisecond)
	}
	if serial := servedSerial(t, b.addr(), newPool); serial != 2 {
		t.Errorf("certificate %d is served, want 2", serial)
	}
	roundTrip(t, cl, "on the connections of before")

	install(t, path, []byte("garbage"))
	// The broker looks at the file again within seconds; whenever that is, the
	// good certificate must stay.
	for range 30 {
		if serial := servedSerial(t, b.addr(), nil); serial != 2 {
			t.Fatalf("certificate %d is served, want 2", serial)
		}
		<-time.After(50 * time.Millisecond)
	}
	assert.NoError(t, b.terminate())
}

// roundTrip produces a record and reads it back.
func roundTrip(t *testing.T, cl *kgo.Client, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := &kgo.Record{Topic: "secret", Value: []byte(value)}
	must(t, cl.ProduceSync(ctx, r).FirstErr())
	for {
		fetches := cl.PollFetches(ctx)
		must(t, fetches.Err0())
		if recs := fetches.Records(); len(recs) > 0 {
			if len(recs) != 1 || string(recs[0].Value) != value {
				t.Fatalf("read %d records, the first %.20q", len(recs), recs[0].Value)
			}
			return
		}
	}
}

// servedSerial connects, verifies the certificate if there is a pool to do it
// with, asks something, and returns the certificate's serial number.
func servedSerial(t *testing.T, addr string, pool *x509.CertPool) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, InsecureSkipVerify: pool == nil})
	must(t, err)
	w := newWire(t, c)
	wantCode(t, "ApiVersions over TLS", ask[*kmsg.ApiVersionsResponse](w, kmsg.NewPtrApiVersionsRequest()).ErrorCode, nil)
	c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestPlainTextOnATLSListenerIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keystore.pem")
	content, _ := newKeystore(t, 1)
	install(t, path, content)
	b := serve(t, t.TempDir(), "--set", "listeners=SSL://127.0.0.1:0", "--set", "ssl.keystore.location="+path)
	c, err := net.Dial("tcp", b.addr())
	must(t, err)
	w := newWire(t, c)
	w.sendOnly(kmsg.NewPtrApiVersionsRequest())
	// TLS answers with an alert, which is no frame that could be read whole.
	if frame, err := w.frame(); err == nil {
		t.Errorf("answered with %d bytes", len(frame))
	}
}
