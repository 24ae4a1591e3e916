package listener

import "time"

// Mute has the connection not be read for a time, once the request that is being
// handled is over and its answer, if it is known by then, is on its way: the client
// has had more than it may (KIP-219). It is for the goroutine that handles the
// request.
func (c *Client) Mute(d time.Duration) { c.conn.mute = max(c.conn.mute, d) }

// stayMute waits until the connection may be read again, or the server shuts down;
// false says that the client hung up meanwhile. What it sends stays in its socket
// until then, so it holds nothing but what an idle connection does.
func (c *conn) stayMute() bool {
	over := c.server.after(c.mute)
	c.mute, c.now = 0, time.Time{}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-over:
			return true
		case <-c.server.ctx.Done():
			return true // The next read says so.
		case <-look.C:
			if c.hungUp() {
				return false
			}
		}
	}
}
