// ApiVersions (key 18) tells a client which versions of which requests the
// broker serves.
//
//	v0-2  the original fields; v3 flexible, with the client's software name and version;
//	v4    features may have a minimum of 0
//
// The features are transaction.version 2 (KIP-890): clients that know it add partitions
// to transactions by producing to them; group.version 1 (KIP-848): there are consumer
// groups; share.version 1 (KIP-932): there are share groups; and streams.version 1
// (KIP-1071): there are streams groups. They are told from version 3 on, and that the
// broker could do without them from version 4 on.
// A broker that has logged in is told which requests brokers send to each other besides.

package handler

import (
	"context"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
)

var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func (h *Handler) apiVersions(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ApiVersionsRequest)
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 3 && (!softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion)) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp, nil
	}
	if c.origin.Session != nil && req.Version >= 3 {
		c.origin.Session.Software(req.ClientSoftwareName, req.ClientSoftwareVersion)
	}
	for i := range table {
		resp.ApiKeys = append(resp.ApiKeys, apiKey(&table[i]))
	}
	if c.fromBroker() {
		for i := range private {
			resp.ApiKeys = append(resp.ApiKeys, apiKey(&private[i]))
		}
	}
	if req.Version >= 3 {
		resp.FinalizedFeaturesEpoch = 0
		for _, have := range features {
			f := kmsg.NewApiVersionsResponseFinalizedFeature()
			f.Name, f.MinVersionLevel, f.MaxVersionLevel = have.name, have.level, have.level
			resp.FinalizedFeatures = append(resp.FinalizedFeatures, f)
		}
	}
	if req.Version >= 4 {
		for _, have := range features {
			f := kmsg.NewApiVersionsResponseSupportedFeature()
			f.Name, f.MinVersion, f.MaxVersion = have.name, 0, have.level
			resp.SupportedFeatures = append(resp.SupportedFeatures, f)
		}
	}
	return resp, nil
}

// features are those that clients ask for before they use something, with the level
// that is in force.
var features = []feature{
	{"group.version", 1},
	{"share.version", 1},
	{"streams.version", 1},
	{"transaction.version", 2},
}

// feature is a feature with its level.
type feature struct {
	name  string
	level int16
}

// unsupportedApiVersions answers a version of ApiVersions that we do not know,
// in the form that every client can read, so that it can try again with one
// that we do.
func unsupportedApiVersions() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = 0
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = append(resp.ApiKeys, apiKey(entryFor(protocol.KeyApiVersions)))
	return resp
}

func apiKey(e *Entry) kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = e.Key, e.Min, e.Max
	return k
}
