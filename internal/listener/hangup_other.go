//go:build !unix

package listener

// hungUp cannot be told here without reading: a request that waits ends by its
// own time limit.
func (*conn) hungUp() bool { return false }
