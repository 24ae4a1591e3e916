package sasl

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// nonceBytes is our half of a nonce: what makes a recorded login worthless.
const nonceBytes = 24

var (
	errNonce   = errors.New("the nonce is not the one we sent")
	errBinding = errors.New("the channel binding is not that of the first message")
	errToken   = errors.New("delegation tokens are not supported")
)

// scram is SCRAM-SHA-256 or SCRAM-SHA-512 (RFC 5802, RFC 7677).
type scram struct {
	name      string
	hash      Hash
	directory *Directory
	random    io.Reader
}

// NewScram makes the SCRAM mechanism with a hash. Random is read by many
// connections at once.
func NewScram(h Hash, directory *Directory, random io.Reader) Mechanism {
	return NewScramNamed(h.Mechanism(), h, directory, random)
}

// NewScramNamed makes it under another name, for those who know of it.
func NewScramNamed(name string, h Hash, directory *Directory, random io.Reader) Mechanism {
	return &scram{name: name, hash: h, directory: directory, random: random}
}

func (s *scram) Name() string { return s.name }

func (s *scram) Start() Exchange { return &scramExchange{scram: s} }

// A scramExchange is one login: name and nonce in, nonce, salt and iterations
// out, proof in, our own proof out.
type scramExchange struct {
	*scram
	next       int // Messages seen.
	credential Credential
	known      bool
	first      clientFirst
	nonce      string
	challenge  string // The first message of ours.
}

func (e *scramExchange) Next(_ context.Context, message []byte) (Step, error) {
	e.next++
	switch e.next {
	case 1:
		step, err := e.start(message)
		if err != nil {
			e.next = 2
		}
		return step, err
	case 2:
		step, err := e.finish(message)
		return step, by(e.first.name, err)
	default:
		return refuse(errOver)
	}
}

func (e *scramExchange) start(message []byte) (Step, error) {
	first, err := parseClientFirst(message)
	switch {
	case err != nil:
		return refuse(err)
	case first.tokenAuth:
		return refuse(errToken)
	case first.authzid != "" && first.authzid != first.name:
		return Step{}, by(first.name, otherIdentity())
	}
	half := make([]byte, nonceBytes)
	if _, err := io.ReadFull(e.random, half); err != nil {
		return Step{}, fmt.Errorf("make a nonce: %w", err)
	}
	e.first = first
	e.credential, e.known = e.directory.find(e.hash, first.name)
	e.nonce = first.nonce + base64.RawStdEncoding.EncodeToString(half)
	e.challenge = fmt.Sprintf("r=%s,s=%s,i=%d", e.nonce, base64.StdEncoding.EncodeToString(e.credential.Salt), e.credential.Iterations)
	return Step{Answer: []byte(e.challenge)}, nil
}

// finish checks the proof. For a name that does not exist it does the same, with
// an invented key, and fails in the same way.
//
// The nonce must be the one we sent. librdkafka from 0.0.99 to 2.6.0 puts its own
// nonce before it once more (librdkafka#4895); that form is accepted too, and no
// other. It weakens nothing: the proof is over the challenge, which holds our
// fresh part, and over the nonce as the client repeats it, so a recorded login
// fits no other challenge in either form.
func (e *scramExchange) finish(message []byte) (Step, error) {
	final, err := parseClientFinal(message)
	switch {
	case err != nil:
		return refuse(err)
	case !final.binds(e.first.header):
		return refuse(errBinding)
	case final.nonce != e.nonce && final.nonce != e.first.nonce+e.nonce:
		return refuse(errNonce)
	case len(final.proof) != e.hash.size():
		return refuse(errMessage)
	}
	hs := e.directory.hashes
	login := []byte(e.first.bare + "," + e.challenge + "," + final.withoutProof)
	// The proof is the client's key, hidden by a signature that only those make
	// who know the stored key, which is the hash of that client's key.
	clientKey := mac(hs, e.hash, e.credential.StoredKey, login)
	subtle.XORBytes(clientKey, clientKey, final.proof)
	digest := hs(e.hash)
	digest.Write(clientKey)
	equal := hmac.Equal(digest.Sum(nil), e.credential.StoredKey)
	signature := mac(hs, e.hash, e.credential.ServerKey, login)
	if !equal || !e.known {
		return refuse(errInvalid)
	}
	answer := "v=" + base64.StdEncoding.EncodeToString(signature)
	return Step{Answer: []byte(answer), Done: true, Principal: e.first.name, RepeatedNonce: final.nonce != e.nonce}, nil
}
