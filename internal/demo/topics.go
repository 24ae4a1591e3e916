package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The topics.
const (
	orders    = "orders"
	payments  = "payments"
	shipments = "shipments"
	clicks    = "clicks"
	stock     = "stock"
	ledger    = "ledger-entries"
)

// keptBytes is retention.bytes of each partition: all 25 of them take 50 MB at most.
var keptBytes = "2097152"

// topic is a topic and what comes into it.
type topic struct {
	name       string
	partitions int32
	perSecond  int // By the producers that take no part in transactions.
	backlog    int // What is there before anybody reads.
	record     func(*rand.Rand) *kgo.Record
}

var topics = []topic{
	{orders, 6, 20, 0, order},
	{payments, 4, 8, 0, payment},
	{shipments, 4, 6, 0, shipment},
	{clicks, 6, 20, 30_000, click},
	{stock, 3, 4, 0, stockLevel},
	{ledger, 2, 2, 0, entry},
}

// partitionsOf returns how many partitions a topic has.
func partitionsOf(name string) int32 {
	for i := range topics {
		if topics[i].name == name {
			return topics[i].partitions
		}
	}
	return 0
}

var (
	products   = []string{"kettle", "teapot", "lamp", "desk", "bicycle", "umbrella", "notebook", "chess set", "raincoat", "toaster"}
	carriers   = []string{"DHL", "UPS", "PostNL", "GLS"}
	cities     = []string{"Lisbon", "Utrecht", "Graz", "Turku", "Bergen", "Kraków", "Lyon", "Cork"}
	pages      = []string{"/", "/search", "/cart", "/checkout", "/product/kettle", "/product/lamp", "/product/desk", "/account"}
	methods    = []string{"card", "card", "card", "invoice", "transfer"}
	warehouses = []string{"north", "south", "harbour"}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// fields are the fields of a record. Maps are printed in order of their keys, so a seed
// always gives the same records, times aside.
type fields = map[string]any

// rec makes a record of JSON.
func rec(topic, key string, value fields) *kgo.Record {
	value["at"] = time.Now().UTC().Format(time.RFC3339Nano)
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // Of text and numbers only.
	}
	return &kgo.Record{Topic: topic, Key: []byte(key), Value: text}
}

func orderID(r *rand.Rand) string  { return fmt.Sprintf("o-%05d", r.IntN(100_000)) }
func customer(r *rand.Rand) string { return fmt.Sprintf("c-%04d", r.IntN(5_000)) }

// cents is an amount of money.
func cents(r *rand.Rand) float64 { return float64(199+r.IntN(40_000)) / 100 }

func order(r *rand.Rand) *kgo.Record {
	id := orderID(r)
	return rec(orders, id, fields{"orderId": id, "customer": customer(r), "product": pick(r, products), "quantity": 1 + r.IntN(4), "total": cents(r), "currency": "EUR"})
}

func payment(r *rand.Rand) *kgo.Record {
	id := orderID(r)
	return rec(payments, id, fields{"orderId": id, "method": pick(r, methods), "amount": cents(r), "currency": "EUR", "approved": r.IntN(20) > 0})
}

func shipment(r *rand.Rand) *kgo.Record {
	id := orderID(r)
	return rec(shipments, id, fields{"orderId": id, "carrier": pick(r, carriers), "to": pick(r, cities), "parcels": 1 + r.IntN(3)})
}

func click(r *rand.Rand) *kgo.Record {
	who := customer(r)
	return rec(clicks, who, fields{"customer": who, "page": pick(r, pages), "millis": 20 + r.IntN(900)})
}

func stockLevel(r *rand.Rand) *kgo.Record {
	what := pick(r, products)
	return rec(stock, what, fields{"product": what, "warehouse": pick(r, warehouses), "left": r.IntN(500)})
}

func entry(r *rand.Rand) *kgo.Record {
	id := orderID(r)
	return rec(ledger, id, fields{"orderId": id, "account": 1000 + r.IntN(20)*10, "amount": cents(r)})
}

// producesEach is how often records are made.
const producesEach = 500 * time.Millisecond

// goProducers starts a producer for each topic.
func (d *Demo) goProducers(ctx context.Context) {
	for i := range topics {
		d.running.Go(func() { d.produce(ctx, &topics[i], uint64(i)+1) })
	}
}

// produce writes to a topic, a bit more at one time than at another.
func (d *Demo) produce(ctx context.Context, t *topic, source uint64) {
	client, err := d.client(t.name + "-writer")
	if err != nil {
		d.logger.Error("the demo has no producer", "topic", t.name, "error", err)
		return
	}
	defer client.Close()
	random := d.random(source)
	each := float64(t.perSecond) * producesEach.Seconds()
	for owed := 0.0; wait(ctx, producesEach); {
		for owed += each * (0.5 + random.Float64()); owed >= 1; owed-- {
			client.Produce(ctx, t.record(random), nil)
		}
	}
}
