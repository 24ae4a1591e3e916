package cluster

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/record"
)

// shareSecret gives a cluster that has none what its brokers know each other by.
// It is made once, and again only if the store has lost it.
func shareSecret(edit *metadata.Edit) []record.Record {
	if edit.Image().Secrets.Current.Text != "" {
		return nil
	}
	s := metadata.Secrets{Current: metadata.Secret{Text: rand.Text()}}
	edit.SetSecrets(s)
	return []record.Record{secretRecord(s)}
}

// RotateSecret makes another secret. While the one before is accepted still there cannot be
// a third, which brokers would have to know as well.
func (c *Controller) RotateSecret(ctx context.Context, now time.Time) error {
	if c.shared == nil {
		return metadata.Refuse(kerr.InvalidRequest, "this broker does not share its store, so no broker logs in to it")
	}
	return c.durably(ctx, func() error {
		image := c.image.Load()
		if s := &image.Secrets; s.Overlaps(now) {
			return metadata.Refuse(kerr.InvalidRequest, "the secret was rotated at %s; it can be rotated again from %s on",
				s.Rotated.UTC().Format(time.TimeOnly+" MST"), s.Rotated.Add(metadata.SecretOverlap).UTC().Format(time.TimeOnly+" MST"))
		}
		next := image.Secrets.Rotate(rand.Text(), now)
		edit := image.Edit()
		edit.SetSecrets(next)
		return c.change(ctx, edit, secretRecord(next))
	})
}
