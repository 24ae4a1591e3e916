package sasl

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"unicode/utf8"
)

// maxPlain bounds a PLAIN message. RFC 4616 wants 255 bytes for each of its three
// parts; some put a whole token into the password.
const maxPlain = 16 << 10

// plain is PLAIN (RFC 4616) against the credentials of SCRAM: the password is
// derived as the client would have derived it, and the keys are compared. That
// takes milliseconds of processor time, so derivations stand in a queue, and
// passwords that were right a moment ago pass it by.
type plain struct {
	directory *Directory
	limiter   Limiter
	recent    *recent
}

// NewPlain makes the mechanism. It remembers about as many right passwords as
// remember says, as marks from which they cannot be found without secret.
func NewPlain(directory *Directory, limiter Limiter, secret []byte, remember int) Mechanism {
	return &plain{directory: directory, limiter: limiter, recent: newRecent(secret, remember)}
}

func (p *plain) Name() string { return Plain }

func (p *plain) Start() Exchange { return &plainExchange{plain: p} }

type plainExchange struct {
	*plain
	over bool
}

func (e *plainExchange) Next(ctx context.Context, message []byte) (Step, error) {
	if e.over {
		return refuse(errOver)
	}
	e.over = true
	m, err := parsePlain(message)
	switch {
	case err != nil:
		return refuse(err)
	case m.authzid != "" && m.authzid != m.name:
		return Step{}, by(m.name, otherIdentity())
	}
	right, err := e.check(ctx, m.name, m.password)
	if err != nil {
		return Step{}, err
	}
	if !right {
		return Step{}, &Failure{Text: "Authentication failed: Invalid username or password", Reason: errInvalid, Name: m.name}
	}
	return Step{Answer: []byte{}, Done: true, Principal: m.name}, nil
}

// check says whether a password is right. What is remembered depends on the
// credential, so a new password makes it worthless, and a user that is gone has
// no credential at all.
func (p *plain) check(ctx context.Context, name, password string) (bool, error) {
	credential, known := p.directory.either(name)
	mark := p.recent.mark(credential, name, password)
	if p.recent.has(mark) && known {
		p.limiter.Admitted(ctx, name)
		return true, nil
	}
	if err := p.limiter.Acquire(ctx, name); err != nil {
		return false, err
	}
	defer p.limiter.Release()
	if p.recent.has(mark) && known {
		return true, nil // Of many clients with one password the first has had it derived.
	}
	hs := p.directory.hashes
	salted, err := derive(hs, credential.Hash, password, credential.Salt, credential.Iterations)
	if err != nil {
		return false, err
	}
	stored, _ := keys(hs, credential.Hash, salted)
	equal := hmac.Equal(stored, credential.StoredKey)
	if !equal || !known {
		return false, nil
	}
	p.recent.add(mark)
	p.limiter.Admitted(ctx, name)
	return true, nil
}

type plainMessage struct {
	authzid, name, password string
}

// parsePlain splits a message at its two NULs. Kafka takes what follows a third
// one for part of the password; the RFC has no such password, and so have we.
func parsePlain(message []byte) (plainMessage, error) {
	if len(message) > maxPlain {
		return plainMessage{}, errTooLong
	}
	parts := bytes.Split(message, []byte{0})
	if len(parts) != 3 || !utf8.Valid(message) {
		return plainMessage{}, errMessage
	}
	m := plainMessage{string(parts[0]), string(parts[1]), string(parts[2])}
	if m.name == "" || m.password == "" {
		return plainMessage{}, errors.New("the name or the password is empty")
	}
	return m, nil
}
