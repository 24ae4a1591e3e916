package broker_test

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/broker"
)

// loginRepeating logs in by SCRAM-SHA-256 as librdkafka before 2.6.1 does: it repeats its own
// nonce and then all of the nonce that it was sent.
func loginRepeating(t *testing.T, w *wire) *kmsg.SASLAuthenticateResponse {
	t.Helper()
	w.handshake("SCRAM-SHA-256")
	const bare = "n=ann,r=clientnonce"
	challenge := string(w.token("n,," + bare).SASLAuthBytes)
	parts := strings.Split(challenge, ",")
	salt, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[1], "s="))
	must(t, err)
	iterations, err := strconv.Atoi(strings.TrimPrefix(parts[2], "i="))
	must(t, err)
	salted, err := pbkdf2.Key(sha256.New, "anns", salt, iterations, sha256.Size)
	must(t, err)
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	clientKey := mac(salted, "Client Key")
	stored := sha256.Sum256(clientKey)
	final := "c=biws,r=clientnonce" + strings.TrimPrefix(parts[0], "r=")
	proof := mac(stored[:], bare+","+challenge+","+final)
	subtle.XORBytes(proof, proof, clientKey)
	return w.token(final + ",p=" + base64.StdEncoding.EncodeToString(proof))
}

func TestAnOldLibrdkafkaLogsInAndIsNamedInTheLogOnce(t *testing.T) {
	log := &lines{}
	b := startSASL(t, nil, func(c *broker.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	enter := func(id, software string) {
		t.Helper()
		w := connect(t, b)
		w.id = id
		if software != "" {
			w.ask(&kmsg.ApiVersionsRequest{Version: 3, ClientSoftwareName: software, ClientSoftwareVersion: "2.0.2"})
		}
		if got := loginRepeating(t, w); got.ErrorCode != 0 || !w.works() {
			t.Fatalf("%+v", got)
		}
	}
	for range 3 {
		enter("billing", "librdkafka")
	}
	lines := log.with("librdkafka did before 2.6.1")
	if len(lines) != 1 || !strings.Contains(lines[0], "client_id=billing") || !strings.Contains(lines[0], `software="librdkafka 2.0.2"`) {
		t.Fatalf("%q", lines)
	}
	enter("stock", "")
	if lines = log.with("librdkafka did before 2.6.1"); len(lines) != 2 || !strings.Contains(lines[1], "client_id=stock") || !strings.Contains(lines[1], "software=unknown") {
		t.Errorf("%q", lines)
	}
	w := connect(t, b)
	if got := w.token(scramFinal(t, w, "ann", "anns")); got.ErrorCode != 0 || len(log.with("librdkafka did before 2.6.1")) != 2 {
		t.Errorf("a client of today: %+v, %q", got, log.with("2.6.1"))
	}
}
