package listener

// Place is where the handler keeps what it likes from one request of the connection to
// the next. It is for the goroutine that handles the request, so it needs no lock, and
// what is kept there goes with the connection.
func (c *Client) Place() *any { return &c.place }
