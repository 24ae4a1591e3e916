package interop

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// onDisk starts a broker in this process with a data folder, and returns its
// address.
func onDisk(t testing.TB) string {
	t.Helper()
	return startInProcess(t, t.TempDir(), nil).Addr()
}

// rawRequest makes a frame with a request header of the old form.
func rawRequest(key, version int16, id int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	b = binary.BigEndian.AppendUint16(b, 0) // client id
	return framed(append(b, body...))
}

func TestApiVersionsOfUnknownVersionIsAnsweredInVersion0(t *testing.T) {
	w := dial(t, onDisk(t))
	for _, version := range []int16{5, 99, 32767, -1} {
		if _, err := w.Write(rawRequest(18, version, 7, 0, 1, 2)); err != nil {
			t.Fatal(err)
		}
		frame, err := w.frame()
		assert.Must(t, err, "version %d", version)
		resp := kmsg.NewPtrApiVersionsResponse()
		body, err := openResponse(frame, 7, resp)
		if err == nil {
			err = resp.ReadFrom(body)
		}
		assert.Must(t, err, "version %d: not an answer of version 0", version)
		wantCode(t, fmt.Sprintf("version %d", version), resp.ErrorCode, kerr.UnsupportedVersion)
		if len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MaxVersion < 3 {
			t.Errorf("version %d: the answer does not tell the versions of ApiVersions: %+v", version, resp.ApiKeys)
		}
	}
	// The connection is good for another try.
	again := kmsg.NewPtrApiVersionsRequest()
	again.Version, again.ClientSoftwareName, again.ClientSoftwareVersion = 3, "interop", "1"
	wantCode(t, "version 3 on the same connection", ask[*kmsg.ApiVersionsResponse](w, again).ErrorCode, nil)
}

func TestApiVersionsRefusesBadSoftwareNames(t *testing.T) {
	w := dial(t, onDisk(t))
	for _, name := range []string{"", "has space", "-dash", "ünïcode"} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, name, "1.0"
		wantCode(t, name, ask[*kmsg.ApiVersionsResponse](w, req).ErrorCode, kerr.InvalidRequest)
	}
}

func TestUnsupportedRequestsCloseTheConnection(t *testing.T) {
	addr := onDisk(t)
	apis := ask[*kmsg.ApiVersionsResponse](dial(t, addr), kmsg.NewPtrApiVersionsRequest()).ApiKeys
	assert.True(t, len(apis) >= 20, "only %d APIs are served", len(apis))
	tests := map[string][]byte{
		"unknown API key":        rawRequest(12345, 0, 1),
		"negative API key":       rawRequest(-1, 0, 1),
		"Produce v0, advertised": rawRequest(0, 0, 1, make([]byte, 20)...),
		"Fetch v3":               rawRequest(1, 3, 1, make([]byte, 40)...),
		"Metadata v-1":           rawRequest(3, -1, 1),
		"Metadata cut short":     rawRequest(3, 1, 1, 0, 0),
		"header cut short":       framed([]byte{0, 3, 0, 1}),
		"empty frame":            framed(nil),
	}
	for _, api := range apis {
		if api.ApiKey != 18 {
			tests[fmt.Sprintf("%s v%d", kmsg.NameForKey(api.ApiKey), api.MaxVersion+1)] = rawRequest(api.ApiKey, api.MaxVersion+1, 1)
		}
	}
	for name, frame := range tests {
		t.Run(name, func(t *testing.T) {
			w := dial(t, addr)
			if _, err := w.Write(frame); err != nil {
				t.Fatal(err)
			}
			w.wantClosed()
		})
	}
}

func TestProduceAndFetchWorkAtEveryVersion(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "versions", 1)
	w := dial(t, addr)
	id := topicID(w, "versions")
	var want []string
	for version := int16(3); version <= 13; version++ {
		b := batch{values: values(fmt.Sprintf("v%d", version), 3)}
		req := produceRequest("versions", 0, -1, b.encode())
		req.Version, req.Topics[0].TopicID = version, id
		p := produced(t, ask[*kmsg.ProduceResponse](w, req))
		wantCode(t, fmt.Sprintf("Produce v%d", version), p.ErrorCode, nil)
		assert.True(t, p.BaseOffset == int64(len(want)), "Produce v%d: base offset %d, want %d", version, p.BaseOffset, len(want))
		want = append(want, b.values...)
	}
	for version := int16(4); version <= 18; version++ {
		req := fetchRequest("versions", 0, 0)
		req.Version, req.Topics[0].TopicID = version, id
		p := fetched(t, ask[*kmsg.FetchResponse](w, req))
		wantCode(t, fmt.Sprintf("Fetch v%d", version), p.ErrorCode, nil)
		if p.HighWatermark != int64(len(want)) || p.LastStableOffset != int64(len(want)) {
			t.Errorf("Fetch v%d: high watermark %d, last stable offset %d, want %d", version, p.HighWatermark, p.LastStableOffset, len(want))
		}
		wantValues(t, fmt.Sprintf("Fetch v%d", version), decode(t, p.RecordBatches), want)
	}
}

// topicID asks for a topic's id.
func topicID(w *wire, topic string) [16]byte {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	resp := ask[*kmsg.MetadataResponse](w, req)
	if len(resp.Topics) != 1 || resp.Topics[0].ErrorCode != 0 || resp.Topics[0].TopicID == [16]byte{} {
		w.t.Fatalf("no topic id of %s: %+v", topic, resp.Topics)
	}
	return resp.Topics[0].TopicID
}
