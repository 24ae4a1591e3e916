package sasl

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/big"
)

// Kafka's bounds on iterations. Each login of a client costs it that many hashes,
// and each PLAIN login costs us that many.
const (
	MinIterations = 4096
	MaxIterations = 16384
)

// maxSalt bounds the salt that a client may store: it goes to everyone who asks
// for the user, logged in or not.
const maxSalt = 256

// A Hash is the hash function of a SCRAM mechanism, numbered as in Kafka's
// requests about users.
type Hash int8

// The hashes that Kafka knows.
const (
	SHA256 Hash = 1
	SHA512 Hash = 2
)

// Mechanism returns the name of the SCRAM mechanism with this hash, empty if
// there is none.
func (h Hash) Mechanism() string {
	switch h {
	case SHA256:
		return ScramSHA256
	case SHA512:
		return ScramSHA512
	default:
		return ""
	}
}

func (h Hash) size() int {
	if h == SHA512 {
		return sha512.Size
	}
	return sha256.Size
}

// hashes makes hash functions. Tests count with it.
type hashes func(Hash) hash.Hash

func standard(h Hash) hash.Hash {
	if h == SHA512 {
		return sha512.New()
	}
	return sha256.New()
}

// A Credential is what is stored of a password. Whoever reads it can check
// proofs, and pretend to be the broker, but cannot log in.
type Credential struct {
	Hash       Hash
	Salt       []byte
	Iterations int
	StoredKey  []byte
	ServerKey  []byte
}

// Errors about credentials. They become the wire errors 33 and 93.
var (
	ErrHash       = errors.New("unknown SCRAM mechanism")
	ErrIterations = fmt.Errorf("iterations are not between %d and %d", MinIterations, MaxIterations)
	ErrSalt       = fmt.Errorf("the salt does not have 1 to %d bytes", maxSalt)
	ErrSalted     = errors.New("the salted password is empty")
	ErrKey        = errors.New("a key does not have the length of its hash")
)

// FromSalted makes a credential of a salted password, which is what
// AlterUserScramCredentials carries, so that the broker never sees the password. As in
// Kafka it may be of any length but none: one that is not of its hash's length is no
// password that a client could have, and harms no one.
func FromSalted(h Hash, salt, salted []byte, iterations int) (Credential, error) {
	if err := checkFactors(h, salt, iterations); err != nil {
		return Credential{}, err
	}
	if len(salted) == 0 {
		return Credential{}, ErrSalted
	}
	c := Credential{Hash: h, Salt: append([]byte(nil), salt...), Iterations: iterations}
	c.StoredKey, c.ServerKey = keys(standard, h, salted)
	return c, nil
}

// FromPassword makes a credential of a password, for users that settings name.
func FromPassword(h Hash, password string, salt []byte, iterations int) (Credential, error) {
	if err := checkFactors(h, salt, iterations); err != nil {
		return Credential{}, err
	}
	salted, err := derive(standard, h, password, salt, iterations)
	if err != nil {
		return Credential{}, err
	}
	return FromSalted(h, salt, salted, iterations)
}

// Check says whether a credential that was read from somewhere can be used.
func (c Credential) Check() error {
	if err := checkFactors(c.Hash, c.Salt, c.Iterations); err != nil {
		return err
	}
	if len(c.StoredKey) != c.Hash.size() || len(c.ServerKey) != c.Hash.size() {
		return ErrKey
	}
	return nil
}

func checkFactors(h Hash, salt []byte, iterations int) error {
	switch {
	case h.Mechanism() == "":
		return ErrHash
	case iterations < MinIterations || iterations > MaxIterations:
		return ErrIterations
	case len(salt) == 0 || len(salt) > maxSalt:
		return ErrSalt
	default:
		return nil
	}
}

// NewSalt makes a salt in the form of Kafka's own tools, 130 random bits as text,
// so that users cannot be told from one another by who made them.
func NewSalt(random io.Reader) ([]byte, error) {
	bits := make([]byte, saltBytes)
	if _, err := io.ReadFull(random, bits); err != nil {
		return nil, fmt.Errorf("make a salt: %w", err)
	}
	number := new(big.Int).SetBytes(bits)
	return number.Rsh(number, saltBytes*8-saltBits).Append(nil, 36), nil
}

const (
	saltBits  = 130
	saltBytes = (saltBits + 7) / 8
)

// derive is Hi of RFC 5802: the salted password.
func derive(hs hashes, h Hash, password string, salt []byte, iterations int) ([]byte, error) {
	return pbkdf2.Key(func() hash.Hash { return hs(h) }, password, salt, iterations, h.size())
}

// keys derives the stored key and the server key from a salted password.
func keys(hs hashes, h Hash, salted []byte) (stored, server []byte) {
	digest := hs(h)
	digest.Write(mac(hs, h, salted, []byte("Client Key")))
	return digest.Sum(nil), mac(hs, h, salted, []byte("Server Key"))
}

func mac(hs hashes, h Hash, key, message []byte) []byte {
	m := hmac.New(func() hash.Hash { return hs(h) }, key)
	m.Write(message)
	return m.Sum(nil)
}
