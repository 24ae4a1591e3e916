package protocol

import "github.com/twmb/franz-go/pkg/kmsg"

// TagRotate is the number of a tagged field of muster's own in AlterUserScramCredentials:
// the brokers of the cluster are to get another secret to log in to each other with. The
// answer has one result, of no user.
const TagRotate = 28024

// AskRotate asks for another secret.
func AskRotate(request *kmsg.Tags) { request.Set(TagRotate, []byte{}) }

// AsksRotate says whether a request asks for another secret.
func AsksRotate(request *kmsg.Tags) (asks bool) {
	request.Each(func(tag uint32, _ []byte) { asks = asks || tag == TagRotate })
	return asks
}
