package streams_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// versionedModel is a versioned table with one key, as all the versions of its value
// that came in time.
type versionedModel struct {
	versions map[int64]string // by time; empty: none from then on
	history  int64
	observed int64
}

func (m *versionedModel) put(v string, at int64) {
	if at >= m.observed-m.history {
		m.observed = max(m.observed, at)
		m.versions[at] = v
	}
}

// asOf is the value at a time, if the table still knows it.
func (m *versionedModel) asOf(at int64) string {
	var times []int64
	for t := range m.versions {
		times = append(times, t)
	}
	slices.Sort(times)
	i, exact := slices.BinarySearch(times, at)
	if !exact {
		i--
	}
	if i < 0 || i < len(times)-1 && at < m.observed-m.history {
		return ""
	}
	return m.versions[times[i]]
}

// TestVersionedTableJoin: a record of a stream is joined with what a versioned table had
// at the record's time: with a grace period once that has passed, in the order of the
// records' times, and where it comes later at once.
func TestVersionedTableJoin(t *testing.T) {
	type waiting struct {
		value string
		time  int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		left := rapid.Bool().Draw(rt, "left")
		grace := rapid.SampledFrom([]int64{-1, 0, 5, 20}).Draw(rt, "grace") // -1: none
		history := rapid.Int64Range(max(1, grace), 40).Draw(rt, "history")
		b := NewBuilder()
		table := Table(b, "t", Materialized[string, string]{Name: "vt", HistoryRetention: time.Duration(history) * time.Millisecond}).Filter(notX)
		var o Joined[string, string, string]
		if grace >= 0 {
			o.Grace = new(time.Duration(grace) * time.Millisecond)
		}
		join := JoinTable[string, string, string, string]
		if left {
			join = LeftJoinTable
		}
		join(Stream[string, string](b, "s"), table, joinValues, o).To("out")
		d := streamstest.NewDriver(rt, b.Build())

		m := &versionedModel{versions: make(map[int64]string), history: history, observed: -1}
		var buffer []waiting
		latest := int64(-1) // of the stream's records that waited
		now := int64(50)
		for i := range rapid.IntRange(1, 40).Draw(rt, "records") {
			now += rapid.SampledFrom([]int64{0, 1, 1, 3, 30}).Draw(rt, "later")
			at := now - rapid.SampledFrom([]int64{0, 0, 1, 4, 10, 50}).Draw(rt, "late")
			value := rapid.SampledFrom([]string{"", "a", "b", "x"}).Draw(rt, "value")
			topic := rapid.SampledFrom([]string{"s", "t"}).Draw(rt, "topic")
			rec := &kgo.Record{Topic: topic, Key: []byte("k"), Timestamp: time.UnixMilli(at)}
			if value == "a" || value == "b" {
				value += strconv.Itoa(i)
			}
			if value != "" {
				rec.Value = []byte(value)
			}
			var due []waiting
			switch {
			case topic == "t":
				m.put(value, at)
			case value == "":
			case grace < 0 || at < latest-grace:
				due = []waiting{{value, at}}
			default:
				latest = max(latest, at)
				buffer = append(buffer, waiting{value, at})
				slices.SortStableFunc(buffer, func(a, b waiting) int { return int(a.time - b.time) })
				for len(buffer) > 0 && buffer[0].time <= latest-grace {
					due, buffer = append(due, buffer[0]), buffer[1:]
				}
			}
			if err := d.TryPipe(rec); err != nil {
				rt.Fatal(err)
			}
			var got, want []string
			for _, out := range d.Sent() {
				if out.Topic == "out" {
					got = append(got, string(out.Value))
				}
			}
			for _, w := range due {
				found := m.asOf(w.time)
				if found == "x" { // filtered
					found = ""
				}
				if left || found != "" {
					want = append(want, joinValues(w.value, found))
				}
			}
			if !slices.Equal(got, want) {
				rt.Errorf("%s %q at %d is followed by %q, want %q", topic, value, at, got, want)
			}
		}
	})
}

// TestGraceJoinErrors: a grace period that the table can't serve is an error.
func TestGraceJoinErrors(t *testing.T) {
	versions := func(name string) Materialized[string, string] {
		return Materialized[string, string]{Name: name, HistoryRetention: 10 * time.Millisecond}
	}
	for says, c := range map[string]struct {
		table func(*Builder) *KTable[string, string]
		grace time.Duration
	}{
		`"j": only a versioned table`: {func(b *Builder) *KTable[string, string] { return Table[string, string](b, "t") }, time.Millisecond},
		`"j": only a versioned`: {func(b *Builder) *KTable[string, string] {
			return TableJoin(Table(b, "t", versions("a")), Table(b, "u", versions("b")), concat)
		}, time.Millisecond},
		`history of 10ms only`:          {func(b *Builder) *KTable[string, string] { return Table(b, "t", versions("a")).Filter(all) }, 11 * time.Millisecond},
		`grace period -1ms is negative`: {func(b *Builder) *KTable[string, string] { return Table(b, "t", versions("a")) }, -time.Millisecond},
	} {
		b := NewBuilder()
		JoinTable(Stream[string, string](b, "s"), c.table(b), concat, Joined[string, string, string]{Name: "j", Grace: &c.grace}).To("o")
		if _, err := b.Build().Compile(Config{ApplicationID: "app"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}
