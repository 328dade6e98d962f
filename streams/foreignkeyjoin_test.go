package streams_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// TestForeignKeyJoinIsView: whatever comes in, the last output of each key is what one
// computes from the tables as they are at the end. That of a left join is however far
// changes of the tables, subscriptions and responses overtake each other; as in Java,
// an inner join doesn't promise it.
func TestForeignKeyJoinIsView(t *testing.T) {
	// A value is a foreign key and a number; "-" is none.
	foreign := func(v string) (string, bool) { return v[:1], v[0] != '-' }
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprintf("left %t", left), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				b := NewBuilder()
				Process(Stream[string, string](b, "batches"), func() Processor[string, string, string, string] { return &unpacking{} }).
					ToDynamic(func(r Record[string, string], _ RecordContext) string { return r.Key[:1] })
				key := func(k, _ string) string { return k[1:] }
				l := SelectKey(Stream[string, string](b, "l"), key).ToTable()
				r := TableMapValues(SelectKey(Stream[string, string](b, "r"), key).ToTable(), strings.ToUpper)
				join := TableForeignKeyJoin[string, string, string, string, string]
				if left {
					join = TableForeignKeyLeftJoin
				}
				var o TableJoined[string, string, string]
				if rapid.Bool().Draw(rt, "store") {
					o.Materialized.Name = "kept"
				}
				joined := join(l, r, foreign, joinValues, o)
				joined.ToStream().To("joined")
				TableGroupBy(joined, func(k, v string) (string, string) { return v, k }).Count().ToStream().To("counts")
				d := streamstest.NewDriver(rt, b.Build())

				tables := map[string]map[string]string{"l": {}, "r": {}}
				outputs := map[string]map[string]string{"joined": {}, "counts": {}}
				most := 1 // records at once
				if left {
					most = 4
				}
				for range rapid.IntRange(1, 20).Draw(rt, "batches") {
					var batch []string
					for range rapid.IntRange(1, most).Draw(rt, "records") {
						topic := rapid.SampledFrom([]string{"l", "r"}).Draw(rt, "topic")
						key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
						value := rapid.SampledFrom([]string{"", "ax", "ay", "bx", "by", "cx", "cy", "-x"}).Draw(rt, "value") // "": null
						batch = append(batch, fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "time"), topic, key, value))
						delete(tables[topic], key)
						if value != "" {
							tables[topic][key] = value
						}
					}
					fold(rt, d, &kgo.Record{Topic: "batches", Timestamp: time.UnixMilli(0), Value: []byte(strings.Join(batch, " "))}, outputs)
				}
				want, counts := make(map[string]string), make(map[string]int)
				for key, value := range tables["l"] {
					var other string
					if k, ok := foreign(value); ok {
						other = strings.ToUpper(tables["r"][k])
					}
					if left || other != "" {
						want[key] = joinValues(value, other)
						counts[want[key]]++
					}
				}
				if !maps.Equal(outputs["joined"], want) {
					rt.Errorf("the join has %q, want %q", outputs["joined"], want)
				}
				for value, count := range outputs["counts"] {
					if got := int(count[7]); got != counts[value] {
						rt.Errorf("%q is counted %d times, want %d", value, got, counts[value])
					}
				}
			})
		})
	}
}

// TestForeignKeyJoinPartitioners: subscriptions go where the right table's topic has
// the key, responses to the left table's partition.
func TestForeignKeyJoinPartitioners(t *testing.T) {
	b := NewBuilder()
	chosen := make(map[string]int)
	note := func(topic string, r Record[string, struct{}], partitions int) int32 {
		chosen[fmt.Sprintf("%s %s %t %d", topic, r.Key, r.ValueNull, partitions)]++
		return 0
	}
	TableForeignKeyJoin(Table[string, string](b, "l"), Table[string, string](b, "r"), itself, concat, TableJoined[string, string, string]{
		Name: "fk", Partitioner: note, OtherPartitioner: note,
	}).ToStream().To("out")
	if _, err := run(t, b.Build(), record("r", []byte("right"), []byte("1")), record("l", []byte("left"), []byte("right"))); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"app-fk-subscription-registration-topic right true 1": 1, "app-fk-subscription-response-topic left true 1": 1}
	if !maps.Equal(chosen, want) {
		t.Errorf("asked for %v, want %v", chosen, want)
	}
}

// TestForeignKeyJoinErrors: what can't work is an error that names the operator.
func TestForeignKeyJoinErrors(t *testing.T) {
	type custom struct{ A string }
	for says, program := range map[string]func(*Builder){
		"TableForeignKeyJoin: the tables need serdes": func(b *Builder) {
			l := TableMapValues(Table[string, string](b, "l"), func(string) custom { return custom{} })
			TableForeignKeyJoin(l, Table[string, string](b, "r"), func(c custom) (string, bool) { return c.A, true },
				func(_ custom, r string) string { return r })
		},
		`TableForeignKeyLeftJoin: name the join "n" with Name of TableJoined`: func(b *Builder) {
			t := Table[string, string](b, "t")
			TableForeignKeyLeftJoin(t, t, itself, concat, TableJoined[string, string, string]{
				Materialized: Materialized[string, string]{Processor: "n"},
			})
		},
	} {
		b := NewBuilder()
		program(b)
		if _, err := b.Build().Compile(Config{ApplicationID: "app"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}

// unpacking sends on the records of a batch: each is a time of one digit, a key and a
// value that is null if empty.
type unpacking struct{ passOn[string, string] }

func (p *unpacking) Process(r Record[string, string]) error {
	for _, rec := range strings.Fields(r.Value) {
		rec := Record[string, string]{Timestamp: int64(rec[0] - '0'), Key: rec[1:3], Value: rec[3:], ValueNull: len(rec) == 3}
		if err := p.ctx.Forward(rec); err != nil {
			return err
		}
	}
	return nil
}
