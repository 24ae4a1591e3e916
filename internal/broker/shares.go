package broker

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/share/leader"
	"muster/internal/share/session"
	"muster/internal/share/window"
)

// maxShareSessions is Kafka's default of group.share.max.share.sessions.
const maxShareSessions = 2000

// openShares makes what this broker does for members of share groups. Share partitions are
// loaded when they are first fetched.
func (b *Broker) openShares() {
	sessions := session.New(maxShareSessions)
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

// shareSettings returns the settings of a share group, which are Kafka's defaults.
func (b *Broker) shareSettings(string) leader.Settings {
	return leader.Settings{Settings: window.Settings{Lock: 30 * time.Second, Limit: 5, Window: 2000, Renew: true}}
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
