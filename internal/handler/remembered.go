package handler

import "muster/internal/auth"

// remembered is what is kept of a connection from one request to the next.
type remembered struct {
	rights      auth.Memo
	given, host string  // where it comes from, and that as rules have it
	share       *sharer // nil as long as there is no member of a share group
}

// remembered returns that of the request's connection, or a new one if it comes from none.
func (c *call) remembered() *remembered {
	place := c.origin.Conn.Place()
	if place == nil {
		return &remembered{}
	}
	m, ok := (*place).(*remembered)
	if !ok {
		m = &remembered{}
		*place = m
	}
	return m
}

// hostOf returns where a request comes from, as rules have it.
func (m *remembered) hostOf(c *call) string {
	if m.given != c.origin.Host {
		m.given, m.host = c.origin.Host, c.host()
	}
	return m.host
}
