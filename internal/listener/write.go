package listener

import (
	"io"
	"net"

	"muster/internal/buffer"
	"muster/internal/protocol"
)

// write sends a response. Bytes in memory go out together; records in a file
// are sent from it.
func (c *conn) write(resp queued) (err error) {
	defer func() {
		c.release(resp)
		if resp.counts && err == nil && !c.told.Load() {
			c.told.Store(true)
		}
	}()
	var pending net.Buffers
	flush := func() error {
		if len(pending) == 0 {
			return nil
		}
		c.setWriteDeadline()
		var err error
		if len(pending) == 1 {
			_, err = c.net.Write(pending[0])
		} else {
			_, err = pending.WriteTo(c.net)
		}
		pending = nil
		return err
	}
	for i := range resp.Parts {
		p := &resp.Parts[i]
		switch {
		case p.Bytes != nil:
			pending = append(pending, p.Bytes)
		case p.Records.Bytes != nil:
			pending = append(pending, p.Records.Bytes)
		default:
			if err := flush(); err != nil {
				return err
			}
			if err := c.writeFile(p.Records); err != nil {
				return err
			}
		}
	}
	return flush()
}

// writeFile sends records from their file, without copying them through this
// process where the connection and the system allow it.
func (c *conn) writeFile(r protocol.Records) error {
	fd, ok := r.File.Fd()
	if ok && c.net == net.Conn(c.tcp) && canSendfile {
		return c.sendfile(fd, r.Pos, r.Len)
	}
	src := io.NewSectionReader(r.File, r.Pos, int64(r.Len))
	buf, kept := buffer.Get(min(r.Len, 64<<10))
	defer buffer.Put(kept)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			c.setWriteDeadline()
			if _, err := c.net.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
