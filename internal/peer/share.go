package peer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/share/requests"
)

// The pause before those share partitions are asked for again whose coordinator moves, or loads.
const (
	firstShareRetry = 20 * time.Millisecond
	lastShareRetry  = time.Second
)

// ShareState has a request for the state of share partitions (keys 83 to 87) answered by their
// coordinators, this broker or others, and returns one answer in the order of the request. The
// version is set here, and the topic is created if there is none. It takes no longer than other
// requests to brokers.
//
// While a coordinator moves, loads or cannot be reached it is asked again: each of these
// requests may be handled twice. A share partition whose coordinator has not answered is
// answered COORDINATOR_NOT_AVAILABLE, or what it said last; what it was asked to write may be
// written.
func (c *Client) ShareState(ctx context.Context, req kmsg.Request) kmsg.Response {
	version, ok := requests.Newest(req.Key())
	if !ok {
		return requests.Failed(req, kerr.UnknownServerError)
	}
	req.SetVersion(version)
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	resp := c.askShare(ctx, req)
	for pause := firstShareRetry; ; pause = min(2*pause, lastShareRetry) {
		again := requests.Again(req, resp)
		if again == nil || wait(ctx, time.Now().Add(pause)) != nil {
			return resp
		}
		next := c.askShare(ctx, again)
		resp = requests.Merge(req, []kmsg.Response{resp, next})
	}
}

// warnShareEvery is how often it is logged at most that there is no topic for share coordinators:
// each leader and group coordinator asks again and again.
const warnShareEvery = time.Minute

func (c *Client) warnShare(err error) {
	now, last := time.Now().UnixNano(), c.shareWarned.Load()
	if time.Duration(now-last) >= warnShareEvery && c.shareWarned.CompareAndSwap(last, now) {
		c.opts.Logger.Warn("the state of share groups cannot be kept now", "error", err)
	}
}

// askShare asks each coordinator once, all at the same time.
func (c *Client) askShare(ctx context.Context, req kmsg.Request) kmsg.Response {
	image, err := c.shareImage(ctx)
	if err != nil {
		c.warnShare(err)
		return requests.Failed(req, kerr.CoordinatorNotAvailable)
	}
	parts := requests.Split(req, func(k requests.Key) int32 {
		node, _ := requests.Coordinator(image, k)
		return node
	})
	if len(parts) == 0 {
		return requests.Failed(req, kerr.UnknownServerError) // It is about none.
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	var answers []kmsg.Response
	for node, part := range parts {
		running.Add(1)
		done := func(resp kmsg.Response, err error) {
			defer running.Done()
			if err != nil {
				c.opts.Logger.Debug("a share coordinator has not answered", "error", err)
				resp = requests.Failed(part, kerr.CoordinatorNotAvailable)
			}
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, resp)
		}
		if len(parts) == 1 && node != c.opts.Self { // This broker may be busy for longer than there is time.
			c.Send(ctx, node, part, done)
			break
		}
		go c.Send(ctx, node, part, done)
	}
	running.Wait()
	return requests.Merge(req, answers)
}

var errNoShareTopic = errors.New("there is no topic for it yet")

// shareImage returns metadata that has the topic of share coordinators.
func (c *Client) shareImage(ctx context.Context) (*metadata.Image, error) {
	if image := c.opts.Image(); image != nil && image.Topic(metadata.ShareStateTopic) != nil {
		return image, nil
	}
	if c.opts.CreateTopic == nil {
		return nil, errNoShareTopic
	}
	if err := c.createShareTopic(ctx); err != nil {
		return nil, err
	}
	if image := c.opts.Image(); image != nil && image.Topic(metadata.ShareStateTopic) != nil {
		return image, nil
	}
	return nil, errNoShareTopic
}

// createShareTopic creates the topic, and waits for that no longer than ctx: coordinators are
// told of a topic in turn, and one of them may be busy with the end of the very shard that asks.
func (c *Client) createShareTopic(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errClosed
	}
	c.owned.Add(1)
	c.mu.Unlock()
	created := make(chan error, 1)
	go func() {
		defer c.owned.Done()
		created <- c.opts.CreateTopic(ctx, metadata.ShareStateTopic)
	}()
	select {
	case err := <-created:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
