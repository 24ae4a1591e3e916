//go:build !linux

package listener

import "errors"

const canSendfile = false

func (*conn) sendfile(uintptr, int64, int) error { return errors.ErrUnsupported }
