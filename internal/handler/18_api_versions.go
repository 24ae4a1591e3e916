// ApiVersions (key 18) tells a client which versions of which requests the
// broker serves.
//
//	v0-2  the original fields; v3 flexible, with the client's software name and version;
//	v4    features may have a minimum of 0
//
// Left out: features. There is nothing yet that a client would have to know.

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
	for i := range table {
		resp.ApiKeys = append(resp.ApiKeys, apiKey(&table[i]))
	}
	return resp, nil
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
