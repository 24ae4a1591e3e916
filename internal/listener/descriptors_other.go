//go:build !unix

package listener

import "math"

// maxDescriptors is how many files and sockets the process may have open: there
// is no practical limit here.
func maxDescriptors() int { return math.MaxInt }
