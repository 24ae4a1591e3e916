package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/share/leader"
	"muster/internal/share/session"
	"muster/internal/share/window"
)

// openShares makes what this broker does for members of share groups. Share partitions are
// loaded when they are first fetched.
func (b *Broker) openShares() {
	sessions := session.New(int(b.cfg.Int("group.share.max.share.sessions")))
	b.shares = &handler.Shares{
		Sessions: sessions, Settings: b.shareSettings,
		Leader: leader.New(leader.Options{
			Ask: func(ctx context.Context, _ leader.Key, req kmsg.Request) (kmsg.Response, error) {
				return b.peers.ShareState(ctx, req), nil
			},
			Settings: b.shareSettings, InUse: sessions.Has, Logger: b.logger,
		}),
	}
}

// shareSettings returns the settings of a share group.
func (b *Broker) shareSettings(group string) leader.Settings {
	image := b.image()
	return leaderSettings(config.ShareOf(image.Config, image.GroupSettings.Of(group)))
}

// leaderSettings gives the leader what is set.
func leaderSettings(set config.Share) leader.Settings {
	out := leader.Settings{
		Settings:  window.Settings{Lock: set.Lock, Limit: int16(set.Limit), Window: int64(set.Window), Renew: set.Renews},
		Committed: set.Committed,
	}
	switch {
	case set.Reset.Earliest:
		out.Reset.Kind = leader.Earliest
	case set.Reset.Ago > 0:
		out.Reset = leader.Reset{Kind: leader.ByDuration, Age: set.Reset.Ago}
	}
	return out
}

// reviseShares drops the share partitions of partitions that this broker does not lead by the
// metadata.
func (b *Broker) reviseShares(image *metadata.Image) {
	b.shares.Changed(func(id metadata.TopicID, index int32) *partition.Partition {
		t := image.TopicByID(id)
		if t == nil {
			return nil
		}
		return b.manager.Get(t.Name, index)
	})
}
