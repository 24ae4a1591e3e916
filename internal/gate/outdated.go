package gate

import (
	"log/slog"
	"sync"

	"muster/internal/listener"
)

// outdated names in the log, once each, the clients whose librdkafka is from before 2.6.1.
// They work here, but a Kafka 4 refuses their SCRAM logins.
type outdated struct {
	logger *slog.Logger

	mu   sync.Mutex
	seen map[outdatedClient]bool
}

type outdatedClient struct{ id, software string }

// maxOutdated is how many clients are named. Some make up a client id for each connection.
const maxOutdated = 100

func (o *outdated) tell(client *listener.Client, software string) {
	key := outdatedClient{client.LastID, software}
	o.mu.Lock()
	known := o.seen[key] || len(o.seen) >= maxOutdated
	if !known {
		if o.seen == nil {
			o.seen = map[outdatedClient]bool{}
		}
		o.seen[key] = true
	}
	o.mu.Unlock()
	if known {
		return
	}
	if software == "" {
		software = "unknown"
	}
	o.logger.Warn("a client logged in by SCRAM as librdkafka did before 2.6.1, which Kafka 4 rejects; it should be updated",
		"client_id", key.id, "software", software, "host", client.Host, "listener", client.Listener)
}
