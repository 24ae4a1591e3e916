package metadata

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestARotatedSecretIsKnownBeforeItIsUsedAndTheOldOneAcceptedAfterwards(t *testing.T) {
	begin := Secrets{Current: Secret{Text: "old"}}
	at := time.Now()
	s := begin.Rotate("new", at)
	old, next := Secret{"old", 0}, Secret{"new", 1}
	for _, c := range []struct {
		after    time.Duration
		use      Secret
		overlaps bool
	}{
		{-time.Minute, old, true}, // The clock of another broker.
		{0, old, true},
		{SecretSwitch - 1, old, true},
		{SecretSwitch, next, true},
		{SecretOverlap - 1, next, true},
		{SecretOverlap, next, false},
	} {
		now := at.Add(c.after)
		if use, overlaps := s.Use(now), s.Overlaps(now); use != c.use || overlaps != c.overlaps {
			t.Errorf("%s after: uses %v, and accepts the old one: %v", c.after, use.Text, overlaps)
		}
	}
	if use := begin.Use(at); use != old || begin.Overlaps(at) {
		t.Errorf("before there was any rotation: %v, %v", use, begin.Overlaps(at))
	}
	if again := s.Rotate("newer", at); begin.Lasting() != "old" || s.Lasting() != "old" || again.Lasting() != "old" || again.Current.Number != 2 {
		t.Errorf("what lasts is %s, %s, %s", begin.Lasting(), s.Lasting(), again.Lasting())
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	edit := imageWith(t, nil).Edit()
	first := Secrets{Current: Secret{Text: "QQQQ"}}
	edit.SetSecrets(first.Rotate("QQQQ", time.Now()))
	for _, v := range []any{edit.Image().Secrets, &edit.Image().Secrets, edit.Image()} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(format, v); strings.Contains(s, "QQQQ") {
				t.Errorf("%s of %T shows a secret: %.200s", format, v, s)
			}
		}
	}
}
