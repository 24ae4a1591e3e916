package web

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// maxConns is how many connections there are at a time. A browser has six, a balancer
// one or two.
const maxConns = 256

// conns bounds the connections. When there are too many, the one goes that has been
// silent for longest, so that somebody who opens connections and says nothing does not
// keep others out; if all are busy, the new one goes.
type conns struct {
	mu     sync.Mutex
	max    int
	all    map[net.Conn]*list.Element // nil for those that are being answered
	silent *list.List                 // of net.Conn, the longest silent first
}

func newConns(most int) *conns {
	return &conns{max: most, all: map[net.Conn]*list.Element{}, silent: list.New()}
}

// changed is http.Server.ConnState.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[conn]; e != nil {
		c.silent.Remove(e)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.all[conn] = c.silent.PushBack(conn)
		if len(c.all) > c.max {
			c.evict()
		}
	case http.StateActive:
		c.all[conn] = nil
	case http.StateHijacked, http.StateClosed:
		delete(c.all, conn)
	}
}

// evict closes the connection that has been silent for longest. The server tells when it
// is gone; it does not count any more from now on.
func (c *conns) evict() {
	conn := c.silent.Remove(c.silent.Front()).(net.Conn)
	delete(c.all, conn)
	hangUp(conn)
}

// hangUp closes a connection without a word: one of TLS would wait until the other side
// has taken the last.
func hangUp(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close()
}
