package metadata

import "time"

const (
	// SecretSwitch is how long after a rotation brokers go on using the old secret, so that
	// all know the new one by then, though the clocks of brokers may be a minute apart.
	SecretSwitch = 2 * time.Minute
	// SecretOverlap is how long after a rotation they accept the old one.
	SecretOverlap = 10 * time.Minute
)

// Secret is what brokers of the cluster know each other by. Number says how many there
// were before it.
type Secret struct {
	Text   string
	Number int
}

// Secrets are the secret of the cluster, and the one before it for a while after it was
// rotated. They are told to no one else.
type Secrets struct {
	Current  Secret
	Previous Secret // empty if there is none
	Rotated  time.Time
	// First is the one that the cluster began with, empty if that is the current one. What
	// must stay the same in spite of rotations follows from it, and it lets no one in.
	First string
}

// String keeps secrets out of logs.
func (Secrets) String() string { return "[hidden]" }

// GoString does so too.
func (s Secrets) GoString() string { return s.String() }

// Use is the one to prove with that this is a broker of the cluster.
func (s *Secrets) Use(now time.Time) Secret {
	if s.Overlaps(now) && now.Before(s.Rotated.Add(SecretSwitch)) {
		return s.Previous
	}
	return s.Current
}

// Overlaps says whether brokers that prove it by the previous one are believed still.
func (s *Secrets) Overlaps(now time.Time) bool {
	return s.Previous.Text != "" && now.Before(s.Rotated.Add(SecretOverlap))
}

// Lasting is the one that does not change with rotations.
func (s *Secrets) Lasting() string {
	if s.First != "" {
		return s.First
	}
	return s.Current.Text
}

// Rotate returns the secrets with another one.
func (s *Secrets) Rotate(text string, now time.Time) Secrets {
	return Secrets{Current: Secret{text, s.Current.Number + 1}, Previous: s.Current, Rotated: now, First: s.Lasting()}
}
