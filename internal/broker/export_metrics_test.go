package broker

import "net/http"

// MetricsHandler answers /metrics.
func (b *Broker) MetricsHandler() http.Handler { return b.metricsHandler() }
