package streams_test

import (
	"fmt"
	"maps"
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

// joinedRecord is a record of one side of a join.
type joinedRecord struct {
	left  bool
	key   string // empty: null
	value string // unique; empty: null
	time  int64
}

// modelJoin is a join of streams as one would write it down, over a list of records.
type modelJoin struct {
	before, after, grace int64
	seen                 []joinedRecord // with key and value, in their order
	time                 int64          // the highest yet
}

// matches are the records of the other side that the next record finds, in the order of
// time: those that are not too far apart, unless their store has forgotten them.
func (m *modelJoin) matches(r joinedRecord) (found []joinedRecord) {
	newest := int64(-1)
	for _, other := range m.seen {
		if other.left != r.left {
			newest = max(newest, other.time)
		}
	}
	before, after := m.before, m.after
	if !r.left {
		before, after = after, before
	}
	// What comes too late for its own store is never found.
	own := make(map[bool]int64)
	for _, other := range m.seen {
		late := other.time <= own[other.left]-m.retention()
		own[other.left] = max(own[other.left], other.time)
		if !late && other.left != r.left && other.key == r.key && other.time > newest-m.retention() &&
			other.time >= r.time-before && other.time <= r.time+after {
			found = append(found, other)
		}
	}
	slices.SortStableFunc(found, func(a, b joinedRecord) int { return int(a.time - b.time) })
	return found
}

func (m *modelJoin) retention() int64 { return m.before + m.after + m.grace }

// closed says whether no record of the other side can come for r any more.
func (m *modelJoin) closed(r joinedRecord) bool {
	if r.left {
		return r.time+m.after+m.grace < m.time
	}
	return r.time+m.before+m.grace < m.time
}

func joined(r, other joinedRecord) string {
	if !r.left {
		r, other = other, r
	}
	return r.value + "+" + other.value
}

// TestStreamJoins: each two records of the streams that are near enough in time are
// joined when the second one comes in, unless the first one was forgotten by then. Of
// left and outer joins, each record that finds no other is sent alone in the end, once,
// and not before its window has closed; and none that has found one.
func TestStreamJoins(t *testing.T) {
	for name, c := range map[string]struct {
		join                  func(l, r *KStream[string, string], f func(l, r string) string, w JoinWindows, o ...StreamJoined[string, string, string]) *KStream[string, string]
		leftAlone, rightAlone bool
	}{
		"inner": {Join[string, string, string, string], false, false},
		"left":  {LeftJoin[string, string, string, string], true, false},
		"outer": {OuterJoin[string, string, string, string], true, true},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				m := &modelJoin{
					before: rapid.Int64Range(-2, 8).Draw(rt, "before"), after: rapid.Int64Range(2, 8).Draw(rt, "after"),
					grace: rapid.SampledFrom([]int64{0, 1, 15}).Draw(rt, "grace"), time: -1,
				}
				b := NewBuilder()
				windows := millisWindows(time.Duration(m.before), time.Duration(m.after), time.Duration(m.grace))
				storeType := rapid.SampledFrom([]StoreType{Persistent, InMemory}).Draw(rt, "store type")
				c.join(Stream[string, string](b, "l"), Stream[string, string](b, "r"), joinValues, windows,
					StreamJoined[string, string, string]{StoreType: storeType}).To("out", ProducedWith(serde.String, serde.String))
				d := streamstest.NewDriver(rt, b.Build())

				open := make(map[joinedRecord]bool) // without a match
				now := int64(20)
				pipe := func(r joinedRecord) {
					mayBeAlone := r.left && c.leftAlone || !r.left && c.rightAlone
					m.time = max(m.time, r.time)
					var want []string
					switch {
					case r.value == "" || r.key == "" && !mayBeAlone:
					case r.key == "":
						want = append(want, joined(r, joinedRecord{}))
					default:
						found := m.matches(r)
						for _, other := range found {
							want = append(want, joined(r, other))
							delete(open, other)
						}
						m.seen = append(m.seen, r)
						open[r] = mayBeAlone && len(found) == 0
					}
					rec := &kgo.Record{Topic: map[bool]string{true: "l", false: "r"}[r.left], Timestamp: time.UnixMilli(r.time)}
					if r.key != "" {
						rec.Key = []byte(r.key)
					}
					if r.value != "" {
						rec.Value = []byte(r.value)
					}
					if err := d.TryPipe(rec); err != nil {
						rt.Fatal(err)
					}
					var got []string
					for _, out := range d.Sent() {
						if out.Topic != "out" {
							continue
						}
						if l, r, _ := strings.Cut(string(out.Value), "+"); (l == "" || r == "") && out.Key != nil {
							alone := joinedRecord{left: r == "", key: string(out.Key), value: l + r, time: out.Timestamp.UnixMilli()}
							if !open[alone] || !m.closed(alone) && !lateAlone(m, alone) {
								rt.Errorf("%+v is sent alone at %d", alone, m.time)
							}
							delete(open, alone)
							continue
						}
						got = append(got, string(out.Value))
					}
					if !slices.Equal(got, want) {
						rt.Errorf("%+v is joined to %q, want %q", r, got, want)
					}
				}
				for i := range rapid.IntRange(1, 40).Draw(rt, "records") {
					now += rapid.SampledFrom([]int64{0, 0, 1, 1, 2, 3, 40}).Draw(rt, "later")
					pipe(joinedRecord{
						left:  rapid.Bool().Draw(rt, "left"),
						key:   rapid.SampledFrom([]string{"a", "a", "a", "b", ""}).Draw(rt, "key"),
						value: rapid.SampledFrom([]string{"", fmt.Sprint(i), fmt.Sprint(i), fmt.Sprint(i), fmt.Sprint(i)}).Draw(rt, "value"),
						time:  max(10, now-rapid.SampledFrom([]int64{0, 0, 0, 1, 5, 10, 30}).Draw(rt, "late")),
					})
				}
				for i := range 3 { // what is left comes when time goes on
					pipe(joinedRecord{left: i%2 == 0, key: "end", value: fmt.Sprint("end", i), time: now + int64(i+1)*1000})
				}
				for r, alone := range open {
					if alone && r.key != "end" {
						rt.Errorf("%+v is not sent alone", r)
					}
				}
			})
		})
	}
}

// lateAlone says whether a record is sent alone at once because those that it could be
// joined with would have been there.
func lateAlone(m *modelJoin, r joinedRecord) bool {
	if r.left {
		return r.time+m.after < m.time
	}
	return r.time+m.before < m.time
}

// TestStreamJoinErrors: a join that can't be is an error that names the operator.
func TestStreamJoinErrors(t *testing.T) {
	type untold struct{}
	for says, join := range map[string]func(b *Builder, l, r *KStream[string, string]){
		"LeftJoin: the windows end before they begin: Before is -3ms and After 2ms": func(_ *Builder, l, r *KStream[string, string]) {
			LeftJoin(l, r, concat, millisWindows(-3, 2, 0))
		},
		"OuterJoin: the grace period is -1ms": func(_ *Builder, l, r *KStream[string, string]) {
			OuterJoin(l, r, concat, TimeDifference(time.Second).WithGrace(-time.Millisecond))
		},
		"Join: no serdes": func(_ *Builder, l, r *KStream[string, string]) {
			Join(l, MapValues(r, func(string) untold { return untold{} }), func(l string, _ untold) string { return l }, window)
		},
		"belong to different Builders": func(b *Builder, l, _ *KStream[string, string]) {
			Join(l, Stream[string, string](NewBuilder(), "r"), concat, window)
		},
	} {
		b := NewBuilder()
		join(b, Stream[string, string](b, "l"), Stream[string, string](b, "r"))
		if _, err := b.Build().Compile(Config{ApplicationID: "app"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}

// TestStreamJoinChangelogs: the settings of the changelogs are those that Java gives them.
func TestStreamJoinChangelogs(t *testing.T) {
	b := NewBuilder()
	l, r := Stream[string, string](b, "l"), Stream[string, string](b, "r")
	own := StreamJoined[string, string, string]{ThisStoreName: "one", OtherStoreName: "two", ChangelogConfig: map[string]string{"segment.bytes": "7"}}
	OuterJoin(l, r, concat, TimeDifference(10*time.Millisecond), own)
	OuterJoin(l, r, concat, TimeDifference(10*time.Millisecond), StreamJoined[string, string, string]{
		StoreName: "n", ChangelogConfig: map[string]string{"segment.bytes": "8", "retention.ms": "5", "cleanup.policy": "compact"},
	})
	Join(l, r, concat, TimeDifference(10*time.Millisecond), StreamJoined[string, string, string]{StoreName: "unlogged", LoggingDisabled: true})
	c := compile(t, b.Build())
	got := make(map[string]string)
	for _, topic := range c.Heartbeat.Subtopologies[0].StateChangelogTopics {
		for _, config := range topic.Configs {
			if config.Key != "message.timestamp.type" {
				got[topic.Topic] += config.Key + "=" + config.Value + " "
			}
		}
	}
	want := map[string]string{
		"app-one-changelog": "cleanup.policy=compact,delete retention.ms=86400020 ",
		"app-two-changelog": "cleanup.policy=compact,delete retention.ms=86400020 ",

		"app-one-outer-shared-join-store-changelog": "cleanup.policy=compact segment.bytes=7 ",
		"app-n-outer-this-join-store-changelog":     "cleanup.policy=delete retention.ms=5 segment.bytes=8 ",
		"app-n-outer-other-join-store-changelog":    "cleanup.policy=delete retention.ms=5 segment.bytes=8 ",
		"app-n-outer-shared-join-store-changelog":   "cleanup.policy=compact retention.ms=5 segment.bytes=8 ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("the changelogs are %q, in Java %q", got, want)
	}
}
