package logintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// KeyID is the name of an issuer's key.
const KeyID = "k"

// Claims is what a token says.
type Claims map[string]any

// ClaimsOf says for whom and for which audience a token is, and until when. Times of tokens
// may have fractions of a second.
func ClaimsOf(subject, audience string, ends time.Time) Claims {
	return Claims{"sub": subject, "aud": audience, "iat": time.Now().Unix(), "exp": float64(ends.UnixMilli()) / 1000}
}

// Issuer issues tokens.
type Issuer struct {
	Key *ecdsa.PrivateKey
	// KeySet is its public key, as issuers publish it.
	KeySet []byte
}

// NewIssuer returns an issuer with a key of its own.
func NewIssuer() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	i := &Issuer{Key: key}
	i.KeySet, err = json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: KeyID, Use: "sig"}}})
	return i, err
}

// Token issues a token.
func (i *Issuer) Token(c Claims) (string, error) { return Sign(jose.ES256, i.Key, KeyID, c) }

// Sign makes a token that anybody can make: by whatever algorithm and key, under whatever name
// of the key.
func Sign(algorithm jose.SignatureAlgorithm, key any, id string, c Claims) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
