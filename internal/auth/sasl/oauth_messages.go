package sasl

import (
	"encoding/json"
	"strings"
)

const (
	// maxOAuth bounds the first message of an OAUTHBEARER client. Tokens with
	// the groups of a large company have some ten thousand bytes.
	maxOAuth = 64 << 10

	// maxPairs bounds the extensions of a message.
	maxPairs = 64
)

// controlA separates the parts of a message, and alone it is how a client says
// that it has read our error.
const controlA = "\x01"

// A bearerMessage is the first message of a client (RFC 7628, section 3.1).
type bearerMessage struct {
	authzid string
	token   string
	// extensions are KIP-342's. We have no use for them and refuse none, as
	// Kafka's own validator does.
	extensions map[string]string
}

// parseBearer reads gs2-header, then pairs of key and value that each end with
// control A, then one more control A. RFC 7628 knows no channel binding.
func parseBearer(message []byte) (bearerMessage, error) {
	m := bearerMessage{extensions: make(map[string]string)}
	if len(message) > maxOAuth {
		return m, errTooLong
	}
	_, authzid, rest, ok := cutHeader(string(message))
	if !ok {
		return m, errMessage
	}
	m.authzid = authzid
	rest, begins := strings.CutPrefix(rest, controlA)
	rest, ends := strings.CutSuffix(rest, controlA)
	if !begins || !ends {
		return m, errMessage
	}
	found := false
	for pairs := 0; rest != ""; pairs++ {
		pair, after, whole := strings.Cut(rest, controlA)
		key, value, isPair := strings.Cut(pair, "=")
		if !whole || !isPair || pairs == maxPairs || !isLetters(key) || !isPairValue(value) {
			return m, errMessage
		}
		if _, twice := m.extensions[key]; twice || key == "auth" && found {
			return m, errMessage
		}
		if key == "auth" {
			found = true
			if m.token, ok = cutToken(value); !ok {
				return m, errMessage
			}
		} else {
			m.extensions[key] = value
		}
		rest = after
	}
	if !found {
		return m, errMessage
	}
	return m, nil
}

// cutToken takes the token from "Bearer <token>".
func cutToken(value string) (string, bool) {
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", false
	}
	for _, c := range []byte(token) {
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return "", false
		}
	}
	return token, true
}

// isPairValue says whether s is made of printable ASCII and white space.
func isPairValue(s string) bool {
	for _, c := range []byte(s) {
		if (c < 0x20 || c > 0x7e) && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return s != ""
}

// bearerError is what a client gets for a token that is not accepted: the JSON
// of RFC 7628, section 3.2.2, with Kafka's status. It does not say what is
// wrong with the token; our log does.
func bearerError() []byte {
	body, err := json.Marshal(struct {
		Status string `json:"status"`
	}{"invalid_token"})
	if err != nil {
		panic(err) // A string can always be written.
	}
	return body
}
