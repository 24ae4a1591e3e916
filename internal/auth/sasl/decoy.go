package sasl

import (
	"encoding/binary"
	"math/big"
	"slices"
)

// Users are the credentials that exist. Its methods take the same time whether
// they find something or not, and never wait.
type Users interface {
	// Credential returns what is stored for a user.
	Credential(h Hash, name string) (Credential, bool)
	// Model returns the credential of some user, always the same one for a
	// number while users do not change; false if nobody has one. A credential
	// that is invented looks like it.
	Model(h Hash, number uint64) (Credential, bool)
}

// A Directory finds the credential for a name, and invents one where there is
// none, so that the exchange goes on in the same way. An invented salt depends
// on the name and a secret alone: it stays the same from login to login and, if
// brokers share the secret, from broker to broker, as a real one does.
type Directory struct {
	users  Users
	secret []byte
	hashes hashes
}

// NewDirectory makes a directory. The secret must not be known to clients: with
// it, invented credentials can be recognized.
func NewDirectory(users Users, secret []byte) *Directory {
	return &Directory{users: users, secret: slices.Clone(secret), hashes: standard}
}

// find does all of its work in both cases, so that they cost the same.
func (d *Directory) find(h Hash, name string) (credential Credential, known bool) {
	invented := d.invent(h, name)
	credential, known = d.users.Credential(h, name)
	// A credential that breaks the bounds cannot have been stored by us. Nobody
	// can log in with it.
	if !known || credential.Check() != nil || credential.Hash != h {
		return invented, false
	}
	return credential, true
}

// invent makes a credential with which nobody can log in. Its salt has the form
// and the length of the model's, so that all users together look like all
// names without one.
func (d *Directory) invent(h Hash, name string) Credential {
	number := d.stream(h, name, "number", 8)
	invented := Credential{Hash: h, Iterations: MinIterations}
	model, ok := d.users.Model(h, binary.BigEndian.Uint64(number))
	ok = ok && model.Check() == nil
	if ok {
		invented.Iterations = model.Iterations
	}
	switch bits := d.stream(h, name, "salt", maxSalt); {
	case !ok:
		invented.Salt = textOf(bits, maxSaltText)
	case isSaltText(model.Salt):
		invented.Salt = textOf(bits, len(model.Salt))
	default:
		invented.Salt = bits[:len(model.Salt)]
	}
	invented.StoredKey = d.stream(h, name, "stored key", h.size())
	invented.ServerKey = d.stream(h, name, "server key", h.size())
	return invented
}

// stream returns n bytes that only the secret foretells.
func (d *Directory) stream(h Hash, name, purpose string, n int) []byte {
	var out []byte
	for block := byte(0); len(out) < n; block++ {
		message := append([]byte{byte(h), block}, purpose...)
		message = append(message, 0)
		out = append(out, mac(d.hashes, SHA256, d.secret, append(message, name...))...)
	}
	return out[:n]
}

// Salts of Kafka's tools are numbers below 2^130 to the base 36. One in a million
// is shorter than minSaltText.
const (
	minSaltText = 22
	maxSaltText = 26
)

// isSaltText says whether a salt looks as Kafka's tools make them.
func isSaltText(salt []byte) bool {
	for _, c := range salt {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(salt) >= minSaltText && len(salt) <= maxSaltText
}

// textOf makes of bits a salt as Kafka's tools make them, with a given length.
func textOf(bits []byte, length int) []byte {
	base := big.NewInt(36)
	least := new(big.Int).Exp(base, big.NewInt(int64(length-1)), nil)
	next := new(big.Int).Mul(least, base)
	if most := new(big.Int).Lsh(big.NewInt(1), saltBits); next.Cmp(most) > 0 {
		next = most
	}
	number := new(big.Int).SetBytes(bits)
	number.Mod(number, next.Sub(next, least))
	return number.Add(number, least).Append(nil, 36)
}

// either finds a credential whichever hash it was made with, for PLAIN.
func (d *Directory) either(name string) (credential Credential, known bool) {
	first, knownFirst := d.find(SHA256, name)
	second, knownSecond := d.find(SHA512, name)
	_, modelFirst := d.users.Model(SHA256, 0)
	_, modelSecond := d.users.Model(SHA512, 0)
	switch {
	case knownFirst:
		return first, true
	case knownSecond:
		return second, true
	case modelSecond && !modelFirst:
		return second, false
	default:
		return first, false
	}
}
