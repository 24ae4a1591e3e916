//go:build !linux

package listener

import (
	"errors"
	"net"
)

const canSendfile = false

func (*conn) sendfile(uintptr, int64, int) error { return errors.ErrUnsupported }

func tune(*net.TCPConn) {}
