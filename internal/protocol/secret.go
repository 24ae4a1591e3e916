package protocol

import (
	"crypto/subtle"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TagSecret is the number of a tagged field of muster's own, in requests that
// brokers send to each other: what brokers of a cluster know each other by.
const TagSecret = 28022

// SetSecret says in a request that a broker of the cluster sends it.
func SetSecret(request *kmsg.Tags, secret string) { request.Set(TagSecret, []byte(secret)) }

// HasSecret says whether a broker of the cluster sent a request. Nobody has a
// secret that is empty. How long it takes tells nothing of the secret.
func HasSecret(request *kmsg.Tags, secret string) bool {
	has := false
	request.Each(func(tag uint32, value []byte) {
		if tag == TagSecret {
			has = subtle.ConstantTimeCompare(value, []byte(secret)) == 1
		}
	})
	return has && secret != ""
}
