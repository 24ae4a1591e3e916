// Package sasl is the server side of SASL as Kafka speaks it: which requests a
// connection may send in which order, and the mechanisms that tell who sends
// them. It owns no socket, no users and no settings; those are handed to it.
//
//	mechanism.go   what a mechanism is; a failure and what the client may know of it
//	order.go       PURE: the order of requests on a connection, sessions, KIP-368
//	connection.go  the order together with the mechanisms of a listener
//	credential.go  what is stored of a password (RFC 5802), and its bounds
//	decoy.go       credentials for names that do not exist
//	scram*.go      SCRAM-SHA-256 and SCRAM-SHA-512
//	plain.go       PLAIN against the same credentials
//	jaas.go        user_<name>="password" of a JAAS line
//	oauth*.go      OAUTHBEARER; token.go and keys.go verify its tokens
//
// Two rules hold everywhere. Whoever has not logged in learns nothing about
// which users exist: a name without credentials takes the same path, sends as
// many bytes and costs as much as a wrong password. And nothing that a client
// sends before it has logged in takes memory or time without a bound.
//
// SCRAM is written with the standard library and not with xdg-go/scram: that
// library does not decode names, does not show extensions, and leaves its
// messages unbounded, so most of it would be parsed twice. Nor do we prepare
// strings by SASLprep, because Kafka and its clients do not: a password is its
// UTF-8 bytes.
package sasl
