package records

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

// maxLine is the longest line that is read, more than any broker takes.
const maxLine = 256 << 20

// producer sends the records of one input, and counts what became of them.
type producer struct {
	client *kgo.Client
	topic  string
	parse  lineParser
	limit  int32
	// patience is how long to wait for the next acknowledgement.
	patience time.Duration

	sent      sync.WaitGroup
	mu        sync.Mutex // Guards what follows, until all that was sent is done.
	stalled   *time.Timer
	waiting   int
	produced  int
	failed    int
	first     error // The failure in the first line that has one.
	firstLine int
}

// errStalled is why sending ends when the broker acknowledges nothing.
var errStalled = errors.New("the broker acknowledges nothing")

// ProduceSummary has the fields of muster produce --json.
type ProduceSummary struct {
	Topic   string `json:"topic"`
	Records int    `json:"records"`
	Failed  int    `json:"failed"`
}

func (p *producer) summary() ProduceSummary {
	return ProduceSummary{Topic: p.topic, Records: p.produced, Failed: p.failed}
}

// run produces what it reads until the input ends, a line is wrong, a record
// fails or the user interrupts. It returns once the fate of every record that
// it sent is known.
func (p *producer) run(ctx context.Context, in io.Reader) error {
	// An interrupt ends the reading at once. The records that were read get a
	// little longer, on a context of their own.
	sendCtx, cancelSend := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelSend(nil)
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushTimeout, func() { cancelSend(nil) }) })()
	readCtx, stopReading := context.WithCancel(ctx)
	defer stopReading()
	p.stalled = time.AfterFunc(p.patience, func() {
		cancelSend(errStalled)
		stopReading()
	})
	p.stalled.Stop() // Until something is sent.

	inputErr := p.send(readCtx, sendCtx, in, stopReading)
	if p.client.Flush(sendCtx) != nil {
		p.client.Close() // Fails what is left.
	}
	p.sent.Wait()
	return p.result(ctx, inputErr)
}

// send reads lines and hands their records to the client, which calls onFailure
// when one fails. It returns nil at the end of the input or of readCtx.
func (p *producer) send(readCtx, sendCtx context.Context, in io.Reader, onFailure func()) error {
	lines := readLines(readCtx, in)
	for number := 1; ; number++ {
		var line inputLine
		var more bool
		select {
		case <-readCtx.Done():
		case line, more = <-lines:
		}
		if !more {
			return nil
		}
		if line.err != nil {
			return fmt.Errorf("line %d: %w", number, line.err)
		}
		record, err := p.parse(line.text)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		record.Topic = p.topic
		p.begin()
		p.client.Produce(sendCtx, record, func(r *kgo.Record, err error) {
			defer p.sent.Done()
			if err != nil {
				err = p.explain(sendCtx, r, err)
				onFailure()
			}
			p.end(number, err)
		})
	}
}

// begin notes that a record is sent.
func (p *producer) begin() {
	p.sent.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting++; p.waiting == 1 {
		p.stalled.Reset(p.patience)
	}
}

// end notes what became of a line's record.
func (p *producer) end(line int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		p.stalled.Stop()
	} else {
		p.stalled.Reset(p.patience)
	}
	if err == nil {
		p.produced++
		return
	}
	p.failed++
	if p.first == nil || line < p.firstLine {
		p.first, p.firstLine = err, line
	}
}

// explain words the failure of a record.
func (p *producer) explain(sendCtx context.Context, r *kgo.Record, err error) error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge):
		return fmt.Errorf("a record of %d bytes is too large for the topic: its max.message.bytes is %d", len(r.Key)+len(r.Value), p.limit)
	case errors.Is(context.Cause(sendCtx), errStalled):
		return fmt.Errorf("the broker did not acknowledge the record within %s; it may have been written", p.patience)
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
		return errors.New("interrupted before the broker acknowledged the record; it may have been written")
	case errors.Is(err, kerr.InvalidTopicException):
		return fmt.Errorf("the broker does not allow %q as the name of a topic", p.topic)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("there is no topic %q, and the broker did not create it", p.topic)
	case errors.Is(err, kerr.InvalidRecord) && r.Key == nil:
		return fmt.Errorf("%w; a compacted topic takes no record without a key", cli.Plain(err))
	case strings.Contains(err.Error(), "invalid record partitioning choice"): // The client has no error value for it.
		return fmt.Errorf("the topic has no partition %d", r.Partition)
	}
	return cli.Plain(err)
}

// result is the error to report, nil if every record of the input is produced.
func (p *producer) result(ctx context.Context, inputErr error) error {
	var errs []error
	switch {
	case p.failed == 1:
		errs = append(errs, fmt.Errorf("line %d: %w", p.firstLine, p.first))
	case p.failed > 1:
		errs = append(errs, fmt.Errorf("%d records failed, the first in line %d: %w", p.failed, p.firstLine, p.first))
	}
	if inputErr != nil {
		errs = append(errs, inputErr)
	}
	if len(errs) == 0 && ctx.Err() != nil {
		return &cli.InterruptedError{Text: "interrupted: the input was not read to its end"}
	}
	return errors.Join(errs...)
}

// inputLine is a line without its line end.
type inputLine struct {
	text []byte
	err  error
}

// readLines reads lines in a goroutine, since a read from a terminal cannot be
// interrupted. Once the context has ended, that goroutine ends after the read
// that it is in.
func readLines(ctx context.Context, in io.Reader) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		defer close(lines)
		reader := bufio.NewReaderSize(in, 64<<10)
		for {
			text, err := readLine(reader)
			if errors.Is(err, io.EOF) {
				return
			}
			select {
			case lines <- inputLine{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// readLine reads a line of up to maxLine bytes. The last line may lack its end.
func readLine(reader *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxLine:
			return nil, fmt.Errorf("it is longer than %s", words.Size(maxLine))
		}
	}
}
