package broker

import (
	"context"
	"errors"
)

// redisSide is what a broker has open of the Redis that its store is in.
type redisSide struct{}

func (r *redisSide) close() {}

func (b *Broker) openRedis(context.Context) error {
	return errors.New("the Redis store is not built yet")
}
