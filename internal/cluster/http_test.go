package cluster

import (
	"testing"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

// The registration of a broker has its HTTP address; those of before have none.
func TestARegistrationHasTheHTTPAddress(t *testing.T) {
	s := newState(1)
	edit := metadata.NewImage(&config.Broker{}).Edit()
	of := brokerRecord(metadata.Broker{ID: 2, Incarnation: "x", HTTP: "http://127.0.0.1:9021"})
	old := record.Record{Key: []byte("broker/3"), Value: []byte(`{"incarnation":"y","endpoints":[{"listener":"PLAINTEXT","host":"h","port":9092}]}`)}
	for _, r := range []record.Record{of, old} {
		must(t, s.apply(&r, edit))
	}
	image := edit.Image()
	if b := image.Broker(2); b == nil || b.HTTP != "http://127.0.0.1:9021" {
		t.Errorf("the broker is %+v", b)
	}
	if b := image.Broker(3); b == nil || b.HTTP != "" || len(b.Endpoints) != 1 {
		t.Errorf("the old one is %+v", b)
	}
}
