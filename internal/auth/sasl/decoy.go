package sasl

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strconv"
)

// Users are the credentials that exist. Its methods take the same time whether
// they find something or not, and never wait.
type Users interface {
	// Credential returns what is stored for a user.
	Credential(h Hash, name string) (Credential, bool)
	// Shapes returns the shapes of the credentials that users have, as ShapesOf
	// makes them. A credential that is invented has one of them.
	Shapes(h Hash) []Shape
}

// A Shape is what everyone can see of a credential besides its salt's bytes. It
// tells by which tool a user was made.
type Shape struct {
	Text       bool // The salt is as Kafka's tools make them, whose length varies.
	Length     int  // Of any other salt.
	Iterations int
}

// maxShapes is how many shapes are told apart. Each costs every login a hash.
const maxShapes = 16

// ShapesOf returns the shapes of credentials, each once.
func ShapesOf(credentials []Credential) []Shape {
	var shapes []Shape
	for _, c := range credentials {
		shape := Shape{Text: isSaltText(c.Salt), Iterations: c.Iterations}
		if !shape.Text {
			shape.Length = len(c.Salt)
		}
		if c.Check() == nil && !slices.Contains(shapes, shape) {
			shapes = append(shapes, shape)
		}
	}
	return bounded(shapes)
}

// bounded returns the first shapes, in an order that does not depend on users.
func bounded(shapes []Shape) []Shape {
	sort.Slice(shapes, func(i, j int) bool {
		a, b := &shapes[i], &shapes[j]
		return cmp.Or(cmp.Compare(a.Iterations, b.Iterations), cmp.Compare(a.Length, b.Length)) < 0
	})
	return shapes[:min(len(shapes), maxShapes)]
}

// A Directory finds the credential for a name, and invents one where there is
// none, so that the exchange goes on in the same way. An invented salt depends
// on the name, the mechanism, a secret, and which shapes there are: it stays the
// same from login to login, when users come and go and, if brokers share the
// secret, from broker to broker, as a real one does. Only a user of a shape that
// no other has makes a difference, to the names that take that shape.
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
	// A credential that breaks the bounds cannot have been stored by us. No one
	// can log in with it.
	if !known || credential.Check() != nil || credential.Hash != h {
		return invented, false
	}
	return credential, true
}

// invent makes a credential with which no one can log in. It has a shape that
// users have, so that all users together look like all names without one.
func (d *Directory) invent(h Hash, name string) Credential {
	shape := d.shape(h, name)
	invented := Credential{Hash: h, Iterations: shape.Iterations, Salt: d.stream(h, name, "salt", maxSalt)}
	if shape.Text {
		invented.Salt, _ = NewSalt(bytes.NewReader(invented.Salt)) // There are enough.
	} else {
		invented.Salt = invented.Salt[:shape.Length]
	}
	invented.StoredKey = d.stream(h, name, "stored key", h.size())
	invented.ServerKey = d.stream(h, name, "server key", h.size())
	return invented
}

// shape picks a shape for a name: that which draws the highest number, so that
// another shape that comes or goes leaves all others where they are.
func (d *Directory) shape(h Hash, name string) Shape {
	best, highest := Shape{Text: true, Iterations: MinIterations}, []byte(nil)
	for _, shape := range d.users.Shapes(h) {
		purpose := "shape " + strconv.FormatBool(shape.Text) + " " + strconv.Itoa(shape.Length) + " " + strconv.Itoa(shape.Iterations)
		if number := d.stream(h, name, purpose, 8); bytes.Compare(number, highest) > 0 {
			best, highest = shape, number
		}
	}
	return best
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

// either finds a credential whichever hash it was made with, for PLAIN.
func (d *Directory) either(name string) (credential Credential, known bool) {
	first, knownFirst := d.find(SHA256, name)
	second, knownSecond := d.find(SHA512, name)
	anyFirst, anySecond := len(d.users.Shapes(SHA256)) > 0, len(d.users.Shapes(SHA512)) > 0
	switch {
	case knownFirst:
		return first, true
	case knownSecond:
		return second, true
	case anySecond && !anyFirst:
		return second, false
	default:
		return first, false
	}
}
