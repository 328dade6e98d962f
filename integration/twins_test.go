package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// twin is a program that is written in Go and, in testdata/java/twins, in Java.
type twin struct {
	inputs, outputs map[string]int32 // topics with their numbers of partitions
	counts          []string         // the outputs whose values are numbers
	tables          []string         // the outputs of which the last value of a key counts
	topology        func(prefix string) *streams.Topology

	// first is what is there before anything runs.
	first []event

	// batch is a piece of input, each later than the one before, and ending a piece
	// that is so late that all windows close. It can be repeated.
	batch  func(n int, r *rand.Rand) []event
	ending func(n int) []event

	// want is what each output has, as "key=value" in any order. Until the windows
	// have closed, those outputs are left out that wait for it.
	want func(in []event, ended bool) map[string][]string

	// early says of a line that it may, and need not, be there before the windows have
	// closed; nil: of none.
	early func(topic, line string) bool
}

// event is a record of an input.
type event struct {
	topic, key, value string
	at                time.Duration // after the start
	deleted           bool          // it has no value
}

// twins are such programs. Merged topics have equal numbers of partitions: under the
// streams protocol Java doesn't process the partitions that one has more than another.
var twins = map[string]twin{
	"broad": {
		inputs: map[string]int32{
			"clicks": 2, "taps": 2, "left": 2, "right": 2, "users": 2, "cities": 2, "orders": 2, "products": 3, "debits": 2, "credits": 2,
		},
		outputs:  map[string]int32{"all": 1, "closed": 1, "pages": 2, "joined": 1, "lives": 2, "priced": 2, "balances": 1},
		counts:   []string{"closed", "pages", "balances"},
		tables:   []string{"lives", "priced", "balances"},
		topology: broadTopology,
		batch:    broadBatch,
		ending:   broadEnding,
		want:     broadWant,
		// A left record that comes when the other side is further than its window is
		// joined to nothing at once, whatever the grace period, here as in Java.
		early: func(topic, line string) bool { return topic == "joined" && strings.HasSuffix(line, "+null") },
	},
	"optimized": {
		inputs:   map[string]int32{"prices": 2, "sales": 3, "trips": 2},
		outputs:  map[string]int32{"sold": 1, "last": 1, "bills": 1, "pairs": 1},
		counts:   []string{"sold"},
		tables:   []string{"last"},
		topology: optimizedTopology,
		first: []event{
			{topic: "prices", key: "p0", value: "10"}, {topic: "prices", key: "p1", value: "11"}, {topic: "prices", key: "p2", value: "12"},
		},
		batch:  optimizedBatch,
		ending: func(int) []event { return nil },
		want:   optimizedWant,
	},
}

// nullable is a string that can be null, as Java's are.
var nullable = serde.Pointer(serde.String)

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// start is when the events begin: not so long ago that their topics would have let go
// of them when the last one has come.
var start = time.Now().Add(-4 * time.Hour).Truncate(windowSize)

const (
	windowSize = 10 * time.Second
	joinWithin = 5 * time.Second
	step       = 500 * time.Millisecond // between records
	ended      = 3 * time.Hour          // from then on all windows have closed
)

func broadTopology(prefix string) *streams.Topology {
	b := streams.NewBuilder()
	clicks := streams.Stream[string, string](b, prefix+"clicks")
	streams.MapValues(clicks.Merge(streams.Stream[string, string](b, prefix+"taps")), func(v string) string { return v + "!" }).To(prefix + "all")
	perWindow := streams.WindowedBy(clicks.GroupByKey(), streams.TimeWindows{Size: windowSize}).
		Count(streams.Materialized[string, int64]{Name: "per-window"})
	streams.ToStreamWithKey(streams.SuppressUntilWindowCloses(perWindow, streams.Suppressed{Name: "closing"}),
		func(w serde.Windowed[string], _ int64) string { return fmt.Sprintf("%s@%d", w.Key, w.Start) },
	).To(prefix + "closed")
	streams.SelectKey(clicks, func(_, page string) string { return page }).
		Repartition(streams.Repartitioned[string, string]{Name: "by-page", NumberOfPartitions: 3}).
		GroupByKey().Count(streams.Materialized[string, int64]{Name: "per-page"}).ToStream().To(prefix + "pages")

	left := streams.Stream(b, prefix+"left", streams.ConsumedWith(serde.String, nullable))
	right := streams.Stream(b, prefix+"right", streams.ConsumedWith(serde.String, nullable))
	streams.LeftJoin(left, right, func(l, r *string) string { return *l + "+" + orNull(r) },
		streams.TimeDifference(joinWithin).WithGrace(time.Hour), streams.StreamJoined[string, *string, *string]{StoreName: "joining"},
	).To(prefix + "joined")

	users := streams.Table(b, prefix+"users", streams.ConsumedWith(serde.String, nullable), streams.Materialized[string, *string]{Name: "users"})
	cities := streams.Table(b, prefix+"cities", streams.ConsumedWith(serde.String, nullable))
	streams.TableOuterJoin(users, cities, func(u, c *string) string { return orNull(u) + "@" + orNull(c) },
		streams.Materialized[string, string]{Name: "lives"},
	).ToStream().To(prefix + "lives")

	orders := streams.Table[string, string](b, prefix+"orders")
	products := streams.Table(b, prefix+"products", streams.ConsumedWith(serde.String, nullable))
	streams.TableForeignKeyLeftJoin(orders, products, productOf, func(o string, price *string) string { return o + "=" + orNull(price) },
		streams.TableJoined[string, string, string]{Name: "pricing", Materialized: streams.Materialized[string, string]{Name: "priced"}},
	).ToStream().To(prefix + "priced")

	debits := streams.Stream[string, string](b, prefix+"debits").GroupByKey()
	both := streams.Cogroup(debits, func(_, v string, sum int64) int64 { return sum - number(v) })
	both = streams.AddCogroup(both, streams.Stream[string, string](b, prefix+"credits").GroupByKey(),
		func(_, v string, sum int64) int64 { return sum + number(v) })
	both.Aggregate(func() int64 { return 0 }, streams.Materialized[string, int64]{Name: "balances"}).ToStream().To(prefix + "balances")
	return b.Build()
}

func productOf(order string) (string, bool) {
	product, _, ok := strings.Cut(order, "|")
	return product, ok
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err) // what the test has made itself
	}
	return n
}

const batchSize = 100

func broadBatch(n int, r *rand.Rand) (in []event) {
	for i := range batchSize {
		at := time.Duration(n*batchSize+i) * step
		user, page := fmt.Sprint("u", r.IntN(10)), fmt.Sprint("/", r.IntN(5))
		id := fmt.Sprintf("%d-%d", n, i)
		in = append(in,
			event{topic: "clicks", key: user, value: page, at: at},
			event{topic: "taps", key: user, value: page, at: at},
			event{topic: "left", key: fmt.Sprint("k", r.IntN(20)), value: "l" + id, at: at},
			event{topic: "right", key: fmt.Sprint("k", r.IntN(20)), value: "r" + id, at: at},
			event{topic: "users", key: user, value: "name" + id, at: at, deleted: r.IntN(4) == 0},
			event{topic: "cities", key: fmt.Sprint("u", r.IntN(10)), value: "city" + id, at: at, deleted: r.IntN(4) == 0},
			event{topic: "orders", key: "o" + id, value: fmt.Sprintf("p%d|%s", r.IntN(8), id), at: at},
			event{topic: "products", key: fmt.Sprint("p", r.IntN(6)), value: "price" + id, at: at},
			event{topic: "debits", key: user, value: fmt.Sprint(r.IntN(100)), at: at},
			event{topic: "credits", key: fmt.Sprint("u", r.IntN(10)), value: fmt.Sprint(r.IntN(100)), at: at},
		)
	}
	return in
}

// broadEnding has a record for each key whose time is in a window that never closes.
func broadEnding(n int) (in []event) {
	at := ended + time.Duration(n)*step
	for i := range 20 {
		if n == 0 && i < 10 {
			in = append(in, event{topic: "clicks", key: fmt.Sprint("u", i), value: "/end", at: at})
		}
		in = append(in, event{topic: "left", key: fmt.Sprint("k", i), value: fmt.Sprint("end", n), at: at})
	}
	return in
}

func broadWant(in []event, over bool) map[string][]string {
	perPage, balances := make(map[string]int64), make(map[string]int64)
	closed, prices := make(map[string]int64), make(map[string]string)
	lives, priced := make(map[string][2]*string), make(map[string]string)
	var left, right []event
	want := make(map[string][]string)
	add := func(topic, key string, value any) {
		want[topic] = append(want[topic], fmt.Sprintf("%s=%v", key, value))
	}
	for _, e := range in {
		switch e.topic {
		case "clicks":
			perPage[e.value]++
			add("pages", e.value, perPage[e.value])
			if e.at < ended {
				closed[fmt.Sprintf("%s@%d", e.key, start.Add(e.at).Truncate(windowSize).UnixMilli())]++
			}
			add("all", e.key, e.value+"!")
		case "taps":
			add("all", e.key, e.value+"!")
		case "left":
			left = append(left, e)
		case "right":
			right = append(right, e)
		case "users", "cities":
			both := lives[e.key]
			value := &e.value
			if e.deleted {
				value = nil
			}
			both[strings.Index("uc", e.topic[:1])] = value
			lives[e.key] = both
		case "orders":
			priced[e.key] = e.value
		case "products":
			prices[e.key] = e.value
		case "debits":
			balances[e.key] -= number(e.value)
		case "credits":
			balances[e.key] += number(e.value)
		}
	}
	for user, both := range lives {
		if both[0] != nil || both[1] != nil {
			add("lives", user, orNull(both[0])+"@"+orNull(both[1]))
		}
	}
	for id, order := range priced {
		product, _ := productOf(order)
		price, ok := prices[product]
		if !ok {
			price = "null"
		}
		add("priced", id, order+"="+price)
	}
	for user, balance := range balances {
		add("balances", user, balance)
	}
	for _, l := range left {
		alone := l.at < ended
		for _, r := range right {
			if l.key == r.key && (l.at-r.at).Abs() <= joinWithin {
				add("joined", l.key, l.value+"+"+r.value)
				alone = false
			}
		}
		if alone && over {
			add("joined", l.key, l.value+"+null")
		}
	}
	if over {
		for window, n := range closed {
			add("closed", window, n)
		}
	}
	return want
}

func optimizedTopology(prefix string) *streams.Topology {
	b := streams.NewBuilder()
	prices := streams.Table(b, prefix+"prices", streams.ConsumedWith(serde.String, nullable), streams.Materialized[string, *string]{Name: "prices"})
	sales := streams.Map(streams.Stream[string, string](b, prefix+"sales"), func(customer, product string) (string, string) { return product, customer })
	sales.GroupByKey(streams.Grouped[string, string]{Name: "by-product"}).
		Count(streams.Materialized[string, int64]{Name: "sold"}).ToStream().To(prefix + "sold")
	sales.GroupByKey(streams.Grouped[string, string]{Name: "again"}).
		Reduce(func(a, c string) string { return max(a, c) }, streams.Materialized[string, string]{Name: "last"}).ToStream().To(prefix + "last")
	streams.LeftJoinTable(sales, prices, func(customer string, price *string) string { return customer + ":" + orNull(price) }).To(prefix + "bills")

	trips := streams.Stream[string, string](b, prefix+"trips")
	streams.Join(trips, trips, func(l, r string) string { return l + "+" + r },
		streams.TimeDifference(joinWithin).WithGrace(time.Hour), streams.StreamJoined[string, string, string]{StoreName: "pairing"},
	).To(prefix + "pairs")
	return b.Build(streams.TopologyConfig{Optimization: streams.OptimizeAll})
}

func optimizedBatch(n int, r *rand.Rand) (in []event) {
	for i := range batchSize {
		at := time.Duration(n*batchSize+i+1) * step
		in = append(in,
			event{topic: "sales", key: fmt.Sprintf("c%d-%d", n, i), value: fmt.Sprint("p", r.IntN(5)), at: at},
			event{topic: "trips", key: fmt.Sprint("t", r.IntN(10)), value: fmt.Sprintf("%d-%d", n, i), at: at},
		)
	}
	return in
}

func optimizedWant(in []event, _ bool) map[string][]string {
	sold, last, prices := make(map[string]int64), make(map[string]string), make(map[string]string)
	want := make(map[string][]string)
	add := func(topic, key string, value any) {
		want[topic] = append(want[topic], fmt.Sprintf("%s=%v", key, value))
	}
	for i, e := range in {
		switch e.topic {
		case "prices":
			prices[e.key] = e.value
		case "sales":
			product, customer := e.value, e.key
			sold[product]++
			last[product] = max(last[product], customer)
			add("sold", product, sold[product])
			price, ok := prices[product]
			if !ok {
				price = "null"
			}
			add("bills", product, customer+":"+price)
		case "trips":
			for _, o := range in[:i+1] {
				if o.topic == e.topic && o.key == e.key && e.at-o.at <= joinWithin {
					add("pairs", e.key, o.value+"+"+e.value)
					if o != e {
						add("pairs", e.key, e.value+"+"+o.value)
					}
				}
			}
		}
	}
	for product, customer := range last {
		add("last", product, customer)
	}
	return want
}

// sorted returns the lines of each output in order.
func sorted(lines map[string][]string) map[string][]string {
	for _, l := range lines {
		slices.Sort(l)
	}
	return lines
}

// without returns the lines of a that b doesn't have, both in order.
func without(a, b []string) (lines []string) {
	for _, line := range a {
		if at, ok := slices.BinarySearch(b, line); ok {
			b = slices.Delete(slices.Clone(b), at, at+1)
		} else {
			lines = append(lines, line)
		}
	}
	return lines
}

// lines are the records of an output, in order.
func (p twin) lines(topic string, records []*kgo.Record) (lines []string, err error) {
	last := make(map[string]string)
	for _, r := range records {
		value := string(r.Value)
		if r.Value != nil && slices.Contains(p.counts, topic) {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil {
				return nil, err
			}
			value = strconv.FormatInt(n, 10)
		}
		key := string(r.Key)
		if !slices.Contains(p.tables, topic) {
			lines = append(lines, key+"="+value)
		} else if last[key] = value; r.Value == nil {
			delete(last, key)
		}
	}
	for key, value := range last {
		lines = append(lines, key+"="+value)
	}
	slices.Sort(lines)
	return lines, nil
}
