package records

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

const (
	// deliveryTimeout is how long the broker may acknowledge nothing, while it
	// should, before the records that it has not acknowledged count as failed.
	deliveryTimeout = 30 * time.Second
	// flushTimeout is how long an interrupted command waits for the records
	// that it has read already.
	flushTimeout = 5 * time.Second
)

// produceFlags are the flags of muster produce.
type produceFlags struct {
	cli.Flags
	key          string
	keySeparator string
	headers      []string
	partition    int32
	compression  string
	acks         string
	nullValue    string
	jsonLines    bool
}

func ProduceCommand() *cobra.Command {
	var flags produceFlags
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Produce records from stdin, one per line",
		Long: `Produce records from stdin, one per line, and say how many at the end. If the
topic does not exist, the broker creates it if it is configured to.

Each line is a record's value, without its line end; an empty line is an empty
value. With --key-separator the part before the first separator is the key, and
a line without a separator is an error. Records with a key go to the partition
that Kafka's own clients choose for it.

With --json-lines each line is a JSON object, as muster consume --json prints
it: value (needed; null for a tombstone), key, headers (an object, or an array
of objects with key and value), partition, timestamp (milliseconds since 1970,
or RFC 3339) and encoding ("base64" if key, value and the headers' values are
in base64). Keys and values that are not strings are produced as their JSON
text. topic and offset are ignored.

The exit code is 0 only if the broker acknowledged every record. With --acks
all, the default, the producer is idempotent: a retry does not write twice.

With --json it prints a summary: an object with the fields topic, records (how
many were acknowledged) and failed.`,
		Example: `  echo 'hello' | muster produce orders
  muster produce users -K : <<< 'ann:{"name":"Ann"}'
  muster produce users --key ann --null-value '' <<< ''       # a tombstone
  muster produce orders -H source=shop --compression zstd < orders.txt
  muster consume orders --json | muster produce --json-lines copy`,
		Args:              cli.One("topic"),
		ValidArgsFunction: cli.CompleteTopics(&flags.Flags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return produce(cmd, &flags, args[0]) },
	}
	flags.Add(cmd, "print the summary as a JSON object on stdout")
	f := cmd.Flags()
	f.StringVarP(&flags.key, "key", "k", "", "`text` of every record's key")
	f.StringVarP(&flags.keySeparator, "key-separator", "K", "", "`text` that ends the key in each line; \\t is a tab")
	f.StringArrayVarP(&flags.headers, "header", "H", nil, "header of every record, `name=value`; may be repeated")
	f.Int32VarP(&flags.partition, "partition", "p", -1, "`number` of every record's partition; -1 to choose by key")
	f.StringVarP(&flags.compression, "compression", "z", "none", "`codec`: none, gzip, snappy, lz4 or zstd")
	f.StringVar(&flags.acks, "acks", "all", "`who` acknowledges a record: all, 1 (the leader) or 0 (no one)")
	f.StringVar(&flags.nullValue, "null-value", "", "`text` of a value that stands for null, a tombstone")
	f.BoolVar(&flags.jsonLines, "json-lines", false, "read a JSON object from each line")
	cmd.MarkFlagsMutuallyExclusive("key", "key-separator", "json-lines")
	cmd.MarkFlagsMutuallyExclusive("null-value", "json-lines")
	cli.CompleteValues(cmd, "compression", "none", "gzip", "snappy", "lz4", "zstd")
	cli.CompleteValues(cmd, "acks", "all", "1", "0")
	return cmd
}

func produce(cmd *cobra.Command, flags *produceFlags, topic string) error {
	parse, err := newLineParser(cmd.Flags(), flags)
	if err != nil {
		return err
	}
	opts, err := producerOptions(flags)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	limit := int32(kafkaMaxMessageBytes)
	// The client asks when it first meets the topic, which is after we know.
	client, err := flags.Connect(ctx, append(opts, kgo.ProducerBatchMaxBytesFn(func(string) int32 { return limit }))...)
	if err != nil {
		return err
	}
	defer client.Close()
	limit = maxMessageBytes(ctx, kadm.NewClient(client), topic)
	if in := cmd.InOrStdin(); cli.IsTerminal(in) {
		fmt.Fprintln(cmd.ErrOrStderr(), "reading records from the terminal, one per line; end with Ctrl-D")
	}
	p := &producer{client: client, topic: topic, parse: parse, limit: limit, patience: deliveryTimeout}
	err = p.run(ctx, cmd.InOrStdin())
	if flags.JSON {
		if jsonErr := cli.WriteJSON(cmd.OutOrStdout(), p.summary()); err == nil {
			err = jsonErr
		}
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "produced %s to %s\n", words.Plural(p.produced, "record"), topic)
	}
	return err
}

// producerOptions turns the flags into a client's options.
func producerOptions(flags *produceFlags) ([]kgo.Opt, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[flags.compression]
	if !ok {
		return nil, cli.Usagef("--compression is none, gzip, snappy, lz4 or zstd, not %q", flags.compression)
	}
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(partitioner{kgo.StickyKeyPartitioner(nil)}),
		kgo.AllowAutoTopicCreation(),
		// Without this the client waits for ever to learn whether a record was
		// written whose answer got lost. We report it as failed instead.
		kgo.AllowIdempotentProduceCancellation(),
	}
	switch flags.acks {
	case "all", "-1":
		return append(opts, kgo.RequiredAcks(kgo.AllISRAcks())), nil
	case "1":
		return append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()), nil
	case "0":
		return append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()), nil
	}
	return nil, cli.Usagef("--acks is all, 1 or 0, not %q", flags.acks)
}

// kafkaMaxMessageBytes is Kafka's default of max.message.bytes.
const kafkaMaxMessageBytes = 1048588

// maxMessageBytes asks for the largest batch that the topic takes, since the
// client's own limit is lower than the broker may allow. A topic that is not
// there yet, and a broker that does not tell, have Kafka's default.
func maxMessageBytes(ctx context.Context, admin *kadm.Client, topic string) int32 {
	settings, err := cli.LoadSettings(ctx, admin, []string{topic}, true)
	if err != nil {
		return kafkaMaxMessageBytes
	}
	for _, s := range settings[topic] {
		if s.Name != "max.message.bytes" || s.Value == nil {
			continue
		}
		if n, err := strconv.ParseInt(*s.Value, 10, 32); err == nil {
			return int32(min(max(n, 512), 64<<20)) // The client takes no less, and requests no more.
		}
	}
	return kafkaMaxMessageBytes
}
