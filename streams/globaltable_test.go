package streams_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// TestGlobalTableJoin: each record of a stream is joined with what the global table has at
// that moment, whatever the times of either, for the key that is selected for it.
func TestGlobalTableJoin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := NewBuilder()
		table := GlobalTable(b, "t", Materialized[string, string]{Name: "g"})
		selected := func(k *string, v string) (string, bool) { return v[:1], k == nil || *k != "none" }
		s := Stream(b, "s", ConsumedWith(text, serde.String))
		JoinGlobalTable(s, table, selected, joinValues).To("inner")
		LeftJoinGlobalTableWithKeys(s, table, selected, func(k *string, mapped, v, global string) string {
			return strings.Join([]string{orNull(k), mapped, v, global}, ",")
		}).To("left", ProducedWith(text, serde.String))
		d := streamstest.NewDriver(rt, b.Build())

		now := make(map[string]string)
		for range rapid.IntRange(1, 30).Draw(rt, "records") {
			topic := rapid.SampledFrom([]string{"s", "t"}).Draw(rt, "topic")
			key := rapid.SampledFrom([]string{"", "a", "b", "none"}).Draw(rt, "key") // empty: null
			value := rapid.SampledFrom([]string{"", "a", "b", "c", "ax"}).Draw(rt, "value")
			rec := &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(rapid.Int64Range(0, 9).Draw(rt, "time"))}
			if key != "" {
				rec.Key = []byte(key)
			}
			if value != "" {
				rec.Value = []byte(value)
			}
			if err := d.TryPipe(rec); err != nil {
				rt.Fatal(err)
			}
			var got, want []string
			for _, out := range d.Sent() {
				got = append(got, out.Topic+" "+string(out.Value))
				if out.Timestamp != rec.Timestamp {
					rt.Errorf("a record of %v is joined at %v", rec.Timestamp, out.Timestamp)
				}
			}
			switch {
			case topic == "t" && key != "":
				delete(now, key)
				if value != "" {
					now[key] = value
				}
			case topic == "s" && value != "":
				mapped, found := value[:1], now[value[:1]]
				if key == "none" {
					mapped, found = "", ""
				}
				if found != "" {
					want = append(want, "inner "+value+"+"+found)
				}
				if key == "" {
					key = "null"
				}
				want = append(want, "left "+strings.Join([]string{key, mapped, value, found}, ","))
			}
			if !slices.Equal(got, want) {
				rt.Errorf("%s %q: %q sends %q, want %q", topic, key, value, got, want)
			}
		}
	})
}

// TestGlobalErrors: what can't be global is an error that says what.
func TestGlobalErrors(t *testing.T) {
	store := func(name string) StateStore { return NewKeyValueStore[string, *string](name, nil, text) }
	global := func(t *Topology, name string) {
		AddGlobalStore(t, store(name), "source "+name, nullableText(), "topic "+name, "processor "+name, newFilling(name, same))
	}
	for says, program := range map[string]func(*Topology){
		`processor "p": state store "g" is global`: func(t *Topology) {
			global(t, "g")
			AddSource(t, "s", Consumed[string, string]{}, "in")
			AddProcessor(t, "p", newUpper, "s")
			t.ConnectProcessorAndStateStores("p", "g")
		},
		`its parent "processor g" fills a global store`: func(t *Topology) {
			global(t, "g")
			AddProcessor(t, "p", newFilling("g", same), "processor g")
		},
		`state store "g": there is one of that name already`: func(t *Topology) {
			global(t, "g")
			AddGlobalStore(t, store("g"), "source", nullableText(), "topic", "processor", newFilling("g", same))
		},
		`topic "topic g" is read by source "source g" already`: func(t *Topology) {
			global(t, "g")
			AddSource(t, "s", Consumed[string, string]{}, "topic g")
		},
	} {
		topology := NewTopology()
		program(topology)
		if _, err := topology.Compile(Config{ApplicationID: "app"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
	for says, program := range map[string]func(*Builder){
		`GlobalTable: the table of topic "t" can't be versioned`: func(b *Builder) {
			GlobalTable(b, "t", Materialized[string, string]{HistoryRetention: time.Second})
		},
		`GlobalTable: name the table of topic "t" with Consumed`: func(b *Builder) {
			GlobalTable(b, "t", Materialized[string, string]{Processor: "p"})
		},
		`JoinGlobalTable: the stream and the table belong to different Builders`: func(b *Builder) {
			JoinGlobalTable(Stream[string, string](b, "s"), GlobalTable[string, string](NewBuilder(), "t"),
				func(k, _ string) (string, bool) { return k, true }, concat)
		},
	} {
		b := NewBuilder()
		program(b)
		if _, err := b.Build().Compile(Config{ApplicationID: "app"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}

// TestGlobalStoreIsReadOnly: other processors than its own can't write to a global store.
func TestGlobalStoreIsReadOnly(t *testing.T) {
	topology := NewTopology()
	AddGlobalStore(topology, NewKeyValueStore[string, *string]("g", nil, text), "gs", nullableText(), "gt", "gp", newFilling("g", same))
	AddSource(topology, "s", nullableText(), "in")
	AddProcessor(topology, "p", newFilling("g", same), "s")
	d := streamstest.NewDriver(t, topology)
	if err := d.TryPipe(record("gt", []byte("k"), []byte("v"))); err != nil {
		t.Fatal(err)
	}
	if err := d.TryPipe(record("in", []byte("k"), []byte("v"))); err == nil {
		t.Error("a processor has written to a global store")
	}
}
